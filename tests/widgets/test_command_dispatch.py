from __future__ import annotations

from types import SimpleNamespace

import pytest
from textual.binding import Binding
from textual.widgets import Static

from dld_tui.commands import in_scope
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.shell import command_dispatch as dispatch
from dld_tui.widgets.shell.command_dispatch import (
    Commands,
    binding_of,
    bindings_for,
    hint,
    same_conditions,
)
from tests.support.tui import HostApp


class Pane(Commands, Static, can_focus=True):
    """Notes what ran, how often it was asked for its conditions, and of which actions."""

    SCOPE = WorkspaceScreen.SCOPE

    def __init__(self) -> None:
        self.now, self.ran, self.asked = {"document"}, list[str](), 0
        self.of: list[str] = []
        super().__init__("x")
        self.history = SimpleNamespace(undo=lambda: self.ran.append("undo"))
        self.navigation = SimpleNamespace(go_to_pane=self.ran.append)

    def conditions(self) -> set[str]:
        self.asked += 1
        return self.now

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        self.of.append(str(parameters[0]) if parameters else action)
        return super().check_action(action, parameters)


def test_bindings_have_ids_help_and_the_shown_key() -> None:
    bindings = bindings_for("workspace")
    rows = [row for row in in_scope("workspace") if row.keys]
    assert len(bindings) == len(rows)
    for binding, row in zip(bindings, rows, strict=True):
        assert isinstance(binding, Binding)
        assert (binding.id, binding.tooltip, binding.show) == (row.id, row.help, row.footer)


async def test_a_command_runs_while_its_conditions_hold_which_are_asked_for_once() -> None:
    app = HostApp(Pane)
    async with app.run_test() as pilot:
        pane = app.query_one(Pane)
        pane.focus()
        await pilot.press("u", "3")
        assert pane.ran == ["3"]
        enabled = {b.binding.id: b.enabled for b in app.screen.active_bindings.values()}
        assert (enabled["edit.undo"], enabled["model.save_as"]) == (False, True)
        pane.now.add("can_undo")
        await pilot.press("u")
        assert pane.ran == ["3", "undo"]
        # One key is looked up without asking of the others.
        active = app.screen.active_bindings
        assert {key: binding_of(app.screen, key) for key in active} == active
        assert binding_of(app.screen, "f24") is None
        pane.of.clear()
        binding_of(app.screen, "u")
        assert pane.of == ["history.undo"]
        # In a look at all bindings conditions are asked for once.
        pane.asked = 0
        assert len(app.screen.active_bindings) > 10
        alone = pane.asked
        with same_conditions():
            assert len(app.screen.active_bindings) > 10
        assert alone > 10
        assert pane.asked == alone + 1


def test_a_hint_has_the_keys_that_were_told_last() -> None:
    try:
        dispatch.use_keys({"work.stop": "f9,escape"})
        assert hint("{work.stop} stops, {list.activate} opens") == "F9 stops, Enter opens"
    finally:
        dispatch.use_keys({})
    assert hint("{work.stop} stops") == "Esc stops"
    with pytest.raises(KeyError):
        hint("{no.command} does")
