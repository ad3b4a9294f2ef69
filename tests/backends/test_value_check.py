"""Conversions to float16 tell wrong values, and repair them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.activities.convert_fp16 import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished, Log
from tests.backends.test_precision_trials import OVERFLOWS
from tests.support import models

pytest.importorskip("onnxruntime")

from dld_tui.backends.conversion.verification import verify
from dld_tui.core.document import Document

CLIPPED = """
<ir_version: 10, opset_import: ["" : 18]>
clipped (float[N, 2] x) => (float[N, 2] y)
<float[2] w = {1000000, 2000000}>
{
    [first] a = Relu(x)
    [scale] b = Mul(a, w)
    [last] y = Log(b)
}
"""
CALLED = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
called (float[N, 4] x) => (float[N, 4] y)
<float w = {300}, float small = {0.00001}>
{
    [call] b = local.grow(x, w)
    [down] y = Mul(b, small)
}
<domain: "local", opset_import: ["" : 18]>
grow (x, w) => (z) {
    [inner] a = Mul(x, w)
    [outer] z = Mul(a, w)
}
"""


def convert(path: Path, **settings: Any) -> Any:
    *_, last = run(Request(path, path.with_name("out.onnx"), **settings))
    assert isinstance(last, Finished)
    return encode(last.result)


def inputs(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    np.save(data / "x.npy", np.array([[0.5, 1, 2, 3]], np.float32))
    return data


def test_overflow_is_told_with_its_node_and_repaired(tmp_path: Path) -> None:
    path, data = models.write(tmp_path, OVERFLOWS), inputs(tmp_path)
    found = convert(path, inputs=data)["values"]
    assert not found["is_good"]
    assert (found["first"]["node"], found["first"]["op_type"]) == ("bigger", "Mul")
    assert "in the original it is up to 2.7e+05" in found["first"]["reason"]

    mended = convert(path, inputs=data, repair=True)
    assert mended["values"]["is_good"]
    assert [one["node"] for one in mended["values"]["repaired"]] == ["bigger", "down", "big"]
    assert mended["nodes"] == 3
    assert mended["kept"] == {"Mul: its values do not fit float16": 3}


def test_a_weight_out_of_range_is_repaired_by_its_one_node(tmp_path: Path) -> None:
    result = convert(models.write(tmp_path, CLIPPED), repair=True)
    assert result["values"]["is_good"]
    assert result["losses"] == []
    assert "scale" in [one["node"] for one in result["values"]["repaired"]]
    assert "its weight 'w' reaches 2e+06" in result["values"]["repaired"][0]["reason"]


def test_nodes_of_functions_are_repaired_too(tmp_path: Path) -> None:
    result = convert(models.write(tmp_path, CALLED), repair=True)
    assert result["values"]["is_good"]
    assert result["values"]["repaired"]
    assert result["inlined"] == 1


def test_good_values_need_no_repair_and_some_models_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = models.write(tmp_path, models.CHAIN)
    found = convert(path, repair=True)["values"]
    assert (found["is_good"], found["repaired"], found["first"]) == (True, [], None)
    assert convert(path, values="never")["values"] == {"skipped": "it is switched off"}
    monkeypatch.setattr("dld_tui.backends.conversion.verification.MANY_BYTES", 8)
    assert "--values always" in convert(path)["values"]["skipped"]
    assert convert(path, values="always")["values"]["is_good"]


def test_a_tolerance_may_be_tighter(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    assert not convert(path, tolerance=("atol=0,rtol=0",))["values"]["is_good"]
    with pytest.raises(UsageError, match="tolerance"):
        convert(path, tolerance=("nonsense",))


def test_where_a_library_fails_the_own_converter_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Iterator[Any]:
        yield Log("begun")
        raise ActivityError("no", where="node 'first'")

    monkeypatch.setattr("dld_tui.backends.conversion.library_fp16.convert", fail)
    with pytest.raises(ActivityError, match="no") as caught:
        convert(models.write(tmp_path, models.CHAIN), library="onnxruntime")
    assert str(caught.value.hint).startswith("--library own converts it")
    assert caught.value.where == "node 'first'"


def test_a_weight_of_another_type_than_declared_is_named(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    broken = onnx.load(path)
    broken.graph.input.append(
        onnx.helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT16, [4])
    )
    other = tmp_path / "broken.onnx"
    onnx.save(broken, other)
    with (
        closing(Document.open(path)) as document,
        closing(Document.open(other)) as result,
        pytest.raises(ActivityError, match="weight 'w' of node Add second is float32, and decl"),
    ):
        [*verify(document, result, other)]


def test_a_library_leaves_nothing_where_the_user_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = models.CHAIN.replace("Relu(x)", "com.acme.Odd(x)").replace(
        '["" : 18]', '["" : 18, "com.acme" : 1]'
    )
    path = models.write(tmp_path, text)
    monkeypatch.chdir(tmp_path)
    convert(path, library="onnxruntime")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [path.name, "out.onnx"]
