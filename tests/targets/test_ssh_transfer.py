from __future__ import annotations

import asyncio
import hashlib
import os
import random
import sys
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dld_tui.core.errors import ActivityError, FileChangedError
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent, AgentError
from dld_tui.targets.ssh.link import Link
from dld_tui.targets.ssh.transfer import Amount, KnownHashes, LocalFile, Upload, download
from tests.support.asker import Answers
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import QUICK
from tests.support.sshd import Sshd

T = TypeVar("T")
MB = 1_000_000


@pytest.fixture
def agent() -> Iterator[Callable[[Connection], Agent]]:
    made: list[Agent] = []

    def make(connection: Connection) -> Agent:
        if connection.python == "python3":
            connection = changed(connection, python=sys.executable)
        one = Agent(Link(connection, Answers()))
        made.append(one)
        loop.call(one.make_ready(), 60)
        return one

    yield make
    for one in made:
        loop.call(one.link.close(), 60)


def run(work: Coroutine[Any, Any, T]) -> T:
    return loop.call(work, 60)


def noise(path: Path, size: int, seed: int = 0) -> LocalFile:
    """Write bytes that cannot be guessed, as weights; old enough for their hash to be kept."""
    path.write_bytes(random.Random(seed).randbytes(size))
    os.utime(path, (1, 1))
    return LocalFile.at(path)


def objects(connection: Connection) -> dict[str, bytes]:
    folder = Path(connection.directory, "objects")
    return {path.name: path.read_bytes() for path in folder.iterdir()} if folder.exists() else {}


def behind(connection: Connection, line: SlowLine) -> Connection:
    assert connection.known_hosts is not None
    path = connection.known_hosts.with_name("known_hosts_of_line")
    text = connection.known_hosts.read_text()
    path.write_text(text.replace(f":{connection.port} ", f":{line.port} "))
    return changed(connection, port=line.port, known_hosts=path)


def test_files_are_there_by_the_hash_of_their_content(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    files = [noise(tmp_path / f"{size}", size, size) for size in (0, 10, 200_000, 3 * MB)]
    upload = Upload(agent(connection), QUICK)
    names = run(upload.send(files))
    assert objects(connection) == {names[file]: file.path.read_bytes() for file in files}
    assert {hashlib.sha256(data).hexdigest() for data in objects(connection).values()} == set(
        names.values()
    )


def test_what_is_there_is_not_sent_again_whatever_its_name(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    there = agent(connection)
    file = noise(tmp_path / "a", 3 * MB)
    run(Upload(there, QUICK).send([file]))
    again = Upload(there, QUICK)
    run(again.send([file]))
    copy = noise(tmp_path / "b", 3 * MB)
    run(again.send([copy]))
    assert again.amount.sent == 0


def test_a_changed_file_is_sent_again(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    there = agent(connection)
    file = noise(tmp_path / "a", 3 * MB)
    first = run(Upload(there, QUICK).send([file]))[file]
    changed_file = noise(tmp_path / "a", 3 * MB, seed=1)
    upload = Upload(there, QUICK)
    assert run(upload.send([changed_file]))[changed_file] != first
    assert upload.amount.sent == 3 * MB


def test_a_cut_is_taken_up_where_it_was(
    agent: Callable[[Connection], Agent], connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 8 * MB)
    with SlowLine(sshd.port, rate=6 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)

        async def send_and_cut() -> str:
            task = asyncio.ensure_future(upload.send([file]))
            while upload.amount.done < 5 * MB:
                await asyncio.sleep(0.01)
            line.drop()
            return (await task)[file]

        name = run(send_and_cut())
    assert objects(connection) == {name: file.path.read_bytes()}
    assert 8 * MB <= upload.amount.sent < 14 * MB
    assert any("connection" in note for note in upload.amount.notes)


def test_a_server_killed_in_the_middle(
    own_sshd: Callable[..., Sshd],
    agent: Callable[[Connection], Agent],
    connection: Connection,
    tmp_path: Path,
) -> None:
    server = own_sshd()
    file = noise(tmp_path / "a", 8 * MB)
    at_server = changed(
        connection, port=server.port, key=server.user_key, known_hosts=server.known_hosts()
    )
    with SlowLine(server.port, rate=8 * MB) as line:
        upload = Upload(agent(behind(at_server, line)), QUICK)

        async def send_and_kill() -> str:
            task = asyncio.ensure_future(upload.send([file]))
            while upload.amount.done < 4 * MB:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.kill)
            await asyncio.to_thread(server.start)
            return (await task)[file]

        name = run(send_and_kill())
    assert objects(connection) == {name: file.path.read_bytes()}


def test_a_part_that_is_another_ones_is_not_trusted(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    there = agent(connection)
    file = noise(tmp_path / "a", 3 * MB)
    folder = Path(connection.directory, "objects")
    folder.mkdir(parents=True)
    (folder / f"{file.key}.part").write_bytes(b"x" * MB)
    name = run(Upload(there, QUICK).send([file]))[file]
    assert objects(connection) == {name: file.path.read_bytes()}


def test_a_file_that_changes_meanwhile_is_refused(
    agent: Callable[[Connection], Agent], connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 4 * MB)
    with SlowLine(sshd.port, rate=8 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)

        async def send_and_change() -> None:
            task = asyncio.ensure_future(upload.send([file]))
            while upload.amount.done < MB:
                await asyncio.sleep(0.01)
            os.utime(file.path)
            await task

        with pytest.raises(FileChangedError, match="changed while it was sent"):
            run(send_and_change())


def test_a_dropped_upload_leaves_nothing(
    agent: Callable[[Connection], Agent], connection: Connection, sshd: Sshd, tmp_path: Path
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
    assert objects(connection) == {}


@pytest.mark.parametrize("size", [100_000, 6 * MB])
def test_a_full_disk_is_one_line(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path, size: int
) -> None:
    """Stands in for a full disk: files of that user may not be larger than a limit."""
    python = tmp_path / "python"
    there = agent(connection)
    blocks = 2 * MB // 512 if size > MB else 100
    python.write_text(f'#!/bin/sh\nulimit -f {blocks}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    there.python = str(python)
    file = noise(tmp_path / "a", size)
    with pytest.raises(AgentError, match="the file is larger than allowed there"):
        run(Upload(there, QUICK).send([file]))


def test_a_really_full_disk(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=12m none '{disk}' 2>/dev/null"):
        pytest.skip("no file system can be mounted here")
    try:
        there = agent(changed(connection, directory=str(disk / "deployed")))
        file = noise(tmp_path / "a", 8 * MB)
        with pytest.raises(AgentError, match=r"8000000 bytes are needed and only .* are free"):
            run(Upload(there, QUICK).send([file]))
    finally:
        os.system(f"umount '{disk}'")


def test_results_come_whole_or_not_at_all(
    agent: Callable[[Connection], Agent], connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    job = "20260101-000000-0123abcd"
    content = random.Random(1).randbytes(4 * MB)
    folder = Path(connection.directory, "jobs", job, "out", "output")
    folder.mkdir(parents=True)
    (folder / "r").write_bytes(content)
    (folder / "link").symlink_to("/etc/passwd")
    path = tmp_path / "here"
    with SlowLine(sshd.port, rate=6 * MB) as line:
        there = agent(behind(connection, line))
        amount = Amount()

        async def fetch_and_cut() -> bool:
            work = download(there, job, "output/r", path, QUICK, amount)
            task = asyncio.ensure_future(work)
            while amount.done < 2 * MB:
                await asyncio.sleep(0.01)
            assert not path.exists()
            line.drop()
            return await task

        assert run(fetch_and_cut())
        assert path.read_bytes() == content
        assert amount.done == len(content)
        assert not run(download(there, job, "output/none", path, QUICK, amount))
        assert not run(download(there, job, "output/link", path, QUICK, amount))
        with pytest.raises(ActivityError, match="outside"):
            run(download(there, job, "../../../x", path, QUICK, amount))
    assert path.read_bytes() == content


def test_a_fresh_file_is_hashed_again(tmp_path: Path) -> None:
    file = noise(tmp_path / "a", 10)
    fresh_path = tmp_path / "b"
    fresh_path.write_bytes(b"1")
    fresh = LocalFile.at(fresh_path)
    hashes = KnownHashes()
    hashes.put(file, "0" * 64)
    hashes.put(fresh, "1" * 64)
    hashes.save()
    assert KnownHashes().get(file) == "0" * 64
    assert KnownHashes().get(fresh) is None  # it may change again within a tick of its clock
