"""The app's stylesheet: what was parsed is kept."""

from __future__ import annotations

from textual.cache import LRUCache
from textual.css.stylesheet import Stylesheet

_MOST_SOURCES = 1024
"""Textual keeps 64, and goes through more than that in order: it would find none again."""


class KeptStylesheet(Stylesheet):
    """Parses a source once for each theme.

    Textual parses all sources again for each screen that is shown for the first time: a third of
    the time from the start to the first rows.
    """

    def __init__(self, *, variables: dict[str, str] | None = None) -> None:
        super().__init__(variables=variables)
        self._parse_cache = LRUCache(_MOST_SOURCES)

    def set_variables(self, variables: dict[str, str]) -> None:
        """Take the variables of a theme; nothing is parsed again when they are as before."""
        if variables != self._variables:
            super().set_variables(variables)

    def reparse(self) -> None:
        """Parse the sources that were not parsed with these variables; an error changes nothing."""
        self.parse()
