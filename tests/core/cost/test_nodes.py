"""The costs of whole models, against counts made by hand."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.cost.nodes import COLUMNS, Cost, ModelCosts, cost_json, cost_lines, cost_table
from dld_tui.core.document.document import Document
from dld_tui.core.document.summary import summarise
from dld_tui.core.document.types.inference import infer, take_types
from dld_tui.core.inputs.propagation import declare_inputs, follow_shapes
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

BODIES = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[2, 4] x, float[4, 4] w, bool choice) => (float[2, 4] y, float[3, 2, 4] l)
<int64 trips = {3}, bool go = {1}>
{
    [choose] a = If (choice) <
        then_branch = t () => (float[2, 4] p) { p = MatMul (x, w) },
        else_branch = e () => (float[2, 4] q) { q = Relu (x) }
    >
    [call] y = local.twice (a)
    [loop] l = Loop (trips, go) <
        body = b (int64 i, bool c) => (bool d, float[2, 4] z)
        { d = Identity (c)  z = MatMul (x, w) }
    >
}
<domain: "local", opset_import: ["" : 18]>
twice (u) => (v) { h = Neg (u)  v = Abs (h) }
"""


def costs_of(text: str, tmp_path: Path, **shapes: tuple[int, ...]) -> ModelCosts:
    onnx.save(parse(text), tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    sizes = declare_inputs(document, shapes)
    take_types(document, infer(onnx.load(tmp_path / "m.onnx")).model)
    if shapes:
        sizes |= follow_shapes(document, shapes)
    return ModelCosts(document, sizes)


def by_name(costs: ModelCosts) -> dict[str, Cost]:
    return {node.name or node.op_type: cost for node, cost in costs.nodes.items()}


def test_symbolic_and_with_numbers(tmp_path: Path) -> None:
    costs = costs_of(CHAIN, tmp_path)
    found = by_name(costs)
    assert [str(count) for count in found["dense"]] == ["32·N", "64·N", "16·N + 128", "32·N", "32"]
    assert [str(count) for count in found["act"]] == ["0", "8·N", "32·N", "32·N", "0"]
    assert found["view"] == Cost()
    assert str(costs.total.flops) == "80·N"
    found = by_name(costs_of(CHAIN, tmp_path, x=(5, 4)))
    # 5 x 8 elements of 4 bytes; what is added to itself is read once.
    assert found["sum"] == Cost(0, 40, 160, 160, 0)
    assert found["dense"] == Cost(160, 320, 5 * 16 + 128, 160, 32)


def test_bodies_functions_and_loops(tmp_path: Path) -> None:
    found = by_name(costs_of(BODIES, tmp_path))
    product = Cost(2 * 4 * 4, 2 * 2 * 4 * 4, 32 + 64, 32)
    assert found["choose"] == product  # the costlier branch
    assert found["loop"] == Cost(3 * 32, 3 * 64, 3 * 96, 3 * 32)
    assert found["call"] == Cost(0, 16, 64, 64)


def test_scan_runs_its_body_once_an_element(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[2] s, float[7, 2] x) => (float[2] e, float[7, 2] y)
    {
        [scan] e, y = Scan <num_scan_inputs = 1,
            body = b (float[2] i, float[2] one) => (float[2] o, float[2] r)
            { o = Add (i, one)  r = Identity (o) }
        > (s, x)
    }
    """
    assert by_name(costs_of(text, tmp_path))["scan"] == Cost(0, 14, 7 * 16, 7 * 8)


def test_what_is_selected_is_read_and_not_the_table(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (int64[3] ids, float[1000, 8] table) => (float[3, 8] y)
    { [pick] y = Gather (table, ids) }
    """
    assert by_name(costs_of(text, tmp_path))["pick"] == Cost(0, 0, 3 * 8 * 4 + 24, 96)


def test_a_function_whose_calls_differ_is_not_guessed(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    net (float[2] a, float[9] b) => (c, d) { c = local.neg (a)  d = local.neg (b) }
    <domain: "local", opset_import: ["" : 18]>
    neg (u) => (v) { v = Neg (u) }
    """
    costs = costs_of(text, tmp_path, a=(2,), b=(9,))
    assert [cost.flops for cost in costs.nodes.values()] == [None] * 3
    assert costs.total.flops is None


def test_unknown_operators_are_said(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18, "own" : 1]>
    net (float[2] x) => (float[2] y) { a = Relu (x)  y = own.Magic (x) }
    """
    costs = costs_of(text, tmp_path)
    assert cost_lines(costs) == [
        "MACs       not known", "FLOPs      at least 2", "moved      32 B",
        "unknown    1 node, not counted: own.Magic",
    ]  # fmt: skip
    assert cost_json(costs, summarise(costs.document))["unknown_nodes"] == 1


def test_the_table_is_one_for_text_and_csv(tmp_path: Path) -> None:
    table = cost_table(costs_of(CHAIN, tmp_path))
    assert table.keys == [column.key for column in COLUMNS]
    assert csv_of(table).splitlines()[1] == "dense,MatMul,32·N,64·N,16·N + 128,32·N,32,"
    assert [table.rows[at].node.name for at in (0, -1)] == ["dense", "sum"]
    assert table.sorted_by("flops").rows[0].node.name == "dense"


@pytest.mark.parametrize("bits", [4, 8])
def test_packed_weights_take_the_bytes_that_they_are_stored_in(tmp_path: Path, bits: int) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    net (float[1, 3, 64] x, uint8[32, 2, {bits * 4}] w, float[64] s) => (y)
    {{
        [q] y = com.microsoft.MatMulNBits
            <N = 32, K = 64, bits = {bits}, block_size = 32> (x, w, s)
    }}
    """
    cost = by_name(costs_of(text, tmp_path))["q"]
    macs, read = 3 * 64 * 32, 3 * 64 * 4 + 64 * 4 + 64 * bits * 4
    assert cost == Cost(macs, 2 * macs, read, 3 * 32 * 4)


@pytest.mark.parametrize(("taken", "macs"), [("1", 64), ("0", 0)])
def test_an_if_with_a_constant_condition_costs_what_it_takes(
    taken: str, macs: int, tmp_path: Path
) -> None:
    text = f"""
    <ir_version: 10, opset_import: ["" : 18]>
    m (float[4, 4] x) => (float[4, 4] y) <bool c = {{{taken}}}>
    {{
        [choose] y = If (c) <then_branch = a () => (float[4, 4] t) {{ [mm] t = MatMul (x, x) }},
                             else_branch = b () => (float[4, 4] e) {{ [n] e = Neg (x) }}>
    }}
    """
    costs = costs_of(text, tmp_path)
    assert costs.known.macs == macs
    assert {node.ref: cost.flops for node, cost in costs.nodes.items()} == {
        "choose": 2 * macs or 16, "mm": 128, "n": 16,
    }  # fmt: skip


@pytest.mark.parametrize(("version", "macs", "trips"), [(8, 64, False), (3, 0, True)])
def test_what_is_only_a_default_is_no_constant(
    version: int, macs: int, trips: bool, tmp_path: Path
) -> None:
    """From IR version 4 on a caller may give another condition, and another number of trips."""
    text = f"""
    <ir_version: {version}, opset_import: ["" : 18]>
    m (float[4, 4] x, bool c = {{0}}, int64 n = {{5}}, bool go = {{1}}) => (float[4, 4] y, float[k, 4, 4] l)
    {{
        [choose] y = If (c) <then_branch = a () => (float[4, 4] t) {{ t = MatMul (x, x) }},
                             else_branch = b () => (float[4, 4] e) {{ e = Neg (x) }}>
        [loop] l = Loop (n, go) <body = d (int64 i, bool p) => (bool q, float[4, 4] z)
            {{ q = Identity (p)  z = Neg (x) }}>
    }}
    """  # noqa: E501
    document = Document(parse(text))
    found = {node.ref: cost for node, cost in ModelCosts(document).nodes.items()}
    assert found["choose"].macs == macs  # the dearer branch, where either may run
    assert (found["loop"].flops == 5 * 16) is trips
    assert isinstance(found["loop"].flops, int) is trips


def test_sizes_of_outputs_that_follow_from_inputs_are_numbers(tmp_path: Path) -> None:
    """Exporters name the sizes of outputs: 17 is that of 33 in steps of two."""
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    m (float[2, 8, 33] x, float[12, 4, 5] w, float[N, 3] z) => (float[2, 12, Convy_dim_2] y, float[N, 3] s)
    {
        [c] y = Conv <group = 2, auto_pad = "SAME_UPPER", strides = [2], kernel_shape = [5]> (x, w)
        [s] s = Relu (z)
    }
    """  # noqa: E501
    costs = costs_of(text, tmp_path)
    found = {node.ref: (str(cost.macs), str(cost.written)) for node, cost in costs.nodes.items()}
    assert found == {"c": (str(2 * 12 * 17 * 4 * 5), str(2 * 12 * 17 * 4)), "s": ("0", "12·N")}
