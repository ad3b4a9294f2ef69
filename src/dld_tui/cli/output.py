"""Where a command writes: data to standard output, narration and progress to standard error."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import click

from dld_tui.core.errors import UsageError
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import JSON

GAP = "  "
"""Between two columns of a table."""


def write(text: str = "") -> None:
    """Write text that is fit to be shown, and a newline, to standard output."""
    click.echo(text)


_written_json = False


def write_json(document: JSON) -> None:
    """Write one JSON document to standard output; what JSON has no number for becomes null."""
    global _written_json  # noqa: PLW0603 - of the process, as standard output is
    _written_json = True
    click.echo(json.dumps(_finite(document), indent=2, allow_nan=False))


def begin_command() -> None:
    """Note that no document was written yet."""
    global _written_json  # noqa: PLW0603
    _written_json = False


def has_written_json() -> bool:
    """Tell whether a document was written; a second one would make both unreadable."""
    return _written_json


def _finite(value: JSON) -> JSON:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


def narrate(text: str) -> None:
    """Write a line for people to standard error; `text` may be foreign."""
    click.echo(visible(text), err=True)


def is_terminal(stream: IO[str] | None) -> bool:
    """Tell whether a stream is a terminal that can move its cursor."""
    return stream is not None and stream.isatty() and os.environ.get("TERM", "") != "dumb"


def require_free(path: Path, force: bool) -> None:
    """Refuse to overwrite a file.

    Raises:
        UsageError: There is something at `path` and `force` is False.
    """
    if not force and os.path.lexists(path):
        raise UsageError("the file exists", where=str(path), hint="Add --force to overwrite it")


@dataclass(frozen=True)
class Column:
    """One column of a plain table."""

    title: str
    right: bool = False
    """Right-aligned, for numbers."""
    flexible: bool = False
    """Gives way when the terminal is narrow; names lose their start, which they share."""


def write_table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Write a table of visible text: whole for a pipe, cut to the width of a terminal."""
    widths = [
        max(cell_width(text) for text in (column.title, *(row[index] for row in rows)))
        for index, column in enumerate(columns)
    ]
    if is_terminal(sys.stdout):
        _narrow(columns, widths, shutil.get_terminal_size().columns)
    for row in ([column.title for column in columns], *rows):
        cells = (
            fit(clip(text, width, keep="end"), width, align="right" if column.right else "left")
            for column, text, width in zip(columns, row, widths, strict=True)
        )
        write(GAP.join(cells).rstrip())


def _narrow(columns: Sequence[Column], widths: list[int], room: int) -> None:
    excess = sum(widths) + len(GAP) * (len(widths) - 1) - room
    for index in sorted(range(len(columns)), key=lambda index: -widths[index]):
        if columns[index].flexible and excess > 0:
            less = min(excess, max(0, widths[index] - 8))
            widths[index] -= less
            excess -= less
