"""What a check says: one finding, with a rule id, a place and a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

Level: TypeAlias = Literal["error", "warning", "info"]
_ORDER: dict[Level, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or odd in a model."""

    level: Level
    rule: str
    """A stable id, e.g. ``graph-cycle``."""
    message: str
    """One sentence, fit for a terminal."""
    scope: Scope | None = None
    """None when it is about the whole model."""
    node: Node | None = None

    def to_json(self) -> dict[str, JSON]:
        """Return the finding as ``dld check --json`` prints it."""
        return {
            "level": self.level,
            "rule": self.rule,
            "message": self.message,
            "scope": None if self.scope is None else list(self.scope.path),
            "node": None if self.node is None else self.node.ref,
        }


def by_severity(findings: list[Finding]) -> list[Finding]:
    """Return findings with errors first, otherwise in the order they were found."""
    return sorted(findings, key=lambda finding: _ORDER[finding.level])


def name_of(name: str) -> str:
    """Return a foreign name for a message: escaped and of bounded length."""
    return clip(visible(name), 80, keep="middle")


def names_of(names: list[str], most: int = 5) -> str:
    """Return a few foreign names for a message, and how many more there are."""
    text = ", ".join(name_of(name) for name in names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text
