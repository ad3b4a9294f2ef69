"""Jobs beside the work: the checks of others on the model as it is."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.check.full import Result
from dld_tui.core.checks.findings import ToolFinding
from dld_tui.core.errors import ActivityError, CancelledError
from dld_tui.core.files import model_set as file_view
from dld_tui.core.files.model_set import external_view
from dld_tui.core.model.document.locations import LocatedMessage
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.shell.progress import JobLine
from tests.support import models
from tests.support.workspace import NARROW, Session, opened


def found(session: Session, source: str) -> list[Any]:
    return [f for f in session.screen.findings.findings if f.rule.startswith(f"{source}:")]


def told(session: Session) -> str:
    return " ".join(notice.message for notice in session.app._notifications)


class Held:
    """A job that the test ends."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[dict[str, Any]] = []
        self.result = Result([])
        self.error: Exception | None = None
        self.go_on = threading.Event()
        monkeypatch.setattr(Jobs, "_job_result", self.run)

    def run(
        self, activity: str, request: dict[str, Any], cancel: threading.Event, line: JobLine
    ) -> Result:
        self.requests.append(request)
        while not self.go_on.wait(0.01):
            if cancel.is_set():
                raise CancelledError
        if self.error is not None:
            raise self.error
        return self.result


@pytest.mark.broad
async def test_the_edited_model_is_checked_and_findings_lead_to_nodes(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import links

    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        screen = session.screen
        screen.history.edit(links.set_input(scope=[], node="third", index=0, value=""))
        screen.history.edit(links.set_input(scope=[], node="third", index=1, value=""))
        await session.press("f7")
        await session.until(lambda: found(session, "onnx"))

        (finding,) = found(session, "onnx")
        assert finding.node is not None
        assert finding.node.name == "third"
        assert not screen.query(JobLine)
        assert list(tmp_path.glob(".dld-view*")) == []

        await session.press("u", "u")
        (finding,) = found(session, "onnx")
        assert finding.message.endswith("(before the last edit)")
        await session.press("f7")
        await session.until(lambda: not found(session, "onnx"))


async def test_it_runs_beside_the_work_and_esc_stops_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.core.model.edits import renaming

    held = Held(monkeypatch)
    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        screen = session.screen
        await session.press("f7")
        await session.until(lambda: held.requests)
        assert "onnx full check" in session.text
        assert "Esc stops" in session.text
        view = Path(held.requests[0]["model"])
        assert view.exists()
        assert screen.history.try_edit(renaming.rename_node(scope=[], node="first", name="stem"))

        await session.press("f7")
        assert len(screen.query(JobLine)) == 1  # one at a time
        await session.press("escape")
        await session.until(lambda: not screen.query(JobLine))
        assert not view.exists()
        assert len(held.requests) == 1
        assert screen.check_action("stop", ()) is False


async def test_edits_meanwhile_make_places_doubtful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.core.model.edits import renaming

    held = Held(monkeypatch)
    held.result = Result([ToolFinding("error", "onnx:checker", LocatedMessage("bad", [], 0))])
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.press("f7")
        await session.until(lambda: held.requests)
        session.screen.history.edit(renaming.rename_node(scope=[], node="first", name="stem"))
        held.go_on.set()
        await session.until(lambda: found(session, "onnx"))
        (finding,) = found(session, "onnx")
        assert (finding.node, finding.message) == (None, "bad (before the last edit)")


async def test_a_job_that_fails_is_said_and_the_next_may_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = Held(monkeypatch)
    held.error = ActivityError("it went wrong")
    held.go_on.set()
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.press("f7")
        await session.until(lambda: isinstance(session.app.screen, ErrorDialog))
        assert "it went wrong" in session.text
        await session.pilot.press("escape")
        held.error = None
        await session.press("f7")
        await session.until(lambda: "nothing found" in told(session))


async def test_a_new_model_and_polygraphy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = Held(monkeypatch)
    held.go_on.set()
    made: list[bool] = []
    real: Callable[..., Path] = external_view

    def view(*arguments: Any, **settings: Any) -> Path:
        made.append(settings["values"])
        return real(*arguments, **settings)

    monkeypatch.setattr(file_view, "external_view", view)
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.press("shift+f7")
        await session.until(lambda: held.requests)
        assert made == [True]
        assert held.requests[0]["polygraphy"] is True
        assert held.requests[0]["onnx"] is False
        await session.until(lambda: not session.screen.query(JobLine))
