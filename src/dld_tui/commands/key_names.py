"""Display names of keys, and validation of a user's key table."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from dld_tui.commands import by_id

_KEY_NAMES = {
    "question_mark": "?", "slash": "/", "backslash": "\\", "plus": "+", "minus": "-",
    "percent_sign": "%", "equals_sign": "=", "exclamation_mark": "!",
    "left_square_bracket": "[", "right_square_bracket": "]", "underscore": "_",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "full_stop": ".", "comma": ",",
    "left_parenthesis": "(", "right_parenthesis": ")", "at": "@", "circumflex_accent": "^",
    "grave_accent": "`", "vertical_line": "|", "number_sign": "#",
    "pageup": "PgUp", "pagedown": "PgDn", "escape": "Esc", "enter": "Enter", "space": "Space",
    "backspace": "Backspace", "delete": "Del", "home": "Home", "end": "End", "tab": "Tab",
    "insert": "Ins", "up": "↑", "down": "↓", "left": "←", "right": "→",
}  # fmt: skip

_CHARACTERS = {
    re.sub(r"\W", "_", unicodedata.name(char).lower()): char
    for char in map(chr, range(ord("!"), 0x7F))
    if not char.isalnum()
}
"""Textual's name of a character, derived from Unicode's, such as ``less_than_sign``."""
_COMMAND = re.compile(r"\{([a-z_]+(?:\.[a-z_0-9]+)+)\}")
_ALIASES = {"ctrl+@": "ctrl+space", "ctrl+at": "ctrl+space", "ctrl+i": "tab", "ctrl+m": "enter",
            "ctrl+left_square_bracket": "escape"}  # fmt: skip
"""Key that terminals cannot distinguish, to the key that users press."""


def key_name(key: str) -> str:
    """Return the display name of a key: ``^S`` for ``ctrl+s``, ``?`` for ``question_mark``."""
    key = _ALIASES.get(key.strip(), key.strip())
    *modifiers, base = key.replace("++", "+plus").split("+")
    name = _KEY_NAMES.get(base) or _other_name(base)
    if modifiers == ["ctrl"]:
        return "^" + (name.upper() if len(name) == 1 else name)
    prefix = "".join(modifier.capitalize() + "+" for modifier in modifiers)
    return prefix + (name.upper() if modifiers and len(name) == 1 else name)


def with_keys(text: str, keymap: Mapping[str, str]) -> str:
    """Replace command ids in a hint, such as ``{job.again} again``, by the first key of each.

    A command without a key is in the palette.

    Args:
        text: The hint.
        keymap: Command id to the user's keys.

    Raises:
        KeyError: There is no such command.
    """

    def key(match: re.Match[str]) -> str:
        command = by_id()[match[1]]
        keys = keymap.get(command.id, command.keys).split(",")[0]
        return key_name(keys) if keys else f'"{command.title}" in the palette'

    return _COMMAND.sub(key, text)


def _other_name(base: str) -> str:
    """Return ``F5`` for ``f5``, ``<`` for ``less_than_sign``, and other names unchanged."""
    if base[:1] == "f" and base[1:].isdecimal():
        return base.upper()
    if base.startswith("upper_"):
        return base[6:].upper()
    return _CHARACTERS.get(base, base)


def unknown_and_clashing(keys: Mapping[str, str]) -> list[str]:
    """Return the problems of a user's key table, one line each.

    Two commands clash if they share a key and a scope, or a key and one has the scope ``app``.
    """
    known = by_id()
    problems = [f"keys: no command {name!r}" for name in keys if name not in known]
    for command_id in keys:
        if command_id not in known:
            continue
        mine = known[command_id]
        wanted = {key.strip() for key in keys[command_id].split(",")}
        for other in known.values():
            if other.id == command_id or (other.scope != mine.scope and other.scope != "app"):
                continue
            taken = {key.strip() for key in keys.get(other.id, other.keys).split(",")}
            if both := sorted((wanted & taken) - {""}):
                problems.append(f"keys: {both[0]} is both {command_id} and {other.id}")
    return problems
