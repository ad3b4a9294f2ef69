"""Reading the text of patterns, rules and queries, from left to right."""

from __future__ import annotations

import re

from dld_tui.core.errors import UsageError
from dld_tui.core.text import clip, visible

_SPACE = re.compile(r"(?:\s+|#[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?")
_STRING = re.compile(r"'(?:\\.|[^\\'])*'|\"(?:\\.|[^\\\"])*\"")
MOST_CHARACTERS = 200_000
MOST_DEPTH = 60
"""Of brackets in brackets."""


class Reader:
    """A text and the place up to which it was read. Comments begin with ``#``."""

    def __init__(self, text: str) -> None:
        if len(text) > MOST_CHARACTERS:
            raise UsageError(f"the text has more than {MOST_CHARACTERS:,} characters")
        self.text = text
        self.at = 0
        self.depth = 0

    def space(self) -> None:
        """Go on to the next character that says something."""
        match = _SPACE.match(self.text, self.at)
        if match is not None:
            self.at = match.end()

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return what a pattern finds right here, without taking it."""
        self.space()
        return pattern.match(self.text, self.at)

    def sees(self, sign: str) -> bool:
        """Return whether a sign, or a whole word, comes next."""
        self.space()
        if not self.text.startswith(sign, self.at):
            return False
        following = self.text[self.at + len(sign) : self.at + len(sign) + 1]
        return not (sign[-1].isalnum() and (following.isalnum() or following == "_"))

    def take(self, sign: str) -> bool:
        """Take a sign, or a whole word, if it comes next."""
        if not self.sees(sign):
            return False
        self.at += len(sign)
        return True

    def expect(self, sign: str) -> None:
        """Take a sign.

        Raises:
            UsageError: Something else comes next.
        """
        if not self.take(sign):
            raise self.error(f"{sign!r} is expected")

    def word(self, what: str = "a name") -> str:
        """Take a word.

        Raises:
            UsageError: Something else comes next.
        """
        found = self.match(_WORD)
        if found is None:
            raise self.error(f"{what} is expected")
        self.at = found.end()
        return found.group()

    def number(self) -> int | float | None:
        """Take a number without a sign, if one comes next."""
        found = self.match(_NUMBER)
        if found is None:
            return None
        self.at = found.end()
        text = found.group()
        try:
            return int(text) if text.isdecimal() else float(text)
        except ValueError:  # thousands of digits
            raise self.error("this number is too long") from None

    def string(self) -> str | None:
        """Take a string in quotes, if one comes next."""
        found = self.match(_STRING)
        if found is None:
            return None
        self.at = found.end()
        return re.sub(r"\\(.)", r"\1", found.group()[1:-1])

    @property
    def is_done(self) -> bool:
        """Whether nothing is left."""
        self.space()
        return self.at >= len(self.text)

    def end(self) -> None:
        """Refuse anything that is left.

        Raises:
            UsageError: There is something.
        """
        if not self.is_done:
            raise self.error("this is not expected")

    def deeper(self) -> None:
        """Note that a bracket was opened; whoever calls it takes one off `depth` later."""
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise self.error(f"brackets are nested more than {MOST_DEPTH} deep")

    def error(self, message: str) -> UsageError:
        """Return an error that says where in the text it is."""
        self.space()
        line = self.text.count("\n", 0, self.at) + 1
        rest = self.text[self.at :].split("\n", 1)[0]
        place = f"before {clip(visible(rest), 30)!r}" if rest else "at the end"
        if line > 1:
            place = f"in line {line} {place}"
        return UsageError(f"{message} {place}")
