"""``dld convert shape``: verified at two sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import ActivityError, DldError, UsageError
from tests.support import conversions, models
from tests.support.runtime import session_of

HEAD = '<ir_version: 10, opset_import: ["" : 18]> g'
FIXED = f"""{HEAD} (float[2, 3, 4] x, float[4] z) => (float[2, 12] y, float[4] q)
<int64[2] s = {{2, 12}}>
{{ a = Add (x, z) [flat] y = Reshape (a, s) q = Neg (z) }}"""


def convert(folder: Path, text: str, *dims: str, **settings: Any) -> tuple[Any, onnx.ModelProto]:
    path, out = models.write(folder, text), folder / "out.onnx"
    result = conversions.convert("shape", path, out, dim=dims, **settings)
    return result, onnx.load(out)


def dims_of(kind: onnx.TypeProto) -> list[int | str]:
    """Return the dimensions of a tensor, or of what a sequence or an optional holds."""
    for name in ("sequence_type", "optional_type"):
        if kind.HasField(name):
            kind = getattr(kind, name).elem_type
    return [dim.dim_param or dim.dim_value for dim in kind.tensor_type.shape.dim]


def sizes(model: onnx.ModelProto) -> list[list[int | str]]:
    return [dims_of(info.type) for info in (*model.graph.input, *model.graph.output)]


def test_a_batch_becomes_dynamic_and_its_items_are_compared(tmp_path: Path) -> None:
    result, made = convert(tmp_path, FIXED, "batch=N")
    assert sizes(made) == [["N", 3, 4], [4], ["N", 12], [4]]
    assert result["values"]["is_good"]
    assert result["values"]["outputs"]["y"]["max_abs"] == 0
    assert any("items at batch 4" in note for note in result["notes"])
    assert result["changed"] == ["Reshape flat: [2, 12] became [0, 12]"]
    assert [tensor.name for tensor in made.graph.initializer] == ["size_dld"]


DYNAMIC = (
    FIXED.replace("[2, ", "[batch, ").replace("{2, 12}", "{-1, 12}")
    .replace("float[batch, 12] y", "float[rows, columns] y")
)  # fmt: skip
TWO = f"""{HEAD} (float[2, 3, 4] x) => (float[2, 3, 4] y)
<int64[2] flat = {{6, 4}}, int64[3] whole = {{2, 3, 4}}>
{{ a = Reshape (x, flat) b = Exp (a) y = Reshape (b, whole) }}"""
SEQUENCES = f"""{HEAD} (float[1, 4] x)
    => (seq(float[1, 4]) s, optional(float[1, 4]) o, float[1, 8] y)
<int64[2] shape = {{1, 4}}, int64 last = {{1}}>
{{ a = Relu(x) b = Neg(x) s = SequenceConstruct(a, b) t = SequenceAt(s, last)
   r = Reshape(t, shape) o = Optional(r) y = Concat<axis = 1>(r, a) }}"""


@pytest.mark.parametrize(
    ("text", "dims", "made", "note"),
    [
        *((FIXED, [f"x:0={size}"], [[size, 3, 4], [4], [size, 12], [4]], "") for size in (1, 2, 5)),
        (DYNAMIC, ["batch=4"], [[4, 3, 4], [4], [4, 12], [4]], ""),
        (FIXED, ["x:1=rows"], [[2, "rows", 4]], "it runs with x:1 6"),
        (TWO, ["batch=N", "x:1=T"], [["N", "T", 4]] * 2, "it runs with batch 4 and x:1 6 together"),
        (f"{HEAD} (float[None, None] x) => (float[None, None] y) {{ y = Neg (x) }}",
         ["batch=2"], [[2, 2], [2, 2]], ""),
        ('<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]> g (float[3, 2] x)'
         " => (seq(map(int64, float)) y)"
         " { y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5]> (x) }",
         ["batch=N"], [["N", 2]], ""),
        (f"{HEAD} (bfloat16[1, 5] x) => (bfloat16[1, 5] y) {{ y = Identity (x) }}",
         ["batch=N"], [["N", 5], ["N", 5]], "it runs with batch 2"),
        (SEQUENCES, ["batch=N"], [["N", 4], ["N", 4], ["N", 4], ["N", 8]], ""),
        (SEQUENCES, ["batch=2"], [[2, 4], [2, 4], [2, 4], [2, 8]], ""),
    ],
    ids=["size 1", "size 2", "size 5", "dynamic to fixed", "no batch", "two at once",
         "axes of one name", "an entry for each item", "a type that NumPy lacks",
         "sequences and optionals", "of another size"],
)  # fmt: skip
def test_sizes_are_declared_and_values_compared(
    tmp_path: Path, text: str, dims: list[str], made: list[list[int | str]], note: str
) -> None:
    result, model = convert(tmp_path, text, *dims)
    assert sizes(model)[: len(made)] == made
    assert result["values"]["is_good"]
    assert any(note in one for one in result["notes"]) or not note


def test_items_of_sequences_are_compared(tmp_path: Path) -> None:
    result, model = convert(tmp_path, SEQUENCES, "batch=N")
    assert {"s[0]", "s[1]", "o", "y"} <= result["values"]["outputs"].keys()
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    found = session_of(model).run(None, {"x": x})
    np.testing.assert_array_equal(found[0][1], -x)
    assert found[2].shape == (3, 8)


def test_items_that_depend_on_each_other_are_wrong_values(tmp_path: Path) -> None:
    text = f"""{HEAD} (float[1, 3] x) => (float[1, 3] y) <int64 zero = {{0}}>
    {{ y = CumSum (x, zero) }}"""
    values = convert(tmp_path, text, "batch=N", keep_wrong=True)[0]["values"]
    assert not values["is_good"]
    problem = values["outputs"]["y"]["problem"]
    assert problem.startswith("at batch 2, items are not what each is alone")


@pytest.mark.usefixtures("replaces_all")
def test_what_two_sizes_change_together_is_a_wrong_value(tmp_path: Path) -> None:
    text = f"""{HEAD} (float[1, 3] x) => (float[1, 3] y) <int64[2] own = {{1, 3}}> {{
      sizes = Shape (x) more = Sub (sizes, own) both = ReduceProd <keepdims = 0> (more)
      factor = Cast <to = 1> (both) change = Mul (x, factor) y = Add (x, change) }}"""
    for dims, is_good in ((["batch=N"], True), (["x:1=T"], True), (["batch=N", "x:1=T"], False)):
        values = convert(tmp_path, text, *dims, keep_wrong=True)[0]["values"]
        assert values["is_good"] is is_good, dims


@pytest.mark.usefixtures("replaces_all")
def test_what_is_not_compared_is_not_called_good(tmp_path: Path) -> None:
    for size in ("N", "4"):
        result, _ = convert(tmp_path, FIXED, f"batch={size}", verify=False)
        assert result["values"] == {"skipped": "it is switched off"}
    huge = 1 << 62
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[{huge}, {huge}, 4] x) => (float[a, b, c] y) {{ y = Relu (x) }}"""
    result, model = convert(tmp_path, text, "batch=N")
    assert result["values"] == {"skipped": "the original cannot be run"}
    assert sizes(model)[0] == ["N", huge, 4]


LOOP = "(int64 i, bool go, float[4, 6] s) => (bool on, float[4, 6] t)"
RESHAPES_IN_LOOP = f"""{HEAD} (float[4, 6] x) => (float[4, 6] y)
<int64 n = {{3}}, bool c = {{1}}> {{
    y = Loop (n, c, x) <body = b {LOOP} <int64[3] apart = {{4, 2, 3}}, int64[2] flat = {{4, 6}}> {{
        on = Identity (go) [apart] u = Reshape (s, apart) v = Tanh (u)
        [flat] t = Reshape (v, flat) }}> }}"""
STATE_BEGINS_WITH_ZEROS = f"""{HEAD} (float[4, 2] x) => (float[4, 2] y)
<int64 n = {{2}}, bool c = {{1}}, float[4, 2] z = {{0, 0, 0, 0, 0, 0, 0, 0}}> {{
    [loop] y = Loop (n, c, z) <body = b (int64 i, bool go, float[4, 2] s)
        => (bool on, float[4, 2] t) {{ on = Identity (go) t = Add (s, x) }}> }}"""
BATCH_IN_SCAN = f"""{HEAD} (float[5, 2, 2] x) => (float[5, 2, 2] y)
<float[2, 2] z = {{0, 0, 0, 0}}, int64[2] flat = {{2, 2}}> {{
    [scan] last, y = Scan <num_scan_inputs = 1, body = b (float[2, 2] s, float[2, 2] e)
        => (float[2, 2] t, float[2, 2] o) {{
            [flat] r = Reshape (e, flat) t = Add (s, r) o = Tanh (t) }}> (z, x) }}"""
SCAN_ALONG_SECOND = (
    BATCH_IN_SCAN.replace("float[5, 2, 2] x", "float[2, 5, 2] x")
    .replace("num_scan_inputs = 1", "num_scan_inputs = 1, scan_input_axes = [1]")
)  # fmt: skip
IN_CALLS = """<ir_version: 10, opset_import: ["" : 18, "own" : 1]>
g (float[2, 3, 4] x) => (float[2, 12] y) { y = own.Flat (x) }
<domain: "own", opset_import: ["" : 18]>
Flat (a) => (r) { s = Constant <value_ints = [2, 12]> () [flat] r = Reshape (a, s) }"""
LENGTH_OF_SCAN = BATCH_IN_SCAN.replace("[flat] r = Reshape (e, flat)", "r = Identity (e)")
SPLIT = f"""{HEAD} (float[2, 8] x) => (float[2, 4] y) <int64[2] sizes = {{4, 4}}>
{{ [split] a, b = Split <axis = 1> (x, sizes) y = Sub (a, b) }}"""


@pytest.mark.parametrize(
    ("text", "dim", "changed", "note"),
    [
        (RESHAPES_IN_LOOP, "batch=N",
         ["Reshape apart: [4, 2, 3] became [0, 2, 3]", "Reshape flat: [4, 6] became [0, 6]"],
         "8 were compared"),
        (STATE_BEGINS_WITH_ZEROS, "batch=N", ["Loop loop: z is repeated"], "8 were compared"),
        (BATCH_IN_SCAN, "x:1=N",
         ["Scan scan: z is repeated", "Reshape flat: [2, 2] became [0, 2]"], "it runs with x:1 4"),
        (SCAN_ALONG_SECOND, "x:0=N",
         ["Scan scan: z is repeated", "Reshape flat: [2, 2] became [0, 2]"], "4"),
        (IN_CALLS, "batch=N", ["Reshape flat: [2, 12] became [0, 12]"],
         "calls of local functions are replaced by their nodes"),
        (LENGTH_OF_SCAN, "x:0=T", [], "it runs with x:0 10; values were compared with 5"),
        *((SPLIT.replace(": 18", f": {opset}"), "x:1=W",
           ["Split split: split [4, 4] became equal parts"],
           "it runs with x:1 16; values were compared with 8") for opset in (13, 18)),
    ],
    ids=["loop", "first state", "scan", "scan along the second axis", "calls", "length of a scan",
         "split 13", "split 18"],
)  # fmt: skip
def test_nodes_and_bodies_follow_the_dimension(
    tmp_path: Path, text: str, dim: str, changed: list[str], note: str
) -> None:
    result, made = convert(tmp_path, text, dim)
    assert result["changed"] == changed
    assert result["values"]["is_good"]
    onnx.checker.check_model(made, full_check=True)
    assert any(note in one for one in result["notes"])


@pytest.mark.parametrize(
    ("text", "dims", "kind", "why"),
    [
        (FIXED, [], UsageError, "--dim: batch=N"),
        (SPLIT.replace("{4, 4}", "{2, 6}").replace("float[2, 4] y", "float y")
         .replace("y = Sub (a, b)", "y = ReduceSum <keepdims = 0> (b)"), ["x:1=W"], ActivityError,
         "Split split: it splits the dimension into [2, 6]: which of these grow"),
        (SPLIT.replace("axis = 1", "axis = 0").replace("float[2, 8] x", "float[8, 2] x"),
         ["batch=N"], ActivityError, "Split split: it splits the dimension into [4, 4]"),
        (f"""{HEAD} (float[2, 3] x) => (float[2, 3] y) <int64 count = {{2}}> {{
        y = Loop <body = b (int64 i, bool c, float[2, 3] v) => (bool d, float[2, 3] w)
        <float[2, 3] k = {{1, 2, 3, 4, 5, 6}}> {{ d = Identity (c) w = Add (v, k) }}> (count, , x)
        }}""", ["batch=N"], ActivityError, "'k', an input of Add w, has 2 items"),
    ],
    ids=["nothing asked for", "unequal parts", "parts of a batch", "a loop that holds the size"],
)  # fmt: skip
def test_what_cannot_follow_is_named_and_nothing_written(
    tmp_path: Path, text: str, dims: list[str], kind: type[DldError], why: str
) -> None:
    with pytest.raises(kind) as caught:
        convert(tmp_path, text, *dims)
    assert why in caught.value.message
    assert not (tmp_path / "out.onnx").exists()
