"""Rules about the source that no linter knows, and what the page on architecture names."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from dld_tui.screens.workspace.controller import Controller
from scripts.architecture import PAGE, ROOT, reduced

SRC = ROOT / "src" / "dld_tui"
TEXT = PAGE.read_text(encoding="utf-8")


def test_an_arrow_that_follows_from_others_is_left_out() -> None:
    graph = {"a": {"b", "c", "d"}, "b": {"c"}, "c": {"d"}, "d": set[str](), "e": {"d"}}
    assert reduced(graph) == {"a": {"b"}, "b": {"c"}, "c": {"d"}, "d": set(), "e": {"d"}}


@pytest.mark.parametrize("heading", ["Where is …", "One place for each concept"])
def test_the_places_that_the_page_names_exist(heading: str) -> None:
    section = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    places = re.findall(r"`([a-z_]+/[\w/.]*)`", section)
    assert len(places) > 10
    assert [
        place for place in places if not (SRC / place).exists() and not (ROOT / place).exists()
    ] == []


SERVICE = "widgets/tasks.py"
KEYS = "widgets/shell/key_queue.py"
"""Waits for the event loop itself to come to rest: no work, and it must not wait for any."""
STARTERS = {
    "Popen", "Process", "ProcessPoolExecutor", "Thread", "ThreadPoolExecutor", "Timer",
    "create_subprocess_exec", "create_subprocess_shell", "create_task", "ensure_future",
    "run_in_executor", "run_worker", "start_new_thread", "to_thread", "work",
}  # fmt: skip
"""What begins something that runs beside the event loop, by the last part of its name."""
STARTING = {"asyncio", "concurrent", "multiprocessing", "subprocess", "textual", "threading"}


_CALL = re.compile(rf"\b({'|'.join(sorted(STARTERS))})\(")


def starters(source: str) -> list[str]:
    """Return the calls and decorators in a module that begin work."""
    if not _CALL.search(source):
        return []
    tree = ast.parse(source)
    imported = {
        (alias.asname or alias.name): node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Attribute) and called.attr in STARTERS - {"work"}:
            found.append(called.attr)
        elif (
            isinstance(called, ast.Name)
            and called.id in STARTERS
            and imported.get(called.id, "").partition(".")[0] in STARTING
        ):
            found.append(called.id)
    return found


@pytest.mark.broad
def test_only_the_service_starts_work() -> None:
    paths = [SRC / "app.py", *(SRC / "screens").rglob("*.py"), *(SRC / "widgets").rglob("*.py")]
    found = {str(path.relative_to(SRC)): starters(path.read_text("utf-8")) for path in paths}
    assert found.pop(SERVICE), "the service itself"
    assert found.pop(KEYS) == ["create_task", "create_task"]
    assert {path: names for path, names in found.items() if names} == {}


def test_each_way_is_found() -> None:
    source = """
import asyncio, threading
from textual import work
from threading import Thread as T, Thread
self.run_worker(load, thread=True)
threading.Thread(target=load).start()
Thread(target=load).start()
await asyncio.to_thread(load)
@work(thread=True)
def load(): ...
self.work(load)
"""
    found = sorted(starters(source))
    assert found == ["Thread", "Thread", "run_worker", "to_thread", "work"]


MODULES = [
    ".".join(path.relative_to(SRC.parent).with_suffix("").parts)
    for path in sorted(SRC.rglob("*.py"))
    if path.name != "__init__.py"
]

MOST_ANCESTORS = 3
REDEFINED: set[str] = set()
"""Classes among whose ancestors an action is still defined twice."""


def interface_classes() -> list[type]:
    """Return the classes of screens and widgets, and of the app."""
    found: list[type] = []
    for name in MODULES:
        if name.startswith(("dld_tui.screens", "dld_tui.widgets", "dld_tui.app")):
            module = importlib.import_module(name)
            found += [c for c in vars(module).values() if isinstance(c, type)
                      and c.__module__ == name]  # fmt: skip
    return found


def own_ancestors(cls: type) -> list[type]:
    return [base for base in cls.__mro__[1:] if base.__module__.startswith("dld_tui.")]


def test_no_class_stands_on_a_tower() -> None:
    heights = {cls.__name__: len(own_ancestors(cls)) for cls in interface_classes()}
    assert {name for name, height in heights.items() if height > MOST_ANCESTORS} == set()
    assert heights["WorkspaceScreen"] > 0


def test_no_action_is_defined_twice_among_the_ancestors_of_a_class() -> None:
    found = set()
    for cls in interface_classes():
        actions = [name for base in own_ancestors(cls) for name in vars(base)
                   if name.startswith("action_")]  # fmt: skip
        if len(actions) != len(set(actions)):
            found.add(cls.__name__)
    assert found - REDEFINED == set()


def test_a_controller_stands_on_one_class_and_is_small() -> None:
    controllers = [
        c for c in interface_classes() if Controller in c.__mro__ and c is not Controller
    ]
    assert len(controllers) > 10
    for cls in controllers:
        assert own_ancestors(cls) == [Controller], cls
        own = [name for name, value in vars(cls).items() if callable(value) or
               isinstance(value, (property, staticmethod))]  # fmt: skip
        assert len(own) <= 40, (cls, len(own))
