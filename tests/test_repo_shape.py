"""The house stays tidy: no import cycles, a test for each core module, no strays."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SRC = ROOT / "src"
MODULES = sorted((SRC / "dld_tui").rglob("*.py"))
CORE = [path for path in MODULES if "core" in path.parts and path.name != "__init__.py"]
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


@cache
def modules_imported(path: Path) -> set[str]:
    """Return every name that an import anywhere in a file may mean a module by."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
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
