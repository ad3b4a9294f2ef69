"""How the time of a layer is shared by the nodes in it: exact shares, and the rule."""

from __future__ import annotations

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.report.records import Layer, NodeLink, SharedBy
from dld_tui.core.report.sharing import (
    cost_shares,
    dims_of,
    macs_per_element,
    node_macs,
    sharing_note,
)
from tests.support import models

TEXT = """<ir_version: 10, opset_import: ["" : 18, "custom" : 1, "com.microsoft" : 1]>
g (float[2, 4] x, float[N, 4] n, float16[2, 4] h, float[1, 3, 8, 8] i, float[N, 3, 8, 8] j,
   float[2, N] l) =>
  (float[2, 6] m, float[2, 4] r, float16[2, 4] s, float[N, 6] d, float[N, 6] g, float[N, 6] t,
   float[1, 2, 6, 6] c, float[1, 5, 10, 10] e, float[N, 4] a, float[Q] z, float[Q] q, float[N] v,
   float[N, 5, 17, 17] o, float[N, 6] y, float[2, 4] p)
<float[4, 6] w = {0}, float[6, 4] u = {0}, float[2, 3, 3, 3] k = {0}, float[3, 5, 3, 3] f = {0},
 float[4] b = {0}>
{
    m = MatMul (x, w)
    r = Relu (x)
    s = Neg (h)
    d = MatMul (n, w)
    g = Gemm (n, w)
    t = Gemm <transB = 1> (n, u)
    c = Conv (i, k)
    e = ConvTranspose (i, f)
    a = Relu (n)
    z = custom.Thing (n)
    q = MatMul (z, z)
    v = MatMul (n, b)
    o = ConvTranspose <strides = [2, 2]> (j, f)
    y = com.microsoft.FusedMatMul (n, w)
    p = MatMul (l, n)
}"""
DOCUMENT = Document(models.parse(TEXT))
NODES: dict[str, Node] = {node.outputs[0]: node for node in DOCUMENT.main.nodes}


def test_multiply_accumulates_of_nodes() -> None:
    assert {name: node_macs(node) for name, node in NODES.items()} == {
        "m": 2 * 6 * 4, "r": 0, "s": 0, "d": None, "g": None, "t": None, "c": 2 * 36 * 27,
        "e": 3 * 64 * 45, "a": 0, "z": 0, "q": None, "v": None,
        "o": None, "y": None, "p": None,
    }  # fmt: skip
    assert {name: macs_per_element(node) for name, node in NODES.items()} == {
        "m": 4, "r": None, "s": None, "d": 4, "g": 4, "t": 4, "c": 27, "e": 17.28, "a": None,
        "z": None, "q": None, "v": 4, "o": 3 * 64 * 45 / (5 * 17 * 17), "y": 4, "p": None,
    }  # fmt: skip
    assert [dims_of(DOCUMENT.main, name) for name in ("x", "n", "", "z")] == [
        (2, 4), None, None, None,
    ]  # fmt: skip


def shared(names: str, elements: int | None = None) -> tuple[list[float], SharedBy]:
    """Return the shares of nodes by their outputs; ``?Op`` is an operator of an unknown node."""
    return cost_shares(
        [
            (None, name[1:]) if name.startswith("?") else (NODES[name], NODES[name].op_type)
            for name in names.split()
        ],
        elements,
    )


def test_rules_are_counted_in_a_sentence() -> None:
    link = NodeLink((), "a", "a", "X")
    two, one = (link, link), (link,)
    layers = [
        Layer("a", "X", nodes=two, shared_by="macs"), Layer("b", "X", nodes=two),
        Layer("c", "X", nodes=two, shared_by="bytes"), Layer("d", "X", nodes=one, shared_by="macs"),
        Layer("e", "X", nodes=two, shared_by="macs"),
    ]  # fmt: skip
    assert sharing_note(layers) == (
        "the time of a layer made of several nodes is an estimate, shared by their"
        " multiply-accumulates (2), by the bytes they move (1), equally, as nothing is known of"
        " their cost (1)"
    )
    assert sharing_note(layers[3:4]) == ""
