"""What expressions see of a model: nodes and values, and their fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from dld_tui.core.document.extraction import imports_of
from dld_tui.core.document.index import Definition
from dld_tui.core.document.metadata import precision_of
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.operators.registry import schema_for
from dld_tui.core.operators.schema import OperatorSchema
from dld_tui.core.rewrite.expression import Thing
from dld_tui.core.rewrite.functions import MOST_ELEMENTS, UNKNOWN

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
        """Note no more."""
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


class ValueView(Thing):
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
        """Return the dimensions by following at most so many nodes that make it."""
        known = _remembered.get()
        if known is None or Reads.open is not None:  # each that is read has to be noted
            return self._dims_within(steps)
        key = self.scope, self.name, steps
        if key not in known:
            known[key] = self._dims_within(steps)
        found = known[key]
        return list(found) if isinstance(found, list) else found

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
        """Return the dimensions as those of what its maker takes: new values have no types yet."""
        maker = self.scope.producer(self.name)
        if maker is None or not maker.inputs:
            return UNKNOWN
        if self.name != maker.outputs[0] and maker.op_type != "Split":
            return UNKNOWN
        if maker.op_type in _SHAPED and not maker.domain:
            from dld_tui.core.rewrite import sizes

            return sizes.dims_of(maker, steps - 1)
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
        known = self.scope.value_type(self.name)
        if known is not None and known.dtype:
            return known.dtype
        constant = self.constant()
        if constant is None:
            return UNKNOWN
        return constant.dtype if isinstance(constant, Tensor) else str(constant.dtype)

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


def maker_of(scope: Scope, name: str) -> Node | None:
    """Return the node that makes a value."""
    return ValueView(scope, name).scope.producer(name)


def _rank(view: ValueView) -> Any:
    dims = view.dims
    return UNKNOWN if dims is UNKNOWN else len(dims)


def _is_input(view: ValueView) -> bool:
    definition = view.scope.resolve(view.name)
    return definition is not None and definition.kind == "input"


def _computed(name: str) -> Callable[[ValueView], Any]:
    """Return the reader of a field that follows what computes a shape."""

    def read(view: ValueView) -> Any:
        from dld_tui.core.rewrite import sizes

        found = getattr(sizes, name)(view.scope, view.name)
        return UNKNOWN if found is None else found

    return read


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
    "sizes": _computed("sizes_of"),
    "split": _computed("split_of"),
    "joined": _computed("joins_last"),
    "repeated": _computed("repeats_of"),
    "folded": _computed("folded"),
}


class ValuesView(Thing):
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


class NodeView(Thing):
    """A node in an expression; what is no field of it is an attribute."""

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
