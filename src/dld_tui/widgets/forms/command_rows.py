"""The command lines that a form equals, below its fields."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.text import cell_width, clip
from dld_tui.widgets.lists.styled import Piece, Rows, wrap
from dld_tui.widgets.shell.command_dispatch import hint

_SHARE = 6
"""Of so many rows of the screen they take one."""
_INDENT = 2


class CommandRows(Rows):
    """Command lines or what is missing for one, broken to the width.

    The end of one for which there is no room gives way to the key that copies it.

    Args:
        keys: The commands that copy them, as hints.
    """

    def __init__(self, *keys: str) -> None:
        super().__init__(id="command")
        self._keys = keys
        self._lines: Sequence[Piece] = ()

    def set_commands(self, lines: Sequence[Piece]) -> None:
        """Show other lines, at most as many as there are keys. Fit for a terminal."""
        if lines != self._lines:
            before = len(self.content(self.size.width))
            self._lines = lines
            self.refresh(layout=len(self.content(self.size.width)) != before)

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        """Return the rows: as many as the screen has room for, shared by the lines."""
        rows: list[list[Piece]] = []
        room = self.app.size.height // _SHARE
        lines = self._lines[: max(1, room)]
        for number, ((text, style), key) in enumerate(zip(lines, self._keys, strict=False)):
            most = max(1, (room - len(rows)) // (len(lines) - number))
            first, *others = wrap(text, width - _INDENT) or [""]
            broken = [first, *(" " * _INDENT + row for row in others)]
            if len(broken) > most:
                end = f"  {hint(key)}"
                cut = clip(" ".join([broken[most - 1], *others[most - 1 :]]), width)
                broken[most - 1 :] = [clip(cut, max(1, width - cell_width(end))) + end]
            rows += [[(row, style)] for row in broken]
        return rows or [[]]
