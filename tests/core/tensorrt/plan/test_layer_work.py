"""Multiply-accumulates, matrix products and the roof."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from dld_tui.core.machine.peaks import gpu_peaks
from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer
from dld_tui.core.tensorrt.plan.layer_work import (
    above_roof,
    arithmetic_intensity,
    computed_bandwidth,
    convolution,
    gemm,
    gemm_dims,
    macs,
    peaks_of,
    placement,
    points_under_roofs,
    unknown_device,
    with_traffic,
    with_weights,
)
from dld_tui.core.tensorrt.plan.layers import is_pointwise, operations, read_layers
from tests.support.known import known
from tests.support.plans import plan
from tests.support.recorded import Recorded, settled


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


def conv(read: list[int], written: list[int], **fields: Any) -> EngineLayer:
    kind = fields.pop("kind", "CaskConvolution")
    return make(kind, [read], written, ParameterType="Convolution", **fields)


def window(**attributes: Any) -> EngineLayer:
    return conv([1, 16, 8, 8], [1, 16, 8, 8], Kernel=[3, 3], **attributes)


def pooling(**attributes: Any) -> EngineLayer:
    return make("CaskPooling", [[1, 4, 8, 8]], [1, 4, 4, 4], ParameterType="Pooling", **attributes)


FUSED: dict[str, Any] = {
    "ParameterType": "ConvActPool", "ConvKernel": [7, 7], "ConvOutMaps": 64, "ConvGroups": 1,
    "ConvStride": [2, 2], "ConvPrePadding": [3, 3], "ConvPostPadding": [3, 3],
    "ConvDilation": [1, 1], "PoolingWindowSize": [3, 3],
}  # fmt: skip
IMAGE = ([[1, 3, 224, 224]], [1, 64, 56, 56])
LAYERS = {
    "a convolution": CONV,
    "depthwise": conv([1, 16, 8, 8], [1, 16, 8, 8], kind="CudaDepthwiseConvolution",
                      Kernel=[3, 3], OutMaps=16, Groups=16),
    "a volume": conv([1, 2, 4, 4, 4], [1, 3, 4, 4, 4], Kernel=[1, 1, 1], OutMaps=3),
    "nothing in it": conv([0, 2, 4, 4], [0, 3, 4, 4], Kernel=[1, 1], OutMaps=3),
    "a deconvolution": make("CaskDeconvolution", [[1, 4, 5, 5]], [1, 2, 10, 10],
                            ParameterType="Deconvolution", Kernel=[2, 2], Stride=[2, 2], OutMaps=2),
    "with a pooling": make("ConvActPool", *IMAGE, **FUSED),
    "with a pooling, no paddings": make("ConvActPool", *IMAGE, **{
        key: value for key, value in FUSED.items() if "Padding" not in key and "Dil" not in key}),
    "with a pooling of other axes": make("ConvActPool", *IMAGE, **{**FUSED, "ConvStride": [2]}),
    "with a pooling, no steps": make("ConvActPool", *IMAGE, **{**FUSED, "ConvStride": [0, 1]}),
    "dilated, with a pooling": make("ConvActPool", *IMAGE, **{**FUSED, "ConvDilation": [2, 3]}),
    "no kernel": conv([1, 3, 4, 4], [1, 3, 4, 4]), "two axes": conv([1, 3], [1, 3], Kernel=[3, 3]),
    "a kernel of no size": conv([1, 3, 4, 4], [1, 3, 4, 4], Kernel=[0, 3], OutMaps=3),
    "too large": conv([2**60, 3, 4, 4], [2**60, 3, 4, 4], Kernel=[3, 3]),
    "large weights": conv([-1, 2**30, 4, 4], [-1, 2**30, 4, 4], Kernel=[3, 3], OutMaps=2**30),
    "dynamic": conv([-1, 8, -1, -1], [-1, 16, -1, -1], Kernel=[3, 3], OutMaps=16, Groups=2),
    "dynamic channels": conv([-1, -1, 4, 4], [-1, 16, 4, 4], Kernel=[3, 3], OutMaps=16),
    "dynamic, no kernel": conv([-1, 8, 4, 4], [-1, 16, 4, 4], OutMaps=16),
    "dynamic, nothing written": conv([-1, 8, 4, 4], [-1, 16, 4, 4], Kernel=[3, 3], OutMaps=0),
    "dynamic, no groups": conv([-1, 8, 4, 4], [-1, 16, 4, 4], Kernel=[3, 3], OutMaps=4, Groups=-1),
    "without a kernel in a log": make("CaskConvolution", [[1, 8, 4, 4]], [1, 8, 4, 4]),
    "without weights": make("CaskConvolution", [[1, 8, 4, 4]], [1, 16, 4, 4], Kernel=[3, 3],
                            OutMaps=16),
    "weights that are an input": conv([1, 8, 4, 4], [1, 16, 4, 4], Kernel=[3, 3], OutMaps=16,
                                      HasDynamicFilter=1),
    "a product": make("gemm", [[8, 128], [128, 32]], [8, 32]),
    "a batch of products": make("gemm", [[4, 12, 64, 80], [4, 12, 80, 64]], [4, 12, 64, 64]),
    "of weights": make("gemm", [[1, 3136]], [1, 1024], TacticName="cublas_gemvx"),
    "transposed": make("gemm", [[128, 8], [128, 32]], [8, 32]),
    "both transposed": make("gemm", [[8, 64, 32], [8, 64, 32]], [8, 64, 64]),
    "of one": make("gemm", [[1, 1], [7, 5]], [1, 5]), "of vectors": make("gemm", [[5]], [4]),
    "with a residual": make("gemm", [[4, 16], [4, 32]], [4, 32]),
    "with a bias": make("MatrixMultiply", [[4, 16], [1, 32], [16, 32]], [4, 32]),
    "a dynamic product": make("gemm", [[-1, 16]], [-1, 32]),
    "a dynamic batch": make("gemm", [[-1, 4, 16]], [-1, 4, 32]),
    "a dynamic row": make("gemm", [[-1, 2, 16]], [-1, 32]),
    "flattened rows": make("gemm", [[2, 64, 7, 7]], [2, 1024]),
    "rows that do not fit": make("gemm", [[3, 64, 7, 7]], [2, 1024]),
    # Weights times input: K is above N.
    "weights times input": make("gemm", [[2, 16, 100]], [2, 32, 100]),
    "no inputs": make("gemm", [], [4]), "nothing known": make("gemm", [[]], [4]),
    "no type": make("gemm", [[4, 16]], [4, 32], Inputs=[{"Name": "i", "Dimensions": [4, 16]}]),
    "a large product": make("gemm", [[2**30, 2**30]], [2**30, 2**30]),
    "another kernel": make("kgen", [[1, 2]], [1, 2]), "an open one": make("kgen", [[-1]], [-1]),
    "long steps": window(Stride=[4, 4]), "no steps": window(), "steps of 1": window(Stride=[1, 1]),
    "steps of other axes": window(Stride=[4]), "padded": window(
        Stride=[5, 5], PrePadding=[1, 1], PostPadding=[1, 1]),
    "padded on one axis": window(Stride=[5, 5], PrePadding=[1]),
    "dilated": window(Stride=[5, 5], Dilation=[2, 1]),
    "too wide": window(Stride=[5, 5], Dilation=[9, 1]),
    "a pooling": pooling(WindowSize=[1, 1], Stride=[2, 2]),
    "a pooling without a window": pooling(Stride=[2, 2]),
    "a slice": make("Slice", [[4, 8]], [4, 2]), "a gather": make("Gather", [[4, 8], [2]], [8, 8]),
    "a slice without outputs": make("Slice", [[4, 8]], [4, 2], Outputs=[]),
    "a selection in a type": make("NoOp", [[4, 8]], [1, 8], ParameterType="Slice"),
}  # fmt: skip


def test_whole_layers(recorded: Recorded) -> None:
    peaks = known(peaks_of({"Name": "NVIDIA A100 80GB PCIe"}))
    texts = {}
    for title, layer in LAYERS.items():
        whole = with_traffic(with_weights(layer))
        lines = [f"{convolution(whole)} {gemm(whole)}", f"{gemm_dims(whole)} {macs(whole)}"]
        lines.append(f"{whole.weights_bytes} {whole.weights_from}, unread {whole.unread_bytes},"
                     f" moves {whole.footprint}, {arithmetic_intensity(whole)}")  # fmt: skip
        for time_ms in (None, 0.0, 1e-9, 0.001, 0.01, 5.0):
            timed = replace(whole, time_ms=time_ms)
            lines.append(f"{time_ms} ms: {placement(timed, peaks)}")
        texts[title] = settled("\n".join(lines))
    slow = [replace(layer, time_ms=3.0) for layer in LAYERS.values()]
    points, roofs = points_under_roofs(slow, peaks)
    found = [f"{layer.name} {more:g} {rate:g}" for layer, more, rate in points]
    texts["points"] = settled("\n".join([*found, str(roofs)]))
    recorded("whole_layer_work", texts)


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
