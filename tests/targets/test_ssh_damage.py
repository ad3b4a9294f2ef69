"""Targets whose disk has lost or changed what was sent: after a power cut, or as it fails."""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from dld_tui.activities.convert import opset
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Failed
from dld_tui.core.machine.health import GOOD, MISSING
from dld_tui.core.params import to_json
from dld_tui.core.process import paths
from dld_tui.core.settings.saved_targets import Connection, changed
from dld_tui.core.settings.secrets import BAD
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.channel import Agent
from dld_tui.targets.ssh.link import Link
from dld_tui.targets.ssh.remote import objects
from dld_tui.targets.ssh.target import examine
from dld_tui.targets.ssh.transfer import Amount, LocalFile, Upload, download
from tests.support import models
from tests.support.asker import Answers
from tests.support.slow_line import SlowLine
from tests.support.ssh_jobs import QUICK, REAL, script, target_of
from tests.support.sshd import Sshd
from tests.targets.test_ssh_deploy import BARE, TINY, amount, imported, prepare, wheel_folder
from tests.targets.test_ssh_transfer import MB, agent, behind, noise, run

__all__ = ["agent", "amount", "wheel_folder"]


def flipped(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :]


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "zeros": lambda data: bytes(len(data)),
    "short": lambda data: data[: len(data) // 2],
    "long": lambda data: data + b"\0",
    "a bit": flipped,
}


def damage(path: Path, how: str) -> None:
    """Change a file as a disk does: no date of it tells."""
    status = path.stat()
    path.write_bytes(DAMAGES[how](path.read_bytes()))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def objects_of(connection: Connection) -> list[Path]:
    return sorted(Path(connection.directory, "objects").iterdir())


def package_of(connection: Connection) -> Path:
    [package] = Path(connection.directory, "package").iterdir()
    return package


def test_damaged_objects_are_sent_again(
    agent: Callable[[Connection], Agent], connection: Connection, tmp_path: Path
) -> None:
    there = agent(connection)
    other = noise(tmp_path / "other", MB)
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
    for file in files:
        path = Path(connection.directory, "objects", names[file])
        assert path.read_bytes() == file.path.read_bytes()
    size = sum(file.size for file in damaged)
    assert size <= upload.amount.sent < size + 200
    again = Upload(there, QUICK)
    run(again.send(files))
    assert again.amount.sent == 0


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


def test_what_is_lost_between_sending_and_starting_is_sent_again(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = models.write(tmp_path, models.layered())
    send = Upload.send
    losses: list[str] = []

    async def send_and_lose(upload: Upload, files: list[LocalFile]) -> dict[LocalFile, str]:
        names = await send(upload, files)
        for path in objects_of(connection) if len(losses) < most else ():
            path.unlink()
            losses.append(path.name)
        return names

    monkeypatch.setattr(Upload, "send", send_and_lose)
    most = 1
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
    assert list(Path(connection.directory, "jobs").iterdir()) == []


def test_a_bad_sector_is_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    name = "0" * 64
    path = objects.folder_of(tmp_path) / name
    path.write_bytes(b"x")
    part = path.with_name(f"{name}.part")
    part.write_bytes(b"x")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(objects, "_hash", fail)
    assert objects.look(tmp_path, [1], [name])["there"] == []
    assert objects.part(tmp_path, name) == {"size": 0, "sha256": ""}
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("how", ["empty", "a bit", "gone", "more"])
def test_a_damaged_package_blocks_nothing_and_is_installed_again(
    connection: Connection, how: str
) -> None:
    target = target_of(connection)
    with target.start("fake", script(["finish"])) as job:
        job.result()
    remote = package_of(connection) / "dld_tui" / "targets" / "ssh" / "remote"
    good = {path.name: path.read_bytes() for path in remote.glob("*.py")}

    def break_it() -> None:
        for name in ("agent.py", "replies.py", "supervisor.py"):
            if how == "gone":
                (remote / name).unlink()
            elif how == "more":
                (remote / "json.py").write_text("raise SystemExit(3)\n")
            else:
                damage(remote / name, how)

    break_it()
    assert target.clean(0).jobs == 0  # needs no package, and installs none
    assert {path.name: path.read_bytes() for path in remote.glob("*.py")} != good
    steps = examine(target.connection, Answers())
    assert not [step for step in steps if step.state == BAD]
    states = {check.name: check.state for check in target.checks("profile_onnxruntime")}
    assert states["worker"] == MISSING
    assert states["numpy"] == GOOD
    assert target.jobs() == []
    assert {path.name: path.read_bytes() for path in remote.glob("*.py")} == good
    break_it()
    with target.start("fake", script(["finish", {"a": 1}])) as job:
        assert job.result() == {"a": 1}
    assert {path.name: path.read_bytes() for path in remote.glob("*.py")} == good
    break_it()
    target.wipe()
    assert not Path(connection.directory, "package").exists()


def test_what_was_compiled_before_a_restart_is_compiled_again(connection: Connection) -> None:
    target = target_of(connection)
    assert target.jobs() == target.jobs() == []
    package = package_of(connection)
    stale = package / "dld_tui" / "__pycache__" / "stale.pyc"
    stale.parent.mkdir(exist_ok=True)
    stale.write_bytes(b"x")
    assert target.jobs() == []
    assert stale.exists()  # the same boot
    (package / "__pycache__" / "boot").write_text("another\n")
    assert target.jobs() == []
    assert not stale.exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own, of 32 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.geteuid() != 0 or os.system(f"mount -t tmpfs -o size=32m none '{disk}' 2>/dev/null"):
        pytest.skip("no file system can be mounted here")
    yield disk
    os.system(f"umount -l '{disk}'")


def fill(path: Path, rest: int) -> None:
    """Write a file that leaves so many bytes of its disk."""
    disk = os.statvfs(path.parent)
    path.write_bytes(bytes(disk.f_bavail * disk.f_frsize - rest))


def test_a_full_disk_hinders_neither_fetching_nor_cleaning(
    connection: Connection, small_disk: Path, tmp_path: Path
) -> None:
    there = changed(connection, directory=str(small_disk / "deployed"))
    target = target_of(there)
    job_id = "20260101-000000-0123abcd"
    folder = Path(there.directory, "jobs", job_id)
    (folder / "out").mkdir(parents=True)
    (folder / "events").write_bytes(b'x{"code": 0}\n')
    (folder / "out" / "r").write_bytes(b"result")
    filler = Path(there.directory, "objects", "0" * 64)
    filler.parent.mkdir()
    fill(filler, 0)
    assert [job.id for job in target.jobs()] == [job_id]
    one = Agent(Link(target.connection, Answers()))
    try:
        loop.call(one.make_ready(), 60)
        path = tmp_path / "here"
        assert loop.call(download(one, job_id, "r", path, QUICK, Amount()), 60)
        assert path.read_bytes() == b"result"
    finally:
        loop.call(one.link.close(), 60)
    end = target.start("fake", script(["finish"])).wait()
    assert isinstance(end, Failed)
    assert "the disk is full" in end.message
    assert target.clean(0, results=True).bytes > 8 * MB
    assert not filler.exists()
    assert not folder.exists()
    with target.start("fake", script(["finish", {"a": 1}])) as job:
        assert job.result() == {"a": 1}


def test_a_disk_that_fills_while_small_files_come_keeps_none_of_them(
    agent: Callable[[Connection], Agent], connection: Connection, small_disk: Path, tmp_path: Path
) -> None:
    there = agent(changed(connection, directory=str(small_disk / "deployed")))
    fill(small_disk / "filler", 3 * MB)
    files = [noise(tmp_path / f"{seed}", 250_000, seed) for seed in range(20)]
    with pytest.raises(ActivityError, match="the disk is full"):
        run(Upload(there, QUICK).send(files))
    left = list(Path(there.root, "objects").iterdir())
    assert not [path for path in left if path.suffix == ".part"]


def test_a_receiver_that_is_killed_is_started_again(
    agent: Callable[[Connection], Agent], connection: Connection, sshd: Sshd, tmp_path: Path
) -> None:
    file = noise(tmp_path / "a", 8 * MB)
    with SlowLine(sshd.port, rate=6 * MB) as line:
        upload = Upload(agent(behind(connection, line)), QUICK)

        async def send_and_kill() -> str:
            task = asyncio.ensure_future(upload.send([file]))
            while upload.amount.done < 3 * MB:
                await asyncio.sleep(0.01)
            for pid in receivers(connection):
                os.kill(pid, signal.SIGKILL)
            return (await task)[file]

        name = run(send_and_kill())
    [path] = objects_of(connection)
    assert path.name == name
    assert path.read_bytes() == file.path.read_bytes()


def receivers(connection: Connection) -> list[int]:
    """Return the processes of agents that take in a file."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if connection.directory.encode() in words and b"receive" in words:
                found.append(int(entry.name))
    return found


def test_an_installation_that_was_cut_off_is_made_again(
    connection: Connection, wheel_folder: Path
) -> None:
    one = Agent(Link(changed(connection, python=BARE), Answers()))
    try:
        python = Path(prepare(one, TINY, "here").python)
        environment = python.parent.parent
        assert not (environment / "dld-installing").exists()
        [module] = environment.rglob("tinymod/__init__.py")
        damage(module, "empty")
        [note] = Path(connection.directory, "ready").iterdir()
        note.unlink()
        with (environment / "dld-installing").open("w") as mark:
            fcntl.flock(mark, fcntl.LOCK_SH)  # somebody installs: it is left alone
            prepare(one, TINY, "here")
            assert module.stat().st_size == 0
        note.unlink()
        assert imported(prepare(one, TINY, "here").python) == "1 2"
    finally:
        loop.call(one.link.close(), 60)


@pytest.mark.parametrize("how", ["empty", "a bit"])
def test_a_wheel_that_was_kept_here_is_checked(
    connection: Connection, wheel_folder: Path, how: str
) -> None:
    kept = changed(connection, python=BARE)
    one = Agent(Link(kept, Answers()))
    try:
        assert imported(prepare(one, TINY, "here").python) == "1 2"
        shutil.rmtree(connection.directory)
        [wheel] = paths.cache_dir().joinpath("wheels").rglob("*.whl")
        damage(wheel, how)
        assert imported(prepare(one, TINY, "here").python) == "1 2"
    finally:
        loop.call(one.link.close(), 60)


def test_the_end_of_a_job_is_told_after_its_results_are_on_the_disk(tmp_path: Path) -> None:
    for name in ("work", "out/sub"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "out" / "sub" / "r").write_bytes(b"result")
    os.mkfifo(tmp_path / "out" / "pipe")
    (tmp_path / "request.json").write_text("{}")
    (tmp_path / "job.json").write_text('{"command": ["true"]}')
    code = """
import os, pathlib, sys
from dld_tui.targets.ssh.remote import supervisor
folder, flush = pathlib.Path(sys.argv[1]), supervisor.flush
def flush_and_tell(path):
    flush(path)
    print(path.name, (folder / "events").stat().st_size)
supervisor.flush = flush_and_tell
supervisor.Supervisor(folder, os.pipe()[1]).run()
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert sorted(done.stdout.splitlines()) == ["out 0", "pipe 0", "r 0", "sub 0"]
    assert (tmp_path / "events").read_bytes().startswith(b'x{"code": 0')
