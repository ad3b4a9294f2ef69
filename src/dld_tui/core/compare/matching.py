"""Matching the layers of reports.

By their ONNX nodes first, since names change with the optimization level and the backend. Where one
report fuses nodes that another runs one by one, all layers connected by common nodes form one row,
so that no time needs to be distributed. The rest is matched by name, and then by type and shape in
execution order if the counts agree.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dld_tui.core.compare.records import Interval, Subject
from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.groups import is_copy_name
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.statistics import fastest_count
from dld_tui.core.text.names import UNNAMED

if TYPE_CHECKING:
    from dld_tui.core.compare.records import FloatArray

CONVERSIONS = frozenset(
    {
        "ReorderInput", "ReorderOutput", "MemcpyToHost", "MemcpyFromHost", "Reformat",
        "Cast", "Transpose",
    }
)  # fmt: skip
"""Layers that a backend inserts to change layout, type or device of a tensor."""

_NUMBERED = re.compile(r"[A-Z][A-Za-z]*_\d+|node_of_\d+")
"""Names that an exporter makes of an operator and a number."""

_OF_QUANTIZER = re.compile(r"QLinear|QGemm|QAttention|QEmbed|DynamicQuantizeLSTM|\w+Integer$")
"""Operators that take the place of others in a quantized model, whose names get an ending."""

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
    """Return whether a layer only converts a tensor, without a node in the model."""
    is_one = layer.type in CONVERSIONS or is_copy_name(layer.type)
    return is_one and all(link.op_type != layer.type for link in layer.nodes)


def match_layers(subjects: Sequence[Subject], same_model: bool = True) -> list[Match]:
    """Return the rows of layers, in order of the first report that has them.

    Args:
        subjects: Two or more.
        same_model: False when nodes without a name may not be matched by their number.
    """
    return _Matcher(subjects, same_model).run()


class _Matcher:
    def __init__(self, subjects: Sequence[Subject], same_model: bool) -> None:
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
        self._by(_branches, "name", unique=True)
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
        """Return whether a report has no shapes, such as profiles of ONNX Runtime before 1.12."""
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
            (link.scope, link.calls, _before_quantization(link))
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

    # By the fusions of one of them

    def _with_pooling(self) -> None:
        """Match a convolution and the pooling behind it with both in one layer elsewhere."""
        groups: dict[Hashable, list[list[list[Member]]]] = {}
        for report, subject in enumerate(self.subjects):
            free = [layer for layer in subject.layers if (report, layer.index) in self.left]
            for members, key in _pooled(report, free):
                rows = groups.setdefault(key, [[] for _ in self.subjects])
                rows[report].append(members)
        for rows in groups.values():
            present = [of_report for of_report in rows if of_report]
            lengths = {len(members) for of_report in present for members in of_report}
            alike = len({len(of_report) for of_report in present}) == 1
            if len(present) > 1 and alike and lengths == {1, 2}:
                for chosen in zip(*present, strict=True):
                    self._take([member for members in chosen for member in members], "order")

    # By name, and in order

    def _by(self, key: Callable[[Layer], Hashable], how: str, *, unique: bool = False) -> None:
        """Match layers with the same key one by one, where reports agree on their number."""
        groups: dict[Hashable, list[list[Member]]] = {}
        for member, layer in self.left.items():
            group = key(layer)
            if group is not None:
                rows = groups.setdefault(group, [[] for _ in self.subjects])
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
                        rows = [
                            _joined(left, right) for left, right in zip(rows, more, strict=True)
                        ]
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
            pooling_layer = next(pooling, None)
            if pooling_layer is not None:
                members = [(report, layer.index), (report, pooling_layer.index)]
                yield members, (layer.input_dims[:1], pooling_layer.output_dims)


def _joined(match: Match, other: Match) -> Match:
    members = zip(match.members, other.members, strict=True)
    return Match(tuple(first or second for first, second in members), "order")


def _branches(layer: Layer) -> Hashable:
    """Return the layers that TensorRT joined side by side, whose order differs by the build."""
    names = layer.name.split(" || ")
    return frozenset(names) if len(names) > 1 else None


def _shaped(layer: Layer, inputs: Hashable) -> Hashable:
    # Without shapes, layers of one type cannot be told apart.
    return (layer.type, inputs, layer.output_dims) if layer.output_dims else None


def _before_quantization(link: NodeLink) -> str:
    """Return the name of a node before quantization.

    ONNX Runtime's quantizer appends ``_quant``, and names unnamed nodes before that.
    """
    name = link.name or link.node
    if _OF_QUANTIZER.match(link.op_type) is not None:
        name = name.removesuffix("_quant")
    return f">{name.removeprefix(UNNAMED)}" if name.startswith(UNNAMED) else name


def _is_stable(link: NodeLink) -> bool:
    """Return whether a node's name is meaningful in another model: numbers are not."""
    name = link.name or link.node
    return not name.startswith("#") and _NUMBERED.fullmatch(name) is None


def _first(match: Match) -> tuple[int, int]:
    return next((row[0], report) for report, row in enumerate(match.members) if row)


NodeKey: TypeAlias = "tuple[str, int | None]"
"""The label of a node, and its report where the label may mean another node elsewhere."""
_AS_FLOAT = re.compile(r"QLinear|Fused|Nhwc|DynamicQuantize|Integer$")
"""What the name of an operator has only in a quantized or optimised model."""


def node_keys(
    subjects: Sequence[Subject], matches: Iterable[Match], base: int, same_model: bool
) -> list[dict[str, NodeKey]]:
    """Return what identifies the nodes of each report, by their labels there.

    Nodes are those of the base that the matched layers say: the first Conv of a layer is the first
    Conv of the layer that does the same work, whatever its number. A node without a partner goes by
    its name where the models are the same or the name is more than a number.
    """
    known = [
        {link.label: link for layer in subject.layers for link in layer.nodes}
        for subject in subjects
    ]
    keys: list[dict[str, NodeKey]] = [
        {
            label: (label, None if same_model or at == base or _is_stable(link) else at)
            for label, link in links.items()
        }
        for at, links in enumerate(known)
    ]
    if same_model:
        return keys
    for match in matches:
        ours = _by_operator(subjects[base], match.members[base])
        for at, members in enumerate(match.members):
            if at == base or not members:
                continue
            for operator, labels in _by_operator(subjects[at], members).items():
                for label, partner in zip(labels, ours.get(operator, ()), strict=False):
                    keys[at][label] = partner, None
    return keys


_MOST_ALIKE = 0.8


def numbers_agree(subjects: Sequence[Subject], base: int) -> bool:
    """Return whether numbered names of nodes seem to mean the same nodes in all reports.

    For files that do not say which model they are of: operators that are put in, such as those of
    quantization, move the numbers of all others.
    """
    numbered = [
        {link.label for layer in subject.layers for link in layer.nodes if not _is_stable(link)}
        for subject in subjects
    ]
    return all(
        len(own & numbered[base]) >= _MOST_ALIKE * min(len(own), len(numbered[base]))
        for own in numbered
    )


def _by_operator(subject: Subject, members: Iterable[int]) -> dict[str, list[str]]:
    """Return the labels of the nodes of layers by operator, in order, each once."""
    labels_of: dict[str, dict[str, None]] = {}
    for index in members:
        for link in subject.layers[index].nodes:
            labels_of.setdefault(_AS_FLOAT.sub("", link.op_type), {})[link.label] = None
    return {operator: list(labels) for operator, labels in labels_of.items()}


# The interval is the percentile interval of Efron and Tibshirani, "An Introduction to the
# Bootstrap" (1993), section 13.3, of the difference of a statistic of two independent samples:
# of medians of latencies, of means of the fastest quarter of layers.
#
# A bootstrap sample of n values need not be drawn to know its smallest values. Its k-th smallest
# is that at rank ``floor(n * U)`` of the sorted data, where U is the k-th smallest of n uniform
# numbers (David and Nagaraja, "Order Statistics", 2003, section 2.3). So each resample is a weight
# for each rank, and all rows with the same number of passes share them.
#
# An interval of 95 % leaves out 0 for one unchanged row of twenty. So many rows are tested
# together: each gets a p-value of the Mann-Whitney U test (normal approximation with the
# corrections for ties and continuity, Hollander and Wolfe, "Nonparametric Statistical Methods",
# 1999, section 4.1), and of these the procedure of Benjamini and Hochberg ("Controlling the False
# Discovery Rate", 1995) keeps so many that of the rows called changed at most 5 % are expected
# not to be. A row is changed when both say so.

RESAMPLES = 1000
LEVEL_PERCENT = 95.0
SEED = 20_240_229
MIN_PASSES = 5
"""With fewer values the bootstrap says nothing: it draws the same few again and again."""
METHOD = (
    f"± is half the width of the {LEVEL_PERCENT:.0f} % interval of the difference"
    f" (percentile bootstrap, {RESAMPLES} resamples, Efron and Tibshirani 1993); a row is noise"
    " where the interval contains 0, or where the Mann-Whitney test of all rows together (Benjamini"
    " and Hochberg 1995, 5 %) does not tell it apart: so a difference larger than its ± can be"
    " noise, too"
)
"""What ``±`` and ``noise`` mean."""
FALSE_DISCOVERIES = 0.05
"""The part of the rows called changed that may be unchanged, expected."""

_ROWS_AT_ONCE = 256
"""Rows whose resamples are held together: 2 x 2 MB."""


class Statistic(Enum):
    """What of a sample is compared."""

    MEDIAN = "median"
    UNDISTURBED = "mean of the fastest quarter"
    """The time of a layer in a report."""


@lru_cache(maxsize=64)
def _weights(count: int, stream: int, statistic: Statistic) -> FloatArray:
    """Return how much each of `count` sorted values is worth in each resample, transposed."""
    dice = np.random.default_rng(SEED * 1_000_003 + stream)
    if statistic is Statistic.MEDIAN:
        ranks = [(count - 1) // 2 + 1, count // 2 + 1]
    else:
        ranks = [*range(1, fastest_count(count) + 1)]
    # The k-th smallest of n uniform numbers is the sum of k of n + 1 exponential ones by all.
    steps = dice.exponential(size=(RESAMPLES, ranks[-1]))
    rest = dice.gamma(count + 1 - ranks[-1], size=(RESAMPLES, 1))
    reached = np.cumsum(steps, axis=1)
    uniform = reached[:, [rank - 1 for rank in ranks]] / (reached[:, -1:] + rest)
    places = np.minimum(np.floor(uniform * count).astype(np.intp), count - 1)
    weights = np.zeros((count, RESAMPLES))
    np.add.at(weights, (places, np.arange(RESAMPLES)[:, None]), 1 / len(ranks))
    return weights


def intervals(
    first: Sequence[FloatArray],
    second: Sequence[FloatArray],
    resolution_ms: float = 0.0,
    statistic: Statistic = Statistic.MEDIAN,
) -> list[Interval | None]:
    """Return the interval of a statistic of ``second`` less that of ``first`` for each pair.

    Args:
        first: Sorted samples without NaN, one a row.
        second: The samples that they are compared with, as many.
        resolution_ms: The step of the clock: a difference can be wrong by so much for this alone.
        statistic: What is compared.

    Returns:
        One interval a row, None for those with fewer than `MIN_PASSES` values.
    """
    limits: list[Interval | None] = [None] * len(first)
    batches: dict[tuple[int, int], list[int]] = {}
    for row, (values, other) in enumerate(zip(first, second, strict=True)):
        if min(len(values), len(other)) >= MIN_PASSES:
            batches.setdefault((len(values), len(other)), []).append(row)
    for rows in batches.values():
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = rows[start : start + _ROWS_AT_ONCE]
            moved = _resampled([second[row] for row in part], 1, statistic)
            moved -= _resampled([first[row] for row in part], 0, statistic)
            low, high = _bounds(moved)
            for row, below, above in zip(part, low.tolist(), high.tolist(), strict=True):
                limits[row] = Interval(below - resolution_ms, above + resolution_ms)
    return limits


def _resampled(samples: Sequence[FloatArray], stream: int, statistic: Statistic) -> FloatArray:
    ordered = np.stack(samples)
    return np.asarray(ordered @ _weights(ordered.shape[1], stream, statistic))


def _bounds(moved: FloatArray) -> tuple[FloatArray, FloatArray]:
    tail = int(RESAMPLES * (100 - LEVEL_PERCENT) / 200)
    moved.partition((tail, RESAMPLES - 1 - tail), axis=1)
    return moved[:, tail], moved[:, RESAMPLES - 1 - tail]


def p_value(first: FloatArray, second: FloatArray) -> float:
    """Return how likely two samples so far apart are when nothing changed: Mann-Whitney U.

    Args:
        first: Sorted, not empty.
        second: Sorted, not empty.
    """
    count, other = len(first), len(second)
    below = np.searchsorted(first, second, "left")
    upto = np.searchsorted(first, second, "right")
    statistic = float((below + upto).sum()) / 2
    total = count + other
    _, ties = np.unique(np.concatenate((first, second)), return_counts=True)
    tied = float((ties.astype(np.float64) ** 3 - ties).sum())
    variance = count * other / 12 * (total + 1 - tied / (total * (total - 1)))
    if variance <= 0:  # all values are the same
        return 1.0
    away = max(abs(statistic - count * other / 2) - 0.5, 0.0)
    return math.erfc(away / math.sqrt(2 * variance))


def discoveries(p_values: Sequence[float | None]) -> list[bool | None]:
    """Return which of several tests made together hold, by Benjamini and Hochberg.

    Args:
        p_values: One a test; None where there was none, which is None in the result, too.
    """
    known = sorted(value for value in p_values if value is not None)
    limit = -1.0
    for rank, value in enumerate(known, 1):
        if value <= rank / len(known) * FALSE_DISCOVERIES:
            limit = value
    return [None if value is None else value <= limit for value in p_values]


def median_of(ordered: FloatArray) -> float:
    """Return the median of a sorted sample."""
    return float(ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def statistic_of(ordered: FloatArray, statistic: Statistic) -> float:
    """Return a statistic of a sorted sample."""
    if statistic is Statistic.MEDIAN:
        return median_of(ordered)
    return float(ordered[: fastest_count(len(ordered))].mean())


def resolution_of(values: FloatArray) -> float:
    """Return the step of the clock in milliseconds: 0.001 when all are whole microseconds, else 0.

    ONNX Runtime writes whole microseconds, which is as long as a small layer takes.
    """
    micro = values[np.isfinite(values)] * 1000
    if micro.size and bool(np.all(np.abs(micro - np.round(micro)) < 1e-6)):
        return 0.001
    return 0.0
