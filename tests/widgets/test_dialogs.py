from __future__ import annotations

import pytest

from dld_tui.core.errors import InputError
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog, ErrorDialog, PromptDialog
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of, screen_text


async def test_an_error_shows_what_where_and_what_next_and_takes_all_keys() -> None:
    app = HostApp()
    error = InputError(
        "cannot be read",
        where=f"{HOSTILE}{ESCAPE}",
        hint="Copy it again",
        details="line one\nline two",
    )
    async with app.run_test(size=(80, 24)) as pilot:
        # An error shows what where and what next.
        app.push_screen(ErrorDialog(error, "Open failed"))
        await pilot.pause()
        text = screen_text(app)
        for part in ("Open failed", HOSTILE + "\\x1b]0;x\\x07", "Copy it again", "line two"):
            assert part in text
        await pilot.press("y")
        assert "line one\nline two" in app.copied[0]
        await pilot.press("escape")
        assert not isinstance(app.screen, ErrorDialog)
        # A bug shows the end of its traceback.
        try:
            raise ValueError("the reason")
        except ValueError as error:
            dialog = ErrorDialog(error)
        app.push_screen(dialog)
        await pilot.pause()
        assert "Internal error" in screen_text(app)
        assert "ValueError: the reason" in screen_text(app)
        # Keys of a dialog do not reach the page.
        app.bind("x", "exit")
        app.push_screen(ErrorDialog(InputError("no")))
        await pilot.press("x")
        await pilot.pause()
        assert app.is_running
        assert isinstance(app.screen, ErrorDialog)


async def test_a_choice_by_letter_by_cursor_and_none() -> None:
    choices = [Choice("s", "save", "save"), Choice("d", "discard", "discard")]
    answers: list[str | None] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for keys in (["d"], ["down", "enter"], ["enter"], ["escape"]):
            app.push_screen(ChoiceDialog("Close?", f"Unsaved: {HOSTILE}", choices), answers.append)
            await pilot.pause()
            assert HOSTILE in screen_text(app)
            await pilot.press(*keys)
            await pilot.pause()
    assert answers == ["discard", "discard", "save", None]


async def test_a_long_choice_is_read_whole_below_the_others() -> None:
    long = "int8: 70 % of the time is MatMul in fp32; speedup at most 3.33×, measured on 6 models"
    asked = [Choice("1", long, "int8"), Choice("2", "simplify", "simplify")]
    told = [Choice("1", "int8", "int8", long), Choice("2", "simplify", "simplify", "short")]
    for choices in (asked, told):
        app = HostApp()
        async with app.run_test(size=(80, 24)) as pilot:
            app.push_screen(ChoiceDialog("What may help", "Which?", choices))
            await pilot.pause()
            assert "on 6 models" in screen_text(app)
            assert ("1  int8      int8: 70 %" in screen_text(app)) == (choices is told)  # columns
            await pilot.press("down")
            await pilot.pause()
            assert "on 6 models" not in screen_text(app)


async def test_a_prompt_gives_the_text_only_when_it_is_right() -> None:
    answers: list[str | None] = []
    app = HostApp()
    dialog = PromptDialog(
        "Rename", "A new name", "conv1", check=lambda text: None if text else "a name is needed"
    )
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(dialog, answers.append)
        await pilot.pause()
        rows = rows_of(app)
        below = rows[next(at for at, row in enumerate(rows) if "A new name" in row) + 1]
        assert not any(map(str.isalnum, below))
        await pilot.press(*["backspace"] * 5, "enter")
        assert "a name is needed" in screen_text(app)
        assert answers == []
        await pilot.press(*"new", "enter")
        await pilot.pause()
    assert answers == ["new"]


async def test_an_error_with_long_details_fits_a_small_screen() -> None:
    app = HostApp()
    async with app.run_test(size=(40, 12)) as pilot:
        app.push_screen(ErrorDialog(InputError("x" * 300, details="y\n" * 1000)))
        await pilot.pause()
        assert "Esc close" in screen_text(app)


@pytest.mark.parametrize("key", ["q", "escape", "j", "x"])
async def test_a_letter_of_one_question_does_not_answer_the_next(key: str) -> None:
    answers: list[str | None] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(
            ChoiceDialog("Close?", "", [Choice(key, "discard", "discard")]), answers.append
        )
        await pilot.press(key)
        app.push_screen(ChoiceDialog("Open?", "", [Choice("1", "all", "all")]), answers.append)
        await pilot.press(key, "escape")
    assert answers == ["discard", None]
