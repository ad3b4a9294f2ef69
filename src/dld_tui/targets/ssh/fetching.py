"""Bringing the results of a job from a target to the paths that were asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from dld_tui.core.errors import ActivityError, DldError, InputError
from dld_tui.core.events import Event, Log
from dld_tui.core.report.relocation import relocate
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.jobs_store import StoredJob
from dld_tui.targets.ssh.patience import Patience
from dld_tui.targets.ssh.transfer import Amount, download


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
