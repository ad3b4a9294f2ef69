"""Optimised models written by hand, the way ONNX Runtime saves them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.report.formats.import_ort import Attribution, FusionTracer, NodeFinder, outwards
from dld_tui.core.report.formats.ort_profile import Clue, Kernel
from dld_tui.core.report.records import Confidence
from tests.support import models
from tests.support.known import known

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


def test_each_kernel_has_the_nodes_that_it_computes(tmp_path: Path) -> None:
    """Constants are of none; what only changes the layout serves the blocked neighbour."""
    tracer, (enter, first, second, leave, gelu) = traced(tmp_path, ORIGINAL, OPTIMISED)
    assert names(tracer.nodes_of(first)) == ["conv1", "scale", "relu1"]
    assert names(tracer.nodes_of(second)) == ["conv2", "sum", "relu2"]
    assert sorted(names(tracer.nodes_of(gelu))) == ["gelu_div", "gelu_erf", "gelu_mul", "last"]
    assert tracer.nodes_of(enter) == tracer.nodes_of(leave) == []
    assert tracer.moves_data(enter)
    assert tracer.moves_data(leave)
    assert names(tracer.nodes_served(enter)) == ["conv1", "scale", "relu1"]
    assert names(tracer.nodes_served(leave)) == ["relu2"]


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


UNNAMED = """
<ir_version: 10, opset_import: ["" : 18]>
unnamed (float[4] x) => (float[4] y)
{
    a = Relu(x)
    two = Constant <value_float = 2.0> ()
    b = Mul(a, two)
    [named] c = Relu(b)
    y = Relu(c)
}
"""

TWICE = """
<ir_version: 10, opset_import: ["" : 18]>
twice (bool c, float[4] x) => (float[4] y)
{
    [pick] y = If (c) <
        then_branch = yes () => (float[4] t) { [same] t = Neg(x) },
        else_branch = no () => (float[4] e) { [same] e = Abs(x) }
    >
}
"""


def finder_of(folder: Path, text: str) -> NodeFinder:
    return NodeFinder(Document.open(models.write(folder, text)))


def test_unnamed_nodes_are_counted_without_constants(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, UNNAMED)
    assert [n.outputs for n in finder.find(Clue("index", "1"), "Mul")] == [("b",)]
    assert [n.outputs for n in finder.find(Clue("index", "3"), "Relu")] == [("y",)]
    assert finder.find(Clue("index", "2"), "Relu") == []  # has a name of its own
    assert finder.find(Clue("index", "1"), "Relu") == []
    assert finder.find(Clue("index", "99"), "Relu") == []


def test_the_operator_chooses_between_equal_names(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, TWICE)
    assert [n.op_type for n in finder.find(Clue("node", "same"), "Abs")] == ["Abs"]
    assert len(finder.find(Clue("node", "same"), "Exp")) == 2


def test_tensors_are_found_in_subgraphs(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, models.BRANCHES)
    (node,) = finder.find(Clue("tensor", "h"), "Neg")
    assert node.name == "inner"
    assert finder.path_of(node.scope) == ("choose:then_branch",)
    assert [scope.path for scope in outwards(node.scope)] == [("choose:then_branch",), ()]


@pytest.mark.parametrize(
    ("name", "path", "rest"),
    [
        ("choose_then_branch__Inline_0__inner", ("choose:then_branch",), "inner"),
        ("choose_else_branch__Inline_3__x", ("choose:else_branch",), "x"),
        ("other_then_branch__Inline_0__inner", None, "other_then_branch__Inline_0__inner"),
        ("plain", None, "plain"),
    ],
)
def test_names_of_inlined_branches(
    tmp_path: Path, name: str, path: tuple[str, ...] | None, rest: str
) -> None:
    scope, found = finder_of(tmp_path, models.BRANCHES).branch(name)
    assert (scope.path if scope else None, found) == (path, rest)


def test_search_within_a_branch(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, TWICE)
    (branch,) = finder.named("pick")[0].children["else_branch"]
    assert [n.op_type for n in finder.named("same", branch)] == ["Abs"]


def test_local_functions(tmp_path: Path) -> None:
    finder = finder_of(tmp_path, models.FUNCTIONS)
    (call,) = finder.named("call")
    body = known(finder.function_of(call))
    assert [n.op_type for n in body.nodes] == ["Add"]
    assert finder.function_of(body.nodes[0]) is None


NET = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,4,8,8] x) => (float[1,4,8,8] y)
<float[4,4,1,1] w>
{
    [conv] a = Conv (x, w)
    [act] b = Relu (a)
    [plus] c = Conv (b, w)
    [sum] d = Add (c, b)
    [act2] e = Relu (d)
    f = Sigmoid (e)
    [mul] y = Mul (e, f)
}
"""


@pytest.fixture
def attribution(tmp_path: Path) -> Attribution:
    return Attribution(Document.open(models.write(tmp_path, NET)))


@pytest.mark.parametrize(
    ("kernel", "nodes", "confidence"),
    [
        (Kernel("conv", "Conv"), ["conv"], "name"),
        (Kernel("mul", "Mul"), ["mul"], "name"),
        (Kernel("conv", "FusedConv"), ["conv", "act"], "rule"),
        (Kernel("plus", "FusedConv", input_dims=((1,),) * 4), ["plus", "sum", "act2"], "rule"),
        (Kernel("b_nchwc", "Conv"), ["conv", "act"], "rule"),
        (Kernel("c_nchwc", "Conv"), ["plus"], "rule"),
        (Kernel("mul/QuickGeluFusion/", "QuickGelu"), ["mul"], "rule"),
        (Kernel("mul_token_4", "Mul"), ["mul"], "rule"),
        (Kernel("Sigmoid_5", "Sigmoid"), ["f"], "rule"),
        (Kernel("ReorderInput_token_4", "ReorderInput"), [], "none"),
        (Kernel("", "Relu"), [], "none"),
        (Kernel("elsewhere", "Conv"), [], "none"),
    ],
)
def test_names_alone(
    attribution: Attribution, kernel: Kernel, nodes: list[str], confidence: Confidence
) -> None:
    links, found = attribution.links(kernel)
    assert [link.name or link.node[1:] for link in links] == nodes
    assert found == confidence
    assert all(link.confidence == confidence for link in links)
    assert sum(link.share for link in links) == pytest.approx(1 if nodes else 0)


def test_an_inlined_branch(tmp_path: Path) -> None:
    attribution = Attribution(Document.open(models.write(tmp_path, models.BRANCHES)))
    links, confidence = attribution.links(Kernel("choose_then_branch__Inline_0__inner", "Neg"))
    assert [(link.scope, link.node) for link in links] == [(("choose:then_branch",), "inner")]
    assert confidence == "name"


def test_order_identifies_kernels_without_a_name(tmp_path: Path) -> None:
    original = Document.open(models.write(tmp_path, NET))
    unnamed = NET.replace("[act]", "").replace("[conv]", "").replace("[mul]", "")
    optimised = Document.open(models.write(tmp_path, unnamed, "optimised.onnx"))
    kernels = [Kernel(f"{n.op_type}_{90 + i}" if not n.name else n.name, n.op_type, node_index=i)
               for i, n in enumerate(optimised.main.nodes)]  # fmt: skip
    attribution = Attribution(original, optimised)
    assert attribution.links(kernels[0]) == ((), "none")
    assert not attribution.align(kernels[1:])
    assert attribution.align(kernels)
    links, confidence = attribution.links(kernels[0])
    assert ([link.name for link in links], confidence) == (["conv"], "tensor")


def test_the_most_telling_node_comes_first(tmp_path: Path) -> None:
    original = Document.open(models.write(tmp_path, NET))
    fused = """
    <ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
    net (float[1,4,8,8] x) => (float[1,4,8,8] y)
    <float[4,4,1,1] w>
    {
        [conv] b = com.microsoft.FusedConv (x, w)
        [plus] e = com.microsoft.FusedConv (b, w, "", b)
        [swish] y = com.microsoft.QuickGelu (e)
    }
    """
    attribution = Attribution(
        original, Document.open(models.write(tmp_path, fused, "optimised.onnx"))
    )
    links, confidence = attribution.links(Kernel("plus", "FusedConv"))
    assert ([link.name for link in links], confidence) == (["plus", "sum", "act2"], "tensor")
    assert [link.share for link in links] == [
        pytest.approx(share) for share in (4 / 6, 1 / 6, 1 / 6)
    ]
    assert attribution.shared_by == "macs"
    links, _ = attribution.links(Kernel("swish", "QuickGelu"))
    assert {link.name or link.node for link in links} == {">f", "mul"}
