from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import patch

import pytest
from click.shell_completion import get_completion_class

from dld_tui.cli import COMPLETE
from dld_tui.cli.completion import SHELLS
from dld_tui.cli.group import dld as group
from dld_tui.core.process.paths import config_dir
from dld_tui.core.settings import custom_tools as tools
from dld_tui.core.settings import saved_targets as connections
from dld_tui.core.settings.custom_tools import Tool
from dld_tui.core.settings.saved_targets import Connection
from tests.support.cli import Dld, process


def completed(shell: str, **variables: str) -> list[str]:
    """Return what a shell is told that calls ``dld`` with these variables."""
    kind = get_completion_class(shell)
    assert kind is not None
    with patch.dict(os.environ, variables):
        return kind(group, {}, "dld", COMPLETE).complete().splitlines()


def complete(*words: str) -> list[str]:
    return completed("fish", COMP_WORDS=" ".join(words), COMP_CWORD=words[-1])


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_printed(dld: Dld, shell: str) -> None:
    outcome = dld("completion", shell)
    assert outcome.status == 0
    assert "_DLD_COMPLETE" in outcome.out


@pytest.mark.parametrize("shell", SHELLS)
def test_script_is_valid(dld: Dld, shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    script = tmp_path / "script"
    script.write_text(dld("completion", shell).out)
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_commands_files_and_options_are_completed() -> None:
    variables = {"_DLD_COMPLETE": "fish_complete", "COMP_WORDS": "dld in", "COMP_CWORD": "in"}
    told = process(env={**os.environ, **variables}).stdout
    assert told == "plain,inspect\tSummarise a model.\n", "a process of its own"
    # Commands are completed.
    assert complete("dld", "in") == ["plain,inspect\tSummarise a model."]
    # Files are completed where no command fits.
    assert complete("dld", "mod") == ["file,mod"]
    assert complete("dld", "inspect", "m") == ["file,m"]
    # Options are completed.
    assert any(line.startswith("plain,--nodes") for line in complete("dld", "inspect", "--n"))


def test_the_program_knows_tcsh() -> None:
    variables = {"_DLD_COMPLETE": "tcsh_complete", "COMMAND_LINE": "dld insp"}
    assert process(env={**os.environ, **variables}).stdout.split() == ["inspect"]


@pytest.mark.broad
def test_names_of_targets_and_tools_are_completed() -> None:
    connections.save(Connection("box", "10.0.0.1"))
    connections.save(Connection("bench", "10.0.0.2"))
    tools.save(Tool("netron", "netron"))
    both = ["plain,bench", "plain,box"]
    for name in ("show", "test", "clean", "remove", "edit", "jobs"):
        assert complete("dld", "target", name, "b") == both, name
    assert complete("dld", "target", "remove", "box", "be") == ["plain,bench"]
    for line in ("profile onnxruntime", "build", "doctor", "accuracy", "tactics"):
        assert complete("dld", *line.split(), "--target", "b") == both, line
    assert complete("dld", "doctor", "--target", "l") == ["plain,local"]
    assert complete("dld", "tool", "run", "ne") == ["plain,netron"]
    assert complete("dld", "tool", "remove", "ne") == ["plain,netron"]


def test_a_broken_file_of_names_completes_nothing() -> None:
    connections.save(Connection("box", "10.0.0.1"))
    (config_dir() / "targets.toml").write_text("[[[")
    assert complete("dld", "target", "show", "b") == []


def _complete(line: str) -> list[str]:
    return [word for row in completed("tcsh", COMMAND_LINE=line) for word in row.split()]


@pytest.mark.broad
def test_words_and_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "dir").mkdir()
    for name in ("model.onnx", "my model.onnx", "dir/a.onnx"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    assert _complete("dld insp") == ["inspect"]
    assert _complete("dld inspect m") == ["model.onnx"]  # tcsh would cut the other at its blank
    assert _complete("dld inspect ") == ["dir/", "model.onnx"]
    assert _complete("dld inspect d") == ["dir/", "dir/a.onnx"]
    assert _complete("dld inspect 'mod") == ["model.onnx"]
    assert _complete("dld inspect --nod") == ["--nodes"]
    assert _complete("dld doctor --target l") == ["local"]


@pytest.mark.skipif(shutil.which("tcsh") is None, reason="no tcsh here")
def test_a_tab_in_tcsh(tmp_path: Path) -> None:
    program = tmp_path / "dld"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m dld_tui "$@"\n')
    program.chmod(0o755)
    pid, master = pty.fork()
    if not pid:
        os.environ["PATH"] = f"{tmp_path}:{os.environ['PATH']}"
        os.chdir(tmp_path)
        os.execlp("tcsh", "tcsh", "-f")
    try:
        os.write(master, b'set prompt="> "\reval "`dld completion tcsh`" && echo rea""dy\r')
        _read_until(master, b"ready")
        os.write(master, b"dld inspe\t--jso\t")
        assert b"inspect --json" in _read_until(master, b"inspect --json")
    finally:
        os.close(master)
        os.waitpid(pid, 0)


def _read_until(master: int, text: bytes) -> bytes:
    got, limit = b"", time.monotonic() + 60
    while text not in got and time.monotonic() < limit:
        if select.select([master], [], [], 0.1)[0]:
            got += os.read(master, 4096)
    return got
