"""What asyncssh asks while it connects: is this the host, and who are we.

The order is that of OpenSSH: keys of the agent, key files, then what the server asks for. Files
with a passphrase come after those without, and are opened only when the server takes the key:
nobody is asked in vain.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import asyncssh

from dld_tui.core.settings.paths import short
from dld_tui.core.settings.prompts import Asker
from dld_tui.core.settings.secrets import Secrets, passphrase_name, password_name
from dld_tui.core.text import visible
from dld_tui.targets.ssh.errors import AUTHENTICATION, HOST_KEY
from dld_tui.targets.ssh.known_hosts import KeyFiles, locked_keys, public_data
from dld_tui.targets.ssh.loop import in_thread
from dld_tui.targets.ssh.route import Hop

_TRIES = 3
"""How often a person may mistype."""
_WITH_QUESTIONS = ("auto", "password")
"""The ways of authentication that ask for a password or answer the server's questions."""
_LONGEST_QUESTION = 300


class Client(asyncssh.SSHClient):
    """The answers for one machine.

    Args:
        asker: Who is asked.
        secrets: Where what is known is, and what was right will be kept.
        from_keyring: Whether the system's keyring is looked into.
        on_step: Told the address and the step that begins.
    """

    def __init__(
        self,
        hop: Hop,
        asker: Asker,
        secrets: Secrets,
        from_keyring: bool,
        on_step: Callable[[str, str], None] | None = None,
    ) -> None:
        self.stage = ""
        self.moves = 0
        """Counts what the server does, to tell a silent one from a slow one."""
        self.is_asking = False
        self.shown_key: asyncssh.SSHKey | None = None
        """The host key that is not among the known ones."""
        self.tried: list[str] = []
        self.notes: list[str] = []
        self.methods: list[str] = []
        self.given: dict[str, str] = {}
        """Secrets that were used, by name; right ones if the connection is opened."""
        self.gave_up = False
        """Whether the person did not answer the last question."""
        self._hop = hop
        self._asker = asker
        self._secrets = secrets
        self._from_keyring = from_keyring
        self._on_step = on_step
        self._connection: asyncssh.SSHClientConnection | None = None
        self._agent: asyncssh.SSHAgentClient | None = None
        self._turns = [self._agent_keys, self._plain_keys, self._locked_keys]
        self._files: KeyFiles | None = None
        self._offered: set[bytes] = set()
        self._asked = 0
        self._has_no_password = False

    def begin(self, stage: str) -> None:
        """Note that a step begins; the one that is under way may be named again."""
        self.moves += 1
        if stage != self.stage:
            self.stage = stage
            if self._on_step is not None:
                self._on_step(self._hop.address, stage)

    # -- the host -------------------------------------------------------------------------------

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Note that the machine answers."""
        self.begin(HOST_KEY)
        self._connection = conn

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Refuse a key that is not among the known ones, but note it, so that it can be asked."""
        self.shown_key = key
        return False

    # -- who we are -----------------------------------------------------------------------------

    async def public_key_auth_requested(self) -> list[asyncssh.SSHKeyPair] | None:
        """Return the next keys: those of the agent, files, then files with a passphrase."""
        self._begin_authentication()
        while self._turns:
            pairs = await self._turns.pop(0)()
            if pairs:
                return pairs
        return None

    async def password_auth_requested(self) -> str | None:
        """Return the password, asked for when it is not known."""
        self._begin_authentication()
        return await self._password() if self._hop.auth in _WITH_QUESTIONS else None

    def kbdint_auth_requested(self) -> str | None:
        """Let the server ask its questions, unless the person gave up."""
        self._begin_authentication()
        allowed = self._hop.auth in _WITH_QUESTIONS and self._asked < _TRIES
        return "" if allowed and not self._has_no_password else None

    async def kbdint_challenge_received(
        self, name: str, instructions: str, lang: str, prompts: Sequence[tuple[str, bool]]
    ) -> list[str] | None:
        """Answer the questions of the server; a lone one for a password is remembered as such."""
        if not prompts:
            return []
        if len(prompts) == 1 and not prompts[0][1] and "password" in prompts[0][0].lower():
            password = await self._password()
            return None if password is None else [password]
        self._asked += 1
        self.tried.append("the answers to its questions")
        answers = []
        for prompt, _ in prompts:
            text = visible(f"{self._hop.address} asks: {prompt.strip()}")[:_LONGEST_QUESTION]
            answer = await self._ask(text)
            if answer is None:
                self._has_no_password = True
                return None
            answers.append(answer)
        return answers

    def auth_completed(self) -> None:
        """Note that we are in; a server may ask for nothing at all."""
        self.begin(AUTHENTICATION)

    def close(self) -> None:
        """Close the line to the agent."""
        if self._agent is not None:
            self._agent.close()

    # -- helpers --------------------------------------------------------------------------------

    def _begin_authentication(self) -> None:
        self.begin(AUTHENTICATION)
        if self._connection is not None:
            self.methods = list(self._connection.get_server_auth_methods())

    async def _agent_keys(self) -> list[asyncssh.SSHKeyPair]:
        if self._hop.auth not in ("auto", "agent", "key"):
            return []
        try:
            self._agent = await asyncssh.connect_agent(self._hop.agent or "")
            pairs = list(await self._agent.get_keys())
        except (OSError, ValueError) as error:
            if self._hop.auth == "agent":
                self.notes.append(f"no SSH agent answers ({visible(str(error))})")
            return []
        if self._hop.keys_only and self._hop.auth != "agent":
            wanted = await in_thread(public_data, self._hop.keys)
            pairs = [pair for pair in pairs if pair.public_data in wanted]
        if pairs:
            self.tried.append(f"{len(pairs)} keys of the agent")
        elif self._hop.auth == "agent":
            self.notes.append("the agent holds no key")
        self._offered = {pair.public_data for pair in pairs}
        return [*pairs]

    async def _plain_keys(self) -> list[asyncssh.SSHKeyPair]:
        """Return the keys of files without a passphrase."""
        if self._hop.auth not in ("auto", "key"):
            return []
        self._files = await in_thread(KeyFiles, self._hop)
        self.notes += self._files.notes
        self.tried += [f"key {short(path)}" for path in self._files.open]
        return self._files.pairs

    async def _locked_keys(self) -> list[asyncssh.SSHKeyPair]:
        """Return the keys of files with a passphrase; those of the agent have been offered."""
        pairs: list[asyncssh.SSHKeyPair] = []
        for path, public in self._files.locked.items() if self._files else ():
            self.tried.append(f"key {short(path)}")
            if public is None:
                try:
                    pairs += asyncssh.load_keypairs([await self._unlocked(path)])
                except ValueError:
                    continue
            elif public.public_data not in self._offered:
                unlock = functools.partial(self._unlocked, path)
                pairs += locked_keys(public, self._hop.certificates, unlock)
        return pairs

    async def _unlocked(self, path: Path) -> asyncssh.SSHKey:
        """Return the key of a file with a passphrase.

        Raises:
            ValueError: It stays closed.
        """
        name = passphrase_name(path)
        question = f"Passphrase of the key {short(path)}"
        passphrase = self._secrets.get(name, from_keyring=self._from_keyring)
        for attempt in range(_TRIES + 1):
            if passphrase is None:
                passphrase = await self._ask(question)
            if passphrase is None:
                self.gave_up = True
                break
            try:
                key = await in_thread(asyncssh.read_private_key, path, passphrase)
            except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError):
                self._secrets.forget(name, in_keyring=self._from_keyring)
                question = f"Wrong. Passphrase of the key {short(path)}"
                passphrase = None
                if attempt == _TRIES - 1:
                    break
                continue
            self.gave_up = False
            self.given[name] = passphrase
            return key
        self.notes.append(f"the key {short(path)} stays closed without its passphrase")
        raise ValueError("the key stays closed")

    async def _password(self) -> str | None:
        """Return the password that is known, else ask; one that was refused is forgotten."""
        if self._has_no_password or self._asked >= _TRIES:
            return None
        name = password_name(self._hop.address)
        known = None
        if name in self.given or self._asked:
            self._secrets.forget(name, in_keyring=self._from_keyring)
        else:
            known = self._secrets.get(name, from_keyring=self._from_keyring)
        if known is None:
            again = "Wrong. " if self.given.pop(name, None) is not None else ""
            self._asked += 1
            known = await self._ask(visible(f"{again}Password for {self._hop.address}"))
        self.gave_up = self._has_no_password = known is None
        if known is None:
            self.notes.append("no answer was given")
            return None
        self.tried.append("the password")
        self.given[name] = known
        return known

    async def _ask(self, question: str) -> str | None:
        self.is_asking = True
        try:
            return await in_thread(self._asker.secret, visible(question))
        finally:
            self.is_asking = False
            self.moves += 1
