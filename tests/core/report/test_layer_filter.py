from __future__ import annotations

import pytest

from dld_tui.core.report.layer_table import groups_of, matcher, select, summarise_selection
from dld_tui.core.report.records import Layer, NodeLink


def layer(index: int, name: str, type: str, time_ms: float | None, **more: object) -> Layer:
    return Layer(name, type, index=index, time_ms=time_ms, **more)  # type: ignore[arg-type]


LAYERS = (
    layer(0, "/stem/conv", "Conv", 2.0, provider="CUDAExecutionProvider", precision="float16",
          percent=50.0, count=1.0,
          nodes=(NodeLink((), "c", "/stem/conv", "Conv"),), confidence="name"),
    layer(1, "/head/relu", "Relu", 0.5, provider="CPUExecutionProvider", precision="float32",
          percent=12.5, count=3.0,
          nodes=(NodeLink(("If_0", "then_branch"), "r", "/head/relu", "Relu"),)),
    layer(2, "never", "Cast", None),
    layer(3, "/head/conv", "Conv", 1.5, percent=37.5, count=1.0, precision="float32"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", [0, 1, 2, 3]),
        ("CONV", [0, 3]),
        ("conv head", [3]),
        ("type:conv", [0, 3]),
        ("name:conv", [0, 3]),
        ("provider:cpu", [1]),
        ("precision:fp32", [1, 3]),
        ("node:then_branch", [1]),
        ("op:relu", [1]),
        ("scope:head", [1]),
        ("ms>1", [0, 3]),
        ("ms>=1.5 ms<2", [3]),
        ("%>40", [0]),
        ("runs>1", [1]),
        ("ms>1.2.3", []),
        ("nothing:here", []),
        ("   ", [0, 1, 2, 3]),
    ],
)
def test_filter(text: str, expected: list[int]) -> None:
    assert select(LAYERS, text) == expected


def test_an_empty_filter_is_no_filter() -> None:
    assert matcher("  ") is None


def test_one_group_is_a_filter() -> None:
    assert select(LAYERS, group=("type", "Conv")) == [0, 3]
    assert select(LAYERS, "head", ("type", "Conv")) == [3]
    assert select(LAYERS, group=("node", LAYERS[1].nodes[0].label)) == [1]


def test_groups_follow_the_filter_and_stay_percent_of_everything() -> None:
    groups = groups_of(LAYERS, "type")
    assert [(one.key, one.count, one.time_ms, one.percent) for one in groups] == [
        ("Conv", 2, 3.5, 87.5),
        ("Relu", 1, 0.5, 12.5),
        ("Cast", 1, 0.0, 0.0),
    ]
    (only,) = groups_of(LAYERS, "type", "stem")
    assert (only.key, only.percent) == ("Conv", 50.0)


def test_selection_sums() -> None:
    found = summarise_selection([LAYERS[0], LAYERS[1], LAYERS[3]])
    assert found is not None
    assert (found.count, found.total_ms, found.min_ms, found.max_ms) == (3, 4.0, 0.5, 2.0)
    assert found.mean_ms == pytest.approx(4 / 3)
    assert found.percent == 100.0
    assert dict(found.distinct)["type"] == (("Conv", 2), ("Relu", 1))
    assert summarise_selection([]) is None
