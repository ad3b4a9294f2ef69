"""The context menu has the commands that fit, and runs them."""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.commands import Command
from dld_tui.commands.command import DIGITS
from dld_tui.screens.home.palette import PaletteEntry, grouped, menu_keys


def test_keys_of_a_menu_are_those_outside_it_or_a_digit_that_stays() -> None:
    def keys(id: str, own: str = "", keymap: Mapping[str, str] | None = None) -> list[str]:
        return menu_keys(PaletteEntry(Command(id, "title", "Help.", own), None, None), keymap or {})

    assert keys("edit.fold") == [DIGITS["edit.fold"]]
    assert keys("edit.fold", keymap={"edit.fold": "x"}) == ["x"]
    assert keys("a.new") == [], "a command that is added moves no digit"
    assert keys("b.d", "delete,d") == ["delete", "d"]
    assert keys("b.u", "up") == [], "a key that moves in the menu is not taken"


def test_entries_are_in_groups_with_those_that_can_run_first() -> None:
    entries = [
        PaletteEntry(Command("a.x", name, "Help.", group=group), None, why)
        for name, group, why in [
            ("mark", "Mark", None), ("late", "Edit", "no"), ("edit", "Edit", None),
            ("go", "Go", None),
        ]
    ]  # fmt: skip
    assert [entry.command.title for entry in grouped(entries)] == ["go", "edit", "late", "mark"]
