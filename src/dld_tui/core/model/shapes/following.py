"""Single values, each from what makes it: backwards, as far as it takes.

Where :mod:`.evaluation` looks at a whole model, this looks at the few nodes that a question is
about. What the file or inference says of a value counts first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from dld_tui.core.model.document.local_functions import call_of, key_of
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.shapes.call import NO_ATTRIBUTES, Call, Demands
from dld_tui.core.model.shapes.evaluation import MALFORMED, without_negative
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import UNKNOWN, Size, name_of, number_of, product, size_of
from dld_tui.core.model.shapes.value import MOST_ELEMENTS, NOTHING, Dims, Value, contradict
from dld_tui.core.model.tensors.value_types import PLACEHOLDERS, ValueType

if TYPE_CHECKING:
    import onnx

    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

_MOST_STEPS = 40
_MOST_AXES = 2
"""Axes of a value whose elements are of interest."""
_NO_NUMBERS: Mapping[str, int] = {}
_INFERRED = "unk__"
"""How the names of sizes begin that inference did not find."""


def declared_dims(scope: Scope, name: str) -> Dims | None:
    """Return the sizes that the type of a value says; None where that is not even the rank.

    Where inference contradicts what the file declares it is right: runtimes go by what operators
    make.
    """
    dims = dims_of_type(scope.value_type(name))
    inferred = dims_of_type(scope.inferred.get(name))
    return inferred if contradict(dims, inferred) else dims


def dims_of_type(known: ValueType | None, numbers: Mapping[str, int] = _NO_NUMBERS) -> Dims | None:
    """Return the sizes of a type.

    Args:
        known: The type; None where there is none.
        numbers: Those of some names of dimensions.
    """
    if known is None or known.dims is None or known.container:
        return None
    return tuple(
        UNKNOWN if dim in PLACEHOLDERS and dim not in numbers
        else size_of(numbers.get(dim, dim) if isinstance(dim, str) else dim)
        for dim in known.dims
    )  # fmt: skip


class Following:
    """What is known of values; it is kept, so the model must not be edited meanwhile.

    Args:
        declared: Returns what is known of the sizes of a value without its producer; None where
            that is not even the rank. By default, what its type says.
        unnamed: Returns the size of an axis of which nothing is known.
        attributes: Those of the call around the nodes, in a local function.
        steps: How many nodes to follow along a path through those that make a value.
    """

    def __init__(
        self,
        declared: Callable[[Scope, str], Dims | None] | None = None,
        unnamed: Callable[[str, int], Size] = lambda name, axis: UNKNOWN,
        attributes: Mapping[str, onnx.AttributeProto] = NO_ATTRIBUTES,
        steps: int = _MOST_STEPS,
    ) -> None:
        self.asked: set[str] = set()
        """The names of the values that were looked at."""
        self._declared = declared or declared_dims
        self._unnamed, self._attributes, self._steps = unnamed, attributes, steps
        self._demands = Demands()
        self._known: dict[tuple[Scope, str], Value] = {}
        self._partly: dict[tuple[Scope, str, int], Value] = {}
        """What is known after so many steps, where more steps could tell more."""
        self._versions: dict[Scope, dict[str, int]] = {}
        self._functions: set[tuple[str, str, str]] | None = None

    def value(self, scope: Scope, name: str) -> Value:
        """Return what is known of a value that is seen in a scope."""
        with np.errstate(all="ignore"):
            return self._value(scope, name, self._steps)[0]

    def _value(self, scope: Scope, name: str, steps: int) -> tuple[Value, bool]:
        """Return a value, and whether more steps would tell no more."""
        definition = scope.resolve(name)
        home = scope if definition is None else definition.scope
        known = self._known.get((home, name))
        if known is not None:
            return known, True
        self.asked.add(name)
        partly = self._partly.get((home, name, steps))
        if partly is not None:
            return partly, False
        tensor = None
        if definition is not None and definition.kind == "initializer":
            tensor = None if home.is_default(name) else home.initializer(name)
        if tensor is not None:
            value, is_whole = Value(tensor.shape, tensor=tensor), True
        else:
            dims = self._declared(home, name)
            node = None if definition is None else definition.node
            if node is None or (dims is not None and not _may_tell_more(dims)):
                value, is_whole = Value(dims), True
            elif steps:
                value, is_whole = self._made(node, name, steps)
                value = _with_declared(value, dims)
            else:
                value, is_whole = Value(dims), False
            if value.dims is not None and UNKNOWN in value.dims:
                value.dims = tuple(
                    self._unnamed(name, axis) if size is UNKNOWN else size
                    for axis, size in enumerate(value.dims)
                )
        if is_whole:
            self._known[home, name] = value
        else:
            self._partly[home, name, steps] = value
        return value, is_whole

    def _made(self, node: Node, name: str, steps: int) -> tuple[Value, bool]:
        """Return what the rule of its producer says of a value."""
        rule = rule_of(node.domain, node.op_type)
        if rule is None or self._is_call(node):
            return Value(), True
        inputs, is_whole = [], True
        for source in node.inputs:
            value, is_all = (
                self._value(node.scope, source, steps - 1) if source else (NOTHING, True)
            )
            inputs.append(value)
            is_whole = is_whole and is_all
        try:
            results = rule(self.call(node, inputs))
        except MALFORMED:
            return Value(), is_whole
        at = node.outputs.index(name)
        result = without_negative(results[at]) if at < len(results) else NOTHING
        return Value(result.dims, result.values(), items=result.items,
                     is_sequence=result.is_sequence), is_whole  # fmt: skip

    def call(self, node: Node, inputs: list[Value]) -> Call:
        """Return the call of a node with what is known of its inputs."""
        scope = node.scope
        if scope not in self._versions:
            self._versions[scope] = imports_of(scope)
        version = self._versions[scope].get(node.domain, 0)
        return Call(node.proto, inputs, self._demands, version, self._attributes, scope.document)

    def _is_call(self, node: Node) -> bool:
        if self._functions is None:
            self._functions = {key_of(function) for function in node.scope.document.functions}
        return bool(self._functions) and call_of(node) in self._functions


def _is_open(size: Size) -> bool:
    """Return whether nothing is known of a size, or inference alone has named it."""
    return size is UNKNOWN or (name_of(size) or "").startswith(_INFERRED)


def _may_tell_more(dims: Dims) -> bool:
    """Return whether the producer of a value may tell more: a size, or the elements."""
    if any(map(_is_open, dims)):
        return True
    if len(dims) > _MOST_AXES:
        return False
    count = number_of(product(dims))
    return count is not None and count <= MOST_ELEMENTS


def _with_declared(value: Value, dims: Dims | None) -> Value:
    """Return a value that has the sizes that are declared, and its own where none are."""
    if dims is None:
        return value
    own_dims = value.dims
    if own_dims is None or len(own_dims) != len(dims):
        return Value(dims)
    value.dims = tuple(
        own if own is not UNKNOWN and _is_open(size) else size
        for size, own in zip(dims, own_dims, strict=True)
    )
    return value
