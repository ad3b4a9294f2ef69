"""What changed in an operator from version to version, and whether two versions mean the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dld_tui.core.document.value_types import shown
from dld_tui.core.operators import registry
from dld_tui.core.operators.registry import onnx_versions, schema_for
from dld_tui.core.operators.schema import AttributeSchema, Formal, OperatorSchema


def versions_of(name: str, domain: str = "") -> tuple[int, ...]:
    """Return the opset versions in which an operator's signature changed, the oldest first."""
    if domain == registry.CONTRIB_DOMAIN:
        schema = registry.contrib_schemas().get(name)
        return (schema.since_version,) if schema is not None else ()
    return onnx_versions(name, domain)


def history_of(name: str, domain: str = "") -> list[tuple[int, list[str]]]:
    """Return (version, what changed in it) of an operator, the newest first."""
    schemas = [schema_for(name, domain, version) for version in versions_of(name, domain)]
    known = [schema for schema in schemas if schema is not None]
    found = []
    for at, schema in enumerate(known):
        found.append((schema.since_version, _changes(known[at - 1], schema) if at else ["first"]))
    return found[::-1]


def _changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    if new.deprecated and not old.deprecated:
        return ["deprecated"]
    found = [
        *_formal_changes("input", old.inputs, new.inputs),
        *_formal_changes("output", old.outputs, new.outputs),
        *_attribute_changes(old, new),
        *_type_changes(old, new),
    ]
    return found or ["the same signature, other words or behaviour"]


def _formal_changes(what: str, old: Sequence[Formal], new: Sequence[Formal]) -> list[str]:
    before, after = {item.name: item for item in old}, {item.name: item for item in new}
    changed = [
        f"{what} {name} is {after[name].option}, was {before[name].option}"
        for name in after
        if name in before and before[name].option != after[name].option
    ]
    return [
        *_came_and_went(what, before, after),
        *changed,
    ]


def _attribute_changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    before = {item.name: item for item in old.attributes}
    after = {item.name: item for item in new.attributes}
    found = _came_and_went("attribute", before, after)
    for name, item in after.items():
        if name in before:
            found += _attribute_change(before[name], item)
    return found


def _attribute_change(old: AttributeSchema, new: AttributeSchema) -> list[str]:
    if old.kind != new.kind:
        return [f"attribute {new.name} is {new.kind}, was {old.kind}"]
    if old.required != new.required:
        return [f"attribute {new.name} is {'required' if new.required else 'optional'}"]
    if repr(old.default) != repr(new.default):
        return [f"attribute {new.name} has another default"]
    return []


def _came_and_went(what: str, before: Iterable[str], after: Iterable[str]) -> list[str]:
    old, new = list(before), list(after)
    return [
        *(f"new {what} {name}" for name in new if name not in old),
        *(f"no {what} {name} any more" for name in old if name not in new),
    ]


def _type_changes(old: OperatorSchema, new: OperatorSchema) -> list[str]:
    before = {shown(name) for item in (*old.inputs, *old.outputs) for name in item.types}
    after = {shown(name) for item in (*new.inputs, *new.outputs) for name in item.types}
    came, went = sorted(after - before), sorted(before - after)
    found = [f"takes {', '.join(came)}"] if came else []
    return found + ([f"no longer takes {', '.join(went)}"] if went else [])


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
        (one.option, one.min_arity) == (other.option, other.min_arity)
        and set(one.types) <= set(other.types)
        for one, other in zip(there, here, strict=True)
    )


def _same_attribute(there: AttributeSchema, here: AttributeSchema) -> bool:
    if (there.name, there.kind, there.required) != (here.name, here.kind, here.required):
        return False
    import numpy as np

    return bool(np.array_equal(np.asarray(there.default), np.asarray(here.default)))
