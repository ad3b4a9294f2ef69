"""The details of a layer as JSON: in the column ``details`` of reports, and in JSON output.

One flat object has the fields of `Cost` and `LayerInformation`, those of `Layer` without a column,
and whatever a later version adds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from dld_tui.core.report.records import Bound, Cost, Layer, LayerInformation, SharedBy
from dld_tui.core.types import JSON

_ACCEPTED: Mapping[str, tuple[frozenset[type], tuple[str, ...]]] = {
    "str": (frozenset({str}), ()),
    "bool": (frozenset({bool}), ()),
    "int | None": (frozenset({int}), ()),
    "float | None": (frozenset({int, float}), ()),
    "Bound | None": (frozenset({str}), get_args(Bound)),
    "SharedBy | None": (frozenset({str}), get_args(SharedBy)),
}
"""The types of JSON values, and the words if these are all, by the type of a field."""
_MOST = sys.float_info.max
_PARTS = {"layer": Layer, "cost": Cost, "engine": LayerInformation}
_OWN = ("node_index", "around", "shared_by")
_KNOWN = {
    field.name: (part, field.default, *_ACCEPTED[str(field.type)])
    for part, kind in _PARTS.items()
    for field in fields(kind)
    if kind is not Layer or field.name in _OWN
}
"""The part of a layer that has a detail, its value if unknown, and what others are accepted."""


def details_of(layer: Layer) -> dict[str, JSON]:
    """Return what is known of a layer besides what columns hold."""
    details: dict[str, Any] = {**(layer.other or {})}
    parts = {"layer": layer, "cost": layer.cost, "engine": layer.engine}
    for key, (part, unknown, _, _) in _KNOWN.items():
        value = getattr(parts[part], key, unknown)
        if value != unknown:
            details[key] = value
    return details


def details_fields(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of `Layer` for details; a value that its key cannot have is unknown."""
    own: dict[str, Any] = {}
    cost: dict[str, Any] = {}
    engine: dict[str, Any] = {}
    other: dict[str, Any] = {}
    parts = {"layer": own, "cost": cost, "engine": engine}
    for key, value in details.items():  # in line: a report has hundreds of thousands
        known = _KNOWN.get(key)
        if known is None:
            other[key] = value
        elif (kind := type(value)) not in known[2] or (known[3] and value not in known[3]):
            continue
        elif kind is str or 0 <= value <= _MOST:
            parts[known[0]][key] = value
    if cost:
        own["cost"] = Cost(**cost)
    if engine:
        own["engine"] = LayerInformation(**engine)
    if other:
        own["other"] = other
    return own
