"""Operators, their schemas and the versions of operator sets, wherever they are from.

Those of the onnx package are loaded when the first one is asked for. Those of ONNX Runtime come
from a data file, since models use them on machines where it is not installed: com.microsoft, and
some of ai.onnx that the standard does not have, or only in later versions, such as
SimplifiedLayerNormalization of exported decoders. scripts/contrib_operators.py writes the file.

From the versions of a schema follows what changed between them, and whether two mean the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from dld_tui.core.files import protos
from dld_tui.core.files.proto_fields import VALUE_FIELDS
from dld_tui.core.model.operators.schema import (
    AttributeSchema,
    AttributeValue,
    Formal,
    OperatorSchema,
    TypeConstraint,
)
from dld_tui.core.model.tensors.value_types import shown
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    from onnx.defs import OpSchema


_UNLIMITED = 2**31 - 1


@cache
def onnx_schema(op_type: str, domain: str, opset_version: int) -> OperatorSchema | None:
    """Return the schema that an operator has in an opset version, None when it has none."""
    since = _since(op_type, domain, opset_version)
    return None if since is None else _converted(op_type, domain, since)


def _since(op_type: str, domain: str, opset_version: int) -> int | None:
    """Return the version that introduced the form of an operator in another version, or None."""
    try:
        # A broken model may import version 2**40, which onnx cannot take.
        schema = protos.defs().get_schema(op_type, min(opset_version, _UNLIMITED), domain)
    except (protos.defs().SchemaError, TypeError):  # names are bytes, perhaps not UTF-8
        return None
    return int(schema.since_version)


@cache
def onnx_versions(op_type: str, domain: str) -> tuple[int, ...]:
    """Return the versions in which an operator's signature changed, the oldest first."""
    versions: list[int] = []
    version = _since(op_type, domain, _UNLIMITED)
    while version is not None:
        versions.append(version)
        version = _since(op_type, domain, version - 1)
    return tuple(versions[::-1])


@cache
def onnx_operators() -> dict[str, list[str]]:
    """Return the names of all operators by domain."""
    by_domain: dict[str, list[str]] = {}
    schemas = protos.defs().get_all_schemas()
    for domain, name in sorted((schema.domain, schema.name) for schema in schemas):
        by_domain.setdefault(domain, []).append(name)
    return by_domain


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
    attributes = [
        AttributeSchema(
            name=item.name,
            kind=_enum_name(item.type),
            required=item.required,
            default=_default_of(item._default_value),  # type: ignore[attr-defined]
            description=item.description,
        )
        for item in schema.attributes.values()
    ]
    return tuple(sorted(attributes, key=lambda item: (not item.required, item.name)))


def _default_of(message: bytes) -> AttributeValue:
    """Return the value of a default, None when the attribute has none (an empty message)."""
    proto = protos.AttributeProto.FromString(message)
    value = getattr(proto, VALUE_FIELDS.get(proto.type, ""), None)
    if isinstance(value, protos.TensorProto):
        from onnx import numpy_helper

        # LabelEncoder declares a tensor default with no element type: there is none.
        return numpy_helper.to_array(value) if value.data_type else None
    return value if isinstance(value, int | float | bytes | None) else list(value)


CONTRIB_DOMAIN = "com.microsoft"


@lru_cache(maxsize=1)
def contrib_schemas() -> dict[str, OperatorSchema]:
    """Return the schemas of com.microsoft by operator name, in order of the names."""
    return {row["name"]: _schema(row, CONTRIB_DOMAIN) for row in _rows() if "domain" not in row}


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

    ONNX Runtime refuses operators that it withdrew, unlike those that the standard deprecates.

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
    return AttributeSchema(name, kind, required, _contrib_default(default), description)


def _contrib_default(value: Any) -> AttributeValue:
    """Return a default in the form that models hold: strings are bytes."""
    if isinstance(value, str):
        return value.encode()
    assert value is None or isinstance(value, (int, float))
    return value


def _long(type_name: str) -> str:
    return type_name if "(" in type_name else f"tensor({type_name})"


def schema_for(op_type: str, domain: str, opset_version: int | None) -> OperatorSchema | None:
    """Return the schema of an operator, None when it is unknown in that version.

    Args:
        op_type: The operator's name, e.g. ``Conv``.
        domain: Its operator set; ``""`` and ``ai.onnx`` are the same.
        opset_version: The version that the model imports; None for the newest.
    """
    domain = plain_domain(domain)
    if domain == CONTRIB_DOMAIN:
        return contrib_schemas().get(op_type)
    versions = onnx_versions(op_type, domain)
    if not versions:
        return standard_schema(op_type, opset_version) if domain == "" else None
    if opset_version is None:
        opset_version = versions[-1]
    return onnx_schema(op_type, domain, opset_version) if opset_version >= versions[0] else None


def operators(opset_imports: Mapping[str, int]) -> list[OperatorSchema]:
    """Return all operators of the imported operator sets, by domain and name.

    Deprecated ones are included and say so; domains that are not known have none.
    """
    operator_schemas: list[OperatorSchema] = []
    for domain, version in sorted({plain_domain(d): v for d, v in opset_imports.items()}.items()):
        names = onnx_operators().get(domain, ())
        known = contrib_schemas().values() if domain == CONTRIB_DOMAIN else ()
        schemas = (*known, *(onnx_schema(name, domain, version) for name in names))
        operator_schemas.extend(schema for schema in schemas if schema is not None)
    return operator_schemas


def newest_opset(domain: str = "") -> int | None:
    """Return the newest version of an operator set that is known here, None for an unknown set."""
    domain = plain_domain(domain)
    if domain == CONTRIB_DOMAIN:
        return 1
    return newest_onnx(domain) if domain in onnx_operators() else None


def known_domains() -> list[str]:
    """Return the operator sets that are known here; ``""`` is ai.onnx."""
    return sorted([*onnx_operators(), CONTRIB_DOMAIN])


DEFAULT_OPSET = 20
"""What a new model imports: the newest that TensorRT 10.0 takes, so that most runtimes do."""

_LEAST_IR = 3
OLDEST_OPSET = 7
"""The first version of ai.onnx that is offered: no runtime has all operators of those before."""
RUNTIMES: tuple[tuple[str, int, int | None], ...] = (
    ("ONNX Runtime", 7, None),
    ("TensorRT 10.0", 9, 20),
    ("TensorRT 10.15", 9, 24),
    ("TensorRT 11", 9, 25),
)
"""Runtime, first and last version of ai.onnx that it documents to take; None: by its release.

Sources: onnxruntime.ai/docs/reference/compatibility.html; docs/operators.md of onnx/onnx-tensorrt
at 10.0 and 10.15; "ONNX Opset Guide" of docs.nvidia.com/deeplearning/tensorrt for 11.
"""


def known_versions(domain: str = "") -> tuple[int, ...]:
    """Return the versions of an operator set that may be imported, the oldest first.

    Very old ones of ai.onnx are left out. There are none for an unknown set.
    """
    newest = newest_opset(domain)
    if newest is None:
        return ()
    return tuple(range(OLDEST_OPSET if domain == "" else 1, newest + 1))


def least_ir_version(imports: Mapping[str, int]) -> int:
    """Return the least IR version of a file that imports some operator set versions."""
    from onnx.helper import OP_SET_ID_VERSION_MAP as TABLE

    needed = (TABLE.get((domain or "ai.onnx", version)) for domain, version in imports.items())
    return max((version for version in needed if version is not None), default=_LEAST_IR)


def importable_version(domain: str, ir_version: int) -> int:
    """Return the newest version of an operator set that a file of an IR version can import.

    Where every known version needs a newer file, this is the oldest one; for an unknown set it
    is 1.
    """
    domain = plain_domain(domain)
    newest = newest_opset(domain) or 1
    if domain == CONTRIB_DOMAIN or domain not in onnx_operators():
        return newest
    fitting = (v for v in range(newest, 0, -1) if least_ir_version({domain: v}) <= ir_version)
    return next(fitting, 1)


def runtimes_for(version: int) -> list[str]:
    """Return the runtimes that document to take a version of ai.onnx."""
    return [name for name, first, last in RUNTIMES if last is not None and first <= version <= last]


def versions_of(name: str, domain: str = "") -> tuple[int, ...]:
    """Return the opset versions in which an operator's signature changed, the oldest first."""
    if domain == CONTRIB_DOMAIN:
        schema = contrib_schemas().get(name)
        return (schema.since_version,) if schema is not None else ()
    return onnx_versions(name, domain)


def history_of(name: str, domain: str = "") -> list[tuple[int, list[str]]]:
    """Return (version, what changed in it) of an operator, the newest first."""
    schemas = [schema_for(name, domain, version) for version in versions_of(name, domain)]
    known = [schema for schema in schemas if schema is not None]
    history = []
    for at, schema in enumerate(known):
        history.append((schema.since_version, _changes(known[at - 1], schema) if at else ["first"]))
    return history[::-1]


def _changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    if new.deprecated and not old.deprecated:
        return ["deprecated"]
    changes = [
        *_formal_changes("input", old.inputs, new.inputs),
        *_formal_changes("output", old.outputs, new.outputs),
        *_attribute_changes(old, new),
        *_type_changes(old, new),
    ]
    return changes or ["the same signature, other words or behaviour"]


def _formal_changes(side: str, old: Sequence[Formal], new: Sequence[Formal]) -> list[str]:
    before, after = {item.name: item for item in old}, {item.name: item for item in new}
    changed = [
        f"{side} {name} is {after[name].option}, was {before[name].option}"
        for name in after
        if name in before and before[name].option != after[name].option
    ]
    return [
        *_came_and_went(side, before, after),
        *changed,
    ]


def _attribute_changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    before = {item.name: item for item in old.attributes}
    after = {item.name: item for item in new.attributes}
    changes = _came_and_went("attribute", before, after)
    for name, item in after.items():
        if name in before:
            changes += _attribute_change(before[name], item)
    return changes


def _attribute_change(old: AttributeSchema, new: AttributeSchema) -> list[str]:
    if old.kind != new.kind:
        return [f"attribute {new.name} is {new.kind}, was {old.kind}"]
    if old.required != new.required:
        return [f"attribute {new.name} is {'required' if new.required else 'optional'}"]
    if repr(old.default) != repr(new.default):
        return [f"attribute {new.name} has another default"]
    return []


def _came_and_went(kind: str, before: Iterable[str], after: Iterable[str]) -> list[str]:
    old, new = list(before), list(after)
    return [
        *(f"new {kind} {name}" for name in new if name not in old),
        *(f"no {kind} {name} any more" for name in old if name not in new),
    ]


def _type_changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    before = {shown(name) for item in (*old.inputs, *old.outputs) for name in item.types}
    after = {shown(name) for item in (*new.inputs, *new.outputs) for name in item.types}
    came, went = sorted(after - before), sorted(before - after)
    changes = [f"takes {', '.join(came)}"] if came else []
    return changes + ([f"no longer takes {', '.join(went)}"] if went else [])


def same_meaning(op_type: str, domain: str, there: int | None, here: int | None) -> bool:
    """Return whether a node written for one version of an operator set may be read as another.

    That is so where the signature is the same, further element types aside. An operator that is
    known in neither version is a custom one, which has no versions.

    Args:
        domain: Its operator set.
        there: The version that the node was written for.
        here: The version that it would be read in.
    """
    if there == here:
        return True
    first, second = (schema_for(op_type, domain, version) for version in (there, here))
    if first is None or second is None:
        return first is second
    if first.since_version == second.since_version:
        return True
    return (
        _same_formals(first.inputs, second.inputs)
        and _same_formals(first.outputs, second.outputs)
        and len(first.attributes) == len(second.attributes)
        and all(map(_same_attribute, first.attributes, second.attributes))
    )


def _same_formals(there: Sequence[Formal], here: Sequence[Formal]) -> bool:
    return len(there) == len(here) and all(
        (old.option, old.min_arity) == (new.option, new.min_arity)
        and set(old.types) <= set(new.types)
        for old, new in zip(there, here, strict=True)
    )


def _same_attribute(there: AttributeSchema, here: AttributeSchema) -> bool:
    if (there.name, there.kind, there.required) != (here.name, here.kind, here.required):
        return False
    import numpy as np

    return bool(np.array_equal(np.asarray(there.default), np.asarray(here.default)))
