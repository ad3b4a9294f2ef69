from __future__ import annotations

from collections import Counter

import pytest

from dld_tui.commands import CONDITIONS, all_commands, for_action, in_scope
from dld_tui.commands.command import DIGITS, PLACES, Command, fits
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.widgets.shell.command_dispatch import Commands
from dld_tui.widgets.shell.page import CommandScreen

COMMANDS = {command.id: command for command in all_commands()}

FORBIDDEN = {"ctrl+i", "ctrl+m", "ctrl+h", "ctrl+left_square_bracket"}


def test_rows_of_the_table_are_sound() -> None:
    # Ids are unique and facts known.
    assert [
        name for name, count in Counter(row.id for row in COMMANDS.values()).items() if count > 1
    ] == []
    assert {need for row in COMMANDS.values() for need in row.needs} <= set(CONDITIONS)
    # Titles are short and help is a sentence.
    for row in COMMANDS.values():
        assert len(row.title.split()) <= 3, row.id
        assert row.help.endswith("."), row.id
    # No key that terminals cannot tell.
    assert {key for row in COMMANDS.values() for key in row.keys.split(",")} & FORBIDDEN == set()


@pytest.mark.parametrize("scope", sorted({row.scope for row in COMMANDS.values()}))
def test_keys_of_a_scope_do_not_clash(scope: str) -> None:
    keys = Counter(key for row in in_scope(scope) for key in row.keys.split(",") if key)
    assert {key: count for key, count in keys.items() if count > 1} == {}


@pytest.mark.parametrize("scope", ["report", "plan", "compare", "log", "targets", "target_jobs"])
def test_tables_and_lists_leave_the_keys_of_their_page(scope: str) -> None:
    """The focused list gets a key first; what it passes on itself is allowed."""
    lists = {key for row in (*in_scope("list"), *in_scope("table")) for key in row.keys.split(",")}
    keys = {key for row in in_scope(scope) for key in row.keys.split(",") if key}
    assert keys & lists <= {"slash", "enter"}


@pytest.mark.parametrize(
    ("id", "keys"),
    [
        ("app.help", "question_mark,f1"), ("app.palette", "ctrl+p"), ("file.open", "ctrl+o"),
        ("model.save", "ctrl+s"), ("model.new", "ctrl+n"), ("app.quit", "ctrl+q"),
        ("list.search", "slash"), ("list.mark", "space"), ("go.back", "backspace"),
        ("model.profile", "f5"),
    ],
)  # fmt: skip
def test_the_contract_keys(id: str, keys: str) -> None:
    assert COMMANDS[id].keys == keys


def test_what_is_missing_is_the_reason() -> None:
    undo = COMMANDS["edit.undo"]
    assert undo.unavailable({"document", "can_undo"}) is None
    assert undo.unavailable({"document"}) == "nothing to undo"
    assert undo.unavailable(()) == "no model is open"


def test_actions_are_found_by_scope() -> None:
    found = for_action("workspace", "history.undo")
    assert found is not None
    assert found.id == "edit.undo"
    assert for_action("report", "undo") is None
    pane = COMMANDS["pane.2"]
    assert pane.action_string == "command('navigation.go_to_pane', '2')"
    assert COMMANDS["edit.undo"].action_string == "command('history.undo')"
    assert COMMANDS["list.mark"].action_string == "mark"


def test_commands_are_declared_in_the_class_that_handles_them() -> None:
    """Whoever looks for a key finds the method that it runs in the class of the table."""
    all_commands()
    tables: list[tuple[type, Command]] = []
    waiting: list[type] = [Commands, CommandScreen, Controller, PageEdits]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        tables += [(kind, command) for command in vars(kind).get("COMMAND_TABLE", ())]
    assert {command.id for _, command in tables} >= {command.id for command in COMMANDS.values()}
    for kind, command in tables:
        if "." not in command.action_name:
            kinds = (kind, *kind.__subclasses__())
            assert any(hasattr(one, f"action_{command.action_name}") for one in kinds), command.id


@pytest.mark.parametrize(
    ("needs", "places"),
    [
        (("document", "node"), {"node"}),
        (("document", "value"), {"input", "output", "boundary"}),
        (("document", "can_undo"), set()),
        (("layer",), {"layer"}),
    ],
)
def test_a_new_command_appears_where_its_needs_can_hold(
    needs: tuple[str, ...], places: set[str]
) -> None:
    command = Command("a.b", "title", "Help.", needs=needs)
    assert {place for place in PLACES if fits(command, place)} == places


def test_menus_offer_more_places_and_leave_movements_out() -> None:
    # A command may name more places and movements are left out.
    assert fits(Command("a.b", "title", "Help.", menu=("scope",)), "scope")
    assert not fits(Command("a.b", "title", "Help.", needs=("node",), palette=False), "node")
    # Marking has a menu of its own.
    assert fits(COMMANDS["mark.menu"], "node")
    assert not fits(COMMANDS["mark.same"], "node")


@pytest.mark.parametrize("place", PLACES)
def test_every_place_has_commands(place: str) -> None:
    shown = [command for command in COMMANDS.values() if fits(command, place)]
    assert shown
    assert all(name in PLACES for command in shown for name in command.menu)


def test_a_digit_means_one_command_that_has_no_key() -> None:
    assert len(set(DIGITS.values())) == len(DIGITS)
    for id in DIGITS:
        assert not COMMANDS[id].keys
        assert any(fits(COMMANDS[id], place) for place in PLACES), id
