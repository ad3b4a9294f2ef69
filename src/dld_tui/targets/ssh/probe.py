"""Is a target ready: every step from its name to a folder that can be written, with the remedy."""

from __future__ import annotations

from collections.abc import Callable

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.settings.prompts import BAD, GOOD, WEAK, Asker, Step
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import Secrets, keyring_problem
from dld_tui.core.types import JSON
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.errors import stage_of
from dld_tui.targets.ssh.link import Finished, Link
from dld_tui.targets.ssh.remote.replies import last_answer

OLDEST_PYTHON = (3, 10)
_ROOM_BYTES = 2 << 30
"""What the parts and a model or two take."""
_PATIENCE_S = 120.0
"""A launcher may wait in a queue; a person who tests sees that it does."""

# Runs on any Python 3, so that an old one can be named. Makes the folder, as a job will.
_LOOK = """
import json, os, shutil, sys, tempfile
said = {"python": list(sys.version_info[:3]), "program": sys.executable}
try:
    folder = os.path.expanduser(sys.argv[1])
    os.makedirs(folder, mode=0o700, exist_ok=True)
    said["folder"] = folder
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x" * 4096)
        file.flush()
    said["free"] = shutil.disk_usage(folder).free
except OSError as error:
    said["error"] = error.strerror or str(error)
sys.stdout.write("@dld:" + json.dumps(said) + chr(10))
"""


def examine(
    connection: Connection,
    asker: Asker,
    on_step: Callable[[Step], None] = lambda step: None,
    secrets: Secrets | None = None,
) -> list[Step]:
    """Connect and look; stops at the first step that fails. Waits: call it on a thread.

    Args:
        connection: The target.
        asker: Who is asked for passwords and about a new host.
        on_step: Told each step as it is done.
        secrets: Where secrets are known; by default those of this process.

    Raises:
        CancelledError: The person gave up.
    """
    steps: list[Step] = []

    def done(step: Step) -> None:
        steps.append(step)
        on_step(step)

    begun: list[tuple[str, str]] = []

    def begins(address: str, stage: str) -> None:
        if (address, stage) not in begun:  # a host that was just accepted is connected to again
            _passed(begun, done)
            begun.append((address, stage))

    link = Link(connection, asker, secrets, begins)
    try:
        try:
            loop.call(link.open())
        except CancelledError:
            raise
        except DldError as error:
            address, stage = begun[-1] if begun else (connection.address, stage_of(error))
            done(Step(stage, BAD, f"{address}: {error.message}", error.hint or ""))
            return steps
        _passed(begun, done)
        _look(link, done)
    finally:
        loop.call(link.close())
    return steps


def _passed(begun: list[tuple[str, str]], done: Callable[[Step], None]) -> None:
    if begun:
        address, stage = begun[-1]
        done(Step(stage, GOOD, address))


def _look(link: Link, done: Callable[[Step], None]) -> None:
    connection = link.connection
    if connection.remember == "keyring" and (problem := keyring_problem()):
        done(Step("keyring", WEAK, problem, f"dld target edit {connection.name} --remember memory"))
    if connection.launcher:
        words = " ".join(connection.launcher)
        ended = _run(link, "launcher", ["true"], done)
        if ended is None:
            return
        if ended.code != 0:
            fix = "Run it there by hand with 'true' behind it"
            done(Step("launcher", BAD, f"{words}: {_last(ended)}", fix))
            return
        done(Step("launcher", GOOD, words))
    ended = _run(link, "Python", [connection.python, "-c", _LOOK, connection.directory], done)
    if ended is None:
        return
    said = last_answer(ended.stdout)
    if said is None:
        done(Step("Python", BAD, f"{connection.python}: {_last(ended)}", _other_python(connection)))
        return
    _judge(said, connection, done)


def _judge(said: dict[str, JSON], connection: Connection, done: Callable[[Step], None]) -> None:
    version = said.get("python")
    parts = [part for part in version if isinstance(part, int)] if isinstance(version, list) else []
    text = f"{'.'.join(map(str, parts))}, {said.get('program')}"
    if tuple(parts[:2]) < OLDEST_PYTHON:
        done(Step("Python", BAD, f"{text} is too old", _other_python(connection)))
        return
    done(Step("Python", GOOD, text))
    folder = str(said.get("folder") or connection.directory)
    if "error" in said:
        fix = f"Choose another folder: dld target edit {connection.name} --directory DIR"
        done(Step("directory", BAD, f"{folder}: {said['error']}", fix))
        return
    done(Step("directory", GOOD, folder))
    free = said.get("free")
    amount = free if isinstance(free, int) else 0
    enough = amount >= _ROOM_BYTES
    fix = "" if enough else f"Models and parts want {fmt.size(_ROOM_BYTES)}; make room there"
    done(Step("disk space", GOOD if enough else WEAK, f"{fmt.size(amount)} free", fix))


def _other_python(connection: Connection) -> str:
    edit = f"dld target edit {connection.name} --python PROGRAM"
    return f"Install Python 3.10 or newer there, or name it: {edit}"


def _run(
    link: Link, name: str, arguments: list[str], done: Callable[[Step], None]
) -> Finished | None:
    try:
        return loop.call(link.run(arguments, launched=True), _PATIENCE_S)
    except TimeoutError:
        message = f"nothing came back within {_PATIENCE_S:.0f} s"
        done(Step(name, BAD, message, "The launcher may wait in a queue"))
    except DldError as error:
        done(Step(name, BAD, error.message, error.hint or ""))
    return None


def _last(ended: Finished) -> str:
    lines = (ended.error_text.strip() or ended.text.strip()).splitlines()
    words = lines[-1].strip() if lines else "no message"
    return f"{words} (exit status {ended.code})"
