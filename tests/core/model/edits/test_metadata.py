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
