from __future__ import annotations

import asyncio

import asyncssh
import pytest

from dld_tui.targets.ssh.errors import (
    AUTHENTICATION,
    HOST_KEY,
    ConnectionLostError,
    LinkError,
    from_network,
    not_permitted,
)
from dld_tui.targets.ssh.link import RetryPolicy, with_retries

QUICK = RetryPolicy(first=0.0, longest=0.0, total=60.0)


def outcome(*errors: Exception) -> tuple[str, list[str]]:
    """Return how work ends that raises these errors one by one, and what was told meanwhile."""
    waiting = iter(errors)
    told: list[str] = []

    async def work() -> str:
        error = next(waiting, None)
        if error is not None:
            raise error
        return "done"

    def tell(error: LinkError, wait: float) -> None:
        told.append(error.message)

    return asyncio.run(with_retries(work, QUICK, tell)), told


@pytest.mark.parametrize("stage", [HOST_KEY, AUTHENTICATION])
def test_a_line_that_breaks_again_while_it_is_made_is_waited_for(stage: str) -> None:
    broken = from_network(asyncssh.ConnectionLost("Connection lost"), "box", "box", stage)
    late = from_network(TimeoutError(), "box", "box", stage)
    reset = from_network(ConnectionResetError("reset"), "box", "box", stage)
    done, told = outcome(ConnectionLostError("box"), broken, late, reset)
    assert done == "done"
    assert len(told) == 4


def test_a_refusal_ends_the_waiting() -> None:
    refused = not_permitted("box", ["publickey"], [], [], "")
    with pytest.raises(LinkError, match="authentication failed"):
        outcome(ConnectionLostError("box"), refused)
    closed = from_network(
        asyncssh.ProtocolError("nonsense"), "box", "box", AUTHENTICATION
    )  # fmt: skip
    with pytest.raises(LinkError, match="nonsense"):
        outcome(ConnectionLostError("box"), closed)


def test_the_first_connection_is_tried_once() -> None:
    with pytest.raises(LinkError, match="in time"):
        outcome(from_network(TimeoutError(), "box", "box", HOST_KEY))
