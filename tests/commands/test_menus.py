"""The conditions that a command needs say where the context menu offers it."""

from __future__ import annotations

import pytest

from dld_tui.commands import all_commands
from dld_tui.commands.command import DIGITS, PLACES, Command, fits

COMMANDS = {command.id: command for command in all_commands()}


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


def test_a_command_may_name_more_places_and_movements_are_left_out() -> None:
    assert fits(Command("a.b", "title", "Help.", menu=("scope",)), "scope")
    assert not fits(Command("a.b", "title", "Help.", needs=("node",), palette=False), "node")


def test_marking_has_a_menu_of_its_own() -> None:
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
