from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, cast

import pytest
from textual.binding import Binding
from textual.css.query import NoMatches

from dld_tui.commands import in_scope
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.shell import command_dispatch as dispatch
from dld_tui.widgets.shell.command_dispatch import (
    bindings_for,
    hint,
)


def test_bindings_have_ids_help_and_the_shown_key() -> None:
    bindings = bindings_for("workspace")
    rows = [row for row in in_scope("workspace") if row.keys]
    assert len(bindings) == len(rows)
    for binding, row in zip(bindings, rows, strict=True):
        assert isinstance(binding, Binding)
        assert (binding.id, binding.tooltip, binding.show) == (row.id, row.help, row.footer)


def test_a_hint_has_the_keys_that_were_told_last() -> None:
    try:
        dispatch.use_keys({"work.stop": "f9,escape"})
        assert hint("{work.stop} stops, {list.activate} opens") == "F9 stops, Enter opens"
    finally:
        dispatch.use_keys({})
    assert hint("{work.stop} stops") == "Esc stops"
    with pytest.raises(KeyError):
        hint("{no.command} does")


def test_bindings_of_a_class_are_those_of_its_scopes_before_its_own() -> None:
    """Its own scope wins over further ones; a class that names no scope gets none."""

    class Plain:
        SCOPE = "targets"
        BINDINGS: ClassVar[list[Any]] = [("f12", "one", "One")]

    class Further(Plain):
        MORE_SCOPES = ("model_page", "page")

    class Bare(Further):
        pass

    for one in (Plain, Further, Bare):
        dispatch.bind(one)
    assert [*bindings_for("targets"), ("f12", "one", "One")] == Plain.BINDINGS
    assert bindings_for("page", "model_page", "targets") == Further.BINDINGS
    assert "BINDINGS" not in vars(Bare)
    assert dispatch.scopes_of(cast("Any", Bare())) == ["targets", "model_page", "page"]


class Node:
    """What has commands of a model's page."""

    SCOPE = WorkspaceScreen.SCOPE

    def __init__(self) -> None:
        self.held, self.asked = {"document"}, 0
        self.ran: list[object] = []

    def conditions(self) -> set[str]:
        self.asked += 1
        if "nothing" in self.held:
            raise NoMatches
        return self.held

    def go(self, *to: str) -> None:
        self.ran.append(to)

    async def wait(self) -> None:
        self.ran.append("waited")


async def test_commands_are_grey_while_a_need_of_them_does_not_hold() -> None:
    node = Node()
    known: Any = node
    assert dispatch.why_greyed(known, "command", ("history.undo",)) == "undo: nothing to undo"
    assert dispatch.grey(known, "command", ("history.undo",)) is None
    assert (dispatch.grey(known, "no_command", ()), node.asked) == (True, 2)
    node.held = {"document", "can_undo"}
    assert dispatch.grey(known, "command", ("history.undo",)) is True
    with dispatch.same_conditions():
        assert dispatch.conditions_of(known) == {"document", "can_undo"}
        node.held = {"nothing"}
        assert dispatch.conditions_of(known) == {"document", "can_undo"}
    assert (dispatch.conditions_of(known), node.asked) == (set(), 5)
    page: Any = SimpleNamespace(node=node)
    await dispatch.run_command(page, "node.go", "a", "b")
    await dispatch.run_command(page, "node.wait")
    assert node.ran == [("a", "b"), "waited"]
    assert dispatch.holding(a=1, b=0, c="x", d=None) == {"a", "c"}
