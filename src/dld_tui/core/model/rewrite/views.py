"""What expressions can read of a model: nodes, values with their fields, and computed shapes.

Exporters write ``x.view(x.size(0), x.size(1), 12, 64)`` as a dozen of nodes around Shape, which
:mod:`~dld_tui.core.model.shapes` follows, so that a rule can ask whether a Reshape does nothing but
to split the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any

import numpy as np

from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.files import protos as onnx
from dld_tui.core.model.document.index import Definition
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.operators.attribute_words import Coded
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.operators.schema import OperatorSchema
from dld_tui.core.model.rewrite.expression import MOST_ELEMENTS, UNKNOWN, Subject
from dld_tui.core.model.shapes import size as sizes
from dld_tui.core.model.shapes.following import Following
from dld_tui.core.model.shapes.size import Size
from dld_tui.core.model.shapes.value import Dims, Value
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_name, dtype_of

_MOST_FOLLOWED = 16
"""Nodes along a path through those that make a value, of which its type is worked out."""
_NO_MEANING = ("broadcast", "consumed_inputs", "is_test")
"""Attributes of old operators that change nothing of what an inference computes."""
_CONSTANT_FORMS = ("value", "value_float", "value_int", "value_floats", "value_ints")


def attribute_value(node: Node, name: str) -> Any:
    """Return the plain value of a node's attribute, its operator's default, or None."""
    attribute, schema = node.attribute(name), schema_of(node)
    if attribute is not None:
        value = UNKNOWN if attribute.reference else plain_value(attribute.value)
        value = _type_number(value) if name == "to" and isinstance(value, str) else value
    else:
        known = schema.attribute(name) if schema is not None else None
        value = None if known is None else plain_value(known.default)
    return Coded.of(name, value, schema) if type(value) is int else value


def _type_number(name: str) -> Any:
    """Return the number of a type that Cast has by its name before opset 6; UNKNOWN of others."""
    try:
        return int(onnx.TensorProto.DataType.Value(name.upper()))
    except ValueError:
        return UNKNOWN


def old_meaning(node: Node) -> str:
    """Return the attribute by which a node means what the operator of today cannot; or nothing.

    Examples are ``axis`` of Add before opset 7, and ``spatial`` of BatchNormalization before 9.
    """
    own, newest = schema_of(node), schema_for(node.op_type, node.domain, None)
    if own is None or newest is None or own.since_version == newest.since_version:
        return ""
    inputs = {formal.name.lower() for formal in newest.inputs}
    for attribute in node.attributes():
        name = attribute.name
        known = own.attribute(name)
        if known is None or newest.attribute(name) is not None or name.lower() in inputs:
            continue
        if name not in _NO_MEANING and plain_value(attribute.value) != plain_value(known.default):
            return name
    return ""


def plain_value(value: Any) -> Any:
    """Return the value of an attribute with texts as str and a tensor as an array."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, list):
        return [plain_value(item) for item in value]
    if isinstance(value, Tensor):
        return array_of(value)
    return value


def array_of(tensor: Tensor) -> Any:
    """Return a tensor's elements in its shape; UNKNOWN when they cannot be read or are many."""
    if tensor.element_count > MOST_ELEMENTS:
        return UNKNOWN
    try:
        return np.asarray(tensor.read()).reshape(tensor.shape)
    except (DldError, ValueError):
        return UNKNOWN


def constant_of(definition: Definition | None, name: str) -> Tensor | Any:
    """Return the tensor, or the plain value, of a constant; None when a value is none.

    An initializer that is an input as well may be given by a caller, and is no constant.
    """
    if definition is None:
        return None
    scope = definition.scope
    if definition.kind == "initializer":
        return None if scope.is_default(name) else scope.initializer(name)
    node = definition.node
    if node is None or node.op_type != "Constant" or node.domain or len(node.proto.attribute) != 1:
        return None
    attribute = node.attributes()[0]
    if attribute.name not in _CONSTANT_FORMS or attribute.reference:
        return None
    if attribute.name == "value":
        return attribute.value
    dtype = np.float32 if "float" in attribute.name else np.int64
    return np.asarray(attribute.value, dtype)


def _unnamed(name: str, axis: int) -> Size:
    """Return a name for a size without one: what is copied from it has this name, too."""
    return sizes.symbol(f"{name}[{axis}]")


def _new_following() -> Following:
    return Following(unnamed=_unnamed)


class Reads:
    """Names of the values that views are made of while it is open, for whom they tell of."""

    open: set[str] | None = None
    following: Following | None = None

    @classmethod
    def begin(cls) -> set[str]:
        """Note names in a new set, until :meth:`end`."""
        cls.following = _new_following()
        cls.open = cls.following.asked
        return cls.open

    @classmethod
    def end(cls) -> None:
        """Stop recording."""
        cls.open = cls.following = None


_remembered: ContextVar[Following | None] = ContextVar("_remembered", default=None)


@contextmanager
def dims_remembered() -> Iterator[None]:
    """Follow each value once; the model must not be edited meanwhile."""
    if _remembered.get() is not None:
        yield
        return
    token = _remembered.set(_new_following())
    try:
        yield
    finally:
        _remembered.reset(token)


def value_of(scope: Scope, name: str) -> Value:
    """Return what is known of the sizes and elements of a value."""
    following = Reads.following or _remembered.get() or _new_following()
    return following.value(scope, name)


def shown(size: Size) -> Any:
    """Return a size as expressions have it: a number, the text of another one, or UNKNOWN."""
    if isinstance(size, sizes.Polynomial):
        return (sizes.name_of(size) or str(size)) if size.is_whole else UNKNOWN
    return UNKNOWN if size is sizes.UNKNOWN else size


class ValueView(Subject):
    """A value of a model in an expression.

    Args:
        scope: Where it is seen.
        name: Its name; empty for an optional input that is left out.
    """

    def __init__(self, scope: Scope, name: str) -> None:
        self.scope = scope
        self.name = name
        if Reads.open is not None:
            Reads.open.add(name)

    def field(self, name: str) -> Any:
        """Return a field.

        Raises:
            UsageError: There is none of this name.
        """
        reader = VALUE_FIELDS.get(name)
        if reader is None:
            raise UsageError(
                f"a value has no field {name!r:.40}", hint=f"Known: {', '.join(VALUE_FIELDS)}"
            )
        if not self.name and name not in ("name", "present", "constant"):
            return UNKNOWN
        return reader(self)

    def constant(self) -> Any:
        """Return its tensor or array when it is a constant, else None."""
        return constant_of(self.scope.resolve(self.name), self.name) if self.name else None

    @property
    def dims(self) -> Any:
        """Its dimensions; UNKNOWN, as a whole or one of them, where that is not known."""
        known = self.scope.value_type(self.name)
        if known is not None and known.container:
            return UNKNOWN
        dims = value_of(self.scope, self.name).dims
        if dims is None:
            return UNKNOWN
        own = (_unnamed(self.name, axis) for axis in range(len(dims)))
        return [UNKNOWN if size == name else shown(size)
                for size, name in zip(dims, own, strict=True)]  # fmt: skip

    @property
    def dtype(self) -> Any:
        """Its element type, UNKNOWN where that is not known."""
        return self._dtype_within(_MOST_FOLLOWED)

    def _dtype_within(self, steps: int) -> Any:
        known = self.scope.value_type(self.name)
        if known is not None and known.dtype:
            return known.dtype
        constant = self.constant()
        if constant is not None:
            return constant.dtype if isinstance(constant, Tensor) else str(constant.dtype)
        maker = self.scope.producer(self.name) if steps else None
        schema = schema_of(maker) if maker is not None else None
        if maker is None or schema is None:
            return UNKNOWN
        return made_dtype(
            schema, maker.outputs.index(self.name), maker.inputs,
            lambda name: ValueView(self.scope, name)._dtype_within(steps - 1),
            attribute_value(maker, "to") if maker.op_type == "Cast" else 0,
        )  # fmt: skip

    @property
    def value(self) -> Any:
        """Its elements when it is a constant, else UNKNOWN."""
        constant = self.constant()
        if constant is None:
            return UNKNOWN
        return array_of(constant) if isinstance(constant, Tensor) else constant

    @property
    def producer(self) -> Any:
        """The operator that makes it, empty for none."""
        definition = self.scope.resolve(self.name)
        node = definition.node if definition is not None else None
        return node.op_type if node is not None else ""

    @property
    def uses(self) -> int:
        """How many inputs and outputs use it, in bodies too."""
        definition = self.scope.resolve(self.name)
        home = definition.scope if definition is not None else self.scope
        return len(home.users(self.name)) + (self.name in home.outputs)


def made_dtype(
    schema: OperatorSchema, at: int, inputs: Sequence[str], dtype: Callable[[str], Any], to: int
) -> Any:
    """Return the element type of an output by the signature; UNKNOWN where that does not tell.

    Args:
        schema: Of the operator.
        at: The place of the output.
        inputs: What the node takes.
        dtype: Returns the type of one of these.
        to: What a Cast casts to, 0 of others.
    """
    output = schema.output(at)
    if to or output is None:
        return dtype_name(to) if to else UNKNOWN
    if len(output.types) == 1:
        return dtype_of(output.types[0]) or UNKNOWN
    formals = [(name, schema.input(place)) for place, name in enumerate(inputs) if name]
    alike = (
        name
        for name, formal in formals
        if formal is not None and formal.type_name == output.type_name
    )
    first = next(alike, "")  # of one alone: of all, a graph without types has too many paths
    return dtype(first) if first else UNKNOWN


def maker_of(scope: Scope, name: str) -> Node | None:
    """Return the node that makes a value."""
    return ValueView(scope, name).scope.producer(name)


def _rank(view: ValueView) -> Any:
    dims = view.dims
    return UNKNOWN if dims is UNKNOWN else len(dims)


def _is_input(view: ValueView) -> bool:
    definition = view.scope.resolve(view.name)
    return definition is not None and definition.kind == "input"


VALUE_FIELDS: dict[str, Callable[[ValueView], Any]] = {
    "name": lambda view: view.name,
    "shape": lambda view: view.dims,
    "rank": _rank,
    "dtype": lambda view: view.dtype,
    "constant": lambda view: view.constant() is not None,
    "value": lambda view: view.value,
    "uses": lambda view: view.uses,
    "producer": lambda view: view.producer,
    "input": _is_input,
    "output": lambda view: view.name in view.scope.outputs,
    "present": lambda view: bool(view.name),
    "sizes": lambda view: sizes_of(view.scope, view.name),
    "split": lambda view: split_of(view.scope, view.name),
    "joined": lambda view: joins_last(view.scope, view.name),
    "repeated": lambda view: repeats_of(view.scope, view.name),
    "folded": lambda view: folded(view.scope, view.name),
}


class ValuesView(Subject):
    """The inputs or the outputs of a node: fields are those of the first one."""

    def __init__(self, scope: Scope, names: tuple[str, ...]) -> None:
        self._scope = scope
        self.names = names

    def __getitem__(self, place: int) -> ValueView:
        """Return one of them."""
        return ValueView(self._scope, self.names[place])

    def field(self, name: str) -> Any:
        """Return a field of the first one that is there."""
        first = next(filter(None, self.names), "")
        return ValueView(self._scope, first).field(name) if first else UNKNOWN


class NodeView(Subject):
    """A node in an expression; names that are not its fields are attributes."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def field(self, name: str) -> Any:
        """Return a field, or an attribute with its operator's default; None when it has none."""
        reader = NODE_FIELDS.get(name)
        if reader is not None:
            return reader(self.node)
        return attribute_value(self.node, name.removeprefix("@"))


def _dtype(node: Node) -> Any:
    return ValuesView(node.scope, node.outputs).field("dtype")


NODE_FIELDS: dict[str, Callable[[Node], Any]] = {
    "name": lambda node: node.name,
    "type": lambda node: node.op_type,
    "op_type": lambda node: node.op_type,
    "domain": lambda node: node.domain or "ai.onnx",
    "scope": lambda node: "/".join(node.scope.path),
    "in": lambda node: ValuesView(node.scope, node.inputs),
    "out": lambda node: ValuesView(node.scope, node.outputs),
    "input": lambda node: list(node.inputs),
    "output": lambda node: list(node.outputs),
    "inputs": lambda node: len(node.inputs),
    "outputs": lambda node: len(node.outputs),
    "dtype": _dtype,
    "shape": lambda node: ValuesView(node.scope, node.outputs).field("shape"),
    "rank": lambda node: ValuesView(node.scope, node.outputs).field("rank"),
    "precision": precision_of,
    "has": lambda node: lambda name: node.attribute(name) is not None,
}
"""Of the node that a query asks of; others are attributes."""


_MOST_FOLDED = 4096
"""Elements of a constant that is worked out."""
_FOLDED = frozenset(
    ("Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Floor", "Gather",
     "Greater", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Reshape", "Shape", "Size",
     "Slice", "Sqrt", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where")
)  # fmt: skip
"""Operators whose results are no larger than their inputs, apart from broadcasting."""


def sizes_of(scope: Scope, name: str) -> Any:
    """Return the elements of a computed shape; UNKNOWN where even their number is.

    Args:
        scope: Where the shape is seen.
        name: A value of one number or of a list of them.
    """
    value = value_of(scope, name)
    listed = value.values()
    if value.dims is None or len(value.dims) > 1:
        return UNKNOWN
    if listed is None:
        return [UNKNOWN] if value.dims in ((), (1,)) else UNKNOWN
    is_whole = all(isinstance(size, (int, sizes.Polynomial, sizes.Unknown))
                   and not isinstance(size, bool) for size in listed)  # fmt: skip
    return [shown(size) for size in listed] if is_whole else UNKNOWN


def _reshaped(scope: Scope, name: str) -> tuple[Dims, Dims] | None:
    """Return the sizes before and after the Reshape that makes a value."""
    node = scope.producer(name)
    if node is None or node.domain or node.op_type != "Reshape" or len(node.inputs) < 2:
        return None
    before, after = value_of(node.scope, node.inputs[0]).dims, value_of(scope, name).dims
    return None if before is None or after is None else (before, after)


def _are_kept(pairs: Iterable[tuple[Size, Size]]) -> Any:
    """Return whether two shapes of as many elements are equal: one open size follows of them."""
    open_sizes = 0
    for before, after in pairs:
        is_same = sizes.equal(before, after)
        if is_same is False:
            return False
        open_sizes += is_same is None
    return True if open_sizes <= 1 else UNKNOWN


def split_of(scope: Scope, name: str) -> Any:
    """Return into which sizes the last axis is split; UNKNOWN where the value is not made so.

    The value must be made by a Reshape that keeps the other axes.
    """
    reshaped = _reshaped(scope, name)
    if reshaped is None:
        return UNKNOWN
    before, after = reshaped
    if not before or len(after) <= len(before):
        return UNKNOWN
    kept = len(before) - 1
    parts = after[kept:]
    if not all(isinstance(part, int) for part in parts):
        return UNKNOWN
    pairs = [*zip(before[:-1], after[:kept], strict=True), (before[-1], sizes.product(parts))]
    return list(parts) if _are_kept(pairs) is True else UNKNOWN


def joins_last(scope: Scope, name: str) -> Any:
    """Return whether a value is made by a Reshape that only joins the last two axes."""
    reshaped = _reshaped(scope, name)
    if reshaped is None:
        return UNKNOWN
    before, after = reshaped
    if len(before) < 2 or len(after) != len(before) - 1:
        return UNKNOWN
    joined = (*before[:-2], sizes.product(before[-2:]))
    return _are_kept(zip(joined, after, strict=True))


def repeats_of(scope: Scope, name: str) -> Any:
    """Return how often each part of the second of four axes is repeated, one behind the other.

    UNKNOWN where the value is not made so, by Unsqueeze, Expand and Reshape: what makes as many
    heads of keys as there are of queries.
    """
    reshaped, node = _reshaped(scope, name), scope.producer(name)
    expand = maker_of(node.scope, node.inputs[0]) if node is not None and reshaped else None
    if reshaped is None or expand is None or expand.op_type != "Expand" or expand.domain:
        return UNKNOWN
    added = maker_of(expand.scope, expand.inputs[0])
    if added is None or added.op_type != "Unsqueeze" or added.domain:
        return UNKNOWN
    own = value_of(added.scope, added.inputs[0]).dims
    one = value_of(expand.scope, expand.inputs[0]).dims
    expanded, made = reshaped
    if own is None or one is None or [*map(len, (own, one, expanded, made))] != [4, 5, 5, 4]:
        return UNKNOWN
    times = expanded[2]
    if not isinstance(times, int) or times < 1:
        return UNKNOWN
    pairs = [*zip((*own[:2], 1, *own[2:]), one, strict=True),
             *zip((*own[:2], times, *own[2:]), expanded, strict=True)]  # fmt: skip
    if any(sizes.equal(size, wanted) is not True for size, wanted in pairs):
        return UNKNOWN
    repeated = (own[0], own[1] * times, *own[2:])
    return times if _are_kept(zip(repeated, made, strict=True)) is True else UNKNOWN


def folded(scope: Scope, name: str) -> Any:
    """Return the result of a node for constants, or of a Shape for known sizes; else UNKNOWN."""
    node = scope.producer(name)
    if node is None or node.domain or node.op_type not in _FOLDED or len(node.outputs) != 1:
        return UNKNOWN
    known = value_of(scope, name)
    elements, dims = known.values(), known.dims
    if elements is not None and dims is not None and node.op_type != "Cast" and (
        ValueView(scope, name).dtype == "int64"
        and all(isinstance(size, int) for size in (*elements, *dims))
    ):  # fmt: skip
        return np.asarray(elements, np.int64).reshape(dims)
    views = {item: ValueView(node.scope, item) for item in node.inputs if item}
    if not views or not all(_is_small(view) for view in views.values()):
        return UNKNOWN
    feeds = {item: view.value for item, view in views.items()}
    if any(not isinstance(value, np.ndarray) for value in feeds.values()):
        return UNKNOWN
    sizes = [size for size in dims or () if isinstance(size, int)]
    if dims is None or len(sizes) < len(dims) or math.prod(sizes) > _MOST_FOLDED:
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

    from dld_tui.core.model.document.opset_imports import imports_of

    copy = deepcopy(node.proto)
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
