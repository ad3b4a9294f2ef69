"""Talking to the agent on a target: one command is one channel of the connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import asyncssh

from dld_tui.core.errors import ActivityError, DldError, UnavailableError
from dld_tui.core.text import clip, visible
from dld_tui.targets.ssh import bootstrap
from dld_tui.targets.ssh.bootstrap import Machine
from dld_tui.targets.ssh.errors import ConnectionLostError
from dld_tui.targets.ssh.link import MOST_OUTPUT, QUIET_SHELL, Finished, Link
from dld_tui.targets.ssh.remote.replies import last_answer, new_mark
from dld_tui.targets.ssh.route import command_line

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126
_MOST_NOISE = 1 << 20
"""Bytes that a login shell may print before our program does."""


class AgentError(ActivityError):
    """The agent refuses, and says why.

    Args:
        message: Why.
        kind: As :class:`dld_tui.targets.ssh.remote.replies.RefusedError` has it.
    """

    def __init__(self, message: str, *, kind: str, where: str, hint: str | None) -> None:
        super().__init__(message, where=where, hint=hint)
        self.kind = kind


class Stream:
    """A running command of the agent: it has answered, and data may follow."""

    def __init__(self, process: asyncssh.SSHClientProcess[bytes], where: str, mark: str) -> None:
        self.process = process
        self.where = where
        self._mark = mark
        self._rest = bytearray()

    async def next_answer(self) -> dict[str, Any]:
        """Wait for the next answer and return it; other output is skipped.

        Raises:
            AgentError: The agent refused.
            ConnectionLostError: The connection ended before one came.
        """
        skipped = 0
        while True:
            end = self._rest.find(b"\n")
            if end >= 0:
                line = bytes(self._rest[: end + 1])
                del self._rest[: end + 1]
                answer = last_answer(line, self._mark)
                if answer is not None:
                    return _checked(answer, self.where)
                skipped += len(line)
            else:
                data = await self._read()
                if not data:
                    raise ConnectionLostError(self.where)
                self._rest += data
            if skipped > _MOST_NOISE or len(self._rest) > MOST_OUTPUT:
                message = "its login shell prints endless output"
                raise UnavailableError(message, where=self.where, hint=QUIET_SHELL)

    async def read(self) -> bytes:
        """Return the next data; nothing at the end.

        Raises:
            ConnectionLostError: The connection is lost.
        """
        if self._rest:
            data = bytes(self._rest)
            self._rest.clear()
            return data
        return await self._read()

    async def write(self, data: bytes | memoryview) -> None:
        """Send data, and wait until there is room for more.

        Raises:
            ConnectionLostError: The connection is lost.
        """
        try:
            self.process.stdin.write(data)  # type: ignore[arg-type]
            await self.process.stdin.drain()
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLostError(self.where) from error

    async def _read(self) -> bytes:
        try:
            return await self.process.stdout.read(1 << 18)
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLostError(self.where) from error

    def close(self) -> None:
        """End the command."""
        self.process.close()


class Agent:
    """The agent on one target.

    Args:
        link: The line to it.
    """

    def __init__(self, link: Link) -> None:
        self.link = link
        self.python = link.connection.python
        self.machine: Machine | None = None
        self._is_carried = False
        """Whether each command brings our package along: that on the disk is missing or damaged."""

    @property
    def where(self) -> str:
        """How the target is called in messages."""
        return self.link.where

    @property
    def root(self) -> str:
        """The deployment folder there."""
        assert self.machine is not None
        return self.machine.root

    @property
    def package(self) -> str:
        """The folder of our package there."""
        return f"{self.root}/package/{bootstrap.package_digest()}"

    async def probe(self, ready: str = "") -> Machine:
        """Probe the target; our package is checked there, too.

        Args:
            ready: The name of an environment that may be known to be complete.

        Raises:
            UnavailableError: Its shell runs nothing, it has no Python, or too old a one; or it
                cannot be reached.
        """
        await self.link.greet()
        directory, mark = self.link.connection.directory, new_mark()
        arguments = bootstrap.probe_arguments(self.python, directory, ready, mark)
        done = await self.link.run(arguments, environment=self._cache_variable())
        data = last_answer(done.stdout, mark)
        if data is None:
            raise self._no_python(done)
        self.machine = bootstrap.machine_from(data, self.where)
        self._is_carried = not self.machine.package
        return self.machine

    async def make_ready(self) -> None:
        """Look at the target, and send our package where this version of it is not there.

        Where the disk is full, commands bring the package along: results can be fetched, and space
        can be freed.

        Raises:
            UnavailableError: The target has no Python that serves, or cannot be reached.
        """
        machine = await self.probe()
        if not machine.package:
            with contextlib.suppress(AgentError):
                await self.send_package()

    async def send_package(self) -> int:
        """Send our package; return how many bytes that were.

        Raises:
            AgentError: It cannot be written there.
        """
        archive, mark = await asyncio.to_thread(bootstrap.package_archive), new_mark()
        words = [self.root, bootstrap.package_digest(), mark]
        done = await self.link.run([self.python, "-c", bootstrap.UNPACK, *words], input=archive)
        data = last_answer(done.stdout, mark)
        if data is None or "unpacked" not in data:
            text = str((data or {}).get("error", "")) or done.error_text[-300:] or "no answer"
            raise AgentError(
                f"the dld package cannot be copied there: {clip(visible(text), 300)}",
                kind="system",
                where=self.where,
                hint="Free some space there, or choose another folder with --directory",
            )
        self._is_carried = False
        return len(archive)

    async def call(
        self, name: str, /, *, input: bytes | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Run a command of the agent to its end and return its answer.

        Raises:
            AgentError: It refuses.
            UnavailableError: It does not answer.
        """
        mark, carried = new_mark(), await self._carried()
        command = self._command(name, arguments, mark, len(carried))
        done = await self.link.run(command, input=carried + (input or b""))
        data = last_answer(done.stdout, mark)
        if data is None:
            raise self._no_answer(done)
        return _checked(data, self.where)

    @contextlib.asynccontextmanager
    async def stream(self, name: str, /, **arguments: Any) -> AsyncIterator[Stream]:
        """Start a long-running command of the agent, and end it with the block.

        Raises:
            ConnectionLostError: The connection is lost.
        """
        line = await self.link.open()
        mark, carried = new_mark(), await self._carried()
        command = command_line(self._command(name, arguments, mark, len(carried)))
        try:
            # Its errors are discarded: unread, they would fill a window and block the connection.
            process = await line.create_process(command, encoding=None, stderr=asyncssh.DEVNULL)
        except (asyncssh.Error, OSError) as error:
            raise ConnectionLostError(self.where) from error
        stream = Stream(process, self.where, mark)
        try:
            await stream.write(carried)
            yield stream
        finally:
            stream.close()

    async def _carried(self) -> bytes:
        return await asyncio.to_thread(bootstrap.package_archive) if self._is_carried else b""

    def _command(self, name: str, arguments: dict[str, Any], mark: str, carried: int) -> list[str]:
        return bootstrap.agent_arguments(
            self.python, self.root, name, json.dumps(arguments), mark, carried
        )

    def _cache_variable(self) -> dict[str, str]:
        value = self.link.connection.environment.get("NV_DLD_CACHE_DIR")
        return {} if value is None else {"NV_DLD_CACHE_DIR": value}

    def _no_python(self, done: Finished) -> DldError:
        if done.code in (_NOT_FOUND, _NOT_EXECUTABLE):
            return UnavailableError(
                f"it has no {visible(self.python)}",
                where=self.where,
                hint=f"Install one there ({bootstrap.INSTALL_PYTHON}), or name another:"
                " dld target add … --python PATH",
            )
        return self._no_answer(done)

    def _no_answer(self, done: Finished) -> DldError:
        lines = done.error_text.strip().splitlines() or done.text.strip().splitlines()
        last_line = clip(visible(lines[-1]), 300) if lines else "nothing"
        return UnavailableError(
            f"its Python ended with status {done.code} and said: {last_line}", where=self.where
        )


def _checked(data: dict[str, Any], where: str) -> dict[str, Any]:
    if "error" in data:
        raise AgentError(
            clip(visible(str(data["error"])), 500),
            kind=str(data.get("kind", "")),
            where=where,
            hint=clip(visible(str(data.get("hint", ""))), 300) or None,
        )
    return data


def strings(value: Any) -> list[str]:
    """Return the texts of a list that a target sent; other items are left out."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
