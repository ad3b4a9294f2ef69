"""Rules about tensors: their data, without reading any payload."""

from __future__ import annotations

import math
from collections.abc import Iterator

from dld_tui.core.checks.findings import Finding, Level, name_of
from dld_tui.core.document import Node, Scope, Tensor
from dld_tui.core.document.tensor import MAX_DIMENSION_PRODUCT
from dld_tui.core.files.external import KNOWN_ENTRIES

_RULES: tuple[tuple[str, str, Level], ...] = (
    ("no data", "tensor-without-data", "warning"),
    ("External data", "external-data", "error"),
)


def check_tensors(scope: Scope) -> Iterator[Finding]:
    """Yield initializers and tensor attributes whose data is missing or does not fit."""
    for tensor in scope.initializers:
        yield from _check(tensor, f"Tensor {name_of(tensor.name)}", scope, None)
    for node in scope.nodes:
        for attribute in node.attributes() if node.proto.attribute else ():
            if attribute.kind == "tensor":
                yield from _check(
                    attribute.value, f"Attribute {name_of(attribute.name)}", scope, node
                )


def check_shapes(scope: Scope) -> Iterator[Finding]:
    """Yield inputs and outputs whose declared shape cannot be."""
    for name in dict.fromkeys((*scope.inputs, *scope.outputs)):
        value = scope.value_type(name)
        sizes = [dim for dim in (value.dims or ()) if isinstance(dim, int)] if value else []
        count = math.prod(sizes)
        if any(dim < 0 for dim in sizes):
            text = f"Value {name_of(name)} has a negative dimension"
            yield Finding("warning", "shape", text, scope)
        elif count > MAX_DIMENSION_PRODUCT:
            power = count.bit_length() - 1
            text = f"Value {name_of(name)}: element count overflows (about 2^{power})"
            yield Finding("error", "shape", text, scope)


def _check(tensor: Tensor, subject: str, scope: Scope, node: Node | None) -> Iterator[Finding]:
    if tensor.is_external:
        unknown = sorted(set(tensor.external_entries) - KNOWN_ENTRIES)
        if unknown:
            yield Finding(
                "warning",
                "external-keys",
                f"{subject}: unknown external_data key {name_of(unknown[0])} is ignored",
                scope,
                node,
            )
    problem = tensor.problem
    if problem is None:
        return
    rule, level = next(
        ((rule, level) for text, rule, level in _RULES if text in problem), ("tensor-data", "error")
    )
    yield Finding(level, rule, f"{subject}: {problem}", scope, node)
