"""The operator palette of a document: what it imports, defines and uses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dld_tui.core.document.edits.imports import versions_by_domain
from dld_tui.core.document.local_functions import FunctionAttribute, function_attributes
from dld_tui.core.document.node import Node, attribute_type
from dld_tui.core.document.scope import Scope, ScopeOwner
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_text import text_of, texts_of
from dld_tui.core.operators.palette import OperatorPalette
from dld_tui.core.operators.registry import schema_for
from dld_tui.core.operators.schema import AttributeSchema, Formal, OperatorSchema

Uses = Mapping["tuple[str, str]", int]


def operator_palette(scope: Scope, uses: Uses | None = None) -> OperatorPalette:
    """Return the operators that can be added to a scope of a document.

    Args:
        scope: Where; the body of a function has imports of its own.
        uses: How many nodes call an operator, by (domain, name), where that is known already.
    """
    document = scope.document
    counts = used_operators(document) if uses is None else uses
    functions = [function_schema(function) for function in document.functions]
    known = {(schema.domain, schema.name) for schema in functions}
    unknown = {
        key for key in counts
        if key not in known and schema_for(key[1], key[0], None) is None and key[1]
    }  # fmt: skip
    custom = _observed(document, unknown) if unknown else []
    return OperatorPalette(
        versions_by_domain(scope), functions=functions, custom=custom, uses=counts
    )


def used_operators(document: ScopeOwner) -> Counter[tuple[str, str]]:
    """Return how many nodes call each operator, by (domain, name), in all scopes."""
    counts: Counter[tuple[str, str]] = Counter()
    for scope in document.scopes():
        counts.update((node.domain, node.op_type) for node in scope.nodes)
    return counts


def function_schema(function: Scope) -> OperatorSchema:
    """Return the signature of a local function; its values may have any type."""
    proto = function.proto
    assert isinstance(proto, onnx.FunctionProto)
    attributes = [_parameter(item) for item in function_attributes(function)]
    inputs, outputs = texts_of(proto.input), texts_of(proto.output)
    return OperatorSchema(
        name=text_of(proto.name),
        domain=text_of(proto.domain),
        since_version=1,
        deprecated=False,
        # Like optional inputs of an operator, those of a function may be left out.
        inputs=tuple(Formal(name, "", (), "", "optional") for name in inputs),
        outputs=tuple(Formal(name, "", (), "") for name in outputs),
        attributes=tuple(sorted(attributes, key=lambda item: not item.required)),
        type_constraints=(),
        markdown=text_of(proto.doc_string),
        min_inputs=0,
        max_inputs=len(inputs),
        min_outputs=0,
        max_outputs=len(outputs),
    )


def _parameter(item: FunctionAttribute) -> AttributeSchema:
    about = "" if item.default is None else f"By default {item.default}."
    return AttributeSchema(item.name, item.kind or "undefined", item.default is None, None, about)


def _kind(proto: onnx.AttributeProto) -> str:
    return onnx.AttributeProto.AttributeType.Name(attribute_type(proto)).lower()


def _observed(document: ScopeOwner, wanted: set[tuple[str, str]]) -> list[OperatorSchema]:
    """Return signatures that fit the nodes of unknown operators."""
    calls: dict[tuple[str, str], list[Node]] = {}
    for scope in document.scopes():
        for node in scope.nodes:
            key = (node.domain, node.op_type)
            if key in wanted:
                calls.setdefault(key, []).append(node)
    return [_observed_schema(nodes) for nodes in calls.values()]


def _observed_schema(nodes: list[Node]) -> OperatorSchema:
    first = nodes[0]
    inputs = max(len(node.inputs) for node in nodes)
    outputs = max(len(node.outputs) for node in nodes)
    attributes = {
        text_of(proto.name): _kind(proto) for node in nodes for proto in node.proto.attribute
    }
    return OperatorSchema(
        name=first.op_type,
        domain=first.domain,
        since_version=1,
        deprecated=False,
        inputs=tuple(Formal(f"input {at}", "", (), "", "optional") for at in range(inputs)),
        outputs=tuple(Formal(f"output {at}", "", (), "") for at in range(outputs)),
        attributes=tuple(
            AttributeSchema(name, kind, False, None, "")
            for name, kind in sorted(attributes.items())
        ),
        type_constraints=(),
        markdown="Custom operator: its signature is what its nodes in this model have.",
        max_inputs=None,
        max_outputs=outputs,
    )
