"""How well a command fits what somebody types in the palette."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dld_tui.core.commands.model import Command
from dld_tui.core.fuzzy import score

_WORDS = re.compile(r"[^\s,.;:()]+")
_FUZZY = 18
"""What each letter of a fuzzy match is worth at least: letters that lie all about are no match."""
_LEAST_FUZZY = 3
"""Letters that are looked for one by one."""


def rank(query: str, command: Command) -> tuple[int, int] | None:
    """Return how well a command fits, lower is better; None when it does not.

    First is the title itself, then another word for it, then what begins so, then what has all of
    the words, and last a title that has the letters in order.
    """
    asked = " ".join(query.lower().split())
    words = asked.split()
    title = command.title.lower()
    names = [title, *(other.lower() for other in command.synonyms)]
    for tier, name in enumerate((names[:1], names[1:])):
        if asked in name:
            return tier, 0
    for tier, group in enumerate((names[:1], names[1:]), 2):
        begun = [name for name in group if name.startswith(asked)]
        if begun:
            return tier, min(map(len, begun))
    for tier, texts in enumerate((names[:1], names, [*names, command.help.lower()]), 4):
        if _has_all(words, texts):
            return tier, 0
    return _fuzzy(words, command.title)


def is_meant(found: tuple[int, int]) -> bool:
    """Tell whether a rank says that exactly this command was asked for."""
    return found[0] < 2


def _has_all(words: Iterable[str], texts: Iterable[str]) -> bool:
    known = [word for text in texts for word in _WORDS.findall(text)]
    return all(any(one.startswith(word) for one in known) for word in words)


def _fuzzy(words: list[str], title: str) -> tuple[int, int] | None:
    points = 0
    for word in words:
        found = score(word, title) if len(word) >= _LEAST_FUZZY else None
        if found is None or found < _FUZZY * len(word):
            return None
        points += found
    return (7, -points) if words else None
