from __future__ import annotations

import pytest

from dld_tui.core.keys import key_name, unknown_and_clashing


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("ctrl+s", "^S"),
        ("ctrl+shift+s", "Ctrl+Shift+S"),
        ("question_mark", "?"),
        ("left_square_bracket", "["),
        ("f5", "F5"),
        ("G", "G"),
        ("g", "g"),
        ("ctrl+pagedown", "^PgDn"),
        ("shift+backspace", "Shift+Backspace"),
    ],
)
def test_keys_as_people_write_them(key: str, name: str) -> None:
    assert key_name(key) == name


def test_a_good_table_has_no_problem() -> None:
    assert unknown_and_clashing({}) == []
    assert unknown_and_clashing({"edit.undo": "f11"}) == []


def test_unknown_commands_and_clashes_are_told() -> None:
    assert unknown_and_clashing({"no.such": "x"}) == ["keys: no command 'no.such'"]
    clash = unknown_and_clashing({"edit.undo": "f1"})
    assert clash == ["keys: f1 is both edit.undo and app.help"]


def test_a_key_that_another_row_gave_up_is_free() -> None:
    assert unknown_and_clashing({"edit.rename": "u", "edit.undo": "f11"}) == []
