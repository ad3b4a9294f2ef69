"""Finds the fewest nodes with which a check still fails."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.document.parts.cutting import reached
from dld_tui.core.document.parts.extraction import is_constant
from dld_tui.core.document.traversal import topological_order

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node

Search: TypeAlias = "Generator[tuple[int, ...], bool, tuple[int, ...]]"
NodeSearch: TypeAlias = "Generator[list[Node], bool, list[Node]]"


@dataclass(frozen=True)
class Reduction:
    """The result of a search for a smaller model. Fields may be added, never renamed."""

    path: Path
    """The smallest model that was found."""
    nodes_before: int
    nodes_after: int
    nodes: list[str]
    """The remaining nodes, by their refs in the original model; refs of nodes in bodies and
    functions follow the steps to these. Foreign text."""
    tried: int
    """Models that were checked."""
    known: int
    """Further models whose answer was known from an earlier search that was stopped."""
    seconds: float
    said: str
    """The end of what the check printed of the smallest model. Foreign text."""


def minimize(count: int) -> Search:
    """Find a minimal set of nodes that still fails: no single one of them can be left out.

    Halves are tried first, from the end and then from the start of the order, since a check of one
    place needs only the nodes near it; then delta debugging leaves out ever smaller parts.

    Args:
        count: How many nodes there are, in topological order. All of them together fail.

    Yields:
        The places of nodes to try; expects to be sent whether they fail.

    Returns:
        The places of the remaining nodes.
    """
    kept = tuple(range(count))
    for from_start in (True, False):
        low, high = 0, len(kept)
        while high - low > 1:
            middle = (low + high) // 2
            part = kept[:middle] if from_start else kept[len(kept) - middle :]
            if (yield part):
                high = middle
            else:
                low = middle
        kept = kept[:high] if from_start else kept[len(kept) - high :]
    size = len(kept) // 2
    while size and len(kept) > 1:
        before = len(kept)
        end = len(kept)
        while end > 0 and len(kept) > 1:
            start = max(0, end - size)
            part = kept[:start] + kept[end:]
            if part and (yield part):
                kept = part
            end = start
        if size > 1:
            size //= 2
        elif len(kept) == before:
            break
    return kept


def main_nodes(document: Document) -> list[Node] | None:
    """Return the nodes of the main graph in topological order; None for a cycle.

    Constants are left out unless there is nothing else: they accompany the nodes that use them.
    """
    nodes = topological_order(document.main)
    return nodes and ([node for node in nodes if not is_constant(node)] or nodes)


def minimize_nodes(document: Document, main: Sequence[Node]) -> NodeSearch:
    """Find a minimal set of nodes of a model that still fails, also in bodies and local functions.

    The main graph comes first, with whole bodies; then all remaining nodes, each by itself.

    Args:
        document: The model, which fails.
        main: The result of :func:`main_nodes`.

    Yields:
        Nodes to try, with the nodes whose bodies or functions they are in; expects to be sent
        whether they fail.

    Returns:
        The remaining nodes.
    """
    kept = yield from _minimize_items(main, lambda part: list(reached(document, part)))
    items = list(reached(document, kept))
    if len(items) == len(kept):
        return items
    left = yield from _minimize_items(items, lambda part: _with_reachable_owners(document, part))
    return _with_reachable_owners(document, left)


def _with_reachable_owners(document: Document, nodes: Sequence[Node]) -> list[Node]:
    """Drop nodes of bodies whose owners are gone, and nodes of functions without a call."""
    main = [node for node in nodes if node.scope is document.main]
    return list(reached(document, main, set(nodes)))


def _minimize_items(items: Sequence[Node], tried: Callable[[list[Node]], list[Node]]) -> NodeSearch:
    search = minimize(len(items))
    answer: bool | None = None
    while True:
        try:
            part = next(search) if answer is None else search.send(answer)
        except StopIteration as end:
            return [items[at] for at in end.value]
        nodes = tried([items[at] for at in part])
        answer = (yield nodes) if nodes else False
