"""Why rules find nothing to replace: what they look for that a model lacks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.model.rewrite.matcher import find_hits
from dld_tui.core.model.rewrite.pattern import Pattern
from dld_tui.core.model.rewrite.rule import Rewrite, Rule

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document

_LONGEST = 100


def why_nothing(document: Document, rules: Sequence[Rule]) -> list[str]:
    """Return why each rule finds nothing, those that miss least first. Untrusted text."""
    there = {(node.domain, node.op_type) for scope in document.scopes() for node in scope.nodes}
    reasons = [_of_rule(document, rule, there) for rule in rules]
    return [reason for _, reason in sorted(reasons, key=lambda one: one[0])]


def _of_rule(document: Document, rule: Rule, there: Collection[tuple[str, str]]) -> tuple[int, str]:
    """Return how many operators a rule misses, and the reason."""
    name = f"{rule.name}: " if rule.name else ""
    lacking = [(rewrite, _lacking(rewrite.pattern, there)) for rewrite in rule.rewrites]
    least = min(len(missing) for _, missing in lacking)
    nearest = [(rewrite, missing) for rewrite, missing in lacking if len(missing) == least]
    if least:
        return least, f"{name}the model has no {' and no '.join(nearest[0][1])}"
    for rewrite, _ in nearest:
        if reason := _condition(document, rewrite):
            return 0, name + reason
    return 0, f"{name}its operators are there, but no place has its links and attributes"


def _condition(document: Document, rewrite: Rewrite) -> str:
    """Return the condition for want of which a rewrite finds nothing; empty if it is not that."""
    pattern = rewrite.pattern
    hits = find_hits(document, replace(pattern, conditions=())) if pattern.conditions else []
    if not hits:
        return ""
    wanted = " ".join(" and ".join(one.text for one in pattern.conditions).split())
    shown = wanted if len(wanted) <= _LONGEST else f"{wanted[: _LONGEST - 1]}…"
    return f"{fmt.plural(len(hits), 'place')} like {hits[0].last.ref}, but not: {shown}"


def _lacking(pattern: Pattern, there: Collection[tuple[str, str]]) -> list[str]:
    calls = [call for call in pattern.body.calls if call.kinds and not call.may_miss]
    return [*dict.fromkeys(call.title for call in calls if call.kinds.isdisjoint(there))]
