"""How the help of commands is written."""

from __future__ import annotations

import re
from collections.abc import Iterable

import click

_OPTION = re.compile(r"--?\w[\w-]*")
_FIRM = "\N{NON-BREAKING HYPHEN}"


class _Formatter(click.HelpFormatter):
    """Help whose lines never end within the name of an option."""

    def write_text(self, text: str) -> None:
        """Write a paragraph."""
        super().write_text(_firm(text))

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write two columns."""
        super().write_dl([(one, _firm(two)) for one, two in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        """Return what was written."""
        return super().getvalue().replace(_FIRM, "-")


def _firm(text: str) -> str:
    return _OPTION.sub(lambda option: option[0].replace("-", _FIRM), text)


class Context(click.Context):
    """The context of all commands and groups."""

    formatter_class = _Formatter
