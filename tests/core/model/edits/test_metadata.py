"""Places of nodes on the canvas are kept in the model, and taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import position_of, profiles_of
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import opened


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.CHAIN))


@pytest.mark.parametrize("text", ["", "1", "a,b", "99999,0", "1,2,3", "1.5,2"])
def test_damaged_positions_are_none(document: Document, text: str) -> None:
    document.apply("set_metadata", key="dld.position", value=text, scope=[], nodes=["first"])
    assert position_of(document.main.nodes[0]) is None


def test_profiles_are_set_read_and_removed(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    profile: JSON = {"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}}
    document.apply("set_profiles", profiles=[profile, profile])
    first, second = profiles_of(document)
    assert first == second
    assert first["x"].max == (8, 4)
    document.apply("set_profiles", profiles=None)
    assert profiles_of(document) == []
    assert not document.model.metadata_props
