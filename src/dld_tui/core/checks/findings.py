"""What a check says: one finding, with a rule id, a place and a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dld_tui.core.checks.rules import RULES, Level
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.values import ValueType
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

ORDER: dict[Level, int] = {"error": 0, "warning": 1, "info": 2}


@dataclass(frozen=True, slots=True)
class Repair:
    """An edit that repairs what a finding is about.

    Paths and refs change with every edit, so the arguments are only made when they are wanted.
    """

    edit: str
    arguments: Mapping[str, JSON] = field(default_factory=dict)
    """Those that never change."""
    scoped: bool = True
    """Whether it takes the path of the finding's scope as ``scope``."""
    node: bool = False
    """Whether it takes the ref of the finding's node as ``node``."""
    typed: bool = False
    """Whether it takes the finding's value as ``value`` with the type that is inferred for it as
    ``dtype`` and ``dims``; without one there is no repair yet."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or odd in a model."""

    level: Level
    rule: str
    """A stable id, e.g. ``graph-cycle``: see :mod:`.rules`."""
    message: str
    """One sentence, fit for a terminal."""
    scope: Scope | None = None
    """None when it is about the whole model."""
    node: Node | None = None
    value: str | None = None
    """The value, initializer, input or output that it is about. Foreign text."""
    repair: Repair | None = None

    @property
    def fix(self) -> tuple[str, dict[str, JSON]] | None:
        """The edit that repairs it and its arguments as of now, or None."""
        if self.repair is None:
            return None
        arguments: dict[str, JSON] = {}
        if self.repair.typed:
            known = self._inferred
            if known is None:
                return None
            dims: JSON = None if known.dims is None else list(known.dims)
            arguments.update(value=self.value, dtype=known.dtype, dims=dims)
        if self.repair.scoped:
            arguments["scope"] = [] if self.scope is None else list(self.scope.path)
        if self.repair.node and self.node is not None:
            arguments["node"] = self.node.ref
        return self.repair.edit, {**arguments, **self.repair.arguments}

    @property
    def _inferred(self) -> ValueType | None:
        """What shape inference says of its value, where that is a plain tensor of known type."""
        if self.scope is None or self.value is None:
            return None
        known = self.scope.inferred.get(self.value)
        if known is None or known.dtype is None or known.container:
            return None
        return known if self.scope.kind != "graph" or known.dims is not None else None

    def to_json(self) -> dict[str, JSON]:
        """Return the finding as ``dld check --json`` prints it."""
        fix = self.fix
        return {
            "level": self.level,
            "rule": self.rule,
            "message": self.message,
            "scope": None if self.scope is None else list(self.scope.path),
            "node": None if self.node is None else self.node.ref,
            "value": self.value,
            "fix": None if fix is None else {"edit": fix[0], "arguments": fix[1]},
        }


def found(
    rule: str,
    message: str,
    scope: Scope | None = None,
    node: Node | None = None,
    *,
    value: str | None = None,
    repair: Repair | None = None,
    level: Level | None = None,
) -> Finding:
    """Return a finding at the usual level of its rule."""
    return Finding(level or RULES[rule], rule, message, scope, node, value, repair)


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings with errors first, otherwise in the order they were found."""
    return sorted(findings, key=lambda finding: ORDER[finding.level])


def name_of(name: str) -> str:
    """Return a foreign name for a message: escaped and of bounded length."""
    return clip(visible(name), 80, keep="middle")


def names_of(names: list[str], most: int = 5) -> str:
    """Return a few foreign names for a message, and how many more there are."""
    text = ", ".join(name_of(name) for name in names[:most])
    return f"{text} and {len(names) - most} more" if len(names) > most else text
