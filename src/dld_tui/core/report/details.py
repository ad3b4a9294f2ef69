"""The details of a layer as JSON: in the column ``details`` of reports, and in JSON output.

One flat object has the fields of `Cost` and `EngineFacts`, those of `Layer` without a column, and
whatever a later version adds.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, get_args

from dld_tui.core.report.records import Bound, Cost, EngineFacts, Layer, SharedBy
from dld_tui.core.types import JSON

_OWN = ("node_index", "around", "shared_by")
_PARTS = {"cost": Cost, "engine": EngineFacts}
_WORDS = {"Bound | None": get_args(Bound), "SharedBy | None": get_args(SharedBy)}
_TYPES = {"str": (str,), "bool": (bool,), "int | None": (int,), "float | None": (int, float)}


def _known() -> dict[str, tuple[str, str, object]]:
    """Return the part of a layer, the type and the value if unknown, by key."""
    known = {
        field.name: (part, str(field.type), field.default)
        for part, kind in _PARTS.items()
        for field in fields(kind)
    }
    own = (field for field in fields(Layer) if field.name in _OWN)
    return known | {field.name: ("", str(field.type), field.default) for field in own}


_KNOWN = _known()


def details_of(layer: Layer) -> dict[str, JSON]:
    """Return what is known of a layer besides what columns hold."""
    details: dict[str, Any] = {**layer.other} if layer.other else {}
    parts = {"": layer, "cost": layer.cost, "engine": layer.engine}
    for key, (part, _, unknown) in _KNOWN.items():
        value = getattr(parts[part], key, unknown)
        if value != unknown:
            details[key] = value
    return details


def details_fields(details: Mapping[str, JSON]) -> dict[str, Any]:
    """Return the fields of `Layer` for details; a value that its key cannot have is unknown."""
    own: dict[str, Any] = {}
    parts: dict[str, dict[str, Any]] = {}
    other: dict[str, JSON] = {}
    for key, value in details.items():
        known = _KNOWN.get(key)
        if known is None:
            other[key] = value
        elif _is_of(value, known[1]):
            (parts.setdefault(known[0], {}) if known[0] else own)[key] = value
    own.update({part: _PARTS[part](**facts) for part, facts in parts.items()})
    return {**own, "other": other} if other else own


def _is_of(value: JSON, kind: str) -> bool:
    if kind in _WORDS:
        return value in _WORDS[kind]
    if type(value) not in _TYPES[kind]:
        return False
    return not isinstance(value, (int, float)) or 0 <= value <= sys.float_info.max
