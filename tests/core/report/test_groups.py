from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.report.groups import (
    GROUPINGS,
    NO_NODE,
    NO_SCOPE,
    UNKNOWN,
    group_layers,
    name_scope,
    priced,
)
from dld_tui.core.report.layer_table import groups_of
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.widgets.charts.report_charts import precision_rows

CONV = NodeLink((), "/enc/0/conv", "/enc/0/conv", "Conv", share=0.5)
RELU = NodeLink((), "/enc/0/relu", "/enc/0/relu", "Relu", share=0.5)
INNER = NodeLink(("If:then_branch",), "/dec/x", "/dec/x", "LSTM")
PLAIN = NodeLink((), ">out", "", "Conv")

LAYERS = [
    Layer("l0", "FusedConv", time_ms=4.0, nodes=(CONV, RELU), provider="CUDA", precision="float16"),
    Layer("l1", "LSTM", time_ms=3.0, nodes=(INNER,), provider="CPU", precision="float32"),
    Layer("l2", "Conv", time_ms=2.0, nodes=(PLAIN,), provider="CUDA", precision="float32"),
    Layer("l3", "ReorderInput", time_ms=1.0),
    Layer("l4", "Conv"),
]


def times(by: str) -> dict[str, float]:
    return {group.key: group.time_ms for group in group_layers(LAYERS, by)}


@pytest.mark.parametrize("by", GROUPINGS)
def test_no_time_is_lost_or_made(by: str) -> None:
    groups = group_layers(LAYERS, by)
    assert sum(group.time_ms for group in groups) == pytest.approx(10)
    assert sum(group.percent for group in groups) == pytest.approx(100)
    assert [g.time_ms for g in groups] == sorted((g.time_ms for g in groups), reverse=True)


def test_keys() -> None:
    assert times("type") == {"FusedConv": 4, "LSTM": 3, "Conv": 2, "ReorderInput": 1}
    assert times("provider") == {"CUDA": 6, "CPU": 3, UNKNOWN: 1}
    assert times("precision") == {"float16": 4, "float32": 5, UNKNOWN: 1}
    assert times("op") == {"Conv": 4, "LSTM": 3, "Relu": 2, NO_NODE: 1}
    assert times("scope") == {
        "/enc/0": 4, "If:then_branch › /dec": 3, NO_SCOPE: 2, NO_NODE: 1,
    }  # fmt: skip
    assert times("node")["If:then_branch › /dec/x"] == 3


def test_shared_time_is_an_estimate_unless_it_comes_together_again() -> None:
    by_node = {group.key: group.estimate for group in group_layers(LAYERS, "node")}
    assert by_node["/enc/0/conv"]
    assert not by_node[">out"]
    by_scope = {group.key: group.estimate for group in group_layers(LAYERS, "scope")}
    assert not by_scope["/enc/0"]


def test_counts() -> None:
    assert {g.key: g.count for g in group_layers(LAYERS, "type")}["Conv"] == 2


def test_nothing_measured_divides_nothing() -> None:
    (group,) = group_layers([Layer("a", "Conv")], "type")
    assert (group.time_ms, group.percent) == (0, 0)


def test_scope_of_a_name() -> None:
    assert name_scope(CONV) == "/enc/0"
    assert name_scope(NodeLink(("f",), "x", "x", "Add")) == "f"


def test_a_chart_has_what_the_table_has() -> None:
    shares = [row.value for row in precision_rows(LAYERS[:3], True)]
    assert shares == ["44.4 %", "44.4 %", "33.3 %", "33.3 %", "22.2 %", "22.2 %"]
    assert sum(group.percent for group in groups_of(LAYERS, "type", "conv")) == pytest.approx(60)


@given(
    times=st.lists(st.floats(0, 100), min_size=1, max_size=9),
    on_gpu=st.sets(st.integers(0, 8)),
    by=st.sampled_from(("layer", "type", "provider")),
)
def test_figures_of_groups_are_the_sums_of_those_of_their_layers(
    times: list[float], on_gpu: set[int], by: str
) -> None:
    """The second computation adds up what is printed of the layers."""
    layers = priced([
        Layer(
            f"l{n}", "Conv" if n % 3 else "Add", index=n, time_ms=time,
            gpu_time_ms=time / 2 if n in on_gpu else None,
            provider="CPUExecutionProvider" if n % 2 else "CUDAExecutionProvider",
        )
        for n, time in enumerate(times)
    ])  # fmt: skip
    costs = [
        (time / 2 if n in on_gpu else time if n % 2 else 0.0)
        if any(n < len(times) for n in on_gpu) else time
        for n, time in enumerate(times)
    ]  # fmt: skip
    total = sum(costs)
    keys = {"layer": "name", "type": "type", "provider": "provider"}
    expected: dict[str, float] = {}
    for layer, cost in zip(layers, costs, strict=True):
        key = getattr(layer, keys[by])
        share = 100 * cost / total if total > 0 else 0.0
        assert (layer.percent or 0.0) == pytest.approx(share)
        expected[key] = expected.get(key, 0.0) + share
    found = group_layers(layers, by)
    assert {group.key: group.percent for group in found} == pytest.approx(expected)
    assert sum(group.cost_ms for group in found) == pytest.approx(total)
