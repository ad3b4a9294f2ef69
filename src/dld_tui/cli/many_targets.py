"""One activity on several targets at once, and the comparison of their reports."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.narrator import Narrator
from dld_tui.cli.output import narrate, require_free
from dld_tui.core.errors import CancelledError, DldError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.params import Setting, settings_of, to_json, validate
from dld_tui.core.paths import unused
from dld_tui.core.types import JSON
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job


@dataclass
class Run:
    """The job of one target, and what became of it."""

    target: str
    job: Job
    result: dict[str, JSON] | None = None
    error: DldError | None = None


def run_on_all(activity_id: str, request: Any, names: Sequence[str], force: bool) -> list[Path]:
    """Run an activity on several targets at once and return their reports, in the same order.

    Raises:
        UsageError: A target is named twice, or the activity writes no report.
        DldError: What the first target that failed says; the others' reports are written.
    """
    if len(set(names)) < len(names):
        raise UsageError("a target is named twice")
    validate(request)
    requests = [_for_target(activity_id, request, name, force) for name in names]
    ask_on_terminal()
    places = [targets.get(name) for name in names]
    runs = [
        Run(name, place.start(activity_id, to_json(own)))
        for name, place, own in zip(names, places, requests, strict=True)
    ]
    with Narrator() as narrator:
        _finish(runs, narrator)
    reports = [Path(str(run.result["report"])) for run in runs if run.result is not None]
    for path in reports:
        narrate(f"wrote {path}")
    failed = [run for run in runs if run.error is not None]
    for run in failed[1:]:
        narrate(f"{run.target}: {run.error}")
    if failed:
        error = failed[0].error
        assert error is not None
        raise error
    return reports


def _for_target(activity_id: str, request: Any, name: str, force: bool) -> Any:
    """Return the request with an output of its own for a target."""
    outputs = [s for s in settings_of(type(request)) if s.param.kind == "output"]
    report = next((setting for setting in outputs if setting.param.suffix), None)
    if report is None:
        raise UsageError("only one --target", where=activity_id, hint="It writes no report")
    changes = {}
    for setting in outputs:
        given = getattr(request, setting.name)
        if given is not None:
            changes[setting.name] = given.with_name(f"{given.stem}-{name}{given.suffix}")
            require_free(changes[setting.name], force)
        elif setting is report:
            changes[setting.name] = unused(Path(f"{_stem(request)}-{name}{report.param.suffix}"))
    return dataclasses.replace(request, **changes)


def _stem(request: Any) -> str:
    def is_model(setting: Setting) -> bool:
        return setting.param.kind == "file" and getattr(request, setting.name) is not None

    models = (s for s in settings_of(type(request)) if is_model(s))
    first = next(models, None)
    return Path(getattr(request, first.name)).stem if first is not None else "report"


def _finish(runs: Sequence[Run], narrator: Narrator) -> None:
    lock = threading.Lock()

    def read(run: Run) -> None:
        def tell(event: Event) -> None:
            with lock:
                narrator.event(_named(event, run.target))

        try:
            with run.job:
                run.result = run.job.result(tell)
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


def _named(event: Event, target: str) -> Event:
    if isinstance(event, Progress):
        return dataclasses.replace(event, stage=f"{target}: {event.stage}")
    if isinstance(event, Log):
        return dataclasses.replace(event, text=f"{target}: {event.text}")
    return event
