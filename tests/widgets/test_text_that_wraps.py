"""Text that is broken again for another width: of dialogs, and command lines below forms."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from textual.widget import Widget

from dld_tui.app import DldApp
from dld_tui.core.notes import Claim, Note, NoteKind
from dld_tui.core.text import cell_width
from dld_tui.screens.model.opset_dialogs import AppliedDialog
from dld_tui.widgets.dialogs.dialogs import Dialog, DialogText
from dld_tui.widgets.lists.styled import wrap
from tests.support.tui import screen_text, until

WORDS = " ".join(f"w{number}" for number in range(120))


def shown_words(app: DldApp) -> int:
    text = screen_text(app).split()
    return sum(f"w{number}" in text for number in range(120))


@pytest.mark.broad
async def test_a_certificate_is_whole_at_every_size() -> None:
    app = DldApp()
    async with app.run_test(size=(120, 40)) as pilot:
        notes: list[Note] = [
            Claim(NoteKind.GOOD, " ".join(WORDS.split()[:50]), claim="same results"),
            Note(NoteKind.INFO, " ".join(WORDS.split()[50:])),
        ]
        app.push_screen(AppliedDialog(notes, "convert to fp16"))
        await until(pilot, lambda: shown_words(app) == 120)
        for columns in (80, 60, 200):
            await pilot.resize_terminal(columns, 40)
            await until(pilot, lambda: shown_words(app) == 120)


@pytest.mark.broad
async def test_what_is_too_long_scrolls_with_the_first_key() -> None:
    class Long(Dialog[None]):
        def body(self) -> Iterable[Widget]:
            yield DialogText(lambda width: [[(f"row {at}", "")] for at in range(50)], 10)

    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(Long())
        await until(pilot, lambda: "row 0" in screen_text(app))
        assert "row 14" not in screen_text(app)
        app.screen.query_one(DialogText).focus()
        await pilot.press("down")
        await until(pilot, lambda: "row 14" in screen_text(app))


def test_words_are_kept_whole_indented_and_visible() -> None:
    # Words are kept whole and indents stay.
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("  code that is long", 10) == ["  code", "  that is", "  long"]
    assert wrap("a\nb\n\nc", 10) == ["a", "b", "", "c"]
    # A long word is cut.
    assert wrap("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]
    assert wrap("   中中", 3) == [" 中", " 中"]
    assert wrap(" 中", 2) == ["中"]
    # Control characters are shown.
    assert wrap("\x1b]0;x\x07", 40) == ["\\x1b]0;x\\x07"]


@settings(max_examples=50)
@given(st.text(max_size=200) | st.text(" a中\t", max_size=30), st.integers(2, 40))
def test_no_row_is_wider(text: str, cells: int) -> None:
    for row in wrap(text, cells):
        assert cell_width(row) <= cells
