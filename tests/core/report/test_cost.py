from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dld_tui.core.reading.export import cost_json
from dld_tui.core.report.groups import has_gpu_times, output_bytes, priced
from dld_tui.core.report.records import Cost, Layer, NodeLink

CUDA, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


def test_without_a_gpu_nothing_is_changed() -> None:
    layers = [Layer("a", "Conv", time_ms=1.0, percent=100.0)]
    assert priced(layers)[0] is layers[0]
    assert not has_gpu_times(layers)


def test_layers_cost_their_kernels_or_their_own_time_on_a_processor() -> None:
    layers = [
        Layer("kernels", "Conv", provider=CUDA, time_ms=0.01, gpu_time_ms=3.0),
        Layer("launch only", "Reshape", provider=CUDA, time_ms=0.02),
        Layer("fallback", "NonZero", provider=CPU, time_ms=1.0),
    ]
    assert has_gpu_times(layers)
    assert [(one.cost_ms, one.percent) for one in priced(layers)] == [
        (3.0, 75.0), (None, None), (1.0, 25.0),
    ]  # fmt: skip


def test_nothing_costs_anything() -> None:
    (one,) = priced([Layer("a", "Conv", gpu_time_ms=0.0)])
    assert (one.cost_ms, one.percent) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("layer", "size"),
    [
        (Layer("told", "C", cost=Cost(output_bytes=7)), 7),
        (Layer("a", "C", output_dims=((2, 3), (4,)), output_types=("float16", "int64")), 44),
        (Layer("b", "C", output_dims=((3,),), output_types=("int4",)), 2),
        (Layer("c", "C", output_dims=((3,),), precision="float32"), 12),
        (Layer("open", "C", output_dims=(("N", 3),), output_types=("float16",)), None),
        (Layer("rank", "C", output_dims=(None,), output_types=("float16",)), None),
        (Layer("text", "C", output_dims=((3,),), output_types=("string",)), None),
        (Layer("none", "C"), None),
        (Layer("two", "C", output_dims=((1,), (1,)), precision="float32"), None),
    ],
)
def test_size_of_outputs(layer: Layer, size: int | None) -> None:
    assert output_bytes(layer) == size


def test_the_energy_of_nodes_is_an_estimate_by_their_time() -> None:
    def layer(ms: float, count: float, *shares: float) -> Layer:
        links = tuple(NodeLink((), f"n{at}", "", "Conv", share=s) for at, s in enumerate(shares))
        return Layer("l", "Conv", time_ms=ms, count=count, nodes=links, cost=Cost(1, 1))

    layers = [layer(3.0, 1.0, 0.75, 0.25), layer(1.0, 3.0, 1.0)]
    shared: Any = cost_json(layers, 2.0)
    assert [node["energy_j_estimate"] for node in shared["nodes"]] == pytest.approx(
        [1.125, 0.375, 0.5]
    )
    assert shared["above_roof_layers"] == 0
    above: Any = cost_json([replace(layers[0], cost=Cost(1, roof_ms=3.2))])
    assert above["above_roof_layers"] == 1
    unknown: Any = cost_json(layers)
    assert {node["energy_j_estimate"] for node in unknown["nodes"]} == {None}
