"""A model in figures, before and after a conversion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import cast

from dld_tui.core import fmt
from dld_tui.core.document.document import Document
from dld_tui.core.document.summary import summarise
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_LISTED = 12
"""Operators that a summary names."""


def figures(document: Document) -> dict[str, JSON]:
    """Return nodes, weights, operators and element types of a model as JSON data."""
    summary = summarise(document)
    weights: Counter[str] = Counter()
    for scope in document.scopes():
        for tensor in scope.initializers:
            if tensor.location != "none":
                weights[tensor.dtype] += tensor.nbytes or 0
        for node in scope.nodes_of_type("Constant"):
            for attribute in node.proto.attribute:
                if attribute.HasField("t"):
                    tensor = Tensor(attribute.t, document)
                    weights[tensor.dtype] += tensor.nbytes or 0
    return {
        "nodes": summary.nodes_total,
        "operators": dict(summary.op_types),
        "initializers": summary.initializers,
        "weight_bytes": sum(weights.values()),
        "external_bytes": summary.external_bytes,
        "weights_by_type": dict(weights.most_common()),
        "functions": len(summary.functions),
        "opsets": dict(summary.opsets),
    }


def summary_lines(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> list[str]:
    """Return what two sets of :func:`figures` say of a conversion. Fit for a terminal."""
    lines = [
        _line("nodes", before["nodes"], after["nodes"]),
        _line("initializers", before["initializers"], after["initializers"]),
        _sizes("weights", before["weight_bytes"], after["weight_bytes"]),
    ]
    if before["external_bytes"] or after["external_bytes"]:
        lines.append(_sizes("  external", before["external_bytes"], after["external_bytes"]))
    types = [cast("dict[str, int]", side["weights_by_type"]) for side in (before, after)]
    for dtype in dict.fromkeys([*types[0], *types[1]]):
        lines.append(_sizes(f"  {dtype}", types[0].get(dtype, 0), types[1].get(dtype, 0)))
    if before["functions"] or after["functions"]:
        lines.append(_line("functions", before["functions"], after["functions"]))
    return lines + _operators(before, after)


def _operators(before: Mapping[str, JSON], after: Mapping[str, JSON]) -> list[str]:
    one, two = (Counter(cast("dict[str, int]", side["operators"])) for side in (before, after))
    changed = [
        (abs(two[name] - one[name]), name) for name in {*one, *two} if one[name] != two[name]
    ]
    changed.sort(key=lambda item: (-item[0], item[1]))
    lines = [
        _line(f"  {clip(visible(name), 24)}", one[name], two[name]) for _, name in changed[:_LISTED]
    ]
    if len(changed) > _LISTED:
        lines.append(f"  and {fmt.plural(len(changed) - _LISTED, 'operator')} more")
    return ["operators that became more or fewer:", *lines] if lines else []


def _line(what: str, before: JSON, after: JSON) -> str:
    one, two = cast("int", before), cast("int", after)
    change = "" if one == two else f"  ({two - one:+,})"
    return f"{what:<26} {fmt.count(one):>12} → {fmt.count(two)}{change}"


def _sizes(what: str, before: JSON, after: JSON) -> str:
    one, two = cast("int", before), cast("int", after)
    return f"{what:<26} {fmt.size(one):>12} → {fmt.size(two)}"
