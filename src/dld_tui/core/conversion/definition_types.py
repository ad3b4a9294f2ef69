"""Whether the definitions of operators take a type.

A runtime without a kernel of an operator runs its definition, whose operators may take fewer types:
Clip takes bfloat16 from opset 13 on, and the Where that it consists of from opset 16 on.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

import onnx

from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.inlining import defined_model, plain_call
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import mismatch
from dld_tui.core.model.edits.casting import Changes
from dld_tui.core.model.operators import native
from dld_tui.core.model.tensors.value_types import ValueType, type_proto_of
from dld_tui.core.process.child import CrashError, LimitError, RefusedError


def unfit_definitions(changes: Iterable[tuple[Node, Changes]]) -> dict[str, str]:
    """Return operators of ai.onnx whose definition does not take a type, with what refuses it.

    Runs onnx's native code, in forks.

    Args:
        changes: Nodes, and how a type changes each.
    """
    calls: dict[str, tuple[onnx.NodeProto, int, list[onnx.TypeProto]]] = {}
    for node, change in changes:
        version = node.scope.document.opset_imports.get("", 1)
        if node.domain or node.op_type in calls:
            continue
        types = [_type(node, name, index, change) for index, name in enumerate(node.inputs)]
        calls[node.op_type] = (plain_call(node.proto, version), version, types)
    definitions = native.definitions([*calls.values()]) if calls else []
    refusals = {
        op_type: _refusal(definition, *call)
        for (op_type, call), definition in zip(calls.items(), definitions, strict=True)
        if definition is not None
    }
    return {op_type: why for op_type, why in refusals.items() if why}


def _type(node: Node, name: str, index: int, change: Changes) -> onnx.TypeProto:
    known = node.scope.value_type(name) if name else None
    if known is None or known.dtype is None:
        return onnx.TypeProto()
    is_changed = index in {place for place, _ in change.inputs}
    kind = ValueType(change.dtype if is_changed else known.dtype, known.dims)
    return type_proto_of(kind) or onnx.TypeProto()


def _refusal(
    definition: onnx.FunctionProto, call: onnx.NodeProto, version: int,
    types: Sequence[onnx.TypeProto],
) -> str:  # fmt: skip
    """Return what in a definition does not take the types of a call; empty if all does."""
    with contextlib.suppress(RefusedError, LimitError, CrashError):
        model = defined_model(definition, call, version, types)
        with contextlib.closing(Document(model, path=None)) as document:
            for scope in document.main.walk():
                for node in scope.nodes:
                    for index, name in enumerate(node.inputs):
                        if name and mismatch(node, index, scope.value_type(name)):
                            return node.op_type
    return ""
