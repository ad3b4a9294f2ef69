"""The costs of whole models, against counts made by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.defs
import onnx.inliner
import pytest

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.model.cost.nodes import (
    COLUMNS,
    Cost,
    ModelCosts,
    cost_table,
)
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
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


def counted(model: onnx.ModelProto, tmp_path: Path) -> ModelCosts:
    onnx.save(model, tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    store_types(document, infer(onnx.load(tmp_path / "m.onnx"), extra_types=contrib_types).model)
    return ModelCosts(document)


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


def test_the_table_is_one_for_text_and_csv(tmp_path: Path) -> None:
    table = cost_table(costs_of(CHAIN, tmp_path))
    assert table.keys == [column.key for column in COLUMNS]
    assert csv_of(table).splitlines()[1] == "dense,MatMul,32·N,64·N,16·N + 128,32·N,32,"
    assert [table.rows[at].node.name for at in (0, -1)] == ["dense", "sum"]
    assert table.sorted_by("flops").rows[0].node.name == "dense"


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
