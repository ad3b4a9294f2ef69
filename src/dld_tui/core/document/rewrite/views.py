"""What expressions can read of a model: nodes, values with their fields, and computed shapes.

Exporters write ``x.view(x.size(0), x.size(1), 12, 64)`` as a dozen of nodes around Shape. They are
followed here, to which size of which value each element of a shape is, so that a rule can ask
whether a Reshape does nothing but to split the last axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.document.index import Definition
from dld_tui.core.document.metadata import precision_of
from dld_tui.core.document.node import Node
from dld_tui.core.document.parts.extraction import imports_of
from dld_tui.core.document.rewrite.expression import FUNCTIONS, MOST_ELEMENTS, UNKNOWN, Subject
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.types.value_types import dtype_name, dtype_of
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.operators.registry import schema_for
from dld_tui.core.operators.schema import OperatorSchema

_INITIALIZERS_APART = 4
"""The first IR version in which an initializer need not be a graph input."""
MOST_FOLLOWED = 16
"""Nodes along a path through those that make a value, of which its sizes are worked out."""
_SCALES = frozenset(("Add", "Div", "Mul", "Sub"))
_KEEPS_DIMS = _SCALES | {"Cast", "Identity", "Neg", "RotaryEmbedding", "Softmax", "Transpose"}
_SHAPED = frozenset(
    ("Concat", "Expand", "Gather", "MatMul", "Reshape", "Slice", "Split", "Tile", "Unsqueeze")
)
_CONSTANT_FORMS = ("value", "value_float", "value_int", "value_floats", "value_ints")


def schema_of(node: Node) -> OperatorSchema | None:
    """Return the schema of a node's operator in the version that holds in its scope."""
    return schema_for(node.op_type, node.domain, imports_of(node.scope).get(node.domain))


def attribute_value(node: Node, name: str) -> Any:
    """Return the plain value of a node's attribute, its operator's default, or None."""
    attribute = node.attribute(name)
    if attribute is not None:
        return UNKNOWN if attribute.reference else plain_value(attribute.value)
    schema = schema_of(node)
    known = schema.attribute(name) if schema is not None else None
    return None if known is None else plain_value(known.default)


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
        own_input = name in scope.named("input")
        if own_input and scope.document.model.ir_version >= _INITIALIZERS_APART:
            return None
        return scope.initializer(name)
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


def _is_open(dim: Any) -> bool:
    """Return whether inference did not find a dimension; it names those that it did not."""
    return dim is None or (isinstance(dim, str) and dim.startswith("unk__"))


class Reads:
    """Names of the values that views are made of while it is open, for whom they tell of."""

    open: set[str] | None = None

    @classmethod
    def begin(cls) -> set[str]:
        """Note names in a new set, until :meth:`end`."""
        cls.open = set()
        return cls.open

    @classmethod
    def end(cls) -> None:
        """Stop recording."""
        cls.open = None


_remembered: ContextVar[dict[tuple[Scope, str, int], Any] | None] = ContextVar(
    "_remembered", default=None
)


@contextmanager
def dims_remembered() -> Iterator[None]:
    """Work out the dimensions of each value once; the model must not be edited meanwhile."""
    if _remembered.get() is not None:
        yield
        return
    token = _remembered.set({})
    try:
        yield
    finally:
        _remembered.reset(token)


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
        return self.dims_within(MOST_FOLLOWED)

    def dims_within(self, steps: int) -> Any:
        """Return the dimensions by following at most so many producers."""
        known = _remembered.get()
        if known is None or Reads.open is not None:  # each that is read has to be noted
            return self._dims_within(steps)
        key = self.scope, self.name, steps
        if key not in known:
            known[key] = self._dims_within(steps)
        dims = known[key]
        return list(dims) if isinstance(dims, list) else dims

    def _dims_within(self, steps: int) -> Any:
        known = self.scope.value_type(self.name)
        if known is not None and known.container:
            return UNKNOWN
        declared = known.dims if known is not None else None
        if declared is not None and not any(map(_is_open, declared)):
            return list(declared)
        constant = self.constant()
        if constant is not None:
            return list(constant.shape)
        followed: Any = self._followed_dims(steps) if steps else UNKNOWN
        if declared is None:
            return followed
        if followed is UNKNOWN or len(followed) != len(declared):
            followed = [UNKNOWN] * len(declared)
        return [
            other if _is_open(dim) and (dim is None or other is not UNKNOWN) else dim
            for dim, other in zip(declared, followed, strict=True)
        ]

    def _followed_dims(self, steps: int) -> Any:
        """Return the dimensions from the inputs of its producer: new values have no types yet."""
        maker = self.scope.producer(self.name)
        if maker is None or not maker.inputs:
            return UNKNOWN
        if self.name != maker.outputs[0] and maker.op_type != "Split":
            return UNKNOWN
        if maker.op_type in _SHAPED and not maker.domain:
            return dims_of(maker, steps - 1)
        if maker.op_type not in _KEEPS_DIMS:
            return UNKNOWN
        others = [ValueView(self.scope, name) for name in maker.inputs[1:] if name]
        if maker.op_type in _SCALES and not all(
            isinstance(other.value, np.ndarray) and other.value.size == 1 and other.value.ndim < 2
            for other in others
        ):
            return UNKNOWN
        dims = ValueView(self.scope, maker.inputs[0]).dims_within(steps - 1)
        if dims is UNKNOWN or not dims or maker.op_type != "Transpose":
            return dims
        order = attribute_value(maker, "perm") or list(range(len(dims)))[::-1]
        fits = isinstance(order, list) and sorted(order) == list(range(len(dims)))
        return [dims[axis] for axis in order] if fits else UNKNOWN

    @property
    def dtype(self) -> Any:
        """Its element type, UNKNOWN where that is not known."""
        return self._dtype_within(MOST_FOLLOWED)

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


def _or_unknown(sizes: list[Size] | None) -> Any:
    return UNKNOWN if sizes is None else sizes


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
    "sizes": lambda view: _or_unknown(sizes_of(view.scope, view.name)),
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


# --- computed shapes: which size of which value each element is -----------------------------------

Size: TypeAlias = Any
"""An int, the name of a dimension, ``value[axis]`` where it has none, or UNKNOWN."""

_MOST_STEPS = 40
_MOST_SIZES = 64
_MOST_FOLDED = 4096
"""Elements of a constant that is worked out."""
_FOLDED = frozenset(
    ("Add", "And", "Cast", "Ceil", "Concat", "ConstantOfShape", "Div", "Equal", "Floor", "Gather",
     "Greater", "Less", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "Reshape", "Shape", "Size",
     "Slice", "Sqrt", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where")
)  # fmt: skip
"""Operators whose results are no larger than their inputs, apart from broadcasting."""
_ENDLESS = 2**31 - 1
"""Where exporters let slices end that go on to the last item."""
_SAME = frozenset(("Cast", "Identity", "Unsqueeze", "Squeeze"))
_FOLLOWED = _SAME | {"Gather", "Reshape", "Slice"}
"""Operators whose output sizes are sizes of their inputs."""


def size_of(scope: Scope, name: str, axis: int, steps: int = MOST_FOLLOWED) -> Size:
    """Return the size of an axis of a value; see :meth:`ValueView.dims_within`."""
    dims = ValueView(scope, name).dims_within(steps)
    if dims is not UNKNOWN and -len(dims) <= axis < len(dims):
        dim = dims[axis]
        return f"{name}[{axis % len(dims)}]" if dim is UNKNOWN else dim
    return f"{name}[{axis}]" if axis >= 0 else UNKNOWN


KnownSizes: TypeAlias = "dict[tuple[Scope, str], list[Size] | None]"


def sizes_of(scope: Scope, name: str) -> list[Size] | None:
    """Return the elements of a computed shape; None where even their number is unknown.

    Args:
        scope: Where the shape is seen.
        name: A value of one number or of a list of them.
    """
    sizes = _followed(scope, name, {}, _MOST_STEPS)
    return None if sizes is None else list(sizes)


def _followed(scope: Scope, name: str, known: KnownSizes, steps: int) -> list[Size] | None:
    """Follow each value once: what is shared would be followed once for each way to it."""
    key = scope, name
    if key not in known:
        known[key] = None
        sizes = _read(scope, name, known, steps)
        known[key] = sizes if sizes is None or len(sizes) <= _MOST_SIZES else None
    return known[key]


def _read(scope: Scope, name: str, known: KnownSizes, steps: int) -> list[Size] | None:
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
    if not inputs:
        return None
    if node.op_type == "Shape":
        return _sizes_of_shape(node, min(steps - 1, MOST_FOLLOWED))
    if node.op_type == "Concat":
        parts = [_followed(node.scope, item, known, steps - 1) for item in inputs]
        return None if None in parts else [size for part in parts for size in part or ()]
    if node.op_type == "Where":
        return _without_wildcards(node, known, steps)
    if node.op_type not in _FOLLOWED:
        few = view.dims_within(min(steps - 1, MOST_FOLLOWED)) in ([], [1])
        return [UNKNOWN] if few else None
    source = _followed(node.scope, inputs[0], known, steps - 1)
    if node.op_type in _SAME:
        return source
    if node.op_type == "Reshape":
        is_list = _numbers(node, 1) == [-1]
        return source if is_list or (source is not None and len(source) == 1) else None
    if node.op_type == "Gather":
        return _picked(node, inputs, source, min(steps - 1, MOST_FOLLOWED))
    return _sliced(node, inputs, source)


def _without_wildcards(node: Node, known: KnownSizes, steps: int) -> list[Size] | None:
    """Return the sizes that an ``expand`` of PyTorch requests: 1 instead of -1."""
    if len(node.inputs) != 3:
        return None
    condition, instead, asked = node.inputs
    test = maker_of(node.scope, condition)
    others = [name for name in test.inputs if name != asked] if test is not None else []
    if test is None or test.op_type != "Equal" or len(test.inputs) != 2 or len(others) != 1:
        return None
    ones, other = (ValueView(node.scope, name).value for name in (instead, *others))
    sizes = _followed(node.scope, asked, known, steps - 1)
    if sizes is None or not (np.all(ones == 1) and np.all(other == -1)):
        return None
    return [1 if size == -1 else size for size in sizes]


def _sizes_of_shape(node: Node, steps: int) -> list[Size] | None:
    name = node.inputs[0]
    dims = ValueView(node.scope, name).dims_within(steps)
    start, end = attribute_value(node, "start") or 0, attribute_value(node, "end")
    if dims is UNKNOWN:
        if end is None or start < 0 or end < 0:
            return None
        axes = range(start, min(end, _MOST_SIZES))
        return [size_of(node.scope, name, axis, steps) for axis in axes]
    return [size_of(node.scope, name, axis, steps) for axis in range(len(dims))][start:end]


def _numbers(node: Node, place: int) -> list[int] | None:
    """Return the elements of an input that is a constant of whole numbers."""
    inputs = node.inputs
    value = ValueView(node.scope, inputs[place]).value if place < len(inputs) else UNKNOWN
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        return None
    return [int(item) for item in value.reshape(-1)]


def _picked(
    node: Node, inputs: list[str], source: list[Size] | None, steps: int
) -> list[Size] | None:
    places = _numbers(node, 1)
    if places is None or attribute_value(node, "axis") != 0:
        return None
    if source is None:
        shape = node.scope.producer(inputs[0])
        if shape is None or shape.op_type != "Shape" or attribute_value(shape, "start"):
            return None
        return [size_of(shape.scope, shape.inputs[0], place, steps) for place in places]
    if any(not -len(source) <= place < len(source) for place in places):
        return None
    return [source[place] for place in places]


def _sliced(node: Node, inputs: list[str], source: list[Size] | None) -> list[Size] | None:
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    steps = _numbers(node, 4) if len(inputs) > 4 else [1]
    if source is None or not starts or not ends or not steps:
        return None
    return source[starts[0] : ends[0] : steps[0]] if steps[0] else None


def _reshape(scope: Scope, name: str, steps: int = _MOST_STEPS) -> tuple[str, list[Size]] | None:
    """Return the input of the Reshape that produces a value, and its requested sizes."""
    node = scope.producer(name)
    if node is None or node.domain or node.op_type != "Reshape" or len(node.inputs) < 2:
        return None
    followed = _followed(node.scope, node.inputs[1], {}, steps)
    if followed is None:
        return None
    wanted = list(followed)
    copies = not attribute_value(node, "allowzero")
    source = node.inputs[0]
    for axis, size in enumerate(wanted):
        if size == 0 and copies:
            wanted[axis] = size_of(scope, source, axis, min(steps, MOST_FOLLOWED))
        elif size in (-1, 0):
            wanted[axis] = UNKNOWN
    return source, wanted


def dims_of(node: Node, steps: int) -> Any:
    """Return the output dimensions of a node of some operators, or UNKNOWN.

    Args:
        node: A Concat, Expand, Gather, MatMul, Reshape, Slice, Split, Tile or Unsqueeze.
        steps: As of :meth:`ValueView.dims_within`.
    """
    if steps <= 0 or len(node.inputs) < 1:
        return UNKNOWN
    dims = ValueView(node.scope, node.inputs[0]).dims_within(steps)
    if node.op_type == "Reshape":
        reshape = _reshape(node.scope, node.outputs[0], steps)
        return UNKNOWN if reshape is None else _closed(reshape[1], dims)
    if dims is UNKNOWN:
        return UNKNOWN
    if node.op_type == "Slice":
        return _cut(node, list(dims))
    broadcast = FUNCTIONS["broadcast"].work
    if node.op_type in ("Gather", "Split"):
        return _of_an_axis(node, list(dims), steps)
    if node.op_type == "MatMul":
        other = ValueView(node.scope, node.inputs[-1]).dims_within(steps)
        if other is UNKNOWN or min(len(dims), len(other)) < 2:
            return UNKNOWN
        batch = broadcast(dims[:-2], other[:-2])
        return UNKNOWN if batch is UNKNOWN else [*batch, dims[-2], other[-1]]
    if node.op_type == "Concat":
        return _joined(node, steps)
    if node.op_type == "Expand":
        sizes = _followed(node.scope, node.inputs[1], {}, steps) if node.inputs[1:] else None
        return UNKNOWN if sizes is None else broadcast(dims, sizes)
    if node.op_type == "Tile":
        repeats = _numbers(node, 1) or []
        if len(repeats) != len(dims):
            return UNKNOWN
        return [
            size if times == 1 else size * times if isinstance(size, int) else UNKNOWN
            for size, times in zip(dims, repeats, strict=True)
        ]
    axes, rank = _axes_of(node) or [], len(dims)
    places = sorted(axis % (rank + len(axes)) for axis in axes)
    if not places or len(set(places)) < len(axes):
        return UNKNOWN
    grown = list(dims)
    for place in places:
        grown.insert(place, 1)
    return grown


def _cut(node: Node, dims: list[Size]) -> Any:
    """Return the dimensions of a Slice of a value."""
    starts, ends = _numbers(node, 1), _numbers(node, 2)
    axes = _numbers(node, 3) if len(node.inputs) > 3 else list(range(len(starts or ())))
    steps = _numbers(node, 4) if len(node.inputs) > 4 else [1] * len(starts or ())
    if starts is None or ends is None or axes is None or steps is None or 0 in steps:
        return UNKNOWN
    if any(not -len(dims) <= axis < len(dims) for axis in axes):
        return UNKNOWN
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=False):
        size = dims[axis]
        if isinstance(size, int):
            dims[axis] = len(range(*slice(start, end, step).indices(size)))
        elif (start, step) != (0, 1) or end < _ENDLESS:
            dims[axis] = UNKNOWN
    return dims


def _of_an_axis(node: Node, dims: list[Size], steps: int) -> Any:
    """Return the dimensions of a Gather, or of any output of a Split, whose sizes are left open."""
    axis = attribute_value(node, "axis")
    if not isinstance(axis, int) or not -len(dims) <= axis < len(dims):
        return UNKNOWN
    place: Any = [UNKNOWN]
    if node.op_type == "Gather":
        if len(node.inputs) < 2:
            return UNKNOWN
        place = ValueView(node.scope, node.inputs[1]).dims_within(steps)
    axis %= len(dims)
    return UNKNOWN if place is UNKNOWN else [*dims[:axis], *place, *dims[axis + 1 :]]


def _joined(node: Node, steps: int) -> Any:
    """Return the dimensions of a Concat: those of its inputs, with the sum along its axis."""
    axis = attribute_value(node, "axis")
    parts = [ValueView(node.scope, name).dims_within(steps) for name in node.inputs]
    if UNKNOWN in parts or len({len(part) for part in parts}) > 1 or not isinstance(axis, int):
        return UNKNOWN
    rank = len(parts[0])
    if not -rank <= axis < rank:
        return UNKNOWN
    along = [part[axis] for part in parts]
    joined = [
        next((d for d in choices if d is not UNKNOWN), UNKNOWN)
        for choices in zip(*parts, strict=True)
    ]
    joined[axis] = sum(along) if all(isinstance(size, int) for size in along) else UNKNOWN
    return joined


def _closed(wanted: list[Size], dims: Any) -> list[Size]:
    """Return sizes with the one that is not known worked out of all elements, where that goes."""
    if wanted.count(UNKNOWN) != 1 or dims is UNKNOWN or UNKNOWN in dims:
        return wanted
    rest = list(dims)
    for size in wanted:
        if isinstance(size, str) and size in rest:
            rest.remove(size)
    known = math.prod(size for size in wanted if isinstance(size, int))
    named = [size for size in wanted if isinstance(size, str)]
    whole = math.prod(size for size in rest if isinstance(size, int))
    if len(rest) + len(named) - len(dims) or any(isinstance(size, str) for size in rest):
        return wanted
    if not known or whole % known:
        return wanted
    return [whole // known if size is UNKNOWN else size for size in wanted]


def split_of(scope: Scope, name: str) -> Any:
    """Return into which sizes the last axis is split; UNKNOWN where the value is not made so.

    The value must be made by a Reshape that keeps the other axes. One size that cannot be told is
    what all others leave over.
    """
    reshape = _reshape(scope, name)
    if reshape is None:
        return UNKNOWN
    source, wanted = reshape
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
    reshape = _reshape(scope, name)
    if reshape is None:
        return UNKNOWN
    source, wanted = reshape
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


def repeats_of(scope: Scope, name: str) -> Any:
    """Return how often each part of the second of four axes is repeated, one behind the other.

    UNKNOWN where the value is not made so, by Unsqueeze, Expand and Reshape: what makes as many
    heads of keys as there are of queries.
    """
    reshape = _reshape(scope, name)
    expand = maker_of(scope, reshape[0]) if reshape is not None else None
    if reshape is None or expand is None or expand.op_type != "Expand" or expand.domain:
        return UNKNOWN
    node = maker_of(expand.scope, expand.inputs[0])
    sizes = sizes_of(expand.scope, expand.inputs[1])
    if node is None or node.op_type != "Unsqueeze" or sizes is None or len(sizes) != 5:
        return UNKNOWN
    times, wanted = sizes[2], reshape[1]
    if _axes_of(node) != [2] or not isinstance(times, int) or times < 1 or len(wanted) != 4:
        return UNKNOWN
    own = [size_of(node.scope, node.inputs[0], axis) for axis in range(4)]
    grown = [*own[:2], times, *own[2:]]
    if any(size not in (1, known) for size, known in zip(sizes, grown, strict=True)):
        return UNKNOWN
    own[1] = own[1] * times if isinstance(own[1], int) else UNKNOWN
    # The number of elements tells the one size that is not known.
    open_axes = sum(
        size is UNKNOWN or size != known for size, known in zip(wanted, own, strict=True)
    )
    return times if open_axes <= 1 else UNKNOWN


def _axes_of(node: Node) -> list[int] | None:
    """Return the axes of an Unsqueeze or Squeeze, which are an attribute up to opset 12."""
    axes = attribute_value(node, "axes")
    return [int(axis) for axis in axes] if isinstance(axes, list) else _numbers(node, 1)


def folded(scope: Scope, name: str) -> Any:
    """Return the result of a node for constants, or of a Shape for known sizes; else UNKNOWN."""
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

    from dld_tui.core.document.parts.extraction import imports_of

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
