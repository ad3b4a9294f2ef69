from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from dld_tui.core.params import param
from dld_tui.core.types import JSON
from dld_tui.widgets.forms import param_form
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support.tui import STYLES, HostApp

VALUES: dict[str, JSON] = {"model": "m.onnx"}


class FormApp(HostApp):
    CSS_PATH: ClassVar[Any] = [STYLES / "base.tcss", STYLES / "form.tcss"]

    @property
    def form(self) -> ParamForm:
        return self.query_one(ParamForm)


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
