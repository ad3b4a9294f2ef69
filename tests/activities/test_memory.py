"""The memory that a run will need against what ONNX Runtime's arena hands out in one."""

from __future__ import annotations

import itertools
import platform
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.activities.memory import Request, run
from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.activities.profile_onnxruntime import run as profile
from dld_tui.core.cost.memory import IN_PLACE, MemoryPlan, memory_lines
from dld_tui.core.document.document import Document
from dld_tui.core.events import Finished
from dld_tui.core.inputs.guess import guess_inputs, input_specs
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.report.measured_facts import measured_facts
from dld_tui.core.report.report import Report
from dld_tui.widgets.timeline.lanes import memory_rows
from tests.support.arena import deltas, measured, measured_apart, session_bytes
from tests.support.models import write
from tests.support.runtime import needs_onnxruntime
from tests.support.tiers import first

pytest.importorskip("onnxruntime")
told = needs_onnxruntime(31)
"""Profiles of 1.23 do not have what is in use."""
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
ATTENTION = (
    HEAD
    + """
m (float[N, T, 64] x) => (float[N, T, 64] y)
<float[64, 64] q = {WEIGHT}, float[64, 64] k = {WEIGHT}, float[64] g = {SCALE}>
{
    n = LayerNormalization(x, g)
    a = MatMul(n, q)
    b = MatMul(n, k)
    t = Transpose<perm = [0, 2, 1]>(b)
    s = MatMul(a, t)
    p = Softmax(s)
    o = MatMul(p, n)
    r = Add(o, x)
    e = Sigmoid(r)
    f = Mul(e, r)
    y = Add(f, r)
}
""".replace("WEIGHT", ", ".join(["0.01"] * 4096)).replace("SCALE", ", ".join(["1"] * 64))
)
BRANCHES = (
    HEAD
    + """
m (float[4, 64] x, bool p) => (float[4, 64] y)
{
    a = Exp(x)
    r = If (p) <
        then_branch = yes () => (float[4, 64] t) { u = Exp(a)  v = Cos(u)  t = Add(v, u) },
        else_branch = no () => (float[4, 64] t) { t = Exp(a) }
    >
    y = Mul(r, a)
}
"""
)


def planned(path: Path, *shapes: str) -> tuple[MemoryPlan, int]:
    """Return the plan, and the peak that a run with the same shapes has."""
    *_, last = run(Request(path, shape=shapes))
    assert isinstance(last, Finished)
    plan: MemoryPlan = last.result
    document = Document.open(path)
    given = parse_shapes(plan.shapes, document.main.inputs)
    guess = guess_inputs(input_specs(document), document, given)
    document.close()
    feed = {name: np.ones_like(value) if value.dtype == bool else value
            for name, value in guess.values(0).items()}  # fmt: skip
    return plan, measured(path, feed).after_nodes


@told
@pytest.mark.parametrize("shape", ["x:1x16x64", "x:3x200x64"])
def test_views_kernels_in_place_and_free_buffers_are_as_in_a_run(
    tmp_path: Path, shape: str
) -> None:
    plan, peak = planned(write(tmp_path, ATTENTION), shape)
    assert (plan.peak, plan.unknown, plan.shapes) == (peak, (), (shape,))
    assert sum(one.bytes for one in plan.alive) == plan.peak


@told
def test_a_branch_makes_the_outputs_of_its_node(tmp_path: Path) -> None:
    plan, peak = planned(write(tmp_path, BRANCHES))
    assert plan.peak == peak == 4 * 1024


CARRIED = (
    HEAD
    + """
m (float[4, 64] x, bool p) => (float[4, 64] y)
<int64 trips = {4}, bool on = {1}>
{
    a = Exp(x)
    f = Loop (trips, on, a) <body = b (int64 i, bool c, float[4, 64] s) => (bool o, float[4, 64] t)
        {
            o = Identity(c)
            t = If (p) <
                then_branch = yes () => (float[4, 64] r) { u = Exp(s)  v = Cos(u)  r = Add(v, u) },
                else_branch = no () => (float[4, 64] r) { r = Exp(s) }
            >
        }
    >
    y = Mul(f, a)
}
"""
)


@told
def test_what_a_loop_carries_is_there_twice(tmp_path: Path) -> None:
    plan, peak = planned(write(tmp_path, CARRIED))
    assert plan.unknown == ()
    assert plan.peak == peak
    assert plan.peak >= 5 * 1024


@told
@pytest.mark.parametrize("trips", [0, 1, 2, 3])
def test_a_loop_of_few_trips_needs_less(tmp_path: Path, trips: int) -> None:
    """Its only trip has no trip before it that hands something on."""
    text = f"""{HEAD}
        m (float[4, 64] x) => (float[4, 64] y, float[K, 4, 64] z)
        <int64 trips = {{{trips}}}, bool on = {{1}}>
        {{
            a = Exp(x)
            f, z = Loop (trips, on, a) <body = b (int64 i, bool c, float[4, 64] s)
                => (bool o, float[4, 64] t, float[4, 64] l)
                {{ o = Identity(c)  u = Sin(s)  t = Cos(u)  l = Cos(t) }}
            >
            y = Exp(f)
        }}
    """
    path = write(tmp_path, text.replace("float[K, 4", f"float[{trips}, 4"))
    plan, _ = planned(path)
    # The outputs are copied while the Loop still holds what it collected.
    peak = measured_apart(path, {"x": np.ones((4, 64), np.float32)}).with_scratch
    assert plan.peak == peak


@told
def test_a_value_that_a_loop_passes_on_is_not_copied(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[T, 64] x) => (float[T, 64] y, float[T, 64] s, float[5, T, 64] z)
        <int64 trips = {{5}}, bool on = {{1}}>
        {{
            a = Exp(x)
            f, s, z = Loop (trips, on, a, a) <body = b
                (int64 i, bool c, float[T, 64] p, float[T, 64] q)
                => (bool o, float[T, 64] r, float[T, 64] t, float[T, 64] l)
                {{ o = Identity(c)  r = Identity(p)  t = Exp(q)  l = Identity(a) }}
            >
            y = Exp(f)
        }}
    """
    path = write(tmp_path, text)
    plan, _ = planned(path, "x:40x64")
    feed = {"x": np.ones((40, 64), np.float32)}
    assert plan.peak == measured_apart(path, feed).with_scratch


@told
@pytest.mark.parametrize("trips", [1, 2, 3, 5])
def test_a_list_of_states_keeps_them(tmp_path: Path, trips: int) -> None:
    text = f"""{HEAD}
        m (float[4, 64] x) => (float[4, 64] y, float[{trips}, 4, 64] z)
        <int64 trips = {{{trips}}}, bool on = {{1}}>
        {{
            a = Exp(x)
            f, z = Loop (trips, on, a) <body = b
                (int64 i, bool c, float[4, 64] s) => (bool o, float[4, 64] t, float[4, 64] l)
                {{ o = Identity(c)  l = Identity(s)  t = Exp(s) }}
            >
            y = Exp(f)
        }}
    """
    path = write(tmp_path, text)
    plan, _ = planned(path)
    peak = measured_apart(path, {"x": np.ones((4, 64), np.float32)}).with_scratch
    assert plan.peak == peak


@told
@pytest.mark.parametrize("trips", [1, 2, 3, 5])
def test_a_scan_has_buffers_for_the_states_of_its_trips(tmp_path: Path, trips: int) -> None:
    text = f"""{HEAD}
        m (float[{trips}, 4, 64] x) => (float[4, 64] f, float[{trips}, 4, 64] y)
        <float[4, 64] start = {{{", ".join(["1"] * 256)}}}>
        {{
            f, y = Scan (start, x) <num_scan_inputs = 1, body = b
                (float[4, 64] s, float[4, 64] p) => (float[4, 64] t, float[4, 64] l)
                {{ u = Exp(p)  t = Add(u, s)  l = Cos(t) }}
            >
        }}
    """
    plan, peak = planned(write(tmp_path, text))
    assert plan.peak == peak


@told
def test_an_if_of_unknown_size_may_take_a_buffer_of_before(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[T, 64] x, bool p) => (float[T, 64] y)
        <int64[1] first = {{0}}, int64[1] last = {{64}}, int64[1] axis = {{1}}>
        {{
            a = Exp(x)
            b = Concat <axis = 1> (a, a)
            r = If (p) <
                then_branch = yes () => (float[T, 64] t)
                    {{ u = Exp(b)  v = Cos(u)  t = Slice(v, first, last, axis) }},
                else_branch = no () => (float[T, 64] t) {{ t = Neg(x) }}
            >
            y = Exp(r)
        }}
    """
    plan, peak = planned(write(tmp_path, text), "x:40x64")
    assert plan.peak == peak


@told
def test_a_nested_if_may_write_into_that_buffer_too(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[T, 64] x, bool p) => (float[T, 64] y)
        {{
            a = Exp(x)
            b = Concat <axis = 1> (a, a)
            r = If (p) <
                then_branch = yes () => (float[T, 64] t) {{
                    t = If (p) <
                        then_branch = deep () => (float[T, 64] u)
                            {{ u = Sin(x)  w = Concat <axis = 1> (b, b) }},
                        else_branch = other () => (float[T, 64] v) {{ v = Neg(x) }}
                    >
                }},
                else_branch = no () => (float[T, 64] n) {{ n = Neg(x) }}
            >
            y = Exp(r)
        }}
    """
    plan, peak = planned(write(tmp_path, text), "x:40x64")
    assert plan.peak == peak


@told
def test_dimensions_without_a_name_are_not_equal(tmp_path: Path) -> None:
    """Inference names the rows of a list; ONNX Runtime does not, and shares no buffer by them."""
    text = f"""{HEAD}
        m (float[4, 64] x, int64 trips) => (float y)
        <bool on = {{1}}>
        {{
            z = Loop (trips, on) <body = b (int64 i, bool c) => (bool o, float[4, 64] l)
                {{ o = Identity(c)  l = Exp(x) }}
            >
            a = Exp(z)  b = ReduceMax<keepdims = 0>(a)
            c = Concat <axis = 2> (z, z)  d = ReduceMax<keepdims = 0>(c)
            e = Neg(z)  f = ReduceMax<keepdims = 0>(e)
            y = Sum(b, d, f)
        }}
    """
    path = write(tmp_path, text)
    *_, last = run(Request(path))
    assert isinstance(last, Finished)
    assert not any(tensor.kept_for for tensor in last.result.alive)


@told
def test_what_is_said_to_lower_the_peak_does(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[64, 64] x) => (float[64, 64] y)
        <float[64, 64] w = {{{", ".join(["0.1"] * 4096)}}}>
        {{
            a = Exp(x)  b = ReduceMax <keepdims = 0> (a)
            c = Mul(x, b)  d = Concat <axis = 1> (c, c)  e = Concat <axis = 1> (d, d)
            f = Sin(e)  g = ReduceMax <keepdims = 0> (f)
            h = Add(x, g)  i = MatMul(h, w)  y = Add(i, w)
        }}
    """
    path = write(tmp_path, text)
    plan, peak = planned(path)
    feed = {"x": np.ones((64, 64), np.float32)}
    assert plan.peak == peak
    assert plan.without_reuse == measured(path, feed, reuse=False).after_nodes
    assert plan.saved_without_reuse == peak - plan.without_reuse > 0
    assert any("enable_mem_reuse = False saves" in line for line in memory_lines(plan))


@told
@pytest.mark.parametrize("seed", range(6))
def test_the_peak_without_reuse_of_drawn_branches(tmp_path: Path, seed: int) -> None:
    path = write(tmp_path, drawn_branches(seed))
    plan, _ = planned(path)
    x = np.ones((4, 64), np.float32)
    peaks = [
        measured(
            path,
            {"x": x} | {n: np.array(c) for n, c in zip("pqr", taken, strict=True)},
            reuse=False,
        )
        for taken in itertools.product([True, False], repeat=3)
    ]
    assert plan.without_reuse == max(peak.after_nodes for peak in peaks)


DEAD = {
    "a chain that nobody reads": "u = Exp(a) w = Cos(u) t = Sin(a)",
    "in place": "u = Add(a, x) v = Relu(u) t = Sin(a)",
    "two": "u = Exp(a) w = Cos(a) t = Sin(a)",
    "behind": "t = Sin(a) u = Exp(t)",
    "one that is read twice": "u = Add(a, x) v = Exp(u) w = Relu(u) t = Sin(a)",
}


@told
@pytest.mark.parametrize("rows", ["4", "T"])
@pytest.mark.parametrize("nodes", DEAD.values(), ids=DEAD)
def test_nodes_of_a_branch_that_nobody_reads_run_all_the_same(
    tmp_path: Path, nodes: str, rows: str
) -> None:
    """ONNX Runtime runs a branch from its last node, whatever the order in the saved model."""
    text = f"""{HEAD}
        m (float[{rows}, 64] x, bool p) => (float[{rows}, 64] y)
        {{
            a = Exp(x)
            r = If (p) <
                then_branch = yes () => (float[{rows}, 64] t) {{ {nodes} }},
                else_branch = no () => (float[{rows}, 64] t) {{ t = Cos(a) }}
            >
            y = Mul(r, a)
        }}
    """
    plan, peak = planned(write(tmp_path, text), "x:4x64")
    assert plan.peak == peak


def drawn_branches(seed: int) -> str:
    """Return a model with three If nodes, one of them inside a branch, of which much is unread."""
    rng = random.Random(seed)
    names = (f"v{number}" for number in itertools.count())

    def graph(known: list[str], size: int, inner: str) -> tuple[str, str]:
        lines, here, known = [], list[str](), [*known]
        for at in range(size):
            output, source = next(names), rng.choice(known)
            if inner and at == size // 2:
                lines.append(f"{output} = {branches(known, inner, '')}")
            elif rng.random() < 0.3:  # of another size, and unread
                lines.append(f"{output} = Concat <axis = 1> ({source}, {rng.choice(known)})")
                continue
            elif rng.random() < 0.3:  # ONNX Runtime removes it, and saves its graph sorted
                lines.append(f"{output} = Identity({source})")
            else:
                op_type = rng.choice(["Exp", "Cos", "Neg", "Relu"])
                lines.append(f"{output} = {op_type}({source})")
            known.append(output)
            here.append(output)
        lines.append(f"{(last := next(names))} = Add({rng.choice(here[-2:] or known)}, {known[0]})")
        return "  ".join(lines), last

    def branches(known: list[str], condition: str, inner: str) -> str:
        text, ends = f"If ({condition}) <", []
        for branch, nested in (("then", inner), ("else", "")):
            nodes, last = graph(known, rng.randint(2, 6), nested)
            ends.append(f"{branch}_branch = {branch} () => (float[4, 64] {last}) {{ {nodes} }}")
        return f"{text} {', '.join(ends)} >"

    nodes, last = graph(["x"], 4, "")
    first, second = branches([last, "x"], "p", "q"), branches([last, "x"], "r", "")
    return f"""{HEAD}m (float[4, 64] x, bool p, bool q, bool r) => (float[4, 64] y) {{
        {nodes}  s = {first}  t = {second}  y = Mul(s, t)
    }}"""


@told
@pytest.mark.parametrize("seed", range(6))
def test_the_peak_of_drawn_branches_is_the_highest_of_all_conditions(
    tmp_path: Path, seed: int
) -> None:
    """ONNX Runtime saves subgraphs that it changed as it runs them, and others as in the file."""
    path = write(tmp_path, drawn_branches(seed))
    plan, _ = planned(path)
    x = np.ones((4, 64), np.float32)
    peaks = [
        measured(path, {"x": x} | {n: np.array(c) for n, c in zip("pqr", taken, strict=True)})
        for taken in itertools.product([True, False], repeat=3)
    ]
    assert plan.peak == max(peak.after_nodes for peak in peaks)


BY_SHAPE = (
    HEAD
    + """
m (float[T, 64] x) => (float[T, 64] y)
<int64 none = {0}, int64 few = {3}>
{
    shape = Shape(x)
    rows = Gather(shape, none)
    small = Less(rows, few)
    a = Exp(x)
    y = If (small) <
        then_branch = yes () => (float[T, 64] t) { t = Exp(a) },
        else_branch = no () => (float[T, 64] t)
            { u = Exp(a)  v = Cos(u)  w = Sin(u)  t = Add(v, w) }
    >
}
"""
)


@told
@pytest.mark.parametrize("rows", [2, 40])
def test_a_branch_that_shapes_rule_out_needs_nothing(tmp_path: Path, rows: int) -> None:
    plan, peak = planned(write(tmp_path, BY_SHAPE), f"x:{rows}x64")
    assert plan.peak == peak


@told
def test_strings_have_a_size_of_their_own(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[4, 64] x) => (float[4, 64] y)
        {{ a = Exp(x)  s = Cast <to = 8> (a)  t = Identity(s)  u = Concat <axis = 0> (s, s)
           b = Cast <to = 1> (t)  c = Cast <to = 1> (u)  m = ReduceMax <keepdims = 0> (c)
           y = Add(b, m) }}
    """
    plan, peak = planned(write(tmp_path, text))
    assert (plan.peak, plan.unknown) == (peak, ())
    assert plan.peak > 4 * 64 * 32 * 3


@told
def test_no_buffer_is_shared_by_the_shape_of_a_joined_sequence(tmp_path: Path) -> None:
    text = f"""{HEAD}
        m (float[4, 64] x) => (float[4, 256] y)
        {{
            s = SequenceConstruct(x, x)
            j = ConcatFromSequence <axis = 1, new_axis = 0> (s)
            k = Concat <axis = 1> (j, j)
            m = ReduceMax <keepdims = 0> (k)
            a = Add(x, m)
            b = Concat <axis = 1> (a, a, a, a)
            c = Sin(b)
            d = Cos(c)
            y = Sin(d)
        }}
    """
    plan, peak = planned(write(tmp_path, text))
    assert (plan.peak, plan.unknown) == (peak, ())
    assert not any(tensor.kept_for for tensor in plan.alive)
    assert [step.bytes for step in plan.steps if step.node == ">a"] == [1024 + 256]


@told
@pytest.mark.parametrize("stacks", [0, 1])
def test_a_sequence_has_copies_of_its_elements(tmp_path: Path, stacks: int) -> None:
    text = f"""{HEAD}
        m (float[4, 64] x) => (float y)
        <int64 first = {{0}}>
        {{
            a = Exp(x)  b = Cos(a)  c = Concat <axis = 0> (b, b)  d = ReduceMax <keepdims = 0> (c)
            s = SequenceConstruct(a, b, a)
            t = SequenceAt(s, first)
            u = Sin(t)
            j = ConcatFromSequence <axis = 1, new_axis = {stacks}> (s)
            k = Concat <axis = 0> (j, j)
            l = Neg(j)  o = Concat <axis = 0> (l, l)  v = ReduceMax <keepdims = 0> (o)
            p = ReduceMax <keepdims = 0> (k)
            q = ReduceMax <keepdims = 0> (u)
            y = Sum(d, p, q, v)
        }}
    """
    plan, peak = planned(write(tmp_path, text))
    assert (plan.peak, plan.unknown) == (peak, ())


UNREAD = (
    HEAD
    + """
m (float[1, 4, 16, 16] x) => (float[1, 4, 16, 16] y)
{
    a, i = MaxPool <kernel_shape = [1, 1]> (x)
    b = Sin(a)
    c, j = MaxPool <kernel_shape = [1, 1]> (b)
    y = Sin(c)
}
"""
)


@told
def test_an_output_that_nobody_reads_takes_no_free_buffer(tmp_path: Path) -> None:
    plan, peak = planned(write(tmp_path, UNREAD))
    # Both lists of indices, of 8 bytes, and two of the four values.
    assert plan.peak == peak == 1024 * (8 + 8 + 4 + 4)


@told
def test_what_is_dequantized_in_each_run_is_no_weight(tmp_path: Path) -> None:
    numbers = np.arange(64 * 64, dtype=np.int32) % 15 - 7
    weights = [
        helper.make_tensor("w", TensorProto.INT4, [64, 64], numbers.tolist()),
        numpy_helper.from_array(np.ones((2, 64), np.float32), "s"),
    ]
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s"], ["d"], axis=0, block_size=32),
        helper.make_node("Transpose", ["d"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [8, 64]) for name in "xy"]
    graph = helper.make_graph(nodes, "m", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    plan, peak = planned(path)
    assert plan.peak == peak == 4 * 64 * (64 + 8)
    assert plan.weights == 64 * 64 // 2 + 4 * 2 * 64


def _weights_model(path: Path, nodes: list[onnx.NodeProto]) -> Path:
    """Write a model with a float matrix w of 6 MB and w again in blocks of four bits."""
    rows, columns = 1024, 1536
    random_numbers = np.random.default_rng(0)
    blocks = random_numbers.integers(0, 255, (columns, rows // 32, 16), np.uint8)
    tensors = {
        "w": random_numbers.random((rows, columns), np.float32),
        "t": random_numbers.random((columns, rows), np.float32),
        "b": blocks,
        "s": np.ones(columns * rows // 32, np.float32),
    }
    used = {name for node in nodes for name in node.input}
    kinds = {"x": (TensorProto.FLOAT, [4, rows]), "i": (TensorProto.INT64, [4])}
    inputs = [
        helper.make_tensor_value_info(name, *kind) for name, kind in kinds.items() if name in used
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, columns])
        for node in nodes for name in node.output
    ]  # fmt: skip
    kept = [numpy_helper.from_array(v, name) for name, v in tensors.items() if name in used]
    graph = helper.make_graph(nodes, "m", inputs, outputs, kept)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return path


_NODES = {
    "product": helper.make_node("MatMul", ["x", "w"], ["y"]),
    "again": helper.make_node("MatMul", ["x", "w"], ["v"]),
    "rows": helper.make_node("Gather", ["w", "i"], ["r"]),
    "transposed": helper.make_node("Gemm", ["x", "t"], ["g"], transB=1),
}


@told
@pytest.mark.parametrize(
    "names",
    [("rows",), ("product",), ("product", "again"), ("product", "rows"), ("transposed",)],
    ids="+".join,
)
def test_weights_count_again_where_a_kernel_packs_them_and_another_does_not(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    path = _weights_model(tmp_path / "m.onnx", [_NODES[name] for name in names])
    *_, last = run(Request(path))
    assert isinstance(last, Finished)
    # The session itself, with its graph and kernels, has about 1 MB.
    assert last.result.weights == pytest.approx(session_bytes(path) - 1e6, rel=0.1)


@told
@pytest.mark.skipif(platform.machine() != "x86_64", reason="packed as on x86")
@pytest.mark.parametrize("level", [0, 4])
def test_packed_blocks_have_their_scales_and_sums_with_them(tmp_path: Path, level: int) -> None:
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s"], ["y"], domain="com.microsoft", K=1024, N=1536, bits=4,
        block_size=32, accuracy_level=level,
    )  # fmt: skip
    path = _weights_model(tmp_path / "m.onnx", [node])
    plan, _ = planned(path)
    packed = measured_apart(path, {"x": np.ones((4, 1024), np.float32)}).before
    scales = 4 * 1536 * 1024 // 32
    assert plan.weights == pytest.approx(packed + scales, abs=256)


@told
@pytest.mark.parametrize("name", first(1, ["squeezenet", "shufflenet", "inception_v1"]))
def test_the_peak_of_networks_is_that_of_a_run(name: str) -> None:
    plan, peak = planned(LIGHT / f"light_{name}.onnx")
    assert plan.peak == pytest.approx(peak, rel=0.1)


_ASIDE = {"Add", "Mul", "Exp", "Erf", "Neg", "LayerNormalization", "MatMul", "Gelu"}
"""Operators whose kernels write elsewhere."""


@told
def test_kernels_write_in_place_where_onnx_runtime_has_it_so() -> None:
    """A kernel between one whose input has another shape and one that gives another type."""
    nodes, weights, kinds = [], [], []
    ops = sorted({name for domain, name in IN_PLACE if not domain and name != "ScatterElements"})
    size = [1, 8, 16, 16]
    weights.append(numpy_helper.from_array(np.ones(16, np.float32), "ones"))
    weights.append(numpy_helper.from_array(np.eye(16, dtype=np.float32), "eye"))
    for number, op in enumerate([*ops, *sorted(_ASIDE)]):
        times = np.array([number + 2, 1, 1, 1])  # no two chains have buffers of one shape
        weights.append(numpy_helper.from_array(times, f"{op}_times"))
        more = {"LayerNormalization": ["ones"], "MatMul": ["eye"], "Add": ["ones"], "Mul": ["ones"]}
        attributes: dict[str, Any] = {"to": TensorProto.INT32} if op == "Cast" else {}
        nodes += [
            helper.make_node("Tile", ["x", f"{op}_times"], [f"{op}_in"]),
            helper.make_node(op, [f"{op}_in", *more.get(op, [])], [f"{op}_out"], name=op,
                             **attributes),
            helper.make_node("Cast", [f"{op}_out"], [f"{op}_y"], to=TensorProto.DOUBLE),
            helper.make_node("ReduceMax", [f"{op}_y"], [f"{op}_z"], keepdims=0),
        ]  # fmt: skip
        kinds.append(helper.make_tensor_value_info(f"{op}_z", TensorProto.DOUBLE, []))
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, size)
    graph = helper.make_graph(nodes, "m", [given], kinds, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    grown = deltas(model.SerializeToString(), {"x": np.ones(size, np.float32)})
    assert {op for op in (*ops, *_ASIDE) if grown[op] == 0} == set(ops)


@told
def test_a_profile_has_in_use_what_was_planned(tmp_path: Path) -> None:
    path = write(tmp_path, ATTENTION)
    plan, _ = planned(path, "x:2x64x64")
    report = tmp_path / "a.dldprof"
    for _ in profile(Profile(path, report, shape=("x:2x64x64",), duration=0.02)):
        pass
    with Report.open(report) as found:
        in_use = {one.name: one.in_use_bytes for one in found.layers}
        assert max(filter(None, in_use.values())) == plan.peak
        events = found.pass_events(found.passes[-1].index)
        (row,) = memory_rows(found, events)
        last = events[-1].start_us + events[-1].duration_us
        assert max(one.maximum for one in row.series(0, last, 50) if one) == row.top
        assert row.top == pytest.approx(plan.peak / {"kB": 1e3, "MB": 1e6}[row.unit])
        assert any("at the peak" in one.text for one in measured_facts(found))
