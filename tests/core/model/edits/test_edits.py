"""Edits do what they say, refuse what would break the model, and undo to the same bytes."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.model.document import DocumentChange
from tests.support import models
from tests.support.sessions import opened


def test_deleting_a_holder_takes_its_subgraphs_and_undo_brings_them_back(tmp_path: Path) -> None:
    document = opened(tmp_path, models.BRANCHES)
    then = document.main.children()[0]
    document.apply("delete_nodes", scope=[], nodes=["choose"])
    assert document.main.children() == []
    document.undo()
    assert document.main.children()[0] is then


def test_listeners_hear_what_changed(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    heard: list[DocumentChange] = []
    document.on_change.append(heard.append)
    document.apply("rename_node", scope=[], node="first", name="other")
    document.undo()
    document.redo()
    assert [change.kind for change in heard] == ["edit", "undo", "redo"]
    transaction = heard[0].transaction
    assert transaction is not None
    assert transaction.nodes == (document.main.nodes[0],)
    assert transaction.title == "rename node 'first' to 'other'"
