"""Multiply-accumulates, matrix products and the roof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dld_tui.core.machine.peaks import gpu_peaks
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer
from dld_tui.core.tensorrt.plan.layer_work import (
    Gemm,
    GemmDims,
    above_roof,
    arithmetic_intensity,
    computed_bandwidth,
    convolution,
    gemm,
    gemm_dims,
    macs,
    peaks_of,
    placement,
    unknown_device,
    with_traffic,
    with_weights,
)
from dld_tui.core.tensorrt.plan.layers import is_pointwise, operations, read_layers
from dld_tui.core.tensorrt.plan.tables import make_table
from tests.support.known import known
from tests.support.plans import plan


def make(kind: str, read: list[list[int]], written: list[int], **fields: Any) -> EngineLayer:
    raw = {
        "Name": "x", "LayerType": kind,
        "Inputs": [
            {"Name": f"i{n}", "Dimensions": dims, "Format/Datatype": "Half"}
            for n, dims in enumerate(read)
        ],
        "Outputs": [{"Name": "o", "Dimensions": written, "Format/Datatype": "Half"}],
    } | fields  # fmt: skip
    return read_layers([raw]).layers[0]


CONV = make(
    "CaskConvolution", [[2, 16, 10, 10]], [2, 32, 8, 8], ParameterType="Convolution",
    Kernel=[3, 3], OutMaps=32, Groups=1, Weights={"Type": "Half", "Count": 16 * 32 * 9},
)  # fmt: skip


def test_convolution() -> None:
    count = 2 * 32 * 8 * 8 * 16 * 9
    assert macs(CONV) == count
    assert gemm(CONV) == Gemm(1, 2 * 64, 32, 16 * 9)
    moved = 2 * (2 * 16 * 100 + 2 * 32 * 64 + 16 * 32 * 9)
    assert arithmetic_intensity(CONV) == pytest.approx(count / moved)


def test_convolutions_of_any_form() -> None:
    depthwise = make(
        "CudaDepthwiseConvolution", [[1, 16, 8, 8]], [1, 16, 8, 8], ParameterType="Convolution",
        Kernel=[3, 3], OutMaps=16, Groups=16,
    )  # fmt: skip
    assert macs(depthwise) == 16 * 64 * 9
    assert gemm(depthwise) == Gemm(16, 64, 1, 9)
    volume = make(
        "CaskConvolution", [[1, 2, 4, 4, 4]], [1, 3, 4, 4, 4], ParameterType="Convolution",
        Kernel=[1, 1, 1], OutMaps=3,
    )  # fmt: skip
    assert macs(volume) == 64 * 6
    layer = make(
        "CaskConvolution", [[0, 2, 4, 4]], [0, 3, 4, 4], ParameterType="Convolution",
        Kernel=[1, 1], OutMaps=3,
    )  # fmt: skip
    assert macs(layer) == 0
    layer = make(
        "CaskDeconvolution", [[1, 4, 5, 5]], [1, 2, 10, 10], ParameterType="Deconvolution",
        Kernel=[2, 2], Stride=[2, 2], OutMaps=2,
    )  # fmt: skip
    assert macs(layer) == 25 * 4 * 2 * 4
    layer = make(
        "ConvActPool", [[1, 3, 224, 224]], [1, 64, 56, 56], ParameterType="ConvActPool",
        ConvKernel=[7, 7], ConvOutMaps=64, ConvGroups=1, ConvStride=[2, 2],
        ConvPrePadding=[3, 3], ConvPostPadding=[3, 3], ConvDilation=[1, 1],
        PoolingWindowSize=[3, 3],
    )  # fmt: skip
    found = known(convolution(layer))
    assert found.out_dims == (112, 112)
    assert macs(layer) == 112 * 112 * 64 * 3 * 49


@pytest.mark.parametrize(
    ("read", "written", "product"),
    [
        ([[8, 128], [128, 32]], [8, 32], Gemm(1, 8, 32, 128)),
        ([[4, 12, 64, 80], [4, 12, 80, 64]], [4, 12, 64, 64], Gemm(48, 64, 64, 80)),
        ([[1, 3136]], [1, 1024], Gemm(1, 1, 1024, 3136)),
        ([[128, 8], [128, 32]], [8, 32], Gemm(1, 8, 32, 128)),
    ],
)
def test_matrix_products(read: list[list[int]], written: list[int], product: Gemm) -> None:
    layer = make("gemm", read, written)
    assert gemm(layer) == product
    assert macs(layer) == product.macs


@pytest.mark.parametrize(
    "layer",
    [
        make("kgen", [[1, 2]], [1, 2]),
        make("gemm", [[-1, 3136]], [-1, 1024]),
        make("gemm", [], [4]),
        make("CaskConvolution", [[1, 3]], [1, 3], ParameterType="Convolution", Kernel=[3, 3]),
        make("CaskConvolution", [[1, 3, 4, 4]], [1, 3, 4, 4], ParameterType="Convolution"),
        make(
            "CaskConvolution", [[2**60, 3, 4, 4]], [2**60, 3, 4, 4],
            ParameterType="Convolution", Kernel=[3, 3],
        ),
    ],
)  # fmt: skip
def test_what_is_not_known(layer: EngineLayer) -> None:
    assert macs(layer) is None
    assert arithmetic_intensity(layer) is None


def test_peaks_and_why_there_is_no_roof() -> None:
    a100 = known(peaks_of({"Selected Device": "NVIDIA A100 80GB PCIe"}))
    assert a100.bandwidth == 1935e9
    clocks = {"Memory Bus Width": 5120.0, "Memory Clock Rate": 1.512}
    assert computed_bandwidth(clocks) == pytest.approx(1935.36)
    cuda = {"GLOBAL_MEMORY_BUS_WIDTH": 384, "MEMORY_CLOCK_RATE": 7001000}
    assert computed_bandwidth(cuda) == pytest.approx(672, rel=1e-3)
    assert computed_bandwidth({"Memory Bus Width": "x"}) is None
    clocked = known(peaks_of({"Name": "NVIDIA A100 80GB PCIe", **clocks}))
    assert clocked.bandwidth == pytest.approx(1935.36e9)
    assert peaks_of({"Name": "NVIDIA A1000", **clocks}) is None
    assert unknown_device(plan([], device={"Name": "NVIDIA T4"})) == ""
    assert "do not say which device" in unknown_device(plan([]))
    assert "peaks of Abacus" in unknown_device(plan([], device={"Name": "Abacus"}))


def test_under_the_roof() -> None:
    peaks = known(peaks_of({"Name": "NVIDIA A100 80GB PCIe"}))
    timed = EngineLayer(**{**vars(CONV), "time_ms": 0.01})
    found = known(placement(timed, peaks))
    intensity = known(arithmetic_intensity(timed))
    assert found.efficiency is not None
    assert found.bound == "launch"
    assert found.attainable == pytest.approx(2 * intensity * 1935e9)
    assert found.efficiency == pytest.approx(timed.footprint / 1e-5 / 1935e9)  # type: ignore[operator]
    untimed = known(placement(CONV, peaks))
    assert (untimed.bound, untimed.efficiency) == ("memory", None)
    slow = known(placement(replace(CONV, time_ms=5.0), peaks))
    assert slow.bound == "overhead"
    assert placement(make("kgen", [[-1]], [-1]), peaks) is None


def test_operations_inside() -> None:
    listed = make("PointWiseV2", [[1]], [1], Operations=["auto const y = f(x);", ["a", 1]])
    assert operations(listed) == ("auto const y = f(x);", "a 1")
    generated = make("kgen", [[1]], [1], TacticName="__myl_MulSumCast_0xf51780")
    assert operations(generated) == ("Mul", "Sum", "Cast")
    nested = make("PointWise", [[1]], [1], Name="PWN(PWN(Sigmoid_1), Mul_2)")
    assert operations(nested) == ("Sigmoid_1", "Mul_2")
    assert is_pointwise(listed)
    assert is_pointwise(generated)
    assert not is_pointwise(CONV)


def test_the_weights_of_a_product_of_myelin_are_estimated_from_its_shapes() -> None:
    """node_linear of a cookbook engine of TensorRT 10.16: without them it looked compute bound."""
    layer = with_weights(make("gemm", [[1, 3136]], [1, 1024], TacticName="cublas_gemvx"))
    assert (layer.weights_bytes, layer.weights_from) == (2 * 3136 * 1024, "shapes")
    assert gemm(layer) == Gemm(1, 1, 1024, 3136)
    peaks = known(peaks_of({"Name": "NVIDIA H100 PCIe"}))
    found = known(placement(layer, peaks))
    assert found.bound == "memory"


def test_weights_are_known_where_shapes_tell_them() -> None:
    layer = with_weights(make("gemm", [[-1, 16]], [-1, 32]))
    assert (layer.weights_bytes, layer.weights_from) == (2 * 16 * 32, "shapes")
    assert gemm_dims(layer) == GemmDims(1, None, 32, 16)
    assert layer.footprint is None  # the input's size is not known
    layer = with_weights(make("gemm", [[8, 64, 32], [8, 64, 32]], [8, 64, 64]))
    assert (layer.weights_bytes, layer.weights_from) == (0, "file")
    assert gemm(layer) == Gemm(8, 64, 64, 32)
    layer = with_weights(make("gemm", [[4, 16], [4, 32]], [4, 32]))  # a residual of the result
    assert (layer.weights_bytes, layer.weights_from) == (2 * 16 * 32, "shapes")


def test_rows_that_are_flattened_for_the_product() -> None:
    assert gemm_dims(make("gemm", [[2, 64, 7, 7]], [2, 1024])).k == 64 * 49
    # Weights times input: K is above N.
    assert gemm_dims(make("gemm", [[2, 16, 100]], [2, 32, 100])).k == 16


def test_a_convolution_of_which_nothing_tells_its_weights() -> None:
    """A line of a build log has no kernel: what it moves is not known, and not just its tensors."""
    layer = with_weights(make("CaskConvolution", [[1, 8, 4, 4]], [1, 8, 4, 4]))
    assert (layer.weights_from, layer.footprint) == ("unknown", None)
    listed = with_weights(
        make("CaskConvolution", [[1, 8, 4, 4]], [1, 16, 4, 4], Kernel=[3, 3], OutMaps=16)
    )
    assert (listed.weights_bytes, listed.weights_from) == (2 * 8 * 16 * 9, "shapes")


def test_kernel_and_groups_where_the_size_is_dynamic() -> None:
    layer = make(
        "CaskConvolution", [[-1, 8, -1, -1]], [-1, 16, -1, -1], Kernel=[3, 3], OutMaps=16, Groups=2
    )
    table = make_table(plan([layer]), "convolutions")
    row = dict(zip(table.keys, table.values(table.rows[0]), strict=True))
    assert [row[key] for key in ("kernel", "groups", "m", "n", "k")] == ["3x3", 2, None, 8, 36]


def test_a_layer_faster_than_its_roof_has_no_share_of_it() -> None:
    peaks = known(gpu_peaks("A100-SXM4-80GB"))
    size = known(CONV.footprint)
    limit_ms = 1000 * size / peaks.bandwidth
    shares = []
    for factor in (2.0, 1.0, 0.9):
        pooling = replace(CONV, type="Pooling", subtype="Pooling", time_ms=factor * limit_ms)
        placed = placement(pooling, peaks)
        shares.append(None if placed is None else placed.efficiency)
        told = above_roof([pooling], {"Name": "A100-SXM4-80GB"})
        assert ("1 layer is faster" in told) is (placed is None)
    assert shares == [pytest.approx(0.5), pytest.approx(1.0), None]


@pytest.mark.parametrize(
    ("attributes", "read"),
    [
        ({"Kernel": [1, 1], "Stride": [2, 2]}, 4 * 4),
        ({"Kernel": [3, 3], "Stride": [2, 2], "PrePadding": [1, 1], "PostPadding": [1, 1]}, 8 * 8),
        ({"Kernel": [2, 1], "Stride": [4, 1]}, 4 * 8),
        ({"Kernel": [2, 2], "Stride": [2, 2], "Dilation": [2, 2]}, 4 * 4),
    ],
)
def test_a_window_in_long_steps_does_not_read_what_is_between(
    attributes: dict[str, Any], read: int
) -> None:
    """Of 8 x 8 places, counted by hand."""
    first = replace(CONV.inputs[0], dims=(1, 16, 8, 8))
    layer = replace(CONV, inputs=(first,), attributes=attributes, unread_bytes=0)
    size = known(first.bytes)
    assert with_traffic(layer).unread_bytes == size - size * read // 64
