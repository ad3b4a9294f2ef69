"""The costs of whole models, against counts made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.defs
import onnx.inliner
import pytest

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.model.cost.nodes import (
    COLUMNS,
    Cost,
    ModelCosts,
    cost_json,
    cost_lines,
    cost_table,
)
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.edits.inputs_outputs import declare_inputs
from dld_tui.core.model.shapes.inference import infer, store_types
from dld_tui.core.model.shapes.noting import follow_shapes
from dld_tui.core.tables.rendering import csv_of
from tests.support.models import parse

CHAIN = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[N, 4] x) => (float[N, 8] y)
<float[4, 8] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}, int64[2] s = {-1, 8}>
{
    [dense] a = MatMul (x, w)
    [act] b = Relu (a)
    [view] c = Reshape (b, s)
    [sum] y = Add (c, c)
}
"""  # noqa: E501


def costs_of(text: str, tmp_path: Path, **shapes: tuple[int, ...]) -> ModelCosts:
    onnx.save(parse(text), tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    sizes = declare_inputs(document, shapes)
    store_types(document, infer(onnx.load(tmp_path / "m.onnx")).model)
    branches: dict[Node, str] = {}
    if shapes:
        sizes |= follow_shapes(document, shapes, branches)
    return ModelCosts(document, sizes, branches)


def by_name(costs: ModelCosts) -> dict[str, Cost]:
    return {node.name or node.op_type: cost for node, cost in costs.nodes.items()}


CALLS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1, "com.microsoft" : 1]>
net (float[3, 64] x, float[N, 8] s, float[5, 8] t, float[5, 6, 7] u, uint8[32, 2, 16] q, float[64] k, bool c)
    => (y, z, a, b, i, l, m, n)
<int64 trips = {3}, bool on = {1}>
{
    [f1] h = local.dense <alpha = 0.5> (x, w1)
    [f2] y = local.dense <alpha = 0.25> (h, w2)
    [g2] a = local.twice (t, w3)
    [einsum] e = local.pairs (u)
    [abs] b = Abs (e)
    [if] i = If (c) <
        then_branch = yes () => (p) { p = local.dense (t, w3) },
        else_branch = no () => (p) { p = local.dense (t, w4) }
    >
    [loop] l = Loop (trips, on) <body = once (int64 at, bool go) => (bool still, float[5, 8] o)
        { still = Identity (go)  o = local.dense (t, w3) }>
    [bits1] m = local.packed <N = 32> (x, q, k)
    [g1] z = local.twice (s, w3)
    [late] early = Abs (z)
    [soft1] n = local.branch (x)
    [soft2] j = local.branch (t)
}
<domain: "local", opset_import: ["" : 18]>
dense <alpha> (v, w) => (r) { p = MatMul (v, w)  r = LeakyRelu <alpha: float = @alpha> (p) }
<domain: "local", opset_import: ["" : 18, "local" : 1]>
twice (v, w) => (r) { h = local.dense (v, w)  [again] r = local.dense (h, w) }
<domain: "local", opset_import: ["" : 18]>
pairs (v) => (r) { p = Einsum <equation = "...ij,...kj->...ik"> (v, v)  r = Sigmoid (p) }
<domain: "local", opset_import: ["" : 18, "com.microsoft" : 1]>
packed <N> (v, b, k) => (r) {
    r = com.microsoft.MatMulNBits <N: int = @N, K = 64, bits = 4, block_size = 32> (v, b, k)
}
<domain: "local", opset_import: ["" : 18]>
branch (v) => (r) {
    one = Constant <value_int = 1> ()
    yes = Cast <to = 9> (one)
    r = If (yes) <then_branch = soft () => (d) { d = Softmax <axis = -1> (v) },
                  else_branch = plain () => (d) { d = Identity (v) }>
}
"""  # noqa: E501


def with_weights(model: onnx.ModelProto, **shapes: tuple[int, ...]) -> onnx.ModelProto:
    for name, shape in shapes.items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(shape, "f"), name))
    return model


def counted(model: onnx.ModelProto, tmp_path: Path) -> ModelCosts:
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    store_types(document, infer(onnx.load(tmp_path / "m.onnx"), extra_types=contrib_types).model)
    return ModelCosts(document)


def test_calls_of_a_function_cost_what_their_shapes_and_attributes_say(tmp_path: Path) -> None:
    """By hand, and as the model in which all calls are inlined."""
    weights = {"w1": (64, 96), "w2": (96, 40), "w3": (8, 8), "w4": (8, 4)}
    model = with_weights(parse(CALLS), **weights)
    costs = counted(model, tmp_path)
    found = by_name(costs)
    macs = {name: str(found[name].macs) for name in found if found[name].macs not in (None, 0)}
    assert macs == {
        "f1": str(3 * 64 * 96), "f2": str(3 * 96 * 40), "g1": "128·N", "g2": str(2 * 5 * 8 * 8),
        "einsum": str(5 * 6 * 6 * 7), "if": str(5 * 8 * 8), "loop": str(3 * 5 * 8 * 8),
        "bits1": str(3 * 64 * 32), "Einsum": str(5 * 6 * 6 * 7), "MatMulNBits": str(3 * 64 * 32),
        "dense": str(5 * 8 * 8),
    }  # fmt: skip
    assert found["abs"].written == 5 * 6 * 6 * 4
    assert found["f1"].written == 2 * 3 * 96 * 4
    assert (found["f1"].parameters, found["g2"].parameters) == (64 * 96, 64)
    assert [node.ref for node in costs.unknown] == []
    # A node of a function costs what its calls agree on: the products here on nothing.
    assert found["MatMul"].macs is None
    assert found["LeakyRelu"].macs == 0
    flat = counted(onnx.inliner.inline_local_functions(model), tmp_path)
    assert costs.total[:4] == flat.total[:4]
    assert None not in costs.total


def test_more_kinds_of_calls_than_are_followed_are_not_known(tmp_path: Path) -> None:
    """What comes behind the bound is neither guessed nor left out silently."""

    def net(count: int) -> str:
        inputs = ", ".join(f"float[{at + 1}, 4] x{at}" for at in range(count))
        calls = "  ".join(f"y{at} = local.neg (x{at})" for at in range(count))
        return f"""
        <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        net ({inputs}) => ({", ".join(f"y{at}" for at in range(count))}) {{ {calls} }}
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        neg (u) => (v) {{ w = Neg (u)  v = local.inner (w) }}
        <domain: "local", opset_import: ["" : 18]>
        inner (u) => (v) {{ v = Abs (u) }}
        """

    assert costs_of(net(32), tmp_path).total.flops == 2 * 4 * sum(range(33))
    many = costs_of(net(33), tmp_path)
    assert (many.total.flops, many.known.flops) == (None, 0)
    assert sorted({node.op_type for node in many.unknown}) == ["Abs", "Neg"]


def without_shape(model: onnx.ModelProto) -> onnx.ModelProto:
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def test_bytes_of_unknown_size_are_said(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    m (float z, float[2, 3] x) => (float y) { a = Neg (x)  y = Transpose (z) }
    """
    model = parse(text.replace("float z", "float[] z").replace("float y", "float[] y"))
    model.graph.input[0].ClearField("type")
    costs = counted(without_shape(model), tmp_path)
    assert (costs.total.flops, costs.total.moved, costs.known.moved) == (6, None, 48)
    assert cost_lines(costs)[-2:] == [
        "moved      at least 48 B",
        "unsized    bytes of 1 node with tensors of unknown size: Transpose",
    ]
    facts = cost_json(costs, summarise(costs.document))
    assert (facts["unknown_nodes"], facts["unsized_nodes"]) == (0, 1)
    assert facts["at_least"] == ["read_bytes", "written_bytes", "activation_bytes"]
    assert ModelCosts(Document(model)).total.flops == 6, "of the second input without inference"


def test_the_table_is_one_for_text_and_csv(tmp_path: Path) -> None:
    table = cost_table(costs_of(CHAIN, tmp_path))
    assert table.keys == [column.key for column in COLUMNS]
    assert csv_of(table).splitlines()[1] == "dense,MatMul,32·N,64·N,16·N + 128,32·N,32,"
    assert [table.rows[at].node.name for at in (0, -1)] == ["dense", "sum"]
    assert table.sorted_by("flops").rows[0].node.name == "dense"


EXPERTS = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
net (float[1, T, 8] x, float[T, 4] r, int64[1, 3] ids, float[4, 16, 8] a, float[4, 8, 16] b,
     uint8[100, 8] table, float[100, 1] scales) => (float[1, T, 8] y, float[1, 3, 16] e)
{
    [moe] y = com.microsoft.MoE <k = 2> (x, r, a, , b)
    [embed] e = com.microsoft.GatherBlockQuantized <block_size = 16, quantize_axis = 1> (table, ids, scales)
}
"""  # noqa: E501


@pytest.mark.parametrize(("tokens", "experts"), [(1, 2), (2, 4), (9, 4)])
def test_only_the_rows_that_are_chosen_are_read(tokens: int, experts: int, tmp_path: Path) -> None:
    shapes = {"x": (1, tokens, 8), "r": (tokens, 4), "ids": (1, 3)}
    found = by_name(costs_of(EXPERTS, tmp_path, **shapes))
    one = 2 * 16 * 8 * 4  # the weights of an expert
    assert found["moe"].read == 4 * (tokens * 8 + tokens * 4) + experts * one
    assert found["embed"].read == 3 * 8 + 3 * (8 + 4)  # indices; a row and its scale each
    assert found["embed"].written == 3 * 16 * 4


PADS = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1, T] x, float[2, 1, 3] w) => (float[1, 2, U] y)
<int64[2] pads = {1, 2}, int64[1] two = {2}, int64[2] table = {-1, 2}, int64[1] list = {-1},
 int64[1] last = {-1}, int64[1] before = {-9223372036854775807}, int64[1] rows = {0},
 int64[1] back = {-1}, int64[1] one = {1}>
{
    zeros = ConstantOfShape (two)
    none = Cast <to = 7> (zeros)
    all = Concat <axis = 0> (pads, none)
    pairs = Reshape (all, table)
    turned = Slice (pairs, last, before, rows, back)
    columns = Transpose <perm = [1, 0]> (turned)
    flat = Reshape (columns, list)
    padded = Pad (x, flat)
    channel = Unsqueeze (padded, one)
    [conv] y = Conv (channel, w)
}
"""


def test_pads_that_an_exporter_computes_are_known(tmp_path: Path) -> None:
    # The pads of the last axis come first there: they are turned as rows of a matrix.
    costs = by_name(costs_of(PADS, tmp_path, x=(1, 10), w=(2, 1, 3)))
    assert costs["conv"].macs == 2 * (10 + 1 + 2 - 2) * 3


def test_types_narrower_than_a_byte_and_a_scale_have_sizes() -> None:
    """Built by hand, as the parser of onnx does not know all of them."""
    for kind, size in (("INT2", 3), ("UINT2", 3), ("INT4", 5), ("FLOAT8E8M0", 10)):
        if not hasattr(onnx.TensorProto, kind):  # a version before it
            continue
        number = onnx.TensorProto.DataType.Value(kind)
        x = onnx.helper.make_tensor_value_info("x", number, (10,))
        y = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (10,))
        node = onnx.helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)
        model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
        assert ModelCosts(Document(model)).total == Cost(0, 0, size, 40)


def test_work_that_values_decide_leaves_multiply_accumulates_known(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[1, 6, 4] boxes, float[1, 1, 6] scores, float[2, 3] a, float[3, 4] b)
        => (int64[n, 3] kept, float[2, 4] y)
    { [nms] kept = NonMaxSuppression (boxes, scores)  [mm] y = MatMul (a, b) }
    """
    costs = costs_of(text, tmp_path)
    assert cost_lines(costs)[:2] == ["MACs       24", "FLOPs      at least 48"]
    assert [node.ref for node in costs.unknown] == ["nms"]


def test_lines_say_how_to_get_numbers(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    m (float[2] z, float[batch, 3, h] x) => (float[batch, 3, h] y) { y = Add (x, x) }
    """
    hint = "dynamic    for numbers, give sizes: --shape x:Nx3xN"
    assert cost_lines(costs_of(text, tmp_path))[-1] == hint
    assert hint not in cost_lines(costs_of(text, tmp_path, x=(1, 3, 4)))


CACHED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
net (float[1, S, 32] q, float[1, S, 16] k, float[1, S, 16] v, float[1, 2, P, 8] pk, float[1, 2, P, 8] pv,
     int32[1] lengths, int32 total) => (float[1, S, 32] y, float[1, 2, LAST, 8] nk, float[1, 2, LAST, 8] nv)
{
    [gqa] y, nk, nv = com.microsoft.GroupQueryAttention <num_heads = 4, kv_num_heads = 2>
        (q, k, v, pk, pv, lengths, total)
}
"""  # noqa: E501


@pytest.mark.parametrize(
    ("last", "past", "rows", "seen"),
    [("T", 0, 5, 5), ("T", 3, 1, 4), ("T", 7, 2, 9), ("P", 16, 2, 16), ("9", 7, 2, 9)],
)
def test_a_cache_grows_unless_it_is_declared_to_stay_as_long(
    last: str, past: int, rows: int, seen: int, tmp_path: Path
) -> None:
    """ONNX Runtime infers that the present cache is as long as the past one: 0 before a prompt."""
    onnx.save(parse(CACHED.replace("LAST", last)), tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    shapes = {
        "q": (1, rows, 32), "k": (1, rows, 16), "v": (1, rows, 16), "pk": (1, 2, past, 8),
        "pv": (1, 2, past, 8),
    }  # fmt: skip
    sizes = declare_inputs(document, shapes)
    model = onnx.load(tmp_path / "m.onnx")
    for value in model.graph.input:
        for dim, size in zip(
            value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False
        ):
            dim.dim_value = size
    store_types(document, infer(model, extra_types=contrib_types).model)
    cost = by_name(ModelCosts(document, sizes))["gqa"]
    assert cost.macs == 4 * rows * seen * 2 * 8
    assert cost.written == 4 * (rows * 32 + 2 * 2 * seen * 8)


def test_a_cache_that_the_file_says_nothing_of_is_the_past_and_what_is_new(tmp_path: Path) -> None:
    """Here the outputs have no types at all."""
    text = CACHED.replace("float[1, 2, LAST, 8] n", "n").replace("float[1, S, 32] y", "y")
    costs = counted(parse(text), tmp_path)
    assert str(by_name(costs)["gqa"].macs) == "64·P·S + 64·S²"


def test_sizes_of_values_are_those_of_the_run(tmp_path: Path) -> None:
    costs = costs_of(CHAIN, tmp_path, x=(5, 4))
    main = costs.document.main
    assert (costs.elements_of(main, "a"), costs.bytes_of(main, "a")) == (40, 160)
    text = """<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    net (float[4] x) => (float[4] y) { y = Neg (x) }
    <domain: "local", opset_import: ["" : 18]> unused (u) => (v) { v = Abs (u) }"""
    costs = ModelCosts(Document(parse(text)))
    (unused,) = costs.document.functions
    assert (costs.elements_of(unused, "v"), costs.bytes_of(unused, "v")) == (None, None)


def test_what_a_custom_operator_makes_has_the_declared_size() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    net (float[2] x) => (float[N] y) <float[2] h> { h = own.Magic (x)  [last] y = Relu (h) }"""
    assert by_name(ModelCosts(Document(parse(text))))["last"].read == 8
