"""What is known of computed shapes: which size of which value each of their elements is.

Exporters write ``x.view(x.size(0), x.size(1), 12, 64)`` as a dozen of nodes around Shape. They are
followed here, so that a rule can ask whether a Reshape does nothing but to split the last axis.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.rewrite.functions import UNKNOWN
from dld_tui.core.rewrite.views import ValueView, attribute_value

Size: TypeAlias = Any
"""An int, the name of a dimension, ``value[axis]`` where it has none, or UNKNOWN."""

_MOST_STEPS = 40
_MOST_SIZES = 64
_MOST_FOLDED = 4096
"""Elements of a constant that is worked out."""
_FOLDED = frozenset(
    ("Add", "And", "Cast", "Ceil", "Concat", "Div", "Equal", "Floor", "Gather", "Greater", "Less",
     "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Reshape", "Shape", "Size", "Slice", "Sqrt",
     "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where")
)  # fmt: skip
"""Operators whose results are no larger than what goes in, but for what broadcasting adds."""
_SAME = frozenset(("Cast", "Identity", "Unsqueeze", "Squeeze"))


def size_of(scope: Scope, name: str, axis: int) -> Size:
    """Return the size of an axis of a value."""
    dims = ValueView(scope, name).dims
    if dims is not UNKNOWN and -len(dims) <= axis < len(dims):
        found = dims[axis]
        return f"{name}[{axis % len(dims)}]" if found is UNKNOWN else found
    return f"{name}[{axis}]" if axis >= 0 else UNKNOWN


Known: TypeAlias = "dict[tuple[Scope, str], list[Size] | None]"


def sizes_of(scope: Scope, name: str) -> list[Size] | None:
    """Return what the elements of a computed shape are; None where even their number is unknown.

    Args:
        scope: Where the shape is seen.
        name: A value of one number or of a list of them.
    """
    found = _followed(scope, name, {}, _MOST_STEPS)
    return None if found is None else list(found)


def _followed(scope: Scope, name: str, known: Known, steps: int) -> list[Size] | None:
    """Follow each value once: what is shared would be followed once for each way to it."""
    key = scope, name
    if key not in known:
        known[key] = None
        found = _read(scope, name, known, steps)
        known[key] = found if found is None or len(found) <= _MOST_SIZES else None
    return known[key]


def _read(scope: Scope, name: str, known: Known, steps: int) -> list[Size] | None:
    view = ValueView(scope, name)
    value = view.value
    if isinstance(value, np.ndarray):
        if value.ndim > 1 or value.size > _MOST_SIZES or value.dtype.kind not in "iu":
            return None
        return [int(item) for item in value.reshape(-1)]
    definition = scope.resolve(name)
    node = definition.node if definition is not None else None
    if node is None or node.domain or not steps:
        return None
    inputs = [item for item in node.inputs if item]
    if node.op_type == "Shape":
        return _sizes_of_shape(node)
    if node.op_type == "Concat":
        parts = [_followed(node.scope, item, known, steps - 1) for item in inputs]
        return None if None in parts else [size for part in parts for size in part or ()]
    if not inputs:
        return None
    source = _followed(node.scope, inputs[0], known, steps - 1)
    if node.op_type in _SAME:
        return source
    if node.op_type == "Reshape":
        return source if source is not None and len(source) == 1 else None
    if node.op_type == "Gather":
        return _picked(node, inputs, source)
    if node.op_type == "Slice":
        return _sliced(node, inputs, source)
    return [UNKNOWN] if ValueView(scope, name).dims in ([], [1]) else None


def _sizes_of_shape(node: Node) -> list[Size] | None:
    name = node.inputs[0]
    dims = ValueView(node.scope, name).dims
    start, end = attribute_value(node, "start") or 0, attribute_value(node, "end")
    if dims is UNKNOWN:
        if end is None or start < 0 or end < 0:
            return None
        return [size_of(node.scope, name, axis) for axis in range(start, min(end, _MOST_SIZES))]
    return [size_of(node.scope, name, axis) for axis in range(len(dims))][start:end]


def _numbers(node: Node, place: int) -> list[int] | None:
    """Return the elements of an input that is a constant."""
    inputs = node.inputs
    value = ValueView(node.scope, inputs[place]).value if place < len(inputs) else UNKNOWN
    return [int(item) for item in value.reshape(-1)] if isinstance(value, np.ndarray) else None


def _picked(node: Node, inputs: list[str], source: list[Size] | None) -> list[Size] | None:
    places = _numbers(node, 1)
    if places is None or attribute_value(node, "axis") != 0:
        return None
    if source is None:
        shape = node.scope.producer(inputs[0])
        if shape is None or shape.op_type != "Shape" or attribute_value(shape, "start"):
            return None
        return [size_of(shape.scope, shape.inputs[0], place) for place in places]
    if any(not -len(source) <= place < len(source) for place in places):
        return None
    return [source[place] for place in places]


def _sliced(node: Node, inputs: list[str], source: list[Size] | None) -> list[Size] | None:
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    steps = _numbers(node, 4) if len(inputs) > 4 else [1]
    if source is None or starts is None or ends is None or steps is None:
        return None
    return source[starts[0] : ends[0] : steps[0]] if steps[0] else None


def _reshape(scope: Scope, name: str) -> tuple[str, list[Size]] | None:
    """Return what a Reshape that makes a value takes, and the sizes that it asks for."""
    node = scope.producer(name)
    if node is None or node.domain or node.op_type != "Reshape" or len(node.inputs) < 2:
        return None
    wanted = sizes_of(node.scope, node.inputs[1])
    if wanted is None:
        return None
    copies = not attribute_value(node, "allowzero")
    source = node.inputs[0]
    for axis, size in enumerate(wanted):
        if size == 0 and copies:
            wanted[axis] = size_of(scope, source, axis)
        elif size in (-1, 0):
            wanted[axis] = UNKNOWN
    return source, wanted


def split_of(scope: Scope, name: str) -> Any:
    """Return into which sizes the last axis is split; UNKNOWN where the value is not made so.

    The value must be made by a Reshape that keeps the other axes. One size that cannot be told is
    what all others leave over.
    """
    found = _reshape(scope, name)
    if found is None:
        return UNKNOWN
    source, wanted = found
    dims = ValueView(scope, source).dims
    if dims is UNKNOWN or len(dims) < 1 or len(wanted) <= len(dims):
        return UNKNOWN
    kept = len(dims) - 1
    open_axes = sum(wanted[axis] != size_of(scope, source, axis) for axis in range(kept))
    parts = wanted[kept:]
    known = [part for part in parts if isinstance(part, int)]
    whole, product = dims[-1], math.prod(known)
    if len(known) == len(parts) - 1 and isinstance(whole, int) and not open_axes:
        if not product or whole % product:
            return UNKNOWN
        return [part if isinstance(part, int) else whole // product for part in parts]
    if len(known) < len(parts) or (isinstance(whole, int) and whole != product):
        return UNKNOWN
    # All sizes are taken or left over by the others: one that is not known is what it was.
    fits = open_axes <= 1 if isinstance(whole, int) else not open_axes
    return parts if fits else UNKNOWN


def joins_last(scope: Scope, name: str) -> Any:
    """Return whether a value is made by a Reshape that only joins the last two axes."""
    found = _reshape(scope, name)
    if found is None:
        return UNKNOWN
    source, wanted = found
    dims = ValueView(scope, source).dims
    if dims is UNKNOWN or len(dims) < 2 or len(wanted) != len(dims) - 1:
        return UNKNOWN
    kept = len(dims) - 2
    open_axes = sum(wanted[axis] != size_of(scope, source, axis) for axis in range(kept))
    pair = dims[-2:]
    last = math.prod(pair) if all(isinstance(size, int) for size in pair) else UNKNOWN
    if isinstance(wanted[-1], int) and isinstance(last, int) and wanted[-1] != last:
        return False
    is_known = isinstance(last, int) and wanted[-1] == last
    return True if open_axes + (not is_known) <= 1 else UNKNOWN


def folded(scope: Scope, name: str) -> Any:
    """Return what a node makes of constants, or a Shape of sizes that are known; else UNKNOWN."""
    node = scope.producer(name)
    if node is None or node.domain or node.op_type not in _FOLDED or len(node.outputs) != 1:
        return UNKNOWN
    view, sizes = ValueView(scope, name), sizes_of(scope, name)
    if sizes is not None and all(isinstance(size, int) for size in sizes):
        is_whole = node.op_type == "Shape" or view.dtype == "int64"
        if is_whole and node.op_type != "Cast" and view.dims in ([], [len(sizes)]):
            return np.asarray(sizes, np.int64).reshape(view.dims)
    views = {item: ValueView(node.scope, item) for item in node.inputs if item}
    if not views or not all(_is_small(view) for view in views.values()):
        return UNKNOWN
    feeds = {item: view.value for item, view in views.items()}
    if any(not isinstance(value, np.ndarray) for value in feeds.values()):
        return UNKNOWN
    return _worked_out(node, feeds)


def _is_small(view: ValueView) -> bool:
    constant = view.constant()
    if constant is None:
        return False
    count = constant.element_count if isinstance(constant, Tensor) else np.size(constant)
    return count <= _MOST_FOLDED


def _worked_out(node: Node, feeds: dict[str, Any]) -> Any:
    import onnx
    from onnx.reference import ReferenceEvaluator

    from dld_tui.core.document.extraction import imports_of

    copy = onnx.NodeProto()
    copy.CopyFrom(node.proto)
    helper = onnx.helper
    given = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for name, v in feeds.items()
    ]
    graph = helper.make_graph([copy], "one", given, [onnx.ValueInfoProto(name=node.outputs[0])])
    version = imports_of(node.scope).get("") or 1
    try:
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
        with np.errstate(all="ignore"):
            results: Any = ReferenceEvaluator(model).run(None, feeds)
            result = np.asarray(results[0])
    except Exception:  # noqa: BLE001 - whatever an operator does not like of its inputs
        return UNKNOWN
    return result if result.size <= _MOST_FOLDED else UNKNOWN
