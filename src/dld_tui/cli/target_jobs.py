"""``dld target jobs``."""

from __future__ import annotations

import time

import click

from dld_tui.cli.asking import ask_on_terminal
from dld_tui.cli.names import TARGET
from dld_tui.cli.output import Column, narrate, write_json, write_table
from dld_tui.core.connections import store
from dld_tui.core.errors import DldError, ExitStatus
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_COLUMNS = (
    Column("job"),
    Column("target"),
    Column("activity"),
    Column("started"),
    Column("state"),
    Column("result", flexible=True),
)


@click.command("jobs")
@click.argument("name", required=False, type=TARGET)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(name: str | None, as_json: bool) -> int:
    """List the jobs on a target, or on all targets that have jobs of this machine.

    Jobs whose connection was lost go on; `dld target attach JOB` fetches their results.
    """
    from dld_tui.targets.ssh.jobs_store import JobsStore
    from dld_tui.targets.ssh.target import SshTarget

    known = {job.id: job for job in JobsStore().all()}
    names = [name] if name else list(dict.fromkeys(job.target for job in known.values()))
    ask_on_terminal()
    rows: list[dict[str, JSON]] = []
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
        write_table(_COLUMNS, [_cells(row) for row in rows])
    elif problem is None:
        narrate("There is no job on a target")
    return ExitStatus.DONE if problem is None else int(problem.status)


def _cells(row: dict[str, JSON]) -> list[str]:
    started = row["started"]
    when = time.localtime(started if isinstance(started, (int, float)) else 0)
    outputs = row["outputs"]
    first = str(outputs[0]) if isinstance(outputs, list) and outputs else "–"
    cells = [row["job"], row["target"], row["activity"], time.strftime("%Y-%m-%d %H:%M", when)]
    return [visible(str(cell)) for cell in (*cells, row["state"], first)]
