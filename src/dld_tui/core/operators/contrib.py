"""Schemas of ONNX Runtime's own operators (com.microsoft), from a data file of the package.

The file is written by scripts/contrib_operators.py; models use these operators on machines where
ONNX Runtime is not installed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib import resources
from typing import Any

from dld_tui.core.operators.schema import (
    AttributeSchema,
    AttributeValue,
    Formal,
    OperatorSchema,
    TypeConstraint,
)

DOMAIN = "com.microsoft"

_UNLIMITED = 2**31 - 1


@lru_cache(maxsize=1)
def contrib_schemas() -> dict[str, OperatorSchema]:
    """Return all schemas by operator name, in order of the names."""
    text = resources.files(__package__).joinpath("data/contrib_operators.json").read_text("utf-8")
    return {row["name"]: _schema(row) for row in json.loads(text)["operators"]}


def _schema(row: dict[str, Any]) -> OperatorSchema:
    types = {name: tuple(map(_long, names)) for name, names in row.get("types", {}).items()}
    min_inputs, max_inputs, min_outputs, max_outputs = row["arity"]
    return OperatorSchema(
        name=row["name"],
        domain=DOMAIN,
        since_version=row["since"],
        deprecated=row.get("deprecated", False),
        inputs=tuple(_formal(types, *item) for item in row.get("inputs", ())),
        outputs=tuple(_formal(types, *item) for item in row.get("outputs", ())),
        attributes=tuple(_attribute(*item) for item in row.get("attributes", ())),
        type_constraints=tuple(TypeConstraint(name, kinds, "") for name, kinds in types.items()),
        markdown=row["doc"],
        min_inputs=min_inputs,
        max_inputs=None if max_inputs >= _UNLIMITED else max_inputs,
        min_outputs=min_outputs,
        max_outputs=None if max_outputs >= _UNLIMITED else max_outputs,
    )


def _formal(
    types: dict[str, tuple[str, ...]],
    name: str,
    description: str,
    type_name: str,
    option: str = "single",
    homogeneous: bool = True,
) -> Formal:
    if type_name in types:
        return Formal(name, description, types[type_name], type_name, option, 1, homogeneous)
    return Formal(name, description, (_long(type_name),), _long(type_name), option, 1, homogeneous)


def _attribute(
    name: str, kind: str, required: bool, description: str, default: Any = None
) -> AttributeSchema:
    return AttributeSchema(name, kind, required, _default(default), description)


def _default(value: Any) -> AttributeValue:
    """Return a default in the form that models hold: strings are bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, list):
        return [item.encode() if isinstance(item, str) else item for item in value]
    assert value is None or isinstance(value, (int, float))
    return value


def _long(type_name: str) -> str:
    return type_name if "(" in type_name else f"tensor({type_name})"
