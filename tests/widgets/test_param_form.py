from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from textual.widgets import Input

from dld_tui.core.params import param
from dld_tui.core.types import JSON
from dld_tui.widgets.forms import param_form
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support.tui import STYLES, HostApp, rows_of, screen_text


@dataclass(frozen=True)
class Request:
    model: Path = param(label="Model", help="The model.", kind="file", positional=True)
    fp16: bool = param(False, label="FP16", help="Half precision.")
    mode: str = param("fast", label="Mode", help="How.", choices=("fast", "slow"))
    count: int = param(10, label="Count", help="How many.", minimum=1, unit="passes", page="More")
    shapes: tuple[str, ...] = param((), label="Shapes", help="S.", page="More")
    core: int | None = param(None, label="DLA core", help="Which.", page="More")


VALUES: dict[str, JSON] = {"model": "m.onnx"}


class FormApp(HostApp):
    CSS_PATH: ClassVar[Any] = [STYLES / "base.tcss", STYLES / "form.tcss"]

    @property
    def form(self) -> ParamForm:
        return self.query_one(ParamForm)


def is_valid(form: ParamForm) -> bool:
    return form.valid


async def test_a_needed_field_is_wrong_until_it_is_filled() -> None:
    app = FormApp(lambda: ParamForm(Request, {}))
    async with app.run_test(size=(80, 24)) as pilot:
        form = app.form
        form.focus_first()
        assert not is_valid(form)
        assert "needed" in screen_text(app)
        await pilot.press(*"a.onnx")
        await pilot.pause()
        assert is_valid(form)
        assert form.values()["model"] == "a.onnx"


@pytest.mark.broad
async def test_pages_help_and_greyed_fields() -> None:
    app = FormApp(lambda: ParamForm(Request, VALUES, {"core": "not on this device"}))
    async with app.run_test(size=(80, 24)) as pilot:
        form = app.form
        form.focus_first()
        await pilot.pause()
        assert "The model." in screen_text(app)
        assert "[ Common ]" in screen_text(app)
        form.step_page(1)
        await pilot.pause()
        text = screen_text(app)
        assert "[ More ]" in text
        assert "How many." in text
        assert "not on this device" in text
        await pilot.press("tab", "tab")
        assert not form.rows["core"].field.has_focus


async def test_keys_move_and_values_come_back_with_their_types() -> None:
    app = FormApp(lambda: ParamForm(Request, VALUES))
    async with app.run_test(size=(80, 24)) as pilot:
        # Enter goes to the next field.
        form = app.form
        form.focus_first()
        await pilot.press("enter")
        assert form.rows["fp16"].field.has_focus
        assert not isinstance(app.focused, Input)
        # Values come back with their types.
        form = app.form
        form.focus_first()
        await pilot.press("tab", "space", "tab", "right")
        await pilot.pause()
        assert form.values() == {
            "model": "m.onnx", "fp16": True, "mode": "slow", "count": 10, "shapes": [],
            "core": None,
        }  # fmt: skip
        form.set_values({"shapes": ["x:1", "y z:2"], "count": 3, "fp16": False})
        assert form.values()["shapes"] == ["x:1", "y z:2"]
        assert (form.values()["count"], form.values()["fp16"]) == (3, False)
        form.reset()
        assert (form.values()["count"], form.values()["model"]) == (10, "m.onnx")
        # An error shows beside its field and at its page.
        form = app.form
        assert is_valid(form)
        form.show_page("More")
        await pilot.press(*["backspace"] * 3, *"0")
        await pilot.pause()
        assert "the least is 1 passes" in screen_text(app)
        assert not is_valid(form)
        assert form.page_is_wrong("More")
        form.show_page("Common")
        await pilot.pause()
        assert "✖" in screen_text(app)


async def test_a_click_chooses() -> None:
    app = FormApp(lambda: ParamForm(Request, VALUES))
    async with app.run_test(size=(80, 24)) as pilot:
        field = app.form.rows["mode"].field
        line = rows_of(app)[field.region.y]
        for choice in ("slow", "fast"):
            for at in (line.index(choice), line.index(choice) + len(choice) - 1):
                app.form.set_values({"mode": "slow" if choice == "fast" else "fast"})
                await pilot.click(offset=(at, field.region.y))
                assert (app.form.values()["mode"], app.focused) == (choice, field)


async def test_arrows_go_from_field_to_field() -> None:
    app = FormApp(lambda: ParamForm(Request, VALUES, {"fp16": "not on this device"}))
    async with app.run_test(size=(80, 24)) as pilot:
        form = app.form
        form.focus_first()
        await pilot.press("up", "down")
        assert form.rows["mode"].field.has_focus
        await pilot.press("down", "up")
        assert form.rows["model"].field.has_focus
        assert form.values()["mode"] == "fast"


@dataclass(frozen=True)
class Large:
    """A form of many settings is made page by page."""

    model: Path = param(label="Model", help="M.", kind="file", positional=True)
    a: str = param("", label="A", help="A.", page="Two")
    b: str = param("", label="B", help="B.", page="Three")
    c: str = param("", label="C", help="C.", page="Four")


@pytest.mark.broad
@pytest.mark.parametrize("many", [0, 30])
async def test_quick_changes_of_the_page_stay(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(param_form, "_MANY_ROWS", many)
    app = FormApp(lambda: ParamForm(Large, VALUES))
    async with app.run_test(size=(80, 24)) as pilot:
        form = app.form
        form.focus_first()
        await pilot.pause()
        await pilot.press("end", *"-x")
        for steps in ((1, 1, 1), (1, 1, 1), (-1, -1), (1, 1, 1, 1, 1), (-1, 1, -1)):
            at = form.pages.index(form.page)
            for step in steps:
                form.step_page(step)
            wanted = form.pages[(at + sum(steps)) % len(form.pages)]
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert form.page == wanted
            shown = [box.display for box in form.query("VerticalScroll")]
            assert shown == [page == wanted for page in form.pages]
            row = next(row for row in form.rows.values() if row.setting.param.page == wanted)
            assert app.focused is row.field
        assert form.values()["model"] == "m.onnx-x"
