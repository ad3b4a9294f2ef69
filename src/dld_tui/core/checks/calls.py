"""Calls of operators, with the known types, shapes and values of their operands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.types import plain_domain

Dims: TypeAlias = "tuple[int | None, ...]"
"""Dimensions of a tensor; None for one that is not known."""
Array: TypeAlias = "npt.NDArray[np.generic]"

_SMALL = 1024
"""Elements of the values that are worked out: shapes, axes, indices."""
_MOST_EVALUATED = 4000
"""Nodes that are evaluated at most: each takes about a fifth of a millisecond."""
_EVALUATED = frozenset(
    [
        "Add",
        "Cast",
        "Concat",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Expand",
        "Floor",
        "Ceil",
        "Gather",
        "Identity",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Range",
        "ReduceProd",
        "Reshape",
        "Slice",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
        "Where",
    ]
)


@dataclass(frozen=True)
class Operand:
    """What is known of a value."""

    dtype: int = 0
    """Number of the element type; 0 when it is not known or not a tensor's."""
    dims: Dims | None = None
    kind: str = ""
    """``tensor_type``, ``sequence_type`` …; empty when it is not known."""


_UNKNOWN = Operand()


@dataclass
class Names:
    """What is known of the values of a graph, and of those around it."""

    outer: Names | None = None
    graph: onnx.GraphProto | None = None
    operands: dict[str, Operand] = field(default_factory=dict)
    values: dict[str, Array] = field(default_factory=dict)

    def operand(self, name: str) -> Operand:
        """Return the known type and shape of a value."""
        names: Names | None = self
        while names is not None:
            known = names.operands.get(name)
            if known is not None:
                return known
            names = names.outer
        return _UNKNOWN

    def value(self, name: str) -> Array | None:
        """Return the elements of a small constant, None where they are not known."""
        names: Names | None = self
        while names is not None:
            known = names.values.get(name)
            if known is not None:
                return known
            names = names.outer
        return None


@dataclass(frozen=True)
class Call:
    """A node with the known types, shapes and values of its operands."""

    node: onnx.NodeProto
    domain: str
    version: int
    """Of the imported operator set; 0 where there is none."""
    names: Names
    op_type: str
    runs: bool = True
    """False in a branch that a constant condition never takes."""

    def key(self) -> tuple[object, ...]:
        """Return a key of the operator, and the types of all operands and attributes."""
        node, operand = self.node, self.names.operand
        return (
            self.domain,
            self.op_type,
            self.version,
            tuple(operand(name).dtype if name else None for name in node.input),
            tuple(operand(name).dtype if name else None for name in node.output),
            tuple((attribute.name, attribute.type) for attribute in node.attribute),
        )

    def has(self, index: int) -> bool:
        """Return whether an input is given."""
        return index < len(self.node.input) and bool(self.node.input[index])

    def input(self, index: int) -> Operand:
        """Return the known type and shape of an input."""
        if not self.has(index):
            return _UNKNOWN
        return self.names.operand(text_of(self.node.input[index]))

    def dims(self, index: int) -> Dims | None:
        """Return the dimensions of an input, None where the rank is not known or it is left out."""
        return self.input(index).dims

    def rank(self, index: int) -> int | None:
        """Return the rank of an input."""
        dims = self.dims(index)
        return None if dims is None else len(dims)

    def dim(self, index: int, axis: int) -> int | None:
        """Return one dimension of an input, None where it is not known or there is none."""
        dims = self.dims(index)
        return dims[axis] if dims is not None and -len(dims) <= axis < len(dims) else None

    def value(self, index: int) -> Array | None:
        """Return the elements of an input that is a small constant."""
        return self.names.value(text_of(self.node.input[index])) if self.has(index) else None

    def neighbours(self) -> tuple[set[str], set[str]]:
        """Return the operators that make its inputs, and those that use its outputs."""
        nodes = self.names.graph.node if self.names.graph is not None else ()
        inputs, outputs = set(self.node.input) - {""}, set(self.node.output) - {""}
        return (
            {text_of(node.op_type) for node in nodes if inputs & set(node.output)},
            {text_of(node.op_type) for node in nodes if outputs & set(node.input)},
        )

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return the value of an attribute: a number, text, list or tensor."""
        for proto in self.node.attribute:
            if proto.name == name:
                if proto.ref_attr_name:
                    return default
                value = helper.get_attribute_value(proto)
                return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        return default


def calls(
    graph: onnx.GraphProto,
    imports: Mapping[str, int],
    outer: Names | None = None,
    *,
    runs: bool = True,
) -> Iterator[Call]:
    """Yield the calls of a graph and the graphs in it, in their order.

    Args:
        graph: With ``value_info`` of known types.
        imports: Versions of the operator sets by domain.
        outer: What is known of the values around it.
        runs: Whether the graph is ever run.
    """
    names = Names(outer, graph)
    for info in (*graph.value_info, *graph.output, *graph.input):
        names.operands[text_of(info.name)] = operand_of(info.type)
    for tensor in graph.initializer:
        _take_tensor(names, text_of(tensor.name), tensor)
    for sparse in graph.sparse_initializer:
        names.operands[text_of(sparse.values.name)] = Operand(
            sparse.values.data_type, tuple(sparse.dims), "tensor_type"
        )
    for info in graph.input:
        names.values.pop(text_of(info.name), None)  # callers may give another value
    evaluated = 0
    for node in graph.node:
        domain = plain_domain(text_of(node.domain))
        call = Call(node, domain, imports.get(domain, 0), names, text_of(node.op_type), runs)
        yield call
        if not domain and evaluated < _MOST_EVALUATED:
            evaluated += _evaluate(call)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs) if attribute.HasField("g") else ():
                is_taken = runs and not _is_dead(call, attribute.name)
                yield from calls(body, imports, names, runs=is_taken)


def _is_dead(call: Call, branch: str) -> bool:
    """Return whether a constant condition never takes a branch of an If."""
    value = call.value(0) if call.op_type == "If" else None
    if value is None or value.size != 1:
        return False
    return branch == ("else_branch" if value.item() else "then_branch")


def operand_of(proto: onnx.TypeProto) -> Operand:
    """Return the operand that a type describes."""
    kind = proto.WhichOneof("value") or ""
    if kind != "tensor_type":
        return Operand(kind=kind)
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return Operand(tensor.elem_type, None, kind)
    dims = tuple(
        dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
        for dim in tensor.shape.dim
    )
    return Operand(tensor.elem_type, dims, kind)


def _take_tensor(names: Names, name: str, tensor: onnx.TensorProto) -> None:
    names.operands[name] = Operand(tensor.data_type, tuple(tensor.dims), "tensor_type")
    array = small_array(tensor)
    if array is not None:
        names.values[name] = array


def small_array(tensor: onnx.TensorProto) -> Array | None:
    """Return the elements of a small tensor, None where there are many or they are elsewhere."""
    if tensor.data_location == TensorProto.EXTERNAL:
        return None
    if any(dim < 0 for dim in tensor.dims) or math.prod(tensor.dims) > _SMALL:
        return None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except (ValueError, TypeError, KeyError):
        return None  # damaged: another rule tells


def _evaluate(call: Call) -> bool:
    """Work out a small constant; return whether the reference implementation was asked."""
    node, names = call.node, call.names
    if not node.output or not node.output[0]:
        return False
    output = text_of(node.output[0])
    if node.op_type == "Constant":
        for attribute in node.attribute:
            if attribute.type == AttributeProto.TENSOR:
                _take_tensor(names, output, attribute.t)
            elif attribute.name.startswith("value_"):
                value = helper.get_attribute_value(attribute)
                kind = np.float32 if "float" in attribute.name else np.int64
                if "string" not in attribute.name:
                    names.values[output] = np.asarray(value, kind)
        return False
    if node.op_type == "Size":
        dims = call.dims(0)
        if dims is not None and None not in dims:
            names.values[output] = np.asarray(math.prod(dim or 0 for dim in dims), np.int64)
        return False
    if node.op_type == "Shape":
        dims = call.dims(0)
        if dims is not None:
            start, end = call.attribute("start", 0), call.attribute("end")
            if not isinstance(start, int) or not isinstance(end, int | None):
                return False
            part = dims[start:end]
            if all(dim is not None for dim in part):
                names.values[output] = np.asarray(part, np.int64)
        return False
    if node.op_type not in _EVALUATED or len(node.output) != 1:
        return False
    feeds: dict[str, Array] = {}
    for index, name in enumerate(node.input):
        if name:
            value = call.value(index)
            if value is None:
                return False
            feeds[text_of(name)] = value
    if not feeds or (
        node.op_type == "ConstantOfShape" and not _is_small(next(iter(feeds.values())))
    ):
        return False
    if node.op_type == "Range" and not _is_short(list(feeds.values())):
        return False
    if node.op_type == "Expand" and not _is_small(list(feeds.values())[-1]):
        return False
    result = _reference(call, feeds)
    if result is not None and result.size <= _SMALL:
        names.values[output] = result
    return True


def _is_small(shape: Array) -> bool:
    return shape.dtype.kind in "iu" and abs(math.prod(map(int, shape.ravel()))) <= _SMALL


def _is_short(bounds: list[Array]) -> bool:
    try:
        start, limit, step = (float(value.item()) for value in bounds)
        return abs(limit - start) <= _SMALL * abs(step)
    except (ValueError, TypeError):
        return False


def _reference(call: Call, feeds: dict[str, Array]) -> Array | None:
    from onnx.reference import ReferenceEvaluator

    node = onnx.NodeProto()
    node.CopyFrom(call.node)
    try:
        infos = [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in feeds.items()
        ]
        graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name=node.output[0])])
        sets = [helper.make_opsetid("", call.version)]
        evaluator = ReferenceEvaluator(helper.make_model(graph, opset_imports=sets))
        with np.errstate(all="ignore"):
            results = evaluator.run(None, feeds)
            result = results[0] if isinstance(results, list | tuple) else None
    # The seam: the reference implementation raises what numpy does, and a node may be wrong.
    except Exception:  # noqa: BLE001
        return None
    return np.asarray(result) if isinstance(result, np.ndarray | np.generic) else None
