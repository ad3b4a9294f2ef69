"""Places of nodes on the canvas are kept in the model, and taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import position_of
from dld_tui.core.types import JSON
from tests.support import models


@pytest.fixture
def document(tmp_path: Path) -> Document:
    return Document.open(models.write(tmp_path, models.CHAIN))


def test_positions_are_set_and_cleared_and_other_metadata_stays(document: Document) -> None:
    node = document.main.nodes[0]
    document.apply("set_metadata", key="other", value="stays", scope=[], nodes=["first"])
    document.apply("set_positions", scope=[], positions={"first": [-8, 0], "last": [4, 2]})
    assert position_of(node) == (-8, 0)
    assert position_of(document.main.nodes[-1]) == (4, 2)
    document.apply("set_positions", scope=[], positions={"first": None})
    assert position_of(node) is None
    assert node.metadata == {"other": "stays"}
    document.apply("set_positions", scope=[], positions=None)
    assert all(position_of(node) is None for node in document.main.nodes)
    document.undo()
    assert position_of(document.main.nodes[-1]) == (4, 2)


def test_setting_what_is_set_changes_nothing(document: Document) -> None:
    positions: dict[str, JSON] = {"first": [1, 2]}
    document.apply("set_positions", scope=[], positions=positions)
    assert not document.apply("set_positions", scope=[], positions=positions).primitives


@pytest.mark.parametrize("place", [[1], [1, 2, 3], [1.5, 0], [True, 0], "1,2", [10_000, 0], 3])
def test_what_is_no_position_is_refused(document: Document, place: JSON) -> None:
    with pytest.raises(EditError):
        document.apply("set_positions", scope=[], positions={"first": place})


def test_a_node_that_is_not_there_is_refused(document: Document) -> None:
    with pytest.raises(EditError):
        document.apply("set_positions", scope=[], positions={"nobody": [1, 0]})


@pytest.mark.parametrize("text", ["", "1", "a,b", "99999,0", "1,2,3", "1.5,2"])
def test_damaged_positions_are_none(document: Document, text: str) -> None:
    document.apply("set_metadata", key="dld.position", value=text, scope=[], nodes=["first"])
    assert position_of(document.main.nodes[0]) is None
