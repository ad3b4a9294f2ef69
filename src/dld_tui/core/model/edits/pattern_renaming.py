"""Renaming many nodes and values at once, by a pattern, so that no two names clash."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import EditError, UsageError
from dld_tui.core.files.proto_fields import get_text
from dld_tui.core.model.document.edit_registry import edit, nodes_at, strings
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.transactions import SetText, Transaction
from dld_tui.core.model.edits.metadata import rename_in_profiles
from dld_tui.core.model.edits.renaming import is_taken, rename_everywhere
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

NODES, TENSORS, INPUTS, OUTPUTS = KINDS = ("nodes", "tensors", "inputs", "outputs")
"""What can be renamed: inputs and outputs are those of the main graph, tensors all other values."""
_FIELD = re.compile(r"\{(n|op)\}")
"""What stands in new names for the number of the name, from 0, and for the operator."""


@dataclass(frozen=True)
class NewNames:
    """What new names are made of: prefix, what the pattern leaves or makes of the name, suffix."""

    pattern: str = ""
    """A regular expression; names without a match stay. Empty matches every name, and keeps it."""
    replacement: str = ""
    r"""What each match becomes; ``\1`` and ``\g<name>`` are groups."""
    prefix: str = ""
    suffix: str = ""

    @cached_property
    def _expression(self) -> re.Pattern[str]:
        try:
            return re.compile(self.pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise UsageError(f"the pattern is wrong: {error}") from None

    def of(self, name: str, number: int, op_type: str) -> str | None:
        """Return the new name of one; None where the pattern does not match.

        Args:
            name: What it is called.
            number: How many names of its kind have been renamed before.
            op_type: The operator of the node, or of the one that makes the value.

        Raises:
            UsageError: The pattern or its replacement is wrong.
        """
        fields = {"n": str(number), "op": op_type}

        def filled(text: str) -> str:
            return _FIELD.sub(lambda match: fields[match[1]], text)

        matches = 0

        def made(match: re.Match[str]) -> str:
            nonlocal matches
            matches += 1
            # `.*` matches once more at the end, with nothing.
            return filled(match.expand(self.replacement)) if match[0] or matches == 1 else ""

        try:
            text = self._expression.sub(made, name) if self.pattern else name
        except (re.error, IndexError) as error:
            raise UsageError(f"the replacement is wrong: {error}") from None
        if self.pattern and not matches:
            return None
        return filled(self.prefix) + text + filled(self.suffix)


@dataclass(frozen=True)
class Renamed:
    """One name that changes. Untrusted text."""

    kind: str
    """One of `KINDS`."""
    scope: Scope
    """Where the node is, or the value is defined."""
    old: str
    new: str
    node: Node | None = None


@dataclass
class _Wanted:
    """Which names are renamed: of all nodes and values, or of some nodes and their outputs."""

    kinds: frozenset[str]
    nodes: frozenset[Node] | None

    def takes(self, node: Node | None) -> bool:
        return self.nodes is None or node in self.nodes


def renamed(
    document: Document,
    names: NewNames,
    kinds: Iterable[str],
    nodes: Iterable[Node] | None = None,
) -> Iterator[Renamed]:
    """Yield the names that change, in the order of the file. Nothing is changed or refused.

    Args:
        document: The model.
        names: What they become.
        kinds: Some of `KINDS`.
        nodes: Only these and their outputs; None for all.
    """
    wanted = _Wanted(frozenset(kinds), None if nodes is None else frozenset(nodes))
    numbers: Counter[str] = Counter()
    for scope in document.scopes():
        for one in _names_of(scope, wanted):
            if not one.old and not names.pattern:
                continue  # what has no name gets none by a prefix alone
            op_type = one.node.op_type if one.node is not None else ""
            new = names.of(one.old, numbers[one.kind], op_type)
            if new is not None:
                numbers[one.kind] += 1
            if new is not None and new != one.old:
                yield replace(one, new=new)


def _names_of(scope: Scope, wanted: _Wanted) -> Iterator[Renamed]:
    if NODES in wanted.kinds:
        for node in scope.nodes:
            if wanted.takes(node):
                yield Renamed(NODES, scope, node.name, "", node)
    interface = scope.kind == "graph"
    weights = {*scope.named("initializer"), *scope.named("sparse_initializer")}
    inputs = {n for n in scope.inputs if n not in weights} if interface else set()
    outputs = set(scope.outputs) if interface else set()
    seen: set[str] = {""}
    for name, maker in _values_of(scope):
        if name in seen or not wanted.takes(maker):
            continue
        seen.add(name)
        kind = INPUTS if name in inputs else OUTPUTS if name in outputs else TENSORS
        if kind in wanted.kinds:
            yield Renamed(kind, scope, name, "", maker)


def _values_of(scope: Scope) -> Iterator[tuple[str, Node | None]]:
    """Yield the values that a scope defines, with the nodes that make them."""
    for name in (*scope.inputs, *scope.named("initializer"), *scope.named("sparse_initializer")):
        yield name, None
    for node in scope.nodes:
        for name in node.outputs:
            yield name, node


@edit
def rename_matches(
    document: Document,
    transaction: Transaction,
    *,
    kinds: Sequence[str] = (NODES, TENSORS),
    pattern: str = "",
    replacement: str = "",
    prefix: str = "",
    suffix: str = "",
    nodes: list[JSON] | None = None,
) -> str:
    """Rename all nodes and values whose names match a pattern; refused where two names clash.

    Args:
        document: The model.
        transaction: The transaction to make the changes in.
        kinds: Some of ``nodes``, ``tensors``, ``inputs`` and ``outputs``.
        pattern: See :class:`NewNames`, as the next three.
        replacement: What each match becomes.
        prefix: What new names begin with.
        suffix: What they end with.
        nodes: ``[[SCOPE, NODE], …]``: only these nodes and their outputs.
    """
    chosen = strings(kinds, "kinds")
    for kind in chosen:
        if kind not in KINDS:
            raise EditError(f"kinds has {quoted(kind)}", hint=f"Known: {', '.join(KINDS)}")
    if not (pattern or prefix or suffix):
        raise EditError("a pattern, a prefix or a suffix is needed")
    names = NewNames(pattern, replacement, prefix, suffix)
    only = None if nodes is None else nodes_at(document, nodes)
    changes = [*renamed(document, names, chosen, only)]
    of_nodes = [one for one in changes if one.kind == NODES]
    of_values = [one for one in changes if one.kind != NODES]
    _refuse_nodes(of_nodes)
    _refuse_values(document, of_values)
    for one in of_nodes:
        assert one.node is not None
        old = get_text(one.node.proto, "name")
        transaction.do(
            SetText(one.scope, "node", one.node, one.node.proto, "name", old, one.new or None)
        )
    inputs = {one.old: one.new for one in of_values if one.kind == INPUTS}
    rename_in_profiles(document, transaction, inputs)
    _rename_values(transaction, of_values)
    counts = Counter(one.kind for one in changes)
    parts = [fmt.plural(counts[kind], kind[:-1]) for kind in KINDS if counts[kind]]
    return f"rename {', '.join(parts) or 'nothing'}"


def _refuse_nodes(changes: Sequence[Renamed]) -> None:
    """Refuse to give two nodes of a scope one name."""
    new_names = {one.node: one.new for one in changes}
    for scope in {one.scope: None for one in changes}:
        seen: dict[str, tuple[str, bool]] = {}
        for node in scope.nodes:
            old = node.name
            name, is_new = new_names.get(node, old), node in new_names
            if name in seen and name and (is_new or seen[name][1]):
                _refuse(scope, "nodes", seen[name][0], old, name)
            seen[name] = old, is_new


def _refuse_values(document: Document, changes: Sequence[Renamed]) -> None:
    """Refuse to give two values one name where both mean something, or a value none."""
    new_names: dict[Scope, dict[str, str]] = {}
    for one in changes:
        if not one.new:
            raise EditError(f"the value {quoted(one.old)} would have no name")
        new_names.setdefault(one.scope, {})[one.old] = one.new
    if new_names:
        for root in (document.main, *document.functions):
            _refuse_in(root, new_names, {})


def _refuse_in(
    scope: Scope, new_names: Mapping[Scope, Mapping[str, str]], outer: Mapping[str, str]
) -> None:
    """Compare the names of a scope with each other and with those around it.

    Args:
        scope: The scope.
        new_names: New names by old ones.
        outer: The old names of values around it by their new names.
    """
    own = new_names.get(scope, {})
    names: dict[str, str] = dict(outer)
    sources = {name for name in (*scope.links.consumers, *scope.outputs) if name}
    defined = dict.fromkeys(name for name, _ in _values_of(scope) if name)
    unmade = (name for name in sources if name not in defined and scope.resolve(name) is None)
    for old in (*unmade, *defined):
        new = own.get(old, old)
        other = names.get(new, old)
        if other != old:
            _refuse(scope, "values", other, old, new)
        names[new] = old
    for child in scope.children():
        _refuse_in(child, new_names, names)


def _refuse(scope: Scope, what: str, first: str, second: str, name: str) -> None:
    raise EditError(
        f"the {what} {quoted(first)} and {quoted(second)} would both be called {quoted(name)}",
        where=" › ".join(scope.path) or "main",
        hint="Number them with {n}, or choose another pattern",
    )


def _rename_values(transaction: Transaction, changes: Sequence[Renamed]) -> None:
    olds = {one.old for one in changes}
    news = {one.new for one in changes}
    late: list[tuple[Scope, str, str]] = []
    for one in changes:
        name = one.new
        if name in olds:  # two names may be swapped: it is free when all have left theirs
            name = unused_name(f"{name}_new", partial(_is_any, olds, news, one.scope))
            news.add(name)
            late.append((one.scope, name, one.new))
        rename_everywhere(transaction, one.scope, one.old, name)
    for scope, name, new in late:
        rename_everywhere(transaction, scope, name, new)


def _is_any(olds: set[str], news: set[str], scope: Scope, name: str) -> bool:
    return name in olds or name in news or is_taken(scope, name)
