"""What tools of others say of a model, as findings that lead to its nodes."""

from __future__ import annotations

from typing import cast

from dld_tui.core.checks.findings import Finding
from dld_tui.core.checks.rules import RULES
from dld_tui.core.document.document import Document
from dld_tui.core.document.labels import Remark
from dld_tui.core.document.places import node_at, scope_at
from dld_tui.core.types import JSON

_LEVELS = ("error", "warning", "info")


def remark_finding(document: Document, level: str, rule: str, remark: Remark) -> Finding:
    """Return a remark as a finding.

    Args:
        document: The model, as it was when the tool saw it.
        level: ``error`` or ``warning``; anything else is a mere remark.
        rule: A stable id such as ``onnx:checker``.
        remark: What was said.
    """
    found = next((known for known in _LEVELS if known == level), "info")
    place = remark.place
    scope = None if place is None else scope_at(document, place)
    node = None if place is None else node_at(document, place, remark.index)
    return Finding(found, rule, remark.message, scope, node)  # type: ignore[arg-type]


def findings_of(document: Document, result: JSON) -> list[Finding]:
    """Return the findings in the result of the activity ``check_full``."""
    found = []
    for entry in cast("list[dict[str, JSON]]", result):
        level, rule = str(entry["level"]), str(entry["rule"])
        found.append(remark_finding(document, level, rule, Remark.from_json(entry)))
    return found


def without_repeats(predicted: list[Finding], known: list[Finding]) -> list[Finding]:
    """Leave out predictions that say of a node what a rule of the checker says of it already."""
    said = {(finding.rule, id(finding.node)) for finding in known if finding.node is not None}
    return [finding for finding in predicted if (finding.rule, id(finding.node)) not in said]


def predicted_findings(document: Document, errors: JSON) -> list[Finding]:
    """Return the findings in the result of the activity ``infer_shapes``.

    Args:
        document: The model, as it was when it was looked at.
        errors: ``errors`` of the result.
    """
    found = []
    for entry in cast("list[dict[str, JSON]]", errors):
        rule = str(entry["rule"])
        level = RULES.get(rule, "error")
        found.append(remark_finding(document, level, rule, Remark.from_json(entry)))
    return found
