"""Schemas of ONNX Runtime's own operators, from a data file of the package.

They are those of com.microsoft, and some of ai.onnx: operators that the ONNX standard does not
have, or only in later versions, such as SimplifiedLayerNormalization of exported decoders.

The file is written by scripts/contrib_operators.py; models use these operators on machines where
ONNX Runtime is not installed.
"""

from __future__ import annotations

import json
from functools import lru_cache
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
    """Return the schemas of com.microsoft by operator name, in order of the names."""
    return {row["name"]: _schema(row, DOMAIN) for row in _rows() if "domain" not in row}


@lru_cache(maxsize=1)
def _standard_schemas() -> dict[str, list[OperatorSchema]]:
    """Return the versions of each operator that ONNX Runtime adds to ai.onnx, the oldest first."""
    schemas: dict[str, list[OperatorSchema]] = {}
    for row in _rows():
        if "domain" in row:
            schemas.setdefault(row["name"], []).append(_schema(row, ""))
    return schemas


def standard_schema(name: str, opset_version: int | None) -> OperatorSchema | None:
    """Return the schema that ONNX Runtime adds to a version of ai.onnx, None if it has none.

    What it has withdrawn it refuses, unlike operators that the standard calls deprecated.

    Args:
        name: The operator's name.
        opset_version: The version that the model imports; None for any.
    """
    versions = _standard_schemas().get(name, [])
    if opset_version is None:
        versions = [schema for schema in versions if not schema.deprecated]
    fitting = [s for s in versions if opset_version is None or s.since_version <= opset_version]
    return fitting[-1] if fitting and not fitting[-1].deprecated else None


@lru_cache(maxsize=1)
def _rows() -> list[dict[str, Any]]:
    from importlib import resources  # lazy: it imports zipfile

    text = resources.files(__package__).joinpath("data/contrib_operators.json").read_text("utf-8")
    rows: list[dict[str, Any]] = json.loads(text)["operators"]
    return rows


def _schema(row: dict[str, Any], domain: str) -> OperatorSchema:
    types = {name: tuple(map(_long, names)) for name, names in row.get("types", {}).items()}
    min_inputs, max_inputs, min_outputs, max_outputs = row["arity"]
    return OperatorSchema(
        name=row["name"],
        domain=domain,
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
