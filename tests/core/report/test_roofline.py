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
    node_kind,
    per_second,
    roof_percent,
    with_reached_roofs,
    with_roof,
)
from tests.support.models import parse
from tests.support.recorded import Recorded, fields_of

F = "float32"
ROOF = Peaks(
    "x", {"fp32": 1e12, "int8": 4e12}, 1e10, (MemoryLevel(1, 1e11),), 1 << 20, launch_ms=0.001
)


def kernel(op_type: str, inputs: str, outputs: str = "", **more: Any) -> Kernel:
    """Return a kernel of tensors that are written as ``4x8 float16``, float32 where it is left."""

    def read(text: str) -> dict[str, tuple[Any, ...]]:
        parts = [part.split() for part in text.split(",") if part.strip()]
        dims = tuple(
            None if size == "?" else tuple(int(n) if n.lstrip("-").isdigit() else n
                                           for n in size.split("x") if n != "scalar")
            for size, *_ in parts
        )  # fmt: skip
        return {"dims": dims, "types": tuple(kind[0] if kind else F for _, *kind in parts)}

    sides: dict[str, Any] = {
        f"{side}_{key}": value
        for side, text in (("input", inputs), ("output", outputs))
        for key, value in read(text).items()
    }
    return Kernel("k", op_type, **sides, **more)


KERNELS = {
    "a fused convolution": kernel("FusedConv", "1x4x8x8, 6x4x3x3, 6", "1x6x8x8"),
    "nobody knows": kernel("NobodyKnowsThis", "", "2"), "if": kernel("If", ""),
    "picks": kernel("Gather", "1000x8, 3 int64", "3x8"), "a view": kernel("Reshape", "4x8", "32"),
    "adds": kernel("Add", "4x8 float16, 8 float16", "4x8 float16"),
    "no outputs": kernel("Add", "4x8, 8"), "nothing": kernel("Add", "", "4x8"),
    "open": kernel("Add", "4xn, 8", "4x8"), "negative": kernel("Add", "4x-1, 8", "4x8"),
    "no shape": kernel("Add", "?, 8", "4x8"), "texts": kernel("Add", "4 string", "4 string"),
    "open output": kernel("Add", "4x8, 8", "4xn"), "scalars": kernel("Relu", "scalar", "scalar"),
    "a cast": kernel("Cast", "4x8", "4x8 int8"), "reduces": kernel("ReduceSum", "4x8", "4"),
    "nibbles": kernel("DequantizeLinear", "3x3 int4, 3", "3x3"),
    "softmax": kernel("Softmax", "2x9", "2x9"), "cost": kernel("Relu", "4", "4", cost=Cost(
        in_use_bytes=7)),
    "a slice": kernel("Slice", "9x4, 1 int64, 1 int64", "2x4"),
    "a product": kernel("MatMul", "2x3x4, 4x5", "2x3x5"),
    "windows": kernel("MaxPool", "1x2x8x8", "1x2x4x4"),
}  # fmt: skip
NODES = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
net (float[5, 2] x) => (float[5, 3] y)
<float[3, 2] w = {1, 2, 3, 4, 5, 6}, float[3] b = {1, 2, 3}>
{
    y = Gemm <transB = 1> (x, w, "")
    z = Gemm <transB = 1> (x, w, b)
    p = MaxPool <kernel_shape = [3, 3]> (x)
    q = com.microsoft.MatMulNBits <K = 2, N = 3, accuracy_level = 4> (x, w)
    r = com.microsoft.MatMulNBits <K = 2, N = 3> (x, w)
}
"""


def test_whole_costs(tmp_path: Path, recorded: Recorded) -> None:
    """Operations and bytes of kernels, with their nodes and without."""
    onnx.save(parse(NODES), tmp_path / "m.onnx")
    gemm, biased, pool, low, high = Document.open(tmp_path / "m.onnx").main.nodes
    texts = [f"{name}: {fields_of(kernel_cost(one, None))}" for name, one in KERNELS.items()]
    for given in ("5x2", "5x2, 3x2", "5x2, 3x2, 3", "5x2, 3", "", "5x2 float16, 3x2 float16"):
        made = kernel("Gemm", given, "5x3")
        for title, node in (("no node", None), ("gemm", gemm), ("biased", biased)):
            cost = fields_of(kernel_cost(made, node))
            texts.append(f"Gemm of {given or 'nothing'}, {title}: {cost}")
    for title, node in (("a node", pool), ("another's", gemm)):
        texts.append(f"windows of {title}: {fields_of(kernel_cost(KERNELS['windows'], node))}")
    levels = [node_kind("MatMulNBits", one).accuracy_level for one in (low, high, None)]
    texts.append(f"levels: {levels}")
    recorded("whole_costs", {"kernels": "\n".join(texts)})


def test_whole_roofs(recorded: Recorded) -> None:
    """Least times, limits and the peaks that they are by."""
    rates = {"fp32": 1e12, "tf32": 8e12, "fp16": 16e12, "int8": 4e12}
    peaks = {"all": Peaks("x", rates, 1e15), "levels": ROOF, "none": Peaks("x", {}, 1e9),
             "launch": Peaks("x", {"fp32": 1e9}, 1e9, launch_ms=0.5)}  # fmt: skip
    texts = {}
    for name, known in peaks.items():
        lines = []
        for op_type, level in (("Relu", 0), ("MatMul", 0), ("MatMulInteger", 0), ("Conv", 0),
                               ("DynamicQuantizeMatMul", 0), ("MatMulNBits", 4),
                               ("MatMulNBits", 0), ("", 0)):  # fmt: skip
            for first in (F, "float16", "bfloat16", "uint8", "int64", ""):
                kind = NodeKind(op_type, level) if op_type else None
                cost = with_roof(Cost(10**9, 10**4), (first,) if first else (), known, kind)
                took = "" if cost.roof_ms is None else f"{cost.roof_ms:.6g} {cost.bound}"
                lines.append(f"{op_type or 'no node'} {level} {first}: {cost.peak} {took}")
        for flops, moved in ((None, 10), (10, None), (0, 0), (10**9, 10**6), (10**6, 10**9),
                             (10**9, 2**20), (10**3, 2**20 + 1)):  # fmt: skip
            cost = with_roof(Cost(flops, moved), (F,), known)
            lines.append(f"{flops} {moved}: {cost.roof_ms} {cost.bound} {cost.launch_ms}")
        texts[name] = "\n".join(dict.fromkeys(lines))
    lines = []
    cuda = {"provider": "CUDAExecutionProvider"}
    for least, limit in ((1.0, "compute"), (1.0, "memory"), (1e-4, "memory"), (None, "compute")):
        cost = Cost(10**9, 10**6, roof_ms=least, bound=limit, peak="fp32", launch_ms=0.001)  # type: ignore[arg-type]
        for ms in (None, 0.0, 1e-4, 0.002, 0.008, 0.5, 0.9, 1.0, 2.0, 9.0, 11.0):
            for more in ({}, {"count": 2.0}, {"gpu_time_ms": ms}, cuda):
                one = Layer("l", "Conv", cost=cost, time_ms=ms, **more)
                told = [roof_percent(one), per_second(one, 10**9)]
                shown = " ".join("-" if value is None else f"{value:.4g}" for value in told)
                lines.append(f"{least} {limit} in {ms} {[*more]}: {shown} {limiter(one)}")
    texts["layers"] = "\n".join(lines)
    recorded("whole_roofs", texts)


def layer(flops: int, moved: int, time_ms: float, **more: float) -> Layer:
    cost = with_roof(Cost(flops, moved), (F,), ROOF)
    return Layer("l", "Conv", cost=cost, time_ms=time_ms, **more)  # type: ignore[arg-type]


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
