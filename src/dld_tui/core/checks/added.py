"""Checks that other packages add: entry points of the group ``dld_tui.checks``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dld_tui.core.checks.findings import Finding, Level
from dld_tui.core.document.node import Node
from dld_tui.core.plugins import plugins
from dld_tui.core.text import visible


@dataclass(frozen=True)
class NodeCheck:
    """A rule that looks at one node at a time, so that an edit checks again what it touches."""

    rule: str
    """Its id in findings, e.g. ``my-package:no-sigmoid``."""
    level: Level
    check: Callable[[Node], Iterable[str]]
    """Takes a node and returns a sentence for each thing that is wrong with it."""


class AddedChecks:
    """The checks of other packages, as they were found when a document was opened."""

    def __init__(self) -> None:
        found = plugins("checks", NodeCheck)
        self._checks = [one.value for one in found if one.value is not None]
        self.problems = [
            Finding(
                "info",
                "check-unavailable",
                visible(f"the check {one.name} of {one.package} is unavailable: {one.problem}"),
            )
            for one in found
            if one.problem
        ]
        """What is to be said of those that cannot be imported."""

    def findings(self, node: Node) -> Iterator[Finding]:
        """Yield what they say of a node."""
        for one in self._checks:
            try:
                said = [*one.check(node)]
                level = one.level
            # The seam to code of others, which may raise anything.
            except Exception as error:  # noqa: BLE001
                said, level = [f"the check failed: {type(error).__name__}: {error}"], "info"
            for text in said:
                yield Finding(level, one.rule, visible(text), node.scope, node)
