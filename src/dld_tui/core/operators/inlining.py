"""Calls of local functions replaced by their nodes, by onnx's inliner.

The inliner loses attributes that a call leaves to their default: the definition then has the
default of another operator, or none. So the defaults are written into the calls first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

import onnx

from dld_tui.core.document.locations import bodies
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.operators import native
from dld_tui.core.types import plain_domain

Defaults: TypeAlias = "Callable[[onnx.NodeProto], Iterable[onnx.AttributeProto]]"
"""Returns the attributes that have a default where a node is a call, else nothing."""


def inline_local_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model in which the calls of local functions are replaced.

    Raises:
        Exception: The inliner is native code that refuses what is wrong in its own ways.
    """
    defaults = {
        (plain_domain(text_of(f.domain)), text_of(f.name), text_of(f.overload)): f.attribute_proto
        for f in model.functions
        if f.attribute_proto
    }

    def of_call(node: onnx.NodeProto) -> Iterable[onnx.AttributeProto]:
        domain = plain_domain(text_of(node.domain))
        return defaults.get((domain, text_of(node.op_type), text_of(node.overload)), ())

    return native.inline_local_functions(_with_defaults(model, of_call))


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
