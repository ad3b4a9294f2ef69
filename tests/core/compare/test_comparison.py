"""The rows of a comparison: times, differences, groups."""

from __future__ import annotations

import numpy as np
import pytest

from dld_tui.core.compare.comparison import GROUPINGS, Comparison
from dld_tui.core.compare.records import Subject
from dld_tui.core.errors import UsageError
from dld_tui.core.report.records import Layer, NodeLink
from tests.support.compared import noisy, subject, timed
from tests.support.work import steps_in

FASTEST = 0.936
"""The mean of the fastest quarter of times that vary normally by 5 %."""


@pytest.fixture
def pair() -> tuple[Subject, Subject]:
    """Return a report of three layers, and one in which two are fused and one is new."""
    apart = subject(
        timed("/a/conv", noisy(1.0, 1), ["/a/conv"]),
        timed("/a/relu", noisy(0.5, 2), ["/a/relu"], "Relu"),
        timed("/b/add", noisy(0.2, 3), ["/b/add"], "Add"),
        latencies=noisy(2.0, 4),
    )
    fused = subject(
        timed("fused", noisy(0.9, 5), ["/a/conv", "/a/relu"], "FusedConv"),
        timed("/b/add", noisy(0.2, 6), ["/b/add"], "Add"),
        timed("reorder", noisy(0.1, 7), [], "ReorderOutput"),
        title="b.dldprof",
        latencies=noisy(1.5, 8),
    )
    return apart, fused


def test_the_base_can_be_any(pair: tuple[Subject, Subject]) -> None:
    forward, back = Comparison(pair), Comparison(pair, base=1)
    assert (forward.target, back.target) == (1, 0)
    ahead, behind = forward.end_to_end.cells[1], back.end_to_end.cells[0]
    assert ahead.delta_ms == pytest.approx(-0.5, abs=0.06)
    assert behind.delta_ms == pytest.approx(-(ahead.delta_ms or 0))
    with pytest.raises(UsageError, match="no report 3 among 2"):
        Comparison(pair, base=2)
    with pytest.raises(UsageError, match="two or more"):
        Comparison(pair[:1])
    with pytest.raises(UsageError, match="cannot compare by 'colour'"):
        forward.rows("colour")


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_keeps_the_whole_time(pair: tuple[Subject, Subject], by: str) -> None:
    rows = Comparison(pair).rows(by)
    for index in (0, 1):
        total = sum(row.cells[index].time_ms or 0 for row in rows)
        assert total == pytest.approx((1.7, 1.2)[index] * FASTEST, rel=0.03)


def test_the_work_grows_with_the_layers_and_no_faster() -> None:
    def large(seed: int, count: int) -> Subject:
        dice = np.random.default_rng(seed)
        times = dice.lognormal(-3, 0.2, (count, 200))
        names = [f"/block{index // 10}/layer{index}" for index in range(count)]
        layers = [
            Layer(
                name, "Conv", nodes=(NodeLink((), name, name, "Conv"),), index=index, time_ms=0.05
            )
            for index, name in enumerate(names)
        ]
        return Subject("x", "x", layers, times, profiled_ms=[1.0] * 200)

    def compare(subjects: list[Subject]) -> None:
        comparison = Comparison(subjects)
        assert len(comparison.rows()) == len(subjects[0].layers)
        assert comparison.explanation()

    compare([large(1, 10), large(2, 10)])  # modules are loaded at first use
    few, many = (steps_in(compare, [large(1, count), large(2, count)]) for count in (100, 200))
    assert many < 2.5 * few
