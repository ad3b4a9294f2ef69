"""Which nodes of two versions take longer or shorter, by pairs of runs that take turns.

A fused layer is one time for several nodes, and versions can fuse differently. So nodes that share
a layer in any run are compared together, and no time is split by estimate. Renamed nodes are
matched by the structure of the models.

A gate tests hundreds of nodes whose times depend on each other, by few pairs. The signs of the
changes of a pair are equally likely where versions are alike, of all nodes together: each of the
``2^(n-1)`` ways to swap versions within ``n`` pairs is as likely as what was measured. A node has
changed where its statistic exceeds the largest of all nodes in all but 5 % of these ways (Westfall
and Young, "Resampling-Based Multiple Testing", 1993, section 2.6: step-down maxT). So, whatever
the distributions and their dependence, at most 5 % of the gates of equal models name any node, and
six pairs are enough for any number of nodes.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError
from dld_tui.core.report.records import NodeLink

if TYPE_CHECKING:
    from dld_tui.core.compare.diff.model_diff import ScopeDiff
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.report.measurement import FloatArray

SEPARATOR = "\x1e"
"""Between the labels of nodes that a layer computes together. A name that has it does no harm: its
parts are compared as if they were nodes."""
FALSE_ALARMS = 0.05
"""The share of the gates of equal models that may name a node."""
_RESOLUTION = 0.005
"""A change of a node that is smaller than this part of its time is not told from noise of 0."""
_MOST_SWAPS = 4096
_CHUNK_CELLS = 4_000_000
_NAMED = 3


@dataclass(frozen=True)
class NodeRuns:
    """Nodes that are compared together, with the time of each run in milliseconds."""

    nodes: tuple[str, ...]
    """Labels, those of the base where it has the node: untrusted text."""
    base: tuple[float, ...]
    """Empty where only the new version runs these nodes."""
    new: tuple[float, ...]
    """Empty where only the base runs them."""

    @property
    def title(self) -> str:
        """The labels, shortened if there are many; untrusted text."""
        more = len(self.nodes) - _NAMED
        listed = " + ".join(self.nodes[:_NAMED])
        return f"{listed} + {more} more" if more > 0 else listed


def node_runs(
    base: Sequence[Mapping[str, float]],
    new: Sequence[Mapping[str, float]],
    partners: Mapping[str, str] = {},
) -> list[NodeRuns]:
    """Return the times by nodes that every run of a version has, in the order of the base.

    Args:
        base: Milliseconds of each run by labels joined by SEPARATOR.
        new: The same of the new version, a run for each of the base.
        partners: What nodes of the new version are called in the base, by label.
    """
    named = [{key: _labels(key, partners) for key in run} for run in new]
    plain = [{key: _labels(key, {}) for key in run} for run in base]
    groups = _joined(labels for run in (*plain, *named) for labels in run.values())
    members: dict[str, list[str]] = {}
    for label, group in groups.items():
        members.setdefault(group, []).append(label)
    before, after = (
        [_summed(run, labels, groups) for run, labels in zip(runs, keys, strict=True)]
        for runs, keys in ((base, plain), (new, named))
    )
    comparable = []
    for group, labels in members.items():
        times = [
            tuple(run[group] for run in side) if all(group in run for run in side) else ()
            for side in (before, after)
        ]
        is_partly = [not own and any(group in run for run in side)
                     for own, side in zip(times, (before, after), strict=True)]  # fmt: skip
        if not any(is_partly):
            comparable.append(NodeRuns(tuple(labels), times[0], times[1]))
    return comparable


def _labels(key: str, partners: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(partners.get(label, label) for label in key.split(SEPARATOR))


def _joined(layers: Iterable[tuple[str, ...]]) -> dict[str, str]:
    """Return the group of each label, which is called like its first one."""
    parents: dict[str, str] = {}

    def root(label: str) -> str:
        while (parent := parents.setdefault(label, label)) != label:
            parents[label] = label = parents[parent]
        return label

    for labels in layers:
        first = root(labels[0])
        for label in labels[1:]:
            parents[root(label)] = first
    return {label: root(label) for label in [*parents]}


def _summed(
    run: Mapping[str, float], labels: Mapping[str, tuple[str, ...]], groups: Mapping[str, str]
) -> dict[str, float]:
    times: dict[str, float] = {}
    for key, ms in run.items():
        group = groups[labels[key][0]]
        times[group] = times.get(group, 0.0) + ms
    return times


def changed(log_ratios: FloatArray) -> list[bool]:
    """Return which nodes changed.

    Args:
        log_ratios: The logarithm of new / base: a row for each node, a column for each pair.
    """
    nodes, pairs = log_ratios.shape
    result = np.zeros(nodes, dtype=bool)
    if not nodes or not pairs:
        return [False] * nodes
    # The square is the same whatever versions are swapped, as the test requires.
    scale = np.sqrt(np.mean(log_ratios**2, axis=1) + _RESOLUTION**2)
    scaled = log_ratios / scale[:, None] / pairs
    statistic = np.abs(scaled.sum(axis=1))
    swaps = _swaps(pairs)
    while not result.all():
        rest = np.flatnonzero(~result)
        largest = np.sort(_largest(scaled[rest], swaps))
        below = np.searchsorted(largest, statistic[rest] - 1e-9, "left")
        named = rest[1 - below / len(largest) <= FALSE_ALARMS]
        if not len(named):
            break
        result[named] = True
    return [bool(is_named) for is_named in result]


def _swaps(pairs: int) -> FloatArray:
    """Return the signs of all ways to swap versions within pairs, that of no swap first.

    The first pair is never swapped, as all swapped is like none. Of very many ways, some are drawn.
    """
    if 2 ** (pairs - 1) <= _MOST_SWAPS:
        rest = itertools.product((1.0, -1.0), repeat=pairs - 1)
        return np.asarray([(1.0, *signs) for signs in rest])
    drawn = np.random.default_rng(0).choice((1.0, -1.0), (_MOST_SWAPS, pairs))
    drawn[0] = 1.0
    return drawn


def _largest(scaled: FloatArray, swaps: FloatArray) -> FloatArray:
    """Return the largest statistic of all nodes for each way to swap."""
    step = max(1, _CHUNK_CELLS // len(scaled))
    parts = [
        np.abs(swaps[at : at + step] @ scaled.T).max(axis=1) for at in range(0, len(swaps), step)
    ]
    return np.concatenate(parts)


def partners_of(
    base: Path,
    new: Path,
    base_runs: Iterable[Mapping[str, float]],
    new_runs: Iterable[Mapping[str, float]],
) -> dict[str, str]:
    """Return what nodes of the new version that the base has not are called in the base, by label.

    Args:
        base: A model.
        new: The other model.
        base_runs: Times of runs, as for :func:`node_runs`.
        new_runs: The same of the new version.

    If a model can no longer be read, no nodes are matched.
    """
    before, after = (
        {label for run in runs for key in run for label in _labels(key, {})}
        for runs in (base_runs, new_runs)
    )
    if not (before - after and after - before):
        return {}
    from dld_tui.core.compare.diff.compare import diff_documents
    from dld_tui.core.llm.folder import open_document

    try:
        with closing(open_document(base)) as old, closing(open_document(new)) as other:
            scopes = diff_documents(old, other, weights=False).scopes
            pairs = [pair for scope in scopes for pair in _partners(scope)]
    except DldError:
        return {}
    return {
        mine: theirs for theirs, mine in pairs
        if mine in after and mine not in before and theirs in before and theirs not in after
    }  # fmt: skip


def _partners(diff: ScopeDiff) -> Iterator[tuple[str, str]]:
    """Yield the labels of a node in the old and in the new scope."""
    for index, partner in enumerate(diff.partners):
        if partner >= 0:
            yield _label(diff.old, index), _label(diff.new, partner)


def _label(scope: Scope, index: int) -> str:
    """Return the label of a node as :attr:`NodeLink.label` spells it."""
    node = scope.nodes[index]
    return NodeLink(scope.path, node.ref, node.name, node.op_type).label
