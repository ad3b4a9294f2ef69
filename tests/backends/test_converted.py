from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import pytest

from dld_tui.backends.conversion import verification
from dld_tui.core.conversion.copies import copy_of
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import result_of
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.conversions import model_file

pytest.importorskip("onnxruntime")


def notes_of(*of: Any, **more: Any) -> list[str]:
    return [note.text for note in result_of(verification.verify(*of, **more))]


def test_a_good_model_is_loaded_and_run(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        assert notes_of(document, document, tmp_path / "out.onnx") == []
        with pytest.raises(UsageError, match="not an input"):
            notes_of(document, document, tmp_path / "out.onnx", ["ghost:1x4"])


def test_a_fault_names_the_node_and_what_to_do(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as document:
        broken = copy_of(document)
        broken.main.nodes[1].proto.op_type = "MatMulInteger"
        with pytest.raises(ActivityError, match="cannot be used") as caught:
            notes_of(document, broken, tmp_path / "out.onnx", hint="Do this")
        assert "'second'" in f"{caught.value.where} {caught.value.details}"
        assert caught.value.hint == "Do this"
        broken.close()


def test_what_the_original_cannot_do_is_no_fault_of_the_conversion(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Relu(x)", "com.acme.Odd(x)").replace(
        '["" : 18]', '["" : 18, "com.acme" : 1]'
    )
    with closing(Document.open(models.write(tmp_path, text))) as document:
        (note,) = notes_of(document, document, tmp_path / "out.onnx")
    assert note.startswith("not verified, as the original cannot be run either")


def test_many_weights_are_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verification, "_MANY", 1_000)
    monkeypatch.setattr(verification, "_LARGE", 1_000)
    seen: list[onnx.ModelProto] = []
    real: Any = vars(verification)["Session"]

    def session(view: Path, *more: object) -> object:
        seen.append(onnx.load(view, load_external_data=False))
        return real(view, *more)

    monkeypatch.setattr(verification, "Session", session)
    with closing(Document.open(model_file(tmp_path))) as document:
        (note,) = notes_of(document, document, tmp_path / "out.onnx")
    assert "loaded but not run" in note
    assert seen[0].graph.node[0].op_type == "ConstantOfShape"
