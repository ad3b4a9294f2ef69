"""One command of ``dld`` as a child process of the server, which a cancelled call ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import IO, Any

import anyio
import anyio.to_thread

from dld_tui.cli.jobs.progress import AS_EVENTS, progress_text
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UnavailableError
from dld_tui.core.events import Progress, event_from_line
from dld_tui.core.process.child import Child
from dld_tui.core.text import clip, visible
from dld_tui.targets.process import worker_command

MOST_OUTPUT = 64 << 20
"""Bytes of a JSON document."""
_MOST_NOTES, _NOTE = 20, 300
_LINE = 1 << 20
_LEAVE_S = 3.0
"""From the request to stop until SIGTERM."""
_PROGRESS_S = 0.2
"""From one message of progress to the next."""


@dataclass(frozen=True)
class Answer:
    """What a command said."""

    status: int
    """Its exit status, or the negative number of a signal."""
    document: Any
    """The JSON document that it printed; None if it printed none."""
    notes: list[str]
    """The first lines of standard error. Visible text."""


async def answer(
    words: Sequence[str], environment: Mapping[str, str], tell: Callable[[str], Awaitable[None]]
) -> Answer:
    """Run a command to its end; it ends with all that it has started if this is cancelled.

    Args:
        words: The command line behind ``dld``.
        environment: Variables in addition to those of this process.
        tell: Called with the progress in words, the newest five times a second.

    Raises:
        UnavailableError: No process can be started.
        ActivityError: It prints too much.
    """
    try:
        child = Child(
            worker_command("dld_tui.__main__", words),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **environment, AS_EVENTS: "1", "NO_COLOR": "1"},
        )
    except (OSError, ValueError) as error:
        raise UnavailableError(f"no process can be started: {error}") from None
    assert child.stdout is not None
    assert child.stderr is not None
    notes: list[str] = []
    newest = ""

    async def report() -> None:
        last_reported = ""
        while True:
            if newest != last_reported:
                last_reported = newest
                await tell(last_reported)
            await anyio.sleep(_PROGRESS_S)

    async def listen(errors: IO[bytes]) -> None:
        nonlocal newest
        async with _reader(errors) as lines:
            async for line in lines:
                text = line.decode("utf-8", "surrogateescape").rstrip()
                event = event_from_line(text)
                if isinstance(event, Progress):
                    newest = clip(visible(progress_text(event)), _NOTE)
                elif text and len(notes) < _MOST_NOTES:
                    notes.append(clip(visible(text), _NOTE, keep="middle"))

    data = bytearray()

    async def collect(output: IO[bytes]) -> None:
        async with _reader(output) as pieces:
            while piece := await pieces.read(_LINE):
                data.extend(piece)
                if len(data) > MOST_OUTPUT:
                    group.cancel_scope.cancel()

    try:
        async with anyio.create_task_group() as reporters:
            reporters.start_soon(report)
            async with anyio.create_task_group() as group:
                group.start_soon(listen, child.stderr)
                group.start_soon(collect, child.stdout)
            reporters.cancel_scope.cancel()
        if len(data) > MOST_OUTPUT:
            raise ActivityError(f"the result is longer than {fmt.size(MOST_OUTPUT)}")
        status = await anyio.to_thread.run_sync(child.wait, abandon_on_cancel=True)
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(_end, child)
    return Answer(status, _document(bytes(data)), notes)


def _end(child: Child) -> None:
    """End a command as Ctrl+C does, so that it cleans up; then by force."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_LEAVE_S)
    child.end()


def _document(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


@contextlib.asynccontextmanager
async def _reader(pipe: IO[bytes]) -> AsyncIterator[asyncio.StreamReader]:
    reader = asyncio.StreamReader(limit=_LINE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    try:
        yield reader
    finally:
        transport.close()
