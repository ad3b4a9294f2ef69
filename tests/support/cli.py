"""Run ``dld`` in a test: in this process for speed, or as users do it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click
import pytest

from dld_tui.cli.group import dld as group
from dld_tui.cli.main import run


@dataclass(frozen=True)
class Outcome:
    """What one command did."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The JSON document on standard output."""
        return json.loads(self.out)


class Dld:
    """Runs commands in this process; get one from the `dld` fixture."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Outcome:
        """Run one command line."""
        self._capsys.readouterr()
        status = run([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Outcome(status, captured.out, captured.err)

    def fails(self, status: int, *arguments: object) -> str:
        """Run a command that must fail as users should see it, and return its one line.

        With ``--json`` there is a document, too, which says the same.
        """
        outcome = self(*arguments)
        assert outcome.status == status, outcome
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        if "--json" in options:
            assert outcome.json["status"] == status, outcome
        else:
            assert outcome.out == "", outcome
        assert outcome.err.count("\n") == 1, outcome.err
        assert outcome.err.startswith("dld: ")
        return outcome.err.strip()


def listen_to_interrupts() -> None:
    """Give a child the usual Ctrl+C, which a test run in the background has switched off."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def process(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run ``dld`` as a process of its own, without a terminal."""
    command = [sys.executable, "-m", "dld_tui", *map(str, arguments)]
    options = {"capture_output": True, "text": True, "stdin": subprocess.DEVNULL} | options
    return subprocess.run(command, timeout=120, **options)


def all_commands(
    parent: click.Group = group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield the words of each command that runs something, and the command."""
    context = click.Context(parent)
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from all_commands(command, (*words, name))
        else:
            yield (*words, name), command
