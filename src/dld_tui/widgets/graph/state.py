"""The model of the graph pane: one scope, its folds and views, and figures of its nodes.

All of it is asked for by ranges of rows, so that a fold answers as quickly as a node.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from time import sleep
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.checks.findings import Finding
from dld_tui.core.model.document.metadata import position_of, precision_of
from dld_tui.core.model.graph.build import ScopeGraph, Weights, graph_of, weight_text, work_text
from dld_tui.core.model.graph.folding import (
    Arrangement,
    Fold,
    Overview,
    OverviewRow,
    Subgraph,
    between,
    neighbourhood,
    part_of,
)
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.layout import Link
from dld_tui.core.model.tensors.value_types import aliases_in, with_aliases
from dld_tui.core.text import clip, visible
from dld_tui.core.text.names import SharedEnds, shared_ends
from dld_tui.core.types import precision_style
from dld_tui.widgets.explorer.rows import short_dtype
from dld_tui.widgets.lists.styled import Piece, operator_style
from dld_tui.widgets.parameters.descriptions import shown_type
from dld_tui.widgets.parameters.terminals import Terminal, terminal_name
from dld_tui.widgets.shell import glyphs

if TYPE_CHECKING:
    from dld_tui.core.model.document import Node, Scope
    from dld_tui.core.model.graph.pictures.content import Content


CANVAS_BOXES = 1_500
"""Boxes of the largest canvas; more are to be folded first."""
OPENS_ON_CANVAS = 24
"""Vertices up to which a graph opens on the canvas."""


_NEAREST = 8
"""Half of the vertices around one in a small pane, about."""
_MOST_NAMES = 5_000
"""Vertices of the largest graph whose names are compared."""
_NODES = (Kind.NODE, Kind.CONTROL_FLOW, Kind.CALL)


class GraphView(Enum):
    """How the graph is drawn; the value is the title."""

    FOLDED = "overview"
    RAIL = "rail"
    CANVAS = "canvas"
    FOCUS = "focus"


class ViewedGraph:
    """A graph, what of it is open, and the view that it is in; vertices stand for subjects.

    Args:
        graph: The graph.
        subjects: What each vertex stands for.
        arranged: Its order, rails and folds, where a child process has worked them out.
    """

    noun = "node"
    """What most vertices stand for."""
    memory_name = "weights"
    """The overlay that colours by bytes."""

    def __init__(
        self, graph: Graph, subjects: Sequence[Hashable], arranged: Arrangement | None = None
    ) -> None:
        self.graph = graph
        self.subjects = subjects
        self.overview = Overview(graph, arranged)
        self.view = GraphView.CANVAS if len(graph) <= OPENS_ON_CANVAS else GraphView.FOLDED
        self.hops = 2
        self.other_end: int | None = None
        """The vertex up to which the focus view goes; None for a neighbourhood."""
        self.weights: Weights | None = None
        """The bytes of weights that are used, once they are known."""
        self.memory_heat: object = None
        """The overlay of these bytes, which is made once: there may be 50,000."""
        self._entered_rail_at: int | None = None
        """Where the cursor was when the rail view was entered."""

    @property
    def place(self) -> str:
        """Where in a model it is, for the title; empty at the top. Untrusted text."""
        return ""

    @property
    def steps(self) -> tuple[str, ...]:
        """Where in a model it is, one step each; nothing at the top. Untrusted text."""
        return ()

    def named_type(self, name: str) -> str:
        """Return the type of a tensor that has no label in the graph; empty when not known."""
        return ""

    def content(self, title: str) -> Content:
        """Return all of it as the content of a picture.

        Raises:
            UsageError: It has too many vertices.
        """
        from dld_tui.core.model.graph.pictures.content import graph_content

        return graph_content(self.graph, title)

    def is_same(self, other: ViewedGraph) -> bool:
        """Return whether another graph is of the same thing, before or after an edit."""
        return other is self

    def holds(self, subject: Hashable) -> bool:
        """Return whether a node or layer belongs to what the graph is of."""
        return True

    @cached_property
    def count(self) -> int:
        """How many nodes or layers are drawn."""
        return sum(map(self.graph.kinds.count, _NODES))

    @property
    def total(self) -> int:
        """How many there are, also of constants that are not drawn."""
        return self.count

    @cached_property
    def name_ends(self) -> SharedEnds:
        """What the names of all nodes or layers share; nothing in a large graph."""
        if len(self.graph) > _MOST_NAMES:
            return SharedEnds()
        named = zip(self.graph.names, self.graph.kinds, strict=True)
        return shared_ends(name for name, kind in named if kind in _NODES)

    @property
    def aliases(self) -> Mapping[str, str]:
        """Short names of long dimensions. Untrusted text."""
        return {}

    def subject(self, vertex: int) -> Hashable:
        """Return what a vertex stands for."""
        return self.subjects[vertex]

    def node_at(self, vertex: int) -> Hashable | None:
        """Return the node or layer of a vertex; None for inputs, outputs and outer values."""
        raise NotImplementedError

    def vertex(self, subject: Hashable) -> int | None:
        """Return the vertex of a subject; None when it is not drawn."""
        raise NotImplementedError

    def vertex_now(self, subject: Hashable) -> int | None:
        """Return the vertex of what a vertex of an older graph of the same thing stood for."""
        return self.vertex(subject)

    def same_end(self, old: ViewedGraph, vertex: int) -> int | None:
        """Return the input or output at the place of one of an older graph, as names change."""
        kind = old.graph.kinds[vertex]
        before, now = (
            [at for at, other in enumerate(model.graph.kinds) if other is kind]
            for model in (old, self)
        )
        is_end = kind in (Kind.INPUT, Kind.OUTPUT) and len(before) == len(now)
        return now[before.index(vertex)] if is_end else None

    def style(self, vertex: int) -> str:
        """Return the style class of a vertex: its kind of work."""
        raise NotImplementedError

    def type_of(self, vertex: int) -> str:
        """Return the type of what a vertex makes first; empty when it is not known."""
        raise NotImplementedError

    def work(self, vertex: int) -> str:
        """Return what a vertex does, in at most 24 characters; mostly empty."""
        return ""

    def weight(self, vertex: int) -> str:
        """Return the type of the weight of a vertex; empty without one. Untrusted text."""
        return ""

    def port(self, vertex: int, tensor: str) -> str:
        """Return what the operator calls a tensor that it takes; empty when not known."""
        return ""

    def badge(self, vertex: int) -> Piece:
        """Return the precision that is set, at most four cells; empty without one."""
        return "", ""

    def precision(self, vertex: int) -> Piece | None:
        """Return the precision that a vertex computes in; None when it is not known."""
        raise NotImplementedError

    def shift(self, vertex: int) -> tuple[int, int]:
        """Return the cells to the right and rows down by which a box was moved."""
        return 0, 0

    def levels(self, findings: Iterable[Any]) -> Iterable[tuple[str, int]]:
        """Return (level, vertex) of findings; those of nothing that is drawn are left out."""
        raise NotImplementedError

    def row_times(self, times: Mapping[Any, float]) -> list[float]:
        """Return milliseconds by row, of times by subject."""
        raise NotImplementedError

    def memory(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return bytes by row, and what each adds to a sum; None when they are not known."""
        return None

    def span(self, box: int | Fold) -> tuple[int, int]:
        """Return the rows, of the order of all vertices, of a vertex or fold."""
        if isinstance(box, Fold):
            return box.start, box.end
        row = self.overview.rails.rows[box]
        return row, row + 1

    def prepare(self) -> None:
        """Work out now what the views ask for first; on a thread, for large graphs."""
        self.vertex("")
        self.overview.seen()

    def complete(self) -> None:
        """Work out now what the other views ask for; on a thread, once the first one is seen."""
        graph = self.graph
        for ask in (
            lambda: graph.inputs,
            lambda: graph.outputs,
            lambda: graph.sources,
            lambda: graph.targets,
            self.overview.complete,
        ):
            ask()
            sleep(0.001)  # this thread holds the interpreter otherwise

    @property
    def rows(self) -> Sequence[OverviewRow]:
        """The rows of the list views."""
        return self.overview.rows

    def set_view(self, view: GraphView, vertex: int | None = None) -> None:
        """Switch to another view; the rail view has no folds.

        Args:
            view: The view.
            vertex: Where the cursor is: it is not hidden again when it has moved meanwhile.
        """
        if view is GraphView.RAIL and not self.overview.is_flat:
            self._entered_rail_at = vertex
        was_flat = self.overview.is_flat
        self.overview.is_flat = view is GraphView.RAIL
        if was_flat and view is not GraphView.RAIL and vertex not in (None, self._entered_rail_at):
            self.overview.reveal(vertex)
        self.view = view

    def carry_over(self, old: ViewedGraph) -> None:
        """Take over how another model of the same scope was shown, after an edit."""
        self.view, self.hops = old.view, old.hops
        if old.other_end is not None:
            self.other_end = self.vertex_now(old.subject(old.other_end))
        is_flat, old.overview.is_flat = old.overview.is_flat, False
        opened = {key for row in old.rows if row.is_open and row.fold
                  for key in old._fold_keys(row.fold)}  # fmt: skip
        closed = {key for row in old.rows if row.fold and not row.is_open
                  for key in old._fold_keys(row.fold)}  # fmt: skip
        waiting = list(self.overview.folds)
        while waiting:
            fold = waiting.pop()
            keys = self._fold_keys(fold)
            if any(key in opened and key not in closed for key in keys):
                self.overview.set_open(fold)
                waiting += fold.children
            elif not closed.isdisjoint(keys):
                self.overview.set_open(fold, False)
        self.overview.is_flat = old.overview.is_flat = is_flat

    def same_fold(self, old: ViewedGraph, fold: Fold) -> Fold | None:
        """Return the fold that is seen where an older graph had one."""
        keys = set(old._fold_keys(fold))
        seen = (row.fold for row in self.rows if row.fold is not None)
        return next((own for own in seen if not keys.isdisjoint(self._fold_keys(own))), None)

    def _fold_keys(self, fold: Fold) -> tuple[object, ...]:
        """Return what a fold is known by when the graph is made again: its ends and its title."""
        kind = fold.count > 1
        ends = (self.subject(fold.vertices[0]), self.subject(fold.vertices[-1]))
        return (kind, ends), (kind, fold.title, ends[0]), (kind, fold.title, "", ends[1])

    def canvas_part(self) -> tuple[Subgraph, list[int | Fold]]:
        """Return what the canvas shows, and what each box of it is: all but heads of open folds."""
        part = part_of(
            self.overview.seen()[0], (n for n, r in enumerate(self.rows) if not r.is_open)
        )
        rows = [self.rows[at] for at in part.vertices]
        order = self.overview.rails.order
        for at, row in enumerate(rows):
            if row.fold is not None:
                times = f"×{row.fold.count:,} " if row.fold.count > 1 else ""
                part.graph.labels[at] = times + fold_title(row.fold)
                part.graph.names[at] = fold_summary(row.fold, 3)
        return part, [row.fold if row.fold is not None else order[row.start] for row in rows]

    def focus(self, vertex: int) -> Subgraph:
        """Return what the focus view shows around a vertex."""
        if self.other_end is not None:
            return between(self.graph, vertex, self.other_end)
        return neighbourhood(self.graph, vertex, self.hops)

    def nearest(self, vertex: int) -> Subgraph:
        """Return a vertex with what it takes and what takes it, as far as a small pane has room."""
        return neighbourhood(self.graph, vertex, 1, _NEAREST)


def fold_title(fold: Fold) -> str:
    """Return what a fold is called: its scope, or that it is a block."""
    return visible(fold.label)


def fold_summary(fold: Fold, most: int = 6) -> str:
    """Return the commonest operators of a fold, e.g. ``Conv×10, Relu×9``."""
    parts = []
    for name, count in fold.operators.most_common(most):
        parts.append(f"{visible(name)}×{count:,}" if count > 1 else visible(name))
    return ", ".join(parts)


LEVELS = ("error", "warning")
"""Findings that are shown, the worst first."""
LEVEL_STYLES = {"error": "bad", "warning": "warn"}
_LIGHT_PERCENT = 0.01
"""A node with less than this part of all weights, as that of a shape, does not say so."""


class GraphNotes:
    """Notes on the rows of one graph."""

    def __init__(self, model: ViewedGraph) -> None:
        self.model = model
        self.has_precisions = False
        """Whether to leave room for the precision that layers are set to."""
        self._levels: dict[str, list[int]] = {}
        self._marked: list[int] = []

    def set_marks(self, marks: Iterable[Hashable]) -> None:
        """Take note of what is marked: subjects, and vertices that are no nodes."""
        rows = self.model.overview.rails.rows
        vertices = [self._vertex(mark) for mark in marks]
        self._marked = sorted(rows[v] for v in vertices if v is not None and v < len(rows))

    def _vertex(self, mark: Hashable) -> int | None:
        return mark if isinstance(mark, int) else self.model.vertex(mark)

    def set_findings(self, findings: Iterable[Any]) -> None:
        """Take note of what is wrong; the graph knows which vertex a finding is of."""
        rows = self.model.overview.rails.rows
        vertices: dict[str, set[int]] = {level: set() for level in LEVELS}
        for level, vertex in self.model.levels(findings):
            if level in vertices:
                vertices[level].add(rows[vertex])
        self._levels = {level: sorted(places) for level, places in vertices.items() if places}

    def marked(self, start: int, end: int) -> int:
        """Return how many of some rows are marked."""
        return _count(self._marked, start, end)

    @property
    def marked_vertices(self) -> list[int]:
        """The vertices that are marked, from top to bottom."""
        order = self.model.overview.rails.order
        return [order[row] for row in self._marked]

    @property
    def has_findings(self) -> bool:
        """Whether to leave room for the glyphs of findings."""
        return bool(self._levels)

    def findings(self, level: str, start: int, end: int) -> int:
        """Return how many of some rows have a finding of a level."""
        return _count(self._levels.get(level, []), start, end)

    def level(self, start: int, end: int) -> str:
        """Return the worst level of some rows; empty when nothing was found."""
        return next((level for level in LEVELS if self.findings(level, start, end)), "")

    def finding_badge(self, start: int, end: int) -> Piece:
        """Return the glyph of the worst finding of some rows, one cell."""
        level = self.level(start, end)
        shown = glyphs.current()
        glyph = {"error": shown.error, "warning": shown.warning}.get(level, " ")
        return glyph, LEVEL_STYLES.get(level, "")

    def weight(self, start: int, end: int) -> tuple[str, str]:
        """Return the size of the weights of some rows and their share; empty without any."""
        from dld_tui.core.statistics import share_percent  # not for the first rows

        weights = self.model.weights
        if weights is None:
            return "", ""
        size = weights.between(start, end) if end - start > 1 else weights.used[start]
        share = share_percent(size, weights.total) or 0.0
        if not size or (end - start == 1 and share < _LIGHT_PERCENT):
            return "", ""
        return fmt.size(size), f"{share:.0f} %" if share >= 0.5 else "<1 %"


def _count(places: list[int], start: int, end: int) -> int:
    return bisect_left(places, end) - bisect_left(places, start)


class GraphModel(ViewedGraph):
    """The graph of a scope; vertices stand for nodes, and for names of values.

    Args:
        scope: What to show.
        constants: Whether constants are drawn, too.
        exceptions: Constants that are drawn where the others are not, or the other way round.
        drawn: Its graph, where it was made before.
        arrange: Works out order, rails and folds elsewhere; None from it: they are worked out here.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        constants: bool = False,
        exceptions: frozenset[Node] = frozenset(),
        drawn: ScopeGraph | None = None,
        arrange: Callable[[Graph], Arrangement | None] = lambda graph: None,
    ) -> None:
        self.scope = scope
        self.constants, self.exceptions = constants, exceptions
        self._total = len(scope.nodes)
        self.drawn: ScopeGraph = drawn or graph_of(
            scope, constants=constants, exceptions=exceptions
        )
        graph = self.drawn.graph
        super().__init__(graph, self.drawn.subjects, arrange(graph))

    @property
    def place(self) -> str:
        """The title of a subgraph or function."""
        return "" if self.scope.kind == "graph" else self.scope.title

    @property
    def steps(self) -> tuple[str, ...]:
        """The path of a subgraph or function."""
        return tuple(self.scope.path)

    @property
    def total(self) -> int:
        """How many nodes the scope had when it was drawn, constants too."""
        return self._total

    def named_type(self, name: str) -> str:
        """Return the type of a value."""
        from dld_tui.core.model.graph.pictures.content import types_of

        return types_of(self.scope)(name)

    def content(self, title: str) -> Content:
        """Return all of it as the content of a picture, boxes where they were moved to."""
        from dld_tui.core.model.graph.pictures.content import whole_content

        return whole_content(self.drawn, title)

    def is_same(self, other: ViewedGraph) -> bool:
        """Return whether another graph is of the same scope."""
        return isinstance(other, GraphModel) and other.scope is self.scope

    def holds(self, subject: Hashable) -> bool:
        """Return whether a node is one of the scope."""
        from dld_tui.core.model.document import Node

        return isinstance(subject, Node) and subject.scope is self.scope

    def subject(self, vertex: int) -> Node | str:
        """Return the node, or the name of the value, that a vertex stands for."""
        return self.drawn.subjects[vertex]

    def node_at(self, vertex: int) -> Node | None:
        """Return the node of a vertex."""
        from dld_tui.core.model.document import Node

        subject = self.drawn.subjects[vertex]
        return subject if isinstance(subject, Node) else None

    def vertex(self, subject: Hashable) -> int | None:
        """Return the vertex of a node of the scope, or of a value."""
        from dld_tui.core.model.document import Node

        if isinstance(subject, Node) and subject.scope is not self.scope:
            return None
        return self.drawn.vertex(subject) if isinstance(subject, Node | str) else None

    def vertex_now(self, subject: Hashable) -> int | None:
        """Return the vertex of what a vertex of an older graph of the scope stood for."""
        from dld_tui.core.model.document import Node

        return self.vertex_of(subject) if isinstance(subject, Node) else self.vertex(subject)

    def vertex_of(self, node: Node) -> int | None:
        """Return the vertex of a node, or of the first user of one that is not drawn."""
        seen: set[Node] = set()
        waiting = [node]
        while waiting:
            node = waiting.pop(0)
            vertex = self.drawn.vertex(node)
            if vertex is not None:
                return vertex
            seen.add(node)
            users = (use.node for name in node.outputs if name for use in self.scope.users(name))
            waiting += [user for user in users if user not in seen and user.scope is self.scope]
        return None

    def style(self, vertex: int) -> str:
        """Return the style class of a vertex: its kind of work."""
        node = self.node_at(vertex)
        return "io" if node is None else operator_style(node.op_type, node.domain)

    def type_of(self, vertex: int) -> str:
        """Return the type of what a vertex makes first; empty when it is not known."""
        subject = self.subject(vertex)
        name = subject if isinstance(subject, str) else next(filter(None, subject.outputs), "")
        return with_aliases(shown_type(self.scope, name), self.aliases) if name else ""

    @cached_property
    def aliases(self) -> dict[str, str]:
        """Short names of the long dimensions of inputs and outputs. Untrusted text."""
        return aliases_in(self.scope)

    def work(self, vertex: int) -> str:
        """Return the window, axis or permutation of a node; mostly empty."""
        node = self.node_at(vertex)
        return work_text(node) if node is not None else ""

    def weight(self, vertex: int) -> str:
        """Return the type of the weight of a node, and what it is stored as; empty without one."""
        node = self.node_at(vertex)
        if node is None:
            return ""
        return visible(weight_text(node, lambda other: self.drawn.vertex(other) is not None))

    def port(self, vertex: int, tensor: str) -> str:
        """Return what the operator calls a tensor that it takes; empty for values of bodies."""
        node = self.node_at(vertex)
        if node is None or tensor not in node.inputs:
            return ""
        return terminal_name(node, "input", node.inputs.index(tensor))

    def terminal(self, link: Link) -> Terminal | None:
        """Return the input, or the output of the graph, that a link leads to.

        Returns:
            None where a body of the node takes the tensor.
        """
        from dld_tui.core.model.document import Node

        value, taker = self.graph.nets[link.net].name, self.drawn.subjects[link.target]
        if not isinstance(taker, Node):
            return Terminal(self.scope, "output", value)
        if value not in taker.inputs:
            return None
        return Terminal(self.scope, "input", value, taker, taker.inputs.index(value))

    def boundary(self, vertex: int) -> Terminal | None:
        """Return the input or output of the graph that a vertex stands for."""
        side = {Kind.INPUT: "input", Kind.OUTPUT: "output"}.get(self.graph.kinds[vertex])
        subject = self.drawn.subjects[vertex]
        if side is None or not isinstance(subject, str):
            return None
        return Terminal(self.scope, side, subject)

    def badge(self, vertex: int) -> Piece:
        """Return the precision that a layer is set to, at most four cells; empty without one."""
        node = self.node_at(vertex)
        precision = precision_of(node) if node is not None else ""
        return clip(visible(precision), 4), precision_style(precision) if precision else ""

    def precision(self, vertex: int) -> Piece | None:
        """Return the precision that a layer is set to, else the type that it makes."""
        node = self.node_at(vertex)
        if node is None:
            return None
        chosen = precision_of(node)
        if chosen:
            return visible(chosen), precision_style(chosen)
        name = next(filter(None, node.outputs), "")
        known = self.scope.value_type(name) if name else None
        if known is None:
            return None
        return visible(short_dtype(known)), precision_style(known.dtype)

    def shift(self, vertex: int) -> tuple[int, int]:
        """Return the cells to the right and rows down by which a box was moved."""
        node = self.node_at(vertex)
        place = position_of(node) if node is not None else None
        return place if place is not None else (0, 0)

    def levels(self, findings: Iterable[Finding]) -> Iterator[tuple[str, int]]:
        """Yield (level, vertex); a finding in a body is one of the node that has it."""
        for finding in findings:
            node = finding.node or (finding.scope.owner if finding.scope is not None else None)
            holder = self._holder(node)
            vertex = self.drawn.vertex(holder) if holder is not None else None
            if vertex is not None:
                yield finding.level, vertex

    def _holder(self, node: Node | None) -> Node | None:
        """Return the node of the scope that is, or holds, a node."""
        while node is not None and node.scope is not self.scope:
            node = node.scope.owner
        return node

    def row_times(self, times: Mapping[Node, float]) -> list[float]:
        """Return milliseconds by row; those in bodies count for the node that has the body."""
        rows = self.overview.rails.rows
        own = [0.0] * len(rows)
        for node, time in times.items():
            holder = self._holder(node)
            vertex = self.drawn.vertex(holder) if holder is not None else None
            if vertex is not None:
                own[rows[vertex]] += time
        return own

    def memory(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """Return the bytes of weights by row; an initializer adds to the sum once."""
        weights = self.weights
        if weights is None or not weights.total:
            return None
        count = len(self.overview.rails.order)
        parts = [float(weights.between(row, row + 1)) for row in range(count)]
        return [float(size) for size in weights.used], parts

    def weigh(self) -> None:
        """Read how large the weights are."""
        self.weights = Weights(self.drawn, self.overview.rails)


__all__ = ["CANVAS_BOXES", "GraphModel", "GraphView", "fold_summary", "fold_title"]
