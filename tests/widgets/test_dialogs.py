"""Dialogs: errors, choices, prompts, and lists to pick from."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dld_tui.core.model.document import Document
from dld_tui.widgets.dialogs.dialogs import Choice, ChoiceDialog
from dld_tui.widgets.dialogs.wiring import ValuePicker
from tests.support import models
from tests.support.tui import HostApp, screen_text, until


async def test_a_long_choice_is_read_whole_below_the_others() -> None:
    long = "int8: 70 % of the time is MatMul in fp32; speedup at most 3.33×, measured on 6 models"
    asked = [Choice("1", long, "int8"), Choice("2", "simplify", "simplify")]
    told = [Choice("1", "int8", "int8", long), Choice("2", "simplify", "simplify", "short")]
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for choices in (asked, told):
            app.push_screen(ChoiceDialog("What may help", "Which?", choices))
            await pilot.pause()
            assert "on 6 models" in screen_text(app)
            assert ("1  int8      int8: 70 %" in screen_text(app)) == (choices is told)  # columns
            await pilot.press("down")
            await pilot.pause()
            assert "on 6 models" not in screen_text(app)


async def test_a_letter_of_one_question_does_not_answer_the_next() -> None:
    answers: list[str | None] = []
    app = HostApp()
    async with app.run_test(size=(80, 24)) as pilot:
        for key in ("q", "escape", "j", "x"):
            choices = [Choice(key, "discard", "discard")]
            app.push_screen(ChoiceDialog("Close?", "", choices), answers.append)
            await pilot.press(key)
            app.push_screen(ChoiceDialog("Open?", "", [Choice("1", "all", "all")]), answers.append)
            await pilot.press(key, "escape")
    assert answers == ["discard", None] * 4


def document(tmp_path: Path, text: str = models.CHAIN) -> Document:
    return Document.open(models.write(tmp_path, text))


async def ask(pilot: Pilot[int], picker: ValuePicker) -> list[str | None]:
    answers: list[str | None] = []
    pilot.app.push_screen(picker, answers.append)
    await pilot.pause()
    return answers


@pytest.mark.broad
async def test_many_values_are_collected_while_keys_are_answered(tmp_path: Path) -> None:
    nodes = "\n".join(f"v{n + 1} = Relu(v{n})" for n in range(3000))
    text = f"""<ir_version: 10, opset_import: ["" : 18]>
    long (float[4] v0) => (float[4] v3000) {{ {nodes} }}"""
    app, opened = HostApp(), document(tmp_path, text)
    async with app.run_test(size=(80, 24)) as pilot:
        picker = ValuePicker(opened.main, title="Connect")
        at_once = picker.complete
        assert not at_once
        answers = await ask(pilot, picker)
        await pilot.press(*"v2999")
        await until(pilot, lambda: picker.complete and len(picker.rows) > 0)
        await pilot.press("enter")
        assert answers == ["v2999"]
