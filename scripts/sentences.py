"""Places in ``src`` where a program goes by a sentence: it compares, matches or cuts texts.

A sentence is a text with two words. What a person reads is no state: states are members of an
enumeration, and notes have a kind (:mod:`dld_tui.core.notes`). Texts of other programs can only be
read, with named patterns, in the module that reads that program.

``python -m scripts.sentences [FOLDER]`` prints the places, of this checkout or of another one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.measure_structure import PACKAGE, Source

_WORDS = re.compile(r"[A-Za-z]{2,}\S*(?: [^\w\s]+)? \S*[A-Za-z]{2,}")
_METHODS = frozenset(
    {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition",
     "find", "rfind", "index", "rindex", "count", "replace", "split", "rsplit"}
)  # fmt: skip
_PATTERNS = frozenset({"compile", "match", "search", "fullmatch", "findall", "finditer", "sub",
                       "subn", "split"})  # fmt: skip
_SYNTAX = re.compile(r"\\[bBAZ]|\(\?(?:P<\w+>|P=\w+|[:=!imsx]+|<[=!])")
_SPACE = re.compile(r"\\s(?![*?])+?|\[ \]|\[ \\t\]| [+*?]")
READERS = {
    "backends.machine.jetson": "nvpmodel and jetson_clocks",
    "backends.machine.probe": "nvidia-smi and Python",
    "backends.model_checkers": "onnx's checker and Polygraphy",
    "backends.onnxruntime.runtime": "ONNX Runtime",
    "backends.onnxruntime.startup": "the log of ONNX Runtime",
    "backends.onnxruntime.verdict": "ONNX Runtime",
    "backends.tensorrt.errors": "TensorRT and its parser",
    "backends.tensorrt.library": "the dynamic linker",
    "backends.tensorrt.log": "the log of TensorRT",
    "backends.tensorrt.network": "names of TensorRT's layers",
    "core.process.child": "what a process says at its end",
    "core.model.document.locations": "onnx's inference and checker",
    "core.files.log_text": "logs of containers",
    "core.files.recognise": "file formats",
    "core.files.source": "Python",
    "core.machine.jetson": "nvpmodel",
    "core.model.operators.schema": "documentation of operators",
    "core.report.dla": "names of TensorRT's layers",
    "core.report.formats.trtexec_files": "trtexec",
    "core.report.groups": "names of TensorRT's layers",
    "core.tensorrt.plan.graph": "names of TensorRT's layers",
    "core.tensorrt.plan.json_text": "layer information of TensorRT",
    "core.tensorrt.plan.layers": "layer information of TensorRT",
    "core.tensorrt.plan.layer_names": "names of TensorRT's layers",
    "core.tensorrt.plan.node_metadata": "layer information of TensorRT",
    "core.tensorrt.plan.summary": "the log of TensorRT",
    "core.tensorrt.plan.trtexec_log": "trtexec",
    "core.compare.engine_subject": "metadata of trtexec",
    "core.tensorrt.tactics": "the log of TensorRT",
    "core.tensorrt.trtexec": "trtexec",
    "targets.base": "Python",
    "targets.ssh.deploy": "pip",
    "targets.ssh.errors": "OpenSSH",
    "targets.ssh.link": "asyncio",
}
"""The modules that read texts of other programs, by whose they are."""
WORDS = {
    "core.model.rewrite.expression": re.compile(r"not(?: |\\\\s\+)in"),
    "widgets.explorer.node_filter": re.compile(r"not(?: |\\\\s\+\)\?)has"),
}
"""Operators of query languages that have two words."""
COMMANDS = {
    "cli.setup.doctor": re.compile("-m venv"),
    "core.process.installation": re.compile("pip"),
}
"""Commands for a shell, which are made to fit another environment."""


@dataclass(frozen=True)
class Place:
    """A place that goes by a sentence."""

    module: str
    """Without the name of the package."""
    line: int
    code: str
    is_named: bool
    """The sentence is a constant of the module, not written where it is used."""

    @property
    def is_allowed(self) -> bool:
        """Whether it reads another program with a named pattern, a query or a command."""
        words = WORDS.get(self.module) or COMMANDS.get(self.module)
        if words is not None:
            return words.search(self.code) is not None
        return self.is_named and self.module in READERS


def is_sentence(text: str, *, pattern: bool = False) -> bool:
    """Return whether a text has two words; those of a regular expression need no space."""
    if pattern:
        text = _SPACE.sub(" ", _SYNTAX.sub("", text))
    return _WORDS.search(text) is not None


class _Constants:
    """Names of modules whose values are sentences, or patterns with one."""

    def __init__(self, source: Source) -> None:
        self._own: dict[str, set[str]] = {}
        self._taken: dict[str, dict[str, tuple[str, str]]] = {}
        for module, tree in source.trees.items():
            self._own[module] = {
                target.id
                for node in tree.body
                if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
                for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
                if isinstance(target, ast.Name) and _is_collection(node.value)
            }
            self._taken[module] = {
                alias.asname or alias.name: (node.module, alias.name)
                for node in source.nodes[module]
                if isinstance(node, ast.ImportFrom) and node.module
                for alias in node.names
            }

    def has(self, module: str, node: ast.expr) -> bool:
        """Return whether a name or attribute in a module is such a constant, or a list has one."""
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            return any(self.has(module, element) for element in node.elts)
        if isinstance(node, ast.Name):
            home, name = self._taken[module].get(node.id, (module, node.id))
            return name in self._own.get(home, ())
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, name = self._taken[module].get(node.value.id, ("", ""))
            return node.attr in self._own.get(f"{home}.{name}", ())
        return False


def _is_collection(value: ast.expr) -> bool:
    """Return whether a value is a sentence, or a collection with one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        is_set = value.func.id in ("frozenset", "set", "tuple") and len(value.args) == 1
        return is_set and _is_collection(value.args[0])
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return any(map(_is_collection, value.elts))
    if isinstance(value, ast.Dict):
        return any(key is not None and _is_collection(key) for key in value.keys)
    return any(is_sentence(text) for text in _texts(value))


def _texts(node: ast.expr) -> Iterator[str]:
    """Yield the text of a constant, or its parts if it is formatted or joined."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(
            str(part.value) if isinstance(part, ast.Constant) else "0" for part in node.values
        )
    elif isinstance(node, ast.BinOp):
        yield from _texts(node.left)
        yield from _texts(node.right)


def _compared(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that a node of the tree compares or looks for."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.MatchValue):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        is_method = node.func.attr in _METHODS and not _is_re(node.func.value)
        return node.args[:1] if is_method else []
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Dict):
        return [key for key in node.value.keys if key is not None]
    return []


def _is_re(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "re"


def _pattern(node: ast.AST) -> ast.expr | None:
    """Return the pattern of a call of the module ``re``."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in _PATTERNS
        and _is_re(node.func.value)
        and node.args
    ):
        return node.args[0]
    return None


def places(source: Source) -> list[Place]:
    """Return the places of a checkout that go by a sentence, by module and line."""
    constants = _Constants(source)
    found = []
    for module, tree in source.trees.items():
        named = {
            id(node)
            for statement in tree.body
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None
            for node in ast.walk(statement.value)
        }
        for node in source.nodes[module]:
            pattern, is_named = _pattern(node), id(node) in named
            if pattern is not None:
                is_found = any(is_sentence(text, pattern=True) for text in _texts(pattern))
            else:
                compared = _compared(node)
                taken = [constants.has(module, expression) for expression in compared]
                written = any(map(_is_collection, compared))
                is_found, is_named = written or any(taken), not written
            if is_found:
                line = getattr(node, "lineno", 0)
                code = ast.unparse(node)
                found.append(Place(module.removeprefix(f"{PACKAGE}."), line, code, is_named))
    return sorted(found, key=lambda place: (place.module, place.line))


def main(arguments: list[str]) -> int:
    """Print the places: those that are allowed with a space before them."""
    root = Path(arguments[0]) if arguments else Path(__file__).resolve().parents[1]
    for place in places(Source(root)):
        print(f"{' ' * place.is_allowed}{place.module}:{place.line}: {place.code:.140}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
