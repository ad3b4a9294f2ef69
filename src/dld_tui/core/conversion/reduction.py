"""The search for the fewest nodes with which a check still fails."""

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
    """What a search for a smaller model found. Fields may be added, never renamed."""

    path: Path
    """The smallest model that was found."""
    nodes_before: int
    nodes_after: int
    nodes: list[str]
    """What is left, by the refs of the model that was reduced, those in bodies and functions after
    the steps to these. Foreign text."""
    tried: int
    """Models that were checked."""
    known: int
    """Others of which an earlier search that was stopped had the answer."""
    seconds: float
    said: str
    """The end of what the check printed of the smallest model. Foreign text."""


def smallest(count: int) -> Search:
    """Find few of so many nodes that still fail: no single one of them can be left out.

    Halves are tried first, from the end and then from the start of the order, as a check that looks
    at one place needs only what is near it; then delta debugging leaves out ever smaller parts.

    Args:
        count: How many there are, in an order in which each comes after those that it uses. All of
            them together fail.

    Yields:
        The places of nodes to try; wants to be sent whether they fail.

    Returns:
        The places of those that are left.
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
    """Return the nodes of the main graph in an order in which they can run; None for a cycle.

    Constants are not among them, where there are others: they come along with those who use them.
    """
    nodes = topological_order(document.main)
    return nodes and ([node for node in nodes if not is_constant(node)] or nodes)


def smallest_part(document: Document, main: Sequence[Node]) -> NodeSearch:
    """Find few nodes of a model that still fail, in bodies and local functions, too.

    The main graph comes first, with whole bodies; then all that is left, each node by itself.

    Args:
        document: The model, which fails.
        main: What :func:`main_nodes` says.

    Yields:
        Nodes to try, with the holders of bodies and calls of functions that they are in; wants to
        be sent whether they fail.

    Returns:
        Those that are left.
    """
    kept = yield from _over(main, lambda part: list(reached(document, part)))
    items = list(reached(document, kept))
    if len(items) == len(kept):
        return items
    left = yield from _over(items, lambda part: _alive(document, part))
    return _alive(document, left)


def _alive(document: Document, nodes: Sequence[Node]) -> list[Node]:
    """Leave out nodes of bodies whose holders are not there, and of functions without a call."""
    main = [node for node in nodes if node.scope is document.main]
    return list(reached(document, main, set(nodes)))


def _over(items: Sequence[Node], tried: Callable[[list[Node]], list[Node]]) -> NodeSearch:
    search = smallest(len(items))
    answer: bool | None = None
    while True:
        try:
            part = next(search) if answer is None else search.send(answer)
        except StopIteration as end:
            return [items[at] for at in end.value]
        nodes = tried([items[at] for at in part])
        answer = (yield nodes) if nodes else False
