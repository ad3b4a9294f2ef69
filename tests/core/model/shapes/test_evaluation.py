"""Shapes through a whole model: names, functions, subgraphs, and where knowledge ends."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import UNKNOWN, symbol
from dld_tui.core.model.shapes.value import Dims, Value
from tests.support import models

N, T = symbol("N"), symbol("T")
HEADS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
g (float[N, T, 48] x, bool c) => (float[a, b, d, e] y, float[a, b] z, float[t, a, b] l)
<int64[1] two = {2}, int64 four = {4}, bool yes = {1}, int64 trips = {3}>
{
    r = local.apart <heads = 4> (x)
    y = Transpose <perm = [0, 2, 1, 3]> (r)
    m = ReduceMean <keepdims = 0> (y, two)
    z = If (c) <then_branch = a () => (float[p, q] u) { u = Flatten <axis = 1> (m) },
                else_branch = b () => (float[p, q] v) { w = Flatten <axis = 1> (m) v = Neg (w) }>
    l = Loop <body = k (int64 i, bool o) => (bool n, float[p, q] s) {
        n = Identity (o) s = Relu (z) }> (trips, yes)
}
<domain: "local", opset_import: ["" : 18]>
apart <heads> (v) => (w) {
    h = Shape <end = 2> (v) n = Constant <value_int: int = @heads> ()
    zero = Constant <value_ints = [0]> () k = Unsqueeze (n, zero)
    rest = Constant <value_ints = [-1]> () s = Concat <axis = 0> (h, k, rest) w = Reshape (v, s) }
"""
DATA = """
<ir_version: 10, opset_import: ["" : 18, "other" : 1]>
g (float[4, 6] x) => (float[a, b] y, float[c, d] z)
{ i = NonZero (x) t = Transpose (i) f = Cast <to = 1> (t) y = Neg (f) z = other.Mystery (x) }
"""


def test_names_go_through_functions_branches_and_loops(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, HEADS))) as document:
        evaluation = Evaluation(document, {"x": Value((N, T, 48)), "c": Value(())})
        main = document.main
        assert evaluation.value(main, "r").dims == (N, T, 4, 12)
        assert evaluation.value(main, "y").dims == (N, 4, T, 12)
        assert evaluation.value(main, "z").dims == (N, 48)
        assert evaluation.value(main, "l").dims == (3, N, 48)
        assert not evaluation.demands.failed


SCAN_BODY = (
    "body = k (float[p] s, float[q, r] v) => (float[p] t, float[q, r] w) {{ t = {} w = Neg (v) }}"
)


@pytest.mark.parametrize(
    ("opset", "axes", "carry", "shapes", "made"),
    [
        (18, "", "Neg (s)", [(2,), (5, 3, 4)], [(2,), (5, 3, 4)]),
        (18, "scan_input_axes = [1],", "Neg (s)", [(2,), (5, 3, 4)], [(2,), (3, 5, 4)]),
        (18, "scan_output_axes = [1],", "Neg (s)", [(2,), (5, 3, 4)], [(2,), (3, 5, 4)]),
        (18, "scan_input_axes = [-1], scan_output_axes = [-1],", "Neg (s)",
         [(2,), (T, 3, N)], [(2,), (T, 3, N)]),
        (18, "", "Concat <axis = 0> (s, s)", [(2,), (5, 3, 4)], [(UNKNOWN,), (5, 3, 4)]),
        (8, "", "Neg (s)", [(), (N, 2), (N, T, 3, 4)], [(N, 2), (N, T, 3, 4)]),
    ],
)  # fmt: skip
def test_a_scan_goes_along_an_axis_of_each_input(
    opset: int, axes: str, carry: str, shapes: list[Dims], made: list[Dims]
) -> None:
    names = ["lengths", "s", "x"][-len(shapes) :]
    model = models.parse(
        f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g (float s, float x) => (float a, float b) {{
            a, b = Scan <num_scan_inputs = 1, {axes} {SCAN_BODY.format(carry)}>
            ({", ".join(names).replace("lengths", "")})
        }}"""
    )
    given = {name: Value(dims) for name, dims in zip(names, shapes, strict=True)}
    document = Document(model)
    evaluation = Evaluation(document, given)
    assert [evaluation.value(document.main, name).dims for name in "ab"] == made


PAIRED = "(float[p] v, float[r] u) => (float[q] w) { w = Concat <axis = 0> (v, u) }"


@pytest.mark.parametrize(
    ("body", "inputs", "made"),
    [
        ("(float[p] v) => (float[q] w) { w = Concat <axis = 0> (v, v) }", "s", (6,)),
        (PAIRED, "s, x", (10,)),
        (PAIRED, "s, r", (5,)),
        (PAIRED, "s, t",
         (UNKNOWN,)),
    ],
)  # fmt: skip
def test_a_body_is_followed_for_each_item_of_a_sequence(
    body: str, inputs: str, made: Dims, tmp_path: Path
) -> None:
    """The second of items of 2 and 3, with what is of another sequence, or the same for all."""
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    g (float[2] a, float[3] b, float[7] x, seq(float[n]) t) => (float[o] y) <int64 one = {{1}}> {{
        s = SequenceConstruct (a, b) r = SequenceConstruct (b, a)
        m = SequenceMap <body = k {body}> ({inputs}) y = SequenceAt (m, one) }}"""
    with closing(Document.open(models.write(tmp_path, text))) as document:
        given = {"a": Value((2,)), "b": Value((3,)), "x": Value((7,))}
        given["t"] = Value((UNKNOWN,), is_sequence=True)
        assert Evaluation(document, given).value(document.main, "y").dims == made


def test_where_knowledge_ends_sizes_are_unknown(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, DATA))) as document:
        evaluation = Evaluation(document, {"x": Value((4, 6))})
        assert evaluation.value(document.main, "y").dims == (UNKNOWN, 2)


def test_a_demand_that_no_size_satisfies_has_a_reason(tmp_path: Path) -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[N, 5] x, float[4, 3] w) => (float[a, b] y) { y = MatMul (x, w) }
    """
    with closing(Document.open(models.write(tmp_path, text))) as document:
        shapes = {"x": Value((N, 5)), "w": Value((4, 3))}
        (demand,) = Evaluation(document, shapes).demands.failed
        assert demand.text == "the inner dimensions of a product are equal: [5, 4]"


@pytest.mark.parametrize("operator", ["Gather", "GatherElements"])
@pytest.mark.parametrize(("axis", "rows"), [(None, 5), (0, 5), (1, 7), (-1, 7), (-2, 5)])
def test_an_index_points_into_as_many_rows_as_there_are_along_its_axis(
    operator: str, axis: int | None, rows: int, tmp_path: Path
) -> None:
    about = "" if axis is None else f"<axis = {axis}>"
    text = f"""
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[5, 7] x, int64[2, 3] i) => (y) {{ y = {operator} {about} (x, i) }}
    """
    with closing(Document.open(models.write(tmp_path, text))) as document:
        shapes = {"x": Value((5, 7)), "i": Value((2, 3), source=("i", 0))}
        evaluation = Evaluation(document, shapes)
        assert [size for size, _ in evaluation.demands.bounds["i"]] == [rows]


@pytest.mark.parametrize(
    ("axis", "index", "kept"), [(0, (), True), (0, (1,), True), (0, (2,), False), (1, (), False)]
)
@pytest.mark.parametrize("dims", [(5, 7), None])
def test_one_element_comes_from_where_the_list_does(
    axis: int, index: tuple[int, ...], kept: bool, dims: tuple[int, ...] | None
) -> None:
    node = onnx.helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
    rule = rule_of("", "Gather")
    assert rule is not None
    (made,) = rule(Call(node, [Value(dims, source=("x", 3)), Value(index)]))
    assert made.source == (("x", 3) if kept else None)


@pytest.mark.parametrize("named", [False, True])
def test_of_what_no_rule_knows_the_file_is_believed(named: bool) -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18, "acme" : 1]>
        g (float[N, 4] x) => (float[M, 8] y, seq(float[3]) z) { y, z, u = acme.Mine (x) }
    """
    document = Document(models.parse(text))
    evaluation = Evaluation(document, {"x": Value((2, 4))}, named=named)
    found = [evaluation.value(document.main, name).dims for name in "yzu"]
    assert found == [(symbol("M") if named else UNKNOWN, 8), None, None]


@pytest.mark.parametrize(("table", "bounds"), [("50, 4", [50]), ("1, 3, 4", [])])
def test_positions_of_a_rotation_point_into_its_table(
    table: str, bounds: list[int], tmp_path: Path
) -> None:
    text = f"""
        <ir_version: 11, opset_import: ["" : 23]>
        g (float[1, 2, 3, 8] x, float[{table}] c, float[{table}] s, int64[1, 3] p) => (y)
        {{ y = RotaryEmbedding (x, c, s, p) }}
    """
    with closing(Document.open(models.write(tmp_path, text))) as document:
        sizes = tuple(map(int, table.split(",")))
        given = {"x": (1, 2, 3, 8), "c": sizes, "s": sizes}
        known = {name: Value(dims) for name, dims in given.items()}
        evaluation = Evaluation(document, known | {"p": Value((1, 3), source=("p", 0))})
        assert [size for size, _ in evaluation.demands.bounds.get("p", ())] == bounds
