"""The agent of a target, its jobs and their supervisor, in this process."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.core.process.child import Child
from dld_tui.targets.ssh.remote import agent, jobs, objects, replies, supervisor
from dld_tui.targets.ssh.remote.supervisor import Supervisor
from tests.support.recorded import Recorded

Serve = Callable[..., str]
NOW = 2_000_000_000.0
DAY = 86_400
IDS = [f"20260101-000000-0000000{number}" for number in range(10)]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Return a function that serves one command, and says what was asked and answered."""
    monkeypatch.setattr(replies, "_mark", "")
    monkeypatch.setattr(jobs, "time", SimpleNamespace(time=lambda: NOW, monotonic=lambda: 1.0))
    old = os.umask(0o022)

    def served(command: str, data: bytes = b"", **arguments: Any) -> str:
        read, write = os.pipe()
        os.write(write, data)
        os.close(write)
        printed = io.BytesIO()
        stdout = io.TextIOWrapper(printed, "utf-8")
        with os.fdopen(read, "r") as source, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", source)
            patch.setattr(sys, "stdout", stdout)
            try:
                agent.main(str(tmp_path), command, json.dumps(arguments), "@:")
                status = ""
            except SystemExit as end:
                status = f" -> exit {end.code}"
        stdout.flush()
        text = printed.getvalue().decode("utf-8", "backslashreplace").rstrip("\n")
        text = re.sub(r"only \d+ are free", "only N are free", text)
        whole = f"> {command} {json.dumps(arguments)}{status}\n{text}".rstrip()
        return whole.replace(str(tmp_path), "ROOT")

    yield served
    os.umask(old)


def tree(root: Path) -> Iterator[str]:
    """Yield each file with its mode and its content."""
    for where, folders, names in os.walk(root):
        folders.sort()
        for name in sorted(names):
            path = Path(where, name)
            text = path.read_bytes().decode("utf-8", "backslashreplace")
            mode = f"{path.stat().st_mode & 0o777:o}"
            yield f"{path.relative_to(root)} {mode}: {text!r}"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_objects(
    serve: Serve, tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed, flush = list[str](), objects.flush

    def note_and_flush(path: Path) -> None:
        flushed.append(path.name)
        flush(path)

    monkeypatch.setattr(objects, "flush", note_and_flush)
    key, folder = "a" * 64, tmp_path / "objects"
    one, two = b"one", b"twotwo"
    lines = [
        serve("look", sizes=[1], names=[]),
        serve("receive_many", b"[3, 0, 6]\n" + one + two),
        serve("receive_many", b"[3, 9]\nabcdef"),
        serve("look", sizes=[6, 3, 5], names=[sha256(two), sha256(one), "b" * 64, sha256(two)]),
        serve("part", key=key),
        serve("receive", b"half", key=key, offset=0, size=8),
        serve("part", key=key),
        serve("receive", b"more", key=key, offset=5, size=8),
    ]
    with (folder / f"{key}.part").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        lines.append(serve("receive", b"more", key=key, offset=4, size=8))
    lines += [
        *tree(tmp_path),
        serve("receive", b"", key=key, offset=3, size=1 << 60),
        serve("receive", b"F-MOREmore", key=key, offset=3, size=9),
        serve("receive", b"x", key="b" * 64, offset=0, size=2),
        serve("drop", key="b" * 64),
        serve("drop", key="b" * 64),
        serve("part", key="../x"),
        serve("drop", key="A" * 64),
        *tree(tmp_path),
    ]
    (folder / sha256(one)).write_bytes(b"0ne")
    lines += [serve("look", sizes=[3, 6], names=[sha256(one), sha256(two)]), *tree(tmp_path)]
    (tmp_path / "kept").hardlink_to(folder / sha256(two))
    with pytest.raises(replies.RefusedError, match="an object is missing"):
        objects.place(tmp_path, "c" * 64, tmp_path / "placed")
    lines += [serve("clean", days=1), serve("clean", days=0), *tree(tmp_path)]
    kept = [re.sub(r"^\d+\.", "PID.", name) for name in flushed]
    recorded("remote_objects", {"objects": "\n".join(lines), "flushed": "\n".join(kept)})


def order(number: int, **changes: Any) -> bytes:
    """Return the order for a job."""
    whole: dict[str, Any] = {
        "id": IDS[number], "request": {"activity": "fake", "request": {"a": 1}}, "files": [],
        "folders": [], "worker": ["py thon", "-c", "it's"], "launcher": [], "environment": {},
    }  # fmt: skip
    return json.dumps(whole | changes).encode() + b"\n"


def test_starting_jobs(
    serve: Serve, tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(folder: Path) -> None:
        if folder.name == IDS[3]:
            raise OSError(errno.ENOSPC, "no space", str(tmp_path))
        (folder / "events").write_text("oline\n")
        os.utime(folder / "events", (NOW, NOW))

    monkeypatch.setattr(jobs, "_launch", launch)
    data = b"model"
    serve("receive_many", b"[5]\n" + data)
    old = ended(tmp_path, 7, 15)
    files = [["in/m.onnx", sha256(data), 1_234_567_890], ["in/more/x", sha256(data), 7]]
    full = {"files": files, "folders": ["in/empty"], "launcher": ["srun", "-n"],
            "environment": {"A": "x 'y' $z", "B": ""}}  # fmt: skip
    lines = [
        serve("start", order(0, **full)),
        serve("start", order(0, files=[["x", "b" * 64, 0]])),
        serve("start", order(1, files=[["x", "c" * 64, 0], ["y", "b" * 64, 0], *files])),
        serve("start", order(2, folders=["in/../x"])), serve("start", order(3)),
        serve("start", order(4, files=[["/x", sha256(data), 0]])),
        serve("start", order(5, files=[["x\0", sha256(data), 0]])),
        serve("start", order(6, id="../x")), serve("start", order(6)), serve("list"),
    ]  # fmt: skip
    assert not old.exists(), "jobs of 14 days go"
    assert (tmp_path / "jobs" / IDS[0] / "in" / "empty").is_dir()
    placed = tmp_path / "jobs" / IDS[0] / "in" / "more" / "x"
    assert (placed.stat().st_mtime_ns, placed.stat().st_nlink) == (7, 3)
    text = "\n".join([*lines, *tree(tmp_path)])
    recorded("remote_starts", {"starts": text.replace(str(tmp_path), "ROOT")})


def ended(root: Path, number: int, days: float, end: Any = None, *outputs: str) -> Path:
    """Leave a job that ended so many days ago, with files that nobody fetched."""
    folder = root / "jobs" / IDS[number]
    (folder / "out").mkdir(parents=True)
    for name in outputs:
        (folder / "out" / name).write_text("result")
    (folder / "lock").touch()
    end = {"code": 0} if end is None else end
    line = end if isinstance(end, str) else f"x{json.dumps(end)}"
    (folder / "events").write_text(f"{'o' * 5000}\n{line}\n")
    os.utime(folder / "events", (NOW - days * DAY,) * 2)
    return folder


def test_jobs_that_are_there(serve: Serve, tmp_path: Path, recorded: Recorded) -> None:
    lines = [serve("list"), serve("clean", days=0)]
    for number, end in enumerate((
        None, {"code": 0}, {"code": 1}, {"code": 0, "cancelled": True}, "x{", "oline", None, None,
    )):  # fmt: skip
        outputs = ("r", "s") if number in (1, 2, 7) else ()
        folder = ended(tmp_path, number, 1 if number else 3, end, *outputs)
        job = {"activity": "fake", "started": 5.5} if number % 2 else {}
        (folder / "job.json").write_text(json.dumps(job) if number != 3 else "{")
    (tmp_path / "jobs" / "another").mkdir()
    for number in (8, 9):  # they left no record
        (tmp_path / "jobs" / IDS[number]).mkdir()
        os.utime(tmp_path / "jobs" / IDS[number], (NOW - DAY + number - 8,) * 2)
    (folder / "out" / "link").symlink_to("/etc/passwd")
    running = tmp_path / "jobs" / IDS[6]
    (running / "lock").unlink()
    with (running / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.mkfifo(running / "control")
        control = os.open(running / "control", os.O_RDWR | os.O_NONBLOCK)
        lines += [serve("stop", job=IDS[6], word=word) for word in ("cancel", "kill", "other")]
        lines.append(repr(os.read(control, 100)))
        os.close(control)
        lines += [
            serve("stop", job=IDS[6], word="kill"), serve("stop", job=IDS[0], word="kill"),
            serve("list"), serve("remove", job=IDS[6]), serve("wipe", results=True),
            *(serve("fetch", job=IDS[7], place=place, offset=offset)
              for place, offset in (("r", 0), ("s", 3), ("r", 99), ("link", 0), ("none", 0),
                                    ("../lock", 0), ("", 0))),
            serve("clean", days=2), serve("clean", days=1), serve("clean", days=0, results=True),
            serve("remove", job=IDS[5]), serve("remove", job="x"),
        ]  # fmt: skip
    (running / "out" / "r").write_text("late")
    lines += [serve("wipe"), serve("wipe", results=True), *sorted(os.listdir(tmp_path))]
    lines += [
        serve("ready", name="../k", value={"python": "/p"}), *tree(tmp_path),
        serve("ready", name="k", value=None), serve("ready", name="k", value=None), *tree(tmp_path),
        serve("drop", key="a" * 64),
    ]  # fmt: skip
    (tmp_path / "objects").write_text("no folder")
    lines.append(serve("part", key="a" * 64))
    recorded("remote_jobs", {"jobs": "\n".join(lines)})


def test_records_are_followed_to_the_end(
    serve: Serve, tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = ended(tmp_path, 0, 0, "e1")
    events, clock, texts = folder / "events", [0.0], {}
    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: clock[0], time=lambda: NOW))

    def followed(title: str, offset: int, *then: str | None, start: str = "oa\n") -> None:
        """Follow a job which writes these texts while it is waited for, and ends after them."""
        events.write_text(start)
        left, pauses = [*then], list[float]()
        lock = (folder / "lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)

        def pause(seconds: float) -> None:
            pauses.append(round(seconds, 4))
            clock[0] += 0.5
            text = left.pop(0) if left else None
            if text is None:
                lock.close()
            else:
                with events.open("a") as file:
                    file.write(text)

        monkeypatch.setattr(jobs, "_pause", pause)
        texts[title] = f"{serve('follow', job=IDS[0], offset=offset)}\n{pauses}"
        lock.close()

    followed("to its end", 0, "ob\n", "", "", "", "oc\nx{}\n")
    followed("ended before", 3, start='oa\nob\nx{"code": 0}\n')
    followed("lost", 0)
    followed("lost in a line", 0, "o half", "", "", "")
    followed("x in a line", 0, "ox{}\n", "x half", "of it\n")
    followed("poll slower and slower", 0, *[""] * 9, "x\n")
    texts["none"] = serve("follow", job=IDS[1], offset=0)
    recorded("remote_follow", texts)


def supervised(
    folder: Path, script: str, orders: str, change: Callable[[Supervisor], object]
) -> str:
    """Run a job to its end; return what was recorded, what is left, and the reason."""
    for name in ("work", "out/sub", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "request.json").write_text('{"a": 1}')
    (folder / "job.json").write_text(json.dumps({"command": ["sh", "-c", script]}))
    read, write = os.pipe()
    one = Supervisor(folder, write)
    change(one)
    write_records, left_orders = one._write, orders.split()

    def written(name: str, records: bytes) -> None:
        write_records(name, records)
        while b"ready" in records and left_orders:
            assert supervisor.order(folder, left_orders.pop(0))

    one._write = written  # type: ignore[method-assign]
    with contextlib.ExitStack() as stack:
        start = one._start

        def started() -> Child:
            child = start()
            for pipe in (child.stdin, child.stdout, child.stderr, one._lock, one._events):
                assert pipe is not None
                stack.callback(pipe.close)
            return child

        one._start = started  # type: ignore[method-assign]
        one.run()
        if change is broken:
            os.close(write)
            stack.callback(one._lock.close)
            stack.callback(one._events.close)
        assert not supervisor.order(folder, "kill")
        ready = stack.enter_context(os.fdopen(read)).read()
        os.close(one._control)
    records = (folder / "events").read_text().splitlines()
    left = [name for name in ("work", "out", "tmp") if (folder / name).exists()]
    outputs = [line for line in tree(folder) if line.startswith("out")]
    # The sort keeps the order of each stream; the two of them are read as they come.
    return "\n".join([f"{ready!r}, {left}", *sorted(records, key=lambda line: line[:1]), *outputs])


def broken(one: Supervisor) -> None:
    one._job["command"] = ["no-such-program"]


def full(one: Supervisor) -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), one._events.fileno())


def little(one: Supervisor) -> None:
    one._rest = {"o": 7, "e": 6}


JOBS: dict[str, tuple[str, str, Callable[[Supervisor], object]]] = {
    "finished": ("head -n 1; printf half; pwd >&2; echo ${TMPDIR##*/} >&2; echo r > ../out/r",
                 "", id),
    "failed": ("exec <&-; echo no >&2; exit 3", "", id),
    "killed by itself": ("kill -11 $$", "", id),
    "cancelled": ("read request; echo ready; read word; echo $word; echo r > ../out/r; exit 2",
                  "cancel cancel", id),
    "deaf": ("trap '' TERM; echo r > ../out/r; echo ready; while :; do sleep 0.01; done",
             "cancel", id),
    "asked to end": (
        "trap 'echo term; exit 4' TERM; exec 2>&-; echo ready; while :; do sleep 0.01; done",
        "cancel", id),
    "killed": ("echo r > ../out/r; echo ready; sleep 600", "odd kill", id),
    "closed": ("echo half > ../out/r; exec >&- 2>&-; sleep 600", "", id),
    "no program": ("", "", broken), "full disk": ("echo a; sleep 600", "", full),
    "too much": ("echo 12345; echo 12345 >&2", "", little),
}  # fmt: skip


def test_supervised_jobs(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "ASK_S", 0.25)
    flushed = list[str]()

    def flush(path: Path) -> None:
        job = next(tmp_path / part for part in path.relative_to(tmp_path).parts)
        assert b"\nx{" not in (job / "events").read_bytes(), "the end is told after that"
        flushed.append(path.name)

    monkeypatch.setattr(supervisor, "flush", flush)
    texts = {
        title: supervised(tmp_path / str(number), *case).replace(str(tmp_path), "ROOT")
        for number, (title, case) in enumerate(JOBS.items())
    }
    texts["flushed"] = " ".join(sorted({*flushed}))
    recorded("remote_supervisor", texts)


def failing(name: str, where: str | None = None) -> Callable[..., None]:
    """Return what raises an error of the system."""

    def fail(*unused: object) -> None:
        raise OSError(getattr(errno, name), "text of the system", where)

    return fail


def test_refusals(
    serve: Serve, recorded: Recorded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lines = []
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EACCES", "EPERM", "EROFS", "ENOTDIR", "EIO"):
        fail = failing(name, "/x" if name != "EIO" else None)
        monkeypatch.setitem(agent._COMMANDS, "look", fail)
        lines.append(serve("look"))
    monkeypatch.setitem(agent._COMMANDS, "look", lambda root: (_ for _ in ()).throw(OSError("odd")))
    lines.append(serve("look"))
    for name in ("EINVAL", "ENOTSUP", "ENOSYS", "EIO"):
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", failing(name))
            lines.append(f"fsync: {name}; " + serve("receive_many", b"[1]\nx"))
    monkeypatch.setattr(sys, "executable", "/bin/false")
    wanted = {"python": str(tmp_path / "venv" / "bin" / "python")}
    lines += [
        serve("modules", **wanted, modules={"a": ["b"]}), serve("create", name="py3"),
        serve("pip", **wanted, requirements=["a"], options=[]),
        serve("wheels", **wanted, wheels=[]),
    ]  # fmt: skip
    recorded("remote_refusals", {"refusals": "\n".join(lines)})
