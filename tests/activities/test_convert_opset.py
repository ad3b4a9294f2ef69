from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert.opset import Request, run
from dld_tui.core.codec import encode
from dld_tui.core.conversion import opset
from dld_tui.core.conversion.opset import ConversionError
from dld_tui.core.errors import ActivityError, InputError, SaveError, TimeLimitError
from dld_tui.core.events import Finished, Log, Progress
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.conversions import OLD


def convert(request: Request) -> dict[str, JSON]:
    *steps, last = run(request)
    assert all(isinstance(step, (Log, Progress)) for step in steps)
    assert isinstance(last, Finished)
    found: dict[str, Any] = encode(last.result)
    return found


def with_weights(folder: Path) -> tuple[Path, bytes]:
    """Write a model with a payload that is cut out, and one in a file of external data."""
    model = models.parse(OLD)
    values = np.arange(5_000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "inside"))
    outside = numpy_helper.from_array(values * 2, "outside")
    (folder / "w.bin").write_bytes(outside.raw_data)
    outside.ClearField("raw_data")
    outside.data_location = onnx.TensorProto.EXTERNAL
    outside.external_data.add(key="location", value="w.bin")
    model.graph.initializer.append(outside)
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path, values.tobytes()


@pytest.mark.parametrize("kind", [TimeLimitError, ActivityError])
def test_a_comparison_that_reaches_a_limit_leaves_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ActivityError]
) -> None:
    def stop(*_: object) -> None:
        raise kind("Failed to allocate memory", where="m.onnx: node >y (If)")

    monkeypatch.setattr("dld_tui.backends.conversion.value_check.ValueCheck.run", stop)
    result = convert(Request(models.write(tmp_path, OLD), tmp_path / "out.onnx", 18))
    assert result["values"] == {
        "skipped": "the comparison was stopped: node >y (If): Failed to allocate memory"
    }
    assert (tmp_path / "out.onnx").is_file()


def test_weights_come_along(tmp_path: Path) -> None:
    path, values = with_weights(tmp_path)
    out = tmp_path / "out.onnx"
    result = convert(Request(path, out, 18))

    assert (result["from"], result["to"], result["path"]) == (12, 18, str(out))
    made = onnx.load(out)
    weights = {tensor.name: numpy_helper.to_array(tensor) for tensor in made.graph.initializer}
    assert weights["inside"].tobytes() == values
    assert (weights["outside"] == weights["inside"] * 2).all()
    assert made.opset_import[0].version == 18


def test_failures(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    out = tmp_path / "out.onnx"
    with pytest.raises(ConversionError) as caught:
        convert(Request(path, out, 3))
    assert caught.value.where == str(path)
    with pytest.raises(InputError):
        convert(Request(tmp_path / "absent", out, 19))
    (tmp_path / "text").write_bytes(b"\xff" * 9)
    with pytest.raises(InputError):
        convert(Request(tmp_path / "text", out, 19))
    with pytest.raises(SaveError):
        convert(Request(path, tmp_path / "no" / "out", 19))
    assert not out.exists()


@pytest.mark.usefixtures("replaces_all")
def test_the_result_is_run_and_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A converter that changes what is computed is found out; what cannot be run is not written."""
    path, out = models.write(tmp_path, models.CHAIN), tmp_path / "out.onnx"
    values = cast("dict[str, JSON]", convert(Request(path, out, 19))["values"])
    assert (values["is_good"], values["skipped"]) == (True, "")

    real = opset.convert_opset

    def changed(op_type: str) -> None:
        def wrong(model: onnx.ModelProto, version: int) -> opset.OpsetChanges:
            report = real(model, version)
            model.graph.node[0].op_type = op_type
            return report

        monkeypatch.setattr(opset, "convert_opset", wrong)

    first = onnx.load(path).graph.node[0].op_type
    changed("Neg" if first != "Neg" else "Abs")
    values = cast("dict[str, JSON]", convert(Request(path, out, 20))["values"])
    assert not values["is_good"]
    assert cast("dict[str, JSON]", values["first"])["op_type"] == first
    out.unlink()
    changed("Nonexistent")
    with pytest.raises(ActivityError, match="cannot be used"):
        convert(Request(path, out, 20))
    assert not out.exists()


def test_types_that_a_version_has_not_are_refused_though_onnxruntime_takes_them(
    tmp_path: Path,
) -> None:
    path = models.write(
        tmp_path,
        '<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float8e4m3fn[2] y)'
        " { [cast] y = Cast <to: int = 17> (x) }",
    )
    out = tmp_path / "o.onnx"
    with pytest.raises(ActivityError, match="Cast takes no float8e4m3fn before opset 19"):
        convert(Request(path, out, to=13))
    assert not out.exists()
    convert(Request(path, out, to=19))
