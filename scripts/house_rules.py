"""Rules of the source that ruff, mypy and import-linter do not have.

``python -m scripts.house_rules`` prints what breaks one, a line each, and exits with 1. Each rule
reads the syntax trees of a checkout, which are made once for all of them.
"""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from scripts import architecture, cross_references, sentences, words
from scripts.command_tree import entries
from scripts.measure_structure import PACKAGE, Source, imports, rings

ROOT = Path(__file__).resolve().parents[1]
Rule = Callable[[Source], Iterator[str]]

LARGEST_RING = 3
"""Modules that import each other, deferred imports and those for typing counted."""


def rings_are_small(source: Source) -> Iterator[str]:
    """Few modules import each other, wherever the imports stand."""
    for ring in rings({module: imports(source, module) for module in source.trees}):
        if len(ring) > LARGEST_RING:
            yield f"{len(ring)} modules import each other: {', '.join(ring)}"


def modules_load_in_an_order(source: Source) -> Iterator[str]:
    """No module imports itself in a circle when it is loaded."""
    graph = {module: _imported_at_load(source, module) for module in source.trees}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        yield " -> ".join(error.args[1])


def _imported_at_load(source: Source, module: str) -> set[str]:
    found = set()
    for name, parts in _import_statements(source.trees[module]):
        full = {f"{name}.{part}" for part in parts}
        found |= {one if one in source.trees else name for one in full or {name}}
    return {name for name in found if name in source.trees and name != module}


def _import_statements(tree: ast.AST) -> Iterator[tuple[str, list[str]]]:
    """Yield (module, names) of the imports that run when a module is loaded."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or "", [alias.name for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.expr)):
            continue
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from _import_statements(node)


WITHOUT_TESTS = {f"{PACKAGE}.core.types": "type names only"}
_OWN_MODULE = re.compile(r"(?:dld_tui|benchmarks|scripts)(?:\.\w+)+")


@cache
def _names_of(path: Path) -> set[str]:
    """Return every name that an import anywhere in a file, or a table, may mean a module by."""
    return _names_in(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def _names_in(nodes: Iterable[ast.AST]) -> set[str]:
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and _OWN_MODULE.fullmatch(str(node.value)):
            found.add(str(node.value))
    return found


def core_is_tested_room_by_room(source: Source) -> Iterator[str]:
    """The tests of a folder of core reach each of its modules."""
    named = {module: _names_in(nodes) for module, nodes in source.nodes.items()}
    reached: dict[Path, set[str]] = {}

    def reach(tests: Path) -> set[str]:
        if not tests.exists():  # a part of the room above
            return reach(tests.parent)
        if tests not in reached:
            waiting = [name for path in tests.glob("test_*.py") for name in _names_of(path)]
            reached[tests] = found = set[str]()
            while waiting:
                name = waiting.pop()
                if name not in found and name.startswith(f"{PACKAGE}.core"):
                    found.add(name)
                    # Python imports the package first.
                    waiting += (name.rpartition(".")[0], *named.get(name, ()))
        return reached[tests]

    for module in sorted(source.trees.keys() - source.packages - WITHOUT_TESTS.keys()):
        if module.startswith(f"{PACKAGE}.core."):
            folders = module.split(".")[1:-1]
            if module not in reach(source.root.joinpath("tests", *folders)):
                yield f"no test in tests/{'/'.join(folders)} reaches {module}"


def benchmarks_and_scripts_are_needed(source: Source) -> Iterator[str]:
    """A page, CI, a test, or another one that is needed names each of them."""
    pages = ("Makefile", "CONTRIBUTING.md", "docs/project/verified.md")
    naming = [*(source.root / page for page in pages), *(source.root / ".ci").iterdir()]
    waiting = {
        name.replace("/", ".")
        for path in naming
        for name in re.findall(r"\b(?:benchmarks|scripts)[./]\w+", path.read_text("utf-8"))
    }
    for path in (source.root / "tests").rglob("*.py"):
        waiting |= _names_of(path)
    needed: set[str] = set()
    while waiting:
        module = waiting.pop()
        path = source.root / f"{module.replace('.', '/')}.py"
        if module.startswith(("benchmarks.", "scripts.")) and module not in needed:
            needed.add(module)
            waiting |= _names_of(path) if path.exists() else set()
    for folder in ("benchmarks", "scripts"):
        for path in sorted((source.root / folder).glob("[!_]*.py")):
            if f"{folder}.{path.stem}" not in needed:
                yield f"nothing needs {folder}/{path.name}"


def no_machine_is_named(source: Source) -> Iterator[str]:
    """No file of the repository has a path of one machine, or the host of a registry."""
    # Written so that this file does not hold what it looks for.
    folder = "/(?:" + "|".join(("wor" + "k", "ro" + "ot", "far" + "m")) + r")/[\w.-]"
    pattern = re.compile(f"{folder}|pypi" + r"\.org|python" + "hosted")
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, cwd=source.root, capture_output=True, text=True, check=True)
    for name in done.stdout.splitlines():
        path = source.root / name
        if path.is_file() and pattern.search(path.read_bytes().decode("utf-8", "replace")):
            yield f"{name} names a machine"


_UNFINISHED = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X")) + r")\b")


def nothing_is_marked_unfinished(source: Source) -> Iterator[str]:
    """No module has a mark of work that is left."""
    for module, text in source.texts.items():
        if _UNFINISHED.search(text):
            yield f"{module} has a mark of unfinished work"


def references_name_something(source: Source) -> Iterator[str]:
    """What a docstring refers to, and each argument that it describes, exists."""
    for module, line, target in cross_references.dangling(source):
        yield f"{module}:{line}: nothing is named {target}"
    for module, line, name in cross_references.unknown_arguments(source):
        yield f"{module}:{line}: nothing takes {name}"


_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b(?=[^{]*;)|\brgba?\(|\bhsla?\(")


def style_sheets_take_colours_of_the_theme(source: Source) -> Iterator[str]:
    """No style sheet has a colour of its own."""
    for path in sorted(source.package.rglob("*.tcss")):
        code = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for colour in _COLOUR.finditer(code):
            yield f"{path.name}: {colour.group()}"


def no_sentence_is_compared(source: Source) -> Iterator[str]:
    """No program goes by a text for people; the exceptions are needed."""
    places = sentences.places(source)
    for place in places:
        if not place.is_allowed:
            yield f"{place.module}:{place.line}: {place.code}"
    exceptions = {*sentences.READERS, *sentences.WORDS, *sentences.COMMANDS}
    for module in sorted(exceptions - {place.module for place in places if place.is_allowed}):
        yield f"{module} goes by no sentence any more"


def texts_have_the_words_of_contributing(source: Source) -> Iterator[str]:
    """No text and no help has a word that says nothing to a reader, or that another replaces."""
    unused = set(words.NO_TEXTS)
    for module, nodes in source.nodes.items():
        for text in words.texts(nodes):
            if (module, text) in words.NO_TEXTS:
                unused.discard((module, text))
                continue
            if words.PRIVATE.search(text):
                yield f"{module}: {text!r} has a word of the workshop"
            if module not in words.OF_OTHERS and words.is_sentence(text):
                yield from (f"{module}: {text!r}: {wrong}" for wrong in words.wrong(text))
    yield from (f"{module} has no text {text!r} any more" for module, text in sorted(unused))


def help_has_the_words_of_contributing(_: Source) -> Iterator[str]:
    """What the command line says has the words, too."""
    for entry in entries():
        for text in (*entry.about, *(row.meaning for row in entry.rows)):
            yield from (f"dld {entry.name}: {text!r}: {wrong}" for wrong in words.wrong(text))


WRITER = f"{PACKAGE}.core.files.writer"
WRITERS = {
    # A process's own temporary folder: nobody else reads it, and it goes with the process.
    "backends.conversion.verification": "the view of a model",
    "backends.model_checkers": "what a child process answers",
    "backends.onnxruntime.constants": "values for the edit that owns the scratch folder",
    "backends.onnxruntime.tensors": "the view of a model",
    "backends.onnxruntime.verdict": "parts of the view of a model",
    "backends.conversion.quantization": "how far a child process is",
    "backends.tensorrt.library": "what a child process answers",
    "backends.tensorrt.profiling": "files for the reader of engine plans",
    "activities.providers": "the view of a model for TensorRT's parser",
    "backends.onnxruntime.engine_layers": "layer information for its reader",
    "api.inference": "a snapshot for a child process",
    "api.requests": "inputs for a child process",
    "core.model.edits.model_swap": "the payloads of a conversion",
    "core.model.document.locations": "labels in the view of a model",
    "core.files.model_set": "the view of a model",
    "screens.workspace.jobs": "a snapshot for a child process",
    # Grows while it is read: a rename would hide it until its end.
    "core.files.work_journal": "a line for each thing found; one that is damaged is left out",
    "core.model.document.scripting.journal": "a line an edit, so that a crash loses none",
    # Written by others, or on another machine: renamed when whole.
    "core.model.tensors.payloads": "under the hash of its content, renamed when it is whole",
    "core.process.terminal": "the terminal itself",
    "cli.command": "a paragraph for the terminal",
    "targets.ssh.remote.agent": "a bare Python on a target, which renames it when it is whole",
    "targets.ssh.remote.environment": "a bare Python on a target",
    "targets.ssh.remote.jobs": "the new folder of a job on a target",
    "targets.ssh.remote.objects": "a bare Python on a target, which renames it when it is whole",
    "targets.ssh.remote.supervisor": "events of a job, followed while they are written",
}
"""What writes by itself, and why."""


def files_are_written_by_the_writer(source: Source) -> Iterator[str]:
    """One module writes files, whole or not at all; the exceptions are needed."""
    found = {}
    for module, nodes in source.nodes.items():
        if module != WRITER and (calls := set(_writing_calls(nodes))):
            found[module.removeprefix(f"{PACKAGE}.")] = calls
    for module, calls in found.items():
        if module not in WRITERS:
            yield f"{module} writes by itself: {', '.join(sorted(calls))}"
    yield from (f"{module} writes nothing any more" for module in sorted(set(WRITERS) - set(found)))


def _writing_calls(nodes: list[ast.AST]) -> Iterator[str]:
    """Yield the calls that write a file: open with a mode for it, write_text, os.replace."""
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
        owner = function.value if isinstance(function, ast.Attribute) else None
        values = [*node.args, *(keyword.value for keyword in node.keywords)]
        modes = [value.value for value in values
                 if isinstance(value, ast.Constant) and isinstance(value.value, str)]  # fmt: skip
        opens = name == "open" and any(
            set(mode) & set("wxa") and set(mode) <= set("rwxabt+") for mode in modes
        )
        writes = name in ("write_text", "write_bytes") and owner is not None
        renames = name in ("replace", "rename") and getattr(owner, "id", "") == "os"
        if opens or writes or renames:
            yield name


CSV_MAKER = f"{PACKAGE}.core.tables.rendering"


def csv_is_made_in_one_place(source: Source) -> Iterator[str]:
    """One module makes CSV."""
    for module, text in source.texts.items():
        if ("csv.writer(" in text) != (module == CSV_MAKER):
            yield f"{module}: CSV is made in {CSV_MAKER}"


def pictures_of_the_imports_are_true(source: Source) -> Iterator[str]:
    """The page of the architecture shows the imports as they are."""
    there = architecture.parts_of(architecture.PAGE.read_text(encoding="utf-8"))
    for name in ("folders", "core"):
        if architecture.PARTS[name](source) != there[name]:
            yield f"the picture of {name} is old: python -m scripts.architecture"


RULES: tuple[Rule, ...] = (
    rings_are_small,
    modules_load_in_an_order,
    core_is_tested_room_by_room,
    benchmarks_and_scripts_are_needed,
    no_machine_is_named,
    nothing_is_marked_unfinished,
    references_name_something,
    style_sheets_take_colours_of_the_theme,
    no_sentence_is_compared,
    texts_have_the_words_of_contributing,
    help_has_the_words_of_contributing,
    files_are_written_by_the_writer,
    csv_is_made_in_one_place,
    pictures_of_the_imports_are_true,
)


def main() -> int:
    """Print what breaks a rule."""
    gc.disable()  # millions of nodes, none of which is given up before the end
    source = Source(ROOT)
    broken = [f"{rule.__name__}: {line}" for rule in RULES for line in rule(source)]
    print("\n".join(broken) or f"{len(RULES)} rules hold in {len(source.trees)} modules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
