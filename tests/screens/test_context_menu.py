"""The context menu has the commands that fit, and runs them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from dld_tui.commands import Command
from dld_tui.commands.command import DIGITS
from dld_tui.screens.home.palette import ContextMenu, PaletteEntry, grouped, menu_keys
from dld_tui.widgets.graph.state import GraphView
from dld_tui.widgets.lists.line_view import LineView
from tests.support.graph_session import named
from tests.support.workspace import NARROW, Session, opened


def titles(session: Session) -> dict[str, str | None]:
    return {entry.command.title: entry.why_not for entry in session.in_front(ContextMenu).entries}


async def test_a_node_has_what_needs_a_node(chain: Path) -> None:
    async with opened(chain) as session:
        node = await session.go("second", ".")
        shown = titles(session)
        assert {"rename", "delete", "connect", "to source", "precision"} <= set(shown)
        assert shown["open subgraph"] == "this node has no subgraph"
        assert "filter" not in shown
        assert "Add second" in session.text
        session.in_front(ContextMenu).query_one(LineView).cursor = list(shown).index(
            "open subgraph"
        )
        await session.shows("this node has no subgraph")
        await session.press("r", "ctrl+u")
        await session.type("other", "enter")
        assert node.name == "other"


async def what_cannot_run_says_why_and_the_menu_stays(session: Session) -> None:
    await session.go("second", ".", "s")
    session.in_front(ContextMenu)
    await session.press("escape")
    assert session.app.screen is session.screen


async def rows_have_commands_of_their_own(session: Session) -> None:
    await session.go("second")
    await session.row("B w", ".")
    assert "make graph input" in titles(session)
    assert "open subgraph" not in titles(session)
    assert "input B" in session.text
    await session.press("escape")
    session.screen.navigation.show_subject(session.screen.document.main)
    session.screen.panes.focus("parameters")
    assert session.screen.parameters.list.go_to_key(("Outputs", 0))
    await session.pilot.pause()
    await session.press(".")
    assert {"move up", "move down", "delete"} <= set(titles(session))


async def test_it_stays_on_the_screen_wherever_the_cursor_is(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await session.go("last", ".")
        box = session.in_front(ContextMenu).query_one(".dialog").region
        assert box.bottom <= 24
        assert box.right <= 80


async def the_right_button_opens_it_on_the_row_that_is_clicked(session: Session) -> None:
    await session.go("first")
    session.screen.graph.switch_view(GraphView.RAIL)
    await session.settle()
    for view in (session.screen.explorer.list, session.screen.graph.list):
        at = view.find_key(named(session, "third"))
        assert at is not None
        await session.pilot.click(view, offset=(10, at + view.header_rows), button=3)
        await session.front(ContextMenu)
        assert "Mul third" in session.text
        await session.pilot.click(offset=(1, 1))
        assert session.app.screen is session.screen


@pytest.mark.broad
async def test_menus_of_a_model(chain: Path) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            what_cannot_run_says_why_and_the_menu_stays,
            rows_have_commands_of_their_own,
            the_right_button_opens_it_on_the_row_that_is_clicked,
        )


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
