"""``dld convert shape``: verified at two sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest

from dld_tui.activities.convert.shape import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished
from tests.support import models

pytest.importorskip("onnxruntime")
FIXED = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3, 4] x, float[4] z) => (float[2, 12] y, float[4] q)
<int64[2] s = {2, 12}>
{
    [add] a = Add (x, z)
    [flat] y = Reshape (a, s)
    [aside] q = Neg (z)
}
"""
MIXED = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[1, 3] x) => (float[1, 3] y)
<int64 zero = {0}>
{ [sum] y = CumSum (x, zero) }
"""
MAPPED = """
<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]>
g (float[3, 2] x) => (seq(map(int64, float)) y)
{ [each] y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5]> (x) }
"""
NAMELESS = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[None, None] x) => (float[None, None] y) { y = Neg (x) }
"""
BRAIN = """
<ir_version: 10, opset_import: ["" : 18]>
g (bfloat16[1, 5] x) => (bfloat16[1, 5] y) { y = Identity (x) }
"""
LOOPED = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3] x) => (float[2, 3] y)
<int64 count = {2}>
{
    [loop] y = Loop <body = b (int64 i, bool c, float[2, 3] v) => (bool d, float[2, 3] w)
        <float[2, 3] k = {1, 2, 3, 4, 5, 6}> { d = Identity (c) w = Add (v, k) }> (count, , x)
}
"""


def convert(folder: Path, text: str, *dims: str, **settings: Any) -> tuple[Any, onnx.ModelProto]:
    path, out = models.write(folder, text), folder / "out.onnx"
    *_, last = run(Request(path, out, dim=dims, measure=False, **settings))
    assert isinstance(last, Finished)
    return encode(last.result), onnx.load(out)


def sizes(model: onnx.ModelProto) -> list[list[int | str]]:
    return [
        [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]
        for info in (*model.graph.input, *model.graph.output)
    ]


def test_a_batch_becomes_dynamic_and_its_items_are_compared(tmp_path: Path) -> None:
    result, made = convert(tmp_path, FIXED, "batch=N")
    assert sizes(made) == [["N", 3, 4], [4], ["N", 12], [4]]
    assert result["values"]["is_good"]
    assert result["values"]["outputs"]["y"]["max_abs"] == 0
    assert any("items at batch 4" in note for note in result["notes"])
    assert result["changed"] == ["Reshape flat: [2, 12] became [0, 12]"]
    assert [tensor.name for tensor in made.graph.initializer] == ["size_dld"]


def test_axes_of_one_name_get_the_size_together(tmp_path: Path) -> None:
    result, made = convert(tmp_path, NAMELESS, "batch=2")
    assert sizes(made) == [[2, 2], [2, 2]]
    assert result["values"]["is_good"]


def test_values_of_a_type_that_numpy_lacks_are_run_and_not_read(tmp_path: Path) -> None:
    result, made = convert(tmp_path, BRAIN, "batch=N")
    assert sizes(made) == [["N", 5], ["N", 5]]
    assert any("it runs with batch 2" in note for note in result["notes"])


def test_a_sequence_with_an_entry_for_each_item_is_compared(tmp_path: Path) -> None:
    result, made = convert(tmp_path, MAPPED, "batch=N")
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "N"
    assert result["values"]["is_good"]


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_batch_gets_another_size(tmp_path: Path, size: int) -> None:
    result, made = convert(tmp_path, FIXED, f"x:0={size}")
    assert sizes(made) == [[size, 3, 4], [4], [size, 12], [4]]
    assert result["values"]["is_good"]


def test_two_dimensions_at_once_are_also_run_together(tmp_path: Path) -> None:
    text = """
        <ir_version: 10, opset_import: ["" : 18]>
        g (float[2, 3, 4] x) => (float[2, 3, 4] y)
        <int64[2] flat = {6, 4}, int64[3] whole = {2, 3, 4}>
        { a = Reshape (x, flat) b = Exp (a) y = Reshape (b, whole) }
    """
    result, model = convert(tmp_path, text, "batch=N", "x:1=T")
    assert result["values"]["is_good"]
    assert sizes(model) == [["N", "T", 4], ["N", "T", 4]]
    assert "it runs with batch 4 and x:1 6 together" in result["notes"]


def test_a_dynamic_batch_becomes_fixed(tmp_path: Path) -> None:
    text = FIXED.replace("[2, ", "[batch, ").replace("{2, 12}", "{-1, 12}")
    text = text.replace("float[batch, 12] y", "float[rows, columns] y")
    result, made = convert(tmp_path, text, "batch=4")
    assert sizes(made) == [[4, 3, 4], [4], [4, 12], [4]]
    assert result["values"]["is_good"]


def test_a_dimension_that_is_no_batch_is_run_at_another_size(tmp_path: Path) -> None:
    result, made = convert(tmp_path, FIXED, "x:1=rows")
    assert sizes(made)[0] == [2, "rows", 4]
    assert result["values"]["is_good"]
    assert any("it runs with x:1 6" in note for note in result["notes"])


def test_items_that_depend_on_each_other_are_wrong_values(tmp_path: Path) -> None:
    result, _ = convert(tmp_path, MIXED, "batch=N", keep_wrong=True)
    assert not result["values"]["is_good"]
    problem = cast("str", result["values"]["outputs"]["y"]["problem"])
    assert problem.startswith("at batch 2, items are not what each is alone")


def test_a_loop_that_holds_the_size_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ActivityError, match="'k', an input of Add w, has 2 items"):
        convert(tmp_path, LOOPED, "batch=N")
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.usefixtures("replaces_all")
def test_what_is_switched_off_is_not_called_good(tmp_path: Path) -> None:
    for size in ("N", "4"):
        result, _ = convert(tmp_path, FIXED, f"batch={size}", verify=False)
        assert result["values"] == {"skipped": "it is switched off"}


def test_a_dimension_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--dim: batch=N"):
        convert(tmp_path, FIXED)


def test_what_cannot_be_run_for_its_size_is_not_called_good(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[4611686018427387904, 4611686018427387904, 4] x) => (float[a, b, c] y)
        { y = Relu (x) }
    """
    result, model = convert(tmp_path, text, "batch=N")
    assert result["values"] == {"skipped": "the original cannot be run"}
    assert sizes(model)[0] == ["N", 4611686018427387904, 4]


RESHAPES_IN_LOOP = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[4, 6] x) => (float[4, 6] y)
<int64 n = {3}, bool c = {1}>
{
    y = Loop (n, c, x) <body = b (int64 i, bool go, float[4, 6] s) => (bool on, float[4, 6] t)
        <int64[3] apart = {4, 2, 3}, int64[2] flat = {4, 6}> {
            on = Identity (go)
            [apart] u = Reshape (s, apart)
            v = Tanh (u)
            [flat] t = Reshape (v, flat)
        }>
}
"""
STATE_BEGINS_WITH_ZEROS = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[4, 2] x) => (float[4, 2] y)
<int64 n = {2}, bool c = {1}, float[4, 2] z = {0, 0, 0, 0, 0, 0, 0, 0}>
{
    [loop] y = Loop (n, c, z) <body = b (int64 i, bool go, float[4, 2] s)
        => (bool on, float[4, 2] t) {
            on = Identity (go)
            t = Add (s, x)
        }>
}
"""
BATCH_IN_SCAN = """
<ir_version: 10, opset_import: ["" : 18]>
g (float[5, 2, 2] x) => (float[5, 2, 2] y)
<float[2, 2] z = {0, 0, 0, 0}, int64[2] flat = {2, 2}>
{
    [scan] last, y = Scan <num_scan_inputs = 1, body = b (float[2, 2] s, float[2, 2] e)
        => (float[2, 2] t, float[2, 2] o) {
            [flat] r = Reshape (e, flat)
            t = Add (s, r)
            o = Tanh (t)
        }> (z, x)
}
"""


@pytest.mark.parametrize(
    ("text", "dim", "changed"),
    [
        (RESHAPES_IN_LOOP, "batch=N",
         ["Reshape apart: [4, 2, 3] became [0, 2, 3]", "Reshape flat: [4, 6] became [0, 6]"]),
        (STATE_BEGINS_WITH_ZEROS, "batch=N", ["Loop loop: z is repeated"]),
        (BATCH_IN_SCAN, "x:1=N",
         ["Scan scan: z is repeated", "Reshape flat: [2, 2] became [0, 2]"]),
    ],
    ids=["loop", "first state", "scan"],
)  # fmt: skip
def test_bodies_follow_the_dimension_and_run_at_two_sizes(
    tmp_path: Path, text: str, dim: str, changed: list[str]
) -> None:
    result, made = convert(tmp_path, text, dim)
    assert result["changed"] == changed
    assert result["values"]["is_good"]
    onnx.checker.check_model(made, full_check=True)
    assert any("8 were compared" in one or "it runs with x:1 4" in one for one in result["notes"])


def test_a_length_as_the_first_axis_is_no_batch(tmp_path: Path) -> None:
    text = BATCH_IN_SCAN.replace("[flat] r = Reshape (e, flat)", "r = Identity (e)")
    result, _ = convert(tmp_path, text, "x:0=T")
    assert result["values"]["is_good"]
    assert result["notes"] == ["it runs with x:0 10; values were compared with 5"]


SPLIT = """
<ir_version: 10, opset_import: ["" : OPSET]>
g (float[2, 8] x) => (float[2, 4] y)
<int64[2] sizes = {4, 4}>
{
    [split] a, b = Split <axis = 1> (x, sizes)
    y = Sub (a, b)
}
"""


@pytest.mark.parametrize("opset", [13, 18])
def test_equal_parts_of_a_split_stay_equal(tmp_path: Path, opset: int) -> None:
    result, made = convert(tmp_path, SPLIT.replace("OPSET", str(opset)), "x:1=W")
    assert result["changed"] == ["Split split: split [4, 4] became equal parts"]
    assert result["notes"] == ["it runs with x:1 16; values were compared with 8"]
    onnx.checker.check_model(made, full_check=True)


@pytest.mark.parametrize(
    ("text", "dim", "why"),
    [
        (SPLIT.replace("{4, 4}", "{2, 6}").replace("float[2, 4] y", "float y")
         .replace("y = Sub (a, b)", "y = ReduceSum <keepdims = 0> (b)"), "x:1=W",
         "Split split: it splits the dimension into [2, 6]: which of these grow"),
        (SPLIT.replace("axis = 1", "axis = 0").replace("float[2, 8] x", "float[8, 2] x"),
         "batch=N", "Split split: it splits the dimension into [4, 4]"),
    ],
    ids=["unequal", "batch"],
)  # fmt: skip
def test_a_split_that_cannot_follow_is_named(tmp_path: Path, text: str, dim: str, why: str) -> None:
    with pytest.raises(ActivityError) as caught:
        convert(tmp_path, text.replace("OPSET", "18"), dim)
    assert why in caught.value.message


SEQUENCES = """
<ir_version: 10, opset_import: ["" : 18]>
pairs (float[1, 4] x) => (seq(float[1, 4]) s, optional(float[1, 4]) o, float[1, 8] y)
<int64[2] shape = {1, 4}, int64 last = {1}>
{
    a = Relu(x)
    b = Neg(x)
    s = SequenceConstruct(a, b)
    t = SequenceAt(s, last)
    r = Reshape(t, shape)
    o = Optional(r)
    y = Concat<axis = 1>(r, a)
}
"""


def _declared(model: onnx.ModelProto) -> list[list[int | str]]:
    types = [info.type for info in model.graph.output]
    inner = [types[0].sequence_type.elem_type, types[1].optional_type.elem_type, types[2]]
    return [[dim.dim_param or dim.dim_value for dim in one.tensor_type.shape.dim] for one in inner]


@pytest.mark.usefixtures("replaces_all")
def test_sequences_and_optionals_follow_the_dimension(tmp_path: Path) -> None:
    result, model = convert(tmp_path, SEQUENCES, "batch=N")
    assert _declared(model) == [["N", 4], ["N", 4], ["N", 8]]
    assert result["values"]["is_good"]
    assert {"s[0]", "s[1]", "o", "y"} <= result["values"]["outputs"].keys()
    session = pytest.importorskip("onnxruntime").InferenceSession(model.SerializeToString())
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    found = session.run(None, {"x": x})
    np.testing.assert_array_equal(found[0][1], -x)
    assert found[2].shape == (3, 8)

    _, model = convert(tmp_path, SEQUENCES, "batch=2")
    assert _declared(model) == [[2, 4], [2, 4], [2, 8]]
