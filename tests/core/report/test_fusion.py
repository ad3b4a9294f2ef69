"""Optimised models written by hand, the way ONNX Runtime saves them."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import Document
from dld_tui.core.report.formats.import_ort import Attribution, FusionTracer, NodeFinder, outwards
from dld_tui.core.report.formats.ort_profile import Clue, Kernel
from dld_tui.core.report.records import NodeLink
from tests.support import models
from tests.support.known import known
from tests.support.recorded import Recorded, settled

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


INSERTED = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
<float[4,4,1,1] w, float[4,4,1,1] wt, int64[1] p>
{
    [Reshape] w1 = Reshape (wt, p)
    [Cast] w2 = Cast <to = 1> (w1)
    [conv1] a = Conv (x, w2)
    [rest] y = Mystery (a)
    [loose] z = Cast <to = 1> (nothing)
    [copy] f = Identity (f2)
    [copy2] f2 = com.microsoft.MemcpyToHost (f)
    [sink] = Sink (w)
}
"""
RENAMED = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,4,8,8] x, float[4,4,1,1] v) => (float[1,4,8,8] y)
<float[4,4,1,1] w>
{
    [conv1] a_new = Conv (x, w)
    [InsertedPrecisionFreeCast_c_nchwc_token_5] c_new = Conv (a_new, w)
    [cast] InsertedPrecisionFreeCast_d = Cast <to = 10> (d)
    [rest] y = Mystery (a_new, InsertedPrecisionFreeCast_d)
}
"""
WEIGHTS = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[2,4] x) => (float[2,4] y)
<float[1] w = {1}, float[1] b = {2}, float[1] shared = {3}>
{
    [product] a = MatMul (x, w)
    [bias] c = Add (a, b)
    [one] d = Add (c, shared)
    [two] y = Add (d, shared)
}
"""
GEMM = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[2,4] x) => (float[2,4] y)
<float[1] w = {1}, float[1] b = {2}, float[1] shared = {3}, int64[1] s = {8}>
{
    [in] p = Reshape (x, s)
    [gemm] q = Gemm (p, w, b)
    [out] r = Reshape (q, s)
    [sums] y = Sum (r, shared)
}
"""
CALLS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[4] x) => (float[4] y)
{ [call1] a = local.block (x) [call2] y = local.block (a) }
<domain: "local", opset_import: ["" : 18]>
block (v) => (r) { t = Relu (v) r = Neg (t) }
"""
INLINED = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y)
{
    _inlfunc_block_t = Relu (x)
    a = Neg (_inlfunc_block_t)
    _inlfunc_block_token_3_t = Relu (a)
    y = Neg (_inlfunc_block_token_3_t)
}
"""
CHOICE = """
<ir_version: 10, opset_import: ["" : 18]>
net (bool c, float[4] x) => (float[4] y)
{
    [pick] y = If (c) <
        then_branch = yes () => (float[4] t) { [a] u = Neg(x) [b] t = Relu(u) },
        else_branch = no () => (float[4] t) { [c] u = Abs(x) [d] t = Relu(u) }
    >
}
"""
CYCLE = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y)
{ [p] a = Add (x, b) [q] b = Relu (a) [r] y = Neg (b) }
"""
JOIN = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y)
{
    [s] s = Relu (x)
    [p] p = Neg (s)
    [q] q = Abs (s)
    [r] r = Exp (x)
    [sum] y = Sum (r, p, q)
}
"""
MYSTERY = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[4] x) => (float[4] y)
{ [k] y = Mystery (x) }
"""
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


FUSED = """
<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1]>
net (float[1,4,8,8] x) => (float[1,4,8,8] y)
<float[4,4,1,1] w>
{
    [conv] b = com.microsoft.FusedConv (x, w)
    [plus] e = com.microsoft.FusedConv (b, w, "", b)
    [swish] y = com.microsoft.QuickGelu (e)
}
"""
UNNAMED_NET = NET.replace("[act]", "").replace("[conv]", "").replace("[mul]", "")
PAIRS = {
    "fused": (ORIGINAL, OPTIMISED), "inserted": (ORIGINAL, INSERTED),
    "renamed": (ORIGINAL, RENAMED),
    "functions": (CALLS, INLINED), "branches": (CHOICE, CHOICE), "a cycle": (CYCLE, MYSTERY),
    "a join": (JOIN, MYSTERY),
    "weights": (WEIGHTS, GEMM), "the same": (NET, NET), "net": (NET, FUSED),
}  # fmt: skip


def opened(folder: Path, text: str, name: str = "a.onnx") -> Document:
    return Document.open(models.write(folder, text, name))


def linked(links: tuple[NodeLink, ...]) -> str:
    return ", ".join(
        f"{link.label} {link.op_type} {link.share:.4f} {link.confidence}" for link in links
    )


def test_which_nodes_each_kernel_computes_or_serves(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    for title, texts in PAIRS.items():
        document, optimised = (
            opened(tmp_path, text, f"{at}.onnx") for at, text in enumerate(texts)
        )
        tracer = FusionTracer(NodeFinder(document), optimised)
        attribution = Attribution(document, optimised)
        lines = []
        for scope in optimised.scopes():
            for node in scope.nodes:
                names = [one.name or one.ref for one in tracer.nodes_of(node)]
                moves = tracer.moves_data(node)
                served = [one.name or one.ref for one in tracer.nodes_served(node)] if moves else ""
                lines.append(
                    f"{[*scope.path]} {node.name} {node.op_type}: {names} {moves} {served}"
                )
                kernel = Kernel(node.name, node.op_type, output_dims=((1, 4, 8, 8),))
                links, confidence = attribution.links(kernel)
                lines.append(f"  {confidence} {attribution.shared_by}: {linked(links)}")
        told[title] = settled("\n".join(lines))
    recorded("whole_fusions", told)


KERNELS = (
    Kernel("conv", "Conv"), Kernel("mul", "Mul"), Kernel("conv", "FusedConv"),
    Kernel("plus", "FusedConv", input_dims=((1,),) * 4), Kernel("plus", "FusedConv"),
    Kernel("b_nchwc", "Conv", output_dims=((1, 4, 8, 8),)), Kernel("c_nchwc", "Conv"),
    Kernel("e_nchwc", "Conv"), Kernel("e_nchwc", "Exp"), Kernel("y_nchwc", "Conv"),
    Kernel("mul/QuickGeluFusion/", "QuickGelu"), Kernel("mul_token_4", "Mul"),
    Kernel("Sigmoid_5", "Sigmoid"), Kernel("Sigmoid_99", "Sigmoid"), Kernel("Conv_0", "Conv"),
    Kernel("ReorderInput_token_4", "ReorderInput"), Kernel("", "Relu"), Kernel("elsewhere", "Conv"),
)  # fmt: skip


def test_which_nodes_a_name_alone_tells(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    for title, text in (("net", NET), ("twice", TWICE), ("branches", models.BRANCHES)):
        attribution = Attribution(opened(tmp_path, text, f"{title}.onnx"))
        lines = []
        for kernel in (*KERNELS, Kernel("same", "Abs"), Kernel("same", "Exp"),
                       Kernel("choose_then_branch__Inline_0__inner", "Neg"),
                       Kernel("If_1_then_branch__Inline_0__inner", "Neg")):  # fmt: skip
            links, confidence = attribution.links(kernel)
            subject = attribution.subject(kernel, links)
            lines.append(f"{kernel.name} {kernel.op_type}: {confidence} {attribution.shared_by}"
                         f" {subject.ref if subject else '–'} {linked(links)}")  # fmt: skip
        told[title] = settled("\n".join(lines))
    around = NodeLink((), "pick", "pick", "If")
    twice = Attribution(opened(tmp_path, TWICE))
    told["twice, inside"] = linked(twice.links(Kernel("same", "Exp"), around)[0])
    recorded("whole_attributions", told)


def test_what_is_found_by_clues(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    texts = {"unnamed": UNNAMED, "twice": TWICE, "branches": models.BRANCHES,
             "an unnamed If": models.BRANCHES.replace("[choose]", "")}  # fmt: skip
    clues = [Clue("index", "1"), Clue("index", "3"), Clue("index", "2"), Clue("index", "99"),
             Clue("node", "same"), Clue("tensor", "h"), Clue("tensor", "t"),
             Clue("node", "")]  # fmt: skip
    for title, text in texts.items():
        finder = NodeFinder(opened(tmp_path, text, f"{title}.onnx"))
        lines = []
        for clue in clues:
            for op_type in ("Mul", "Relu", "Abs", "Exp"):
                found = [f"{[*finder.path_of(node.scope)]} {node.ref}"
                         for node in finder.find(clue, op_type)]  # fmt: skip
                if found:
                    lines.append(f"{clue.kind} {clue.text} {op_type}: {found}")
        for name in ("choose_then_branch__Inline_0__inner", "choose_else_branch__Inline_3__x",
                     "If_1_then_branch__Inline_0__x", "other_then_branch__Inline_0__inner",
                     "choose_no_branch__Inline_0__x", "plain"):  # fmt: skip
            scope, rest = finder.branch(name)
            lines.append(f"{name}: {scope.path if scope else None} {rest}")
            if scope is not None:
                lines.append(str([one.path for one in outwards(scope)]))
                lines.append(str([one.ref for one in finder.named("inner", scope)]))
                lines.append(str([one.ref for one in finder.producers("h", scope)]))
        told[title] = "\n".join(lines)
    recorded("whole_findings", told)


def test_local_functions(tmp_path: Path) -> None:
    finder = NodeFinder(opened(tmp_path, models.FUNCTIONS))
    (call,) = finder.named("call")
    body = known(finder.function_of(call))
    assert [n.op_type for n in body.nodes] == ["Add"]
    assert finder.function_of(body.nodes[0]) is None


def test_order_identifies_kernels_without_a_name(tmp_path: Path) -> None:
    original, optimised = opened(tmp_path, NET), opened(tmp_path, UNNAMED_NET, "optimised.onnx")
    kernels = [Kernel(f"{n.op_type}_{90 + i}" if not n.name else n.name, n.op_type, node_index=i)
               for i, n in enumerate(optimised.main.nodes)]  # fmt: skip
    attribution = Attribution(original, optimised)
    assert attribution.links(kernels[0]) == ((), "none")
    assert not attribution.align(kernels[1:])
    assert not attribution.align([*kernels[:-1], Kernel("other", kernels[-1].op_type)][::-1])
    assert not Attribution(original).align(kernels)
    assert attribution.align(kernels)
    links, confidence = attribution.links(kernels[0])
    assert ([link.name for link in links], confidence) == (["conv"], "tensor")
