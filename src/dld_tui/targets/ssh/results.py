"""Jobs started on targets, and their results, fetched to the requested paths."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import secrets
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import Any

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError, UnavailableError, UsageError
from dld_tui.core.events import TERMINAL, Cancelled, Event, Failed, Finished, Log, event_from_line
from dld_tui.core.files.writer import write_text
from dld_tui.core.notes import NoteKind
from dld_tui.core.process import paths
from dld_tui.core.reading.preview import ago
from dld_tui.core.report.schema import moved_paths, relocate
from dld_tui.core.tables.table import NOTE, Column, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.targets.base import describe_end, log_text
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.link import RetryPolicy
from dld_tui.targets.ssh.transfer import Amount, download

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")


@dataclass(frozen=True)
class StoredOutput:
    """A result that is to be fetched."""

    place: str
    path: str
    needed: bool = True
    replaces: bool = False
    """Whether a file that is there may be replaced: the user agreed, or it was fetched before."""


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

    def with_fetched(self, paths: Container[str]) -> StoredJob:
        """Return it as it is once files have been fetched: another attempt may replace them."""
        outputs = (replace(o, replaces=o.replaces or o.path in paths) for o in self.outputs)
        return replace(self, outputs=tuple(outputs))


_STYLES = {"running": "accent", "finished": "good", "failed": "bad", "lost": "bad"}


def job_table(
    jobs: Sequence[StoredJob],
    state: Callable[[StoredJob], str],
    title: Callable[[StoredJob], str] | None = None,
) -> Table[StoredJob]:
    """Return jobs as a table.

    Args:
        jobs: The rows.
        state: Says how a job is.
        title: Says what people call its activity.
    """
    return Table(
        (
            Column("job", "job", lambda job: job.id, width=24),
            Column("target", "target", lambda job: job.target, width=14, style="strong"),
            Column("activity", "activity", lambda job: job.activity, text=title, width=26,
                   priority=1),
            Column("started", "started", lambda job: ago(time.time() - job.started), width=12,
                   style="dim"),
            Column("state", "state", state, width=14,
                   style=lambda job: _STYLES.get(state(job), "dim")),
            Column("result", "result", lambda job: job.outputs[0].path if job.outputs else "",
                   NOTE, least=28, keep="end", style="dim"),
        ),
        jobs,
        row_key=lambda job: job.id,
    )  # fmt: skip


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
        write_text(self._path(job.id), json.dumps(asdict(job)), overwrite=True)

    def forget(self, job_id: str) -> None:
        """Forget a job; nothing happens when it is not known."""
        with contextlib.suppress(OSError):
            self._path(job_id).unlink()

    def all(self) -> list[StoredJob]:
        """Return the known jobs, the newest last."""
        jobs = []
        with contextlib.suppress(OSError):
            for path in sorted(self.folder.glob("*.json")):
                with contextlib.suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
                    jobs.append(_job_from(json.loads(path.read_text(encoding="utf-8"))))
        return jobs

    def find(self, job_id: str) -> StoredJob:
        """Return a job by its name or the end of it.

        Raises:
            UsageError: No job has this name, or more than one.
        """
        jobs = [job for job in self.all() if job_id and job.id.endswith(job_id)]
        if len(jobs) != 1:
            problem = "is not a job started from here" if not jobs else "means several jobs"
            raise UsageError(f"{job_id!r} {problem}", hint="dld target jobs lists them")
        return jobs[0]

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
    retries: RetryPolicy,
    amount: Amount,
    say: Callable[[Event], None],
    keep: Callable[[StoredJob], None],
) -> None:
    """Bring all results of a job that has ended well.

    Args:
        agent: On the target.
        stored: The job.
        retries: For lost connections.
        amount: Is kept up to date.
        say: Gets what the user should know.
        keep: Records what has been fetched, which a second attempt may replace.

    Raises:
        SaveError: One cannot be written here.
        LinkError: The connection is lost for good.
        ActivityError: The only result is not there.
    """
    had: set[str] = set()
    absolute = {there: str(Path(here).absolute()) for there, here in stored.renames.items()}
    for output in stored.outputs:
        path = Path(output.path)
        came = await download(
            agent, stored.id, output.place, path, retries, amount, overwrite=output.replaces
        )
        if came:
            had.add(output.path)
            keep(stored.with_fetched(had))
            try:
                await asyncio.to_thread(relocate, path, absolute, stored.target)
            except InputError as error:
                say(Log(str(error), NoteKind.WARNING))
        elif output.needed and len(stored.outputs) == 1:
            raise ActivityError(
                "the job has ended without writing it", where=str(path),
                hint=f"It ran on {stored.target}",
            )  # fmt: skip


async def fetch_what_is_there(
    agent: Agent,
    stored: StoredJob,
    retries: RetryPolicy,
    amount: Amount,
    say: Callable[[Event], None],
    keep: Callable[[StoredJob], None],
) -> bool:
    """Fetch the files of a failed or stopped job, e.g. a partial report.

    Returns:
        Whether everything was fetched.
    """
    is_whole, had = True, set[str]()
    absolute = {there: str(Path(here).absolute()) for there, here in stored.renames.items()}
    for output in stored.outputs:
        path = Path(output.path)
        try:
            if await download(
                agent, stored.id, output.place, path, retries, amount, overwrite=output.replaces
            ):
                had.add(output.path)
                keep(stored.with_fetched(had))
                say(Log(f"what it wrote until then is in {output.path}"))
                await asyncio.to_thread(relocate, path, absolute, stored.target)
        except InputError as error:  # it is here
            say(Log(str(error), NoteKind.WARNING))
        except DldError as error:
            is_whole = False
            say(Log(str(error), NoteKind.WARNING))
    return is_whole


_LONGEST = 80 << 20
_LAST_LINES = 50


class Records:
    """Splits the stream into records, and counts its position.

    Args:
        where: The target, for messages.
    """

    def __init__(self, where: str) -> None:
        self.offset = 0
        """Of the next record, in the file on the target."""
        self._where = where
        self._rest = bytearray()

    def restart(self) -> None:
        """Forget half a record: the connection was lost, and it will come again."""
        self._rest.clear()

    def feed(self, data: bytes) -> Iterator[tuple[str, bytes]]:
        """Yield the tag and text of whole records; signs of life are left out.

        Raises:
            UnavailableError: A record is longer than any of ours.
        """
        self._rest += data
        start = 0
        while (end := self._rest.find(b"\n", start)) >= 0:
            record = bytes(self._rest[start:end])
            start = end + 1
            if record[:1] == b"h":
                continue
            self.offset += len(record) + 1
            yield record[:1].decode("ascii", "replace"), record[1:]
        del self._rest[:start]
        if len(self._rest) > _LONGEST:
            raise UnavailableError("it sends an endless line", where=self._where)


@dataclass(frozen=True)
class End:
    """How a worker ended, as its supervisor saw it."""

    code: int | None
    cancelled: bool
    reason: str

    @classmethod
    def parse(cls, text: bytes) -> End:
        """Read the last record; a malformed one counts as a lost job."""
        try:
            data = json.loads(text)
            code = data.get("code")
            return cls(
                code if isinstance(code, int) else None,
                data.get("cancelled") is True,
                clip(visible(str(data.get("reason") or "")), 300),
            )
        except (ValueError, AttributeError, RecursionError):
            return cls(None, False, "lost")


class Listener:
    """Turns records into events of this machine.

    Args:
        target: The name of the target.
        folder: The job's folder there.
        renames: Paths there, and what the user calls them.
    """

    def __init__(self, target: str, folder: str, renames: Mapping[str, str]) -> None:
        self._target = target
        self._folder = folder.encode("utf-8", "surrogateescape")
        self._renames = renames
        self._last_lines: list[str] = []
        self._terminal: Finished | Failed | Cancelled | None = None

    def event(self, tag: str, text: bytes) -> Event | None:
        """Return the event of a record; the terminal one is kept for :meth:`end`."""
        event = event_from_line(text.decode("utf-8", "surrogateescape")) if tag == "o" else None
        if event is None:
            line, level = log_text(text)
            if not line:
                return None
            line = str(self._here(line))
            self._last_lines = [*self._last_lines[1 - _LAST_LINES :], line]
            return Log(line, level)
        if self._terminal is not None:
            return None
        if self._folder in text or b"\\u" in text:
            event = self._moved(event)
        if isinstance(event, TERMINAL):
            self._terminal = event
            return None
        return event

    def end(self, end: End) -> Finished | Failed | Cancelled:
        """Return the terminal event of a job that has ended."""
        if self._terminal is not None and not (
            end.cancelled and not isinstance(self._terminal, Finished)
        ):
            if isinstance(self._terminal, Finished):
                return Finished(self._without_foreign_paths(self._terminal.result))
            if isinstance(self._terminal, Failed):
                return self._of_target(self._terminal)
            return self._terminal
        if end.cancelled:
            return Cancelled()
        details = "\n".join(self._last_lines) or None
        if end.reason == "lost":
            message = "the job was lost on the target"
            return Failed(message, self._target, "The machine may have been restarted", details)
        if end.reason:
            return Failed(end.reason, self._target, "Free some space there", details)
        message, hint = describe_end(end.code, details or "")
        return Failed(message, self._target, hint, details)

    def _of_target(self, failed: Failed) -> Failed:
        """Add the machine to a failure, unless it is about a file of the user.

        Missing packages are to be installed there, in any case.
        """
        if not failed.where:
            return replace(failed, where=self._target)
        if failed.status == UnavailableError.status:
            return replace(failed, where=f"{failed.where}, on {self._target}")
        return failed

    def _here(self, value: JSON) -> JSON:
        return moved_paths(value, self._renames)

    def _moved(self, event: Event) -> Event:
        values: dict[str, Any] = {
            name: self._here(value)
            for name, value in vars(event).items()
            if isinstance(value, (str, dict, list))
        }
        if isinstance(event, Failed) and event.finding is not None:
            model = self._renames.get(event.finding.model or "", event.finding.model)
            values["finding"] = replace(event.finding, model=model)
        return replace(event, **values)

    def _without_foreign_paths(self, result: JSON) -> JSON:
        """Mark foreign paths as the target's, so that no file here is opened for them."""
        if not isinstance(result, dict):
            return result
        ours = set(self._renames.values())
        return {
            key: f"{self._target}:{value}"
            if isinstance(value, str) and value not in ours and _is_path(value)
            else value
            for key, value in result.items()
        }


def _is_path(text: str) -> bool:
    return text.startswith("/") or ("\0" not in text and len(text) < 4096 and os.path.lexists(text))
