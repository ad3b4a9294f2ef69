"""``dld convert shape``: verified at two sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.errors import ActivityError, UsageError
from tests.support import conversions, models
from tests.support.recorded import Recorded
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


def test_items_of_sequences_are_compared(tmp_path: Path) -> None:
    result, model = convert(tmp_path, SEQUENCES, "batch=N")
    assert {"s[0]", "s[1]", "o", "y"} <= result["values"]["outputs"].keys()
    x = np.arange(-6, 6, dtype=np.float32).reshape(3, 4)
    found = session_of(model).run(None, {"x": x})
    np.testing.assert_array_equal(found[0][1], -x)
    assert found[2].shape == (3, 8)


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


SUM = f"""{HEAD} (float[1, 3] x) => (float[1, 3] y) <int64 zero = {{0}}>
{{ y = CumSum (x, zero) }}"""
TOGETHER = f"""{HEAD} (float[1, 3] x) => (float[1, 3] y) <int64[2] own = {{1, 3}}> {{
  sizes = Shape (x) more = Sub (sizes, own) both = ReduceProd <keepdims = 0> (more)
  factor = Cast <to = 1> (both) change = Mul (x, factor) y = Add (x, change) }}"""
SIDES = f"""{HEAD} (float[2, 3] x, float[3, 2] z) => (float[2, 3] y, float[2, 2] p)
{{ y = Neg (x) p = MatMul (x, z) }}"""
HUGE = f"""{HEAD} (float[{1 << 62}, {1 << 62}, 4] x) => (float[a, b, c] y) {{ y = Relu (x) }}"""
CASES: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "a batch": (FIXED, ("batch=N",), {}),
    "size 1": (FIXED, ("x:0=1",), {}),
    "size 2": (FIXED, ("x:0=2",), {}),
    "size 5": (FIXED, ("x:0=5",), {}),
    "size 5, not verified": (FIXED, ("x:0=5",), {"verify": False}),
    "size 5, not compared": (FIXED, ("x:0=5",), {"values": "never"}),
    "a name, not verified": (FIXED, ("batch=N",), {"verify": False}),
    "a tolerance": (FIXED, ("batch=N",), {"tolerance": ("atol=1",)}),
    "no batch": (FIXED, ("x:1=rows",), {}),
    "a size that is no batch": (FIXED, ("x:1=5",), {}),
    "dynamic to fixed": (DYNAMIC, ("batch=4",), {}),
    "dynamic to another name": (DYNAMIC, ("batch=items",), {}),
    "two": (TWO, ("batch=N", "x:1=T"), {}),
    "two of which one gets a size": (TWO, ("batch=N", "x:1=6"), {}),
    "two that are no batch": (SIDES, ("x:1=K", "z:0=K", "z:1=L"), {}),
    "axes of one name": (f"{HEAD} (float[None, None] x) => (float[None, None] y)"
                         " { y = Neg (x) }", ("batch=2",), {}),
    "an entry for each item": (
        '<ir_version: 10, opset_import: ["" : 18, "ai.onnx.ml" : 3]> g (float[3, 2] x)'
        " => (seq(map(int64, float)) y)"
        " { y = ai.onnx.ml.ZipMap <classlabels_int64s = [4, 5]> (x) }", ("batch=N",), {}),
    "a type that NumPy lacks": (f"{HEAD} (bfloat16[1, 5] x) => (bfloat16[1, 5] y)"
                                " { y = Identity (x) }", ("batch=N",), {}),
    "sequences and optionals": (SEQUENCES, ("batch=N",), {}),
    "sequences of another size": (SEQUENCES, ("batch=2",), {}),
    "items that depend on each other": (SUM, ("batch=N",), {"keep_wrong": True}),
    "one of two": (TOGETHER, ("batch=N",), {"keep_wrong": True}),
    "the other of two": (TOGETHER, ("x:1=T",), {"keep_wrong": True}),
    "both together": (TOGETHER, ("batch=N", "x:1=T"), {"keep_wrong": True}),
    "what cannot be run": (HUGE, ("batch=N",), {}),
    "quantized at run time": (f"""{HEAD} (float[2, 4] x) => (uint8[2, 4] y)
        {{ y, scale, zero = DynamicQuantizeLinear (x) }}""", ("batch=N",), {}),
    "loop": (RESHAPES_IN_LOOP, ("batch=N",), {}),
    "first state": (STATE_BEGINS_WITH_ZEROS, ("batch=N",), {}),
    "scan": (BATCH_IN_SCAN, ("x:1=N",), {}),
    "scan along the second axis": (SCAN_ALONG_SECOND, ("x:0=N",), {}),
    "calls": (IN_CALLS, ("batch=N",), {}),
    "length of a scan": (LENGTH_OF_SCAN, ("x:0=T",), {}),
    "split 13": (SPLIT.replace(": 18", ": 13"), ("x:1=W",), {}),
    "split 18": (SPLIT, ("x:1=W",), {}),
}  # fmt: skip


@pytest.mark.broad
@pytest.mark.usefixtures("replaces_all")
def test_all_that_is_told(recorded: Recorded, tmp_path: Path) -> None:
    found = {}
    for name, (text, dims, settings) in CASES.items():
        result, made = convert(tmp_path, text, *dims, **settings)
        onnx.checker.check_model(made, full_check="ZipMap" not in text and "bfloat" not in text)
        found[name] = "\n".join([f"{' '.join(dims)}: {sizes(made)}", *conversions.told(result)])
    recorded("convert_shape", found)


GATHER = f"""{HEAD} (float[1, 2, 3] x) => (float[1, 2, 3] y)
<int64[3] own = {{1, 2, 3}}, int64[2] of = {{1, 2}}, float[1] w = {{1}}> {{
  sizes = Shape (x) more = Sub (sizes, own) two = Gather (more, of)
  both = ReduceProd <keepdims = 0> (two) f = Gather (w, both) y = Mul (x, f) }}"""


def test_what_cannot_follow_is_named_and_nothing_written(tmp_path: Path) -> None:
    turned = SPLIT.replace("axis = 1", "axis = 0").replace("[2, 8]", "[8, 2]")
    with pytest.raises(UsageError, match="--dim: batch=N"):
        convert(tmp_path, FIXED)
    for text, dims, error in (
        (turned, ["batch=N"], r"Split split: it splits the dimension into \[4, 4\]"),
        (GATHER, ["x:1=K", "x:2=L"], "does not run with x:1 4: "),
    ):
        with pytest.raises(ActivityError, match=error):
            convert(tmp_path, text, *dims, shape=("x:1x2x3",) if text == GATHER else ())
    assert not (tmp_path / "out.onnx").exists()
