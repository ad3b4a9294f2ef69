"""Jobs started on targets, and their results, brought to the paths that were asked for."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dld_tui.core import paths
from dld_tui.core.errors import ActivityError, DldError, InputError, UsageError
from dld_tui.core.events import Event, Log
from dld_tui.core.files.writer import write_text
from dld_tui.core.report.database import relocate
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.retries import Patience
from dld_tui.targets.ssh.transfer import Amount, download

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


@dataclass(frozen=True)
class StoredOutput:
    """A result that is to be fetched."""

    place: str
    path: str
    needed: bool = True


@dataclass(frozen=True)
class StoredJob:
    """A job, as it was started."""

    id: str
    target: str
    activity: str
    started: float
    """Seconds since the epoch."""
    outputs: tuple[StoredOutput, ...] = ()
    renames: dict[str, str] = field(default_factory=dict)
    """Paths on the target, and what the user calls them."""


def new_id() -> str:
    """Return the name of a new job; names are in the order of time."""
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{secrets.token_hex(4)}"


class JobsStore:
    """One small file a job, in the state folder."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or paths.state_dir() / "target-jobs"

    def put(self, job: StoredJob) -> None:
        """Remember a job.

        Raises:
            SaveError: It cannot be written.
        """
        paths.ensure(self.folder)
        write_text(self._path(job.id), json.dumps(asdict(job)))

    def forget(self, job_id: str) -> None:
        """Forget a job; nothing happens when it is not known."""
        with contextlib.suppress(OSError):
            self._path(job_id).unlink()

    def all(self) -> list[StoredJob]:
        """Return the known jobs, the newest last."""
        found = []
        with contextlib.suppress(OSError):
            for path in sorted(self.folder.glob("*.json")):
                with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
                    found.append(_job_from(json.loads(path.read_text(encoding="utf-8"))))
        return found

    def find(self, job_id: str) -> StoredJob:
        """Return a job by its name or the end of it.

        Raises:
            UsageError: There is no such job, or more than one.
        """
        found = [job for job in self.all() if job_id and job.id.endswith(job_id)]
        if len(found) != 1:
            what = "is no job that was started from here" if not found else "means several jobs"
            raise UsageError(f"{job_id!r} {what}", hint="dld target jobs lists them")
        return found[0]

    def _path(self, job_id: str) -> Path:
        if not _ID.fullmatch(job_id):
            raise UsageError(f"{job_id!r} is not the name of a job")
        return self.folder / f"{job_id}.json"


def _job_from(data: dict[str, Any]) -> StoredJob:
    outputs = tuple(StoredOutput(**output) for output in data.pop("outputs"))
    return StoredJob(outputs=outputs, **data)


async def fetch(
    agent: Agent,
    stored: StoredJob,
    patience: Patience,
    amount: Amount,
    say: Callable[[Event], None],
) -> None:
    """Bring all results of a job that has ended well.

    Raises:
        SaveError: One cannot be written here.
        LinkError: The connection is lost for good.
        ActivityError: The only result is not there.
    """
    absolute = {there: str(Path(here).absolute()) for there, here in stored.renames.items()}
    for output in stored.outputs:
        path = Path(output.path)
        came = await download(agent, stored.id, output.place, path, patience, amount)
        if came:
            try:
                await asyncio.to_thread(relocate, path, absolute)
            except InputError as error:
                say(Log(str(error), "warning"))
        elif output.needed and len(stored.outputs) == 1:
            raise ActivityError(
                "the job has ended without writing it", where=str(path),
                hint=f"It ran on {stored.target}",
            )  # fmt: skip


async def fetch_what_is_there(
    agent: Agent,
    stored: StoredJob,
    patience: Patience,
    amount: Amount,
    say: Callable[[Event], None],
) -> bool:
    """Bring what a job that failed or was stopped has left, e.g. a partial report.

    Returns:
        Whether nothing that is there was left there.
    """
    is_whole = True
    absolute = {there: str(Path(here).absolute()) for there, here in stored.renames.items()}
    for output in stored.outputs:
        path = Path(output.path)
        try:
            if await download(agent, stored.id, output.place, path, patience, amount):
                say(Log(f"what it wrote until then is in {output.path}"))
                await asyncio.to_thread(relocate, path, absolute)
        except InputError as error:  # it is here
            say(Log(str(error), "warning"))
        except DldError as error:
            is_whole = False
            say(Log(str(error), "warning"))
    return is_whole
