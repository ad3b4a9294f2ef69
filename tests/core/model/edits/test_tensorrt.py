"""Layer precisions and optimization profiles are kept in the model, and checked before."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document.metadata import PRECISIONS, precision_of, profiles_of
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import opened

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


def test_setting_what_is_set_changes_nothing(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    nodes: list[JSON] = [[[], "first"]]
    document.apply("set_precision", nodes=nodes, precision="fp8")
    assert not document.apply("set_precision", nodes=nodes, precision="fp8").primitives


@pytest.mark.parametrize(
    ("nodes", "precision", "reason"),
    [
        ([[[], "first"]], "fp17", "no precision 'fp17'"),
        ([[[], "ghost"]], "fp16", "no node 'ghost'"),
        ([["first"]], "fp16", r"names or \[scope, node\]"),
        ([[[], 3]], "fp16", r"names or \[scope, node\]"),
        ([["main", "first"]], "fp16", r"names or \[scope, node\]"),
    ],
)
def test_precisions_that_make_no_sense_are_refused(
    tmp_path: Path, nodes: list[JSON], precision: str, reason: str
) -> None:
    document = opened(tmp_path, models.CHAIN)
    with pytest.raises(EditError, match=reason):
        document.apply("set_precision", nodes=nodes, precision=precision)
    assert not document.history.done


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


def test_profiles_that_do_not_fit_the_inputs_are_refused(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    with pytest.raises(EditError, match="profile 1, x: dimension 1 is fixed to 4"):
        document.apply(
            "set_profiles", profiles=[{"x": {"min": [1, 1], "opt": [2, 4], "max": [8, 4]}}]
        )
    with pytest.raises(EditError, match="profile 1: x has no range"):
        document.apply("set_profiles", profiles=[{}])
    with pytest.raises(EditError, match="min, opt and max are needed"):
        document.apply("set_profiles", profiles=[{"x": {"min": [1, 4]}}])
