"""``dld convert opset``: weights come along, and the result is run and compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.conversion.opset import ConversionError
from dld_tui.core.errors import ActivityError, DldError, InputError, SaveError, TimeLimitError
from tests.support import conversions, models
from tests.support.conversions import OLD


def convert(path: Path, output: Path, to: int) -> dict[str, Any]:
    return conversions.convert("opset", path, output, to=to)


def test_failures(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    (tmp_path / "text").write_bytes(b"\xff" * 9)
    cases: list[tuple[type[DldError], Path, str, int]] = [
        (ConversionError, path, "out.onnx", 3),
        (InputError, tmp_path / "absent", "out.onnx", 19),
        (InputError, tmp_path / "text", "out.onnx", 19),
        (SaveError, path, "no/out.onnx", 19),
    ]
    for kind, model, output, version in cases:
        with pytest.raises(kind) as caught:
            convert(model, tmp_path / output, version)
        assert kind is not ConversionError or caught.value.where == str(path)
    assert not (tmp_path / "out.onnx").exists()


@pytest.mark.parametrize("kind", [TimeLimitError, ActivityError])
def test_a_comparison_that_reaches_a_limit_leaves_the_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[ActivityError]
) -> None:
    def stop(*_: object) -> None:
        raise kind("Failed to allocate memory", where="m.onnx: node >y (If)")

    monkeypatch.setattr("dld_tui.backends.conversion.value_check.ValueCheck.run", stop)
    result = convert(models.write(tmp_path, OLD), tmp_path / "out.onnx", 18)
    assert result["values"] == {
        "skipped": "the comparison was stopped: node >y (If): Failed to allocate memory"
    }
    assert (tmp_path / "out.onnx").is_file()


def test_types_that_a_version_has_not_are_refused_though_onnxruntime_takes_them(
    tmp_path: Path,
) -> None:
    text = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x) => (float8e4m3fn[2] y)
    { y = Cast <to: int = 17> (x) }"""
    path, out = models.write(tmp_path, text), tmp_path / "o.onnx"
    with pytest.raises(ActivityError, match="Cast takes no float8e4m3fn before opset 19"):
        convert(path, out, 13)
    assert not out.exists()
    convert(path, out, 19)
