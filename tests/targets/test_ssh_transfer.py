"""Files go there and results come back whole, whatever happens to line, server, disk and file."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from pathlib import Path
from typing import Any, TypeVar

import onnx
import pytest

from dld_tui.activities.convert import opset
from dld_tui.core.errors import ActivityError, FileChangedError
from dld_tui.core.events import Cancelled, Failed
from dld_tui.core.machine.health import GOOD, MISSING
from dld_tui.core.params import to_json
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import BAD
from dld_tui.core.settings.state import State
from dld_tui.targets.ssh import loop, transfer
from dld_tui.targets.ssh.channel import AgentError
from dld_tui.targets.ssh.remote import objects
from dld_tui.targets.ssh.target import examine
from dld_tui.targets.ssh.transfer import Amount, KnownHashes, LocalFile, Upload, download
from tests.support import models
from tests.support.asker import Answers
from tests.support.recorded import Recorded, settled
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import (
    QUICK,
    REAL,
    Agents,
    Servers,
    at,
    behind,
    script,
    target_of,
)
from tests.support.sshd import Sshd

T = TypeVar("T")
MB = 1_000_000
JOB = "20260101-000000-0123abcd"


def run(work: Coroutine[Any, Any, T]) -> T:
    return loop.call(work, 60)


def noise(path: Path, size: int, seed: int = 0) -> LocalFile:
    """Write bytes that cannot be guessed, as weights; old enough for their hash to be kept."""
    path.write_bytes(random.Random(seed).randbytes(size))
    os.utime(path, (1, 1))
    return LocalFile.at(path)


def objects_of(connection: Connection) -> list[Path]:
    return sorted(Path(connection.directory, "objects").glob("*"))


def contents(connection: Connection) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in objects_of(connection)}


async def disturbed(
    upload: Upload, file: LocalFile, sent: int, action: Callable[[], object]
) -> str:
    """Send a file, do something when so many bytes are there, and return its name."""
    task = asyncio.ensure_future(upload.send([file]))
    while upload.amount.done < sent:
        await asyncio.sleep(0.01)
    await asyncio.to_thread(action)
    return (await task)[file]


class There:
    """The agent of a target that keeps what it gets, and says what it was asked.

    Args:
        parts: What is said to be there of each large file in turn.
        refusals: Why the next large files are refused; nothing for those that are taken.
    """

    where = "box"

    def __init__(self, parts: Iterable[dict[str, Any]] = (), refusals: Iterable[str] = ()) -> None:
        self.kept, self.lines = dict[str, int](), list[str]()
        self._parts, self._refusals = [*parts], [*refusals]
        self._data, self._whole = bytearray(), asyncio.Event()

    def _keep(self, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self.kept[name] = len(data)
        return name

    async def call(self, name: str, input: bytes = b"", **asked: Any) -> dict[str, Any]:
        self.lines.append(f"{name} {asked} {input.decode('latin-1')!r}")
        if name == "look":
            sizes = [size for size in asked["sizes"] if size in self.kept.values()]
            return {"there": [one for one in asked["names"] if one in self.kept], "sizes": sizes}
        if name == "receive_many":
            head, _, data = input.partition(b"\n")
            ends = [0, *itertools.accumulate(json.loads(head))]
            return {"sha256": [self._keep(data[a:b]) for a, b in itertools.pairwise(ends)]}
        return self._parts.pop(0) if name == "part" else {}

    @contextlib.asynccontextmanager
    async def stream(self, name: str, **asked: Any) -> AsyncIterator[There]:
        self.lines.append(f"{name} {asked}")
        self._rest = asked["size"] - asked["offset"]
        self._answers, self._data, self._whole = 0, bytearray(), asyncio.Event()
        await self.write(memoryview(b""))
        yield self
        self.lines.append(f"got {len(self._data)}")

    async def next_answer(self) -> dict[str, Any]:
        self._answers += 1
        if self._answers == 1:
            if self._refusals and (kind := self._refusals.pop(0)):
                raise AgentError("no", kind=kind, where=self.where, hint=None)
            return {"ready": True}
        await self._whole.wait()
        name = hashlib.sha256(LARGE).hexdigest()
        self.kept[name] = len(LARGE)
        return {"sha256": name}

    async def write(self, data: memoryview) -> None:
        self._data += data
        if len(self._data) >= self._rest:
            self._whole.set()
            await asyncio.sleep(0)


LARGE = bytes(range(100))
PART = {"size": 40, "sha256": hashlib.sha256(LARGE[:40]).hexdigest()}
SENT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nothing is there": ({"size": 0, "sha256": ""}, []), "a part": (PART, []),
    "all": ({"size": 100, "sha256": hashlib.sha256(LARGE).hexdigest()}, []),
    "another part": (PART | {"sha256": "0" * 64}, []), "too much": (PART | {"size": 101}, []),
    "less than nothing": (PART | {"size": -1}, []), "no number": (PART | {"size": "40"}, []),
    "no answer": ({}, []), "busy": (PART, ["busy", "changed", ""]),
    "always busy": (PART, ["busy"] * 3),
    "full": (PART, ["space"]),
}  # fmt: skip


def test_what_is_asked_and_sent(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_SMALL", 10), ("_PACK", 20), ("_PIECE", 32), ("_SEND_CHUNK", 48),
                        ("_BUSY_S", 0), ("_BUSY_TRIES", 3)):  # fmt: skip
        monkeypatch.setattr(transfer, name, value)
    (tmp_path / "large").write_bytes(LARGE)
    os.utime(tmp_path / "large", (1, 1))
    large, texts = LocalFile.at(tmp_path / "large"), {}

    def send(there: There, files: list[LocalFile], state: str) -> str:
        known = KnownHashes(State(tmp_path / state))
        upload = Upload(there, QUICK, known)  # type: ignore[arg-type]
        try:
            names = asyncio.run(upload.send(files))
            end = " ".join(f"{file.path.name}={name[:8]}" for file, name in names.items())
        except AgentError as error:
            end = f"{error.kind}: {error.message}"
        asyncio.run(upload.drop())
        return "\n".join([*there.lines, end, str(upload.amount)]).replace(large.key, "KEY")

    for title, (part, refusals) in SENT.items():
        texts[title] = send(There([part] * 3, refusals), [large], title)
    small = [noise(tmp_path / f"{size}", size, size) for size in (0, 3, 10, 9, 1)]
    there = There([PART])
    texts["small files and a large one"] = send(there, [small[0], large, *small[1:]], "s")
    there.lines.clear()
    texts["again"] = send(there, [small[1], large], "s")
    there.lines.clear()
    (tmp_path / "copy").write_bytes(LARGE)
    os.utime(tmp_path / "copy", (1, 1))
    copies = [LocalFile.at(tmp_path / "copy"), noise(tmp_path / "odd", 9, 1)]
    texts["one of the same size, and a copy"] = send(there, copies, "s")
    there.lines.clear()
    texts["the copy again"] = send(there, copies[:1], "s")
    recorded("ssh_uploads", {title: settled(text, tmp_path) for title, text in texts.items()})


@pytest.mark.broad
def test_a_cut_is_taken_up_where_it_was(
    agent: Agents, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 8 * MB)
    with SlowLine(sshd.port, rate=6 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)
        name = run(disturbed(upload, file, 5 * MB, line.drop))
    assert contents(connection) == {name: file.path.read_bytes()}
    assert 8 * MB <= upload.amount.sent < 14 * MB
    assert any("connection" in note for note in upload.amount.notes)


@pytest.mark.real_workers
@pytest.mark.broad
def test_a_server_killed_in_the_middle(
    own_sshd: Servers, agent: Agents, connection: Connection, tmp_path: Path
) -> None:
    server, file = own_sshd(), noise(tmp_path / "a", 8 * MB)

    def restart() -> None:
        server.kill()
        server.start()

    with SlowLine(server.port, rate=8 * MB) as line:
        upload = Upload(agent(behind(at(server, connection), line)), QUICK)
        name = run(disturbed(upload, file, 4 * MB, restart))
    assert contents(connection) == {name: file.path.read_bytes()}


@pytest.mark.real_workers
def test_a_receiver_that_is_killed_is_started_again(
    agent: Agents, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 8 * MB)

    def kill() -> None:
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if connection.directory.encode() in words and b"receive" in words:
                os.kill(int(entry.name), signal.SIGKILL)

    with SlowLine(sshd.port, rate=6 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)
        name = run(disturbed(upload, file, 3 * MB, kill))
    assert contents(connection) == {name: file.path.read_bytes()}


@pytest.mark.broad
def test_a_file_that_changes_meanwhile_is_refused(
    agent: Agents, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 4 * MB)
    with SlowLine(sshd.port, rate=8 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)
        with pytest.raises(FileChangedError, match="changed while it was sent"):
            run(disturbed(upload, file, MB, lambda: os.utime(file.path)))


@pytest.mark.broad
def test_a_dropped_upload_leaves_nothing(
    agent: Agents, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 8 * MB)
    with SlowLine(sshd.port, rate=8 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)

        async def send_and_stop() -> None:
            task = asyncio.ensure_future(upload.send([file]))
            while upload.amount.done < 3 * MB:
                await asyncio.sleep(0.01)
            task.cancel()
            await asyncio.wait([task])
            await upload.drop()

        run(send_and_stop())
    assert contents(connection) == {}


@pytest.mark.real_workers
@pytest.mark.parametrize("size", [100_000, 6 * MB])
def test_a_file_that_is_larger_than_allowed_is_one_line(
    agent: Agents, connection: Connection, tmp_path: Path, size: int
) -> None:
    there, python = agent(), tmp_path / "python"
    blocks = 2 * MB // 512 if size > MB else 100
    python.write_text(f'#!/bin/sh\nulimit -f {blocks}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    there.python = str(python)
    with pytest.raises(AgentError, match="the file is larger than allowed there"):
        run(Upload(there, QUICK).send([noise(tmp_path / "a", size)]))


def fill(path: Path, rest: int) -> None:
    """Write a file that leaves so many bytes of its disk."""
    disk = os.statvfs(path.parent)
    path.write_bytes(bytes(disk.f_bavail * disk.f_frsize - rest))


@pytest.mark.broad
def test_a_full_disk_takes_nothing_and_keeps_no_part(
    agent: Agents, small_disk: Callable[[int], Path], tmp_path: Path
) -> None:
    there = agent(directory=str(small_disk(7) / "deployed"))
    with pytest.raises(AgentError, match=r"8000000 bytes are needed and only .* are free"):
        run(Upload(there, QUICK).send([noise(tmp_path / "a", 8 * MB)]))
    disk = small_disk(32)
    there = agent(directory=str(disk / "deployed"))
    fill(disk / "filler", 3 * MB)
    files = [noise(tmp_path / f"{seed}", 250_000, seed) for seed in range(20)]
    with pytest.raises(ActivityError, match="the disk is full"):
        run(Upload(there, QUICK).send(files))
    assert not list(Path(there.root, "objects").glob("*.part"))


@pytest.mark.broad
def test_a_full_disk_hinders_neither_fetching_nor_cleaning(
    agent: Agents, connection: Connection, small_disk: Callable[[int], Path], tmp_path: Path
) -> None:
    there = changed(connection, directory=str(small_disk(32) / "deployed"))
    target = target_of(there)
    folder = Path(there.directory, "jobs", JOB)
    (folder / "out").mkdir(parents=True)
    (folder / "events").write_bytes(b'x{"code": 0}\n')
    (folder / "out" / "r").write_bytes(b"result")
    filler = Path(there.directory, "objects", "0" * 64)
    filler.parent.mkdir()
    fill(filler, 0)
    assert [job.id for job in target.jobs()] == [JOB]
    path = tmp_path / "here"
    assert run(download(agent(there), JOB, "r", path, QUICK, Amount()))
    assert path.read_bytes() == b"result"
    end = target.start("fake", script(["finish"])).wait()
    assert isinstance(end, Failed)
    assert "the disk is full" in end.message
    assert target.clean(0, results=True).bytes > 8 * MB
    assert not filler.exists()
    assert not folder.exists()
    with target.start("fake", script(["finish", {"a": 1}])) as job:
        assert job.result() == {"a": 1}


@pytest.mark.broad
def test_results_come_whole_or_not_at_all(
    agent: Agents, connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    content = random.Random(1).randbytes(4 * MB)
    folder = Path(connection.directory, "jobs", JOB, "out", "output")
    folder.mkdir(parents=True)
    (folder / "r").write_bytes(content)
    (folder / "link").symlink_to("/etc/passwd")
    path, amount = tmp_path / "here", Amount()
    with SlowLine(sshd.port, rate=6 * MB) as line:
        there = agent(behind(connection, line))

        async def fetch_and_cut() -> bool:
            task = asyncio.ensure_future(download(there, JOB, "output/r", path, QUICK, amount))
            while amount.done < 2 * MB:
                await asyncio.sleep(0.01)
            assert not path.exists()
            line.drop()
            return await task

        assert run(fetch_and_cut())
        assert path.read_bytes() == content
        assert amount.done == len(content)
        for name in ("output/none", "output/link"):
            assert not run(download(there, JOB, name, path, QUICK, amount))
        with pytest.raises(ActivityError, match="outside"):
            run(download(there, JOB, "../../../x", path, QUICK, amount))
    assert path.read_bytes() == content


def test_a_fresh_file_is_hashed_again(tmp_path: Path) -> None:
    file = noise(tmp_path / "a", 10)
    (tmp_path / "b").write_bytes(b"1")
    fresh = LocalFile.at(tmp_path / "b")
    hashes = KnownHashes()
    hashes.put(file, "0" * 64)
    hashes.put(fresh, "1" * 64)
    hashes.save()
    assert KnownHashes().get(file) == "0" * 64
    assert KnownHashes().get(fresh) is None  # it may change again within a tick of its clock


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "short": lambda data: data[: len(data) // 2],
    "long": lambda data: data + b"\0",
    "a bit": flipped,
}
"""What a disk loses or changes: after a power cut, or as it fails."""


def damage(path: Path, how: str) -> None:
    """Change a file as a disk does: no date of it tells."""
    status = path.stat()
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.broad
def test_damaged_objects_are_sent_again(
    agent: Agents, connection: Connection, tmp_path: Path
) -> None:
    there, other = agent(), noise(tmp_path / "other", MB)
    damaged = {
        noise(tmp_path / f"{how} {size}", size, size + number): how
        for number, how in enumerate(DAMAGES)
        for size in (1000, MB)
    }
    files = [*damaged, other]
    names = run(Upload(there, QUICK).send(files))
    for file, how in damaged.items():
        damage(Path(connection.directory, "objects", names[file]), how)
    upload = Upload(there, QUICK)
    assert run(upload.send(files)) == names
    assert contents(connection) == {names[file]: file.path.read_bytes() for file in files}
    size = sum(file.size for file in damaged)
    assert size <= upload.amount.sent < size + 200
    again = Upload(there, QUICK)
    run(again.send(files))
    assert again.amount.sent == 0


@pytest.mark.real_workers
@pytest.mark.parametrize("how", ["empty", "a bit"])
def test_a_job_never_computes_with_a_damaged_model(
    connection: Connection, tmp_path: Path, how: str
) -> None:
    model = models.write(tmp_path, models.layered())
    os.utime(model, (1, 1))  # so that its hash is known here, and it is not read again
    target = target_of(connection, REAL)

    def converted(name: str) -> bytes:
        request = to_json(opset.Request(model, tmp_path / name, 20))
        with target.start("convert_opset", request) as job:
            job.result()
        return onnx.load(tmp_path / name).SerializeToString(deterministic=True)

    first = converted("first.onnx")
    for path in objects_of(connection):
        damage(path, how)
    assert converted("second.onnx") == first


@pytest.mark.parametrize("links", [True, False])
def test_a_placed_object_has_the_date_of_the_file_that_was_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
) -> None:
    def refused(*_: object) -> None:
        raise OSError

    if not links:
        monkeypatch.setattr(os, "link", refused)
    stored = objects.folder_of(tmp_path) / ("0" * 64)
    stored.write_bytes(b"1234")
    target = tmp_path / "job" / "in" / "m.onnx"
    objects.place(tmp_path, stored.name, target, 1_234_567_890_123_456_789)
    assert target.read_bytes() == b"1234"
    assert target.stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert target.samefile(stored) is links


@pytest.mark.real_workers
def test_what_is_lost_between_sending_and_starting_is_sent_again(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models.write(tmp_path, models.layered())
    send = Upload.send
    losses: list[str] = []

    async def send_and_lose(upload: Upload, files: list[LocalFile]) -> dict[LocalFile, str]:
        if cancelled and losses:
            job.cancel()
            raise ActivityError("the connection is gone")
        names = await send(upload, files)
        for path in objects_of(connection) if len(losses) < most else ():
            path.unlink()
            losses.append(path.name)
        return names

    monkeypatch.setattr(Upload, "send", send_and_lose)
    most, cancelled = 1, False
    request = to_json(opset.Request(model, tmp_path / "out.onnx", 20))
    with target_of(connection, REAL).start("convert_opset", request) as job:
        job.result()
    assert (tmp_path / "out.onnx").exists()
    assert len(losses) == 1
    most = 100
    with (
        pytest.raises(ActivityError, match=r"gone at once\. Its clock or disk may fail"),
        target_of(connection, REAL).start("convert_opset", request) as job,
    ):
        job.result()
    # Nothing is there when it is cancelled while they are sent again.
    losses.clear()
    cancelled = True
    with target_of(connection, REAL).start("convert_opset", request) as job:
        assert job.wait() == Cancelled()
    assert list(Path(connection.directory, "jobs").iterdir()) == []


def test_a_bad_sector_is_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = objects.folder_of(tmp_path) / ("0" * 64)
    for name in (path.name, f"{path.name}.part"):
        path.with_name(name).write_bytes(b"x")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(objects, "_hash", fail)
    assert objects.look(tmp_path, [1], [path.name])["there"] == []
    assert objects.part(tmp_path, path.name) == {"size": 0, "sha256": ""}
    assert list(path.parent.iterdir()) == []


@pytest.mark.real_workers
@pytest.mark.parametrize("how", ["empty", "a bit", "gone", "more"])
def test_a_damaged_package_blocks_nothing_and_is_installed_again(
    connection: Connection, how: str
) -> None:
    target = target_of(connection)
    with target.start("fake", script(["finish"])) as job:
        job.result()
    [package] = Path(connection.directory, "package").iterdir()
    remote = package / "dld_tui" / "targets" / "ssh" / "remote"

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in remote.glob("*.py")}

    def break_it() -> None:
        for name in ("agent.py", "replies.py", "supervisor.py"):
            if how == "gone":
                (remote / name).unlink()
            elif how == "more":
                (remote / "json.py").write_text("raise SystemExit(3)\n")
            else:
                damage(remote / name, how)

    good = files()
    break_it()
    assert target.clean(0).jobs == 0  # needs no package, and installs none
    assert files() != good
    assert not [step for step in examine(target.connection, Answers()) if step.state == BAD]
    states = {check.name: check.state for check in target.checks("profile_onnxruntime")}
    assert (states["worker"], states["numpy"]) == (MISSING, GOOD)
    assert target.jobs() == []
    assert files() == good
    break_it()
    with target.start("fake", script(["finish", {"a": 1}])) as job:
        assert job.result() == {"a": 1}
    assert files() == good
    break_it()
    target.wipe()
    assert not Path(connection.directory, "package").exists()


@pytest.mark.real_workers
def test_what_was_compiled_before_a_restart_is_compiled_again(connection: Connection) -> None:
    target = target_of(connection)
    assert target.jobs() == target.jobs() == []
    [package] = Path(connection.directory, "package").iterdir()
    stale = package / "dld_tui" / "__pycache__" / "stale.pyc"
    stale.parent.mkdir(exist_ok=True)
    stale.write_bytes(b"x")
    assert target.jobs() == []
    assert stale.exists()  # the same boot
    (package / "__pycache__" / "boot").write_text("another\n")
    assert target.jobs() == []
    assert not stale.exists()
