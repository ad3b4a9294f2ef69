"""Optimised models written by hand, the way ONNX Runtime saves them."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.report.formats.import_ort import FusionTracer, NodeFinder
from tests.support import models

ORIGINAL = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
<float[4,4,1,1] w, float[4] s = {1, 1, 1, 1}>
{
    two = Constant <value_float = 2.0> ()
    half = Reciprocal (two)
    [conv1] a = Conv (x, w)
    [scale] b = Mul (a, half)
    [relu1] c = Relu (b)
    [conv2] d = Conv (c, w)
    [sum] e = Add (d, c)
    [relu2] f = Relu (e)
    [gelu_div] g = Div (f, two)
    [gelu_erf] h = Erf (g)
    [gelu_mul] i = Mul (f, h)
    [last] y = Identity (i)
}
"""

OPTIMISED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1, "com.microsoft.nchwc" : 1]>
net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
<float[4,4,1,1] w, float[4,4,1,1] reorder>
{
    [ReorderInput] x2 = com.microsoft.nchwc.ReorderInput (x)
    [c_nchwc] reorder_1 = com.microsoft.nchwc.Conv <activation = "Relu"> (x2, reorder)
    [d_nchwc] reorder_2 =
        com.microsoft.nchwc.Conv <activation = "Relu"> (reorder_1, reorder, "", reorder_1)
    [ReorderOutput] f = com.microsoft.nchwc.ReorderOutput (reorder_2)
    [Gelu] y = com.microsoft.Gelu (f)
}
"""


def traced(folder: Path, original: str, optimised: str) -> tuple[FusionTracer, list[Node]]:
    document = Document.open(models.write(folder, original, "a.onnx"))
    other = Document.open(models.write(folder, optimised, "b.onnx"))
    return FusionTracer(NodeFinder(document), other), other.main.nodes


def names(nodes: list[Node]) -> list[str]:
    return [node.name for node in nodes]


def test_blocked_convolutions_with_fused_sums_and_activations(tmp_path: Path) -> None:
    tracer, (_, first, second, _, _) = traced(tmp_path, ORIGINAL, OPTIMISED)
    assert names(tracer.nodes_of(first)) == ["conv1", "scale", "relu1"]
    assert names(tracer.nodes_of(second)) == ["conv2", "sum", "relu2"]


def test_a_fused_chain_is_what_lies_between_its_tensors(tmp_path: Path) -> None:
    tracer, nodes = traced(tmp_path, ORIGINAL, OPTIMISED)
    found = names(tracer.nodes_of(nodes[-1]))
    assert sorted(found) == ["gelu_div", "gelu_erf", "gelu_mul", "last"]


def test_what_is_constant_is_no_part_of_a_kernel(tmp_path: Path) -> None:
    tracer, nodes = traced(tmp_path, ORIGINAL, OPTIMISED)
    covered = [node for kernel in nodes for node in tracer.nodes_of(kernel)]
    assert not {"Constant", "Reciprocal"} & {node.op_type for node in covered}
    assert len(covered) == len(set(covered))


def test_layout_changes_serve_the_blocked_neighbour(tmp_path: Path) -> None:
    tracer, (enter, _, _, leave, _) = traced(tmp_path, ORIGINAL, OPTIMISED)
    assert tracer.moves_data(enter)
    assert tracer.moves_data(leave)
    assert names(tracer.nodes_served(enter)) == ["conv1", "scale", "relu1"]
    assert names(tracer.nodes_served(leave)) == ["relu2"]
    assert tracer.nodes_of(enter) == []


def test_a_chain_of_inserted_nodes_serves_the_kernel_behind_it(tmp_path: Path) -> None:
    optimised = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
    <float[4,4,1,1] w, float[4,4,1,1] wt, int64[1] p>
    {
        [Reshape] w1 = Reshape (wt, p)
        [Cast] w2 = Cast <to = 1> (w1)
        [conv1] a = Conv (x, w2)
        [rest] y = Mystery (a)
    }
    """
    tracer, (reshape, cast, _, _) = traced(tmp_path, ORIGINAL, optimised)
    assert names(tracer.nodes_served(reshape)) == ["conv1"]
    assert names(tracer.nodes_served(cast)) == ["conv1"]


def test_a_renamed_output_is_known_by_the_nodes_own_name(tmp_path: Path) -> None:
    optimised = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
    <float[4,4,1,1] w>
    {
        [conv1] a_new = Conv (x, w)
        [rest] y = Mystery (a_new)
    }
    """
    tracer, (conv, rest) = traced(tmp_path, ORIGINAL, optimised)
    assert names(tracer.nodes_of(conv)) == ["conv1"]
    assert "conv1" not in names(tracer.nodes_of(rest))


def test_functions_that_were_inlined(tmp_path: Path) -> None:
    original = """
    <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
    net (float[4] x) => (float[4] y)
    {
        [call1] a = local.block (x)
        [call2] y = local.block (a)
    }
    <domain: "local", opset_import: ["" : 18]>
    block (v) => (r)
    {
        t = Relu (v)
        r = Neg (t)
    }
    """
    optimised = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[4] x) => (float[4] y)
    {
        _inlfunc_block_t = Relu (x)
        a = Neg (_inlfunc_block_t)
        _inlfunc_block_token_3_t = Relu (a)
        y = Neg (_inlfunc_block_token_3_t)
    }
    """
    tracer, nodes = traced(tmp_path, original, optimised)
    found = [tracer.nodes_of(node) for node in nodes]
    assert [[n.op_type for n in f] for f in found] == [["Relu"], ["Neg"], ["Relu"], ["Neg"]]
    assert {n.scope.path for f in found for n in f} == {("function local:block",)}


def test_subgraphs_keep_to_their_own_branch(tmp_path: Path) -> None:
    original = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (bool c, float[4] x) => (float[4] y)
    {
        [pick] y = If (c) <
            then_branch = yes () => (float[4] t) { [a] u = Neg(x) [b] t = Relu(u) },
            else_branch = no () => (float[4] t) { [c] u = Abs(x) [d] t = Relu(u) }
        >
    }
    """
    tracer, (pick,) = traced(tmp_path, original, original)
    no = pick.children["else_branch"][0]
    assert [names(tracer.nodes_of(node)) for node in no.nodes] == [["c"], ["d"]]


def test_a_cycle_ends(tmp_path: Path) -> None:
    cycle = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[4] x) => (float[4] y)
    { [p] a = Add (x, b) [q] b = Relu (a) [r] y = Neg (b) }
    """
    whole = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[4] x) => (float[4] y)
    { [k] y = Mystery (x) }
    """
    tracer, (kernel,) = traced(tmp_path, cycle, whole)
    assert sorted(names(tracer.nodes_of(kernel))) == ["p", "q", "r"]
