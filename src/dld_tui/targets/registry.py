"""Targets by name: this machine, and the saved connections."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, DldError, TimeLimitError, UsageError
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.params import Setting, settings_of
from dld_tui.core.process.paths import unused
from dld_tui.core.settings import saved_targets
from dld_tui.core.types import JSON
from dld_tui.targets.base import Target
from dld_tui.targets.process import LocalTarget

LOCAL = LocalTarget.name
T = TypeVar("T")


def names() -> list[str]:
    """Return the names that :func:`get` accepts; this machine is the first.

    None of a file of targets that cannot be read; :func:`get` reports its problem.
    """
    try:
        return [LOCAL, *saved_targets.load()]
    except DldError:
        return [LOCAL]


def get(name: str | None = None) -> Target:
    """Return a target; None is this machine.

    Raises:
        UsageError: No target has this name.
        InputError: The file of targets cannot be read.
    """
    if name is None or name == LOCAL:
        return LocalTarget()
    connection = saved_targets.load().get(name)
    if connection is None:
        raise UsageError(f"unknown target {name!r}", hint=f"Known targets: {', '.join(names())}")
    from dld_tui.targets.ssh.target import SshTarget

    return SshTarget(connection)


def result_of(
    activity_id: str,
    request: Mapping[str, JSON],
    kind: type[T],
    limit_s: float = math.inf,
    *,
    target: str | None,
) -> T:
    """Run one of several jobs and return its result.

    Args:
        activity_id: As in :data:`dld_tui.activities.registry.ACTIVITIES`.
        request: As JSON data.
        kind: The type of the result.
        limit_s: The time after which the job is killed.
        target: Its name; None for this machine.

    Raises:
        DldError: It failed or was cancelled.
        TimeLimitError: It was killed at the limit; the message says at which stage.
        KeyboardInterrupt: Ctrl+C came too late for it: the next one must not start.
    """
    stage, is_late = "", False

    def note_stage(event: Event) -> None:
        nonlocal stage
        if isinstance(event, Progress) and event.stage:
            stage = event.stage

    with get(target).start(activity_id, request) as job:

        def stop() -> None:
            nonlocal is_late
            is_late = True
            job.close()

        timer = None if math.isinf(limit_s) else Timer(max(0.0, limit_s), stop)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            result = job.result(note_stage, kind=kind)
        except CancelledError:
            if not is_late:
                raise
            at = f" at “{stage}”" if stage else ""
            raise TimeLimitError(f"stopped after {fmt.duration(limit_s)}{at}") from None
        finally:
            if timer is not None:
                timer.cancel()
    if job.was_interrupted:
        raise KeyboardInterrupt
    return result


def requests_for(activity_id: str, request: Any, names: Sequence[str]) -> list[Any]:
    """Return the request of each target: ``NAME.dldprof`` becomes ``NAME-TARGET.dldprof``.

    Args:
        activity_id: For messages.
        request: For all of them.
        names: Of the targets.

    Raises:
        UsageError: A target is named twice, or the activity writes no report.
    """
    if len(set(names)) < len(names):
        raise UsageError("a target is given twice")
    outputs = [s for s in settings_of(type(request)) if s.param.kind == "output"]
    report = next((setting for setting in outputs if setting.param.suffix), None)
    if report is None:
        raise UsageError("only one --target", where=activity_id, hint="It writes no report")
    return [_for_target(request, name, outputs, report) for name in names]


def _for_target(
    request: Any,
    name: str,
    outputs: Sequence[Setting],
    report: Setting,
) -> Any:
    changes = {}
    for setting in outputs:
        given = getattr(request, setting.name)
        if given is not None:
            changes[setting.name] = _named(given, name, setting.param.suffix)
        elif setting is report:
            changes[setting.name] = unused(Path(f"{_stem(request)}-{name}{report.param.suffix}"))
    return dataclasses.replace(request, **changes)


def _named(path: Path, target: str, suffix: str) -> Path:
    """Return a path with the name of a target before its ending, which may have two dots."""
    ending = suffix if suffix and path.name.endswith(suffix) else path.suffix
    return path.with_name(f"{path.name.removesuffix(ending)}-{target}{ending}")


def _stem(request: Any) -> str:
    for setting in settings_of(type(request)):
        value = getattr(request, setting.name)
        if setting.param.kind == "file" and value is not None:
            return Path(value).stem
    return "report"


def named(event: Event, target: str) -> Event:
    """Return an event that says which target it is of."""
    if isinstance(event, Progress):
        return dataclasses.replace(event, stage=f"{target}: {event.stage}")
    if isinstance(event, Log):
        return dataclasses.replace(event, text=f"{target}: {event.text}")
    return event
