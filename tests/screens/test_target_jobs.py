from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Metric, Progress
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.types import JSON
from dld_tui.screens import targets as target_jobs
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.activity.jobs import JobScreen, ManyJobsScreen
from dld_tui.screens.results.compare import CompareScreen
from dld_tui.screens.targets import TargetJobsScreen, TargetsDialog, TargetsScreen
from dld_tui.targets.base import Job
from dld_tui.targets.ssh.results import JobsStore
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from tests.support import models
from tests.support.report_files import make_report as write_report
from tests.support.ssh_fixtures import sshd
from tests.support.ssh_jobs import end_processes_of, script, target_of
from tests.support.ssh_jobs import until as read_until
from tests.support.sshd import Sshd
from tests.support.tui import HOSTILE, screen_text, until

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


async def test_a_profile_through_the_form_runs_on_the_target(
    box: Connection, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    model = models.write(tmp_path, models.layered())
    values: dict[str, JSON] = {"model": str(model), "output": str(tmp_path / "r.dldprof"),
              "shape": ["x:2x4"], "duration": 0.1, "warm_up": 1}  # fmt: skip
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ActivityScreen("profile_onnxruntime", values))
        await pilot.pause()
        await pilot.press("shift+tab", "right")
        assert "--target box" in app.screen.command_line  # type: ignore[attr-defined]
        await pilot.press("f5")
        await until(pilot, lambda: app.screen.SCOPE == "report" or said_failed(app))  # type: ignore[attr-defined]
        assert app.screen.SCOPE == "report", screen_text(app)  # type: ignore[attr-defined]
        await until(pilot, lambda: "median" in screen_text(app))
    assert (tmp_path / "r.dldprof").is_file()
    assert (tmp_path / "deployed" / "objects").is_dir()


def said_failed(app: DldApp) -> bool:
    return isinstance(app.screen, JobScreen) and isinstance(app.screen.end, Failed)


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
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        await app.run_action("app.targets")
        await pilot.pause()
        await until(pilot, lambda: isinstance(app.screen, TargetsScreen))
        await pilot.press("J")
        await until(pilot, lambda: screen_text(app).count("running") == 2)
        await pilot.press("d", "s")
        await until(pilot, lambda: isinstance(app.screen, JobScreen) and app.screen.end is not None)
        assert "stopped" in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: screen_text(app).count("running") == 1)
        gate.touch()
        await pilot.press("enter")
        await until(pilot, lambda: JobsStore().all() == [])
        await until(pilot, lambda: isinstance(app.screen, TargetJobsScreen))
        await until(pilot, lambda: "No job on a target" in screen_text(app))


@pytest.mark.broad
async def test_leaving_a_job_on_a_target_does_not_stop_it() -> None:
    job = Scripted(Finished({}), leaves=True)
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = JobScreen("fake", {}, lambda _: None, title="T", target="box", start=lambda: job)
        app.push_screen(screen)
        await until(pilot, lambda: "Measuring" in screen_text(app))
        await app.action_quit()
        await until(pilot, lambda: "T continues on box" in screen_text(app))
        assert "lose this" not in screen_text(app)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("escape")
        await until(pilot, lambda: "with or without" in screen_text(app))
        await pilot.press("c")
        await until(pilot, lambda: job.is_left)
        assert not job.cancelled


async def test_jobs_on_several_targets_end_in_a_comparison(tmp_path: Path) -> None:
    reports = [write_report(tmp_path / f"{name}.dldprof") for name in ("one", "two")]
    jobs = [Scripted(Finished({"report": str(path)})) for path in reports]
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = ManyJobsScreen("Profile", [("a", lambda: jobs[0]), ("b", lambda: jobs[1])])
        app.push_screen(screen)
        await until(pilot, lambda: screen_text(app).count("25 %") == 2)
        assert "still runs on a, b" in screen.at_work
        jobs[0].go.set()
        await until(pilot, lambda: "one.dldprof" in screen_text(app))
        assert app.screen is screen
        jobs[1].go.set()
        await until(pilot, lambda: isinstance(app.screen, CompareScreen))
        await until(pilot, lambda: "By layer" in screen_text(app))
        assert app.screen.paths == reports  # type: ignore[attr-defined]


def test_each_of_several_jobs_has_one_row() -> None:
    (run,) = ManyJobsScreen("Profile", [("orin\n-of-a-long-name", Scripted)]).runs

    def row(width: int) -> str:
        return "".join(text for text, _ in run.pieces(width))

    name = "orin\\n-of-a-lon…"
    assert row(120).split() == [name, "starting"]
    run.progress = Progress(3, 4, stage="measuring")
    run.metric = Metric("latency", 1234.56, "ms")
    assert row(120).split() == [name, "measuring", "█" * 12, "75", "%", "latency", "1,235", "ms"]
    assert row(93).endswith("latency 1,235 ms")
    assert row(92) == row(60) == row(120).partition("   latency")[0]
    ends: list[tuple[Finished | Failed | Cancelled, str]] = [
        (Failed("broke it " * 9, where="box"), "box: broke it broke…"),
        (Failed("broke it"), "broke it"),
        (Cancelled(), "stopped"),
        (Finished({"report": "/a/long/path/to/one.dldprof"}), "…path/to/one.dldprof"),
        (Finished({"report": 1}), "done"),
    ]
    for run.end, text in ends:
        assert row(40)[2:] == f"{name}  {text}"
    assert run.report is None


@pytest.mark.broad
async def test_one_of_several_that_fails_is_shown_and_the_others_open(tmp_path: Path) -> None:
    good = Scripted(Finished({"report": str(write_report(tmp_path / "one.dldprof"))}))
    bad = Scripted(Failed(f"broke {HOSTILE}", "box", "mend it"))
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        app.push_screen(ManyJobsScreen("Profile", [("a", lambda: good), ("b", lambda: bad)]))
        await until(pilot, lambda: screen_text(app).count("25 %") == 2)
        good.go.set()
        bad.go.set()
        await until(pilot, lambda: "one report was written" in screen_text(app))
        assert f"broke {HOSTILE}" in screen_text(app)
        assert "mend it" in screen_text(app)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen.SCOPE == "report")  # type: ignore[attr-defined]
        await until(pilot, lambda: "median" in screen_text(app))


async def test_several_targets_are_marked_in_the_form(box: Connection, tmp_path: Path) -> None:
    model = models.write(tmp_path, models.layered())
    (tmp_path / "r-box.dldprof").touch()
    values: dict[str, JSON] = {"model": str(model), "output": str(tmp_path / "r.dldprof")}
    app = DldApp()
    async with app.run_test(size=(80, 24)) as pilot:
        form = ActivityScreen("profile_onnxruntime", values)
        app.push_screen(form)
        await pilot.pause()
        await pilot.press("f6")
        await until(pilot, lambda: isinstance(app.screen, TargetsDialog))
        await pilot.press("down", "space", "enter")
        await until(pilot, lambda: app.screen is form)
        assert form.command_line.endswith("--target local --target box")
        await until(pilot, lambda: "local + box" in screen_text(app))
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, ChoiceDialog))
        assert isinstance(app.screen, ChoiceDialog)
        assert "r-box.dldprof exists" in app.screen.message
