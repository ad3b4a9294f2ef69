"""Weights that cannot be read, and names of types.

What weights in another type lose is in ``tests/core/model/transcripts/recasting.txt``.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx

from dld_tui.core.conversion.tensor_casting import CastSelection, convert_tensors
from dld_tui.core.model.document import Document
from tests.support import models

MODEL = """
<ir_version: 10, opset_import: ["" : 18]>
many (float[3] x) => (float[3] y)
<float[3] w = {1, 70000, 3}, int64[1] axis = {0}>
{
    k = Constant <value = float[1] {0.1}> ()
    l = Constant <value_floats = [1.0, 2.0, 3.0]> ()
    a = Add(x, w)
    b = Mul(a, k)
    y = Add(b, l)
}
"""


def test_a_weight_that_cannot_be_read_stays_and_is_told(tmp_path: Path) -> None:
    model = models.parse(MODEL)
    weight = model.graph.initializer[0]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="gone.bin")
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with closing(Document.open(tmp_path / "m.onnx")) as document:
        *_, made = convert_tensors(document, "float16", CastSelection(names=("w",)), casts=True)
        with closing(made.document):
            (note,) = made.notes
            assert note.startswith("w is unchanged: ")
            assert "gone.bin" in note
            assert [one.name for one in made.document.main.initializers] == ["w", "axis"]
