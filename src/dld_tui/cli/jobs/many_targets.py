"""One activity on several targets at once, and the comparison of their reports."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.activities.registry import decode_result
from dld_tui.cli.jobs.progress import ProgressReporter, naming_cancels
from dld_tui.cli.output import narrate, require_free
from dld_tui.cli.setup.prompts import ask_on_terminal
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.events import Event
from dld_tui.core.params import to_json, validate
from dld_tui.core.paths import near
from dld_tui.core.text import visible
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job
from dld_tui.targets.many import named, requests_for


@dataclass
class Run:
    """The job of one target, and what became of it."""

    target: str
    job: Job
    result: Any = None
    error: DldError | None = None


def run_on_all(activity_id: str, request: Any, names: Sequence[str], force: bool) -> list[Path]:
    """Run an activity on several targets at once and return their reports, in the same order.

    Raises:
        UsageError: A target is named twice, or the activity writes no report.
        DldError: What the first target that failed says; the others' reports are written.
    """
    validate(request)
    requests = requests_for(activity_id, request, names, lambda path: require_free(path, force))
    ask_on_terminal()
    places = [targets.get(name) for name in names]
    runs = [
        Run(name, place.start(activity_id, to_json(own)))
        for name, place, own in zip(names, places, requests, strict=True)
    ]
    with naming_cancels(activity_id, request, names), ProgressReporter() as reporter:
        _finish(activity_id, runs, reporter)
    reports = [Path(run.result.report) for run in runs if run.result is not None]
    for path in reports:
        narrate(f"wrote {visible(near(path))}")
    failed = [run for run in runs if run.error is not None]
    for run in failed[1:]:
        narrate(f"{run.target}: {run.error}")
    if failed:
        error = failed[0].error
        assert error is not None
        raise error
    return reports


def _finish(activity_id: str, runs: Sequence[Run], reporter: ProgressReporter) -> None:
    lock = threading.Lock()

    def read(run: Run) -> None:
        def tell(event: Event) -> None:
            with lock:
                reporter.event(named(event, run.target))

        try:
            with run.job:
                run.result = decode_result(activity_id, run.job.result(tell))
        except DldError as error:
            run.error = error

    threads = [threading.Thread(target=read, args=(run,), daemon=True) for run in runs]
    for thread in threads:
        thread.start()
    try:
        _join(threads)
    except KeyboardInterrupt:
        for run in runs:
            run.job.cancel()
        try:
            _join(threads)
        except KeyboardInterrupt:
            for run in runs:
                run.job.close()
        raise CancelledError from None


def _join(threads: Sequence[threading.Thread]) -> None:
    for thread in threads:
        thread.join()
