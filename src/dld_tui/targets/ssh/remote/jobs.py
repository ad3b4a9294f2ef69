"""Jobs on the target: each has a folder, and continues if the connection is lost."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dld_tui.core.process.child import Child
from dld_tui.targets.ssh.remote import objects, supervisor
from dld_tui.targets.ssh.remote.replies import fail

_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_BEAT_S = 1.0
_POLL_S = (0.01, 0.1)
_CHUNK = 1 << 18
_DAY_S = 86400
_KEPT_DAYS = 14
"""For jobs that ended without a result."""
_KEPT_UNUSED_DAYS = 30
"""For files that no job used."""


def folder_of(root: Path, job_id: str) -> Path:
    """Return the folder of a job, which need not be there."""
    if not _ID.fullmatch(job_id):
        fail("not the name of a job")
    return root / "jobs" / job_id


def start(root: Path, order: dict[str, Any]) -> dict[str, Any]:
    """Start a job and return once its worker runs.

    Args:
        root: The deployment folder.
        order: ``id``, ``request`` (the line for the worker), ``files`` (``[place, hash, mtime]``,
            places relative to the folder), ``folders`` to make, ``worker`` (a command line),
            ``launcher``, ``environment``.

    Returns:
        ``{"missing": [hash, ...]}`` when something has to be sent first, else ``{"id": ...}``.
    """
    folder = folder_of(root, order["id"])
    if (folder / "events").exists():  # the answer to the first attempt was lost
        return {"id": order["id"]}
    # First, as it may take what was sent long ago by a clock that was wrong then.
    clean(root, _KEPT_DAYS)
    objects.clean(root, _KEPT_UNUSED_DAYS)
    missing = sorted(
        {name for _, name, _ in order["files"] if not objects.path_of(root, name).is_file()}
    )
    if missing:
        return {"missing": missing}
    folder.mkdir(mode=0o700, parents=True)
    try:
        _fill(root, folder, order)
        _launch(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return {"id": order["id"]}


def _fill(root: Path, folder: Path, order: dict[str, Any]) -> None:
    for name in ("work", "tmp", "out", *order["folders"]):
        _inside(folder, name).mkdir(parents=True, exist_ok=True)
    for place, sha256, mtime_ns in order["files"]:
        objects.place(root, sha256, _inside(folder, place), mtime_ns)
    script = "".join(
        f"export {name}={shlex.quote(value)}\n" for name, value in order["environment"].items()
    )
    run = folder / "run.sh"
    run.write_text(f"{script}exec {shlex.join(order['worker'])}\n", encoding="utf-8")
    run.chmod(0o700)
    (folder / "request.json").write_text(json.dumps(order["request"]), encoding="utf-8")
    # The launcher of a container or a scheduler may drop variables, a script of ours does not.
    job = {
        "command": [*order["launcher"], "/bin/sh", str(run)],
        "activity": order["request"]["activity"],
        "started": time.time(),
    }
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def _inside(folder: Path, place: str) -> Path:
    parts = place.split("/")
    if not all(parts) or {".", ".."} & set(parts) or "\0" in place:
        fail("a place outside the job's folder")
    return folder.joinpath(*parts)


def _launch(folder: Path) -> None:
    reader, writer = os.pipe()
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]);"
        f" from {supervisor.__name__} import main;"
        " main(pathlib.Path(sys.argv[2]), int(sys.argv[3]))"
    )
    package = str(Path(__file__).resolve().parents[4])
    with (folder / "supervisor.log").open("wb") as log:
        process = Child(
            [sys.executable, "-I", "-S", "-c", code, package, str(folder), str(writer)],
            stdout=subprocess.DEVNULL,
            stderr=log,
            pass_fds=[writer],
            outlives=True,  # the connection may end, the job goes on
        )
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        problem = pipe.read().decode("utf-8", "replace")
    if not (folder / "events").exists():
        process.wait()
        log_text = (folder / "supervisor.log").read_text(encoding="utf-8", errors="replace")
        problem = (log_text.strip().splitlines() or ["it gives no reason"])[-1]
    if problem:
        command = json.loads((folder / "job.json").read_text(encoding="utf-8"))["command"]
        fail(f"the job cannot be started: {problem}", f"Is {command[0]} there, and in PATH?")


def follow(root: Path, job_id: str, offset: int) -> None:
    """Print the records of a job from an offset until its last one; ``h`` is a sign of life."""
    folder = folder_of(root, job_id)
    if not (folder / "events").is_file():
        fail("the job does not exist", "It was removed, or it never started", "gone")
    output = sys.stdout.buffer
    pause, beat_at = _POLL_S[0], 0.0
    last = b""
    with (folder / "events").open("rb") as events:
        events.seek(offset)
        while True:
            alive = is_alive(folder)  # before the look: what it wrote last is seen then
            data = events.read(_CHUNK)
            if data:
                output.write(data)
                last, pause = (last + data)[-4096:], _POLL_S[0]
            elif last.endswith(b"\n") and last[:-1].rsplit(b"\n", 1)[-1][:1] == b"x":
                break
            elif not alive:
                output.write(b"\n" if last and not last.endswith(b"\n") else b"")
                output.write(b'x{"code": null, "cancelled": false, "reason": "lost"}\n')
                break
            elif last[-1:] in (b"", b"\n") and time.monotonic() >= beat_at:
                output.write(b"h\n")
                beat_at = time.monotonic() + _BEAT_S
            output.flush()
            if not data:
                _pause(pause)
                pause = min(_POLL_S[1], pause * 1.5)
    output.flush()


def _pause(seconds: float) -> None:
    """Wait; exit when standard input is closed, so that no process waits forever."""
    if select.select([0], [], [], seconds)[0] and not os.read(0, 4096):
        sys.exit(0)


def is_alive(folder: Path) -> bool:
    """Say whether the supervisor of a job lives: it holds a lock then."""
    try:
        with (folder / "lock").open("r") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def stop(root: Path, job_id: str, word: str) -> dict[str, Any]:
    """Tell a job to stop: ``cancel`` asks first, ``kill`` does not."""
    return {"told": supervisor.order(folder_of(root, job_id), word)}


def find(root: Path) -> list[dict[str, Any]]:
    """Return all jobs, the newest last."""
    jobs = []
    with contextlib.suppress(FileNotFoundError):
        for name in sorted(os.listdir(root / "jobs")):
            if _ID.fullmatch(name):
                jobs.append(_describe(root / "jobs" / name))
    return jobs


def _describe(folder: Path) -> dict[str, Any]:
    try:
        job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        job = {}
    state = "running" if is_alive(folder) else _end_of(folder)
    return {
        "id": folder.name,
        "activity": job.get("activity", ""),
        "started": job.get("started", 0),
        "state": state,
    }


def _end_of(folder: Path) -> str:
    try:
        with (folder / "events").open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - 4096))
            last = file.read().splitlines()[-1]
        end = json.loads(last[1:]) if last[:1] == b"x" else {}
    except (OSError, ValueError, IndexError):
        end = {}
    if not end:
        return "lost"
    if end.get("cancelled"):
        return "cancelled"
    return "finished" if end.get("code") == 0 else "failed"


def output_path(root: Path, job_id: str, place: str) -> Path:
    """Return a file that a job wrote; only files below its output folder."""
    path = _inside(folder_of(root, job_id), f"out/{place}")
    if not path.is_file() or path.is_symlink():
        fail("the job did not write this file", kind="missing")
    return path


def remove(root: Path, job_id: str) -> dict[str, Any]:
    """Remove a job that has ended, with all its files."""
    folder = folder_of(root, job_id)
    if is_alive(folder):
        fail("the job runs", "Cancel it first", "running")
    shutil.rmtree(folder, ignore_errors=True)
    return {"removed": not folder.exists()}


def has_result(folder: Path) -> bool:
    """Return whether a job succeeded and its files exist: fetched ones are removed."""
    if is_alive(folder) or _end_of(folder) != "finished":
        return False
    return any(names for _, _, names in os.walk(folder / "out"))


def unfetched(root: Path) -> list[str]:
    """Return the jobs whose results were not fetched yet."""
    return [job["id"] for job in find(root) if has_result(root / "jobs" / job["id"])]


def clean(root: Path, days: float, *, results: bool = False) -> int:
    """Remove jobs that ended this many days ago; return their number.

    Args:
        root: The deployment folder.
        days: The least age.
        results: Whether to remove also those whose results were not fetched.
    """
    count = 0
    kept = set() if results else set(unfetched(root))
    for job in find(root):
        if job["id"] in kept:
            continue
        folder = root / "jobs" / job["id"]
        try:
            old = (folder / "events").stat().st_mtime <= time.time() - days * _DAY_S
        except OSError:
            old = folder.stat().st_mtime <= time.time() - _DAY_S
        if old and not is_alive(folder):
            shutil.rmtree(folder, ignore_errors=True)
            count += 1
    return count
