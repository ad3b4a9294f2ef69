"""Operator schemas of the onnx package. They are loaded when the first one is asked for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from dld_tui.core import protos
from dld_tui.core.document.node import VALUE_FIELDS
from dld_tui.core.operators.schema import (
    AttributeSchema,
    AttributeValue,
    Formal,
    OperatorSchema,
    TypeConstraint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx.defs import OpSchema

_UNLIMITED = 2**31 - 1


@cache
def onnx_schema(op_type: str, domain: str, opset_version: int) -> OperatorSchema | None:
    """Return the schema that an operator has in an opset version, None when it has none."""
    since = _since(op_type, domain, opset_version)
    return None if since is None else _converted(op_type, domain, since)


def _since(op_type: str, domain: str, opset_version: int) -> int | None:
    """Return since which version an operator is as it is in another, None before the first."""
    try:
        # A broken model may import version 2**40, which onnx cannot take.
        schema = protos.defs().get_schema(op_type, min(opset_version, _UNLIMITED), domain)
    except protos.defs().SchemaError:
        return None
    return int(schema.since_version)


@cache
def onnx_versions(op_type: str, domain: str) -> tuple[int, ...]:
    """Return the versions in which an operator's signature changed, the oldest first."""
    found: list[int] = []
    version = _since(op_type, domain, _UNLIMITED)
    while version is not None:
        found.append(version)
        version = _since(op_type, domain, version - 1)
    return tuple(found[::-1])


@cache
def onnx_operators() -> dict[str, list[str]]:
    """Return the names of all operators by domain."""
    found: dict[str, list[str]] = {}
    schemas = protos.defs().get_all_schemas()
    for domain, name in sorted((schema.domain, schema.name) for schema in schemas):
        found.setdefault(domain, []).append(name)
    return found


def newest_onnx(domain: str) -> int:
    """Return the newest version of an operator set of the ONNX standard."""
    return int(protos.defs().schema_version_map()[domain][1])


@cache
def _converted(op_type: str, domain: str, version: int) -> OperatorSchema:
    schema = protos.defs().get_schema(op_type, version, domain)
    return OperatorSchema(
        name=schema.name,
        domain=schema.domain,
        since_version=schema.since_version,
        deprecated=schema.deprecated,
        inputs=_formals(schema.inputs),
        outputs=_formals(schema.outputs),
        attributes=_attributes(schema),
        type_constraints=tuple(
            TypeConstraint(item.type_param_str, tuple(item.allowed_type_strs), item.description)
            for item in schema.type_constraints
        ),
        markdown=schema.doc or "",
        min_inputs=schema.min_input,
        max_inputs=_limit(schema.max_input),
        min_outputs=schema.min_output,
        max_outputs=_limit(schema.max_output),
    )


def _enum_name(member: Any) -> str:
    name: str = member.name  # the stubs of onnx do not know it
    return name.lower()


def _limit(number: int) -> int | None:
    return None if number >= _UNLIMITED else number


def _formals(parameters: Sequence[OpSchema.FormalParameter]) -> tuple[Formal, ...]:
    return tuple(
        Formal(
            name=item.name,
            description=item.description,
            types=tuple(sorted(item.types)),
            type_name=item.type_str,
            option=_enum_name(item.option),
            min_arity=item.min_arity,
            homogeneous=item.is_homogeneous,
        )
        for item in parameters
    )


def _attributes(schema: OpSchema) -> tuple[AttributeSchema, ...]:
    found = [
        AttributeSchema(
            name=item.name,
            kind=_enum_name(item.type),
            required=item.required,
            default=_default(item._default_value),  # type: ignore[attr-defined]
            description=item.description,
        )
        for item in schema.attributes.values()
    ]
    return tuple(sorted(found, key=lambda item: (not item.required, item.name)))


def _default(message: bytes) -> AttributeValue:
    """Return the value of a default, None when the attribute has none (an empty message)."""
    proto = protos.AttributeProto.FromString(message)
    value = getattr(proto, VALUE_FIELDS.get(proto.type, ""), None)
    if isinstance(value, protos.TensorProto):
        from onnx import numpy_helper

        # LabelEncoder declares a tensor default with no element type: there is none.
        return numpy_helper.to_array(value) if value.data_type else None
    return value if isinstance(value, int | float | bytes | None) else list(value)
