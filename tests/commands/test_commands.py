from __future__ import annotations

from collections import Counter

import pytest

from dld_tui.commands import CONDITIONS, INDEX, all_commands, by_id, in_scope, index_text
from dld_tui.commands.command import DIGITS, PLACES, Command, fits, in_order, table
from dld_tui.screens.workspace.controller import Controller
from dld_tui.screens.workspace.history import PageEdits
from dld_tui.widgets.shell.command_dispatch import Commands
from dld_tui.widgets.shell.page import CommandScreen
from tests.support.recorded import Recorded, fields_of

COMMANDS = {one.id: one for one in all_commands()}

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


def test_the_index_is_up_to_date() -> None:
    assert index_text() == INDEX.read_text(encoding="utf-8")
    told = {
        one.id: (one.title, one.help, one.keys, one.scope, one.palette, one.synonyms)
        for one in by_id().values()
    }
    assert told == {
        one.id: (one.title, one.help, one.keys, one.scope, one.palette,
                 one.synonyms if one.palette else ())
        for one in COMMANDS.values()
    }  # fmt: skip


def test_commands_of_tables(monkeypatch: pytest.MonkeyPatch, recorded: Recorded) -> None:
    known: dict[str, Command] = {}
    by_scope: dict[str, dict[str, Command]] = {}
    monkeypatch.setattr("dld_tui.commands.command.known", known)
    monkeypatch.setattr("dld_tui.commands.command.known_by_scope", by_scope)
    first = table(
        "page",
        ("graph.undo", "history.undo", "u", "can_undo", "Undo", "Undoes.", "back, revert", "z"),
        ("edit.pane", "go_to 2", "2,x", "value", "Pane", "Goes."),
        ("edit.to", "editing.to 3", "", "", "To", "Edits."),
        common="document", footer="edit.to graph.undo",
        menus={"edit.pane": "scope node", "edit.to": "metadata"},
    )  # fmt: skip
    second = table(
        "list",
        ("mark.menu", "", "m", "nodes", "Mark", "Marks."),
        ("mark.same", "undo", "", "nodes", "Same", "Marks."),
        ("view.same", "undo", "", "layer tensor", "Again", "Shows."),
        group="Mark", priority=True,
    )  # fmt: skip
    moves = table("page", ("move.up", "history.undo", "", "node", "Up", "Moves."), palette=False)
    held = (set[str](), {"document"}, {"document", "can_undo", "value", "nodes"})
    texts = {
        one.id: "\n".join([
            fields_of(one), one.action_string,
            f"offered at: {', '.join(place for place in PLACES if fits(one, place))}",
            *(f"with {' '.join(sorted(now)) or 'nothing'}: {one.unavailable(now)}" for now in held),
        ])
        for one in (*first, *second, *moves)
    }  # fmt: skip
    texts["known"] = " ".join(known)
    texts["in order"] = " ".join(one.id for one in in_order(second, first))
    texts["known then"] = " ".join(known)
    texts["actions"] = "\n".join(
        f"{scope} {action}: {one.id}"
        for scope, ones in by_scope.items()
        for action, one in ones.items()
    )
    recorded("commands_of_tables", texts)


def test_commands_are_declared_in_the_class_that_handles_them() -> None:
    """Whoever looks for a key finds the method that it runs in the class of the table."""
    all_commands()
    tables: list[tuple[type, Command]] = []
    waiting: list[type] = [Commands, CommandScreen, Controller, PageEdits]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        tables += [(kind, command) for command in vars(kind).get("COMMAND_TABLE", ())]
    assert {one.id for _, one in tables} >= set(COMMANDS)
    for kind, command in tables:
        if "." not in command.action_name:
            kinds = (kind, *kind.__subclasses__())
            assert any(hasattr(one, f"action_{command.action_name}") for one in kinds), command.id


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
