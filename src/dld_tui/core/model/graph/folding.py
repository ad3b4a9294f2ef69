"""The folded overview: rows as a tree of repeated blocks and name scopes.

The rows are cut wherever a single tensor is alive, those aside that feed everything, such as
masks. The parts between cuts are compared by their operators, and a sequence of parts that comes
several times in a row is a block. Names only say where a block begins, when every shift of the
cut would repeat as well.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, overload

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.graph.graph import Graph, Kind
from dld_tui.core.model.graph.rails import Rails, demand_order, lay_rails
from dld_tui.core.reach import reached

Scope = tuple[str, ...]


def name_separator(graph: Graph) -> str:
    """Return what separates the parts of names: ``/``, or ``.`` where no name has one."""
    return "/" if any(name.find("/", 1) > 0 for name in graph.paths or graph.names) else "."


def name_scopes(graph: Graph) -> list[Scope]:
    """Return the name scope of each vertex: ``()`` where its name, or path, has none.

    Neither have values such as ``past.0.key``, whose dots do not tell where they are used.
    """
    separator = name_separator(graph)
    names = graph.paths or graph.names
    if separator == ".":
        works = zip(names, graph.kinds, strict=True)
        names = [name if kind in _WORK else "" for name, kind in works]
    known: dict[str, Scope] = {}
    scopes: list[Scope] = []
    for name in names:
        cut = name.rfind(separator)
        prefix = name[:cut] if cut > 0 else ""
        scope = known.get(prefix)
        if scope is None:
            scope = known[prefix] = tuple(part for part in prefix.split(separator) if part)
        scopes.append(scope)
    return scopes


def common_scope(scopes: Sequence[Scope]) -> Scope:
    """Return the longest scope that holds all of the given ones that are not ``()``."""
    named = [scope for scope in scopes if scope]
    if not named:
        return ()
    # All common leading parts are common to the extremes.
    low, high = min(named), max(named)
    length = 0
    for mine, theirs in zip(low, high):  # noqa: B905 - the shorter one ends it
        if mine != theirs:
            break
        length += 1
    return low[:length]


def filled_gaps(scopes: Sequence[Scope]) -> list[Scope]:
    """Return the scopes of consecutive rows, a row without one taking that of its neighbours.

    Inputs and outputs have plain names; one in the middle of a scope belongs to it.
    """
    filled = list(scopes)
    before: Scope = ()
    start = 0
    for row, scope in enumerate([*scopes, ()]):
        if row < len(scopes) and not scope:
            continue
        if start < row:
            shared = common_scope([before, scope]) if before and scope else ()
            filled[start:row] = [shared] * (row - start)
        before, start = scope, row + 1
    return filled[: len(scopes)]


LONGEST_PERIOD = 64
"""Parts that a block may have: enough for a transformer layer, few enough to look for quickly."""
MOST_ALIVE = 2
"""Tensors at a cut, where cuts with one alone find no block that has a name: a residual stream
beside its norm."""
FEWEST_BLOCK_ROWS = 3
"""A repeat of less saves nothing."""
GLOBAL_TARGETS = 3
GLOBAL_ROWS = 40
"""A tensor with so many uses over so many rows, and over a quarter of all, is in no block."""

_MOST_AGAIN = 20_000
"""Rows that are not looked at again for blocks with names."""

_WORK = frozenset((Kind.NODE, Kind.CONTROL_FLOW, Kind.CALL, Kind.GROUP))


@dataclass(frozen=True, slots=True)
class Repeat:
    """A block that comes several times in a row."""

    starts: tuple[int, ...]
    """The first row of each time, and behind them the row after the last time."""

    @property
    def count(self) -> int:
        """How often it comes."""
        return len(self.starts) - 1


def repeats(
    graph: Graph, rails: Rails, scopes: Sequence[Scope], start: int, end: int
) -> list[Repeat]:
    """Return the repeated blocks among some rows, in their order; they do not overlap.

    Args:
        rails: Its rows.
        scopes: The name scope of each row.
        start: The first row that is looked at.
        end: The row after the last one.
    """
    first: list[Repeat] = []
    for most in range(1, MOST_ALIVE + 1):
        repeats_found = _repeats(graph, rails, scopes, _cuts(graph, rails, start, end, most))
        is_large = end - start > _MOST_AGAIN and repeats_found
        if is_large or any(_has_names(repeat, scopes) for repeat in repeats_found):
            return repeats_found
        first = first or repeats_found
    return first


def _has_names(repeat: Repeat, scopes: Sequence[Scope]) -> bool:
    """Return whether each repetition lies in a separate name scope."""
    times = pairwise(repeat.starts[:4])
    blocks = [common_scope(scopes[start:end]) for start, end in times]
    return len(set(blocks)) == len(blocks)


def _repeats(
    graph: Graph, rails: Rails, scopes: Sequence[Scope], cuts: Sequence[int]
) -> list[Repeat]:
    tokens = _tokens(graph, rails, cuts)
    runs = []
    part = 0
    while part < len(tokens):
        period = _best_period(tokens, cuts, part)
        if not period:
            part += 1
            continue
        part = _snapped(tokens, cuts, scopes, part, period)
        count = _times(tokens, part, period)
        starts = [cuts[part + period * time] for time in range(count + 1)]
        runs.append(Repeat(tuple(starts)))
        part += period * count
    return runs


def _cuts(graph: Graph, rails: Rails, start: int, end: int, most: int) -> list[int]:
    """Return the rows that a part can start at, the first one and the one after the last too.

    Args:
        rails: Its rows.
        start: The first row.
        end: The row after the last one.
        most: Tensors that may be alive at a cut.
    """
    count = end - start
    change = [0] * (count + 1)
    nets, outputs, ends = graph.nets, graph.outputs, rails.ends
    far = max(min(GLOBAL_ROWS, count // 3), count // 4)
    for at, vertex in enumerate(rails.order[start:end]):
        for number in outputs[vertex]:
            last = ends[number] - start
            if last > at and not (last - at >= far and len(nets[number].targets) >= GLOBAL_TARGETS):
                change[at] += 1
                change[last if last < count else count] -= 1
    alive, cuts = 0, [start]
    for row, more in enumerate(change[: count - 1], start + 1):
        alive += more
        if alive <= most:
            cuts.append(row)
    return [*cuts, end] if count else cuts


def _tokens(graph: Graph, rails: Rails, cuts: Sequence[int]) -> list[int]:
    """Return a number for each part, the same for parts of the same operators."""
    numbers: dict[tuple[str, ...] | str, int] = {}
    labels, kinds, first = graph.labels, graph.kinds, cuts[0]
    # What inputs and outputs are called says nothing about the kind of work.
    works = [
        labels[vertex] if kinds[vertex] in _WORK else kinds[vertex]
        for vertex in rails.order[first : cuts[-1]]
    ]
    tokens = []
    for start, end in pairwise(cuts):
        key: tuple[str, ...] | str
        if end - start == 1:  # all of a chain
            key = works[start - first]
        else:
            key = tuple(sorted(works[start - first : end - first]))
        tokens.append(numbers.setdefault(key, len(numbers)))
    return tokens


def _times(tokens: Sequence[int], part: int, period: int) -> int:
    """Return how often the parts from `part` on come in a row."""
    first = tokens[part : part + period]
    times = 1
    while tokens[part + times * period : part + (times + 1) * period] == first:
        times += 1
    return times


def _best_period(tokens: Sequence[int], cuts: Sequence[int], part: int) -> int:
    """Return the period of the repeat from a part on that covers most rows; 0 without one."""
    best, best_period = 0, 0
    for period in range(1, LONGEST_PERIOD + 1):
        if part + 2 * period > len(tokens):
            break
        if tokens[part] != tokens[part + period]:
            continue
        times = _times(tokens, part, period)
        rows = cuts[part + period] - cuts[part]
        covered = cuts[part + times * period] - cuts[part]
        if times > 1 and rows >= FEWEST_BLOCK_ROWS and covered > best:
            best, best_period = covered, period
    return best_period


def _snapped(
    tokens: Sequence[int],
    cuts: Sequence[int],
    scopes: Sequence[Scope],
    part: int,
    period: int,
) -> int:
    """Return a better start of the block, so that each repetition lies in a separate name scope.

    A repeat may begin anywhere within its first time. Where names do not help, it begins as early
    as possible.
    """
    best, chosen = (-1, -1), part
    for shift in range(period):
        start = part + shift
        times = _times(tokens, start, period)
        if times < 2:
            continue
        blocks = [
            common_scope(scopes[cuts[start + time * period] : cuts[start + (time + 1) * period]])
            for time in range(min(times, 3))
        ]
        is_named = len(set(blocks)) == len(blocks)
        score = sum(len(scope) for scope in blocks) * is_named
        edges = 0
        if not is_named and blocks[0] == blocks[-1]:  # such as a block of three layers
            edges = sum(
                _changes(scopes, cuts[start + time * period], len(blocks[0])) for time in range(3)
                if start + time * period < len(cuts)
            )  # fmt: skip
        if (score, edges) > best:
            best, chosen = (score, edges), start
    return chosen


def _changes(scopes: Sequence[Scope], row: int, depth: int) -> bool:
    """Return whether the next part of the scope is another one than in the row before."""
    here = scopes[row][: depth + 1] if row < len(scopes) else ()
    return row > 0 and len(here) > depth and scopes[row - 1][: depth + 1] != here


_RANGE = " … "
FEWEST_SCOPE_ROWS = 3
"""Rows of the smallest scope that is folded."""
_DEEPEST = 24
"""Levels of folds: more would not be read, and hostile names may have thousands of parts."""


class Fold:
    """Rows that can be shown as one.

    There may be thousands of folds, of which few are viewed, so their texts are computed
    on access.
    """

    def __init__(
        self,
        folder: _Folder,
        start: int,
        end: int,
        outer: Scope,
        repeat: Repeat | None = None,
        *,
        spans: bool = False,
    ) -> None:
        self.start = start
        """The first row."""
        self.end = end
        """The row after the last one."""
        self.count = repeat.count if repeat is not None else 1
        """How often the same block comes; more than 1 means that the children are these blocks."""
        self._folder = folder
        self._outer = outer
        """The scope that contains all of it, which titles leave out."""
        self._repeat = repeat
        self._spans = spans
        """Whether it is one time of a block that holds several scopes, such as three layers."""

    def __len__(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"<Fold {self.start}:{self.end} {self.title!r} x{self.count}>"

    @cached_property
    def _scope(self) -> Scope:
        """The scope of its rows; the outer one where they have none in common."""
        scope = common_scope(self._folder.scopes[self.start : self.end])
        return scope if len(scope) > len(self._outer) else self._outer

    @cached_property
    def title(self) -> str:
        """The scope without what all rows share, ``layers.1 … layers.89`` for a repeat.

        Empty without. Untrusted text.
        """
        if self._repeat is not None:
            first_part = self.children[0].title.partition(_RANGE)[0]
            return _range_title(first_part, self.children[-1].title.rpartition(_RANGE)[2])
        if self._spans:
            depth = len(self._scope) + 1
            rows = self._folder.scopes[self.start : self.end]
            parts = Counter(scope[:depth] for scope in rows if len(scope) >= depth)
            # The norm of the next layer may be in it, too.
            fewest = max(parts.values(), default=0) // 4
            whole = [part for part, count in parts.items() if count > fewest]
            if whole:
                return _range_title(self._shown(whole[0]), self._shown(whole[-1]))
        return self._shown(self._scope)

    @property
    def label(self) -> str:
        """The title, ``block`` without one, ``scope 3`` for a bare number. Untrusted text.

        A scope that is only a number, as in ``nn.Sequential``, would read as a count of nodes.
        """
        title = self.title or "block"
        is_number = all(part.isdecimal() for part in title.split(_RANGE))
        return f"scope {title}" if is_number else title

    def _shown(self, scope: Scope) -> str:
        """Return a scope inside of this one without what all rows share."""
        shared, first, last = self._folder.shared
        is_all = self.start <= first and last < self.end  # what all lies in is said by it alone
        shown = len(self._outer) if is_all else max(len(self._outer), len(shared))
        separator = self._folder.separator
        is_number = shown < len(scope) and scope[shown].isdecimal()
        if separator == "." and shown and is_number:
            shown -= 1  # the 3 of layers.3 is no name
        return separator.join(scope[shown:])

    @cached_property
    def children(self) -> list[Fold]:
        """The folds inside, in the order of their rows; other rows inside are in none of them."""
        if self._repeat is not None:
            times = [*pairwise(self._repeat.starts)]
            scopes = {common_scope(self._folder.scopes[start:end]) for start, end in times}
            spans = len(scopes) == 1
            return [
                Fold(self._folder, start, end, self._outer, spans=spans) for start, end in times
            ]
        return self._folder.folds(self.start, self.end, self._scope)

    def complete(self) -> None:
        """Compute now what the folds of the graph need to list their contents."""
        _ = self._folder.scopes

    @property
    def rows_inside(self) -> int:
        """How many rows there are more when it is open."""
        return len(self) - sum(len(child) - 1 for child in self.children)

    @property
    def vertices(self) -> Sequence[int]:
        """The vertices inside, in the order of their rows."""
        return self._folder.rails.order[self.start : self.end]

    @cached_property
    def operators(self) -> Counter[str]:
        """How often each operator comes in it; in one time of a repeat. Untrusted text."""
        graph = self._folder.graph
        inside = self.children[0].vertices if self._repeat is not None else self.vertices
        plain = (Kind.INPUT, Kind.OUTPUT, Kind.OUTER)
        return Counter(graph.labels[v] for v in inside if graph.kinds[v] not in plain)


def arranged_rows(graph: Graph) -> tuple[Rails, list[Fold]]:
    """Return the rows of a graph, and its folds.

    The rows are in the order in which values are needed, in which lines are short. Blocks that hand
    on two streams, as those of a diffusion transformer, run into one another there; where the order
    of the file keeps them apart, it is taken.
    """
    rails = lay_rails(graph, demand_order(graph))
    folds = fold_tree(graph, rails)
    if 2 * _repeated(folds, len(graph)) >= len(graph):
        return rails, folds
    if any(net.source >= min(net.targets) for net in graph.nets):
        return rails, folds
    other = lay_rails(graph, range(len(graph)))
    others = fold_tree(graph, other)
    if 2 * _repeated(others, len(graph)) >= len(graph):
        return other, others
    return rails, folds


def _repeated(folds: Sequence[Fold], rows: int) -> int:
    """Return how many of so many rows lie in repeats, scopes that hold most of them looked into."""
    return sum(
        len(fold) if fold.count > 1
        else _repeated(fold.children, rows) if 2 * len(fold) >= rows else 0
        for fold in folds
    )  # fmt: skip


def fold_tree(graph: Graph, rails: Rails) -> list[Fold]:
    """Return the outermost folds in the order of their rows."""
    return _Folder(graph, rails).folds(0, len(rails.order), ())


def known_of(folds: Sequence[Fold], opened: Collection[Fold]) -> list[Any]:
    """Return folds, and those in the ones that are open, as JSON."""
    return [
        [
            fold.start,
            fold.end,
            fold._outer,
            fold._repeat.starts if fold._repeat is not None else None,
            fold.title,
            known_of(fold.children, opened) if fold in opened else None,
        ]
        for fold in folds
    ]


def folds_of(known: Sequence[Any], graph: Graph, rails: Rails) -> tuple[list[Fold], set[Fold]]:
    """Return the folds that :func:`known_of` recorded, and those that were open.

    Folds that it did not record are found on access.
    """
    opened: set[Fold] = set()
    return _Folder(graph, rails).again(known, opened), opened


class _Folder:
    def __init__(self, graph: Graph, rails: Rails) -> None:
        self.graph = graph
        self.rails = rails

    @cached_property
    def shared(self) -> tuple[Scope, int, int]:
        """The scope that everything lies in, and its first and last row."""
        named = [row for row, scope in enumerate(self.scopes) if scope]
        return (common_scope(self.scopes), named[0], named[-1]) if named else ((), 0, -1)

    @cached_property
    def separator(self) -> str:
        """What separates the parts of names."""
        return name_separator(self.graph)

    @cached_property
    def scopes(self) -> Sequence[Scope]:
        """The name scope of each row."""
        by_vertex = name_scopes(self.graph)
        return filled_gaps([scope[:_DEEPEST] for scope in (by_vertex[v] for v in self.rails.order)])

    def again(self, known: Sequence[Any], opened: set[Fold]) -> list[Fold]:
        """Return folds that were found before; those that were open are added to `opened`."""
        folds = []
        for start, end, outer, starts, title, children in known:
            repeat = Repeat(tuple(starts)) if starts is not None else None
            fold = Fold(self, start, end, tuple(outer), repeat)
            fold.title = title
            if children is not None:
                fold.children = self.again(children, opened)
                opened.add(fold)
            folds.append(fold)
        return folds

    def folds(self, start: int, end: int, inside: Scope) -> list[Fold]:
        """Return the folds among some rows, which all lie in a scope."""
        folds: list[Fold] = []
        row = start
        repeated = repeats(self.graph, self.rails, self.scopes, start, end)
        if repeated and len(self.shared[0]) > len(inside):
            inside = self.shared[0]  # folds between them would have that name, all of them
        for repeat in repeated:
            folds += self._scope_folds(row, repeat.starts[0], inside)
            folds.append(Fold(self, repeat.starts[0], repeat.starts[-1], inside, repeat))
            row = repeat.starts[-1]
        return folds + self._scope_folds(row, end, inside)

    def _scope_folds(self, start: int, end: int, inside: Scope) -> list[Fold]:
        """Return the folds of consecutive rows that share the next part of their scope."""
        depth = len(inside)
        folds: list[Fold] = []
        row = start
        while row < end:
            part = self.scopes[row][: depth + 1]
            last = row + 1
            while last < end and self.scopes[last][: depth + 1] == part:
                last += 1
            if len(part) > depth and last - row >= FEWEST_SCOPE_ROWS:
                folds.append(Fold(self, row, last, inside))
            row = last
        return folds


def _range_title(first: str, last: str) -> str:
    """Return the scopes of a repeat's first and last time as one text."""
    return first if first == last else f"{first}{_RANGE}{last}" if first and last else first or last


_FEWEST_ROWS, _ROWS_AT_FIRST, _MOST_ROWS_AT_FIRST = 5, 30, 60
"""The most rows that a graph opens with."""


class OverviewRow(NamedTuple):
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


class Arrangement(NamedTuple):
    """What is worked out of a graph for its first picture: plain values, in this process or not."""

    rails: Rails
    folds: list[Any]
    """See :func:`~dld_tui.core.model.graph.folding.known_of`."""
    links: list[tuple[int, int, Sequence[int]]]
    """Visible links: nets of the whole graph, with the rows that they connect."""
    seen: Rails


class _FlatRows(Sequence[OverviewRow]):
    """A row for each vertex, made when it is looked at."""

    def __init__(self, count: int) -> None:
        self._range = range(count)

    def __len__(self) -> int:
        return len(self._range)

    @overload
    def __getitem__(self, index: int) -> OverviewRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[OverviewRow]: ...

    def __getitem__(self, index: int | slice) -> OverviewRow | list[OverviewRow]:
        if isinstance(index, slice):
            return [OverviewRow(row, row + 1, 0) for row in self._range[index]]
        row = self._range[index]
        return OverviewRow(row, row + 1, 0)


class Overview:
    """The rows of a graph with its folds open or closed.

    Args:
        arranged: What :meth:`arranged` says of an overview of the same graph, perhaps in another
            process; None to work it out here.
    """

    def __init__(self, graph: Graph, arranged: Arrangement | None = None) -> None:
        self.graph = graph
        self.rails: Rails
        """The rails of all vertices: rows in the order in which they are listed."""
        self.folds: list[Fold]
        self.is_flat = False
        """Whether every vertex is a row and no fold is: what is open stays so meanwhile."""
        self._open: set[Fold] = set()
        self._rows: list[OverviewRow] | None = None
        self._seen: tuple[Graph, Rails] | None = None
        if arranged is None:
            self.rails, self.folds = arranged_rows(graph)
            self._open_first()
        else:
            self.rails = arranged.rails
            self.folds, self._open = folds_of(arranged.folds, graph, self.rails)
            self._seen = self._seen_graph(arranged.links), arranged.seen

    def arranged(self) -> Arrangement:
        """Return what another overview of this graph need not work out again."""
        links = self._links()
        graph = self._seen_graph(links)
        self._seen = graph, lay_rails(graph, range(len(graph)))
        return Arrangement(self.rails, known_of(self.folds, self._open), links, self._seen[1])

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

    def fill(self, rows: int) -> None:
        """Open folds while all rows fit so many, those that hide least first."""
        while True:
            closed = (row.fold for row in self.rows if row.fold is not None and not row.is_open)
            room = rows - len(self.rows)
            fitting = [fold for fold in closed if fold.rows_inside <= room]
            if not fitting:
                return
            self.set_open(min(fitting, key=lambda fold: fold.rows_inside))

    @property
    def opened(self) -> frozenset[Fold]:
        """The folds whose rows are seen, or would be if those around them were open."""
        return frozenset(self._open)

    def complete(self) -> None:
        """Compute now what opening a fold needs, where another process has found the folds."""
        for fold in self.folds[:1]:
            fold.complete()

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
        containing: list[Fold] = []
        folds = self.folds
        while True:
            at = bisect_right(folds, row, key=lambda fold: fold.start) - 1
            if at < 0 or row >= folds[at].end:
                return containing
            containing.append(folds[at])
            folds = folds[at].children

    def reveal(self, vertex: int) -> int:
        """Open the folds around a vertex; returns its place among :attr:`rows`."""
        for fold in self.around(vertex):
            if fold not in self._open:
                self.set_open(fold)
        return self.place(vertex)

    @property
    def rows(self) -> Sequence[OverviewRow]:
        """The rows that are seen, in order."""
        if self.is_flat:
            return self.flat_rows
        if self._rows is None:
            self._rows = []
            self._add_rows(self._rows, self.folds, 0, len(self.rails.order), 0, repeated=False)
        return self._rows

    @cached_property
    def flat_rows(self) -> Sequence[OverviewRow]:
        """A row for each vertex."""
        return _FlatRows(len(self.rails.order))

    def _add_rows(
        self,
        rows: list[OverviewRow],
        folds: list[Fold],
        start: int,
        end: int,
        depth: int,
        *,
        repeated: bool,
    ) -> None:
        at = start
        for number, fold in enumerate(folds, 1):
            rows += [OverviewRow(row, row + 1, depth) for row in range(at, fold.start)]
            is_open = fold in self._open
            time = number if repeated else 0
            rows.append(OverviewRow(fold.start, fold.end, depth, fold, is_open, time))
            if is_open:
                inner = fold.children
                self._add_rows(
                    rows, inner, fold.start, fold.end, depth + 1, repeated=fold.count > 1
                )
            at = fold.end
        rows += [OverviewRow(row, row + 1, depth) for row in range(at, end)]

    def place(self, vertex: int) -> int:
        """Return the row of :attr:`rows` that shows a vertex, or the fold that hides it."""
        row = self.rails.rows[vertex]
        if self.is_flat:
            return row
        # The head of an open fold starts where the first row inside does, which comes after it.
        return bisect_right(self.rows, row, key=lambda seen: seen.start) - 1

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
            targets_shown = {places[rows[target]] for target in targets}
            if is_fold:
                targets_shown.discard(at)
            if targets_shown:
                links.append((number, at, sorted(targets_shown)))
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
class Subgraph:
    """Some vertices of a graph as a separate graph."""

    graph: Graph
    vertices: list[int]
    """The vertex of the whole graph that each one is."""
    cut_above: list[int]
    """How many tensors come to each vertex from outside of the part."""
    cut_below: list[int]
    """How many vertices outside of the part take tensors of each vertex."""


def neighbourhood(graph: Graph, vertex: int, hops: int, most: int = 200) -> Subgraph:
    """Return the vertices at most so many links away from one, up or down.

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
            neighbours = graph.sources[at] + graph.targets[at]
            if hop and len(neighbours) > HUB_DEGREE:
                continue
            following.update((other, None) for other in neighbours if other not in chosen)
        # The first ring is what was asked for, however large; it is cut only when nobody could
        # look at it.
        room = most if hop else most * 2
        if hop and len(chosen) + len(following) > room:
            break
        ring = list(following)[:room]
        chosen.update(dict.fromkeys(ring))
    return part_of(graph, chosen)


def between(graph: Graph, first: int, last: int) -> Subgraph:
    """Return everything on a way along links from one vertex to another, these two included.

    Where there is none in this direction, the other one is tried; else it is the two alone.
    """
    sources, targets = graph.sources, graph.targets
    for start, end in ((first, last), (last, first)):
        below: set[int] = reached([start], lambda vertex: targets[vertex])
        above: set[int] = reached([end], lambda vertex: sources[vertex])
        if below & above:
            return part_of(graph, below & above)
    return part_of(graph, (first, last))


def part_of(graph: Graph, vertices: Iterable[int]) -> Subgraph:
    """Return some vertices with the links between them, in the order of the whole graph."""
    chosen = sorted(set(vertices))
    number = {vertex: at for at, vertex in enumerate(chosen)}
    part = Subgraph(Graph(), chosen, [0] * len(chosen), [0] * len(chosen))
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
