"""The rows of a comparison: times, differences, groups."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dld_tui.core.compare.comparison import GROUPINGS, Comparison
from dld_tui.core.compare.records import ComparisonRow, Subject, label
from dld_tui.core.compare.rows import sort_rows
from dld_tui.core.errors import UsageError
from dld_tui.core.report.records import Layer, NodeLink
from tests.support.compared import noisy, subject, timed
from tests.support.work import steps_in


def by_key(rows: list[ComparisonRow]) -> dict[str, ComparisonRow]:
    return {row.key: row for row in rows}


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


def test_rows_of_layers(pair: tuple[Subject, Subject]) -> None:
    rows = Comparison(pair).rows()
    assert [row.key for row in rows] == ["/a/conv", "reorder", "/b/add"]  # the largest first
    assert sum(row.cells[1].share_percent or 0 for row in rows) == pytest.approx(100)
    for order in ("name", "time", "ratio"):
        ordered = [row.key for row in sort_rows(rows, order, 0)]
        assert ordered == ["/a/conv", "/b/add", "reorder"], order
    merged, _, add = rows
    assert [cell.layers for cell in merged.cells] == [(0, 1), (0,)]
    assert merged.cells[0].time_ms == pytest.approx(1.5 * FASTEST, rel=0.03)
    delta = merged.cells[1].delta_ms
    assert delta == pytest.approx(-0.6, abs=0.05)
    assert merged.cells[1].ratio == pytest.approx(0.6, rel=0.05)
    assert (merged.match, merged.cells[1].noise, merged.cells[0].delta_ms) == ("node", False, None)
    assert add.cells[1].noise is True
    assert merged.state(1, 0) == ""
    three = Comparison([*pair, pair[0]])
    assert three.target == 2
    row = by_key(three.rows())["/a/conv"]
    assert [len(cell.layers) for cell in row.cells] == [2, 1, 2]
    assert row.cells[2].delta_ms == 0.0
    assert [label(index) for index in (0, 1, 25, 26)] == ["A", "B", "Z", "27"]


def test_what_is_in_one_report_only(pair: tuple[Subject, Subject]) -> None:
    row = by_key(Comparison(pair).rows())["reorder"]
    assert row.cells[0].time_ms is None
    assert row.cells[1].delta_ms == row.cells[1].time_ms
    assert (row.cells[1].ratio, row.cells[1].noise, row.match) == (None, None, "")
    assert row.state(1, 0) == "added"
    other = by_key(Comparison(pair, base=1).rows())["reorder"]
    assert other.cells[0].delta_ms == pytest.approx(-(row.cells[1].time_ms or 0))
    assert other.state(0, 1) == "removed"


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


def test_groups_share_fused_layers_and_say_so(pair: tuple[Subject, Subject]) -> None:
    comparison = Comparison(pair)
    nodes = by_key(comparison.rows("node"))
    assert nodes["/a/conv"].cells[1].time_ms == pytest.approx(0.45 * FASTEST, rel=0.03)
    assert nodes["/a/conv"].estimate
    assert nodes["/a/conv"].cells[1].noise is None  # half of two nodes is not one node
    assert not nodes["/b/add"].estimate
    scopes = by_key(comparison.rows("scope"))
    assert not scopes["/a"].estimate  # both nodes are in it: nothing had to be shared
    assert scopes["/a"].cells[1].time_ms == pytest.approx(0.9 * FASTEST, rel=0.03)
    types = by_key(comparison.rows("type"))
    assert types["FusedConv"].cells[0].time_ms is None
    assert types["Relu"].state(1, 0) == "removed"


def test_nodes_that_are_fused_alike_are_judged(pair: tuple[Subject, Subject]) -> None:
    row = by_key(Comparison([pair[1], pair[1]]).rows("node"))["/a/conv"]
    assert (row.estimate, row.cells[1].noise) == (True, True)


@pytest.mark.parametrize("by", GROUPINGS)
def test_every_grouping_keeps_the_whole_time(pair: tuple[Subject, Subject], by: str) -> None:
    rows = Comparison(pair).rows(by)
    for index in (0, 1):
        total = sum(row.cells[index].time_ms or 0 for row in rows)
        assert total == pytest.approx((1.7, 1.2)[index] * FASTEST, rel=0.03)


def test_a_group_is_the_sum_of_its_layers_by_how_often_they_run() -> None:
    # Two branches, one a pass: each takes 1 ms whenever it runs.
    nan = float("nan")
    branches = subject(timed("x", [1, nan] * 5, type="If"), timed("y", [nan, 1] * 5, type="If"))
    plain = subject(timed("x", 1.0, type="If"))
    comparison = Comparison([branches, plain])
    assert by_key(comparison.rows("type"))["If"].cells[0].time_ms == 1.0
    assert by_key(comparison.rows())["x"].cells[0].time_ms == 0.5
    assert comparison.layer_sum.cells[0].time_ms == 1.0


def test_end_to_end_is_of_the_same_source_everywhere(pair: tuple[Subject, Subject]) -> None:
    assert Comparison(pair).latency_source == "latency loop"
    imported = subject(timed("x", noisy(1.0, 1)), title="c.json")
    mixed = Comparison([pair[0], imported])
    assert mixed.latency_source == "profiled passes"
    assert mixed.end_to_end.cells[0].time_ms == pytest.approx(1.7, rel=0.05)


def test_decoders_are_compared_by_their_first_token_too(pair: tuple[Subject, Subject]) -> None:
    one, other = (
        replace(one, first_tokens_ms=noisy(ms, 9)) for one, ms in zip(pair, (8.0, 6.0), strict=True)
    )
    comparison = Comparison([one, other])
    [_, first, _] = comparison.whole
    assert [cell.time_ms for cell in first.cells] == pytest.approx([8.0, 6.0], rel=0.05)
    assert first.cells[1].noise is False
    assert (
        "To the first token B takes 5.995 ms where A takes 7.993 ms" in comparison.explanation()[1]
    )
    halved = replace(other, settings={"input_shapes": {"ids": [2, 8]}})
    of_one = replace(one, settings={"input_shapes": {"ids": [1, 8]}})
    assert Comparison([of_one, halved]).whole[1].cells[1].time_ms == pytest.approx(3.0, rel=0.05)
    assert Comparison([one, pair[1]]).first_token is None


def test_without_times_by_pass_only_medians_are_compared() -> None:
    one = subject(timed("x", 1.0), timed("never", float("nan")), by_pass=False)
    other = subject(timed("x", 3.0), by_pass=False)
    row = by_key(Comparison([one, other]).rows())["x"]
    assert (row.cells[1].delta_ms, row.cells[1].ratio, row.cells[1].noise) == (2.0, 3.0, None)
    assert Comparison([one, other]).end_to_end.cells[1].time_ms is None


def test_layers_of_the_same_name_stay_apart() -> None:
    twice = subject(timed("x", 1.0), timed("x", 2.0))
    assert [row.key for row in Comparison([twice, twice]).rows()] == ["x", "x #2"]


# On a GPU


def gpu_report(kernels: bool, title: str = "g.dldprof") -> Subject:
    """Return a report of a layer on the GPU and one on the CPU."""
    cuda = timed(
        "g", 0.1, ["g"], provider="CUDAExecutionProvider", gpu_time_ms=2.0 if kernels else None
    )
    cpu = timed("c", 0.5, ["c"], "Add", provider="CPUExecutionProvider")
    made = subject(cuda, cpu, title=title)
    times = np.array([[2.0] * 10, [np.nan] * 10])
    return Subject(**{**vars(made), "gpu_times": times if kernels else None})


def test_kernels_are_compared_where_all_have_them() -> None:
    on_cpu = subject(timed("g", 8.0, ["g"], provider="CPUExecutionProvider"))
    comparison = Comparison([on_cpu, gpu_report(kernels=True)])
    assert [measured.on_gpu for measured in comparison.measured] == [False, True]
    rows = by_key(comparison.rows())
    assert rows["g"].cells[1].time_ms == 2.0
    assert rows["c"].cells[1].time_ms == 0.5  # it fell back to the CPU, so that is its time


def test_launching_is_not_compared_with_computing() -> None:
    comparison = Comparison([gpu_report(kernels=True), gpu_report(kernels=False)])
    assert [measured.on_gpu for measured in comparison.measured] == [False, False]
    assert by_key(comparison.rows())["g"].cells[0].time_ms == pytest.approx(0.1)
    assert any("without recording its kernels" in line for line in comparison.unfair)


# Size


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
