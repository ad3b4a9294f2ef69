"""An option of one value, or a name in a list of pairs, that is given twice is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dld_tui.cli.command import Command
from dld_tui.cli.group import dld as group
from tests.support import models
from tests.support.cli import Dld

MODEL = """<ir_version: 10, opset_import: ["": 18]> g (float[1,4] a, float[1,4] b) => (float[1,4] y)
{ [add] y = Add(a, b) }"""


def _commands(
    parent: click.Group = group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(parent)
    for name in parent.list_commands(context):
        command = parent.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, (*words, name))
        else:
            yield (*words, name), command


def test_every_command_refuses_an_option_twice(dld: Dld) -> None:
    found = [*_commands()]
    assert len(found) > 60
    tried = 0
    for words, command in found:
        assert isinstance(command, Command), words
        single = [
            option
            for option in command.params
            if isinstance(option, click.Option) and not (option.is_flag or option.multiple)
        ]
        for option in single[:3]:
            spelling = option.opts[-1]
            error = dld.fails(2, *words, spelling, "1", spelling, "1")
            assert f"{option.opts[0]} is given 2 times" in error, (words, error)
            tried += 1
    assert tried > 100


def test_a_flag_may_be_repeated_but_not_taken_back(dld: Dld, tmp_path: Path) -> None:
    model, out = models.write(tmp_path, MODEL), tmp_path / "out.onnx"
    convert = ("convert", "clean", model, "-o", out, "--sort")
    assert "--verify and --no-verify exclude each other" in dld.fails(
        2, *convert, "--verify", "--no-verify"
    )
    assert dld(*convert, "--sort", "--force", "--force").status == 0


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "io", "--type", "a=float16", "--type", "a=float64"),
        ("convert", "io", "--layout", "a=1,0", "--layout", "a=0,1"),
        ("convert", "shape", "--dim", "a:0=2", "--dim", "a:0=N"),
        ("merge", "MODEL", "--map", "y=a", "--map", "a=a"),
        ("merge", "MODEL", "--keep", "y=u", "--keep", "y=v"),
        ("extract", "--outputs", "y=u,y=v"),
        ("profile", "onnxruntime", "--session-config", "k=1", "--session-config", "k=2"),
    ],
)
def test_a_name_twice(dld: Dld, tmp_path: Path, words: tuple[str, ...]) -> None:
    model, out = models.write(tmp_path, MODEL), tmp_path / "out.onnx"
    at = next(place for place, word in enumerate(words) if word.startswith("--"))
    rest = (model if word == "MODEL" else word for word in words[at:])
    commands = (model if word == "MODEL" else word for word in words[:at])
    first, *others = commands
    command = [first, *([others.pop(0)] if others and others[0] is not model else [])]
    error = dld.fails(2, *command, model, *others, "-o", out, *rest)
    assert "twice" in error or "two names" in error or "same axis" in error
    assert not out.exists()
