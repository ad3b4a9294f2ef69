from __future__ import annotations

from types import SimpleNamespace
from typing import ClassVar

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
    SCOPE = WorkspaceScreen.SCOPE
    now: ClassVar[set[str]] = {"document"}
    ran: ClassVar[list[str]] = []

    def conditions(self) -> set[str]:
        return self.now

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.history = SimpleNamespace(undo=lambda: self.ran.append("undo"))
        self.navigation = SimpleNamespace(go_to_pane=self.ran.append)


def test_bindings_have_ids_help_and_the_shown_key() -> None:
    bindings = bindings_for("workspace")
    rows = [row for row in in_scope("workspace") if row.keys]
    assert len(bindings) == len(rows)
    for binding, row in zip(bindings, rows, strict=True):
        assert isinstance(binding, Binding)
        assert (binding.id, binding.tooltip, binding.show) == (row.id, row.help, row.footer)


async def test_a_command_runs_only_while_its_facts_hold() -> None:
    app = HostApp(lambda: Pane("x"))
    async with app.run_test() as pilot:
        pane = app.query_one(Pane)
        await pilot.press("u", "3")
        assert pane.ran == ["3"]
        enabled = {b.binding.id: b.enabled for b in app.screen.active_bindings.values()}
        assert enabled["edit.undo"] is False
        assert enabled["model.save_as"] is True
        pane.now.add("can_undo")
        await pilot.press("u")
        assert pane.ran == ["3", "undo"]


async def test_facts_are_asked_for_once_in_a_look_at_all_bindings() -> None:
    class Counting(Pane):
        asked: ClassVar[int] = 0

        def conditions(self) -> set[str]:
            type(self).asked += 1
            return self.now

    app = HostApp(lambda: Counting("x"))
    async with app.run_test():
        pane = app.query_one(Counting)
        pane.focus()
        Counting.asked = 0
        assert len(app.screen.active_bindings) > 10
        many = Counting.asked
        with same_conditions():
            assert len(app.screen.active_bindings) > 10
        assert many > 10
        assert Counting.asked == many + 1


async def test_one_key_is_looked_up_without_asking_of_the_others() -> None:
    class Asked(Pane):
        of: ClassVar[list[str]] = []

        def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
            self.of.append(str(parameters[0]) if parameters else action)
            return super().check_action(action, parameters)

    app = HostApp(lambda: Asked("x"))
    async with app.run_test():
        app.query_one(Asked).focus()
        active = app.screen.active_bindings
        assert {key: binding_of(app.screen, key) for key in active} == active
        assert binding_of(app.screen, "f24") is None
        Asked.of.clear()
        binding_of(app.screen, "u")
        assert Asked.of == ["history.undo"]


def test_a_hint_has_the_keys_that_were_told_last() -> None:
    try:
        dispatch.use_keys({"work.stop": "f9,escape"})
        assert hint("{work.stop} stops, {list.activate} opens") == "F9 stops, Enter opens"
    finally:
        dispatch.use_keys({})
    assert hint("{work.stop} stops") == "Esc stops"
    with pytest.raises(KeyError):
        hint("{no.command} does")
