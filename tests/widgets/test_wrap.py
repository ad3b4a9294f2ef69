from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.text import cell_width
from dld_tui.widgets.lists.styled import wrap


def test_words_are_kept_whole_and_indents_stay() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("  code that is long", 10) == ["  code", "  that is", "  long"]
    assert wrap("a\nb\n\nc", 10) == ["a", "b", "", "c"]


def test_a_long_word_is_cut() -> None:
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_control_characters_are_shown() -> None:
    assert wrap("\x1b]0;x\x07", 40) == ["\\x1b]0;x\\x07"]


@given(st.text(max_size=200), st.integers(2, 40))
def test_no_row_is_wider(text: str, cells: int) -> None:
    for row in wrap(text, cells):
        assert cell_width(row) <= cells
