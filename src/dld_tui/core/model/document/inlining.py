"""Calls of local functions, and of operators that have a definition, replaced by their nodes.

Onnx's inliner does it.

The inliner loses attributes that a call leaves to their default: the definition then has the
default of another operator, or none. So the defaults are written into the calls first. It also
loses outputs of a function that are inputs of it, or twice the same value, so that an Identity
makes them before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import onnx
from onnx import defs, helper

from dld_tui.core.files.proto_fields import operator_key, set_texts, text_of, texts_of
from dld_tui.core.model.document.locations import bodies
from dld_tui.core.model.document.node import node_proto
from dld_tui.core.model.document.scope import unused_name
from dld_tui.core.model.operators import native
from dld_tui.core.types import plain_domain

Defaults: TypeAlias = "Callable[[onnx.NodeProto], Iterable[onnx.AttributeProto]]"
"""Returns the attributes that have a default where a node is a call, else nothing."""


def inline_local_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which the calls of local functions are replaced.

    Raises:
        Exception: The inliner is native code that refuses what is wrong in its own ways.
    """
    defaults = {operator_key(f): f.attribute_proto for f in model.functions if f.attribute_proto}

    def of_call(node: onnx.NodeProto) -> Iterable[onnx.AttributeProto]:
        return defaults.get(operator_key(node), ())

    return native.inline_local_functions(_with_own_outputs(_with_defaults(model, of_call)))


def _with_own_outputs(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model whose functions make each output of its own: a copy, or the model itself."""
    if not any(
        {*function.input} & {*function.output} or len({*function.output}) < len(function.output)
        for function in model.functions
    ):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for function in copy.functions:
        known = {*texts_of(function.input)}
        taken = known | {name for node in function.node for name in texts_of(node.output)}
        names = list(texts_of(function.output))
        own_names = list(names)
        for at, name in enumerate(names):
            if name in known:
                own_names[at] = unused_name(f"{name}_out", taken.__contains__)
                taken.add(own_names[at])
                function.node.append(node_proto("Identity", [name], [own_names[at]]))
            known.add(name)
        if own_names == names:
            continue
        set_texts(function, "output", own_names)
        if not any(plain_domain(text_of(entry.domain)) == "" for entry in function.opset_import):
            function.opset_import.add(domain="", version=1)
    return copy


def _with_defaults(model: onnx.ModelProto, defaults: Defaults) -> onnx.ModelProto:
    """Return a model whose calls say all attributes: a copy, or the model where they do."""
    if not any(_omitted(node, defaults) for _, body in bodies(model) for node in body.node):
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for _, body in bodies(copy):
        for node in body.node:
            node.attribute.extend(_omitted(node, defaults))
    return copy


def _omitted(node: onnx.NodeProto, defaults: Defaults) -> list[onnx.AttributeProto]:
    known = {text_of(attribute.name) for attribute in node.attribute}
    return [value for value in defaults(node) if text_of(value.name) not in known]


_DOMAIN = "definition"


def plain_call(node: onnx.NodeProto, version: int) -> onnx.NodeProto:
    """Return a node of ai.onnx with short names, and with the attributes that it leaves out."""
    call = onnx.NodeProto(op_type=node.op_type)
    call.input.extend(name and f"in{at}" for at, name in enumerate(node.input))
    call.output.extend(name and f"out{at}" for at, name in enumerate(node.output))
    call.attribute.extend(node.attribute)
    given = {text_of(attribute.name) for attribute in call.attribute}
    op_type = text_of(node.op_type)
    if not defs.has(op_type, version, ""):  # one of ONNX Runtime, which takes it without a domain
        return call
    for name, attribute in defs.get_schema(op_type, version).attributes.items():
        if name not in given and attribute.default_value.type:
            call.attribute.append(attribute.default_value)
    return call


def defined_model(
    definition: onnx.FunctionProto, call: onnx.NodeProto, version: int,
    types: Sequence[onnx.TypeProto],
) -> onnx.ModelProto:  # fmt: skip
    """Return the nodes of a definition as a model, with the types that follow.

    Args:
        definition: As :func:`native.definitions` returns it.
        call: As :func:`plain_call` returns it.
        version: Of ai.onnx.
        types: Of the inputs.

    Raises:
        RefusedError: Onnx refuses it.
        LimitError: It takes too long, or too much memory.
        CrashError: It ended the process.
    """
    imports = [helper.make_opsetid("", version), helper.make_opsetid(_DOMAIN, 1)]
    model = onnx.ModelProto(ir_version=10, opset_import=imports)
    model.graph.node.append(call)
    model.graph.node[0].domain = _DOMAIN
    for name, kind in zip(call.input, types, strict=True):
        if name:
            model.graph.input.add(name=name, type=kind)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in call.output if name)
    function = model.functions.add()
    function.CopyFrom(definition)
    function.domain = _DOMAIN
    del function.opset_import[:]
    function.opset_import.extend(imports)
    return native.infer_shapes(native.inline_local_functions(model))
