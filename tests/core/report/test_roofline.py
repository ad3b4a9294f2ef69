"""What measured layers cost and what limits them, against figures made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.core.machine.peaks import MemoryLevel, Peaks
from dld_tui.core.model.document.document import Document
from dld_tui.core.report.formats.ort_profile import Kernel
from dld_tui.core.report.records import Cost, Layer
from dld_tui.core.report.roofline import (
    NodeKind,
    is_above_roof,
    kernel_cost,
    limiter,
    per_second,
    roof_percent,
    roofline_text,
    with_reached_roofs,
    with_roof,
)
from tests.support.models import parse

F = "float32"
ROOF = Peaks(
    "x", {"fp32": 1e12, "int8": 4e12}, 1e10, (MemoryLevel(1, 1e11),), 1 << 20, launch_ms=0.001
)


def test_a_kernel_by_its_own_shapes() -> None:
    kernel = Kernel(
        "c", "FusedConv", input_types=(F, F, F), output_types=(F,),
        input_dims=((1, 4, 8, 8), (6, 4, 3, 3), (6,)), output_dims=((1, 6, 8, 8),),
    )  # fmt: skip
    made, macs = 6 * 64, 6 * 64 * 4 * 9
    moved = 4 * (4 * 64 + 6 * 36 + 6 + made)
    assert kernel_cost(kernel, None) == Cost(2 * macs + made, moved)


def test_weights_that_were_packed_beforehand_are_read_all_the_same(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[5, 2] x) => (float[5, 3] y)
    <float[3, 2] w = {1, 2, 3, 4, 5, 6}>
    { y = Gemm <transB = 1> (x, w, "") }
    """
    onnx.save(parse(text), tmp_path / "m.onnx")
    (node,) = Document.open(tmp_path / "m.onnx").main.nodes
    about: dict[str, Any] = {"output_dims": ((5, 3),), "output_types": (F,)}
    work = Cost(2 * 5 * 2 * 3, 4 * (10 + 6 + 15))
    packed = Kernel("g", "Gemm", input_dims=((5, 2),), input_types=(F,), **about)
    assert kernel_cost(packed, node) == work
    whole = Kernel("g", "Gemm", input_dims=((5, 2), (3, 2)), input_types=(F, F), **about)
    assert kernel_cost(whole, node) == work
    assert kernel_cost(packed, None).flops is None


def test_what_is_not_known_and_what_only_runs_others() -> None:
    assert kernel_cost(Kernel("k", "NobodyKnowsThis", output_dims=((2,),)), None) == Cost()
    assert kernel_cost(Kernel("i", "If"), None) == Cost(0, 0)
    picked = Kernel("g", "Gather", input_dims=((1000, 8), (3,)), input_types=(F, "int64"),
                    output_dims=((3, 8),), output_types=(F,))  # fmt: skip
    assert kernel_cost(picked, None) == Cost(0, 96 + 24 + 96)


def layer(flops: int, moved: int, time_ms: float, **more: float) -> Layer:
    cost = with_roof(Cost(flops, moved), (F,), ROOF)
    return Layer("l", "Conv", cost=cost, time_ms=time_ms, **more)  # type: ignore[arg-type]


def test_the_roof_is_the_slower_of_work_and_bytes() -> None:
    computes = layer(2 * 10**9, 10**6, 4.0)  # 2 ms of work, 10 us of bytes near by
    assert limiter(computes) == "compute"
    assert roof_percent(computes) == pytest.approx(50)
    assert per_second(computes, 2 * 10**9) == pytest.approx(5e11)
    moves = layer(10**6, 10**8, 20.0)  # 10 ms of bytes, too many for a cache
    assert limiter(moves) == "memory"
    assert roof_percent(moves) == pytest.approx(50)
    twice = layer(2 * 10**9, 10**6, 4.0, count=2.0)  # a pass runs it twice
    assert roof_percent(twice) == pytest.approx(100)
    on_gpu = layer(2 * 10**9, 10**6, 9.0, gpu_time_ms=2.5)
    assert roof_percent(on_gpu) == pytest.approx(80)
    faster = layer(2 * 10**9, 10**6, 1.0)  # than the roof, which was measured on a busy machine
    assert roof_percent(faster) is None
    assert roofline_text([faster]) == ""
    assert limiter(layer(10**5, 10**5, 1.0)) == "overhead"  # far below both
    assert limiter(layer(10, 10, 0.004)) == "launch"
    assert limiter(Layer("l", "Conv", time_ms=1.0)) is None
    text = roofline_text([computes, moves, Layer("l", "X", time_ms=1.0)])
    assert text == (
        "memory 80 % (at 50 % of the limit), compute 16 % (at 50 % of the limit);"
        " 96.0 % of the time is covered"
    )


def test_the_peak_is_that_of_the_type_a_layer_computes_in() -> None:
    roof = Peaks("x", {"fp32": 1e12, "tf32": 8e12, "fp16": 16e12, "int8": 4e12}, 1e15)

    def peak(op_type: str, first: str = F, level: int = 0) -> tuple[Any, Any]:
        found = with_roof(Cost(10**12, 1), (first,), roof, NodeKind(op_type, level))
        return found.peak, round(found.roof_ms or 0, 3)

    assert peak("Relu") == ("fp32", 1000)
    assert peak("MatMul") == ("tf32", 125)
    assert peak("MatMul", "float16") == ("fp16", 62.5)
    assert peak("MatMul", "bfloat16") == ("fp32", 1000)  # of which nothing is known
    assert peak("MatMulInteger", "uint8") == ("int8", 250)
    assert peak("DynamicQuantizeMatMul") == ("int8", 250)
    assert peak("MatMulNBits", level=4) == ("int8", 250)
    assert peak("MatMulNBits") == ("tf32", 125)


def test_a_layer_that_is_faster_than_the_peaks_of_a_cpu_raises_them() -> None:
    """Peaks may have been measured while other programs ran; what a layer reaches, there is."""
    cpu: dict[str, Any] = {"provider": "CPUExecutionProvider"}
    slow, fast = (layer(10**9, 10**6, ms, index=at, **cpu) for at, ms in enumerate((1.0, 0.5)))
    near = layer(10**6, 10**6, 0.05, index=2, **cpu)  # 0.01 ms at 100 GB/s
    far, cached = (layer(10**6, size, 0.02, index=at, **cpu)
                   for at, size in ((3, 10**8), (4, 10**5)))  # fmt: skip
    raised = with_reached_roofs([slow, fast, near, far, cached])
    assert [roof_percent(one) for one in raised] == pytest.approx([50, 100, 0.4, 100, 0.1])
    assert not any(map(is_above_roof, raised))
    on_gpu = layer(10**9, 10**6, 0.5, gpu_time_ms=0.5, provider="CUDAExecutionProvider")  # type: ignore[arg-type]
    assert (roof_percent(on_gpu), limiter(on_gpu)) == (None, None)  # the data sheet is another's


def test_what_limits_layers_is_a_share_of_the_time_of_all_devices() -> None:
    """Layers on the CPU stand against its peaks; beside launches alone they say nothing."""
    cuda = {"provider": "CUDAExecutionProvider"}
    fell_back = layer(10**6, 10**8, 20.0, provider="CPUExecutionProvider")  # type: ignore[arg-type]
    assert roofline_text([fell_back]) == "memory 100 % (at 50 % of the limit)"
    launched = layer(10**12, 10**6, 0.01, **cuda)  # type: ignore[arg-type]
    assert roofline_text([fell_back, launched]) == ""
    kernels = layer(10**12, 10**6, 0.01, gpu_time_ms=2000.0, **cuda)  # type: ignore[arg-type]
    assert roofline_text([fell_back, kernels]) == (
        "compute 99 % (at 50 % of the limit), memory 1 % (at 50 % of the limit)"
    )


def test_the_time_of_a_launch_is_not_compared_with_the_roof() -> None:
    cuda = {"provider": "CUDAExecutionProvider"}
    launched = layer(10**12, 10**6, 0.01, **cuda)  # type: ignore[arg-type]
    assert (roof_percent(launched), limiter(launched)) == (None, None)
    assert per_second(launched, 10**12) is None
    assert roofline_text([launched]) == ""
    assert limiter(layer(10**12, 10**6, 0.01, gpu_time_ms=2000.0, **cuda)) == "compute"  # type: ignore[arg-type]
