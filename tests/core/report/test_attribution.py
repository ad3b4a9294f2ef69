from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.report.formats.import_ort import Attribution
from dld_tui.core.report.formats.ort_profile import Kernel
from dld_tui.core.report.records import Confidence
from tests.support import models

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


def test_links_lead_back_to_their_nodes(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.BRANCHES))
    (link,), _ = Attribution(document).links(Kernel("shadow", "Abs"))
    node = document.scope_at(link.scope).find(link.node)
    assert node is not None
    assert (node.name, node.op_type) == ("shadow", "Abs")


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
