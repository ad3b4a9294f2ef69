"""A machine that is reached over SSH, as a place for jobs; and whether it is ready for them."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.machine.health import Check
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import (
    BAD,
    GOOD,
    SECRETS,
    WEAK,
    Asker,
    ConnectionStep,
    Secrets,
    current,
    keyring_problem,
    passphrase_name,
    password_name,
)
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent, strings
from dld_tui.targets.ssh.deploy import Deployment, needs_of
from dld_tui.targets.ssh.errors import stage_of
from dld_tui.targets.ssh.job import Setup, SshJob
from dld_tui.targets.ssh.link import Finished, Link
from dld_tui.targets.ssh.remote.replies import last_answer, new_mark
from dld_tui.targets.ssh.results import JobsStore, StoredJob
from dld_tui.targets.ssh.route import route
from dld_tui.targets.ssh.transfer import Amount

T = TypeVar("T")

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_STATES = ("running", "finished", "failed", "cancelled", "lost")


@dataclass(frozen=True)
class RemoteJob:
    """A job that is on a target."""

    id: str
    activity: str
    state: str
    """``running``, ``finished``, ``failed``, ``cancelled`` or ``lost``."""
    started: float
    """Seconds since the epoch."""


class Cleaned(NamedTuple):
    """What was removed from a target."""

    jobs: int
    bytes: int
    unfetched: tuple[str, ...]
    """The jobs that are there still, as their results were not fetched."""


class SshTarget:
    """One saved connection.

    Args:
        connection: Where it is.
        asker: Who is asked for what is not known; by default the asker of this process.
        setup: How jobs are run.
        store: Where jobs are remembered.
    """

    def __init__(
        self,
        connection: Connection,
        asker: Asker | None = None,
        setup: Setup | None = None,
        store: JobsStore | None = None,
    ) -> None:
        self.connection = connection
        self._asker = asker
        self._setup = setup or Setup()
        self._store = store or JobsStore()

    @property
    def name(self) -> str:
        """How users call it."""
        return self.connection.name

    def start(self, activity_id: str, request: Mapping[str, JSON]) -> SshJob:
        """Start an activity; the connection, too, is made while its events are read.

        Args:
            activity_id: As in the registry of activities.
            request: From :func:`dld_tui.core.params.to_json`, which knows its files.
        """
        return SshJob(self._agent(), self._setup, self._store, (activity_id, request))

    def attach(self, job: StoredJob) -> SshJob:
        """Take up a job that was started before, perhaps by another run of this program."""
        return SshJob(self._agent(), self._setup, self._store, stored=job)

    def jobs(self) -> list[RemoteJob]:
        """Return the jobs that are there, the newest last.

        Raises:
            DldError: The target cannot be reached or does not serve.
        """
        return self._call(self._jobs)

    def checks(self, activity_id: str) -> list[Check]:
        """Return what an activity needs there, and whether it is there.

        Raises:
            DldError: The target cannot be reached, or has no Python that serves.
        """
        return self._call(lambda agent: self._checks(agent, activity_id))

    def clean(self, days: float, *, results: bool = False) -> Cleaned:
        """Remove jobs that ended and files that were not used for so long.

        Args:
            days: How long.
            results: Whether jobs go, too, whose results were not fetched.

        Raises:
            DldError: The target cannot be reached or does not serve.
        """
        answer = self._call(lambda agent: self._freed(agent, "clean", days=days, results=results))
        kept = [job for job in strings(answer.get("unfetched")) if _ID.fullmatch(job)]
        return Cleaned(_count(answer.get("jobs")), _count(answer.get("bytes")), tuple(kept))

    def wipe(self, *, results: bool = False) -> None:
        """Remove all that was deployed.

        Args:
            results: Whether results go, too, that were not fetched.

        Raises:
            DldError: The target cannot be reached, does not serve, a job runs there, or a result
                waits there.
        """
        self._call(lambda agent: self._freed(agent, "wipe", results=results))

    def _agent(self) -> Agent:
        return Agent(Link(self.connection, self._asker or current()))

    def _call(self, work: Callable[[Agent], Coroutine[Any, Any, T]]) -> T:
        agent = self._agent()

        async def whole() -> T:
            try:
                return await work(agent)
            finally:
                with contextlib.suppress(DldError):
                    await agent.link.close()

        return loop.call(whole())

    async def _freed(self, agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
        await agent.probe()  # sends nothing: the disk may be full
        return await agent.call(name, **arguments)

    async def _jobs(self, agent: Agent) -> list[RemoteJob]:
        await agent.make_ready()
        rows = (await agent.call("list")).get("jobs")
        jobs = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return [job for row in jobs if (job := _job_from(row)) is not None]

    async def _checks(self, agent: Agent, activity_id: str) -> list[Check]:
        deployment = Deployment(agent, Amount(), self._setup.retries)
        return await deployment.checks(needs_of(activity_id, {}))


def _job_from(row: dict[str, Any]) -> RemoteJob | None:
    job_id, started = str(row.get("id")), row.get("started")
    if not _ID.fullmatch(job_id):
        return None
    return RemoteJob(
        job_id,
        clip(visible(str(row.get("activity") or "")), 40),
        str(row.get("state")) if row.get("state") in _STATES else "lost",
        float(started) if isinstance(started, (int, float)) else 0.0,
    )


def _count(value: Any) -> int:
    return value if isinstance(value, int) else 0


def forget_secrets(connection: Connection, secrets: Secrets | None = None) -> None:
    """Forget the password of a target and the passphrase of its own key.

    Those of machines on the way stay: other targets may use them. A keyring may take a while to
    answer: call it on a thread.
    """
    known = SECRETS if secrets is None else secrets
    in_keyring = connection.remember == "keyring"
    try:
        address = route(connection)[-1].address
    except DldError:  # the configuration changed meanwhile
        address = connection.address
    known.forget(password_name(address), in_keyring=in_keyring)
    if connection.key is not None:
        known.forget(passphrase_name(connection.key.expanduser()), in_keyring=in_keyring)


OLDEST_PYTHON = (3, 10)
_ROOM_BYTES = 2 << 30
"""What the parts and a model or two take."""
_PATIENCE_S = 120.0
"""A launcher may wait in a queue; a person who tests sees that it does."""

# Runs on any Python 3, so that an old one can be named. Makes the folder, as a job will.
_LOOK = """
import json, os, shutil, sys, tempfile
said = {"python": list(sys.version_info[:3]), "program": sys.executable}
try:
    folder = os.path.expanduser(sys.argv[1])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    said["folder"] = folder
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x" * 4096)
        file.flush()
    said["free"] = shutil.disk_usage(folder).free
except OSError as error:
    said["error"] = error.strerror or str(error)
sys.stdout.write(chr(10) + sys.argv[2] + json.dumps(said) + chr(10))
"""


def examine(
    connection: Connection,
    asker: Asker,
    on_step: Callable[[ConnectionStep], None] = lambda step: None,
    secrets: Secrets | None = None,
) -> list[ConnectionStep]:
    """Connect and look; stops at the first step that fails. Waits: call it on a thread.

    Args:
        connection: The target.
        asker: Who is asked for passwords and about a new host.
        on_step: Told each step as it is done.
        secrets: Where secrets are known; by default those of this process.

    Raises:
        CancelledError: The person gave up.
    """
    steps: list[ConnectionStep] = []

    def done(step: ConnectionStep) -> None:
        steps.append(step)
        on_step(step)

    begun: list[tuple[str, str]] = []

    def begins(address: str, stage: str) -> None:
        if (address, stage) not in begun:  # a host that was just accepted is connected to again
            _passed(begun, done)
            begun.append((address, stage))

    link = Link(connection, asker, secrets, begins)
    try:
        try:
            loop.call(link.open())
        except CancelledError:
            raise
        except DldError as error:
            address, stage = begun[-1] if begun else (connection.address, stage_of(error))
            done(ConnectionStep(stage, BAD, f"{address}: {error.message}", error.hint or ""))
            return steps
        _passed(begun, done)
        _look(link, done)
    finally:
        loop.call(link.close())
    return steps


def _passed(begun: list[tuple[str, str]], done: Callable[[ConnectionStep], None]) -> None:
    if begun:
        address, stage = begun[-1]
        done(ConnectionStep(stage, GOOD, address))


def _look(link: Link, done: Callable[[ConnectionStep], None]) -> None:
    connection = link.connection
    if connection.remember == "keyring" and (problem := keyring_problem()):
        done(
            ConnectionStep(
                "keyring", WEAK, problem, f"dld target edit {connection.name} --remember memory"
            )
        )
    try:
        loop.call(link.greet())
    except DldError as error:
        done(ConnectionStep("shell", BAD, error.message, error.hint or ""))
        return
    done(ConnectionStep("shell", GOOD, "runs commands"))
    if connection.launcher:
        if _ask_python(link, done, launched=False) is None:  # which jobs are managed with
            return
        words = " ".join(connection.launcher)
        ended = _run(link, "launcher", ["true"], done)
        if ended is None:
            return
        if ended.code != 0:
            fix = "Run it there by hand with 'true' as its command"
            done(ConnectionStep("launcher", BAD, f"{words}: {_last(ended)}", fix))
            return
        done(ConnectionStep("launcher", GOOD, words))
    answer = _ask_python(link, done, launched=True)
    if answer is not None:
        _judge(answer, connection, done)


def _ask_python(
    link: Link, done: Callable[[ConnectionStep], None], *, launched: bool
) -> dict[str, Any] | None:
    """Return what the Python of a target says; None when it says nothing, which is then told."""
    connection, mark = link.connection, new_mark()
    words = [connection.python, "-c", _LOOK, connection.directory, mark]
    ended = _run(link, "Python", words, done, launched=launched)
    if ended is None:
        return None
    answer = last_answer(ended.stdout, mark)
    if answer is None:
        done(
            ConnectionStep(
                "Python", BAD, f"{connection.python}: {_last(ended)}", _other_python(connection)
            )
        )
    return answer


def _judge(
    answer: Mapping[str, JSON], connection: Connection, done: Callable[[ConnectionStep], None]
) -> None:
    version = answer.get("python")
    parts = [part for part in version if isinstance(part, int)] if isinstance(version, list) else []
    text = f"{'.'.join(map(str, parts))}, {answer.get('program')}"
    if tuple(parts[:2]) < OLDEST_PYTHON:
        done(ConnectionStep("Python", BAD, f"{text} is too old", _other_python(connection)))
        return
    done(ConnectionStep("Python", GOOD, text))
    folder = str(answer.get("folder") or connection.directory)
    if "error" in answer:
        fix = f"Choose another folder: dld target edit {connection.name} --directory DIR"
        done(ConnectionStep("directory", BAD, f"{folder}: {answer['error']}", fix))
        return
    done(ConnectionStep("directory", GOOD, folder))
    free = answer.get("free")
    amount = free if isinstance(free, int) else 0
    enough = amount >= _ROOM_BYTES
    fix = "" if enough else f"Models and parts want {fmt.size(_ROOM_BYTES)}; free some there"
    done(ConnectionStep("disk space", GOOD if enough else WEAK, f"{fmt.size(amount)} free", fix))


def _other_python(connection: Connection) -> str:
    edit = f"dld target edit {connection.name} --python PROGRAM"
    return f"Install Python 3.10 or newer there, or name it: {edit}"


def _run(
    link: Link,
    name: str,
    arguments: list[str],
    done: Callable[[ConnectionStep], None],
    *,
    launched: bool = True,
) -> Finished | None:
    try:
        return loop.call(link.run(arguments, launched=launched), _PATIENCE_S)
    except TimeoutError:
        message = f"nothing came back within {_PATIENCE_S:.0f} s"
        done(ConnectionStep(name, BAD, message, "The launcher may wait in a queue"))
    except DldError as error:
        done(ConnectionStep(name, BAD, error.message, error.hint or ""))
    return None


def _last(ended: Finished) -> str:
    lines = (ended.error_text.strip() or ended.text.strip()).splitlines()
    words = lines[-1].strip() if lines else "no message"
    return f"{words} (exit status {ended.code})"
