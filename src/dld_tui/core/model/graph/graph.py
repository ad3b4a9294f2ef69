"""The graph that is drawn: vertices and the tensors between them.

Models, subgraphs, functions, engine plans and folded groups are all turned into this, so that one
set of views draws them. It is columnar and holds plain values only, so that it travels to a child
process cheaply.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import NamedTuple

from dld_tui.core.dataclass import dataclass


class Kind:
    """What a vertex stands for; plain strings, so that a graph is cheap to send."""

    NODE = "node"
    INPUT = "input"
    OUTPUT = "output"
    CONTROL_FLOW = "control_flow"
    """A node with subgraphs."""
    CALL = "call"
    """An instance of a local function."""
    GROUP = "group"
    """Several vertices folded into one."""
    OUTER = "outer"
    """A value of an outer scope that a subgraph uses."""
    CUT = "cut"
    """Stands for everything left out beyond a link."""


GLYPHS = {
    Kind.NODE: "●", Kind.INPUT: "◆", Kind.OUTPUT: "◆", Kind.CONTROL_FLOW: "◉", Kind.CALL: "ƒ",
    Kind.GROUP: "⊞", Kind.OUTER: "◇", Kind.CUT: "⋯",
}  # fmt: skip
"""The sign of a vertex of each kind, in rows, boxes and pictures."""


class Net(NamedTuple):
    """A tensor with where it comes from and where it goes."""

    name: str
    """Untrusted text."""
    source: int
    targets: tuple[int, ...]
    """Each vertex once, in the order of first use."""
    label: str = ""
    """Its type and shape, e.g. ``f32[1, 64]``."""


@dataclass
class Graph:
    """Vertices, numbered from 0 in the order of the file, and nets between them."""

    labels: list[str] = field(default_factory=list)
    """Operator type, or another label of the vertex. Untrusted text."""
    names: list[str] = field(default_factory=list)
    """Untrusted text."""
    kinds: list[str] = field(default_factory=list)
    """Of :class:`Kind`."""
    classes: list[str] = field(default_factory=list)
    """Category of the operator, see :mod:`dld_tui.core.model.operators.categories`."""
    nets: list[Net] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    """Where in a hierarchy each vertex is, as ``/model/layers.3/MatMul``; empty where the names
    say it. Untrusted text."""

    def __len__(self) -> int:
        return len(self.labels)

    def add(self, label: str, name: str = "", kind: str = Kind.NODE, category: str = "") -> int:
        """Append a vertex and return its number."""
        self.labels.append(label)
        self.names.append(name)
        self.kinds.append(kind)
        self.classes.append(category)
        return len(self.labels) - 1

    def link(self, name: str, source: int, targets: Iterable[int], label: str = "") -> None:
        """Add a tensor; one without targets is left out."""
        distinct = tuple(targets)
        if len(distinct) > 1:
            distinct = tuple(dict.fromkeys(distinct))
        if distinct:
            self.nets.append(Net(name, source, distinct, label))

    @cached_property
    def inputs(self) -> list[Sequence[int]]:
        """The nets that go into each vertex. Do not change the graph after asking."""
        return self._nets_at(net.targets for net in self.nets)

    @cached_property
    def outputs(self) -> list[Sequence[int]]:
        """The nets that come out of each vertex. Do not change the graph after asking."""
        return self._nets_at((net.source,) for net in self.nets)

    def _nets_at(self, vertices: Iterable[Iterable[int]]) -> list[Sequence[int]]:
        """Return the nets at each vertex, given the vertices at each net."""
        nets: list[Sequence[int]] = [()] * len(self)
        for alone, of_net in zip(self._alone, vertices, strict=True):
            for vertex in of_net:
                entry = nets[vertex]
                if not entry:
                    nets[vertex] = alone
                elif isinstance(entry, list):
                    entry.append(alone[0])
                else:
                    nets[vertex] = [*entry, alone[0]]
        return nets

    @cached_property
    def _alone(self) -> list[tuple[int]]:
        """A tuple of each net, shared by the vertices that have only this one: they are many."""
        return list(zip(range(len(self.nets)), strict=True))

    @cached_property
    def sources(self) -> list[list[int]]:
        """The vertices that each vertex takes tensors from, each once."""
        source_of = [net.source for net in self.nets]
        return [
            [source_of[nets[0]]] if len(nets) == 1 else
            list(dict.fromkeys([source_of[number] for number in nets]))
            for nets in self.inputs
        ]  # fmt: skip

    @cached_property
    def targets(self) -> list[list[int]]:
        """The vertices that each vertex gives tensors to, each once."""
        targets_of = [net.targets for net in self.nets]
        return [
            list(targets_of[nets[0]]) if len(nets) == 1 else
            list(dict.fromkeys([target for number in nets for target in targets_of[number]]))
            for nets in self.outputs
        ]  # fmt: skip
