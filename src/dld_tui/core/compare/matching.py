"""Which layers of one report are which of another.

By the ONNX nodes that they compute first, as names change with the optimisation level and the
backend. Where one report fuses nodes that another runs one by one, all layers that hang together by
common nodes make one row, so that nothing has to be shared out. What is left is matched by name,
and then by type and shape in the order of execution where the counts agree.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from dld_tui.core.compare.model import Comparable
from dld_tui.core.report.records import Layer, NodeLink

CONVERSIONS = frozenset(
    {
        "ReorderInput", "ReorderOutput", "MemcpyToHost", "MemcpyFromHost", "Reformat",
        "Reformatting CopyNode", "Cast", "Transpose",
    }
)  # fmt: skip
"""Layers that a backend inserts to change layout, type or device of a tensor."""

_NUMBERED = re.compile(r"[A-Z][A-Za-z]*_\d+|node_of_\d+")
"""Names that an exporter makes of an operator and a number."""

_WITH_POOLING = "ConvActPool"
_CONVOLUTIONS = ("Convolution", "CaskConvolution", "Conv", "FusedConv")
_POOLING_NEAR = 2
"""Layers between a convolution and its pooling, at most, and the pooling."""

Member: TypeAlias = "tuple[int, int]"
"""(report, layer)."""


@dataclass(frozen=True)
class Match:
    """Layers that do the same work, of each report."""

    members: tuple[tuple[int, ...], ...]
    """The layers, one tuple a report, in order of execution."""
    how: str = ""
    """``node``, ``name``, ``order``; empty when only one report has them."""


def is_conversion(layer: Layer) -> bool:
    """Tell whether a layer only converts a tensor, and the model has no node for that."""
    return layer.type in CONVERSIONS and all(link.op_type != layer.type for link in layer.nodes)


def match_layers(subjects: Sequence[Comparable], same_model: bool = True) -> list[Match]:
    """Return the rows of layers, in order of the first report that has them.

    Args:
        subjects: Two or more.
        same_model: False when nodes without a name may not be matched by their number.
    """
    return _Matcher(subjects, same_model).run()


class _Matcher:
    def __init__(self, subjects: Sequence[Comparable], same_model: bool) -> None:
        self.subjects = subjects
        self.same_model = same_model
        self.found: list[Match] = []
        self.left: dict[Member, Layer] = {
            (report, layer.index): layer
            for report, subject in enumerate(subjects)
            for layer in subject.layers
        }

    def run(self) -> list[Match]:
        self._same_nodes()
        self._shared_nodes()
        self._with_pooling()
        self._by(lambda layer: (layer.name, layer.type), "name", unique=True)
        self._by(lambda layer: layer.name, "name", unique=True)
        self._by(lambda layer: _shaped(layer, layer.input_dims), "order")
        self._by(lambda layer: _shaped(layer, ()), "order")
        if self.same_model and self._lacks_shapes():
            self._by(lambda layer: layer.type, "order")
        for member in list(self.left):
            self._take([member], "")
        if len(self.subjects) > 2:
            self._merge(lambda layer: _shaped(layer, layer.input_dims))
            self._merge(lambda layer: _shaped(layer, ()))
        return sorted(self.found, key=_first)

    def _lacks_shapes(self) -> bool:
        """Tell whether a report has no shapes at all, as profiles of ONNX Runtime before 1.12."""
        return any(
            not any(layer.output_dims for layer in subject.layers) for subject in self.subjects
        )

    def _take(self, members: Iterable[Member], how: str) -> None:
        rows: list[list[int]] = [[] for _ in self.subjects]
        for report, index in members:
            rows[report].append(index)
            del self.left[report, index]
        self.found.append(Match(tuple(tuple(sorted(row)) for row in rows), how))

    # By ONNX nodes

    def _nodes(self, layer: Layer) -> frozenset[Hashable]:
        if is_conversion(layer):
            return frozenset()
        return frozenset(
            (link.scope, link.calls, link.name or link.node)
            for link in layer.nodes
            if self.same_model or _is_stable(link)
        )

    def _same_nodes(self) -> None:
        """Match the layers of exactly the same nodes, where each report has one of them."""
        groups: dict[Hashable, list[Member]] = {}
        for member, layer in self.left.items():
            nodes = self._nodes(layer)
            if nodes:
                groups.setdefault(nodes, []).append(member)
        everywhere = list(range(len(self.subjects)))
        for members in groups.values():
            if sorted(report for report, _ in members) == everywhere:
                self._take(members, "node")

    def _shared_nodes(self) -> None:
        """Match all layers that hang together by common nodes, where several reports have some."""
        parents: dict[Member, Member] = {}

        def root(member: Member) -> Member:
            while parents[member] != member:
                parents[member] = parents[parents[member]]
                member = parents[member]
            return member

        owners: dict[Hashable, Member] = {}
        for member, layer in self.left.items():
            for node in self._nodes(layer):
                parents.setdefault(member, member)
                parents[root(member)] = root(owners.setdefault(node, member))
        groups: dict[Member, list[Member]] = {}
        for member in parents:
            groups.setdefault(root(member), []).append(member)
        for members in groups.values():
            if len({report for report, _ in members}) > 1:
                self._take(members, "node")

    # By what is fused in one of them

    def _with_pooling(self) -> None:
        """Match a convolution and the pooling behind it with both in one layer elsewhere."""
        groups: dict[Hashable, list[list[list[Member]]]] = {}
        for report, subject in enumerate(self.subjects):
            free = [layer for layer in subject.layers if (report, layer.index) in self.left]
            for members, key in _pooled(report, free):
                rows = groups.setdefault(key, [[] for _ in self.subjects])
                rows[report].append(members)
        for rows in groups.values():
            present = [found for found in rows if found]
            lengths = {len(members) for found in present for members in found}
            alike = len({len(found) for found in present}) == 1
            if len(present) > 1 and alike and lengths == {1, 2}:
                for chosen in zip(*present, strict=True):
                    self._take([member for members in chosen for member in members], "order")

    # By name, and in order

    def _by(self, key: Callable[[Layer], Hashable], how: str, *, unique: bool = False) -> None:
        """Match layers with the same key one by one, where reports agree on how many there are."""
        groups: dict[Hashable, list[list[Member]]] = {}
        for member, layer in self.left.items():
            found = key(layer)
            if found is not None:
                rows = groups.setdefault(found, [[] for _ in self.subjects])
                rows[member[0]].append(member)
        for rows in groups.values():
            present = [row for row in rows if row]
            counts = {len(row) for row in present}
            if len(present) > 1 and len(counts) == 1 and not (unique and counts != {1}):
                for members in zip(*present, strict=True):
                    self._take(members, how)

    def _merge(self, key: Callable[[Layer], Hashable]) -> None:
        """Join rows of different reports, by type and shape in the order of execution.

        Such as those of A and B with those of C and D, whose names differ from these; where there
        are as many of one shape in all of them.
        """
        groups: dict[Hashable, dict[frozenset[int], list[Match]]] = {}
        for match in sorted(self.found, key=_first):
            members = [(report, row) for report, row in enumerate(match.members) if row]
            report, row = members[0]
            shape = key(self.subjects[report].layers[row[0]])
            if shape is not None and all(len(row) == 1 for _, row in members):
                having = frozenset(report for report, _ in members)
                groups.setdefault(shape, {}).setdefault(having, []).append(match)
        gone: set[int] = set()
        for classes in groups.values():
            waiting = sorted(classes.items(), key=lambda item: min(item[0]))
            while waiting:
                having, rows = waiting.pop(0)
                for other, more in list(waiting):
                    if not having & other and len(more) == len(rows):
                        gone.update(map(id, (*rows, *more)))
                        rows = [_joined(one, two) for one, two in zip(rows, more, strict=True)]
                        having |= other
                        waiting.remove((other, more))
                        self.found += rows
        self.found = [match for match in self.found if id(match) not in gone]


def _pooled(report: int, layers: Sequence[Layer]) -> Iterator[tuple[list[Member], Hashable]]:
    """Yield convolutions with their pooling, in one layer or two, by what goes in and comes out."""
    for place, layer in enumerate(layers):
        if layer.type == _WITH_POOLING:
            yield [(report, layer.index)], (layer.input_dims[:1], layer.output_dims)
        elif layer.type in _CONVOLUTIONS and layer.output_dims:
            after = layers[place + 1 : place + 1 + _POOLING_NEAR]
            pooling = (
                other
                for other in after
                if "Pool" in other.type and other.input_dims[:1] == layer.output_dims[:1]
            )
            found = next(pooling, None)
            if found is not None:
                members = [(report, layer.index), (report, found.index)]
                yield members, (layer.input_dims[:1], found.output_dims)


def _joined(one: Match, other: Match) -> Match:
    members = zip(one.members, other.members, strict=True)
    return Match(tuple(first or second for first, second in members), "order")


def _shaped(layer: Layer, inputs: Hashable) -> Hashable:
    # Without shapes nothing tells one layer of a type from another.
    return (layer.type, inputs, layer.output_dims) if layer.output_dims else None


def _is_stable(link: NodeLink) -> bool:
    """Tell whether a node's name means the same in another model: numbers do not."""
    name = link.name or link.node
    return not name.startswith("#") and _NUMBERED.fullmatch(name) is None


def _first(match: Match) -> tuple[int, int]:
    return next((row[0], report) for report, row in enumerate(match.members) if row)
