"""An engine is loaded only after a question; the answer is for this run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.app import DldApp
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import untrusted_engine
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from tests.support.tui import screen_text


@pytest.mark.parametrize(
    ("values", "engine"),
    [
        ({"model": "a.onnx", "engine": None, "trust": False}, ""),
        ({"model": "a.onnx", "engine": "a.plan", "trust": False}, "a.plan"),
        ({"model": "a.engine", "engine": None, "trust": False}, "a.engine"),
        ({"model": "a.engine", "engine": None, "trust": True}, ""),
        ({"model": "a.engine"}, ""),
        ({"model": "a.onnx", "against": "a.engine", "trust": False}, "a.engine"),
        ({"model": "a.onnx", "against": "b.onnx", "trust": False}, ""),
        ({"model": "a.trt", "against": "b.plan", "trust": False}, "a.trt and b.plan"),
    ],
)
def test_what_is_asked_for(values: dict[str, JSON], engine: str) -> None:
    assert untrusted_engine(values) == engine


async def test_the_answer_is_for_this_run(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = []

    def run_job(activity: str, request: dict[str, JSON], on_result: Any, **more: Any) -> None:
        requests.append(request)

    state = State(tmp_path)
    app = DldApp(state=state)
    app.run_job = run_job  # type: ignore[method-assign, assignment]
    async with app.run_test(size=(80, 24)) as pilot:
        app.start_activity("refit", {"engine": "a.engine", "model": "a.onnx"})
        await pilot.pause()
        await pilot.press("f5")
        await pilot.pause()
        assert isinstance(app.screen, ChoiceDialog)
        assert "trust who made it" in " ".join(screen_text(app).split())
        await pilot.press("escape")
        await pilot.pause()
        assert not requests
        await pilot.press("f5")
        await pilot.pause()
        await pilot.press("l")
        await pilot.pause()
    assert requests[0]["trust"] is True
    assert "trust" not in state.get("forms", "refit")
