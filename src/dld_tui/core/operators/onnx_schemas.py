"""Operator schemas of the onnx package. The package is imported when the first one is asked for."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

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
    from onnx import defs

    try:
        # A broken model may import version 2**40, which onnx cannot take.
        schema = defs.get_schema(op_type, min(opset_version, _UNLIMITED), domain)
    except defs.SchemaError:
        return None
    return _converted(op_type, domain, schema.since_version)


@cache
def onnx_versions() -> dict[str, dict[str, tuple[int, ...]]]:
    """Return the versions in which each operator's signature changed, by domain and name."""
    from onnx import defs

    found: dict[str, dict[str, list[int]]] = {}
    for schema in defs.get_all_schemas_with_history():
        names = found.setdefault(schema.domain, {})
        names.setdefault(schema.name, []).append(schema.since_version)
    return {
        domain: {name: tuple(sorted(versions)) for name, versions in sorted(names.items())}
        for domain, names in sorted(found.items())
    }


@cache
def _converted(op_type: str, domain: str, version: int) -> OperatorSchema:
    from onnx import defs

    schema = defs.get_schema(op_type, version, domain)
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
            default=_default(item.default_value),
            description=item.description,
        )
        for item in schema.attributes.values()
    ]
    return tuple(sorted(found, key=lambda item: (not item.required, item.name)))


def _default(proto: Any) -> AttributeValue:
    """Return the value of a default, None when the attribute has none (an empty message)."""
    if not proto.type:
        return None
    import onnx

    value = onnx.helper.get_attribute_value(proto)
    if isinstance(value, onnx.TensorProto):
        # LabelEncoder declares a tensor default with no element type: there is none.
        return onnx.numpy_helper.to_array(value) if value.data_type else None
    if isinstance(value, (int, float, bytes)):
        return value
    return list(value)
