"""The house stays tidy: no import cycles, a test for each core module, no strays."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from dld_tui.screens.workspace.controller import Controller
from scripts.measure_structure import Source, imports, rings

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
MODULES = sorted((SRC / "dld_tui").rglob("*.py"))
CORE = [
    path for path in MODULES if "core" in path.relative_to(SRC).parts and path.name != "__init__.py"
]
LARGEST_RING = 3
"""Modules that import each other, deferred imports and those for typing counted."""
WITHOUT_TESTS = {"types.py": "type names only"}


def dotted(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports_at_load(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield (module, names) of the imports that run when a module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", [alias.name for alias in node.names]
        else:
            yield from imports_at_load(node)


@pytest.mark.broad
def test_no_ring_of_imports_is_large() -> None:
    source = Source(ROOT)
    found = rings({module: imports(source, module) for module in source.trees})
    assert max(map(len, found)) <= LARGEST_RING, found[0]


@pytest.mark.broad
def test_modules_do_not_import_each_other_in_a_circle() -> None:
    known = {dotted(path) for path in MODULES}
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        graph[dotted(path)] = {
            f"{module}.{name}" if f"{module}.{name}" in known else module
            for module, names in imports_at_load(ast.parse(path.read_text(encoding="utf-8")))
            for name in names or [""]
            if module in known
        } - {dotted(path)}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def reached_by_tests(folder: Path) -> set[str]:
    """Return the core modules that the tests of one folder import, and what those import."""
    tests = ROOT / "tests" / folder.relative_to(SRC / "dld_tui")
    if not tests.exists():  # a part of the room above
        return reached_by_tests(folder.parent)
    waiting = [name for path in tests.glob("test_*.py") for name in modules_imported(path)]
    reached: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in reached and name.startswith("dld_tui.core"):
            reached.add(name)
            waiting.append(name.rpartition(".")[0])  # Python imports the package first
            place = SRC / name.replace(".", "/")
            for path in (place.with_suffix(".py"), place / "__init__.py"):
                if path.exists():
                    waiting += modules_imported(path)
    return reached


OWN_MODULE = r"(?:dld_tui|benchmarks|scripts)(?:\.\w+)+"


@cache
def modules_imported(path: Path) -> set[str]:
    """Return every name that an import anywhere in a file, or a table, may mean a module by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(OWN_MODULE, str(node.value)):
            found.add(str(node.value))
    return found


def test_every_core_module_is_tested_in_its_own_room() -> None:
    reached = {folder: reached_by_tests(folder) for folder in {path.parent for path in CORE}}
    untested = [
        relative(path)
        for path in CORE
        if path.name not in WITHOUT_TESTS and dotted(path) not in reached[path.parent]
    ]
    assert untested == []


def tracked() -> list[Path]:
    """Return the files of the repository, new ones included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / line for line in done.stdout.splitlines() if (ROOT / line).is_file()]


def test_each_benchmark_and_script_is_still_needed() -> None:
    """A page, CI, a test, or another one that is needed names it."""
    pages = ("Makefile", "CONTRIBUTING.md", "docs/project/verified.md")
    texts = [path.read_text(encoding="utf-8") for path in
             (*(ROOT / page for page in pages), *(ROOT / ".ci").iterdir())]  # fmt: skip
    names = [
        name for text in texts for name in re.findall(r"\b(?:benchmarks|scripts)[./]\w+", text)
    ]
    waiting = {name.replace("/", ".") for name in names}
    for path in (ROOT / "tests").rglob("*.py"):
        waiting |= modules_imported(path)
    needed: set[str] = set()
    while waiting:
        module = waiting.pop()
        path = ROOT / f"{module.replace('.', '/')}.py"
        if module.startswith(("benchmarks.", "scripts.")) and module not in needed:
            needed.add(module)
            waiting |= modules_imported(path) if path.exists() else set()
    there = {f"{path.parent.name}.{path.stem}" for folder in ("benchmarks", "scripts")
             for path in (ROOT / folder).glob("[!_]*.py")}  # fmt: skip
    assert len(there) > 30
    assert sorted(there - needed) == []


def test_no_path_of_one_machine_is_in_the_repository() -> None:
    # Written so that this file does not hold what it looks for.
    pattern = re.compile("/(?:" + "|".join(("wor" + "k", "ro" + "ot", "far" + "m")) + r")/[\w.-]")
    hosts = re.compile("pypi" + r"\.org|python" + "hosted")
    found = []
    for path in tracked():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [relative(path) for line in text.splitlines() if pattern.search(line)]
        found += [relative(path) for line in text.splitlines() if hosts.search(line)]
    assert found == []


def test_no_marks_of_unfinished_work() -> None:
    pattern = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")
    found = [relative(path) for path in MODULES if pattern.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_style_sheets_have_no_colours_of_their_own() -> None:
    colour = re.compile(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*;)|\brgba?\(|\bhsla?\(")
    found = []
    for path in (SRC / "dld_tui").rglob("*.tcss"):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        found += [f"{relative(path)}: {match.group()}" for match in colour.finditer(code)]
    assert found == []


MOST_ANCESTORS = 3
REDEFINED: set[str] = set()
"""Classes among whose ancestors an action is still defined twice."""


def interface_classes() -> list[type]:
    """Return the classes of screens and widgets, and of the app."""
    found: list[type] = []
    for path in MODULES:
        name = dotted(path)
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
