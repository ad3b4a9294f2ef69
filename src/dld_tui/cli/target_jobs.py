"""``dld target jobs``."""

from __future__ import annotations

import time
from operator import itemgetter
from typing import Any

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.names import TARGET
from dld_tui.cli.output import narrate, write_json, write_table
from dld_tui.core.connections import store
from dld_tui.core.errors import DldError, ExitStatus
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.types import JSON

_COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column("job", "job", itemgetter("job")),
    Column("target", "target", itemgetter("target")),
    Column("activity", "activity", itemgetter("activity")),
    Column("started", "started", lambda row: time.strftime(
        "%Y-%m-%d %H:%M", time.localtime(row["started"] or 0))),
    Column("state", "state", itemgetter("state")),
    Column("result", "result", lambda row: next(iter(row["outputs"]), None)),
)  # fmt: skip


@click.command("jobs")
@click.argument("name", required=False, type=TARGET)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str | None, as_json: bool) -> int:
    """List the jobs on a target, or on all targets that have jobs of this machine.

    Jobs whose connection was lost go on; `dld target attach JOB` fetches their results.
    """
    from dld_tui.targets.ssh.results import JobsStore
    from dld_tui.targets.ssh.target import SshTarget

    known = {job.id: job for job in JobsStore().all()}
    names = [name] if name else list(dict.fromkeys(job.target for job in known.values()))
    ask_on_terminal()
    rows: list[dict[str, Any]] = []
    problem: DldError | None = None
    for target in names:
        try:
            found = SshTarget(store.find(target)).jobs()
        except DldError as error:
            if name:
                raise
            narrate(str(error))
            problem = error
            continue
        for job in found:
            mine = known.get(job.id)
            outputs: list[JSON] = [output.path for output in mine.outputs] if mine else []
            rows.append(
                {
                    "job": job.id,
                    "target": target,
                    "activity": job.activity,
                    "started": job.started,
                    "state": job.state,
                    "outputs": outputs,
                }
            )
    if as_json:
        write_json({"jobs": [*rows]})
    elif rows:
        write_table(Table(_COLUMNS, rows))
    elif problem is None:
        narrate("There is no job on a target")
    return ExitStatus.DONE if problem is None else int(problem.status)
