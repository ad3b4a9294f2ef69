"""Sweeps run every point with its sizes, share sessions, keep what failed, and go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.activities.sweep import TURNS, Request, run
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Finished, Log
from dld_tui.core.report.sweep import Sweep
from tests.support.models import write

pytest.importorskip("onnxruntime")

PICKY = """<ir_version: 8, opset_import: ["" : 17]>
g (float[N, K] x) => (float[N, K] y) <float[4] w = {1, 2, 3, 4}> { y = Add(x, w) }"""
"""Runs where K is 1 or 4 only."""
FIXED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 3] x) => (float[2, 3] y) { y = Relu(x) }"""


def sweep(path: Path, **asked: Any) -> tuple[Sweep, list[str]]:
    events = list(run(Request(path, duration=0.0, **asked)))
    assert isinstance(events[-1], Finished)
    return events[-1].result, [event.text for event in events if isinstance(event, Log)]


def test_each_point_runs_with_its_sizes_and_settings_share_a_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.backends.onnxruntime.session import Session

    timed: list[tuple[int, tuple[int, ...]]] = []
    made: list[int] = []
    time, start = Contestant.time, Session.__init__

    def noted(self: Contestant, seconds: float) -> float:
        (values,) = self._sets
        timed.append((self._settings.threads, np.shape(values["x"])))
        return time(self, seconds)

    def started(self: Session, model: Path, settings: Any) -> None:
        made.append(settings.threads)
        start(self, model, settings)

    monkeypatch.setattr(Contestant, "time", noted)
    monkeypatch.setattr(Session, "__init__", started)
    found, _ = sweep(write(tmp_path, PICKY), batch="1,3", dim=("K=1,4",), threads="1,2")
    assert [axis.name for axis in found.axes] == ["threads", "batch", "K"]
    wanted = [(t, (n, k)) for t in (1, 2) for n in (1, 3) for k in (1, 4)]
    assert made == [1, 2]
    assert sorted(timed) == sorted(wanted * TURNS)
    for number in range(TURNS):  # every point has its turn before the next turn begins
        assert sorted(timed[8 * number : 8 * number + 8]) == wanted
    assert all(len(point.rounds_ms) == TURNS and not point.problem for point in found.points)


def test_a_point_that_fails_is_a_cell_with_its_reason(tmp_path: Path) -> None:
    found, _ = sweep(write(tmp_path, PICKY), dim=("K=1,3,4",))
    problems: dict[Any, str] = {point.at[0]: point.problem for point in found.points}
    assert "Add" in problems.pop(3)
    assert [*problems.values()] == ["", ""]
    with pytest.raises(ActivityError, match="no point can be run"):
        sweep(write(tmp_path, PICKY), dim=("K=3,5",))


def test_a_sweep_that_was_stopped_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dld_tui.backends.onnxruntime.contest import Contestant

    path, times = write(tmp_path, PICKY), iter(range(1, 100))

    def stopped(self: Contestant, seconds: float) -> float:
        if (at := next(times)) == 6:
            raise KeyboardInterrupt
        return float(at)

    with monkeypatch.context() as patched:
        patched.setattr(Contestant, "time", stopped)
        with pytest.raises(KeyboardInterrupt):
            sweep(path, batch="1,2")
        times = iter(range(101, 200))
        found, logs = sweep(path, batch="1,2")
    assert logs == ["2 of 6 turns of each point are known from before"]
    turns = [point.rounds_ms for point in found.points]
    assert [one[:2] for one in turns] == [(1.0, 3.0), (2.0, 4.0)]
    assert all(len(one) == TURNS and min(one[2:]) > 100 for one in turns)
    assert sweep(path, batch="1,2")[1] == []  # nothing is left of it


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"dim": ("K",)}, "--dim is 'K'"),
        ({"dim": ("Z=1,2",)}, "no input has a dimension 'Z'"),
        ({"dim": ("K=1", "K=2")}, "given twice"),
        ({"batch": "1,b"}, "b is not a size"),
        ({"threads": "0"}, "0 is not a size"),
        ({"shape": ("nothing:1x2",), "batch": "1"}, "nothing"),
    ],
)
def test_what_does_not_fit_is_refused(asked: dict[str, Any], why: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=why):
        sweep(write(tmp_path, PICKY), **asked)


def test_batches_are_varied_where_nothing_is_named(tmp_path: Path) -> None:
    found, _ = sweep(write(tmp_path, PICKY))
    assert [point.at for point in found.points] == [(1,), (2,), (4,), (8,)]


def test_a_fixed_batch_is_told(tmp_path: Path) -> None:
    found, _ = sweep(write(tmp_path, FIXED), batch="2,4")
    assert [bool(point.problem) for point in found.points] == [False, True]
    assert "fixed in the model" in found.points[1].problem
