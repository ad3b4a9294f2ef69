"""Findings follow the edits, are filtered, and are repaired, in the real app."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, patch

import pytest

from dld_tui.activities.check.full import Result
from dld_tui.core.checks import Finding
from dld_tui.core.checks.checker import Checker
from dld_tui.core.checks.findings import ToolFinding
from dld_tui.core.errors import ActivityError, CancelledError
from dld_tui.core.files import model_set as file_view
from dld_tui.core.files.model_set import external_view
from dld_tui.core.model import edits
from dld_tui.core.model.document.locations import LocatedMessage
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.screens.workspace import checks as room
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.jobs import Jobs
from dld_tui.widgets.dialogs.dialogs import ErrorDialog
from dld_tui.widgets.shell.progress import JobLine
from tests.support import models
from tests.support.work import steps_in
from tests.support.workspace import NARROW, WIDE, Session, opened, write_long


def rules(session: Session) -> list[str]:
    return sorted({finding.rule for finding in session.screen.findings.findings})


async def checked(session: Session) -> None:
    await session.until(lambda: session.screen.checks.is_checked)


async def on_rule(session: Session, rule: str) -> None:
    """Put the cursor of the findings on the first of a rule."""
    await checked(session)
    await session.press("4")
    shown = session.screen.findings.shown
    at = next(at for at, finding in enumerate(shown) if finding.rule == rule)
    session.screen.findings.list.cursor = at
    await session.pilot.pause()


@pytest.fixture
def shady(tmp_path: Path) -> Path:
    return models.write(tmp_path, models.SHADY)


@pytest.mark.broad
async def test_what_has_no_repair_is_seen_at_once_and_says_so(tmp_path: Path) -> None:
    text = models.CHAIN.replace("Sigmoid", "Sigmoidd")
    async with opened(models.write(tmp_path, text), NARROW) as session:
        await session.shows("Sigmoidd")
        assert "✖ 1 error" in session.text
        await on_rule(session, "unknown-operator")
        assert "fixable" not in session.screen.findings.list.conditions()
        await session.press("f")
        assert not session.screen.document.history.done
        assert session.app.screen is session.screen, "the filter of nodes has the same key"
        assert session.told == ["fix: no fixable finding at the cursor"]
        await session.press("enter")
        assert session.at == "last"


async def findings_follow_edit_undo_and_redo(session: Session) -> None:
    await checked(session)
    assert "unused-node" not in rules(session)
    session.edit(edits.nodes.delete_nodes(scope=[], nodes=["last"]))
    await session.until(lambda: {"missing-output", "unused-node"} <= set(rules(session)))
    await session.press("u")
    await session.until(lambda: "unused-node" not in rules(session))
    await session.press("ctrl+y")
    await session.until(lambda: "unused-node" in rules(session))
    assert "third" in session.text
    session.edit(edits.renaming.rename_node(scope=[], node="third", name="another"))
    await session.until(lambda: "third" not in session.text)


async def test_everything_is_repaired_from_the_palette(shady: Path) -> None:
    async with opened(shady, WIDE) as session:
        await checked(session)
        session.screen.checks.fix_all()
        await checked(session)
        assert len(session.screen.document.history.done) == 1
        assert session.screen.document.history.done[-1].edit == "repair"


async def findings_of_other_tools_are_listed_and_replaced(session: Session) -> None:
    await checked(session)
    screen = session.screen
    screen.checks.add_external([Finding("error", "onnx:check", "refused")], "onnx")
    assert "onnx:check" in rules(session)
    screen.checks.add_external([], "onnx")
    assert "onnx:check" not in rules(session)


async def checks_wait_while_a_thread_changes_the_model(session: Session) -> None:
    await checked(session)
    ended = threading.Event()

    def wait(progress: ProgressCallback, cancelled: CancelCheck) -> None:
        assert ended.wait(60)

    session.screen.work.run("Waiting", wait, lambda error: None)
    with patch.object(room, "_WAIT_S", 0.001):
        session.screen.checks.check()
        await session.pilot.pause()
    assert not session.screen.checks.is_checked
    ended.set()
    await checked(session)


async def speed_is_looked_at_again_when_an_edit_came_between(session: Session) -> None:
    checks = session.screen.checks
    slow = Finding("info", "speed:x", "slow")
    look = AsyncMock(side_effect=[None, [slow]])
    with patch.object(checks, "_look_for_speed", look):
        checks.check()
        await checked(session)
    assert "speed:x" in rules(session)
    checks.check()
    await checked(session)


@pytest.mark.broad
async def test_findings_of_a_chain(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.CHAIN), WIDE) as session:
        await session.in_turn(
            findings_of_other_tools_are_listed_and_replaced,
            findings_follow_edit_undo_and_redo,
            checks_wait_while_a_thread_changes_the_model,
            speed_is_looked_at_again_when_an_edit_came_between,
        )


async def test_checking_a_large_model_leaves_room_for_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert 0 < Checks.CHECK_SLICE_S <= 0.01
    monkeypatch.setattr(Checks, "CHECK_SLICE_S", -1.0)  # a slice is as short as can be
    path = write_long(tmp_path, 1000)
    async with opened(path, WIDE) as session:
        await checked(session)
        slices: list[int] = []
        check = session.screen.checks._check_slice

        def spy(checker: Checker) -> None:
            slices.append(steps_in(check, checker))

        monkeypatch.setattr(session.screen.checks, "_check_slice", spy)
        session.screen.checks.check()
        await checked(session)
        assert len(slices) > 5, "between slices others get their turn"
        assert max(slices) < sum(slices) / 2


async def test_speed_is_looked_at_on_request_and_after_edits(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.TRANSPOSES)) as session:
        screen = session.screen
        await session.until(lambda: screen.checks.is_checked)
        assert [f for f in screen.findings.findings if f.rule.startswith("speed:")] == []
        screen.checks.toggle_speed()
        await session.until(lambda: screen.checks.is_checked)
        assert len([f for f in screen.findings.findings if f.rule == "speed:transposes"]) == 2
        screen.history.edit(edits.repairs.merge_transposes(scope=[], node="second"))
        await session.until(lambda: screen.checks.is_checked)
        assert len([f for f in screen.findings.findings if f.rule == "speed:transposes"]) == 1
        screen.checks.toggle_speed()
        await session.until(lambda: screen.checks.is_checked)
        assert [f for f in screen.findings.findings if f.rule.startswith("speed:")] == []


def found(session: Session, source: str) -> list[Any]:
    return [f for f in session.screen.findings.findings if f.rule.startswith(f"{source}:")]


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
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        screen = session.screen
        screen.history.edit(edits.links.set_input(scope=[], node="third", index=0, value=""))
        screen.history.edit(edits.links.set_input(scope=[], node="third", index=1, value=""))
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
    held = Held(monkeypatch)
    async with opened(models.write(tmp_path, models.CHAIN), NARROW) as session:
        screen = session.screen
        await session.press("f7")
        await session.until(lambda: held.requests)
        assert "onnx full check" in session.text
        assert "Esc stops" in session.text
        view = Path(held.requests[0]["model"])
        assert view.exists()
        assert screen.history.try_edit(
            edits.renaming.rename_node(scope=[], node="first", name="stem")
        )

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
    held = Held(monkeypatch)
    held.result = Result([ToolFinding("error", "onnx:checker", LocatedMessage("bad", [], 0))])
    async with opened(models.write(tmp_path, models.CHAIN)) as session:
        await session.press("f7")
        await session.until(lambda: held.requests)
        session.edit(edits.renaming.rename_node(scope=[], node="first", name="stem"))
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
        await session.front(ErrorDialog)
        assert "it went wrong" in session.text
        await session.press("escape")
        held.error = None
        await session.press("f7")
        await session.until(lambda: "nothing found" in " ".join(session.told))


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
