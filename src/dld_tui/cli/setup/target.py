"""``dld target``: commands on saved connections."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from dld_tui.cli.command import Command, command_for, force_option, json_flag
from dld_tui.cli.group import LazyGroup
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.cli.options import TARGET, parameters_of, request_from
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.cli.setup.prompts import ask_on_terminal
from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.command_line import CommandInfo
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, ExitStatus, UnavailableError, UsageError
from dld_tui.core.params import param, validate
from dld_tui.core.process.confinement import is_confined
from dld_tui.core.process.paths import short
from dld_tui.core.settings import saved_targets, secrets
from dld_tui.core.settings.saved_targets import (
    Connection,
    ConnectionForm,
    changed,
    changed_by,
    connection_of,
    form_values,
    settings_shown,
    target_table,
)
from dld_tui.core.settings.secrets import BAD, GOOD, WEAK, ConnectionStep
from dld_tui.core.text import visible

command = LazyGroup(
    (
        CommandInfo("list", "List the targets.", f"{__name__}:list_targets"),
        CommandInfo("show", "Print the settings of a target.", f"{__name__}:show_target"),
        CommandInfo("add", "Save a connection.", f"{__name__}:add_target"),
        CommandInfo("edit", "Change a connection.", f"{__name__}:edit_target"),
        CommandInfo("remove", "Forget a connection.", f"{__name__}:remove_targets"),
        CommandInfo("test", "Connect, and say what works.", f"{__name__}:test_target"),
        CommandInfo("jobs", "List the jobs on targets.", f"{__name__}:list_jobs"),
        CommandInfo("attach", "Go on with a job, and fetch its result.", f"{__name__}:attach_job"),
        CommandInfo("clean", "Remove what was sent to a target.", f"{__name__}:clean_target"),
    ),
    name="target",
    help="Manage machines over SSH, where activities run with --target NAME.",
    no_args_is_help=False,
)


@dataclass(frozen=True)
class ListRequest:
    """The arguments and options of ``dld target list``."""

    as_json: bool = json_flag()


@command_for("list", ListRequest)
def list_targets(asked: ListRequest) -> None:
    """List the targets, without connecting to them."""
    connections = list(saved_targets.load().values())
    if asked.as_json:
        hidden = {"environment"} if is_confined() else set()  # may hold tokens
        rows = [form_values(connection) for connection in connections]
        write_json({"targets": [{n: v for n, v in row.items() if n not in hidden} for row in rows]})
    elif connections:
        write_table(target_table(connections))
    else:
        narrate("No targets yet. Add one with dld target add NAME --host HOST")


_LABEL = 18


@dataclass(frozen=True)
class ShowRequest:
    """The arguments and options of ``dld target show``."""

    name: str = param(label="Name", help="Its name.", positional=True, kind="target")
    as_json: bool = json_flag()


@command_for("show", ShowRequest)
def show_target(asked: ShowRequest) -> None:
    """Print the settings of a target."""
    connection = saved_targets.find(asked.name)
    if asked.as_json:
        write_json(form_values(connection))
    else:
        print_connection(connection)


def print_connection(connection: Connection) -> None:
    """Print the settings, one per line."""
    for label, text in settings_shown(connection):
        write(f"{label:<{_LABEL}}{visible(text)}")


def _add(force: bool, **values: Any) -> None:
    form = request_from(ConnectionForm, values)
    validate(form)
    connection = connection_of(form)
    if not force and connection.name in saved_targets.load():
        hint = f"Change it with dld target edit {connection.name}, or add --force"
        raise UsageError(f"target {connection.name!r} already exists", hint=hint)
    saved_targets.save(connection)
    narrate(f"{connection.name}: saved in {short(saved_targets.store_path())}")
    narrate(f"Test it with dld target test {connection.name}")


add_target = Command(
    "add",
    callback=_add,
    params=[
        *parameters_of(ConnectionForm),
        force_option("Replace a target of the same name."),
    ],
    help="Save a connection under a name, without connecting and without saving secrets.",
)


def _edit(rename: str | None, clear_env: bool, **values: Any) -> None:
    name = str(values.pop("name"))
    connection = saved_targets.find(name)
    if clear_env:
        connection = changed(connection, environment={})
    connection = changed_by(connection, values)
    if rename is not None and rename != name:
        if rename in saved_targets.load():
            raise UsageError(f"target {rename!r} already exists")
        connection = changed(connection, name=rename)
    saved_targets.save(connection)
    if connection.name != name:
        saved_targets.remove(name)
    narrate(f"{connection.name}: saved")


def _edit_parameters() -> list[click.Parameter]:
    parameters = parameters_of(ConnectionForm)
    for parameter in parameters:
        if isinstance(parameter, click.Option):
            parameter.required = False
        else:
            parameter.type = TARGET
    return parameters


edit_target = Command(
    "edit",
    callback=_edit,
    params=[
        *_edit_parameters(),
        click.Option(["--rename"], metavar="NAME", help="Rename the target."),
        click.Option(["--clear-env"], is_flag=True, help="Remove all environment variables."),
    ],
    help="Change settings of a target. An empty value resets a setting.",
)


@dataclass(frozen=True)
class RemoveRequest:
    """The arguments and options of ``dld target remove``."""

    names: tuple[str, ...] = param(
        label="Names", positional=True, metavar="NAME...", kind="target",
        help="Their names.",
    )  # fmt: skip


@command_for("remove", RemoveRequest)
def remove_targets(asked: RemoveRequest) -> None:
    """Remove targets and their secrets. Files on the machines stay there."""
    from dld_tui.targets.ssh.target import forget_secrets

    known = saved_targets.load()
    for name in asked.names:
        if name not in known:
            hint = f"Known targets: {', '.join(known)}" if known else "There is none"
            raise UsageError(f"unknown target {name!r}", hint=hint)
    for name in dict.fromkeys(asked.names):
        saved_targets.remove(name)
        if known[name].remember == "keyring":
            forget_secrets(known[name])
        narrate(f"{name}: removed; {known[name].directory} on {known[name].address} remains")


_MARKS = {GOOD: "✓", WEAK: "!", BAD: "✗"}
_STEP = 15


@dataclass(frozen=True)
class TestRequest:
    """The arguments and options of ``dld target test``."""

    name: str = param(label="Name", help="Its name.", positional=True, kind="target")
    as_json: bool = json_flag()


@command_for("test", TestRequest)
def test_target(asked: TestRequest) -> None:
    """Test the connection to a target step by step, with a remedy for each failure.

    Asks you to confirm the fingerprint of a new host, and asks for passwords on the terminal. Exit
    status 4 if the target cannot be used.
    """
    connection = saved_targets.find(asked.name)
    from dld_tui.targets.ssh.target import examine

    ask_on_terminal()

    def show(step: ConnectionStep) -> None:
        if asked.as_json:
            return
        write(f"{_MARKS[step.state]} {step.name:<{_STEP}} {visible(step.found)}")
        if step.fix:
            write(f"  {'':<{_STEP}} → {visible(step.fix)}")

    steps = examine(connection, secrets.current(), show)
    bad = [step for step in steps if step.state == BAD]
    if asked.as_json:
        steps_data = encode(steps)
        write_json({"target": asked.name, "usable": not bad, "steps": [*steps_data]})
    for step in bad:
        where = f"target {asked.name}"
        raise UnavailableError(f"{step.name}: {step.found}", where=where, hint=step.fix or None)


@dataclass(frozen=True)
class JobsRequest:
    """The arguments and options of ``dld target jobs``."""

    name: str | None = param(None, label="Name", help="Its name.", positional=True, kind="target")
    as_json: bool = json_flag()


@command_for("jobs", JobsRequest)
def list_jobs(asked: JobsRequest) -> int:
    """List the jobs on a target, or on all targets with jobs of this machine.

    Jobs continue after a lost connection; `dld target attach JOB` fetches their results.
    """
    from dld_tui.targets.ssh.results import JobsStore, StoredJob, job_table
    from dld_tui.targets.ssh.target import SshTarget

    known = {job.id: job for job in JobsStore().all()}
    names = (
        [asked.name] if asked.name else list(dict.fromkeys(job.target for job in known.values()))
    )
    ask_on_terminal()
    jobs: list[StoredJob] = []
    states: dict[str, str] = {}
    problem: DldError | None = None
    for target in names:
        try:
            there = SshTarget(saved_targets.find(target)).jobs()
        except DldError as error:
            if asked.name:
                raise
            narrate(str(error))
            problem = error
            continue
        for job in there:
            stored = StoredJob(job.id, target, job.activity, job.started)
            mine = known.get(job.id, stored)
            jobs.append(replace(stored, outputs=mine.outputs))
            states[job.id] = job.state
    if asked.as_json:
        write_json(
            {
                "jobs": [
                    {
                        "job": job.id,
                        "target": job.target,
                        "activity": job.activity,
                        "started": job.started,
                        "state": states[job.id],
                        "outputs": [output.path for output in job.outputs],
                    }
                    for job in jobs
                ]
            }
        )
    elif jobs:
        write_table(job_table(jobs, lambda job: states[job.id]))
    elif problem is None:
        narrate("No jobs on targets")
    return ExitStatus.DONE if problem is None else int(problem.status)


@dataclass(frozen=True)
class AttachRequest:
    """The arguments and options of ``dld target attach``."""

    job: str = param(label="Job", help="Its name, or the end of it.", positional=True, kind="job")
    cancel: bool = param(False, label="Cancel", help="Stop the job and delete its files instead.")
    as_json: bool = json_flag()


@command_for("attach", AttachRequest)
def attach_job(asked: AttachRequest) -> None:
    """Reattach to a job on a target and fetch its result.

    JOB is a name from `dld target jobs`, or the end of one. The result goes to the path that was
    given when the job started, and replaces a file there.
    """
    from dld_tui.targets.ssh.results import JobsStore
    from dld_tui.targets.ssh.target import SshTarget

    stored = JobsStore().find(asked.job)
    ask_on_terminal()
    target = SshTarget(saved_targets.find(stored.target))
    with ProgressReporter() as reporter, target.attach(stored) as running:
        if asked.cancel:
            running.cancel()
            running.wait()
            narrate(f"job {stored.id} stopped")
            return
        result = running.result(reporter.event)
    if asked.as_json:
        write_json(result)
        return
    for output in stored.outputs:
        if output.needed:
            write(visible(output.path))


@dataclass(frozen=True)
class CleanRequest:
    """The arguments and options of ``dld target clean``."""

    name: str = param(label="Name", help="Its name.", positional=True, kind="target")
    days: float = param(
        14.0, label="Days", metavar="N", minimum=0,
        help="Only files unused for this many days.",
    )  # fmt: skip
    everything: bool = param(
        False, label="Everything", spellings=("--all",),
        help="Remove everything, including environments.",
    )  # fmt: skip
    unfetched: bool = param(
        False, label="Unfetched",
        help="Also remove results that were never fetched.",
    )  # fmt: skip


@command_for("clean", CleanRequest)
def clean_target(asked: CleanRequest) -> None:
    """Remove finished jobs and uploaded files from a target.

    Keeps running jobs and results that were not fetched. Files are uploaded again when needed.
    """
    from dld_tui.targets.ssh.target import SshTarget

    ask_on_terminal()
    target = SshTarget(saved_targets.find(asked.name))
    if asked.everything:
        target.wipe(results=asked.unfetched)
        narrate(f"all files of dld on {asked.name} are removed")
        return
    cleaned = target.clean(asked.days, results=asked.unfetched)
    removed = f"{fmt.plural(cleaned.jobs, 'job')} and {fmt.size(cleaned.bytes)} of files"
    narrate(f"{removed} removed")
    for job in cleaned.unfetched:
        narrate(f"kept job {job}, whose result was not fetched: dld target attach {job}")
