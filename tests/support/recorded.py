"""Whole texts that a test compares with a file beside it, ``NAME.txt``.

``pytest FILE --write-transcripts`` writes what is made now, to be read in the diff.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

_FIGURE = re.compile(r"-?\d+\.\d{6,}(?:e[+-]\d+)?")
_CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
Recorded = Callable[[str, Mapping[str, str]], None]
"""Takes the name of the file and the texts by their titles."""


def settled(text: str, folder: Path | None = None) -> str:
    """Return a text without a folder and the clock, with seven digits of each figure.

    All machines and versions of Python agree on so many.
    """
    if folder is not None:
        text = text.replace(str(folder), "FOLDER")
    text = _CLOCK.sub("TIME", text)
    return _FIGURE.sub(lambda match: str(float(f"{float(match[0]):.7g}")), text)


@pytest.fixture
def recorded(request: pytest.FixtureRequest) -> Recorded:
    """Return the comparison of texts with the file of a name beside the test."""

    def compare(name: str, texts: Mapping[str, str]) -> None:
        path = Path(request.path).with_name(f"{name}.txt")
        made = "".join(
            f"== {title}\n" + "".join(f"{line}\n" for line in text.rstrip("\n").split("\n")) + "\n"
            for title, text in texts.items()
        )
        made = "\n".join(line.rstrip() for line in made.split("\n"))
        if request.config.getoption("--write-transcripts"):
            path.write_text(made, encoding="utf-8")
        assert path.read_text(encoding="utf-8").splitlines() == made.splitlines()

    return compare
