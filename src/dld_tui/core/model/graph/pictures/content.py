"""The content of a picture: a whole scope, its folds, or the surroundings of a node."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.metadata import position_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.graph.build import ScopeGraph
from dld_tui.core.model.graph.folding import (
    Fold,
    Overview,
    OverviewRow,
    Subgraph,
    neighbourhood,
    part_of,
)
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.operators.categories import colour_class_of
from dld_tui.core.model.tensors.value_types import with_aliases
from dld_tui.core.text import clip, visible

MOST_VERTICES = 20_000
"""Boxes of the largest picture."""
LONGEST_TOOLTIP = 400
_TOOLTIP_LINES = 16
_OPERATORS_SHOWN = 3
_UNKNOWN = re.compile(r"\bunk__\d+")
"""What shape inference calls dimensions that it knows nothing of."""
_DRAWN_NAMES = (Kind.NODE, Kind.CONTROL_FLOW, Kind.CALL)


TypeOf = Callable[[str], str]
"""Called with the name of a tensor; returns its type, or nothing."""


@dataclass
class Content:
    """A graph to draw, with additional texts of its boxes."""

    graph: Graph
    title: str = ""
    """Fit to be shown, like the other texts here."""
    nodes: int = 0
    """The nodes that it stands for."""
    types: TypeOf | None = None
    """Tells the types of tensors that have no label in the graph."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Short names of long dimensions: untrusted text."""
    cuts: Sequence[tuple[int, int]] = ()
    """How many links of each vertex are not drawn, above and below; empty for none."""
    notes: dict[int, list[str]] = field(default_factory=dict)
    """Lines below the label of a vertex, in place of its name."""
    centre: int | None = None
    """The vertex that the others are drawn around."""
    moves: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Cells to the right and rows down by which boxes were moved."""

    colours: dict[int, str] = field(default_factory=dict)
    """Colour classes of vertices that say something else than the kind of work."""
    net_labels: dict[int, str] = field(default_factory=dict)
    """Labels of tensors, by net, in place of those in the graph."""
    tips: dict[int, list[str]] = field(default_factory=dict)
    """Lines of tooltips, behind those that stand in the box."""
    heats: dict[int, float] = field(default_factory=dict)
    """The share that vertices have of the largest value, which HTML shows as a colour."""
    noun: str = "node"
    """What it stands for."""

    def colour(self, vertex: int) -> str:
        """Return the colour class of a vertex: an operator's, ``io`` or ``group``."""
        if vertex in self.colours:
            return self.colours[vertex]
        kind = self.graph.kinds[vertex]
        if kind == Kind.GROUP:
            return "group"
        if kind not in _DRAWN_NAMES:
            return "io"
        return colour_class_of(self.graph.classes[vertex], self.graph.labels[vertex])

    def lines(self, vertex: int) -> list[str]:
        """Return the lines below the label of a vertex."""
        if vertex in self.notes:
            return self.notes[vertex]
        name = visible(self.graph.names[vertex])
        return [name] if name and self.graph.kinds[vertex] in _DRAWN_NAMES else []

    def type_of(self, net: int) -> str:
        """Return the type of a tensor, fit to be shown and short; empty when it is not known."""
        if net in self.net_labels:
            return self.net_labels[net]
        tensor = self.graph.nets[net]
        label = tensor.label or (self.types(tensor.name) if self.types else "")
        return short_type(with_aliases(label, self.aliases))

    def tooltip(self, vertex: int) -> str:
        """Return everything that is known of a vertex, on several lines."""
        graph = self.graph
        lines = [visible(graph.labels[vertex]), *self.lines(vertex), *self.tips.get(vertex, ())]
        for net in graph.outputs[vertex]:
            lines.append(f"→ {visible(graph.nets[net].name)}  {self.type_of(net)}".rstrip())
        return "\n".join(
            clip(line, LONGEST_TOOLTIP, keep="middle") for line in lines[:_TOOLTIP_LINES]
        )


def whole_content(drawn: ScopeGraph, title: str = "") -> Content:
    """Return every vertex.

    Raises:
        UsageError: There are too many.
    """
    content = graph_content(drawn.graph, title)
    for vertex, subject in enumerate(drawn.subjects):
        place = position_of(subject) if isinstance(subject, Node) else None
        if place is not None:
            content.moves[vertex] = place
    return content


def graph_content(graph: Graph, title: str = "") -> Content:
    """Return the content with every vertex of a graph.

    Raises:
        UsageError: There are too many.
    """
    if len(graph) > MOST_VERTICES:
        raise UsageError(
            f"{len(graph):,} boxes are more than a picture can hold",
            hint="Use --folded, or --node to draw the surroundings of a node",
        )
    return Content(graph, visible(title), _count(graph))


def node_content(drawn: ScopeGraph, node: Node, hops: int, title: str = "") -> Content:
    """Return the content with the vertices at most so many links away from a node.

    Raises:
        UsageError: The node is not drawn, as constants are not.
    """
    vertex = drawn.vertex(node)
    if vertex is None:
        raise UsageError("the node computes a constant, which is not drawn", hint="Add --constants")
    return part_content(neighbourhood(drawn.graph, vertex, hops), title, vertex)


def part_content(part: Subgraph, title: str = "", centre: int | None = None) -> Content:
    """Return a part of a graph, with counters where links are cut.

    Args:
        title: What the picture is called.
        centre: The vertex of the whole graph that stands out.
    """
    cuts = list(zip(part.cut_above, part.cut_below, strict=True))
    content = Content(part.graph, visible(title), _count(part.graph), cuts=cuts)
    content.centre = part.vertices.index(centre) if centre in part.vertices else None
    return content


def folded_content(overview: Overview, title: str = "") -> Content:
    """Return the content of a folded graph, with one box for each fold.

    Raises:
        UsageError: It is too much, because folds are open.
    """
    shown = [at for at, row in enumerate(overview.rows) if not row.is_open]
    if len(shown) > MOST_VERTICES:
        raise UsageError(
            f"{len(shown):,} boxes are more than a picture can hold",
            hint="Use --node to draw the surroundings of a node",
        )
    part = part_of(overview.seen()[0], shown)
    content = Content(part.graph, visible(title), _count(overview.graph))
    for vertex, at in enumerate(part.vertices):
        row = overview.rows[at]
        if row.fold is not None:
            content.graph.labels[vertex] = fold_label(row)
            content.graph.names[vertex] = row.fold.title
            content.notes[vertex] = fold_notes(row.fold)
    return content


def fold_label(row: OverviewRow) -> str:
    """Return the label of a closed fold. Untrusted text."""
    fold = row.fold
    assert fold is not None  # the callers have looked
    if fold.title:
        return fold.label
    return "repeated block" if fold.count > 1 else f"block {row.time}" if row.time else "block"


def fold_notes(fold: Fold) -> list[str]:
    """Return how much is in a fold, and its commonest operators."""
    size = fmt.plural(len(fold) // fold.count, "node")
    counts = fold.operators.most_common(_OPERATORS_SHOWN)
    return [
        f"{fold.count} times {size}" if fold.count > 1 else size,
        ", ".join(f"{count} {visible(name)}" for name, count in counts),
    ]


def short_type(label: str) -> str:
    """Return the type of a tensor, fit to be shown and short."""
    return visible(_UNKNOWN.sub("?", label))


def types_of(scope: Scope) -> TypeOf:
    """Return a function that returns the types of a scope's values."""

    def type_of(name: str) -> str:
        known = scope.value_type(name)
        return known.short if known is not None else ""

    return type_of


def _count(graph: Graph) -> int:
    return sum(kind in _DRAWN_NAMES for kind in graph.kinds)
