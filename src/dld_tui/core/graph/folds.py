"""The folded overview: the rows of a graph as a tree of repeated blocks and name scopes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

from dld_tui.core.graph.blocks import Repeat, repeats
from dld_tui.core.graph.graph import Graph, Kind
from dld_tui.core.graph.rails import Rails
from dld_tui.core.graph.scopes import Scope, common_scope, filled_gaps, name_scopes

FEWEST_ROWS = 3
"""Rows of the smallest scope that is folded."""
_DEEPEST = 24
"""Levels of folds: more would not be read, and hostile names may have thousands of parts."""


class Fold:
    """Rows that can be shown as one.

    There may be thousands of folds, of which few are looked at, so what they say is worked out
    when it is asked for.
    """

    def __init__(
        self, folder: _Folder, start: int, end: int, outer: Scope, repeat: Repeat | None = None
    ) -> None:
        self.start = start
        """The first row."""
        self.end = end
        """The row after the last one."""
        self.count = repeat.count if repeat is not None else 1
        """How often the same block comes; more than 1 means that the children are these blocks."""
        self._folder = folder
        self._outer = outer
        """The scope that all of it lies in, and that need not be said."""
        self._repeat = repeat

    def __len__(self) -> int:
        return self.end - self.start

    def __repr__(self) -> str:
        return f"<Fold {self.start}:{self.end} {self.title!r} x{self.count}>"

    @cached_property
    def _scope(self) -> Scope:
        """The scope of its rows; that around it where they have none in common."""
        found = common_scope(self._folder.scopes[self.start : self.end])
        return found if len(found) > len(self._outer) else self._outer

    @cached_property
    def title(self) -> str:
        """The scope, ``layers.1 … layers.89`` for a repeat; empty without. Foreign text."""
        if self._repeat is not None:
            return _range_title(self.children[0].title, self.children[-1].title)
        return "/".join(self._scope[len(self._outer) :])

    @cached_property
    def children(self) -> list[Fold]:
        """The folds inside, in the order of their rows; other rows inside are in none of them."""
        if self._repeat is not None:
            starts = pairwise(self._repeat.starts)
            return [Fold(self._folder, start, end, self._outer) for start, end in starts]
        return self._folder.folds(self.start, self.end, self._scope)

    def complete(self) -> None:
        """Work out now what all folds of the graph need to know what is in them."""
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
        """How often each operator comes in it; in one time of a repeat. Foreign text."""
        graph = self._folder.graph
        inside = self.children[0].vertices if self._repeat is not None else self.vertices
        plain = (Kind.INPUT, Kind.OUTPUT, Kind.OUTER)
        return Counter(graph.labels[v] for v in inside if graph.kinds[v] not in plain)

    @cached_property
    def nets_in(self) -> tuple[int, ...]:
        """The nets that come from outside, each once."""
        graph, rows = self._folder.graph, self._folder.rails.rows
        found = {n: None for v in self.vertices for n in graph.inputs[v]}
        return tuple(n for n in found if not self.start <= rows[graph.nets[n].source] < self.end)

    @cached_property
    def nets_out(self) -> tuple[int, ...]:
        """The nets that something outside uses."""
        graph, rows = self._folder.graph, self._folder.rails.rows
        start, end = self.start, self.end
        return tuple(
            number
            for vertex in self.vertices
            for number in graph.outputs[vertex]
            if any(not start <= rows[target] < end for target in graph.nets[number].targets)
        )


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
    """Return the folds that :func:`known_of` told of, and those that were open.

    What it did not tell is found when it is asked for.
    """
    opened: set[Fold] = set()
    return _Folder(graph, rails).again(known, opened), opened


class _Folder:
    def __init__(self, graph: Graph, rails: Rails) -> None:
        self.graph = graph
        self.rails = rails

    @cached_property
    def scopes(self) -> Sequence[Scope]:
        """The name scope of each row."""
        by_vertex = name_scopes(self.graph)
        return filled_gaps([scope[:_DEEPEST] for scope in (by_vertex[v] for v in self.rails.order)])

    def again(self, known: Sequence[Any], opened: set[Fold]) -> list[Fold]:
        """Return folds that were found before; those that were open are added to `opened`."""
        found = []
        for start, end, outer, starts, title, children in known:
            repeat = Repeat(tuple(starts)) if starts is not None else None
            fold = Fold(self, start, end, tuple(outer), repeat)
            fold.title = title
            if children is not None:
                fold.children = self.again(children, opened)
                opened.add(fold)
            found.append(fold)
        return found

    def folds(self, start: int, end: int, inside: Scope) -> list[Fold]:
        """Return the folds among some rows, which all lie in a scope."""
        found: list[Fold] = []
        row = start
        for repeat in repeats(self.graph, self.rails, self.scopes, start, end):
            found += self._scope_folds(row, repeat.starts[0], inside)
            found.append(Fold(self, repeat.starts[0], repeat.starts[-1], inside, repeat))
            row = repeat.starts[-1]
        return found + self._scope_folds(row, end, inside)

    def _scope_folds(self, start: int, end: int, inside: Scope) -> list[Fold]:
        """Return the folds of consecutive rows that share the next part of their scope."""
        depth = len(inside)
        found: list[Fold] = []
        row = start
        while row < end:
            part = self.scopes[row][: depth + 1]
            last = row + 1
            while last < end and self.scopes[last][: depth + 1] == part:
                last += 1
            if len(part) > depth and last - row >= FEWEST_ROWS:
                found.append(Fold(self, row, last, inside))
            row = last
        return found


def _range_title(first: str, last: str) -> str:
    """Return the scopes of a repeat's first and last time as one text."""
    return first if first == last else f"{first} … {last}" if first and last else first or last
