"""What is computed inside pointwise and generated layers."""

from __future__ import annotations

import re

from dld_tui.core.plan.model import EngineLayer
from dld_tui.core.types import JSON

_KINDS = frozenset({"PointWise", "PointWiseV2", "PointWiseV3", "kgen", "ElementWise", "Unary"})
_MYELIN = re.compile(r"^__myl_([A-Za-z]+)")
_WORD = re.compile(r"[A-Z][a-z0-9]*")
_NEST = re.compile(r"PWN\(|[(),]")
_MOST = 200


def is_pointwise(layer: EngineLayer) -> bool:
    """Tell whether a layer computes element by element."""
    return layer.kind in _KINDS or layer.type in _KINDS


def operations(layer: EngineLayer) -> tuple[str, ...]:
    """Return the operations inside a layer, as its attributes or its name say. Foreign text."""
    for key in ("Operations", "Instructions"):
        found = layer.attributes.get(key)
        if isinstance(found, list):
            return tuple(_text(item) for item in found[:_MOST])
    for name in (layer.tactic, layer.name):
        myelin = _MYELIN.match(name)
        if myelin:
            return tuple(_WORD.findall(myelin[1])[:_MOST])
    _, found, nested = layer.name.partition("PWN(")
    parts = [part.strip() for part in _NEST.split(nested)] if found else []
    return tuple(part for part in parts if part)[:_MOST]


def _text(item: JSON) -> str:
    if isinstance(item, str):
        return item
    if isinstance(item, list):
        return " ".join(map(_text, item[:20]))
    return str(item)
