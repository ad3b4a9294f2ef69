"""Whole texts that a test compares with a file beside it, ``NAME.txt``.

``pytest FILE --write-transcripts`` writes what is made now, to be read in the diff.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.tables.table import Table

_FIGURE = re.compile(r"-?\d+\.\d{6,}(?:e[+-]\d+)?")
CLOCK = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00")
Recorded = Callable[[str, Mapping[str, str]], None]
"""Takes the name of the file and the texts by their titles."""
Answered = Callable[[str, Callable[[str], str]], None]
"""Takes the name of the file and what answers a question in it."""


def settled(text: str, folder: Path | None = None) -> str:
    """Return a text without a folder and the clock, with seven digits of each figure.

    All machines and versions of Python agree on so many.
    """
    if folder is not None:
        text = text.replace(str(folder), "FOLDER")
    text = CLOCK.sub("TIME", text)
    return _FIGURE.sub(lambda match: str(float(f"{float(match[0]):.7g}")), text)


def hold(path: Path, made: str, config: pytest.Config) -> None:
    """Fail with what differs if a text is not that of a file, or write the file if asked to."""
    if config.getoption("--write-transcripts"):
        with path.open("w", encoding="utf-8", newline="") as file:
            file.write(made)
    with path.open(encoding="utf-8", newline="") as file:
        known = file.read()
    if known != made:
        before, after = known.splitlines(), made.splitlines()
        changes = difflib.unified_diff(before, after, path.name, "now", lineterm="", n=1)
        pytest.fail("\n".join(changes) or "only ends of lines differ", pytrace=False)


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
        hold(path, made, request.config)

    return compare


@pytest.fixture
def answered(request: pytest.FixtureRequest) -> Answered:
    """Return the comparison of answers with those in a file: below each question, behind ``> ``."""

    def compare(name: str, answer: Callable[[str], str]) -> None:
        path = Path(request.path).with_name(f"{name}.txt")
        made: list[str] = []
        for line in path.read_text("utf-8").splitlines():
            if line.startswith("> "):
                made += [line, *(f"  {one}" for one in answer(line[2:]).split("\n"))]
            elif line.startswith("## "):
                made += ["", line, ""]
        hold(path, "\n".join(made).strip() + "\n", request.config)

    return compare


def fields_of(record: Any) -> str:
    """Return the fields of a record that are not as they are by default."""
    told = []
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if value != field.default:
            told.append(f"{field.name}={value}")
    return f"{type(record).__name__}({', '.join(told)})"


def table_text(table: Table[Any]) -> str:
    """Return all of a table: its columns, and of each row the texts, values, keys and styles."""
    lines = [f"table {table.name}: {table.title}"]
    for one in table.columns:
        place = f"{one.width or '-'} {one.least} {one.priority} {one.keep} {one.is_right}"
        falls = f"{one.falls} {one.sortable} {one.pinned} {one.shown} {one.heat}"
        lines.append(f"  {one.key} | {one.title} | {one.unit.name} {place} {falls} | {one.help}")
    for row in table.rows:
        lines.append("  - " + " | ".join(one.shown_text(row) for one in table.columns))
        values = [one.unit.plain(one.value(row)) for one in table.columns]
        orders = [one.order_of(row) for one in table.columns]
        lines.append(f"    {_texts(values)}; {_texts(orders)}")
        lines.append(f"    {_texts([one.style_of(row) for one in table.columns])}")
    return "\n".join(lines)


def _texts(values: Iterable[object]) -> str:
    return ", ".join(_short(one) for one in values)


def _short(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Iterable) and not isinstance(value, str):
        return f"[{', '.join(map(_short, value))}]"
    return str(value)
