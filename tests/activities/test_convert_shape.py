"""``dld convert shape``: verified at two sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import onnx
import pytest

from dld_tui.activities.convert_shape import Request, run
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


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_batch_gets_another_size(tmp_path: Path, size: int) -> None:
    result, made = convert(tmp_path, FIXED, f"x:0={size}")
    assert sizes(made) == [[size, 3, 4], [4], [size, 12], [4]]
    assert result["values"]["is_good"]


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
    result, _ = convert(tmp_path, MIXED, "batch=N")
    assert not result["values"]["is_good"]
    problem = cast("str", result["values"]["outputs"]["y"]["problem"])
    assert problem.startswith("at batch 2, items are not what each is alone")


def test_a_loop_that_holds_the_size_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ActivityError, match="does not run with batch 4"):
        convert(tmp_path, LOOPED, "batch=N")
    assert not (tmp_path / "out.onnx").exists()


def test_what_is_switched_off_is_not_called_good(tmp_path: Path) -> None:
    for size in ("N", "4"):
        result, _ = convert(tmp_path, FIXED, f"batch={size}", verify=False)
        assert result["values"] == {"skipped": "it is switched off"}


def test_a_dimension_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--dim batch=N"):
        convert(tmp_path, FIXED)


def test_an_absurd_size_is_refused_with_a_node(tmp_path: Path) -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 17]>
        g (float[4611686018427387904, 4611686018427387904, 4] x) => (float[a, b, c] y)
        { y = Relu (x) }
    """
    with pytest.raises(ActivityError, match="Relu y: Value out of range"):
        convert(tmp_path, text, "batch=N")
