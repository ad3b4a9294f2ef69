"""What a new model begins with."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.new_model import NewModel, opsets_of
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.edits.new_document import new_document
from dld_tui.core.model.operators.registry import DEFAULT_OPSET
from tests.support.sessions import type_in


def test_operator_sets() -> None:
    assert opsets_of(NewModel()) == {"": DEFAULT_OPSET}
    assert opsets_of(NewModel(opset=13, contrib=True, ml=True)) == {
        "": 13, "ai.onnx.ml": 2, "com.microsoft": 1
    }  # fmt: skip
    with pytest.raises(UsageError, match="the newest that is known"):
        opsets_of(NewModel(opset=999))


def test_inputs_and_outputs_are_declared(tmp_path: Path) -> None:
    request = NewModel(
        name="net",
        inputs=("x:float32[N,3,?]", "a[0]/b:c:int64[2]", "bare"),
        outputs=("y:float16[...]",),
    )
    document = new_document(request)
    assert document.main.inputs == ("x", "a[0]/b:c", "bare")
    known = type_in(document, "x")
    assert (known.dtype, known.dims) == ("float32", ("N", 3, None))
    save(document, tmp_path / "new.onnx")
    document.close()
    model = onnx.load(tmp_path / "new.onnx")
    assert model.graph.name == "net"
    assert [output.name for output in model.graph.output] == ["y"]
    assert not model.graph.output[0].type.tensor_type.HasField("shape")


@pytest.mark.parametrize(
    ("inputs", "reason"),
    [
        (("x:float99",), "--input 'x:float99'.*no element type"),
        ((":float32",), "is not a value"),
        (("x", "x"), "twice"),
    ],
)
def test_what_makes_no_sense_is_refused(inputs: tuple[str, ...], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        new_document(NewModel(inputs=inputs))
