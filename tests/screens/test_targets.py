from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.core.events import Event, Failed, Finished, Metric, Progress
from dld_tui.core.settings import saved_targets, secrets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import BAD, ConnectionStep
from dld_tui.core.types import JSON
from dld_tui.screens import targets as target_jobs
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.activity.jobs import JobScreen, ManyJobsScreen
from dld_tui.screens.base_pages import LABEL
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.targets import (
    TargetJobsScreen,
    TargetsScreen,
    _step_lines,
)
from dld_tui.targets.base import Job
from dld_tui.targets.ssh.results import JobsStore
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, SecretDialog
from tests.support import models
from tests.support.pages import running
from tests.support.report_files import make_report as write_report
from tests.support.ssh_fixtures import sshd
from tests.support.ssh_jobs import end_processes_of, script, target_of
from tests.support.ssh_jobs import until as read_until
from tests.support.sshd import Sshd
from tests.support.tui import HOSTILE, flat_text, screen_text, until


async def test_a_broken_file_is_said() -> None:
    saved_targets.store_path().parent.mkdir(parents=True)
    saved_targets.store_path().write_text("[orin]\nport = 22\n")
    async with running() as run:
        await run.app.run_action("app.targets")
        await run.pilot.pause()
        run.in_front(ErrorDialog)
        assert "it has no host" in run.text


async def test_the_app_asks_for_jobs_with_hostile_questions_too() -> None:
    app = DldApp()
    answers: list[object] = []

    def ask(question: Callable[[], object]) -> threading.Thread:
        thread = threading.Thread(target=lambda: answers.append(question()))
        thread.start()
        return thread

    hostile = "\x1b[31m[b]Password\x07 [/b] of ünï"
    async with app.run_test(size=(80, 24)) as pilot:
        thread = ask(lambda: secrets.current().secret(hostile))
        await until(pilot, lambda: "\\x1b[31m[b]Password\\x07 [/b] of ünï" in screen_text(app))
        assert isinstance(app.screen, SecretDialog)
        await pilot.press("x", "enter")
        await until(pilot, lambda: not thread.is_alive())
        thread = ask(lambda: secrets.current().confirm(hostile, "one\n\x1b[2Jtwo"))
        await until(pilot, lambda: "\\x1b[2Jtwo" in screen_text(app))
        assert isinstance(app.screen, ChoiceDialog)
        await pilot.press("n")
        await until(pilot, lambda: not thread.is_alive())
        assert answers == ["x", False]
    assert secrets.current().secret("after the end") is None


def test_the_texts_of_a_step_stand_below_each_other() -> None:
    lines = _step_lines(
        ConnectionStep("host key", BAD, "a long answer " * 4, "a long fix " * 4), 20
    )
    columns = {sum(len(text) for text, _ in line[:-1]) for line in lines}
    assert len(lines) > 4
    assert columns == {LABEL + 2}


async def test_long_lines_of_a_test_are_broken(sshd: Sshd, tmp_path: Path) -> None:
    saved_targets.save(
        Connection(
            "orin", sshd.host, sshd.port, sshd.user, "key", sshd.user_key, tmp_path / "known",
            config=False,
        )
    )  # fmt: skip
    async with running() as run:
        await run.app.run_action("app.targets")
        await run.pilot.pause()
        await run.press("f5")
        await run.front(ChoiceDialog)
        await run.pilot.pause()
        await run.press("n")
        await run.shows("Accept it")
        await run.shows("✖ host key, ")
        shown = flat_text(run.app)
        assert sshd.fingerprint in shown
        assert str(tmp_path / "known").replace("/", "") in shown.replace("/", "")


__all__ = ["sshd"]


@pytest.fixture
def box(sshd: Sshd, tmp_path: Path) -> Iterator[Connection]:
    """Give a saved target."""
    known = tmp_path / "known"
    known.write_text(sshd.known_line)
    connection = Connection(
        "box", sshd.host, sshd.port, sshd.user, "key", sshd.user_key, known, config=False,
        python=sys.executable, directory=str(tmp_path / "deployed"),
    )  # fmt: skip
    saved_targets.save(connection)
    yield connection
    end_processes_of(connection.directory)


class Scripted(Job):
    """Says what it is told, when it is told to."""

    def __init__(self, *events: Event, leaves: bool = False) -> None:
        self.script = events
        self.go = threading.Event()
        self.leaves = leaves
        self.cancelled = self.is_left = False

    def events(self) -> Iterator[Event]:
        yield Progress(1, 4, "passes", f"Measuring {HOSTILE}")
        self.go.wait(60)
        yield from self.script

    def cancel(self) -> None:
        self.cancelled = True
        self.go.set()

    def close(self) -> None:
        self.go.set()

    @property
    def can_leave(self) -> bool:
        return self.leaves

    def leave(self) -> bool:
        self.is_left = True
        self.go.set()
        return self.leaves


@pytest.mark.broad
async def test_a_profile_through_the_form_runs_on_the_target(
    box: Connection, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    model = models.write(tmp_path, models.layered())
    values: dict[str, JSON] = {"model": str(model), "output": str(tmp_path / "r.dldprof"),
              "shape": ["x:2x4"], "duration": 0.1, "warm_up": 1}  # fmt: skip
    async with running() as run:
        run.app.push_screen(ActivityScreen("profile_onnxruntime", values))
        await run.pilot.pause()
        await run.press("shift+tab", "right")
        assert "--target box" in run.app.screen.command_line  # type: ignore[attr-defined]
        await run.press("f5")
        await run.until(lambda: run.app.screen.SCOPE == "report" or said_failed(run.app))  # type: ignore[attr-defined]
        assert run.app.screen.SCOPE == "report", run.text  # type: ignore[attr-defined]
        await run.shows("median")
    assert (tmp_path / "r.dldprof").is_file()
    assert (tmp_path / "deployed" / "objects").is_dir()


def said_failed(app: DldApp) -> bool:
    return isinstance(app.screen, JobScreen) and isinstance(app.screen.end, Failed)


@pytest.mark.broad
async def test_a_job_that_was_left_is_found_and_fetched(
    box: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(target_jobs, "_target", lambda name: target_of(box))
    gate = tmp_path / "gate"
    steps = script(["event", '{"event": "metric", "name": "m", "value": 1.0, "unit": ""}'],
                   ["wait_for", str(gate)], ["finish", {}])  # fmt: skip
    for _ in range(2):
        job = target_of(box).start("fake", steps)
        read_until(job, Metric)
        assert job.leave()
    async with running() as run:
        await run.app.run_action("app.targets")
        await run.pilot.pause()
        await run.front(TargetsScreen)
        await run.press("J")
        await run.until(lambda: run.text.count("running") == 2)
        await run.press("d", "s")
        await run.until(
            lambda: isinstance(run.app.screen, JobScreen) and run.app.screen.end is not None
        )
        assert "stopped" in run.text
        await run.press("escape")
        await run.until(lambda: run.text.count("running") == 1)
        gate.touch()
        await run.press("enter")
        await run.until(lambda: JobsStore().all() == [])
        await run.front(TargetJobsScreen)
        await run.shows("No job on a target")


@pytest.mark.broad
async def test_leaving_a_job_on_a_target_does_not_stop_it() -> None:
    job = Scripted(Finished({}), leaves=True)
    async with running() as run:
        screen = JobScreen("fake", {}, lambda _: None, title="T", target="box", start=lambda: job)
        run.app.push_screen(screen)
        await run.shows("Measuring")
        await run.app.action_quit()
        await run.shows("T continues on box")
        assert "lose this" not in run.text
        await run.press("escape")
        await run.until(lambda: run.app.screen is screen)
        await run.press("escape")
        await run.shows("with or without")
        await run.press("c")
        await run.until(lambda: job.is_left)
        assert not job.cancelled


async def test_jobs_on_several_targets_end_in_a_comparison(tmp_path: Path) -> None:
    reports = [write_report(tmp_path / f"{name}.dldprof") for name in ("one", "two")]
    jobs = [Scripted(Finished({"report": str(path)})) for path in reports]
    async with running() as run:
        screen = ManyJobsScreen("Profile", [("a", lambda: jobs[0]), ("b", lambda: jobs[1])])
        run.app.push_screen(screen)
        await run.until(lambda: run.text.count("25 %") == 2)
        assert "still runs on a, b" in screen.at_work
        jobs[0].go.set()
        await run.shows("one.dldprof")
        assert run.app.screen is screen
        jobs[1].go.set()
        await run.front(CompareScreen)
        await run.shows("By layer")
        assert run.app.screen.paths == reports  # type: ignore[attr-defined]
