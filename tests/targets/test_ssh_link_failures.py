from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncssh
import pytest

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import Nobody
from dld_tui.targets.ssh import link as link_module
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.errors import (
    AUTHENTICATION,
    CONNECT,
    HOST_KEY,
    RESOLVE,
    ConnectionLostError,
    LinkError,
    from_network,
    not_permitted,
)
from dld_tui.targets.ssh.link import Link, RetryPolicy, with_retries
from dld_tui.targets.ssh.route import route
from tests.support.asker import Answers
from tests.support.jobs import wait_until
from tests.support.links import refused, says, write_config
from tests.support.recorded import Recorded
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import Links, Servers, at, behind
from tests.support.sshd import Sshd, free_port


def test_a_server_that_dies_is_noticed_and_its_return_too(
    link: Links, connection: Connection, own_sshd: Servers, tmp_path: Path
) -> None:
    server = own_sshd()
    there = at(server, connection)
    made = link(there)
    running = loop.submit(made.run(["sh", "-c", f"touch {tmp_path}/begun; sleep 60"]))
    wait_until((tmp_path / "begun").exists, "it runs")
    server.kill()
    with pytest.raises(ConnectionLostError):
        running.result(60)
    assert not made.is_open
    server.start()
    assert says(made) == "here"


def test_a_server_that_starts_no_command_is_no_lost_connection(
    link: Links, connection: Connection, own_sshd: Servers
) -> None:
    made = link(at(own_sshd(MaxSessions="0"), connection))
    with pytest.raises(LinkError, match="the target cannot start a command: ") as caught:
        says(made)
    assert (caught.value.stage, type(caught.value)) == (AUTHENTICATION, LinkError)
    assert made.is_open


def test_a_pulled_cable_is_noticed_within_seconds(
    link: Links,
    connection: Connection,
    sshd: Sshd,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert link_module.KEEPALIVE_S * (link_module.KEEPALIVES + 1) <= 10
    monkeypatch.setattr(link_module, "KEEPALIVE_S", 0.1)
    with SlowLine(sshd.port) as line:
        made = link(behind(connection, line))
        assert says(made) == "here"
        running = loop.submit(made.run(["sleep", "600"]))
        line.cut()
        with pytest.raises(ConnectionLostError):  # of its own accord: nothing else ends this
            running.result(120)
        line.mend()
        assert says(made) == "here"


@pytest.mark.parametrize(
    ("error", "stage", "passes", "message"),
    [
        (socket.gaierror(-2, "unknown"), RESOLVE, True, "the host 'box' is not known"),
        (TimeoutError(), AUTHENTICATION, True, "the machine does not answer in time"),
        (ConnectionRefusedError(), CONNECT, True, "the connection is refused"),
        (asyncssh.ChannelOpenError(1, "no"), CONNECT, True, "before it cannot reach it: no"),
        (asyncssh.KeyExchangeFailed("x"), HOST_KEY, False, "no common encryption algorithm: x"),
        (asyncssh.DisconnectError(2, "Too many authentication failures"), AUTHENTICATION, False,
         "the server ended the authentication"),
        (asyncssh.DisconnectError(2, "bye"), AUTHENTICATION, False, "the connection is lost: bye"),
        (asyncssh.ConnectionLost("cut"), AUTHENTICATION, True, "the connection is lost: cut"),
        (OSError(errno.EHOSTUNREACH, "no"), CONNECT, True, "there is no route to the machine"),
        (OSError(errno.EIO, "bad"), AUTHENTICATION, True, "the connection fails: bad"),
        (ValueError("odd"), AUTHENTICATION, False, "the connection fails: odd"),
    ],
)  # fmt: skip
def test_each_error_of_a_connection_has_its_step(
    error: Exception, stage: str, passes: bool, message: str
) -> None:
    found = from_network(error, "me@box", "box", AUTHENTICATION)
    assert (found.stage, found.where, found.passes) == (stage, "me@box", passes)
    assert message in found.message
    said = from_network(error, "me@box", "box", AUTHENTICATION, "no route")
    assert (said.stage, said.message) == (CONNECT, "the proxy command says: no route")


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


@pytest.mark.parametrize(
    ("total", "waits"), [(0.5, []), (6.9, [1, 2]), (7.0, [1, 2, 4]), (11.0, [1, 2, 4, 4])]
)
def test_each_wait_is_longer_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch, total: float, waits: list[float]
) -> None:
    """A connection that was steady for long begins anew."""
    clock, waited, works = [0.0], list[float](), iter([1000.0])
    monkeypatch.setattr(link_module, "time", SimpleNamespace(monotonic=lambda: clock[0]))

    async def sleep(seconds: float) -> None:
        waited.append(seconds)
        clock[0] += seconds

    async def work() -> None:
        if len(waited) == 2:
            clock[0] += next(works, 0.0)
        raise ConnectionLostError("box")

    monkeypatch.setattr(asyncio, "sleep", sleep)
    with pytest.raises(ConnectionLostError):
        asyncio.run(with_retries(work, RetryPolicy(1.0, 4.0, total), lambda *_: None))
    assert waited == (waits[:2] + waits if len(waits) > 1 else waits)


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


@pytest.mark.parametrize(
    ("changes", "stage", "said"),
    [
        ({"port": None}, CONNECT, "refused"),
        ({"host": "no-such-host.invalid"}, RESOLVE, "no-such-host.invalid"),
        ({"proxy_command": "echo no route >&2; exit 1"}, CONNECT,
         "the proxy command says: no route"),
    ],
    ids=["nobody listens", "an unknown name", "a proxy command that fails"],
)  # fmt: skip
def test_where_a_connection_fails(
    link: Links, connection: Connection, changes: dict[str, Any], stage: str, said: str
) -> None:
    own = {"port": free_port()} if changes == {"port": None} else changes
    error = refused(link(changed(connection, **own)))
    assert error.stage == stage
    assert said in str(error)


def test_a_proxy_command_runs_for_no_hostile_name(
    link: Links, connection: Connection, tmp_path: Path
) -> None:
    mark = tmp_path / "mark"
    hostile = changed(connection, user=f"$(touch${{IFS}}{mark})", proxy_command="echo %r")
    with pytest.raises(UsageError, match="user"):
        loop.call(link(hostile).open(), 60)
    assert not mark.exists()


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [("Host *\n  Port many\n", InputError, "config line 2"),
     ("Host a\n  ProxyJump b\nHost b\n  ProxyJump a\n", UsageError, "cycle")],
)  # fmt: skip
def test_a_broken_configuration_is_named(
    link: Links, text: str, kind: type[Exception], said: str
) -> None:
    write_config(text)
    with pytest.raises(kind, match=said):
        loop.call(link(Connection("t", "a")).open(), 60)


KEY = Path("/keys/id")
REFUSED: dict[str, tuple[str, dict[str, Any]]] = {
    "a key was offered": ("auto", {"files": [KEY], "tried": ["key /keys/id"]}),
    "a key was wanted": ("key", {"files": [KEY], "tried": ["key /keys/id"]}),
    "no key": ("key", {}),
    "no key at all": ("auto", {}),
    "the agent": ("agent", {"tried": ["2 keys of the agent"]}),
    "no agent": ("agent", {"notes": ["no SSH agent answers"]}),
    "a locked key": ("auto", {"locked": ["/keys/id"], "notes": ["no passphrase", "no passphrase"]}),
    "a password": ("password", {"tried": ["the password"] * 2, "tried_password": True}),
    "a password and a key": ("auto", {"files": [KEY], "tried_password": True,
                                      "tried": ["key /keys/id", "the password"]}),
    "no keys are taken": ("key", {"methods": ["password"]}),
    "no keys are taken of an agent": ("agent", {"methods": ["password", "hostbased"]}),
    "no keys are taken of anything": ("auto", {"methods": ["password"]}),
    "no method is told": ("key", {"methods": []}),
    "nobody answered": ("password", {"gave_up": True}),
}  # fmt: skip


def test_what_to_do_about_a_refusal(recorded: Recorded) -> None:
    box = Connection("box", "orin.lan", user="me", jump="gate:2222", config=False)
    texts = {}
    for name, (auth, changes) in REFUSED.items():
        *_, jump, own = route(changed(box, auth=auth))
        known = {"files": [], "locked": [], "methods": ["publickey"], "tried": [], "notes": [],
                 "tried_password": False, "gave_up": False}  # fmt: skip
        client: Any = SimpleNamespace(**known | changes)
        for hop in (own, replace(jump, user="me")) if auth == "auto" else (own,):
            for asker in (Answers(), Nobody()) if client.gave_up else (Answers(),):
                error = Link(box, asker)._not_permitted(hop, client)
                texts[f"{name}, {hop.alias}, {type(asker).__name__}"] = f"{error}"
    recorded("ssh_refused", texts)
