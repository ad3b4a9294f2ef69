"""Previews of tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.widgets.parameters.edit_bar import value_text
from dld_tui.widgets.tensors.side import TensorPreview, preview_rows


def previewed(array: Any) -> TensorPreview:
    tensor = Tensor(numpy_helper.from_array(array, "t"), None)
    preview = TensorPreview(tensor)
    preview.read(lambda: False, lambda done, total: None)
    return preview


def texts(preview: TensorPreview) -> list[str]:
    return [row.text() for row in preview_rows("key", preview)]


def test_nan_and_infinity_are_marked() -> None:
    preview = previewed(np.array([np.nan, np.inf, -np.inf, 1], np.float32))
    counts = list(preview_rows("key", preview))[-1]
    assert counts.value == "zeros 0 · NaN 1 · Inf 2"
    assert counts.value_style == "warn"
    assert texts(preview)[1] == "values nan, inf, -inf, 1"


def test_values_that_have_no_statistics_are_shown_alone() -> None:
    # Many values are cut.
    shown = texts(previewed(np.arange(1000, dtype=np.int64)))
    assert shown[1].startswith("values 0, 1, 2, ")
    assert shown[1].endswith(", …")
    # Strings have no statistics.
    shown = texts(previewed(np.array(["a'b", "\x1b["], dtype=object)))
    assert shown[1] == "values 'a\\'b', '\\x1b['"
    assert len(shown) == 2
    # Empty tensor.
    assert texts(previewed(np.zeros((0, 4), np.float32))) == [
        "tensor float32 · 0 B · 0 values · in the model"
    ]


def test_what_cannot_or_may_not_be_read_is_said() -> None:
    # An unreadable tensor says why.
    proto = onnx.TensorProto(name="w", data_type=1, dims=[4], raw_data=b"123")
    preview = TensorPreview(Tensor(proto, None))
    preview.read(lambda: False, lambda done, total: None)
    assert preview.state == "failed"
    assert "raw_data has 3 B" in texts(preview)[-1]
    # A stopped reading can be taken up again.
    preview = TensorPreview(Tensor(numpy_helper.from_array(np.ones(8, np.float32)), None))
    preview.read(lambda: True, lambda done, total: None)
    assert preview.state == "ask"
    assert texts(preview)[-1] == "statistics Enter reads 32 B"
    preview.read(lambda: False, lambda done, total: None)
    assert preview.state == "done"


def test_external_data_names_its_file(tmp_path: Path) -> None:
    proto = onnx.ModelProto(ir_version=10)
    tensor = proto.graph.initializer.add(name="w", data_type=1, dims=[2])
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="weights.bin")
    (tmp_path / "weights.bin").write_bytes(np.array([1, 3], np.float32).tobytes())
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString())
    document = Document.open(path)
    preview = TensorPreview(document.main.initializers[0])
    preview.read(lambda: False, lambda done, total: None)
    assert texts(preview)[0].endswith("in weights.bin")
    assert texts(preview)[1] == "values 1, 3"
    document.close()


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (7, "7"), (0.1, "0.1"), (1e-30, "1e-30"), (1 + 2j, "1+2j"), (b"x" * 99, None)],
)
def test_values_are_short(value: Any, text: str | None) -> None:
    shown = value_text(value)
    assert len(shown) < 70
    if text is not None:
        assert shown == text
