"""Transcripts of commands: ``tests/transcripts/*.txt`` hold command lines and all that they print.

A file is run from its beginning to its end in one folder. ``$ dld …`` is a command; behind
``COLUMNS=80``, it prints to a terminal of that width. ``$ cat FILE`` prints a file, or all of a
model. Below it stands what it prints, on standard error behind ``2> ``, then ``= STATUS`` where
that is not 0. The version of ONNX Runtime is written as 1.x, times of the clock and how long a
search took as TIME. Lines ``## …`` before a command say what it shows. Files that a command names
are made by :mod:`tests.support.transcript_files`. ``pytest tests/cli/test_transcripts.py
--write-transcripts`` writes what is printed now, to be read as a diff.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import onnx
import onnxruntime
import pytest

from dld_tui.cli import output
from tests.support.cli import Dld
from tests.support.model_lines import model_text
from tests.support.recorded import CLOCK
from tests.support.transcript_files import FILES

FOLDER = Path(__file__).resolve().parents[1] / "transcripts"
_VERSION = re.compile("|".join(map(re.escape, (onnxruntime.__version__, "1.31.1"))))
"""The version of ONNX Runtime here, and the one that reports of tests name."""
_TOOK = re.compile(r"(?<=(?:trials|.tried) in )[\d.]+ m?s")
_ABOUT, _COMMAND, _ERROR, _STATUS, _WIDTH = "## ", "$ ", "2> ", "= ", "COLUMNS="


def written(path: Path, dld: Dld, folder: Path) -> str:
    """Return a transcript with what its commands print now.

    Args:
        path: The transcript.
        dld: Runs commands.
        folder: An empty folder, in which the process is.
    """
    blocks: list[list[str]] = [[]]
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith(_ABOUT):
            blocks[-1].append(line)
        elif line.startswith(_COMMAND):
            words = shlex.split(line.removeprefix(_COMMAND))
            printed = (
                _VERSION.sub(
                    "1.x",
                    CLOCK.sub("TIME", _TOOK.sub("TIME", one.replace(str(folder), "FOLDER"))),
                )
                for one in _printed(words, dld)
            )
            blocks[-1] += [line, *printed]
            blocks.append([])
    return "\n\n".join("\n".join(block) for block in blocks if block) + "\n"


def _printed(words: list[str], dld: Dld) -> Iterator[str]:
    for name in (word.removeprefix("@") for word in words):
        if name in FILES and not Path(name).exists():
            FILES[name](Path(name))
    width, program, *arguments = words if words[0].startswith(_WIDTH) else ["", *words]
    if program == "cat" and not Path(arguments[0]).exists():
        yield "no such file"
        return
    if program == "cat" and arguments[0].endswith(".onnx"):
        yield from model_text(onnx.load(arguments[0], load_external_data=False)).splitlines()
        return
    if program == "cat":
        yield from (line.rstrip() for line in Path(arguments[0]).read_text().splitlines())
        return
    assert program == "dld", words
    with pytest.MonkeyPatch.context() as patch:
        if width:
            patch.setenv("COLUMNS", width.removeprefix(_WIDTH))
            patch.setattr(output, "is_terminal", lambda stream: True)
        outcome = dld(*arguments)
    yield from (line.rstrip() for line in outcome.out.splitlines())
    yield from (_ERROR + line for line in outcome.err.splitlines())
    if outcome.status:
        yield f"{_STATUS}{outcome.status}"
