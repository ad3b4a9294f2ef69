"""Whether an operator means the same in two versions of its operator set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dld_tui.core.operators.registry import schema_for
from dld_tui.core.operators.schema import AttributeSchema, Formal


def same_meaning(op_type: str, domain: str, there: int | None, here: int | None) -> bool:
    """Return whether a node written for one version of an operator set may be read as another.

    That is so where the signature is the same, further element types aside. An operator that is
    known in neither version is a custom one, which has no versions.

    Args:
        op_type: The operator.
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
    return bool(np.array_equal(np.asarray(there.default), np.asarray(here.default)))
