from __future__ import annotations

import sys

from dld_tui.core.events import Failed, Started
from dld_tui.targets.process import LocalTarget, worker_command


def test_the_worker_runs_in_the_same_python() -> None:
    assert worker_command()[0] == sys.executable


def test_the_real_worker_answers() -> None:
    with LocalTarget().start("no such activity", {}) as job:
        (event,) = job.events()

    assert isinstance(event, Failed)
    assert event.status == 2
    assert "no such activity" in event.message
    assert not isinstance(event, Started)
