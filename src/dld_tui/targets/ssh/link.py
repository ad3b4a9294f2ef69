"""The connection to one target: opened on demand, through its jump hosts, to run commands on.

asyncssh's questions while connecting are answered by :class:`Client`, in the order of OpenSSH: keys
of the agent, key files, then what the server asks for. Files with a passphrase come after those
without, and are opened only if the server accepts the key: no user is asked in vain.

All of it runs on the loop of :mod:`.loop`; blocking code calls ``loop.call(link.run([...]))``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import asyncssh
from asyncssh.public_key import get_default_public_key_algs

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError, UnavailableError
from dld_tui.core.process.paths import short
from dld_tui.core.settings.saved_targets import DEFAULT_PORT, Connection
from dld_tui.core.settings.secrets import (
    SECRETS,
    Asker,
    Nobody,
    Secrets,
    passphrase_name,
    password_name,
)
from dld_tui.core.text import clip, visible
from dld_tui.targets.ssh import known_hosts
from dld_tui.targets.ssh.errors import (
    AUTHENTICATION,
    CONNECT,
    HOST_KEY,
    RESOLVE,
    ConnectionLostError,
    LinkError,
    from_network,
    not_permitted,
    offered_too_many,
)
from dld_tui.targets.ssh.known_hosts import KeyFiles, locked_keys, new_key, public_data, trust
from dld_tui.targets.ssh.loop import in_thread, within
from dld_tui.targets.ssh.remote.replies import new_mark
from dld_tui.targets.ssh.route import Hop, Proxy, command_line, proxy_arguments, route

KEEPALIVE_S = 2.0
KEEPALIVES = 3
"""A line that says nothing is lost after ``KEEPALIVE_S * (KEEPALIVES + 1)`` seconds."""
_LEAVE_S = 2.0
"""For the good manners of a close; a machine that is gone has none."""
_CLOSING_S = 0.1
"""How long a connection takes to be closed that is about to be."""
_CIPHERS = "^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
"""Before those of the library: with the processor's own AES it sends nearly twice as fast."""
MOST_OUTPUT = 16 << 20
"""Bytes that a command may print; it is kept in memory."""
QUIET_SHELL = "Look at what the start-up files of its shell print, such as ~/.bashrc"
SHELL_S = 10.0
"""Until a shell counts as one that hangs."""
_CHUNK = 1 << 18
_LOGIN_S = 300.0
"""A person may have to look up a password."""

# Without a handler Python would write the warnings of a library to the terminal.
logging.getLogger("asyncssh").addHandler(logging.NullHandler())
logging.getLogger("asyncssh").propagate = False
_BROKEN_PIPE = "raised exception."
# asyncio warns of each packet to a machine that is gone; that it is gone is said by ours.
logging.getLogger("asyncio").addFilter(
    lambda record: not record.getMessage().endswith(_BROKEN_PIPE)
)


@dataclass(frozen=True)
class Finished:
    """How a command on the target ended."""

    stdout: bytes
    stderr: bytes
    code: int | None
    """The exit status, or the negative number of a signal; None when the server does not say."""

    @property
    def text(self) -> str:
        """Its output as text; it is foreign."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def error_text(self) -> str:
        """Its standard error as text; it is foreign."""
        return self.stderr.decode("utf-8", "surrogateescape")


class Link:
    """The connection to one target.

    Args:
        connection: Its settings.
        asker: Asks the user.
        secrets: The store of passwords and passphrases; by default that of this process.
        on_step: Called with ``(address, stage)`` when a machine on the way begins a step.
    """

    def __init__(
        self,
        connection: Connection,
        asker: Asker,
        secrets: Secrets | None = None,
        on_step: Callable[[str, str], None] | None = None,
    ) -> None:
        self.connection = connection
        self._asker = asker
        self._secrets = SECRETS if secrets is None else secrets
        self._on_step = on_step
        self._lock: asyncio.Lock | None = None
        self._lines: list[asyncssh.SSHClientConnection] = []
        """One per machine on the way; the last is the target."""
        self._proxy: Proxy | None = None

    def __repr__(self) -> str:
        """Return the target's name."""
        return f"<Link {self.connection.name}>"

    @property
    def where(self) -> str:
        """How the target is called in messages."""
        return f"target {self.connection.name} ({self.connection.address})"

    @property
    def is_open(self) -> bool:
        """Whether the connection is up, as far as is known."""
        return bool(self._lines) and not any(line.is_closed() for line in self._lines)

    async def open(self) -> asyncssh.SSHClientConnection:
        """Return the connection, opened when it is not, or no longer, open.

        Raises:
            LinkError: The target cannot be reached, is not the known one, or refuses us.
            CancelledError: The person gave up.
            InputError: The configuration of OpenSSH cannot be read.
        """
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:
            if not self.is_open:
                await self._close_lines()
                try:
                    for hop in route(self.connection):
                        self._lines.append(await self._open_hop(hop))
                except BaseException:
                    await self._close_lines()
                    raise
            return self._lines[-1]

    async def run(
        self,
        arguments: Sequence[str],
        input: bytes | None = None,
        *,
        launched: bool = False,
        environment: Mapping[str, str] | None = None,
        ends_input: bool = True,
    ) -> Finished:
        """Run a command on the target to its end; every argument arrives unchanged.

        Args:
            arguments: The program and its arguments.
            input: For its standard input, which is empty otherwise.
            launched: Prefix it with the launcher of the connection, and set its environment.
            environment: Further variables for it.
            ends_input: False keeps its standard input open until it ends.

        Raises:
            LinkError: The target cannot be reached; :class:`ConnectionLostError` if it was
                connected.
        """
        line = await self.open()
        command = self.command(arguments, launched=launched, environment=environment)
        try:
            process = await line.create_process(command, encoding=None)
            try:
                with contextlib.suppress(BrokenPipeError):  # it ended without reading it
                    process.stdin.write(input or b"")
                    if ends_input:
                        process.stdin.write_eof()
                printed, errors = await asyncio.gather(
                    self._read(process.stdout), self._read(process.stderr)
                )
                await process.wait_closed()
            finally:  # not waited for: one that hangs would not close
                process.close()
        except (asyncssh.Error, OSError, asyncio.IncompleteReadError) as error:
            raise await self._lost(error) from None
        if process.exit_status is None and line.is_closed():
            raise ConnectionLostError(self.where)
        code = process.exit_status if process.exit_signal is None else process.returncode
        return Finished(printed, errors, code)

    async def greet(self) -> None:
        """See that the login shell runs commands, and leaves them what is sent to them.

        Raises:
            UnavailableError: Its start-up files sleep, wait for input, take it, or end the shell.
            LinkError: The target cannot be reached.
        """
        await self.open()  # a person may have to look up a password
        mark = new_mark()
        # The input stays open, as that of uploads: what reads it waits here, too.
        talk = self.run(["head", "-n", "1"], mark.encode() + b"\n", ends_input=False)
        try:
            done = await within(SHELL_S, talk)
        except asyncio.TimeoutError:
            raise UnavailableError(
                f"its login shell hangs: no command has run for {SHELL_S:.0f} s",
                where=self.where,
                hint="Look for what sleeps or waits for input in the start-up files of its shell,"
                " such as ~/.bashrc",
            ) from None
        if mark.encode() not in done.stdout:
            lines = done.error_text.strip().splitlines() or done.text.strip().splitlines()
            said = f" and said: {clip(visible(lines[-1]), 300)}" if lines else ""
            raise UnavailableError(
                f"its login shell runs no command; it ended with status {done.code}{said}",
                where=self.where,
                hint="Look at the start-up files of its shell, such as ~/.bashrc, and whether the"
                " user may log in",
            )

    async def _read(self, reader: asyncssh.SSHReader[bytes]) -> bytes:
        """Return all that comes.

        Raises:
            UnavailableError: It is more than any answer of ours.
        """
        printed = bytearray()
        while data := await reader.read(_CHUNK):
            printed += data
            if len(printed) > MOST_OUTPUT:
                raise UnavailableError(
                    "its shell prints endless output", where=self.where, hint=QUIET_SHELL
                )
        return bytes(printed)

    def command(
        self,
        arguments: Sequence[str],
        *,
        launched: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> str:
        """Return the quoted command line for the target's shell; arguments as for :meth:`run`."""
        own = dict(self.connection.environment) if launched else {}
        return command_line(
            arguments,
            environment={**own, **(environment or {})},
            launcher=self.connection.launcher if launched else (),
        )

    async def close(self) -> None:
        """Close the connection; it may be opened again."""
        await self._close_lines()

    async def _open_hop(self, hop: Hop) -> asyncssh.SSHClientConnection:
        """Connect; after the user accepted a new host key, connect again."""
        for attempt in range(2):
            known = known_hosts.known_keys(hop.known_hosts, *hop.known_name)
            keyring = self.connection.remember == "keyring"
            client = Client(hop, self._asker, self._secrets, keyring, self._on_step)
            try:
                line = await self._connect(hop, client, known)
            except asyncssh.HostKeyNotVerifiable as error:
                where, reason = self._at(hop), str(error.reason)
                key = new_key(hop, where, known, client.shown_key, reason, is_last=attempt > 0)
                await in_thread(trust, hop, where, key, self._asker)
                await self._close_proxy()
            except asyncssh.PermissionDenied:
                raise self._not_permitted(hop, client) from None
            except (asyncssh.Error, OSError, ValueError, asyncio.TimeoutError) as error:
                if hop.auth == "key" and offered_too_many(error):
                    raise self._not_permitted(hop, client) from None
                words = self._proxy.last_words() if self._proxy else ""
                raise from_network(error, self._at(hop), hop.host, client.stage, words) from None
            else:
                await self._keep(client)
                return line
            finally:
                client.close()
        raise AssertionError("the second attempt returns or raises")

    async def _connect(
        self, hop: Hop, client: Client, known: known_hosts.KnownKeys
    ) -> asyncssh.SSHClientConnection:
        client.begin(RESOLVE)
        tunnel = self._lines[-1] if self._lines else None
        proxy = None
        if hop.proxy_command:
            words = proxy_arguments(hop.proxy_command, hop.host, hop.port, hop.user)
            proxy = self._proxy = await in_thread(Proxy, words)
        elif tunnel is None:
            resolving = asyncio.get_running_loop().getaddrinfo(hop.host, hop.port)
            await within(hop.timeout_s, resolving)
        client.begin(CONNECT)
        trusted = (known.keys(), known.keys("@cert-authority"), known.keys("@revoked"))
        attempt = asyncio.ensure_future(
            asyncssh.connect(
                hop.alias,
                hop.port,
                username=hop.user,
                config=[str(path) for path in hop.config],
                client_factory=lambda: client,
                client_keys=None,
                known_hosts=lambda host, address, port: trusted,
                server_host_key_algs=_host_key_algorithms(trusted[0], trusted[1]),
                tunnel=tunnel,
                proxy_command=None,
                sock=proxy.socket if proxy else None,
                login_timeout=_LOGIN_S,
                connect_timeout=None,
                encryption_algs=() if hop.has_ciphers else _CIPHERS,
                utf8_decode_errors="replace",  # of banners: many are older than UTF-8
                keepalive_interval=KEEPALIVE_S,
                keepalive_count_max=KEEPALIVES,
                command=None,
                request_pty=False,
                agent_forwarding=False,
                x11_forwarding=False,
            )
        )
        try:
            return await _while_it_moves(attempt, client, hop.timeout_s)
        finally:
            if not attempt.done():
                attempt.cancel()

    async def _keep(self, client: Client) -> None:
        """Keep the secrets that have opened a connection."""
        wants_keyring = self.connection.remember == "keyring"
        for name, secret in client.given.items():
            keep = functools.partial(self._secrets.keep, in_keyring=wants_keyring)
            # Without a keyring it is kept in memory; `dld target test` says why.
            with contextlib.suppress(UnavailableError):
                await in_thread(keep, name, secret)

    def _not_permitted(self, hop: Hop, client: Client) -> DldError:
        if client.gave_up and not isinstance(self._asker, Nobody):
            return CancelledError("no answer was given", where=self._at(hop))
        hint = self._way_in(hop, client)
        return not_permitted(self._at(hop), client.methods, client.tried, client.notes, hint)

    def _way_in(self, hop: Hop, client: Client) -> str:
        """Return what a person can do about a refusal."""
        name = self.connection.name
        edit = f"dld target edit {name}" if hop.alias == self.connection.host else ""
        takes_keys = "publickey" in client.methods or not client.methods
        if not takes_keys and hop.auth in ("key", "agent"):
            return f"It takes no keys: {edit} --auth password"
        if not takes_keys or (client.tried_password and not client.files):
            return "Check the user and the password"
        if client.files:
            key = short(client.files[0])
            port = f" -p {hop.port}" if hop.port != DEFAULT_PORT else ""
            other = f"{edit} --key FILE" if edit else "IdentityFile in ~/.ssh/config"
            return (
                f"Let the key in: ssh-copy-id -i {key}{port} {hop.user}@{hop.host};"
                f" or use another one: {other}"
            )
        if hop.auth == "agent":
            return f"Give the agent a key that it takes: ssh-add FILE; or {edit} --auth key"
        if client.locked:
            return f"Give the passphrase, or open the key for the agent: ssh-add {client.locked[0]}"
        if hop.auth == "key" and edit:
            return f"Name a key file that can be used: {edit} --key FILE"
        return "Check the user; make a key with ssh-keygen, and let it in with ssh-copy-id"

    async def _lost(self, error: BaseException) -> LinkError:
        if isinstance(error, asyncssh.ChannelOpenError):
            # It is also raised where the connection is about to be lost.
            with contextlib.suppress(asyncio.TimeoutError):
                await within(_CLOSING_S, asyncio.gather(*(x.wait_closed() for x in self._lines)))
        if isinstance(error, asyncssh.ChannelOpenError) and self.is_open:
            message = f"the target cannot start a command: {error.reason}"
            return LinkError(AUTHENTICATION, message, where=self.where)
        return ConnectionLostError(self.where)

    def _at(self, hop: Hop) -> str:
        return f"target {self.connection.name} ({hop.address})"

    async def _close_lines(self) -> None:
        lines, self._lines = self._lines, []
        for line in reversed(lines):
            line.close()
            try:
                await within(_LEAVE_S, line.wait_closed())
            except (asyncio.TimeoutError, asyncssh.Error, OSError):
                line.abort()
        await self._close_proxy()

    async def _close_proxy(self) -> None:
        proxy, self._proxy = self._proxy, None
        if proxy is not None:
            await in_thread(proxy.close)


async def _while_it_moves(
    attempt: asyncio.Future[asyncssh.SSHClientConnection], client: Client, timeout_s: float
) -> asyncssh.SSHClientConnection:
    """Wait for a connection as long as the server or a person does something.

    Raises:
        TimeoutError: Nothing happened for `timeout_s`.
    """
    while not attempt.done():
        moves = client.moves
        await asyncio.wait({attempt}, timeout=timeout_s)
        if not attempt.done() and moves == client.moves and not client.is_asking:
            raise TimeoutError
    return attempt.result()


def _host_key_algorithms(
    keys: Sequence[asyncssh.SSHKey], authorities: Sequence[asyncssh.SSHKey]
) -> tuple[str, ...] | str:
    """Return the kinds of host keys to accept, known ones first.

    asyncssh would accept only the known kinds, and a server whose key changed its kind would look
    like one that is too old.
    """
    if not keys or authorities:
        return ()
    first = [name.decode() for key in keys for name in key.sig_algorithms]
    rest = [name.decode() for name in get_default_public_key_algs()]
    return tuple(dict.fromkeys([*first, *rest]))


T = TypeVar("T")

_STEADY_S = 5.0
"""A connection that stood so long was a good one: its loss is a new one."""


@dataclass(frozen=True)
class RetryPolicy:
    """Seconds."""

    first: float = 0.5
    """Until the first attempt to connect again; each later wait is twice as long."""
    longest: float = 15.0
    """Between two attempts."""
    total: float = 600.0
    """The time from the loss until giving up."""
    silence: float = 8.0
    """Without a sign of life of a job that is followed, until the connection counts as lost."""


async def with_retries(
    work: Callable[[], Awaitable[T]],
    retries: RetryPolicy,
    on_lost: Callable[[LinkError, float], None],
) -> T:
    """Repeat work whenever the connection is lost.

    Args:
        work: The work; it continues from its last state, and connects by itself.
        retries: How long to retry.
        on_lost: Called with the error and the length of the wait.

    Raises:
        LinkError: The connection does not come back, or the first attempt fails.
    """
    lost_at: float | None = None
    wait = retries.first
    while True:
        began = time.monotonic()
        try:
            return await work()
        except LinkError as error:
            now = time.monotonic()
            if isinstance(error, ConnectionLostError):
                if lost_at is None or now - began > _STEADY_S:
                    lost_at, wait = now, retries.first
            elif lost_at is None or not error.passes:
                raise
            if now + wait - lost_at > retries.total:
                raise
            on_lost(error, wait)
            await asyncio.sleep(wait)
            wait = min(retries.longest, 2 * wait)


_TRIES = 3
"""How often a person may mistype."""
_WITH_QUESTIONS = ("auto", "password")
"""The ways of authentication that ask for a password or answer the server's questions."""
_LONGEST_QUESTION = 300


class Client(asyncssh.SSHClient):
    """The answers to asyncssh for one machine.

    Args:
        asker: Asks the user.
        secrets: The store of known and of verified secrets.
        from_keyring: Whether to use the system's keyring.
        on_step: Called with the address and the step that begins.
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
        """Counts the server's messages, to distinguish a silent one from a slow one."""
        self.is_asking = False
        self.shown_key: asyncssh.SSHKey | None = None
        """The host key that is not among the known ones."""
        self.tried: list[str] = []
        """The methods that were refused, for people."""
        self.tried_password = False
        self.notes: list[str] = []
        self.methods: list[str] = []
        self.given: dict[str, str] = {}
        """Secrets that were used, by name; right ones if the connection is opened."""
        self.files: list[Path] = []
        """Key files whose keys were offered."""
        self.locked: list[str] = []
        """Key files whose passphrase was not given."""
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

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Note that the machine answers."""
        self.begin(HOST_KEY)
        self._connection = conn

    def validate_host_public_key(
        self, host: str, addr: str, port: int, key: asyncssh.SSHKey
    ) -> bool:
        """Reject an unknown key, but record it, so that the user can be asked."""
        self.shown_key = key
        return False

    async def public_key_auth_requested(self) -> list[asyncssh.SSHKeyPair] | None:
        """Return the next keys: those of the agent, files, then files with a passphrase."""
        self._begin_authentication()
        while self._turns:
            pairs = await self._turns.pop(0)()
            if pairs:
                return pairs
        return None

    async def password_auth_requested(self) -> str | None:
        """Return the password, asking the user if it is unknown."""
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
        answers = []
        for prompt, _ in prompts:
            text = visible(f"{self._hop.address} asks: {prompt.strip()}")[:_LONGEST_QUESTION]
            answer = await self._ask(text)
            if answer is None:
                self.gave_up = self._has_no_password = True
                self.notes.append("no answer was given")
                return None
            answers.append(answer)
        self.gave_up = False
        self.tried.append("the answers to its questions")
        return answers

    def auth_completed(self) -> None:
        """Note that we are in; a server may ask for nothing at all."""
        self.begin(AUTHENTICATION)

    def close(self) -> None:
        """Close the line to the agent."""
        if self._agent is not None:
            self._agent.close()

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
            pairs = [pair for pair in pairs if pair.public_data in wanted.values()]
            in_agent = {pair.public_data for pair in pairs}
            self._offer(*(path for path, public in wanted.items() if public in in_agent))
        elif pairs:
            self.tried.append(f"{fmt.plural(len(pairs), 'key')} of the agent")
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
        self._offer(*self._files.open)
        pairs = {pair.public_data: pair for pair in self._files.pairs}  # some files hold the same
        return [pair for public, pair in pairs.items() if public not in self._offered]

    def _offer(self, *files: Path) -> None:
        new = [path for path in files if path not in self.files]
        self.files += new
        self.tried += [f"key {short(path)}" for path in new]

    async def _locked_keys(self) -> list[asyncssh.SSHKeyPair]:
        """Return the keys of files with a passphrase; those of the agent have been offered."""
        pairs: list[asyncssh.SSHKeyPair] = []
        for path, public in self._files.locked.items() if self._files else ():
            self._offer(path)
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
        self.files = [other for other in self.files if other != path]
        self.locked.append(short(path))
        self.notes.append(f"the key {short(path)} cannot be used without its passphrase")
        raise ValueError("the key could not be decrypted")

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
        self.tried_password = True
        self.given[name] = known
        return known

    async def _ask(self, question: str) -> str | None:
        self.is_asking = True
        try:
            return await in_thread(self._asker.secret, visible(question))
        finally:
            self.is_asking = False
            self.moves += 1
