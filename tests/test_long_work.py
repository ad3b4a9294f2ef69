"""Nothing but the service for long work starts threads, workers and processes below the app."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dld_tui

SRC = Path(dld_tui.__file__).parent
SERVICE = "widgets/tasks.py"
KEYS = "widgets/shell/key_queue.py"
"""Waits for the event loop itself to come to rest: no work, and it must not wait for any."""
STARTERS = {
    "Popen",
    "Process",
    "ProcessPoolExecutor",
    "Thread",
    "ThreadPoolExecutor",
    "Timer",
    "create_subprocess_exec",
    "create_subprocess_shell",
    "create_task",
    "ensure_future",
    "run_in_executor",
    "run_worker",
    "start_new_thread",
    "to_thread",
    "work",
}
"""What begins something that runs beside the event loop, by the last part of its name."""
MODULES = {"asyncio", "concurrent", "multiprocessing", "subprocess", "textual", "threading"}


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
            and imported.get(called.id, "").partition(".")[0] in MODULES
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
