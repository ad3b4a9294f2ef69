"""The rules by id. Ids are stable: scripts filter by them; docs/checks.md explains each.

Findings that other programs report have ids that start with ``onnx:`` or ``polygraphy:``.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

Level: TypeAlias = Literal["error", "warning", "info"]

RULES: dict[str, Level] = {
    # the model
    "ir-missing": "error",
    "ir-unsupported": "warning",
    "opset-missing": "error",
    "opset-future": "warning",
    "opset-import": "error",
    "duplicate-opset": "warning",
    "unused-opset": "info",
    "unknown-domain": "info",
    "model-size": "error",
    "initializer-not-input": "warning",
    "graph-name": "info",
    "empty-graph": "error",
    # functions and subgraphs
    "recursive-function": "error",
    "duplicate-function": "error",
    "unused-function": "info",
    "nesting-depth": "warning",
    "subgraph-signature": "error",
    "outer-output": "error",
    # links
    "undefined-input": "error",
    "missing-output": "error",
    "graph-cycle": "error",
    "unsorted-nodes": "warning",
    "unused-node": "warning",
    "unused-output": "info",
    "unused-input": "info",
    # names
    "duplicate-producer": "error",
    "duplicate-node-name": "error",
    "duplicate-input": "error",
    "duplicate-output": "warning",
    "shadowed-value": "error",
    "empty-name": "error",
    "odd-name": "info",
    # operators
    "unknown-operator": "error",
    "deprecated-operator": "warning",
    "arity": "error",
    "missing-input": "error",
    "unknown-attribute": "error",
    "attribute-type": "error",
    "missing-attribute": "error",
    "duplicate-attribute": "error",
    "attribute-reference": "error",
    "attribute-value": "error",
    # what ONNX Runtime takes
    "runtime-version": "error",
    "runtime-operator": "error",
    "no-kernel": "warning",
    # types and shapes
    "onnx:shape-inference": "error",
    "operand-shape": "error",
    "input-type": "error",
    "output-type": "error",
    "type-conflict": "error",
    "shape-conflict": "warning",
    "missing-type": "error",
    "shape": "error",
    "negative-dimension": "warning",
    "unused-value-info": "info",
    # tensors
    "unused-initializer": "warning",
    "duplicate-initializer": "error",
    "tensor-without-data": "error",
    "tensor-data": "error",
    "external-data": "error",
    "external-keys": "warning",
}
"""The level that findings of each rule usually have."""

PREDICTED = frozenset(
    {
        "onnx:shape-inference",
        "operand-shape",
        "attribute-value",
        "runtime-version",
        "runtime-operator",
        "no-kernel",
    }
)
"""Rules of what inference finds (:mod:`.prediction`); the others need none."""
