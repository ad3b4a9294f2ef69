"""References and arguments in the docstrings of ``src``, and what they name.

A reference names what stands in its module, in the class around it or in a base of that class; a
module, from the top, from ``dld_tui`` or with the dots of an import; or a name in one of these. Of
other programs' modules only the module is looked up.
"""

from __future__ import annotations

import ast
import builtins
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec

from scripts.measure_structure import PACKAGE, Source

_ARGUMENTS = re.compile(r"^( *)Args:\n((?:\1 +.*\n|\n)*)", re.MULTILINE)
_REFERENCE = re.compile(r":(?:mod|class|func|data|meth|attr|exc|obj):`([^`]*)`")
_TITLED = re.compile(r".*<(.*)>", re.DOTALL)
_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def dangling(source: Source) -> Iterator[tuple[str, int, str]]:
    """Yield module, line and text of each reference that names nothing."""
    names = _Names(source)
    for module, text in source.texts.items():
        if ":`" not in text:
            continue
        classes = [node for node in source.nodes[module] if isinstance(node, ast.ClassDef)]
        for match in _REFERENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            around = [one for one in classes if one.lineno <= line <= (one.end_lineno or 0)]
            target = match.group(1)
            if not names.has(module, around, _name(target)):
                yield module, line, target


def unknown_arguments(source: Source) -> Iterator[tuple[str, int, str]]:
    """Yield module, line and name of each argument in a docstring that nothing takes."""
    for module, nodes in source.nodes.items():
        for node in nodes:
            if isinstance(node, (*_FUNCTION, ast.ClassDef)):
                described = set(_described(ast.get_docstring(node, clean=False) or ""))
                for name in sorted(described - _taken(node) if described else ()):
                    yield module, node.lineno, name


def _described(text: str) -> Iterator[str]:
    section = _ARGUMENTS.search(f"{text}\n")
    if section is not None:
        indent = len(section.group(1)) + 4
        for names in re.findall(rf"^ {{{indent}}}([*\w]+(?:, [*\w]+)*):", section.group(2), re.M):
            yield from (name.lstrip("*") for name in names.split(", "))


def _taken(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Return the parameters of a function, or what makes an instance of a class."""
    if isinstance(node, ast.ClassDef):
        names = set[str]()
        for one in node.body:
            if isinstance(one, _FUNCTION) and one.name in ("__init__", "__new__"):
                names |= _taken(one)
            elif isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                names.add(one.target.id)
        return names
    arguments = node.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return {one.arg for one in (*every, arguments.vararg, arguments.kwarg) if one is not None}


def _name(target: str) -> str:
    """Return the dotted name that a reference is of, without its title and marks."""
    titled = _TITLED.fullmatch(target)
    return (titled.group(1) if titled else target).removeprefix("~").removesuffix("()")


class _Names:
    """What the names of a checkout's modules and classes are."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._of_modules = {module: _bound(tree.body) for module, tree in source.trees.items()}

    def has(self, module: str, around: list[ast.ClassDef], name: str) -> bool:
        """Whether a name that stands in a module, inside of these classes, names anything."""
        if name.startswith("."):
            return self._in_modules(self._absolute(module, name))
        parts = name.split(".")
        return (
            any(self._in_class(module, one, parts) for one in around)
            or self._in_module(module, parts)
            or self._in_modules(name)
            or self._in_modules(f"{PACKAGE}.{name}")
            or _is_foreign(parts)
        )

    def _absolute(self, module: str, name: str) -> str:
        """Return a name that begins with dots as an import in a module reads it."""
        rest = name.lstrip(".")
        ups = len(name) - len(rest) - (module in self._source.packages)
        package = module.split(".")
        return ".".join([*package[: len(package) - ups], rest])

    def _in_modules(self, name: str) -> bool:
        parts = name.split(".")
        for count in range(len(parts), 0, -1):
            module = ".".join(parts[:count])
            if module in self._of_modules:
                return count == len(parts) or self._in_module(module, parts[count:])
        return False

    def _in_module(self, module: str, parts: list[str]) -> bool:
        first, *rest = parts
        if first not in (names := self._of_modules[module]):
            return False
        node = names[first]
        if not rest:
            return True
        if isinstance(node, ast.ClassDef):
            return self._in_class(module, node, rest)
        if isinstance(node, str):  # imported
            return self._in_modules(".".join([node, *rest])) or not node.startswith(PACKAGE)
        return False

    def _in_class(self, module: str, node: ast.ClassDef, parts: list[str]) -> bool:
        if len(parts) == 1 and (parts[0] in _bound(node.body) or parts[0] in _of_self(node)):
            return True
        if len(parts) > 1:
            inner = _bound(node.body).get(parts[0])
            return isinstance(inner, ast.ClassDef) and self._in_class(module, inner, parts[1:])
        return any(self._in_base(module, base, parts) for base in node.bases)

    def _in_base(self, module: str, base: ast.expr, parts: list[str]) -> bool:
        if isinstance(base, ast.Subscript):
            base = base.value
        name = ast.unparse(base)
        if not re.fullmatch(r"[\w.]+", name):
            return False
        return self._in_module(module, [*name.split("."), *parts])


def _bound(body: list[ast.stmt]) -> dict[str, ast.AST | str]:
    """Return what statements bind each name to: a class, a statement, or what was imported."""
    found: dict[str, ast.AST | str] = {}
    for node in body:
        if isinstance(node, (*_FUNCTION, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            found |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
        elif isinstance(node, ast.Import):
            for one in node.names:
                top = one.name.partition(".")[0]
                found |= {one.asname: one.name} if one.asname else {top: top}
        elif isinstance(node, (ast.If, ast.Try, ast.With, ast.For)):
            for part in ("body", "orelse", "finalbody"):
                found |= _bound(getattr(node, part, []))
            for handler in getattr(node, "handlers", []):
                found |= _bound(handler.body)
        else:
            found |= {one.id: node for one in ast.walk(node)
                      if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}  # fmt: skip
    return found


@cache
def _of_self(node: ast.ClassDef) -> frozenset[str]:
    """Return the names that methods of a class give to ``self``."""
    return frozenset(
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name) and one.value.id == "self"
    )  # fmt: skip


@cache
def _is_module(name: str) -> bool:
    return name in sys.stdlib_module_names or find_spec(name) is not None


def _is_foreign(parts: list[str]) -> bool:
    """Whether a name is a builtin, or begins with the module of another program."""
    return hasattr(builtins, parts[0]) or (parts[0] != PACKAGE and _is_module(parts[0]))
