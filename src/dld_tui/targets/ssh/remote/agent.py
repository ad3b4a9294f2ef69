"""The commands of the agent: ``main(ROOT, COMMAND, ARGUMENTS, MARK)`` serves one and ends.

Answers are lines of JSON, see :mod:`.replies`. Nothing is ever written outside ROOT.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dld_tui.targets.ssh.remote import environment, jobs, objects
from dld_tui.targets.ssh.remote.replies import RefusedError, answer, mark_with, refuse


def _look(root: Path, sizes: list[int], names: list[str]) -> None:
    answer(objects.look(root, sizes, names))


def _part(root: Path, key: str) -> None:
    answer(objects.part(root, key))


def _drop(root: Path, key: str) -> None:
    objects.drop(root, key)
    answer({"dropped": key})


def _receive(root: Path, key: str, offset: int, size: int) -> None:
    objects.receive(root, key, offset, size)


def _receive_many(root: Path) -> None:
    answer(objects.receive_many(root))


def _start(root: Path) -> None:
    answer(jobs.start(root, json.loads(sys.stdin.buffer.readline())))


def _follow(root: Path, job: str, offset: int) -> None:
    answer({"following": job})
    jobs.follow(root, job, offset)


def _stop(root: Path, job: str, word: str) -> None:
    answer(jobs.stop(root, job, "kill" if word == "kill" else "cancel"))


def _list(root: Path) -> None:
    answer({"jobs": jobs.find(root)})


def _fetch(root: Path, job: str, place: str, offset: int) -> None:
    objects.send(jobs.output_path(root, job, place), offset)


def _remove(root: Path, job: str) -> None:
    answer(jobs.remove(root, job))


def _clean(root: Path, days: float, results: bool = False) -> None:
    count, freed = jobs.clean(root, days, results=results), objects.clean(root, days)
    answer({"jobs": count, "bytes": freed, "unfetched": jobs.unfetched(root)})


def _modules(root: Path, python: str, modules: dict[str, list[str]]) -> None:
    answer(environment.look(python, modules))


def _create(root: Path, name: str) -> None:
    answer(environment.create(root, name))


def _pip(root: Path, python: str, requirements: list[str], options: list[str]) -> None:
    answer(environment.pip_install(python, requirements, options))


def _wheels(root: Path, python: str, wheels: list[list[str]]) -> None:
    answer(environment.install_wheels(root, python, wheels))


def _ready(root: Path, name: str, value: dict[str, Any] | None) -> None:
    """Remember that an environment has what an activity needs, or forget it."""
    path = root / "ready" / f"{Path(name).name}.json"
    if value is None:
        path.unlink(missing_ok=True)
    else:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(value), encoding="utf-8")
        os.replace(temporary, path)
    answer({"ready": value is not None})


def _wipe(root: Path, results: bool = False) -> None:
    """Remove the deployment, unless jobs run or have results that were not fetched."""
    running = [job["id"] for job in jobs.find(root) if job["state"] == "running"]
    if running:
        raise RefusedError(f"job {running[0]} runs", "Cancel it first", "running")
    if (waiting := jobs.unfetched(root)) and not results:
        hint = f"Fetch it with: dld target attach {waiting[0]}; or give --unfetched"
        raise RefusedError(f"the result of job {waiting[0]} was not fetched", hint, "unfetched")
    for name in ("jobs", "objects", "venv", "ready", "package"):
        shutil.rmtree(root / name, ignore_errors=True)
    answer({"removed": True})


_COMMANDS: dict[str, Callable[..., None]] = {
    "look": _look,
    "part": _part,
    "drop": _drop,
    "receive": _receive,
    "receive_many": _receive_many,
    "start": _start,
    "follow": _follow,
    "stop": _stop,
    "list": _list,
    "fetch": _fetch,
    "remove": _remove,
    "clean": _clean,
    "modules": _modules,
    "create": _create,
    "pip": _pip,
    "wheels": _wheels,
    "ready": _ready,
    "wipe": _wipe,
}


def main(root: str, command: str, arguments: str, mark: str) -> None:
    """Serve one command.

    Args:
        root: The deployment folder.
        command: One of the table above.
        arguments: Its arguments as a JSON object.
        mark: What its answers begin with.
    """
    os.umask(0o077)
    mark_with(mark)
    try:
        _COMMANDS[command](Path(root), **json.loads(arguments))
    except BrokenPipeError:
        os._exit(0)  # the client has gone
    except (RefusedError, OSError) as error:
        refuse(error)
        sys.exit(1)
