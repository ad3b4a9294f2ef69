"""Parse each style sheet once in a process: Textual parses all of them three times for an app."""

from __future__ import annotations

from textual.css.model import RuleSet
from textual.css.stylesheet import CssSource, Stylesheet
from textual.css.types import CSSLocation

_parse_rules = Stylesheet._parse_rules
_parsed: dict[tuple[object, ...], list[RuleSet]] = {}


def _parse_once(
    self: Stylesheet,
    css: str,
    read_from: CSSLocation,
    is_default_rules: bool = False,
    tie_breaker: int = 0,
    scope: str = "",
) -> list[RuleSet]:
    source = CssSource(css, is_default_rules, tie_breaker, scope)
    key = (frozenset(self._variables.items()), read_from, source)
    if key not in _parsed:
        _parsed[key] = _parse_rules(self, css, read_from, is_default_rules, tie_breaker, scope)
    return _parsed[key]


def share() -> None:
    """Let all apps of this process share what was parsed from the same text and variables."""
    Stylesheet._parse_rules = _parse_once  # type: ignore[method-assign]
