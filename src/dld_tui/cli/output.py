"""Output of commands: results to standard output, messages and progress to standard error."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from typing import Any

import click

from dld_tui.core.codec import encode, finite
from dld_tui.core.process.terminal import is_terminal
from dld_tui.core.tables.rendering import text_lines
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible


def write(text: str = "") -> None:
    """Write escaped text and a newline to standard output."""
    click.echo(text)


_written_json = False


def write_json(document: Any) -> None:
    """Write one JSON document to standard output; NaN and infinity become null.

    Args:
        document: JSON data, or a dataclass.
    """
    global _written_json  # noqa: PLW0603 - of the process, as standard output is
    _written_json = True
    click.echo(json.dumps(finite(encode(document)), indent=2, allow_nan=False))


def begin_command() -> None:
    """Reset the record of written documents."""
    global _written_json  # noqa: PLW0603
    _written_json = False


def has_written_json() -> bool:
    """Tell whether a JSON document was written: a second one would make both unreadable."""
    return _written_json


def narrate(text: str) -> None:
    """Write a message to standard error; `text` may be untrusted."""
    click.echo(visible(text), err=True)


def write_table(table: Table[Any]) -> None:
    """Write a table: in full to a pipe, cut to the width of a terminal."""
    for line in text_lines(table, terminal_cells()):
        write(line)


def terminal_cells() -> int | None:
    """Return the columns of standard output; None if it is not a terminal."""
    return shutil.get_terminal_size().columns if is_terminal(sys.stdout) else None


def write_wrapped(text: str, indent: str) -> None:
    """Write text wrapped to the terminal; continuation lines are indented."""
    room = terminal_cells()
    if room is None:
        write(text)
        return
    start = text[: len(text) - len(text.lstrip())]
    for line in textwrap.wrap(
        text.lstrip(), max(40, room), initial_indent=start, subsequent_indent=start + indent
    ):
        write(line)
