"""Hints that name keys, as ``{work.stop} stops``: they show the user's key of a command.

The program says once which keys those are, as it does with glyphs.
"""

from __future__ import annotations

from collections.abc import Mapping

from dld_tui.core.commands.keys import with_keys

_keymap: dict[str, str] = {}


def use(keymap: Mapping[str, str]) -> None:
    """Take the user's keys, by the ids of the commands."""
    _keymap.clear()
    _keymap.update(keymap)


def hint(text: str) -> str:
    """Return a hint of this program with the first key of each command that it names in braces.

    Raises:
        KeyError: There is no such command.
    """
    return with_keys(text, _keymap)
