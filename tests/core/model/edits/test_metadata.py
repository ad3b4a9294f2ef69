"""Places of nodes that are kept in the model: damaged ones are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import position_of
from tests.support import models


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.CHAIN))


@pytest.mark.parametrize("text", ["", "1", "a,b", "99999,0", "1,2,3", "1.5,2"])
def test_damaged_positions_are_none(document: Document, text: str) -> None:
    document.apply("set_metadata", key="dld.position", value=text, scope=[], nodes=["first"])
    assert position_of(document.main.nodes[0]) is None


def test_texts_that_are_not_utf8_are_told_apart_and_come_back(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    path.write_bytes(path.read_bytes() + b"\x12\x01\xff")
    document = Document.open(path)
    document.apply("set_model_field", field="producer_name", value="\udcff")
    assert not document.dirty
    document.apply("set_model_field", field="producer_name", value="me")
    document.undo()
    assert document.model.SerializeToString(deterministic=True).count(b"\x12\x01\xff") == 1
