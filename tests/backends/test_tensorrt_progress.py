from __future__ import annotations

import pytest

from dld_tui.backends.tensorrt.library import using
from dld_tui.backends.tensorrt.log import Phases, monitor_of
from dld_tui.core.events import Phase, Progress
from tests.support.fake_tensorrt import fake_tensorrt


def row(name: str, depth: int, done: float, total: float | None) -> Phase:
    return Phase(name, depth, done, total)


def test_phases_are_a_tree() -> None:
    phases = Phases()
    assert phases.progress() is None
    phases.start("build", None, 4)
    phases.start("graph", "build", 2)
    phases.start("costs", "build", 5)
    phases.start("tactics", "graph", 10)
    assert phases.step("build", 0)
    phases.step("tactics", 4)
    progress = phases.progress()
    assert progress is not None
    assert (progress.stage, progress.total, progress.unit) == ("build", 4, "steps")
    assert progress.phases == [
        row("graph", 0, 0, 2), row("tactics", 1, 5, 10), row("costs", 0, 0, 5),
    ]  # fmt: skip
    # One step and an eighth: a quarter of `graph`, nothing of `costs`.
    assert progress.done == 1.125


def test_a_second_root_and_a_lost_parent_are_shown() -> None:
    phases = Phases()
    phases.start("build", "", 2)
    phases.start("other", "gone", 0)
    phases.start("below", "other", 3)
    progress = phases.progress()
    assert progress is not None
    assert progress.phases == [row("other", 0, 0, None), row("below", 1, 0, 3)]


def test_phases_in_a_circle_end() -> None:
    phases = Phases()
    phases.start("build", None, 2)
    phases.start("a", "b", 1)
    phases.start("b", "a", 1)
    phases.start("self", "self", 1)
    progress = phases.progress()
    assert progress is not None
    assert len(progress.phases) <= 40


def test_steps_that_do_not_add_up() -> None:
    phases = Phases()
    phases.start("build", None, 2)
    phases.step("build", 1)
    phases.start("late", "build", 3)
    assert phases.step("unknown", 7)
    progress = phases.progress()
    assert progress is not None
    assert progress.done == 2


def test_the_monitor_of_the_library_stops_the_build() -> None:
    trt, phases = fake_tensorrt(), Phases()
    with using(trt):
        monitor = monitor_of(phases)
        monitor.phase_start("build", "", 3)
        assert monitor.step_complete("build", 0)
        phases.stopped.set()
        assert not monitor.step_complete("build", 1)
        assert phases.progress() == Progress(2, 3, "steps", "build")
        monitor.phase_finish("build")
    assert phases.progress() is None


def test_phases_that_overlap_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([0.0, 1.0, 1.0, 5.0, 5.0, 6.0])
    monkeypatch.setattr("dld_tui.backends.tensorrt.log.monotonic", lambda: next(now))
    phases = Phases()
    phases.start("Building Engine", None, 2)
    for name in ("one", "two"):
        phases.start(name, "Building Engine", 1)
    for name in ("one", "two", "Building Engine"):
        phases.finish(name)
    assert phases.durations() == [("Building Engine", 6.0)]
