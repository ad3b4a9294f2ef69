"""Hostile words in place of names and values: each command answers with one line, never a bug."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import click
import pytest

from tests.support import models
from tests.support.cli import Dld, all_commands

_NOT_HERE = {"demo", "selftest", "doctor", "completion", "target", "tool", "worker", "run"}
"""They take no files, reach other machines, or take long."""
_SHORT: dict[tuple[str, ...], tuple[str, ...]] = {
    ("tune",): ("--budget", "1", "--only", "basic"),
    ("gate",): ("--limit", "5"),
}
"""What keeps a command short that runs all the same, since a value means its default."""
WORDS = {
    "brackets": "(" * 60_000, "not UTF-8": os.fsdecode(b"n\xff\xfe.onnx"), "half a pair": "\ud83d",
    "NUL": "a\0b", "long name": "x" * 300, "long path": "y/" * 3000, "folder": "folder",
    "loop of links": "loop", "below a file": "file/below", "huge number": "9" * 400, "empty": "",
    "json": "[[[[" * 3000,
}  # fmt: skip


def needed(command: click.Command, but: click.Parameter | None = None) -> list[str]:
    """Return the options that a command cannot do without."""
    options = [p for p in command.params if isinstance(p, click.Option) and p.required]
    return [word for p in options if p is not but for word in (p.opts[0], "out.x")]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    Path("file").write_text("x")
    return models.write(tmp_path, models.CHAIN, "m.onnx")


def judge(dld: Dld, line: list[str]) -> None:
    outcome = dld(*line)
    shown = [word[:30] for word in line]
    for sign in ("unexpected", "this is a bug", "Traceback"):
        assert sign not in outcome.err, (shown, outcome.err[-2000:])
    assert outcome.status in (0, 1, 2, 3, 4, 5), shown


COMMANDS = {words: command for words, command in all_commands() if not _NOT_HERE & {*words}}


def judge_names(dld: Dld, words: tuple[str, ...], hostile: Iterable[str]) -> None:
    command = COMMANDS[words]
    arguments = [p for p in command.params if isinstance(p, click.Argument)]
    for word in hostile:
        judge(dld, [*words, *(word for _ in arguments), *needed(command)])


@pytest.mark.parametrize(
    ("number", "words"),
    [
        pytest.param(number, words, marks=pytest.mark.broad if number % 4 else ())
        for number, words in enumerate(COMMANDS)
    ],
)
def test_some_hostile_names(dld: Dld, place: Path, number: int, words: tuple[str, ...]) -> None:
    judge_names(dld, words, list(WORDS.values())[number % 4 :: 4])


@pytest.mark.exhaustive
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_all_hostile_names(dld: Dld, place: Path, words: tuple[str, ...]) -> None:
    judge_names(dld, words, WORDS.values())


@pytest.mark.slow
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_hostile_values(dld: Dld, place: Path, words: tuple[str, ...]) -> None:
    command = COMMANDS[words]
    arguments = [str(place) for p in command.params if isinstance(p, click.Argument)]
    arguments += _SHORT.get(words, ())
    for number, option in enumerate(command.params):
        if not isinstance(option, click.Option) or option.is_flag:
            continue
        word = list(WORDS.values())[number % len(WORDS)]
        judge(dld, [*words, *arguments, option.opts[0], word, *needed(command, option)])


@pytest.mark.parametrize(
    "line",
    [
        ("refit", "", ""),
        ("refit", ".", "/"),
        ("convert", "shape", "m.onnx", "--dim", f"N={'9' * 400}", "-o", "o.onnx"),
        ("convert", "opset", "m.onnx", "--to", "9" * 30, "-o", "o.onnx"),
    ],
    ids=["no names", "folders", "a dimension", "a version"],
)
def test_values_that_cannot_be(dld: Dld, place: Path, line: tuple[str, ...]) -> None:
    assert place.name == "m.onnx"
    judge(dld, [*line])
