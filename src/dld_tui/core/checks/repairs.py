"""The edits that repair what was found, and whether a result is as sound as its model was."""

from __future__ import annotations

import json
from collections.abc import Iterable

from dld_tui.core.checks.findings import Finding, name_of
from dld_tui.core.document import Document
from dld_tui.core.errors import ActivityError
from dld_tui.core.types import JSON

_ORDER = {
    # These rename, add or remove nodes, which other repairs may name.
    "rename_shadowing": 1,
    "own_outputs": 2,
    "remove_unused": 3,
    "sort_nodes": 4,
    "rename_duplicate_nodes": 5,
}


def repair_steps(findings: Iterable[Finding]) -> list[JSON]:
    """Return the steps of the edit ``repair`` for all findings that can be repaired.

    Repairs of the same kind and scope become one; inner scopes come before outer ones. Rules of
    ``dld rewrite`` are no repairs: fused operators and quantized layers compute other values, by a
    little, or by more.
    """
    merged: dict[str, tuple[tuple[int, int], str, dict[str, JSON]]] = {}
    for finding in findings:
        fix = finding.fix if finding.repair is not None else None
        if fix is None:
            continue
        edit, arguments = fix
        lists = {name: value for name, value in arguments.items() if _is_names(name, value)}
        rest = {name: value for name, value in arguments.items() if name not in lists}
        key = json.dumps([edit, rest, sorted(lists)], sort_keys=True)
        depth = len(finding.scope.path) if finding.scope is not None else 0
        _, _, known = merged.setdefault(
            key, ((_ORDER.get(edit, 0), -depth), edit, {**rest, **{n: [] for n in lists}})
        )
        for name, values in lists.items():
            present = known[name]
            assert isinstance(present, list)
            assert isinstance(values, list)
            present += [value for value in values if value not in present]
    ordered = sorted(merged.values(), key=lambda step: step[0])
    return [[edit, arguments] for _, edit, arguments in ordered]


def _is_names(name: str, value: JSON) -> bool:
    return name in ("names", "values") and isinstance(value, list)


_NO_FAULT = {"tensor-without-data"}
"""Errors that conversions are asked for: a model without weights is not to be run."""


def require_sound(before: Document, after: Document) -> None:
    """Refuse a model with errors of a kind that the one that it was made of has not.

    What no runtime takes is among them; call it where :func:`.prediction.checked` may be called.

    Args:
        before: The model that was converted.
        after: The result.

    Raises:
        ActivityError: The result has new errors.
    """
    from dld_tui.core.checks.prediction import checked

    errors = _errors(checked(after, after.path or before.path))
    if not errors:
        return
    known = {finding.rule for finding in _errors(checked(before))} | _NO_FAULT
    added = [finding for finding in errors if finding.rule not in known]
    if added:
        more = f" (and {len(added) - 1} more)" if added[1:] else ""
        raise ActivityError(f"the result is not valid: {_said(added[0])}{more}")


def _said(finding: Finding) -> str:
    name = name_of(finding.node.ref) if finding.node is not None else ""
    return finding.message if name in finding.message else f"{name}: {finding.message}"


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "error"]
