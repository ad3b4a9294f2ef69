from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.errors import UsageError
from dld_tui.targets.ssh.route import command_line, proxy_arguments

HOSTILE = ["a b", "$(id)", "`id`", "'", '"', "a\nb", "-n", "\x1b[31m", "*", "~root", "", "\\", "!!"]


SAY = "import os, sys; sys.stdout.write('\\0'.join([os.environ['A'], *sys.argv[1:]]))"


def run(command: str) -> list[str]:
    """Return the arguments that a shell hands to a program."""
    done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=True)
    return done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


def test_a_shell_hands_over_what_was_given() -> None:
    assert run(command_line(["printf", "%s\\0", *HOSTILE])) == HOSTILE


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "csh", "tcsh"])
def test_so_does_any_login_shell(shell: str, tmp_path: Path) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    words = [*HOSTILE, "x!y", "a\nb!", "\\n", "^x^y", "{a,b}", "=ls", "\\0101", "%", "\t", "é ü"]
    environment = {**os.environ, "HOME": str(tmp_path)}
    line = command_line([sys.executable, "-c", SAY, *words], environment={"A": "b!\n'"})
    done = subprocess.run([path, "-c", line], capture_output=True, check=True, env=environment)
    assert done.stdout.decode().split("\0") == ["b!\n'", *words]


@settings(max_examples=40)
@given(st.lists(st.text(st.characters(exclude_characters="\0", codec="utf-8")), min_size=1))
def test_any_text_is_one_argument(words: list[str]) -> None:
    line = command_line(words)
    if not any(char in word for word in words for char in "\n!\\'"):
        assert shlex.split(line) == words
        return
    *by_sh, text = shlex.split(line)
    assert by_sh == ["/bin/sh", "-c", 'eval "exec $(printf %b "$0")"']
    assert not set(text) & set("\n!'")
    assert shlex.split(re.sub(r"\\0([0-7]{3})", lambda found: chr(int(found[1], 8)), text)) == words


def test_variables_come_behind_the_launcher() -> None:
    line = command_line(
        ["sh", "-c", 'printf "%s\\0" "$A" "$B"'],
        environment={"A": "$(id) 'x'", "B": "\n"},
        launcher=["nice", "-n", "1"],
    )
    assert run(line) == ["$(id) 'x'", "\n"]
    assert "nice -n 1 env " in line


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [([], {}), (["a\0b"], {}), (["a"], {"A B": "x"}), (["a"], {"": "x"}), (["a"], {"A": "\0"}),
     (["A=b"], {"C": "d"})],
)  # fmt: skip
def test_what_no_shell_can_carry_is_refused(
    arguments: list[str], environment: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        command_line(arguments, environment=environment)


def test_a_proxy_command_gets_host_port_and_user() -> None:
    words = proxy_arguments("nc '%h' %p # %r %%", "box.lan", 22, "me")
    assert words == ["/bin/sh", "-c", "exec nc 'box.lan' 22 # me %"]


@pytest.mark.parametrize(
    ("host", "user", "command"),
    [("$(id)", "me", "nc %h"), ("box", "a;b", "nc %r"), ("-x", "me", "nc %h"), ("box", "me", "%z")],
)
def test_a_hostile_name_runs_no_proxy_command(host: str, user: str, command: str) -> None:
    with pytest.raises(UsageError):
        proxy_arguments(command, host, 22, user)
