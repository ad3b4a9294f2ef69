"""The details of a layer as JSON: in the column ``details`` of reports, and in JSON output.

One flat object has the fields of `Cost` and `EngineFacts`, those of `Layer` without a column, and
whatever a later version adds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, get_args

from dld_tui.core.report.records import Bound, Cost, EngineFacts, Layer, SharedBy
from dld_tui.core.types import JSON


def _is_number(value: JSON) -> bool:
    return type(value) in (int, float) and 0 <= value <= sys.float_info.max  # type: ignore[operator]


_ACCEPTS: Mapping[str, Callable[[JSON], bool]] = {
    "str": lambda value: type(value) is str,
    "bool": lambda value: type(value) is bool,
    "int | None": lambda value: type(value) is int and _is_number(value),
    "float | None": _is_number,
    "Bound | None": get_args(Bound).__contains__,
    "SharedBy | None": get_args(SharedBy).__contains__,
}
_PARTS = {"layer": Layer, "cost": Cost, "engine": EngineFacts}
_OWN = ("node_index", "around", "shared_by")
_KNOWN = {
    field.name: (part, field.default, _ACCEPTS[str(field.type)])
    for part, kind in _PARTS.items()
    for field in fields(kind)
    if kind is not Layer or field.name in _OWN
}
"""The part of a layer that has a detail, its value if unknown, and a test of others."""


def details_of(layer: Layer) -> dict[str, JSON]:
    """Return what is known of a layer besides what columns hold."""
    details: dict[str, Any] = {**(layer.other or {})}
    parts = {"layer": layer, "cost": layer.cost, "engine": layer.engine}
    for key, (part, unknown, _) in _KNOWN.items():
        value = getattr(parts[part], key, unknown)
        if value != unknown:
            details[key] = value
    return details


def details_fields(details: Mapping[str, JSON]) -> dict[str, Any]:
    """Return the fields of `Layer` for details; a value that its key cannot have is unknown."""
    parts: dict[str, dict[str, Any]] = {}
    for key, value in details.items():
        part, _, accepts = _KNOWN.get(key, ("other", None, None))
        if accepts is None or accepts(value):
            parts.setdefault(part, {})[key] = value
    own = parts.pop("layer", {})
    return {**own, **{part: _PARTS.get(part, dict)(**facts) for part, facts in parts.items()}}
