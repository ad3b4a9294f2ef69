"""A machine that is reached over SSH, as a place for jobs."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from dld_tui.core.errors import DldError
from dld_tui.core.machine.health import Check
from dld_tui.core.settings import prompts
from dld_tui.core.settings.prompts import Asker
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import SECRETS, Secrets, passphrase_name, password_name
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent, strings
from dld_tui.targets.ssh.deploy import Deployment, needs_of
from dld_tui.targets.ssh.job import Setup, SshJob
from dld_tui.targets.ssh.link import Link
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
        answer = self._call(lambda agent: self._asked(agent, "clean", days=days, results=results))
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
        self._call(lambda agent: self._asked(agent, "wipe", results=results))

    # -- helpers ----------------------------------------------------------------------------------

    def _agent(self) -> Agent:
        return Agent(Link(self.connection, self._asker or prompts.current()))

    def _call(self, work: Callable[[Agent], Coroutine[Any, Any, T]]) -> T:
        agent = self._agent()

        async def whole() -> T:
            try:
                return await work(agent)
            finally:
                with contextlib.suppress(DldError):
                    await agent.link.close()

        return loop.call(whole())

    async def _asked(self, agent: Agent, name: str, **arguments: Any) -> dict[str, Any]:
        await agent.make_ready()
        return await agent.call(name, **arguments)

    async def _jobs(self, agent: Agent) -> list[RemoteJob]:
        rows = (await self._asked(agent, "list")).get("jobs")
        found = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        return [job for row in found if (job := _job_from(row)) is not None]

    async def _checks(self, agent: Agent, activity_id: str) -> list[Check]:
        deployment = Deployment(agent, Amount(), self._setup.patience)
        return await deployment.checks(needs_of(activity_id, {}))


def _job_from(row: dict[str, Any]) -> RemoteJob | None:
    job_id, started = str(row.get("id")), row.get("started")
    if not _ID.fullmatch(job_id):
        return None
    return RemoteJob(
        job_id,
        clip(visible(str(row.get("activity"))), 40),
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
