"""Results as flat rows, which pandas takes.

>>> from dld_tui.core.report.records import Layer
>>> rows = records([Layer("conv", "Conv", time_ms=0.5)])
>>> rows[0]["name"], rows[0]["cost_ms"]
('conv', 0.5)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dld_tui.core.model.document.operator_listing import ListedOperator


def records(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return dataclasses as flat dictionaries: ``pandas.DataFrame(records(report.layers))``.

    A field of a field is ``cost.flops``; lists stay lists. Figures that are computed, such as
    ``cost_ms`` of a layer, are there as well.

    Raises:
        TypeError: A row is no dataclass.
    """
    return [_record(row) for row in rows]


def operators(
    name: str | None = None, *, domain: str | None = None, opset: int | None = None
) -> list[ListedOperator]:
    """Return the operators of the opset, or those of one name, as ``dld operators`` lists them.

    Raises:
        UsageError: There is no such operator, operator set, or version of it.
    """
    from dld_tui.core.model.document import operator_listing as listing

    every = listing.all_operators(domain, opset)
    found = every if name is None else listing.find(name, domain, opset)
    return [listing.ListedOperator.of(one) for one in found]


def _record(row: Any) -> dict[str, Any]:
    if not dataclasses.is_dataclass(row) or isinstance(row, type):
        raise TypeError(f"{row!r:.80} is not a row of a result")
    flat: dict[str, Any] = {}
    for field in dataclasses.fields(row):
        value = getattr(row, field.name)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            flat |= {f"{field.name}.{name}": item for name, item in _record(value).items()}
        else:
            flat[field.name] = _plain(value)
    for name, member in _properties(type(row)).items():
        value = member.__get__(row)
        if name not in flat and isinstance(value, (str, int, float, type(None))):
            flat[name] = value
    return flat


def _properties(kind: type[Any]) -> Mapping[str, property]:
    return {
        name: member
        for base in reversed(kind.__mro__)
        for name, member in vars(base).items()
        if isinstance(member, property) and not name.startswith("_")
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _record(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, Path) else value
