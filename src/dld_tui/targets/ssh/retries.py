"""How long a lost connection is waited for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from dld_tui.targets.ssh.errors import ConnectionLostError, LinkError

T = TypeVar("T")

_STEADY_S = 5.0
"""A connection that stood so long was a good one: its loss is a new one."""


@dataclass(frozen=True)
class Patience:
    """Seconds."""

    first: float = 0.5
    """Until the first attempt to connect again; each later wait is twice as long."""
    longest: float = 15.0
    """Between two attempts."""
    total: float = 600.0
    """From the loss until it is given up."""
    silence: float = 8.0
    """Without a sign of life of a job that is followed, until the connection counts as lost."""


async def persist(
    work: Callable[[], Awaitable[T]],
    patience: Patience,
    on_lost: Callable[[LinkError, float], None],
) -> T:
    """Do something again whenever the connection is lost meanwhile.

    Args:
        work: What to do; it takes up what was reached before, and connects by itself.
        patience: How long to go on.
        on_lost: Told what happened and how long the wait is.

    Raises:
        LinkError: The connection does not come back, or the first one fails.
    """
    lost_at: float | None = None
    wait = patience.first
    while True:
        began = time.monotonic()
        try:
            return await work()
        except LinkError as error:
            now = time.monotonic()
            if isinstance(error, ConnectionLostError):
                if lost_at is None or now - began > _STEADY_S:
                    lost_at, wait = now, patience.first
            elif lost_at is None or not error.passes:
                raise
            if now + wait - lost_at > patience.total:
                raise
            on_lost(error, wait)
            await asyncio.sleep(wait)
            wait = min(patience.longest, 2 * wait)
