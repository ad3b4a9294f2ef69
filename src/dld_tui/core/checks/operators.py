"""Rules about operators: known, and called with the right number of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.checks.findings import Finding, name_of
from dld_tui.core.document import Document, Node, Scope
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.operators.registry import schema_for

_KNOWN_DOMAINS = ("", "ai.onnx.ml", "ai.onnx.preview.training")
"""Domains whose operators onnx itself defines; others can hold anything."""


def check_operators(document: Document, scope: Scope) -> Iterator[Finding]:
    """Yield operators that the imported operator sets do not have, and wrong numbers of links."""
    imports = document.opset_imports
    functions = {
        (text_of(f.proto.domain), text_of(f.proto.name))  # type: ignore[union-attr]
        for f in document.functions
    }
    for node in scope.nodes:
        if (node.domain, node.op_type) in functions:
            continue
        if node.domain not in imports and imports:
            yield Finding(
                "error",
                "opset-import",
                f"Operator set {name_of(node.domain or 'ai.onnx')} is not imported",
                scope,
                node,
            )
            continue
        yield from _check_call(node, imports.get(node.domain))


def _check_call(node: Node, version: int | None) -> Iterator[Finding]:
    if node.domain not in _KNOWN_DOMAINS or version is None:
        return
    schema = schema_for(node.op_type, node.domain, version)
    if schema is None:
        if schema_for(node.op_type, node.domain, None) is not None:
            text = f"Operator {name_of(node.op_type)} does not exist in opset {version}"
        else:
            text = f"Unknown operator {name_of(node.op_type)}"
        yield Finding("error", "unknown-operator", text, node.scope, node)
        return
    if schema.deprecated:
        yield Finding(
            "warning",
            "deprecated-operator",
            f"Operator {name_of(node.op_type)} is deprecated in opset {version}",
            node.scope,
            node,
        )
    for what, count, least, most in (
        ("input", len(node.inputs), schema.min_inputs, schema.max_inputs),
        ("output", len(node.outputs), schema.min_outputs, schema.max_outputs),
    ):
        if count >= least and (most is None or count <= most):
            continue
        if most is None:
            wanted = f"at least {least}"
        else:
            wanted = f"{least}" if least == most else f"{least} to {most}"
        plural = "" if count == 1 else "s"
        yield Finding(
            "error",
            "arity",
            f"{name_of(node.op_type)} has {count} {what}{plural}, it takes {wanted}",
            node.scope,
            node,
        )
