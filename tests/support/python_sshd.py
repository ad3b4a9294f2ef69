"""An SSH server of asyncssh in a process of its own, for where OpenSSH's is not installed.

``python python_sshd.py CONFIG`` reads what of ``sshd_config`` tests/support/sshd.py writes, checks
keys and certificates, runs commands with the shell, and forwards connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import asyncssh

Handler: TypeAlias = "Callable[[asyncssh.SSHServerProcess[bytes], str], Awaitable[None]]"

SETTINGS = {"TrustedUserCAKeys"}
"""What it can do besides."""


_OWN = ("SSH_AUTH_SOCK", "SHLVL")
"""With the level of the shell, bash would not read its start-up file."""


class _Server(asyncssh.SSHServer):
    """One connection; it may go on to any port."""

    def connection_requested(self, *unused: object) -> bool:
        return True


def environment(process: asyncssh.SSHServerProcess[bytes], home: str) -> dict[str, str]:
    """Return the environment of a command."""
    own = {name: value for name, value in os.environ.items() if name not in _OWN}
    client = "{} {}".format(*process.get_extra_info("peername"))
    port = "{} {}".format(*process.get_extra_info("sockname"))
    return own | {"HOME": home, "SSH_CLIENT": client, "SSH_CONNECTION": f"{client} {port}"}


async def serve(process: asyncssh.SSHServerProcess[bytes], home: str) -> None:
    """Run the command of a connection with the shell."""
    child = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", process.command or "", stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True, cwd=home,
        env=environment(process, home),
    )  # fmt: skip
    try:
        await attend(process, child.stdin, child.stdout, child.stderr, child.wait())
    finally:
        if child.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
        child._transport.close()  # type: ignore[attr-defined]


async def attend(
    process: asyncssh.SSHServerProcess[bytes],
    stdin: Any,
    stdout: Any,
    stderr: Any,
    end: Awaitable[int],
) -> None:
    """Pass on what a command reads and prints, and tell how it ends."""
    fed = asyncio.create_task(_pass_on(process.stdin, stdin))
    await asyncio.gather(_pass_on(stdout, process.stdout), _pass_on(stderr, process.stderr))
    code = await end
    with contextlib.suppress(OSError):
        if code < 0:
            process.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))
        else:
            process.exit(code)
    await fed


async def _pass_on(source: Any, sink: Any) -> None:
    """Copy until the end, or until nobody reads any more; as OpenSSH, kill nobody."""
    with contextlib.suppress(OSError, asyncssh.Error):
        while data := await source.read(1 << 16):
            sink.write(data)
            await sink.drain()
    if isinstance(sink, asyncio.StreamWriter):
        sink.close()


async def listen(config: Mapping[str, str], handler: Handler = serve) -> None:
    """Serve until it is cancelled.

    Args:
        config: Of ``sshd_config``.
        handler: Of each command.
    """
    lines = Path(config["AuthorizedKeysFile"])
    authority = config.get("TrustedUserCAKeys")
    home = config["SetEnv"].partition("=")[2]
    connections = set[asyncssh.SSHServerConnection]()

    def keys() -> asyncssh.SSHAuthorizedKeys:
        text = lines.read_text()
        if authority:
            text += f"cert-authority {Path(authority).read_text()}"
        return asyncssh.import_authorized_keys(text)

    class Server(_Server):
        def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
            self.connection = conn
            connections.add(conn)

        def connection_lost(self, exc: Exception | None) -> None:
            connections.discard(self.connection)

        def begin_auth(self, username: str) -> bool:
            self.connection.set_authorized_keys(keys())
            return True

    acceptor = await asyncssh.listen(
        config["ListenAddress"], int(config["Port"]), server_factory=Server,
        server_host_keys=[config["HostKey"]], encoding=None, agent_forwarding=False,
        process_factory=lambda process: handler(process, home),
        # Without a file at first, it would offer no keys.
        authorized_client_keys=keys(), password_auth=False, kbdint_auth=False,
    )  # fmt: skip
    try:
        await acceptor.wait_closed()
    finally:
        acceptor.close()
        for connection in [*connections]:
            connection.abort()


if __name__ == "__main__":
    rows = Path(sys.argv[1]).read_text().splitlines()
    asyncio.run(listen(dict(row.split(" ", 1) for row in rows)))
