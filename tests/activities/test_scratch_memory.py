"""The scratch memory of kernels against the most that ONNX Runtime's arena hands out in a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from dld_tui.activities.memory import Request, run
from dld_tui.core.cost.memory import MemoryPlan, memory_lines
from dld_tui.core.events import Finished
from tests.support.arena import measured_apart
from tests.support.models import write
from tests.support.runtime import needs_onnxruntime

pytest.importorskip("onnxruntime")
pytestmark = needs_onnxruntime(31)
MS = "com.microsoft"
RANDOM = np.random.default_rng(0)


def floats(*shape: int) -> Any:
    return RANDOM.standard_normal(shape).astype(np.float32)


def whole(dtype: str, *shape: int) -> Any:
    return RANDOM.integers(1, 100, shape).astype(dtype)


class Case(NamedTuple):
    op_type: str
    inputs: tuple[Any, ...]
    """Those that are fed come first; None is left out."""
    about: dict[str, Any] = {}  # noqa: RUF012 - never changed
    domain: str = ""
    fed: int = 1
    outputs: int = 1


def quantized(*weights: int, dtype: str = "int8", **about: Any) -> Case:
    channels = weights[1] * about.get("group", 1)
    x, scale, zero = whole("uint8", 1, channels, 20, 20), np.float32(0.1), np.uint8(1)
    w = whole(dtype, *weights)
    inputs = (x, scale, zero, w, scale, np.zeros((), dtype), scale, zero)
    return Case("QLinearConv", inputs, about)


def recurrent(op_type: str, gates: int, direction: str, *, bias: bool = True, **about: Any) -> Case:
    ways, hidden = 2 if direction == "bidirectional" else 1, 24
    inputs = (
        floats(9, 2, 10),
        floats(ways, gates * hidden, 10),
        floats(ways, gates * hidden, hidden),
    )
    more = (floats(ways, 2 * gates * hidden),) if bias else ()
    return Case(op_type, inputs + more, {"hidden_size": hidden, "direction": direction, **about})


def attention(op_type: str, domain: str = "", rows: int = 32, *more: Any, **about: Any) -> Case:
    return Case(op_type, (*[floats(2, rows, 64) for _ in "qkv"], *more), about, domain, 3)


def grouped(**about: Any) -> Case:
    empty, length = floats(1, 2, 0, 16), np.array(32, np.int32)
    inputs = (floats(1, 32, 64), floats(1, 32, 32), floats(1, 32, 32), empty, empty,
              np.array([31], np.int32), length, floats(64, 8), floats(64, 8))  # fmt: skip
    heads = {"num_heads": 4, "kv_num_heads": 2}
    return Case("GroupQueryAttention", inputs, heads | about, MS, 3, 3)


CASES = {
    "lstm": recurrent("LSTM", 4, "forward"),
    "lstm, both ways": recurrent("LSTM", 4, "bidirectional", bias=False),
    "gru": recurrent("GRU", 3, "reverse", linear_before_reset=1),
    "gru, both ways": recurrent("GRU", 3, "bidirectional"),
    "rnn": recurrent("RNN", 1, "forward", bias=False),
    "lrn": Case("LRN", (floats(2, 8, 12, 12),), {"size": 5}),
    "convolution of a line": Case("Conv", (floats(1, 8, 300), floats(16, 8, 5))),
    "convolution of more filters than places": Case("Conv", (floats(1, 8, 9), floats(64, 8, 5))),
    "pointwise convolution": Case("Conv", (floats(1, 8, 300), floats(16, 8, 1))),
    "transposed": Case(
        "ConvTranspose", (floats(1, 6, 12, 12), floats(6, 4, 3, 3)), {"strides": [2, 2]}
    ),
    "deformable": Case(
        "DeformConv", (floats(1, 4, 12, 12), floats(6, 4, 3, 3), floats(1, 18, 10, 10)), fed=3
    ),
    "integers": Case("ConvInteger", (whole("uint8", 1, 6, 16, 16), whole("uint8", 8, 6, 3, 3))),
    "symmetric weights": quantized(16, 8, 3, 3),
    "symmetric pointwise": quantized(16, 8, 1, 1),
    "symmetric depthwise": quantized(16, 1, 3, 3, group=16),
    "twenty filters": quantized(20, 8, 3, 3),
    "twelve filters": quantized(12, 8, 3, 3),
    "weights of uint8": quantized(16, 8, 3, 3, dtype="uint8"),
    "three channels": quantized(16, 3, 3, 3),
    "other depthwise": quantized(12, 1, 3, 3, group=12),
    "rows made int8": Case(
        "DynamicQuantizeMatMul", (floats(3, 20, 64), whole("int8", 64, 32), floats(1)), {}, MS
    ),
    "few bits": Case(
        "MatMulNBits", (floats(3, 20, 64), whole("uint8", 32, 2, 16), floats(64)),
        {"K": 64, "N": 32, "bits": 4, "block_size": 32, "accuracy_level": 4}, MS,
    ),
    "eight bits as floats": Case(
        "MatMulNBits", (floats(3, 20, 64), whole("uint8", 32, 2, 32), floats(64)),
        {"K": 64, "N": 32, "bits": 8, "block_size": 32}, MS,
    ),
    "attention with its projection": Case(
        "Attention", (floats(2, 20, 32), floats(32, 96), floats(96)), {"num_heads": 4}, MS
    ),
    "one way": Case(
        "Attention", (floats(2, 20, 32), floats(32, 96), floats(96)),
        {"num_heads": 4, "unidirectional": 1}, MS,
    ),
    "heads in blocks": attention("MultiHeadAttention", MS, num_heads=4),
    "heads with a bias": attention(
        "MultiHeadAttention", MS, 32, None, None, floats(1, 1, 32, 32), num_heads=4
    ),
    "plain attention": attention("Attention", q_num_heads=4, kv_num_heads=4),
    "plain attention, one way": attention("Attention", q_num_heads=4, kv_num_heads=4, is_causal=1),
    "grouped": grouped(),
    "grouped and turned": grouped(do_rotary=1),
    "grouped, smooth": grouped(smooth_softmax=1),
    "softmax of an inner axis": Case("Softmax", (floats(4, 20, 16),), {"axis": 1}),
    "softmax of the last axis": Case("Softmax", (floats(4, 20, 16),)),
    "gelu with a bias": Case("BiasGelu", (floats(4, 20, 64), floats(64)), {}, MS),
    "three operands": Case("Sum", tuple(floats(20, 64) for _ in "abc"), fed=3),
    "choice": Case("Where", (floats(20, 64) > 0, floats(20, 1), floats(1, 64)), fed=3),
    "quantized mean": Case(
        "QLinearAveragePool",
        (whole("uint8", 1, 6, 16, 16), np.float32(0.1), np.uint8(1), np.float32(0.1), np.uint8(1)),
        {"kernel_shape": [3, 3]}, MS,
    ),
}  # fmt: skip


def model_of(case: Case, path: Path) -> dict[str, Any]:
    """Write a model of one node, and return what it is fed."""
    names = [f"i{at}" if value is not None else "" for at, value in enumerate(case.inputs)]
    outputs = [f"o{at}" for at in range(case.outputs)]
    node = helper.make_node(
        case.op_type, names, outputs, name="kernel", domain=case.domain, **case.about
    )
    values = {
        name: np.asarray(value) for name, value in zip(names, case.inputs, strict=True) if name
    }
    kept = len(case.inputs) if case.fed > 1 and case.op_type != "GroupQueryAttention" else case.fed
    fed = {name: value for name, value in values.items() if name in names[: max(kept, case.fed)]}
    if case.op_type == "GroupQueryAttention":
        fed |= {name: values[name] for name in names[3:5]}
    graph = helper.make_graph(
        [node], "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in fed.items()
        ],
        [helper.make_tensor_value_info(name, 0, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in values.items() if name not in fed],
    )  # fmt: skip
    for output in graph.output:
        output.ClearField("type")
    opsets = [helper.make_opsetid("", 23), helper.make_opsetid(MS, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return fed


def plan_of(path: Path, threads: int, fed: dict[str, Any]) -> MemoryPlan:
    shapes = tuple(f"{name}:{'x'.join(map(str, value.shape))}" for name, value in fed.items())
    *_, last = run(Request(path, threads=threads, shape=shapes))
    assert isinstance(last, Finished)
    assert isinstance(last.result, MemoryPlan)
    return last.result


@pytest.mark.parametrize("name", CASES)
def test_what_a_kernel_asks_for_while_it_runs(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    fed = model_of(CASES[name], path)
    plan = plan_of(path, 1, fed)
    peak = measured_apart(path, fed)
    assert not plan.scratch_unknown
    assert plan.scratch is not None
    assert plan.peak + plan.scratch == pytest.approx(peak.with_scratch, rel=0.02)
    if "pointwise" not in name and "last axis" not in name:
        assert plan.scratch > 0


@pytest.mark.parametrize("name", ["convolution of a line", "grouped", "heads in blocks"])
def test_threads_have_buffers_of_their_own(name: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    fed = model_of(CASES[name], path)
    single, plan = plan_of(path, 1, fed), plan_of(path, 2, fed)
    assert plan.scratch is not None
    assert plan.scratch > (single.scratch or 0)
    assert plan.peak + plan.scratch == pytest.approx(
        measured_apart(path, fed, 2).with_scratch, rel=0.02
    )
    assert any("(2 threads)" in line for line in memory_lines(plan))


WEIGHTS = ", ".join(["0.01"] * 320)
LOOP = f"""
<ir_version: 9, opset_import: ["" : 18]>
m (float[1, 8, 500] x) => (float[1, 8, 500] y)
<int64 trips = {{3}}, bool go = {{1}}, float[8, 8, 5] k = {{{WEIGHTS}}}>
{{
    y = Loop (trips, go, x) <
        body = b (int64 i, bool c, float[1, 8, 500] h) => (bool d, float[1, 8, 500] t)
        {{ d = Identity (c)  v = Conv <pads = [2, 2]> (h, k)  t = Sin (v) }}
    >
}}
"""
BRANCH = f"""
<ir_version: 9, opset_import: ["" : 18]>
m (float[1, 8, 500] x, bool c) => (float[1, 8, 500] y)
<float[8, 8, 5] k = {{{WEIGHTS}}}>
{{
    y = If (c) <
        then_branch = t () => (float[1, 8, 500] p) {{ p = Conv <pads = [2, 2]> (x, k) }},
        else_branch = e () => (float[1, 8, 500] q) {{ q = Sin (x) }}
    >
}}
"""


@pytest.mark.parametrize("text", [LOOP, BRANCH], ids=["Loop", "If"])
def test_a_kernel_in_a_body_raises_what_is_alive_then(text: str, tmp_path: Path) -> None:
    path = write(tmp_path, text)
    fed: dict[str, Any] = {"x": floats(1, 8, 500)}
    if "bool c)" in text.partition("=>")[0]:
        fed["c"] = np.array(True)
    plan = plan_of(path, 1, {"x": fed["x"]})
    assert plan.scratch
    peak = measured_apart(path, fed).with_scratch
    assert plan.peak + plan.scratch == pytest.approx(peak, rel=0.02)


def test_what_is_not_known_counts_as_nothing_and_is_named(tmp_path: Path) -> None:
    case = Case("Einsum", (floats(4, 8), floats(8, 4)), {"equation": "ij,jk->ki"}, fed=2)
    plan = plan_of(tmp_path / "m.onnx", 1, model_of(case, tmp_path / "m.onnx"))
    assert plan.scratch_unknown == ("kernel",)
    assert plan.scratch == 0
    assert any("at least 0 B in kernels" in line for line in memory_lines(plan))
