"""An SSH server of asyncssh, for what OpenSSH's cannot do as a normal process.

OpenSSH checks passwords and asks questions through the system's accounts and PAM, which a test must
not touch; this one has a password of its own and asks what the test wants.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import asyncssh

from dld_tui.targets.ssh import loop


class Server(asyncssh.SSHServer):
    """One connection; what it accepts is said by its :class:`PasswordServer`."""

    def __init__(self, owner: PasswordServer) -> None:
        self._owner = owner

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._owner.connections.append(conn)
        conn.send_auth_banner("\x1b]0;owned\x07 welcome")

    def begin_auth(self, username: str) -> bool:
        return True

    def public_key_auth_supported(self) -> bool:
        return True  # and takes none

    def password_auth_supported(self) -> bool:
        return not self._owner.prompts

    def validate_password(self, username: str, password: str) -> bool:
        self._owner.passwords.append(password)
        return password == self._owner.password

    def kbdint_auth_supported(self) -> bool:
        return bool(self._owner.prompts)

    def get_kbdint_challenge(
        self, username: str, lang: str, submethods: str
    ) -> tuple[str, str, str, Sequence[tuple[str, bool]]]:
        return "", "", "en", self._owner.prompts

    def validate_kbdint_response(self, username: str, responses: Sequence[str]) -> bool:
        self._owner.passwords += responses
        return list(responses) == self._owner.answers


class PasswordServer:
    """Takes a password or, with prompts, answers; use it as a context manager."""

    def __init__(
        self,
        password: str = "",
        prompts: Sequence[tuple[str, bool]] = (),
        answers: Sequence[str] = (),
    ) -> None:
        self.password = password
        self.prompts = list(prompts)
        self.answers = list(answers)
        self.passwords: list[str] = []
        """What came, right or wrong."""
        self.connections: list[asyncssh.SSHServerConnection] = []
        self.port = 0
        self._key = asyncssh.generate_private_key("ssh-ed25519")
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._lock = threading.Lock()

    @property
    def known_line(self) -> str:
        return f"[127.0.0.1]:{self.port} {self._key.export_public_key().decode()}"

    def __enter__(self) -> PasswordServer:
        self._acceptor = loop.call(self._listen(), 60)
        self.port = self._acceptor.get_port()
        return self

    def __exit__(self, *unused: object) -> None:
        assert self._acceptor is not None
        loop.call(self._stop(self._acceptor), 60)

    async def _listen(self) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            "127.0.0.1",
            0,
            server_factory=lambda: Server(self),
            server_host_keys=[self._key],
            process_factory=_serve,
            encoding=None,
        )

    async def _stop(self, acceptor: asyncssh.SSHAcceptor) -> None:
        acceptor.close()
        for connection in self.connections:  # Python 3.12 and later wait for them
            connection.abort()
        await acceptor.wait_closed()


def _serve(process: asyncssh.SSHServerProcess[bytes]) -> None:
    process.stdout.write((process.command or "").encode())
    process.exit(0)
