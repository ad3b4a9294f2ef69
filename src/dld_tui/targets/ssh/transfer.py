"""Files to a target and results from it: by content, resumed after a cut, verified by hash."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, BinaryIO

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, FileChangedError, InputError
from dld_tui.core.events import Progress
from dld_tui.core.files.blobs import ByteCount
from dld_tui.core.files.source import open_error
from dld_tui.core.files.writer import StagedFile
from dld_tui.core.settings.state import State
from dld_tui.core.text import visible
from dld_tui.targets.ssh.channel import Agent, AgentError, Stream, strings
from dld_tui.targets.ssh.errors import ConnectionLostError, LinkError
from dld_tui.targets.ssh.link import RetryPolicy, with_retries

_SECTION = "hashes"
_MOST = 500
_CHUNK = 1 << 20
_RACY_NS = 2_000_000_000
"""A file that changed so short a time ago may change again within the tick of its clock."""


@dataclass(frozen=True)
class LocalFile:
    """A file here, as it was when it was looked at."""

    path: Path
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def at(cls, path: Path) -> LocalFile:
        """Look at a file.

        Raises:
            InputError: It is not there, or no regular file.
        """
        try:
            status = os.stat(path)
        except OSError as error:
            raise open_error(path, error) from None
        if not path.is_file():
            raise InputError("cannot be sent: it is not a regular file", where=str(path))
        return cls(
            path.absolute(), status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
        )

    @property
    def stamp(self) -> str:
        """What is different when the file is."""
        return f"{self.size} {self.mtime_ns} {self.ctime_ns} {self.inode}"

    @property
    def key(self) -> str:
        """A name for what has arrived of it: by its size, its first and its last part."""
        digest = hashlib.sha256(str(self.size).encode())
        with self.path.open("rb") as file:
            digest.update(file.read(_CHUNK))
            file.seek(max(0, self.size - _CHUNK))
            digest.update(file.read(_CHUNK))
        return digest.hexdigest()

    def sha256(self) -> str:
        """Read the whole file and return its hash."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while data := file.read(_CHUNK):
                digest.update(data)
        return digest.hexdigest()


class KnownHashes:
    """What is remembered, in the state folder."""

    def __init__(self, state: State | None = None) -> None:
        self._state = state or State()
        self._entries = self._state.get(_SECTION, "files")

    def get(self, file: LocalFile) -> str | None:
        """Return the hash of a file that has not changed since it was read."""
        entry = self._entries.get(str(file.path))
        if not isinstance(entry, dict) or entry.get("stamp") != file.stamp:
            return None
        sha256 = entry.get("sha256")
        return sha256 if isinstance(sha256, str) and len(sha256) == 64 else None

    def put(self, file: LocalFile, sha256: str) -> None:
        """Remember a hash, unless the file is too fresh to be sure."""
        if time.time_ns() - file.mtime_ns < _RACY_NS:
            return
        self._entries.pop(str(file.path), None)
        self._entries[str(file.path)] = {"stamp": file.stamp, "sha256": sha256}
        while len(self._entries) > _MOST:
            self._entries.pop(next(iter(self._entries)))

    def save(self) -> None:
        """Write them down."""
        self._state.put(_SECTION, "files", self._entries)


_SEND_CHUNK = 1 << 20
_PIECE = 1 << 18
_SMALL = 1 << 18
"""Files up to this size are sent together."""
_PACK = 8 << 20
_BUSY_S = 2.0
_BUSY_TRIES = 15
_REASON_S = 2.0
"""How long to wait for the reason when the other side takes no more."""


@dataclass
class Amount:
    """How far the work is; read by whoever shows it."""

    total: int = 0
    """Bytes of the transfer that goes on; 0 when none does."""
    done: int = 0
    sent: int = 0
    """Bytes that really went over the line, in all."""
    stage: str = ""
    notes: list[str] = field(default_factory=list)
    """What happened on the way, for the log."""

    def progress(self) -> Progress:
        """Return how far it is as an event."""
        unit = "bytes" if self.total else ""
        return Progress(self.done, self.total or None, unit, self.stage)

    def step(self, stage: str) -> None:
        """Begin something that is not measured in bytes."""
        self.stage, self.done, self.total = visible(stage), 0, 0

    def transfer(self, stage: str, total: int) -> None:
        """Begin a transfer."""
        self.stage, self.done, self.total = visible(stage), 0, total


def lost_note(amount: Amount) -> Callable[[LinkError, float], None]:
    """Return what tells the user of a lost connection."""

    def tell(error: LinkError, wait: float) -> None:
        amount.notes.append(f"{error.message}; the next attempt is in {wait:g} s")

    return tell


class Upload:
    """Sends files so that they are on the target under the name of their hash.

    Args:
        agent: On the target.
        retries: For lost connections.
        hashes: What is remembered of files here.
        amount: Is kept up to date, for progress and the log.
    """

    def __init__(
        self,
        agent: Agent,
        retries: RetryPolicy,
        hashes: KnownHashes | None = None,
        amount: Amount | None = None,
    ) -> None:
        self._agent = agent
        self._retries = retries
        self._hashes = hashes or KnownHashes()
        self.amount = amount or Amount()
        self._key = ""
        """Of the file that is on its way."""

    async def send(self, files: Sequence[LocalFile]) -> dict[LocalFile, str]:
        """Send what is not there yet; return the hash of each file.

        Raises:
            AgentError: The disk there is full, or may not be written to.
            LinkError: The connection is lost for good.
            FileChangedError: A file changed while it was sent.
        """
        self.amount.step("Checking the files that are there")
        names = await self._look(files)
        self.amount.transfer("Sending", sum(file.size for file in files if file not in names))
        small = [file for file in files if file not in names and file.size <= _SMALL]
        for pack in _packs(small):
            for file, name in zip(pack, await self._send_pack_with_retries(pack), strict=True):
                self._note(names, file, name)
        for file in files:
            if file not in names:
                self.amount.stage = visible(f"Sending {file.path.name}")
                self._note(names, file, await self._persist_file(file))
        self._hashes.save()
        return names

    def _note(self, names: dict[LocalFile, str], file: LocalFile, sha256: str) -> None:
        names[file] = sha256
        self._hashes.put(file, sha256)

    async def _look(self, files: Sequence[LocalFile]) -> dict[LocalFile, str]:
        """Return the hashes of the files that are there; as few as possible are read for that."""
        known = {file: name for file in files if (name := self._hashes.get(file))}
        others = sorted({file.size for file in files if file not in known})
        answer = await self._agent.call("look", sizes=others, names=list(known.values()))
        sizes = answer.get("sizes")
        same = set(sizes) if isinstance(sizes, list) else set()
        read = {}
        for file in files:
            # Only a file of the same size can be the same one.
            if file not in known and file.size in same:
                self.amount.step(f"Reading {file.path.name}")
                read[file] = await asyncio.to_thread(file.sha256)
                self._hashes.put(file, read[file])
        there = set(strings(answer.get("there")))
        if read:
            answer = await self._agent.call("look", sizes=[], names=list(read.values()))
            there |= set(strings(answer.get("there")))
        present = {file: name for file, name in {**known, **read}.items() if name in there}
        return present

    async def _send_pack_with_retries(self, pack: Sequence[LocalFile]) -> list[str]:
        return await with_retries(
            lambda: self._send_pack(pack), self._retries, lost_note(self.amount)
        )

    async def _send_pack(self, pack: Sequence[LocalFile]) -> list[str]:
        contents = [await asyncio.to_thread(file.path.read_bytes) for file in pack]
        head = json.dumps([len(content) for content in contents]).encode() + b"\n"
        data = head + b"".join(contents)
        names = strings((await self._agent.call("receive_many", input=data)).get("sha256"))
        if names != [hashlib.sha256(content).hexdigest() for content in contents]:
            raise ActivityError("files were damaged in transfer", where=self._agent.where)
        self.amount.done += len(data) - len(head)
        self.amount.sent += len(data)
        return names

    async def _persist_file(self, file: LocalFile) -> str:
        before = self.amount.done

        async def attempt() -> str:
            for _ in range(_BUSY_TRIES):
                self.amount.done = before
                try:
                    return await self._send_file(file)
                except AgentError as error:
                    # The receiver of a connection that was cut may not know it yet.
                    if error.kind not in ("busy", "changed"):
                        raise
                    busy = error
                    await asyncio.sleep(_BUSY_S)
            raise busy

        return await with_retries(attempt, self._retries, lost_note(self.amount))

    async def drop(self) -> None:
        """Remove what has arrived of a file that is no longer wanted."""
        if self._key:
            await self._agent.call("drop", key=self._key)

    async def _send_file(self, file: LocalFile) -> str:
        key = self._key = await asyncio.to_thread(lambda: file.key)
        with file.path.open("rb") as source:
            digest = hashlib.sha256()
            there = await self._agent.call("part", key=key)
            offset = there.get("size")
            if not isinstance(offset, int) or not 0 < offset <= file.size:
                offset = 0
            if offset:
                self.amount.stage = visible(f"Reading {file.path.name}")
                await asyncio.to_thread(_hash_to, source, digest, offset)
                if digest.hexdigest() != there.get("sha256"):
                    digest, offset = hashlib.sha256(), 0
                    source.seek(0)
                self.amount.stage = visible(f"Sending {file.path.name}")
            self.amount.done += offset
            sizes = {"offset": offset, "size": file.size}
            async with self._agent.stream("receive", key=key, **sizes) as stream:
                await stream.next_answer()
                answer = await self._pump(stream, source, digest, file.size - offset)
        if LocalFile.at(file.path).stamp != file.stamp:
            raise FileChangedError("it changed while it was sent", where=str(file.path))
        name = digest.hexdigest()
        if answer.get("sha256") != name:
            raise ActivityError(
                f"{file.path.name} was damaged in transfer", where=self._agent.where
            )
        self._key = ""
        return name

    async def _pump(
        self, stream: Stream, source: BinaryIO, digest: hashlib._Hash, rest: int
    ) -> dict[str, Any]:
        """Send bytes of a file, and return the answer that comes then, or sooner if it is no."""
        answer = asyncio.ensure_future(stream.next_answer())
        try:
            async for data in _read_ahead(source, digest, rest):
                view = memoryview(data)
                for start in range(0, len(data), _PIECE):
                    piece = view[start : start + _PIECE]
                    if not await _written(stream, piece, answer):
                        return await answer
                    self.amount.done += len(piece)
                    self.amount.sent += len(piece)
            return await answer
        finally:
            answer.cancel()
            await asyncio.wait([answer])
            if not answer.cancelled():
                answer.exception()  # seen: it is raised above, or something else is


async def _written(stream: Stream, piece: memoryview, answer: asyncio.Future[Any]) -> bool:
    """Send a piece; return False when the other side has answered already, which is a refusal."""
    if answer.done():
        return False
    try:
        await stream.write(piece)
    except ConnectionLostError:
        await asyncio.wait([answer], timeout=_REASON_S)
        if answer.done():
            return False
        raise
    return True


async def _read_ahead(source: BinaryIO, digest: hashlib._Hash, rest: int) -> AsyncIterator[bytes]:
    """Yield the bytes of a file; the next ones are read and hashed while one piece is used."""

    def read(count: int) -> bytes:
        data = source.read(count)
        digest.update(data)
        return data

    coming = asyncio.ensure_future(asyncio.to_thread(read, min(_SEND_CHUNK, rest)))
    while rest:
        data = await coming
        if not data:
            raise FileChangedError("it became shorter while it was sent", where=str(source.name))
        rest -= len(data)
        if rest:
            coming = asyncio.ensure_future(asyncio.to_thread(read, min(_SEND_CHUNK, rest)))
        yield data


def _hash_to(source: BinaryIO, digest: hashlib._Hash, count: int) -> None:
    while count:
        data = source.read(min(_SEND_CHUNK, count))
        if not data:
            return
        digest.update(data)
        count -= len(data)


def _packs(files: Sequence[LocalFile]) -> Iterator[list[LocalFile]]:
    pack: list[LocalFile] = []
    size = 0
    for file in files:
        if pack and size + file.size > _PACK:
            yield pack
            pack, size = [], 0
        pack.append(file)
        size += file.size
    if pack:
        yield pack


async def download(
    agent: Agent,
    job: str,
    place: str,
    path: Path,
    retries: RetryPolicy,
    amount: Amount,
    *,
    overwrite: bool = False,
) -> bool:
    """Bring a file that a job wrote to a path here, whole or not at all.

    Args:
        agent: On the target.
        place: Of the file, below the folder of the job's outputs; chosen here, not there.
        path: Where it shall be.
        retries: For lost connections.
        amount: Is kept up to date.
        overwrite: See :class:`~dld_tui.core.files.writer.StagedFile`.

    Returns:
        Whether the job wrote this file.

    Raises:
        SaveError: It cannot be written here.
        LinkError: The connection is lost for good.
        ActivityError: What came is not what the target said it would be.
    """
    try:
        async with contextlib.AsyncExitStack() as stack:
            incoming = _Incoming(path, stack, overwrite)

            async def attempt() -> None:
                async with agent.stream(
                    "fetch", job=job, place=place, offset=incoming.done
                ) as stream:
                    await incoming.take(stream, amount)

            await with_retries(attempt, retries, lost_note(amount))
            await asyncio.to_thread(incoming.finish, agent.where)
    except AgentError as error:
        if error.kind == "missing":
            return False
        raise
    return True


class _Incoming:
    """A file on its way here; an attempt that was cut is taken up by the next."""

    def __init__(self, path: Path, stack: contextlib.AsyncExitStack, overwrite: bool) -> None:
        self._path, self._overwrite = path, overwrite
        self._stack = stack
        self._staged: StagedFile | None = None
        self._promised: tuple[int, str] = (0, "")
        self._digest = hashlib.sha256()
        self.done = 0

    async def take(self, stream: Stream, amount: Amount) -> None:
        answer = await stream.next_answer()
        size, sha256 = answer.get("size"), answer.get("sha256")
        if not isinstance(size, int) or not isinstance(sha256, str) or size < 0:
            raise ActivityError("the target does not announce what it sends", where=str(self._path))
        if self._staged is None:
            self._promised = (size, sha256)
            amount.transfer(f"Fetching {self._path.name}", size)
            self._staged = self._stack.enter_context(
                StagedFile(self._path, size, overwrite=self._overwrite)
            )
        elif self._promised != (size, sha256):
            raise ActivityError("the file changed on the target meanwhile", where=str(self._path))
        while self.done < size:
            data = (await stream.read())[: size - self.done]
            if not data:
                raise ConnectionLostError(stream.where)
            await asyncio.to_thread(self._write, data)
            amount.done += len(data)

    def _write(self, data: bytes) -> None:
        assert self._staged is not None
        self._digest.update(data)
        self._staged.write([data], ByteCount(len(data)))
        self.done += len(data)

    def finish(self, where: str) -> None:
        assert self._staged is not None
        if self._digest.hexdigest() != self._promised[1]:
            raise ActivityError("a result was damaged in transfer", where=where)
        self._staged.seal()
        self._staged.commit()
