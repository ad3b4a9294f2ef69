"""Targets whose start-up files print: without a newline, in any encoding, much, or without end."""

from __future__ import annotations

import logging
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import pytest

from dld_tui.core.errors import UnavailableError
from dld_tui.core.events import Finished
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.settings.secrets import BAD
from dld_tui.targets.ssh import link as link_module
from dld_tui.targets.ssh import loop
from dld_tui.targets.ssh.remote.replies import last_answer
from dld_tui.targets.ssh.route import command_line
from dld_tui.targets.ssh.target import examine
from dld_tui.targets.ssh.transfer import LocalFile, Upload
from tests.support.asker import Answers
from tests.support.ssh_jobs import (
    QUICK,
    Agents,
    Links,
    Servers,
    end_processes_of,
    script,
    target_of,
)

NOISE = "Welcome @dld:{ \\376\\377h\\000i \\033[31m @dld:{}x"
Serve: TypeAlias = Callable[..., Connection]
START_UP_FILES = {"bash": ".bashrc", "zsh": ".zshenv", "fish": ".config/fish/config.fish"}
HOSTILE = ["a b", "$(id)", "`id`", "'", '"', "a\nb", "-n", "*", "~root", "", "\\", "\\'", "a\\\\",
           "!!", "=ls", "%self", "{a,b}", "^x", "#", "(date)", "ü€"]  # fmt: skip


def shell(name: str) -> str:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"the shell {name} is not installed")
    return program


@pytest.fixture
def serve(own_sshd: Servers, tmp_path: Path) -> Serve:
    """Return a function that starts a server whose user has a shell with a start-up file."""

    def start(name: str, start_up: str, **settings: str) -> Connection:
        # As sshd runs a command: SHELL -c COMMAND.
        command = f'exec {shell(name)} -c "$SSH_ORIGINAL_COMMAND"'
        if name != "bash":  # that one is the login shell of this machine
            settings["ForceCommand"] = command
        server = own_sshd(**settings)
        file = server.home / START_UP_FILES[name]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(start_up)
        return Connection(
            "box", server.host, server.port, server.user, "key", server.user_key,
            server.known_hosts(), config=False, directory=str(tmp_path / "deployed"),
        )  # fmt: skip

    return start


@pytest.mark.real_workers
@pytest.mark.parametrize("name", START_UP_FILES)
def test_a_job_runs_where_start_up_files_print_without_a_newline(
    name: str, serve: Serve, tmp_path: Path
) -> None:
    connection = serve(name, f"printf '{NOISE}'\nprintf 'and errors' >&2\n")
    try:
        target = target_of(connection, directory=str(tmp_path / "it's a \\folder"))
        job = target.start("fake", script(["write", 1, "x" * 100_000 + "\n"], ["finish", {"a": 1}]))
        assert list(job.events())[-1] == Finished({"a": 1})
        assert target.jobs() == []
        steps = examine(target.connection, Answers())
        assert not [step for step in steps if step.state == BAD]
    finally:
        end_processes_of(str(tmp_path))


@pytest.mark.parametrize("name", ["sh", *START_UP_FILES])
def test_every_shell_hands_over_what_was_given(name: str) -> None:
    line = command_line(["printf", "%s\\0", *HOSTILE])
    done = subprocess.run([shell(name), "-c", line], capture_output=True, check=True)
    assert done.stdout.decode().split("\0")[:-1] == HOSTILE


@pytest.mark.real_workers
def test_what_looks_like_our_answers_is_none(serve: Serve, agent: Agents, tmp_path: Path) -> None:
    lines = ("{}", '{"python": [3, 1], "root": "/x"}', '{"ready": true}', '{"error": "no"}')
    connection = serve("bash", "".join(f"echo '@dld:{line}'\n" for line in lines))
    target = target_of(connection)
    steps = examine(target.connection, Answers())
    assert not [step for step in steps if step.state == BAD]
    model = tmp_path / "model.onnx"
    model.write_bytes(b"x" * 600_000)
    loop.call(Upload(agent(target.connection), QUICK).send([LocalFile.at(model)]), 60)
    with target.start("fake", script(["finish", {"a": 1}])) as job:
        assert job.result() == {"a": 1}


@pytest.mark.real_workers
@pytest.mark.parametrize(
    ("start_up", "problem"),
    [
        ("exec sleep 600\n", r"its login shell hangs: no command has run for 1 s"),
        ("read answer\nread answer\n", r"its login shell hangs"),
        ("read -t 0.1 answer\n", r"its login shell hangs"),  # it takes what is for a command
        ("echo no account >&2; exit 3\n", r"runs no command; .* status 3 and said: no account"),
        ("exec >/dev/null\n", r"its login shell runs no command"),
    ],
)
def test_a_shell_that_runs_nothing_is_told(
    start_up: str, problem: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert link_module.SHELL_S == 10.0
    monkeypatch.setattr(link_module, "SHELL_S", 1.0)
    target = target_of(serve("bash", start_up))
    with pytest.raises(UnavailableError, match=rf"{problem}.*start-up files"):
        target.jobs()
    [step] = [step for step in examine(target.connection, Answers()) if step.state == BAD]
    assert step.name == "shell"


def test_a_line_that_breaks_is_no_business_of_asyncio() -> None:
    """It would warn of every packet to a machine that is gone, on standard error."""
    record = logging.LogRecord("asyncio", logging.WARNING, "", 1, "", (), None)
    for text, is_said in (("socket.send() raised exception.", False), ("a bug", True)):
        record.msg = text
        assert bool(logging.getLogger("asyncio").filter(record)) == is_said


@pytest.mark.real_workers
@pytest.mark.parametrize("stream", ["1", "2"])
def test_what_a_target_prints_is_bounded(
    stream: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link_module, "MOST_OUTPUT", 1 << 20)
    connection = serve("bash", f"yes >&{stream}\n")
    with pytest.raises(UnavailableError, match=r"prints endless output.*start-up files"):
        target_of(connection).jobs()


@pytest.mark.real_workers
def test_much_on_standard_error_does_not_stop_a_job(serve: Serve) -> None:
    connection = serve("bash", "head -c 6000000 /dev/zero | tr '\\0' 'e' >&2\n")
    job = target_of(connection).start("fake", script(["finish", {"a": 1}]))
    assert list(job.events())[-1] == Finished({"a": 1})


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "cp1251", "shift-jis"])
def test_a_banner_in_any_encoding_is_text(
    encoding: str, own_sshd: Servers, link: Links, tmp_path: Path
) -> None:
    banner = tmp_path / "banner"
    text = {"cp1251": "Привет", "shift-jis": "ようこそ"}.get(encoding, "Grüße")
    banner.write_bytes(f"{text}\n".encode(encoding))
    server = own_sshd(Banner=str(banner))
    connection = Connection(
        "box", server.host, server.port, server.user, "key", server.user_key,
        server.known_hosts(), config=False,
    )  # fmt: skip
    assert loop.call(link(connection).run(["echo", "there"]), 60).text == "there\n"


@pytest.mark.parametrize(
    ("printed", "answer"),
    [
        (b"", None),
        (b"@dld:\n", None),
        (b'@dld:{"a": 1}\n', {"a": 1}),
        (b'no newline@dld:{"a": 1}', {"a": 1}),
        (b'@dld:{"a": 1}@dld:{"a": 2}bye', {"a": 2}),
        (b'@dld:{"a": "@dld:{1"}\n\n', {"a": "@dld:{1"}),
        (b'@dld:{"half\n@dld:{"a": 1}\nlast @dld:{', {"a": 1}),
        ('ü€'.encode("utf-16") + b'\xe2\x82@dld:{"a": 1}\r\n\xff', {"a": 1}),
        (b"@dld:" + b"[" * 100_000 + b"@dld:{" * 1000, None),
        (b'@dld:{"a":' + b"[" * 100_000, None),
    ],
)  # fmt: skip
def test_an_answer_is_found_wherever_it_stands(
    printed: bytes, answer: dict[str, object] | None
) -> None:
    assert last_answer(printed, "@dld:") == answer
