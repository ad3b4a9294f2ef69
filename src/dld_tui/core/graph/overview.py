"""What is seen of a folded graph, or of a part of it around vertices or between two."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, overload

from dld_tui.core.graph.folding import Fold, arranged_rows, folds_of, known_of
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.lanes import Rails, lay_rails

_FEWEST_ROWS, _ROWS_AT_FIRST, _MOST_ROWS_AT_FIRST = 5, 30, 60
"""Rows that a graph opens with, where it has so many."""


class Row(NamedTuple):
    """One row: a vertex, or a fold that is closed, or the head of one that is open."""

    start: int
    """The row in the order of all vertices; of a fold, its first one."""
    end: int
    depth: int
    """How many open folds it is in."""
    fold: Fold | None = None
    is_open: bool = False
    time: int = 0
    """Which time of a repeat a block is, from 1; 0 for all others."""


class Arranged(NamedTuple):
    """What is worked out of a graph for its first picture: plain values, in this process or not."""

    rails: Rails
    folds: list[Any]
    """See :func:`~dld_tui.core.graph.folding.known_of`."""
    links: list[tuple[int, int, Sequence[int]]]
    """Of what is seen: nets of the whole graph, from which row they go to which."""
    seen: Rails


class _FlatRows(Sequence[Row]):
    """A row for each vertex, made when it is looked at."""

    def __init__(self, count: int) -> None:
        self._range = range(count)

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [Row(row, row + 1, 0) for row in self._range[index]]
        row = self._range[index]
        return Row(row, row + 1, 0)


class Overview:
    """The rows of a graph with its folds open or closed.

    Args:
        arranged: What :meth:`arranged` says of an overview of the same graph, perhaps in another
            process; None to work it out here.
    """

    def __init__(self, graph: Graph, arranged: Arranged | None = None) -> None:
        self.graph = graph
        self.rails: Rails
        """The rails of all vertices: rows in the order in which they are listed."""
        self.folds: list[Fold]
        self.is_flat = False
        """Whether every vertex is a row and no fold is: what is open stays so meanwhile."""
        self._open: set[Fold] = set()
        self._rows: list[Row] | None = None
        self._seen: tuple[Graph, Rails] | None = None
        if arranged is None:
            self.rails, self.folds = arranged_rows(graph)
            self._open_first()
        else:
            self.rails = arranged.rails
            self.folds, self._open = folds_of(arranged.folds, graph, self.rails)
            self._seen = self._seen_graph(arranged.links), arranged.seen

    def arranged(self) -> Arranged:
        """Return what another overview of this graph need not work out again."""
        links = self._links()
        graph = self._seen_graph(links)
        self._seen = graph, lay_rails(graph, range(len(graph)))
        return Arranged(self.rails, known_of(self.folds, self._open), links, self._seen[1])

    def _open_first(self) -> None:
        """Open folds until there is something to see, those that hide least first.

        A model may be all in one scope. Repeats are opened only where little else is seen; once one
        is seen that is most of the model, the details before it would only push it off the screen.
        """
        while len(self.rows) < _ROWS_AT_FIRST:
            closed = [row.fold for row in self.rows if row.fold is not None and not row.is_open]
            main = any(fold.count > 1 and 2 * len(fold) > len(self.graph) for fold in closed)
            if main and len(self.rows) >= _FEWEST_ROWS:
                return
            room = _MOST_ROWS_AT_FIRST - len(self.rows)
            fitting = [fold for fold in closed if fold.count == 1 and fold.rows_inside <= room]
            if not fitting and len(self.rows) < _FEWEST_ROWS:
                fitting = closed
            if not fitting:
                return
            self.set_open(min(fitting, key=lambda fold: fold.rows_inside))

    def complete(self) -> None:
        """Work out now what opening a fold asks for, where another process has found the folds."""
        for fold in self.folds[:1]:
            fold.complete()

    # --- opening and closing --------------------------------------------------------------------

    def is_open(self, fold: Fold) -> bool:
        """Return whether the rows of a fold are seen."""
        return fold in self._open

    def set_open(self, fold: Fold, is_open: bool = True) -> None:
        """Show the rows of a fold, or itself only."""
        (self._open.add if is_open else self._open.discard)(fold)
        self._rows = self._seen = None

    def open_all(self) -> None:
        """Show every vertex."""
        waiting = list(self.folds)
        while waiting:
            fold = waiting.pop()
            self._open.add(fold)
            waiting += fold.children
        self._rows = self._seen = None

    def around(self, vertex: int) -> list[Fold]:
        """Return the folds that a vertex is in, the outermost first."""
        row = self.rails.rows[vertex]
        found: list[Fold] = []
        folds = self.folds
        while True:
            at = bisect_right(folds, row, key=lambda fold: fold.start) - 1
            if at < 0 or row >= folds[at].end:
                return found
            found.append(folds[at])
            folds = folds[at].children

    def reveal(self, vertex: int) -> int:
        """Open the folds around a vertex; returns its place among :attr:`rows`."""
        for fold in self.around(vertex):
            if fold not in self._open:
                self.set_open(fold)
        return self.place(vertex)

    # --- what is seen ---------------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[Row]:
        """The rows that are seen, in order."""
        if self.is_flat:
            return self.flat_rows
        if self._rows is None:
            self._rows = []
            self._add_rows(self._rows, self.folds, 0, len(self.rails.order), 0, repeated=False)
        return self._rows

    @cached_property
    def flat_rows(self) -> Sequence[Row]:
        """A row for each vertex."""
        return _FlatRows(len(self.rails.order))

    def _add_rows(
        self,
        rows: list[Row],
        folds: list[Fold],
        start: int,
        end: int,
        depth: int,
        *,
        repeated: bool,
    ) -> None:
        at = start
        for number, fold in enumerate(folds, 1):
            rows += [Row(row, row + 1, depth) for row in range(at, fold.start)]
            is_open = fold in self._open
            time = number if repeated else 0
            rows.append(Row(fold.start, fold.end, depth, fold, is_open, time))
            if is_open:
                inner = fold.children
                self._add_rows(
                    rows, inner, fold.start, fold.end, depth + 1, repeated=fold.count > 1
                )
            at = fold.end
        rows += [Row(row, row + 1, depth) for row in range(at, end)]

    def place(self, vertex: int) -> int:
        """Return the row of :attr:`rows` that shows a vertex, or the fold that hides it."""
        row = self.rails.rows[vertex]
        if self.is_flat:
            return row
        # The head of an open fold starts where the first row inside does, which comes after it.
        return bisect_right(self.rows, row, key=lambda seen: seen.start) - 1

    def vertex(self, row: Row) -> int | None:
        """Return the vertex of a row; None for a fold."""
        return self.rails.order[row.start] if row.fold is None else None

    def seen(self) -> tuple[Graph, Rails]:
        """Return the graph of the rows that are seen and its rails.

        The head of an open fold is a vertex without links, and folds have no label and no name.
        While some rows are folds, vertices are numbered by rows.
        """
        if self.is_flat:
            return self.graph, self.rails
        if self._seen is None:
            graph = self._seen_graph(self._links())
            self._seen = (graph, lay_rails(graph, range(len(graph))))
        return self._seen

    def _seen_graph(self, links: Sequence[tuple[int, int, Sequence[int]]]) -> Graph:
        base, order = self.graph, self.rails.order
        seen = Graph()
        for row in self.rows:
            if row.fold is None:
                vertex = order[row.start]
                seen.add(
                    base.labels[vertex], base.names[vertex], base.kinds[vertex],
                    base.classes[vertex],
                )  # fmt: skip
            else:
                # What folds are called is asked for when they are drawn: there may be thousands.
                seen.add("", "", Kind.GROUP)
        for number, at, targets in links:
            name, _, _, label = base.nets[number]
            seen.link(name, at, targets, label)
        return seen

    def _links(self) -> list[tuple[int, int, Sequence[int]]]:
        """Return the nets between rows that are seen, from which one to which ones."""
        base, order, rows = self.graph, self.rails.order, self.rails.rows
        nets, outputs, ends = base.nets, base.outputs, self.rails.ends
        places = self._places()
        leaving: list[tuple[int, int, bool]] = []
        """Nets that go to other rows, from which row, and whether that is a fold."""
        for at, row in enumerate(self.rows):
            if row.fold is None:
                leaving += [(number, at, False) for number in outputs[order[row.start]]]
                continue
            if row.is_open:
                continue
            start, end = row.start, row.end
            for vertex in order[start:end]:
                for number in outputs[vertex]:
                    # Most tensors of a large fold end in it.
                    if not start <= ends[number] < end or len(nets[number].targets) > 1:
                        leaving.append((number, at, True))
        links: list[tuple[int, int, Sequence[int]]] = []
        for number, at, is_fold in leaving:
            targets = nets[number].targets
            if len(targets) == 1:
                links.append((number, at, (places[rows[targets[0]]],)))
                continue
            found = {places[rows[target]] for target in targets}
            if is_fold:
                found.discard(at)
            if found:
                links.append((number, at, sorted(found)))
        return links

    def _places(self) -> list[int]:
        """Return the place among the rows that are seen of each row of the whole graph."""
        places = [0] * len(self.rails.order)
        for at, row in enumerate(self.rows):
            if not row.is_open:
                places[row.start : row.end] = [at] * (row.end - row.start)
        return places


HUB_DEGREE = 8
"""Hops do not go through a vertex with more neighbours: everything would be near everything."""


@dataclass
class Part:
    """Some vertices of a graph, as a graph of their own."""

    graph: Graph
    vertices: list[int]
    """The vertex of the whole graph that each one is."""
    cut_above: list[int]
    """How many tensors come to each vertex from outside of the part."""
    cut_below: list[int]
    """How many vertices outside of the part take tensors of each vertex."""


def neighbourhood(graph: Graph, vertex: int, hops: int, most: int = 200) -> Part:
    """Return what is at most some links away from a vertex, up or down.

    Args:
        graph: The whole graph.
        vertex: The vertex in the middle.
        hops: Links to go.
        most: Vertices of the part, about: the next ring is left out when it would be more.
    """
    chosen = {vertex: None}
    ring = [vertex]
    for hop in range(hops):
        following: dict[int, None] = {}
        for at in ring:
            near = graph.sources[at] + graph.targets[at]
            if hop and len(near) > HUB_DEGREE:
                continue
            following.update((other, None) for other in near if other not in chosen)
        # The first ring is what was asked for, however large; it is cut only when nobody could
        # look at it.
        room = most if hop else most * 2
        if hop and len(chosen) + len(following) > room:
            break
        ring = list(following)[:room]
        chosen.update(dict.fromkeys(ring))
    return part_of(graph, chosen)


def between(graph: Graph, first: int, last: int) -> Part:
    """Return everything on a way along links from one vertex to another, these two included.

    Where there is none in this direction, the other one is tried; else it is the two alone.
    """
    for start, end in ((first, last), (last, first)):
        both = _reach(graph.targets, start) & _reach(graph.sources, end)
        if both:
            return part_of(graph, both)
    return part_of(graph, (first, last))


def _reach(links: Sequence[Sequence[int]], start: int) -> set[int]:
    found = {start}
    waiting = [start]
    while waiting:
        for other in links[waiting.pop()]:
            if other not in found:
                found.add(other)
                waiting.append(other)
    return found


def part_of(graph: Graph, vertices: Iterable[int]) -> Part:
    """Return some vertices with the links between them, in the order of the whole graph."""
    chosen = sorted(set(vertices))
    number = {vertex: at for at, vertex in enumerate(chosen)}
    part = Part(Graph(), chosen, [0] * len(chosen), [0] * len(chosen))
    for vertex in chosen:
        part.graph.add(
            graph.labels[vertex], graph.names[vertex], graph.kinds[vertex], graph.classes[vertex]
        )
    for at, vertex in enumerate(chosen):
        outside: set[int] = set()
        for net in (graph.nets[n] for n in graph.outputs[vertex]):
            inside = [number[target] for target in net.targets if target in number]
            outside.update(target for target in net.targets if target not in number)
            part.graph.link(net.name, at, inside, net.label)
        part.cut_below[at] = len(outside)
        part.cut_above[at] = sum(graph.nets[n].source not in number for n in graph.inputs[vertex])
    return part
