from __future__ import annotations

import os
import select
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dld_tui.cli.setup import prompts
from dld_tui.cli.setup import prompts as cli_asking
from dld_tui.cli.setup.prompts import TerminalAsker
from dld_tui.core.errors import ExitStatus
from dld_tui.core.process.confinement import confined_to
from dld_tui.core.settings import saved_targets, secrets
from dld_tui.core.settings.saved_targets import Connection
from tests.support.cli import Dld
from tests.support.sshd import Sshd, free_port, make_key


def test_a_damaged_file_of_targets_is_named(dld: Dld) -> None:
    saved_targets.save(Connection("orin", "a"))
    saved_targets.store_path().write_text("[")
    assert "targets.toml" in dld.fails(3, "target", "list")


def test_an_agent_is_not_told_the_environment(dld: Dld, monkeypatch: pytest.MonkeyPatch) -> None:
    saved_targets.save(Connection("orin", "a", environment={"TOKEN": "hush"}))
    assert "hush" in dld("target", "list", "--json").out
    for name, value in confined_to([]).items():
        monkeypatch.setenv(name, value)
    told = dld("target", "list", "--json")
    assert told.json["targets"][0]["host"] == "a"
    assert "hush" not in told.out


def test_hostile_settings_reach_no_terminal_raw(dld: Dld) -> None:
    saved_targets.save(Connection("orin", "a", environment={"A": "\x1b[31m"}))
    assert "\x1b" not in dld("target", "show", "orin").out
    assert "\\x1b[31m" in dld("target", "show", "orin").out


def saved(sshd: Sshd, folder: Path, **values: object) -> Connection:
    """Save a connection to a server whose key is known."""
    known = folder / "known"
    known.write_text(sshd.known_line)
    plain: dict[str, object] = {"auth": "key", "key": sshd.user_key, "known_hosts": known}
    options = {**plain, "config": False, "directory": str(folder / "the re"), **values}
    connection = Connection("box", sshd.host, sshd.port, sshd.user, **options)  # type: ignore[arg-type]
    saved_targets.save(connection)
    return connection


@pytest.mark.broad
def test_a_test_says_each_step(dld: Dld, sshd: Sshd, tmp_path: Path) -> None:
    saved(sshd, tmp_path, launcher=("nice", "-n", "1"))
    said = dld("target", "test", "box", "--json")
    assert said.status == 0, said
    steps = said.json["steps"]
    assert [step["name"] for step in steps] == [
        "resolve", "connect", "host key", "authentication", "shell", "launcher", "Python",
        "directory", "disk space",
    ]  # fmt: skip
    assert said.json["usable"] is True
    assert (tmp_path / "the re").is_dir()
    assert "✓ Python" in dld("target", "test", "box").out


def test_an_old_python_is_named(dld: Dld, sshd: Sshd, tmp_path: Path) -> None:
    old = tmp_path / "old python"
    answer = """{"python": [3, 6, 9], "program": "/usr/bin/old\\u001b[31m"}"""
    # Its last argument is the mark of an answer.
    old.write_text(
        "#!/bin/sh\necho 'a banner of the shell'\nfor mark; do :; done\n"
        f"printf '%s%s\\n' \"$mark\" '{answer}'\n"
    )
    old.chmod(0o700)
    saved(sshd, tmp_path, python=str(old))
    said = dld("target", "test", "box")
    assert said.status == ExitStatus.UNAVAILABLE
    assert "3.6.9" in said.out
    assert "too old" in said.out
    assert "\x1b" not in said.out + said.err


def test_a_target_that_is_not_there_has_status_4(dld: Dld) -> None:
    saved_targets.save(Connection("box", "127.0.0.1", free_port(), config=False))
    said = dld("target", "test", "box")
    assert said.status == ExitStatus.UNAVAILABLE
    assert "the connection is refused" in said.err


@pytest.mark.broad
def test_the_terminal_is_asked_and_the_echo_comes_back(sshd: Sshd, tmp_path: Path) -> None:
    key = make_key(tmp_path / "closed", "open sesame")
    sshd.allow(key)
    saved(sshd, tmp_path, key=key, known_hosts=tmp_path / "new")
    terminal, inner = os.openpty()
    program = subprocess.Popen(
        [sys.executable, "-c", _TAKE_TERMINAL, sys.executable, "-m", "dld_tui", "target", "test",
         "box"],
        stdin=inner, stdout=inner, stderr=inner, start_new_session=True,
    )  # fmt: skip
    os.close(inner)
    talk = Talk(terminal)
    talk.wait_for("[y/N]")
    assert sshd.fingerprint in talk.said
    talk.send("yes\n")
    talk.wait_for("Passphrase")
    talk.send("open sesame\n")
    talk.wait_for("disk space")
    assert "sesame" not in talk.said
    assert program.wait(60) == 0
    os.close(terminal)
    assert (tmp_path / "new").read_text() == sshd.known_line


@pytest.mark.parametrize("is_there", [True, False])
def test_a_command_with_a_target_asks_on_the_terminal_where_there_is_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_there: bool
) -> None:
    place = tmp_path / "tty"
    if is_there:
        place.touch()
    monkeypatch.setattr(cli_asking, "_TERMINAL", str(place))
    before = secrets.current()
    try:
        cli_asking.ask_on_terminal()
        assert isinstance(secrets.current(), cli_asking.TerminalAsker) == is_there
    finally:
        secrets.use(before)


_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Talk:
    """The other end of a terminal."""

    def __init__(self, terminal: int) -> None:
        self.terminal = terminal
        self.said = ""

    def wait_for(self, words: str, seconds: float = 60.0) -> None:
        end = time.monotonic() + seconds
        while words not in self.said:
            assert select.select([self.terminal], [], [], end - time.monotonic())[0], self.said
            self.said += os.read(self.terminal, 4096).decode(errors="replace")

    def send(self, text: str) -> None:
        os.write(self.terminal, text.encode())


def answered(ask: Callable[[], Any], typed: bytes, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the answer to a prompt, and what is seen of what was typed."""
    person, terminal = os.openpty()
    monkeypatch.setattr(prompts, "_TERMINAL", os.ttyname(terminal))
    with ThreadPoolExecutor() as threads:
        answer = threads.submit(ask)
        seen = b""
        while not seen.endswith((b": ", b"[y/N] ")):
            seen += os.read(person, 1000)
        os.write(person, typed)
        found = answer.result(60)
    assert termios.tcgetattr(terminal)[3] & termios.ECHO
    os.write(terminal, b"end")
    after = b""
    while not after.endswith(b"end"):
        after += os.read(person, 1000)
    os.close(person)
    os.close(terminal)
    return found, after.removesuffix(b"end").strip()


@pytest.mark.parametrize(
    ("typed", "answer", "seen"),
    [(b"Yes\n", True, b"Yes"), (b"y \n", True, b"y"), (b"n\n", False, b"n"), (b"\n", False, b"")],
)
def test_a_question_shows_its_answer(
    typed: bytes, answer: bool, seen: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = TerminalAsker().confirm
    assert answered(lambda: ask("Go on?", "a\nb"), typed, monkeypatch) == (answer, seen)


@pytest.mark.parametrize(("typed", "answer"), [(b"open sesame\n", "open sesame"), (b"\x04", None)])
def test_a_password_is_not_shown(
    typed: bytes, answer: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert answered(lambda: TerminalAsker().secret("Password"), typed, monkeypatch) == (answer, b"")


def test_where_no_terminal_is_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "_TERMINAL", "/nowhere")
    assert TerminalAsker().secret("Password") is None
    assert not TerminalAsker().confirm("Go on?", "")
