"""Places of nodes on the canvas are kept in the model, and taken out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import PRECISIONS, position_of, precision_of, profiles_of
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import opened


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


@pytest.mark.parametrize("text", ["", "1", "a,b", "99999,0", "1,2,3", "1.5,2"])
def test_damaged_positions_are_none(document: Document, text: str) -> None:
    document.apply("set_metadata", key="dld.position", value=text, scope=[], nodes=["first"])
    assert position_of(document.main.nodes[0]) is None


THEN: list[JSON] = ["choose:then_branch"]


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_precision_can_be_set_and_cleared(tmp_path: Path, precision: str) -> None:
    document = opened(tmp_path, models.BRANCHES)
    document.apply("set_metadata", key="other", value="stays", scope=[], nodes=["pre"])
    nodes: list[JSON] = [[[], "pre"], [THEN, "inner"], [[], "pre"]]
    document.apply("set_precision", nodes=nodes, precision=precision)
    pre, inner = document.main.nodes[0], document.main.children()[0].nodes[0]
    assert (precision_of(pre), precision_of(inner)) == (precision, precision)
    document.apply("set_precision", nodes=nodes, precision=None)
    assert (precision_of(pre), precision_of(inner)) == ("", "")
    assert pre.metadata == {"other": "stays"}


def test_setting_the_precision_that_is_set_changes_nothing(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    nodes: list[JSON] = [[[], "first"]]
    document.apply("set_precision", nodes=nodes, precision="fp8")
    assert not document.apply("set_precision", nodes=nodes, precision="fp8").primitives


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


def test_what_fitted_before_does_not_hinder_the_edit_of_another_range(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    old: JSON = {"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}}
    document.apply("set_profiles", profiles=[old])
    document.apply("set_value_type", scope=[], value="x", dtype="float32", dims=["N", 5])
    new: JSON = {"x": {"min": [1, 5], "opt": [2, 5], "max": [8, 5]}}
    document.apply("set_profiles", profiles=[old, new])
    assert len(profiles_of(document)) == 2
    wrong: JSON = {"x": {"min": [2, 4], "opt": [2, 4], "max": [2, 4]}}
    with pytest.raises(EditError, match="profile 2, x: dimension 1 is fixed to 5"):
        document.apply("set_profiles", profiles=[old, wrong])
