"""Measures of the structure of ``src``, as docs/project/architecture.md has them.

``python -m scripts.measure_structure [FOLDER]`` prints one Markdown row a measure, of this checkout
or of the one in another folder. Everything is read from the syntax trees; nothing is imported.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

PACKAGE = "dld_tui"
WORK_STARTERS = {"run_worker", "to_thread", "run_in_executor", "create_task", "Thread", "Process"}
"""Calls that start work beside the event loop."""


class Source:
    """The modules of one checkout as syntax trees, by dotted name."""

    def __init__(self, root: Path) -> None:
        """Read every module below ``src``."""
        self.root, self.package = root, root / "src" / PACKAGE
        paths = {
            _dotted(path.relative_to(root / "src")): path
            for path in sorted(self.package.rglob("*.py"))
        }
        self.packages = {name for name, path in paths.items() if path.name == "__init__.py"}
        self.texts = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
        self.trees = {name: ast.parse(text) for name, text in self.texts.items()}

    @cached_property
    def nodes(self) -> dict[str, list[ast.AST]]:
        """All nodes of each tree: a walk takes longer than what most rules look for."""
        return {name: list(ast.walk(tree)) for name, tree in self.trees.items()}

    @cached_property
    def classes(self) -> dict[tuple[str, str], ast.ClassDef]:
        """The classes, by module and name."""
        return {
            (module, node.name): node
            for module, nodes in self.nodes.items()
            for node in nodes
            if isinstance(node, ast.ClassDef)
        }


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(source: Source, module: str) -> set[str]:
    """Return the modules that a module imports anywhere: deferred and for typing, too."""
    found = set()
    for node in source.nodes[module]:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                found.add(name if name in source.trees else node.module)
    return {name for name in found if name in source.trees and name != module}


def rings(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one module, the largest first.

    Tarjan, "Depth-first search and linear graph algorithms", 1972, without recursion.
    """
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for start in graph:
        if start in index:
            continue
        walk = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while walk:
            name, rest = walk[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    walk.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[name] = min(low[name], index[other])
            else:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[name])
                if low[name] == index[name]:
                    ring: list[str] = []
                    while not ring or ring[-1] != name:
                        ring.append(stack.pop())
                        on_stack.discard(ring[-1])
                    if len(ring) > 1:
                        found.append(sorted(ring))
    return sorted(found, key=len, reverse=True)


def rooms_of(source: Source, package: str) -> dict[str, set[str]]:
    """Return what each package or module directly in a package imports of the others."""
    prefix = f"{PACKAGE}.{package}."

    def room(module: str) -> str:
        return module.removeprefix(prefix).partition(".")[0]

    graph: dict[str, set[str]] = {}
    for module in source.trees:
        if module.startswith(prefix):
            known = graph.setdefault(room(module), set())
            others = (name for name in imports(source, module) if name.startswith(prefix))
            known |= set(map(room, others)) - {room(module)}
    return graph


def ancestors(source: Source) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Return the ancestors of each class that are defined in this package."""
    homes: dict[str, dict[str, str]] = {}
    for module, nodes in source.nodes.items():
        names = homes.setdefault(module, {})
        for node in nodes:
            if isinstance(node, ast.ImportFrom) and node.module in source.trees:
                names.update({alias.asname or alias.name: node.module for alias in node.names})
        names.update({name: module for home, name in source.classes if home == module})
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}

    def of(key: tuple[str, str]) -> list[tuple[str, str]]:
        if key not in found:
            found[key] = []
            bases: list[tuple[str, str]] = []
            for base in source.classes[key].bases:
                node = base.value if isinstance(base, ast.Subscript) else base
                if isinstance(node, ast.Name):
                    home = (homes[key[0]].get(node.id, ""), node.id)
                    if home in source.classes and home != key:
                        bases += [home, *of(home)]
            found[key] = list(dict.fromkeys(bases))
        return found[key]

    for key in source.classes:
        of(key)
    return found


def _actions(source: Source, key: tuple[str, str]) -> set[str]:
    body = source.classes[key].body
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {n.name for n in body if isinstance(n, functions) and n.name.startswith("action_")}


def _calls(source: Source, names: set[str]) -> Iterator[tuple[str, str]]:
    for module, nodes in source.nodes.items():
        for node in nodes:
            if isinstance(node, ast.Call):
                function = node.func
                name = getattr(function, "attr", getattr(function, "id", ""))
                if name in names:
                    yield module, name


PROCESS_STARTERS = {
    "Popen", "create_subprocess_exec", "create_subprocess_shell", "fork", "posix_spawn", "Process",
    "create_process",
}  # fmt: skip
"""Calls that start a process, besides ``subprocess.run``."""


_OTHER_NAMES = {"Command", "CommandInfo", "Tool", "_convert", "command_for", "when", "get"}
"""Calls whose texts are names of commands or fields, a few of which are those of edits, too."""


def fields_of(node: ast.ClassDef) -> set[str]:
    """Return the names of the annotated fields of a class."""
    return {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
    }


def one_of_each(source: Source) -> list[tuple[str, str]]:
    """Return how often the program has what it should have once, as names and values."""
    from scripts.sentences import places

    nodes = [(module, node) for module, nodes in source.nodes.items() for node in nodes]
    calls = [(module, node) for module, node in nodes if isinstance(node, ast.Call)]
    fields = {key: fields_of(node) for key, node in source.classes.items()}
    notes = [
        key
        for key, names in fields.items()
        if names & {"text", "message", "remark", "hazard"}
        and ("level" in names or key[1] == "Note")
    ]
    peaks = [
        key
        for key, names in fields.items()
        if names & {"flops", "tflops"} and any(name.startswith("bandwidth") for name in names)
    ]
    starters = {
        module
        for module, call in calls
        if (name := _called(call)) in PROCESS_STARTERS
        or (name in ("run", "check_output") and ast.unparse(call.func).startswith("subprocess."))
    }
    reshapes = {
        module
        for module, node in nodes
        if isinstance(node, ast.Constant) and node.value == "Reshape"
    }
    journals = [key for key in source.classes if key[1].endswith("Journal")]
    overwrites = [
        node
        for _, node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and _decides_overwriting(node)
    ]
    names_of_edits = {
        node.name
        for module, node in nodes
        if isinstance(node, ast.FunctionDef)
        and module.startswith((f"{PACKAGE}.core.model.edits.", f"{PACKAGE}.core.conversion.edits."))
        and any(ast.unparse(decorator) == "edit" for decorator in node.decorator_list)
    }
    edits = [
        call
        for module, call in calls
        if call.args
        and isinstance(call.args[0], ast.Constant)
        and call.args[0].value in names_of_edits
        and _called(call) not in _OTHER_NAMES
        and not module.startswith(f"{PACKAGE}.core.model.document.scripting.")
    ]
    options = [call for _, call in calls if ast.unparse(call.func) == "click.option"]
    found = places(source)
    read = sum(place.is_allowed for place in found)
    return [
        ("places that go by a sentence, besides readers of other programs", f"{len(found) - read}"),
        ("such places in readers of other programs", str(read)),
        ("classes of notes and findings", str(len(notes))),
        ("classes of peaks", str(len(peaks))),
        ("modules that start processes", str(len(starters))),
        ("modules that name `Reshape`", str(len(reshapes))),
        ("classes of journals", str(len(journals))),
        ("functions that decide about overwriting", str(len(overwrites))),
        ('edits by name, such as `edit("set_attribute", …)`', str(len(edits))),
        ("options written by hand", str(len(options))),
    ]


def _called(call: ast.Call) -> str:
    function = call.func
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _decides_overwriting(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function looks whether a file exists, and whether it may be replaced."""
    inside = list(ast.walk(function))
    looks = any(
        isinstance(node, ast.Call) and _called(node) in ("exists", "lexists", "is_file")
        for node in inside
    )
    return looks and any(
        (isinstance(node, ast.Name) and node.id in ("overwrite", "force"))
        or (isinstance(node, ast.Attribute) and node.attr in ("overwrite", "force"))
        for node in inside
    )


def measures(source: Source) -> list[tuple[str, str]]:
    """Return (measure, value) pairs."""
    lines = sum(len(text.splitlines()) for text in source.texts.values())
    own = ancestors(source)
    face = {
        key: bases
        for key, bases in own.items()
        if key[0].startswith((f"{PACKAGE}.screens", f"{PACKAGE}.widgets", f"{PACKAGE}.app"))
    }
    deepest = max(face, key=lambda key: len(face[key]))
    doubled = set()
    for key, bases in face.items():
        defined = Counter(name for one in (key, *bases) for name in _actions(source, one))
        doubled |= {name for name, count in defined.items() if count > 1}
    found = rings({module: imports(source, module) for module in source.trees})
    graphs_of_core = [rooms_of(source, package) for package in ("core", "core.model")]
    mutual = sum(
        room < other and room in graph[other]
        for graph in graphs_of_core
        for room in graph
        for other in graph[room]
    )
    core_rings = [ring for graph in graphs_of_core for ring in rings(graph)]
    functions = [
        node
        for nodes in source.nodes.values()
        for node in nodes
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    signatures = [
        ast.unparse(annotation)
        for function in functions
        for annotation in (
            function.returns,
            *(
                argument.annotation
                for argument in ast.walk(function.args)
                if isinstance(argument, ast.arg)
            ),
        )
        if annotation is not None
    ]
    nested = sum(
        isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for function in functions
        for statement in function.body
        for node in ast.walk(statement)
    )
    casts = sum(
        isinstance(node, ast.Call) and ast.unparse(node.func) in ("cast", "typing.cast")
        for nodes in source.nodes.values()
        for node in nodes
    )
    starters = Counter(
        module
        for module, _ in _calls(source, WORK_STARTERS)
        if module.startswith((f"{PACKAGE}.screens", f"{PACKAGE}.widgets"))
    )
    columns = [f"{module}.{name}" for module, name in source.classes if name == "Column"]
    rooms = Counter(name.rpartition(".")[0] for name in source.trees)
    return [
        ("files in src", str(len(source.trees))),
        ("lines in src", f"{lines:,}"),
        (
            "most modules in a package",
            f"{rooms.most_common(1)[0][1]} ({rooms.most_common(1)[0][0]})",
        ),
        ("most own ancestors of a screen or widget", f"{len(face[deepest])} ({deepest[1]})"),
        ("actions defined twice among ancestors", str(len(doubled))),
        (
            "largest import cycle, including deferred and typing imports",
            str(len(found[0]) if found else 0),
        ),
        ("pairs of packages of core that import each other", str(mutual)),
        (
            "packages of core in the largest cycle of their imports",
            str(max(map(len, core_rings), default=0)),
        ),
        ("classes called Column", str(len(columns))),
        (
            "`dict[str, JSON]` in signatures",
            str(sum("dict[str, JSON]" in text for text in signatures)),
        ),
        ("casts", str(casts)),
        ("nested functions", str(nested)),
        ("modules of screens and widgets that start work themselves", str(len(starters))),
    ]


def main(arguments: list[str]) -> int:
    """Print the measures as rows of a Markdown table."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    print("| measure | value |\n|---|---|")
    source = Source(root)
    for name, value in (*measures(source), *one_of_each(source)):
        print(f"| {name} | {value} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
