"""Quick add, wiring and operator sets in a workspace."""

from __future__ import annotations

import pytest

from dld_tui.screens.home.new_model import NewModelScreen
from dld_tui.screens.model.opset_dialogs import OpsetDialog
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.widgets.dialogs.wiring import WiringDialog
from dld_tui.widgets.forms.param_form import ParamForm
from tests.support.pages import running


def rows(dialog: WiringDialog | OpsetDialog) -> list[str]:
    return [dialog.view.lines.text(at) for at in range(len(dialog.view.lines))]


@pytest.mark.broad
async def test_a_new_model_is_made_by_the_form() -> None:
    async with running() as run:
        await run.press("ctrl+n")
        form = await run.front(NewModelScreen)
        rows = form.query_one(ParamForm).rows
        rows["opset"].text = "999"
        await run.pilot.pause()
        await run.press("f5")
        assert run.app.pages == [], "there is no such opset"
        await run.press("escape")
        rows["opset"].text = "17"
        rows["inputs"].text = "x:float32[N,3]"
        await run.pilot.pause()
        assert form.command_line == "dld new OUT.onnx --opset 17 --input 'x:float32[N,3]'"
        await run.press("f5")
        page = await run.front(WorkspaceScreen)
        await run.until(lambda: page.is_open)
        assert page.document.opset_imports == {"": 17}
        assert page.document.main.inputs == ("x",)
