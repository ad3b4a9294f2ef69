"""Commands that run an activity: options from its request, progress, result."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import click

from dld_tui.activities import registry as activities
from dld_tui.activities.registry import Activity, Joining, decode_result
from dld_tui.cli.command import Command, force_option, json_option
from dld_tui.cli.jobs.progress import ProgressReporter, naming_cancels
from dld_tui.cli.options import PLACE, parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json
from dld_tui.cli.setup.prompts import ask_on_terminal
from dld_tui.core.codec import encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.events import Event
from dld_tui.core.files.permission import require_free
from dld_tui.core.params import settings_of, to_json, validate, written_files
from dld_tui.core.process.paths import relative_to_cwd, unused
from dld_tui.core.process.plugins import resolve
from dld_tui.core.text import visible
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job
from dld_tui.targets.registry import named, requests_for


@dataclass
class Run:
    """The job of one target, and its result or error."""

    target: str
    job: Job
    result: Any = None
    error: DldError | None = None


def run_on_all(activity_id: str, request: Any, names: Sequence[str], force: bool) -> list[Path]:
    """Run an activity on several targets at once and return their reports, in the same order.

    Raises:
        UsageError: A target is named twice, or the activity writes no report.
        DldError: The error of the first target that failed; reports of the others are written.
    """
    validate(request)
    requests = requests_for(activity_id, request, names)
    for own in requests:
        require_free(written_files(own), force)
    runs = _run_all(activity_id, request, dict(zip(names, requests, strict=True)))
    reports = [Path(run.result.report) for run in runs if run.result is not None]
    for path in reports:
        narrate(f"wrote {visible(relative_to_cwd(path))}")
    _raise_first(runs)
    return reports


def run_joined(
    activity_id: str, request: Any, names: Sequence[str], force: bool, joining: Joining
) -> Any:
    """Run an activity on several targets at once and return their one result.

    What each target finds is written to a file of its own until all have ended: the same command
    goes on with those that failed.

    Raises:
        UsageError: A target is named twice, or the activity writes no report.
        DldError: The error of the first target that failed; results of the others are kept.
    """
    validate(request)
    setting = next(s for s in settings_of(type(request)) if s.param.suffix)
    given = getattr(request, setting.name)
    path = given or unused(Path(f"{Path(request.model).stem}{setting.param.suffix}"))
    require_free([path], force)
    whole = replace(request, **{setting.name: path})
    requests = dict(zip(names, requests_for(activity_id, whole, names), strict=True))
    parts = {name: getattr(own, setting.name) for name, own in requests.items()}
    results = {
        name: found for name, part in parts.items()
        if part.is_file() and (found := joining.known(request, part)) is not None
    }  # fmt: skip
    for name in results:
        narrate(f"{name}: known from before, {visible(relative_to_cwd(parts[name]))}")
    missing = {name: own for name, own in requests.items() if name not in results}
    for own in missing.values():
        require_free(written_files(own), force)
    runs = _run_all(activity_id, request, missing)
    results |= {run.target: run.result for run in runs if run.error is None}
    if any(run.error is not None for run in runs) and results:
        narrate("the results of the other targets are kept: the same command goes on with the rest")
    _raise_first(runs)
    joined = joining.join({name: results[name] for name in names}, path)
    for part in parts.values():
        part.unlink(missing_ok=True)
    narrate(f"wrote {visible(relative_to_cwd(path))}")
    return joined


def _run_all(activity_id: str, request: Any, requests: Mapping[str, Any]) -> list[Run]:
    """Run the request of each target to its end or error."""
    ask_on_terminal()
    places = [targets.get(name) for name in requests]
    runs = [
        Run(name, place.start(activity_id, to_json(own)))
        for (name, own), place in zip(requests.items(), places, strict=True)
    ]
    with naming_cancels(activity_id, request, [*requests]), ProgressReporter() as reporter:
        _finish(activity_id, runs, reporter)
    return runs


def _raise_first(runs: Sequence[Run]) -> None:
    """Raise the error of the first run that has one, and tell those of the others."""
    failed = [run for run in runs if run.error is not None]
    for run in failed[1:]:
        narrate(f"{run.target}: {run.error}")
    if failed:
        error = failed[0].error
        assert error is not None
        raise error


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


Rewrite: TypeAlias = "Callable[[list[str]], list[str]]"


class RewritingCommand(Command):
    """A command that rewrites its arguments before parsing."""

    def __init__(self, name: str, rewrite: Rewrite | None, **about: Any) -> None:
        super().__init__(name, **about)
        self.rewrite = rewrite

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite and parse the arguments."""
        return super().parse_args(ctx, self.rewrite(args) if self.rewrite else args)


def run_activity(activity_id: str, request: Any, target: str | None = None) -> Any:
    """Run a job to its end and return its result.

    Raises:
        DldError: The job failed.
    """
    validate(request)
    if target is not None:
        ask_on_terminal()
    with (
        naming_cancels(activity_id, request, [] if target is None else [target]),
        ProgressReporter() as reporter,
        targets.get(target).start(activity_id, to_json(request)) as job,
    ):
        return activities.decode_result(activity_id, job.result(reporter.event))


def command_of(activity_id: str) -> click.Command:
    """Return the command of an activity: its own, or one built from its settings.

    Raises:
        UnavailableError: The activity cannot be imported here.
    """
    about = activities.find(activity_id).command
    if about is not None and about.click is not None:
        click_command = resolve(about.click)
        assert isinstance(click_command, click.Command)
        return click_command
    return activity_command(activities.load(activity_id))


def activity_command(activity: Activity) -> click.Command:
    """Return a command with an option for each setting of an imported activity."""
    about = activity.command or activities.Command((activity.id,))
    printing: list[click.Parameter] = resolve(about.printing)() if about.printing else []

    def callback(target: tuple[str, ...], force: bool, as_json: bool, **values: Any) -> int | None:
        printed = {option.name: values.pop(str(option.name)) for option in printing}
        request = request_from(activity.request, values)
        validate(request)
        joining = resolve(about.joining)
        if len(target) > 1 and joining is not None:
            result = run_joined(activity.id, request, target, force, joining)
            shown: Callable[..., int | None] = resolve(about.show)
            return shown(result, as_json, **printed)
        if len(target) > 1:
            several: Callable[[Sequence[Path], bool], int] = resolve(about.several)
            return several(run_on_all(activity.id, request, target, force), as_json)
        require_free(written_files(request), force)
        show: Callable[..., int | None] = resolve(about.show)
        return show(run_activity(activity.id, request, *target), as_json, **printed)

    return RewritingCommand(
        about.words[-1],
        resolve(about.rewrite),
        callback=callback,
        params=[
            *parameters_of(activity.request),
            *printing,
            *shared_options(several=_reports(activity.request)),
        ],
        help=about.help or activity.help,
    )


def show_fields(result: Any, as_json: bool) -> None:
    """Print the fields of a result: the default for activities."""
    data = encode(result)
    if as_json:
        write_json(data)
        return
    for name, value in data.items():
        text = value if isinstance(value, str) else json.dumps(value)
        write(f"{visible(name.replace('_', ' '))}: {visible(text)}")


def _reports(request: type[Any]) -> bool:
    """Return whether an activity writes a report, which several targets can compare."""
    return any(s.param.kind == "output" and s.param.suffix for s in settings_of(request))


def target_option() -> click.Option:
    """Return the option of a command that runs on one target at most."""
    return click.Option(["--target"], metavar="NAME", type=PLACE, help="Run on this target.")


def shared_options(*, several: bool = True) -> list[click.Parameter]:
    """Return the options of every command that runs an activity.

    Args:
        several: Whether it can run on several targets at once.
    """
    more = "; repeat it to run on several and compare." if several else "."
    return [
        click.Option(
            ["--target"],
            type=PLACE,
            metavar="NAME",
            multiple=True,
            help=f"Run on this target{more}",
        ),
        force_option(),
        json_option(),
    ]


def compare_reports(reports: Sequence[Path], as_json: bool) -> int:
    """Compare the reports of several targets."""
    from dld_tui.cli.reports.compare import command

    arguments = [*(["--json"] if as_json else []), "--", *map(str, reports)]
    return int(command.main(arguments, standalone_mode=False) or 0)
