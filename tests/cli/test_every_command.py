"""What holds of each command: its help, its example, how it refuses, options given twice."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from dld_tui.cli.command import Command
from dld_tui.cli.group import dld as group
from dld_tui.core.command_line import commands as rows
from dld_tui.core.errors import ExitStatus
from tests.support import models
from tests.support.cli import Dld, all_commands

COMMANDS = dict(all_commands())
MODEL = """<ir_version: 10, opset_import: ["": 18]> g (float[1,4] a, float[1,4] b) => (float[1,4] y)
{ [add] y = Add(a, b) }"""


def test_help_lists_every_visible_command(dld: Dld) -> None:
    outcome = dld("--help")
    assert outcome.status == 0
    for row in rows():
        shown = f"  {row.name} " in outcome.out and row.summary in outcome.out
        assert shown is not row.hidden, row.name


@pytest.mark.parametrize("columns", [80, 100])
def test_help_fits_and_no_line_ends_within_an_option(
    dld: Dld, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for words in {*COMMANDS, *((row.name,) for row in rows())}:
        outcome = dld(*words, "--help")
        assert (outcome.status, outcome.err) == (0, "")
        assert outcome.out.startswith(f"Usage: dld {' '.join(words)} ")
        for line in outcome.out.splitlines():
            assert len(line) <= columns, words
            assert not re.search(r"(?:^|[\s(\[])--?[\w-]*-$", line), (words, line)


def test_every_example_is_taken_by_its_command() -> None:
    for row in rows():
        words = [row.name, *shlex.split(row.example)]
        command: click.Command | None = group
        while isinstance(command, click.Group) and row.example:
            _, command, words = command.resolve_command(click.Context(command), words)
        if row.example:
            assert command is not None
            with command.make_context(row.name, words):
                pass


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_that_refuses_shows_how_it_is_called(dld: Dld, words: tuple[str, ...]) -> None:
    command, named = COMMANDS[words], " ".join(words)
    line = dld.fails(ExitStatus.USAGE, *words, "--no-such-option")
    assert f" Example: dld {named}" in line or words[0] in line.partition("Example: ")[2]
    assert line.endswith(f" See 'dld {named} --help'")
    if any(parameter.required for parameter in command.params):
        line = dld.fails(ExitStatus.USAGE, *words)
        assert "Missing" in line
        assert "Example: dld " in line
    if any("--json" in parameter.opts for parameter in command.params):
        done = dld(*words, "--json", "--no-such-option")
        assert set(done.json["error"]) == {"message", "where", "hint"}
        assert done.json["status"] == done.status == ExitStatus.USAGE
        assert done.err.startswith("dld: ")
    assert isinstance(command, Command)
    single = [
        option for option in command.params
        if isinstance(option, click.Option) and not (option.is_flag or option.multiple)
    ]  # fmt: skip
    many = [
        option.opts[-1] for option in command.params
        if isinstance(option, click.Option) and option.multiple
    ]  # fmt: skip
    for option in single[:3]:
        before = [word for name in many[:1] for word in (name, "a=1", name, "b=1")]
        error = dld.fails(2, *words, *before, option.opts[-1], "1", option.opts[-1], "1")
        assert f"{option.opts[0]} is given 2 times" in error


def test_a_flag_may_be_repeated_but_not_taken_back(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, MODEL), tmp_path / "out.onnx"
    convert = ("convert", "clean", model, "-o", out, "--sort")
    assert "--verify and --no-verify exclude each other" in dld.fails(
        2, *convert, "--verify", "--no-verify"
    )
    assert dld(*convert, "--sort", "--force", "--force").status == 0
