"""Folding nodes: what stays, what goes, what is refused; the values are those that a run gives."""

from __future__ import annotations

from contextlib import closing

import onnx
import pytest

from dld_tui.core.errors import DldError
from dld_tui.core.model.document import Document
from tests.oracles import edited_models as oracle
from tests.support import models
from tests.support.sessions import bytes_of, node_in, tensor_in

MODEL = """
<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
net (float[3] x, bool choice) => (float[3] y, float[3] z)
<float[3] a = {1, 2, 3}, float[3] b = {4, 5, 6}, float[3] shared = {7, 8, 9}>
{
  [sum] s = Add (a, b)
  [square] t = Mul (s, shared)
  [narrow] c = Cast <to = 16> (t)
  [wide] d = Cast <to = 1> (c)
  [out] z = Neg (s)
  [chance] r = RandomNormal <shape = [3]> ()
  [parts] p, q = TopK <axis = 0> (b, k)
  [one] k = Constant <value = int64[1] {1}> ()
  [words] e = Constant <value_strings = ["b", "a"]> ()
  [sequence] list = SequenceConstruct (a, b)
  [used] u = Add (x, shared)
  [choose] v = If (choice) <
    then_branch = left () => (float[3] l) { [inner] m = Add (d, a)  [far] l = Mul (m, x) },
    else_branch = right () => (float[3] n) { [outer] n = Add (s, shared) }
  >
  [called] w = local.twice (a)
  [last] y = Sum (u, v, r, w, q0)
  [taken] q0 = Cast <to = 1> (q)
}
<opset_import: ["" : 17], domain: "local"> twice (i) => (o) {
  [f1] two = Constant <value = float {2.0}> ()
  [f2] four = Mul (two, two)
  [f3] o = Mul (i, four)
}
"""


def opened() -> Document:
    return Document(models.parse(MODEL))


def fold(document: Document, *nodes: str, scope: tuple[str, ...] = ()) -> str:
    return document.apply("fold_nodes", nodes=[[[*scope], node] for node in nodes]).title


def weights(document: Document) -> list[str]:
    return [tensor.name for tensor in document.main.initializers]


def test_sources_that_nothing_else_uses_go_and_outputs_stay() -> None:
    with closing(opened()) as document:
        fold(document, "wide")
        assert document.main.find("square") is None, "only `wide` was computed from it"
        assert document.main.find("sum") is not None, "the subgraph and the output use it"
        fold(document, "out")
        out = node_in(document, "out")
        assert (out.op_type, out.outputs) == ("Constant", ("z",))
        fold(document, "parts")
        assert weights(document) == ["a", "b", "shared", "d", "q"], "nothing uses the first output"
        assert document.main.find("one") is None


def test_subgraphs_and_functions() -> None:
    with closing(opened()) as document:
        with pytest.raises(DldError, match="depends on 's', which an outer graph computes"):
            fold(document, "outer", scope=("choose:else_branch",))
        fold(document, "sum")
        fold(document, "outer", scope=("choose:else_branch",))
        (branch,) = [s for s in document.main.walk() if s.path == ("choose:else_branch",)]
        assert [node.op_type for node in branch.nodes] == ["Constant"]  # an output of the graph
        fold(document, "f2", scope=("function local:twice",))
        (function,) = document.functions
        assert [node.op_type for node in function.nodes] == ["Constant", "Mul"]
        fold(document, "called")
        assert weights(document)[-1] == "w"


@pytest.mark.parametrize(
    ("node", "why"),
    [
        ("used", "node 'used' (Add) depends on input 'x'"),
        ("choose", "node 'choose' (If) depends on input 'choice'"),
        ("chance", "node 'chance' (RandomNormal) may make other values in each run"),
        ("sequence", "it cannot be computed: list is no tensor, which no constant can hold"),
        ("nowhere", "there is no node 'nowhere', and no node makes a tensor of this name"),
    ],
)
def test_what_is_no_constant_is_refused(node: str, why: str) -> None:
    with closing(opened()) as document:
        with pytest.raises(DldError) as raised:
            fold(document, node)
        assert raised.value.message == why


def test_strings_are_kept() -> None:
    with closing(opened()) as document:
        fold(document, "words")
        assert list(tensor_in(document, "e").proto.string_data) == [b"b", b"a"]


def test_a_tensor_beyond_the_limits_is_refused_before_it_is_made() -> None:
    text = """
    <ir_version: 8, opset_import: ["" : 17]> net (float[1] x) => (float[1] y)
    <float a = {1}, int64[2] shape = {1000000, 1000000}>
    { [big] t = Expand (a, shape)  [sum] s = ReduceSum <keepdims = 0> (t)  [y] y = Add (x, s) }
    """
    over = pytest.raises(DldError, match=r"node big \(Expand\): it takes over")
    with closing(Document(models.parse(text))) as document, over:
        fold(document, "sum")


def test_the_model_computes_the_same() -> None:
    model = models.parse(MODEL)
    del model.graph.node[5]  # of random values
    model.graph.node[-2].input.remove("r")
    feeds = oracle.feeds_for(model, 0)
    expected = oracle.bits_of(oracle.run(model.SerializeToString(), feeds))
    with closing(Document(model)) as document:
        fold(document, "sum", "square", "narrow", "wide", "parts", "one", "taken", "called", "out")
        fold(document, "inner", scope=("choose:then_branch",))
        folded = bytes_of(document)
    assert oracle.bits_of(oracle.run(folded, feeds)) == expected
    onnx.checker.check_model(folded)
    kinds = [node.op_type for node in onnx.ModelProto.FromString(folded).graph.node]
    assert kinds == ["Constant", "Constant", "SequenceConstruct", "Add", "If", "Sum"]
