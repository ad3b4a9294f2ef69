"""Dimensions of a model made dynamic or fixed, with the constants that hold their old size.

Each node is followed at two sizes of the dimension, the old one and another, by onnx's inference
and, for what computes with sizes, by its reference implementation. What differs between the two is
what depends on the dimension; a node that only works at the old size, or that would spread the new
size over other data, holds it in a constant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.files.proto_fields import set_items
from dld_tui.core.text import clip, shortened, visible
from dld_tui.core.types import plain_domain

Sizes: TypeAlias = "tuple[int, ...]"
Values: TypeAlias = "np.ndarray[Any, Any]"
_MOST_VALUES = 4096
"""Elements of a value that is computed: shapes, and what is made of them."""
_END = 2**63 - 1
_LARGEST_SIZE = 1 << 24
"""Ends of slices from there on stand for the end, whatever the size."""
_COMPUTED = frozenset(
    """
    Abs Add And Cast Ceil Concat ConstantOfShape Div Equal Expand Floor Gather Greater
    GreaterOrEqual Identity Less LessOrEqual Max Min Mod Mul Neg Not Or Pow Range ReduceMax
    ReduceMin ReduceProd ReduceSum Reshape ScatterElements ScatterND Slice Split Sqrt
    Squeeze Sub Tile Transpose Unsqueeze Where
    """.split()  # noqa: SIM905
)
_BROADCASTING = frozenset(
    """
    Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Div Equal Greater GreaterOrEqual Less
    LessOrEqual MatMul Max Mean Min Mod Mul Or PRelu Pow Sub Sum Where Xor Gemm
    """.split()  # noqa: SIM905
)
_SINCE_IR = 4
"""The version of the format from which an initializer need not be an input as well."""
_SCAN_SINCE = 9
"""The version of the operators from which Scan has no batches of its own."""
_PARTS_SINCE = 18
"""The version from which Split is told how many parts there are."""
_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
"""Inputs with the state before the first step: directions x batch x hidden."""
_LENGTHS = ("seq", "time", "len", "frame", "step", "token", "sample", "word", "position")
"""What names of axes begin with along which items depend on each other."""
_LIKE_INPUT = frozenset(["BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization"])
"""Operators of com.microsoft whose first output is as large as their first input."""
_ASIDE = frozenset(["Shape", "Size", "Constant", "DynamicQuantizeLinear"])
"""Operators that may have an output without the dimension."""


@dataclass
class Value:
    """What is known of a value at the old size of the dimension, and at the other."""

    dtype: int
    old: Sizes
    new: Sizes
    old_values: Values | None = None
    new_values: Values | None = None
    outer: dict[int, int] = field(default_factory=dict)
    """By axis: how often the dimension is repeated in it, where it is not outermost."""
    wraps: tuple[str, ...] = ()
    """``sequence`` and ``optional``, the outermost first, around what has these sizes."""

    @property
    def changed(self) -> list[int]:
        """The axes that depend on the dimension."""
        return [axis for axis, pair in enumerate(zip(self.old, self.new, strict=True))
                if pair[0] != pair[1]]  # fmt: skip


@dataclass
class FreedDimension:
    """What was done to a model."""

    model: onnx.ModelProto
    changed: list[str] = field(default_factory=list)
    """Lines on the nodes that were changed or added to."""
    outputs: dict[str, int | None] = field(default_factory=dict)
    """By output: the axis that depends on the dimension; None for none. Unknown ones are left
    out."""


def free_dimension(
    model: onnx.ModelProto,
    axes: Mapping[str, int],
    shapes: Mapping[str, Sizes],
    name: str,
    *,
    is_batch: bool,
    read: Callable[[str], Values | None],
    small: onnx.ModelProto,
) -> FreedDimension:
    """Make one dimension of some inputs dynamic, in place.

    Args:
        model: The model, whose payloads may be cut out.
        axes: The axis of each input.
        shapes: A shape of each input that the model takes.
        name: Of the dimension.
        is_batch: Whether what belongs to one index of it must not depend on that of others.
        read: Returns the values of a weight, if they can be had.
        small: The same model with the payloads of small tensors.

    Raises:
        ActivityError: A node or a weight stands in the way.
    """
    old = shapes[next(iter(axes))][next(iter(axes.values()))]
    new = next(n for n in (7, 11, 13) if old % n) * old if is_batch else 2 * old
    walk = _Walk(model, old, is_batch, read)
    walk.take_weights(small.graph)
    weights = {tensor.name for tensor in model.graph.initializer}
    for info in model.graph.input:
        if info.name in shapes and info.name not in weights:
            before = shapes[info.name]
            after = tuple(new if axes.get(info.name) == axis else size
                          for axis, size in enumerate(before))  # fmt: skip
            tensor, wraps = _inner(info.type)
            walk.known[info.name] = Value(tensor.elem_type, before, after, wraps=wraps)
    walk.graph(model.graph)
    walk.drop_unused(model.graph)
    for info in model.graph.input:
        if info.name in axes:
            dim = _inner(info.type)[0].shape.dim[axes[info.name]]
            dim.Clear()
            dim.dim_param = name
    freed = FreedDimension(model, walk.changed)
    for info in model.graph.output:
        value = walk.known.get(info.name)
        if value is not None:
            freed.outputs[info.name] = next(iter(value.changed), None)
    walk.declare(model.graph, name, (old, new))
    return freed


@dataclass(frozen=True)
class Dimension:
    """A dimension of some inputs, as it is declared, and what it is to become."""

    key: str
    """As it was asked for."""
    axes: Mapping[str, int]
    """The axis of each input."""
    size: int | None
    """None when it is dynamic."""
    name: str
    """Empty when it has none."""
    to: int | str

    @property
    def is_batch(self) -> bool:
        """Whether it is the first axis of the first input: items do not depend on each other.

        An axis with the name of a length is none.
        """
        names = (self.name, self.to if isinstance(self.to, str) else "")
        is_length = any(name.lower().startswith(_LENGTHS) or name == "T" for name in names)
        return next(iter(self.axes.values())) == 0 and not is_length


def find_dimensions(graph: onnx.GraphProto, texts: Sequence[str]) -> list[Dimension]:
    """Return what is asked for; axes that have one size and get another together are one.

    Raises:
        UsageError: There is no such dimension, or it gets two sizes.
    """
    joined: dict[tuple[int | None, str, int | str], Dimension] = {}
    texts_by_axis: dict[tuple[str, int], str] = {}
    for text in texts:
        dimension = find_dimension(graph, text)
        for axis in dimension.axes.items():
            if axis in texts_by_axis:
                raise UsageError(f"--dim {text} names the same axis as --dim {texts_by_axis[axis]}")
            texts_by_axis[axis] = text
        key = (dimension.size, dimension.name, dimension.to)
        other = joined.get(key)
        if other is not None and not set(other.axes) & set(dimension.axes):
            dimension = replace(other, axes={**other.axes, **dimension.axes})
        elif other is not None:
            key = (dimension.size, text, dimension.to)
        joined[key] = dimension
    return [*joined.values()]


def find_dimension(graph: onnx.GraphProto, text: str) -> Dimension:
    """Return what ``NAME=VALUE`` or ``INPUT:AXIS=VALUE`` means in a model.

    ``batch`` is the first axis of the first input, and of those where it is declared the same, if
    no dimension has that name.

    Raises:
        UsageError: There is no such dimension, or no such size.
    """
    key, sign, value = text.rpartition("=")
    key, value = key.strip(), value.strip()
    if not sign or not key or not value:
        raise UsageError(f"--dim is {text!r}, and not NAME=VALUE", hint="batch=N or images:2=640")
    if value.lstrip("+-").isdigit() and int(value) < 1:
        raise UsageError(f"--dim {text}: a size is 1 or more; a name makes it dynamic")
    to: int | str = int(value) if value.isdigit() else value
    weights = {tensor.name for tensor in graph.initializer}
    inputs = {
        info.name: info.type.tensor_type.shape.dim
        for info in graph.input
        if info.name not in weights and info.type.tensor_type.HasField("shape")
    }
    axes = {
        name: axis
        for name, dims in inputs.items()
        for axis, dim in reversed([*enumerate(dims)])
        if dim.dim_param == key
    }
    name, colon, axis_text = key.rpartition(":")
    if not axes and colon and name in inputs and axis_text.lstrip("-").isdigit():
        rank, axis = len(inputs[name]), int(axis_text)
        if not -rank <= axis < rank:
            raise UsageError(f"--dim {text}: {visible(name)} has {rank} axes")
        axes = {name: axis % rank}
    if not axes and key == "batch":
        first = next((dims[0] for dims in inputs.values() if dims), None)
        axes = {name: 0 for name, dims in inputs.items() if dims and dims[0] == first}
    if not axes:
        names = {dim.dim_param for dims in inputs.values() for dim in dims if dim.dim_param}
        places = [f"{name}:{axis}" for name, dims in inputs.items() for axis in range(len(dims))]
        known = ", ".join(visible(known_name) for known_name in (*sorted(names), *places)[:12])
        hint = f"There are {known}" if known else "No input has any"
        raise UsageError(f"--dim {text}: there is no dimension {key!r}", hint=hint)
    chosen = next(iter(axes))
    dim = inputs[chosen][axes[chosen]]
    size = dim.dim_value if dim.HasField("dim_value") and dim.dim_value > 0 else None
    return Dimension(key, axes, size, dim.dim_param, to)


def set_dimension(
    model: onnx.ModelProto, axes: Mapping[str, int], name: str, to: int | str
) -> None:
    """Give a dynamic dimension a size or another name, in every declared shape that has its name.

    Args:
        model: The model, which is changed.
        axes: The axis of each input.
        name: The name of the dimension; empty when it has none.
        to: Its size, or its new name.
    """
    field = "dim_value" if isinstance(to, int) else "dim_param"
    graph = model.graph
    for info in graph.input:
        if info.name in axes:
            setattr(info.type.tensor_type.shape.dim[axes[info.name]], field, to)
    for info in (*graph.input, *graph.output, *_all_value_info(graph)):
        for dim in _inner(info.type)[0].shape.dim:
            if name and dim.dim_param == name:
                setattr(dim, field, to)


def declare_outputs(model: onnx.ModelProto, small: onnx.ModelProto) -> None:
    """Declare the sizes of outputs that follow from those of inputs, where all of these are fixed.

    Args:
        model: The model, which is changed.
        small: The same model with the payloads of small tensors.
    """
    walk = _Walk(model, 1, False, lambda _: None)
    walk.take_weights(small.graph)
    for info in model.graph.input:
        tensor, wraps = _inner(info.type)
        if not tensor.HasField("shape") or any(d.dim_value <= 0 for d in tensor.shape.dim):
            return
        sizes = tuple(dim.dim_value for dim in tensor.shape.dim)
        walk.known.setdefault(info.name, Value(tensor.elem_type, sizes, sizes, wraps=wraps))
    walk.graph(model.graph)
    for info in model.graph.output:
        value, dims = walk.known.get(info.name), _inner(info.type)[0].shape.dim
        if value is not None and len(dims) == len(value.old):
            for dim, size in zip(dims, value.old, strict=True):
                dim.dim_value = size


def _all_value_info(graph: onnx.GraphProto) -> Iterator[onnx.ValueInfoProto]:
    yield from graph.value_info
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _all_value_info(attribute.g)
                yield from attribute.g.output


def reshaped(value: Value, target: Sizes, unit: int) -> tuple[Sizes, dict[int, int]] | None:
    """Return the shape at the new size of what a Reshape makes, and where the dimension is in it.

    Elements keep their row-major order. Let the dimension be repeated R times before it in the
    input: it may go to an output axis q where the product P of the axes before q divides R, and
    q itself is a multiple of R / P times the dimension. Of several such axes the best is one that
    is the dimension alone, then one as large as that of the input, one in its place, the first.

    Args:
        value: The input.
        target: The shape at the old size.
        unit: The old size of the dimension.

    Returns:
        Shape and repetitions by axis, or None when there is no such axis.
    """
    sizes = list(target)
    outer: dict[int, int] = {}
    taken: set[int] = set()
    for axis in value.changed:
        old_size, new_size = value.old[axis], value.new[axis]
        inside_input = value.outer.get(axis, 1)
        repeated = math.prod(value.old[:axis]) * inside_input
        # Other sizes follow from the dimension: of a convolution, say.
        least = unit if old_size % unit == 0 else old_size // math.gcd(old_size, new_size)
        places = []
        for place, wanted in enumerate(target):
            before = math.prod(target[:place])
            if not before or repeated % before:
                continue
            inside = repeated // before
            if wanted % inside or wanted // inside % least or wanted * new_size % old_size:
                continue
            same = wanted == old_size and inside == inside_input
            places.append((place in taken, wanted != unit, not same, place != axis, inside, place))
        if not places:
            return None
        *_, inside, place = min(places)
        sizes[place] = sizes[place] * new_size // old_size
        taken.add(place)
        if inside > 1:
            outer[place] = inside
    return tuple(sizes), outer


_Saved: TypeAlias = "tuple[dict[str, Value], list[str], list[onnx.NodeProto], int, onnx.GraphProto]"


class _Walk:
    def __init__(
        self,
        model: onnx.ModelProto,
        old: int,
        is_batch: bool,
        read: Callable[[str], Values | None],
    ) -> None:
        self.known: dict[str, Value] = {}
        self.changed: list[str] = []
        self._old, self._is_batch, self._read = old, is_batch, read
        self._imports = {plain_domain(e.domain): e.version for e in model.opset_import}
        self._opsets = list(model.opset_import)
        self._ir = model.ir_version
        self._names = {name for graph in _graphs(model.graph) for node in graph.node
                       for name in (*node.input, *node.output, node.name)}  # fmt: skip
        self._names |= {tensor.name for tensor in model.graph.initializer}
        self._before: list[onnx.NodeProto] = []
        self._weights = model.graph.initializer
        self._used = _used(model.graph)

    def take_weights(self, graph: onnx.GraphProto) -> None:
        for tensor in (weight for body in _graphs(graph) for weight in body.initializer):
            sizes = tuple(tensor.dims)
            values = _values(tensor)
            self.known.setdefault(
                tensor.name, Value(tensor.data_type, sizes, sizes, values, values)
            )

    def graph(self, graph: onnx.GraphProto) -> None:
        nodes: list[onnx.NodeProto] = []
        outside = self._before
        for number, node in enumerate(graph.node):
            self._before = []
            self._node(node, number)
            nodes += [*self._before, node]
        self._before = outside
        if len(nodes) != len(graph.node):
            set_items(graph.node, nodes)

    def declare(self, graph: onnx.GraphProto, name: str, sizes: tuple[int, int]) -> None:
        """Declare the shapes of outputs and values; what is not known of values is dropped."""
        for info in graph.output:
            self._declare(info, name, sizes)
        declared = [info for info in graph.value_info if self._declare(info, name, sizes)]
        set_items(graph.value_info, declared)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    for info in attribute.g.input:
                        self._declare(info, name, sizes)
                    self.declare(attribute.g, name, sizes)

    def _declare(self, info: onnx.ValueInfoProto, name: str, sizes: tuple[int, int]) -> bool:
        shape = _inner(info.type)[0].shape
        value = self.known.get(info.name)
        if value is None or len(shape.dim) != len(value.old):
            for dim in shape.dim:
                if dim.HasField("dim_value"):
                    dim.Clear()
            return False
        for axis in value.changed:
            shape.dim[axis].Clear()
            if (value.old[axis], value.new[axis]) == sizes:
                shape.dim[axis].dim_param = name
        return True

    def drop_unused(self, graph: onnx.GraphProto) -> None:
        """Remove initializers and constants that were used before and are not any more."""
        unused = self._used - _used(graph)
        kept = [tensor for tensor in graph.initializer if tensor.name not in unused]
        if len(kept) < len(graph.initializer):
            set_items(graph.initializer, kept)
            for index in reversed(range(len(graph.input))):
                if graph.input[index].name in unused:  # of its default value
                    del graph.input[index]
        for body in _graphs(graph):
            for index in reversed(range(len(body.node))):
                node = body.node[index]
                if node.op_type == "Constant" and node.output[0] in unused:
                    del body.node[index]

    # -- nodes

    def _node(self, node: onnx.NodeProto, number: int) -> None:
        for attribute in node.attribute:
            if attribute.HasField("g") and node.op_type == "If":
                self.graph(attribute.g)
        inputs = [self.known.get(name) for name in node.input]
        if node.op_type == "If" and not plain_domain(node.domain):
            self._branches(node)
            return
        if node.op_type in ("Loop", "Scan") and not plain_domain(node.domain):
            self._repeated(node, number, inputs)
            return
        if not any(value is not None and (value.changed or _differ(value)) for value in inputs):
            self._same(node)
            return
        mended = self._mend(node, number, inputs)
        outputs = mended if mended is not None else self._inferred(node, number)
        if outputs is None:
            return
        touched = any(value is not None and value.changed for value in inputs)
        if touched and self._is_batch and node.op_type not in _ASIDE:
            self._require_kept(node, number, inputs, outputs)
        for name, value in zip(node.output, outputs, strict=False):
            if name and value is not None:
                if not value.outer:
                    value.outer = _inherited(value, inputs)
                self.known[name] = value

    def _branches(self, node: onnx.NodeProto) -> None:
        branches = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        for index, name in enumerate(node.output):
            values = [self.known.get(branch.output[index].name) for branch in branches]
            first = values[0]
            if first is None or any(
                other is None or (other.old, other.new) != (first.old, first.new)
                for other in values
            ):
                # Only one branch is taken: the other need not fit.
                known = [value for value in values if value is not None]
                if len(known) != 1:
                    continue
                first = known[0]
            self.known[name] = replace(
                first, old_values=None, new_values=None, outer=dict(first.outer)
            )

    def _repeated(self, node: onnx.NodeProto, number: int, inputs: Sequence[Value | None]) -> None:
        """Follow the dimension through the body of a loop, which runs with one size all the time.

        Where sizes change from one iteration to the next, nothing is known of what it makes.
        """
        body = next(a.g for a in node.attribute if a.HasField("g"))
        captured = [self.known.get(name) for name in _used(body)]
        if not any(value is not None and (value.changed or _differ(value))
                   for value in (*inputs, *captured)):  # fmt: skip
            self._same(node)
            return
        saved = self._saved(body)
        try:
            self._iterated(node, number, body, inputs)
        except ActivityError:
            self._restore(body, saved)
            if not self._with_first_states(node, inputs, [*node.input, *_used(body)]):
                raise
            again = [self.known.get(name) for name in node.input]
            self._iterated(node, number, body, again)

    def _saved(self, body: onnx.GraphProto) -> _Saved:
        copied = deepcopy(body)
        return dict(self.known), [*self.changed], [*self._before], len(self._weights), copied

    def _restore(self, body: onnx.GraphProto, saved: _Saved) -> None:
        self.known, self.changed, self._before = dict(saved[0]), [*saved[1]], [*saved[2]]
        del self._weights[saved[3] :]
        body.CopyFrom(saved[4])

    def _with_first_states(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None], names: Sequence[str]
    ) -> bool:
        """Give what a loop begins with as many items as there are; return whether any was."""
        source = next(
            ((name, axis) for name in names if (value := self.known.get(name)) is not None
             for axis in value.changed if value.old[axis] == self._old), None
        )  # fmt: skip
        first = 2 if node.op_type == "Loop" else 0
        done = False
        for index, value in enumerate(inputs) if source is not None else ():
            if index < first or value is None or value.changed or self._old == 1:
                continue
            name = node.input[index]
            for axis, size in enumerate(value.old):
                if size == self._old and self._is_uniform(name, value, axis) and source:
                    self._repeat(node, index, axis, *source)
                    done = True
                    break
        return done

    def _iterated(
        self,
        node: onnx.NodeProto,
        number: int,
        body: onnx.GraphProto,
        inputs: Sequence[Value | None],
    ) -> None:
        states, slices = self._given(node, inputs)
        if states is None:
            return
        saved = self._saved(body)
        for info, value in zip(body.input, (*states, *slices), strict=False):
            self.known.pop(info.name, None)
            if value is not None:
                self.known[info.name] = replace(value, old_values=None, new_values=None)
        self.graph(body)
        first = 2 if node.op_type == "Loop" else 0
        ends = body.output[1:] if node.op_type == "Loop" else body.output
        results = [self.known.get(info.name) for info in ends]
        state_values = states[first:]
        for before, after, info in zip(state_values, results, ends, strict=False):
            if before is not None and after is not None and before.old != after.old:
                self._restore(body, saved)
                return
            if before is not None and after is not None and before.new != after.new:
                raise self._refused(
                    node, number, f"its state {visible(info.name)} begins with a fixed size:"
                    f" {_text(before.new)}, and becomes {_text(after.new)}"
                )  # fmt: skip
        length = self._length(node, inputs)
        for index, name in enumerate(node.output):
            value = results[index] if index < len(results) else None
            if not name or value is None:
                continue
            if index < len(state_values):
                self.known[name] = replace(value, old_values=None, new_values=None)
            elif length is not None:
                self.known[name] = Value(
                    value.dtype, (length[0], *value.old), (length[1], *value.new)
                )  # fmt: skip

    def _given(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None]
    ) -> tuple[Sequence[Value | None] | None, Sequence[Value | None]]:
        """Return what a body takes in every iteration, and one slice of what it goes through."""
        if node.op_type == "Loop":
            number, flag = (Value(dtype, (), ()) for dtype in (
                onnx.TensorProto.INT64, onnx.TensorProto.BOOL))  # fmt: skip
            return [number, flag, *inputs[2:]], []
        about = {a.name: a for a in node.attribute}
        if self._imports.get("", 1) < _SCAN_SINCE or "scan_output_axes" in about:
            return None, []
        count = about["num_scan_inputs"].i
        states, through = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
        axes = list(about["scan_input_axes"].ints) if "scan_input_axes" in about else [0] * count
        return states, [
            None if value is None else Value(value.dtype, _without(value.old, axis),
                                             _without(value.new, axis))
            for value, axis in zip(through, axes, strict=True)
        ]  # fmt: skip

    def _length(
        self, node: onnx.NodeProto, inputs: Sequence[Value | None]
    ) -> tuple[int, int] | None:
        """Return how often a Scan runs its body; of a Loop nobody knows before."""
        last = inputs[-1] if node.op_type == "Scan" and inputs else None
        if last is None:
            return None
        axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [0])
        return last.old[axes[-1]], last.new[axes[-1]]

    def _same(self, node: onnx.NodeProto) -> None:
        inferred = self._infer(node, new=False)
        for name, value in zip(node.output, inferred or (), strict=False):
            if name and value is not None:
                sizes, values = value.sizes, value.values
                self.known[name] = Value(
                    value.dtype, sizes, sizes, values, values, wraps=value.wraps
                )

    def _inferred(self, node: onnx.NodeProto, number: int) -> list[Value | None] | None:
        """Return the outputs at both sizes; None where nothing is known of the old one."""
        before = self._infer(node, new=False)
        if before is None:
            return None
        after, problem = self._attempt(node)
        if after is None:
            if not self._spread(node):
                raise self._refused(node, number, problem)
            after, problem = self._attempt(node)
            if after is None:
                raise self._refused(node, number, problem)
        outputs: list[Value | None] = []
        for old, new in zip(before, after, strict=False):
            if old is None or new is None:
                outputs.append(None)
                continue
            if len(old.sizes) != len(new.sizes):
                raise self._refused(node, number, "the rank of its output would change")
            outputs.append(Value(old.dtype, old.sizes, new.sizes, old.values, new.values,
                                 wraps=old.wraps))  # fmt: skip
        return outputs

    def _attempt(self, node: onnx.NodeProto) -> tuple[list[_SizedValue | None] | None, str]:
        try:
            return self._infer(node, new=True, strict=True), "it does not take another size"
        except ActivityError as error:
            return None, error.message

    def _infer(
        self, node: onnx.NodeProto, *, new: bool, strict: bool = False
    ) -> list[_SizedValue | None] | None:
        domain = plain_domain(node.domain)
        inputs = [self.known.get(name) for name in node.input]
        if domain == "com.microsoft" and node.op_type in _LIKE_INPUT and inputs[0] is not None:
            return [_SizedValue(inputs[0].dtype, inputs[0].new if new else inputs[0].old)]
        if any(v is None for v, name in zip(inputs, node.input, strict=True) if name):
            return None
        values = {name: value.new_values if new else value.old_values
                  for name, value in zip(node.input, inputs, strict=True)
                  if value is not None}  # fmt: skip
        computed = self._compute(node, domain, inputs, values, new=new)
        if computed is not None:
            return computed
        try:
            schema = onnx.defs.get_schema(node.op_type, self._imports.get(domain, 1), domain)
            types = {
                name: _typed(value, value.new if new else value.old)
                for name, value in zip(node.input, inputs, strict=True)
                if value is not None
            }
            data = {name: numpy_helper.from_array(elements, name)
                    for name, elements in values.items() if elements is not None}  # fmt: skip
            inferred = onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self._opsets, ir_version=self._ir
            )
        # The seam: C++ errors of several classes without a common base.
        except Exception as error:  # noqa: BLE001
            if strict:
                raise ActivityError(_reason(str(error))) from None
            return None
        return [_sized_value(inferred.get(name)) for name in node.output]

    def _compute(
        self,
        node: onnx.NodeProto,
        domain: str,
        inputs: Sequence[Value | None],
        values: Mapping[str, Values | None],
        *,
        new: bool,
    ) -> list[_SizedValue | None] | None:
        """Return what a node makes of sizes and other few numbers."""
        if domain:
            return None
        results: list[Values]
        if node.op_type == "Shape" and inputs[0] is not None:
            sizes = inputs[0].new if new else inputs[0].old
            about = {a.name: a.i for a in node.attribute}
            results = [np.array(sizes[slice(about.get("start"), about.get("end"))], np.int64)]
        elif node.op_type == "Size" and inputs[0] is not None:
            results = [np.array(math.prod(inputs[0].new if new else inputs[0].old), np.int64)]
        elif node.op_type == "Constant":
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
            if tensor is not None:
                return [_SizedValue(tensor.data_type, tuple(tensor.dims), _values(tensor))]
            results = _reference(node, [], self._imports.get("", 1))
        elif node.op_type in _COMPUTED and all(value is not None for value in values.values()):
            fed = [values[name] if name else None for name in node.input]
            if node.op_type in ("ConstantOfShape", "Expand", "Tile", "Range"):
                likely = self._infer_size(node, inputs, values)
                if likely > _MOST_VALUES:
                    return None
            results = _reference(node, fed, self._imports.get("", 1))
        else:
            return None
        if not results:
            return None
        return [
            _SizedValue(helper.np_dtype_to_tensor_dtype(result.dtype), result.shape,
                  result if result.size <= _MOST_VALUES else None)
            for result in map(np.asarray, results)
        ]  # fmt: skip

    def _infer_size(
        self,
        node: onnx.NodeProto,
        inputs: Sequence[Value | None],
        values: Mapping[str, Values | None],
    ) -> int:
        last = values[node.input[-1]] if node.input else None
        if node.op_type == "Range" or last is None:
            low, high, step = (float(np.asarray(values[name])) for name in node.input)
            return int(abs((high - low) / (step or 1)))
        sizes = math.prod(int(dim) for dim in last.reshape(-1))
        first = inputs[0]
        return sizes * (math.prod(first.new) if node.op_type == "Tile" and first else 1)

    # -- constants that hold the old size

    def _mend(
        self, node: onnx.NodeProto, number: int, inputs: Sequence[Value | None]
    ) -> list[Value | None] | None:
        """Mend what would work at another size, but wrongly; return the outputs where known."""
        if plain_domain(node.domain):
            return None
        data = inputs[0]
        if node.op_type == "Reshape" and data is not None and data.changed:
            return self._reshape(node, number, data)
        if node.op_type == "Expand" and data is not None and data.changed:
            self._expand(node, data)
        elif node.op_type == "Slice" and data is not None and data.changed:
            self._slice(node, number, data)
        elif node.op_type in ("Resize", "Upsample") and data is not None and data.changed:
            self._resize(node, data)
        elif node.op_type == "Split" and data is not None and data.changed:
            self._split(node, number, data)
        elif node.op_type == "Squeeze" and data is not None and data.changed:
            self._squeeze(node, number, data)
        elif node.op_type in _STATES and data is not None and data.changed:
            self._states(node, data)
        elif node.op_type == "Concat":
            self._spread(node)
        elif node.op_type in ("Softmax", "LogSoftmax", "Hardmax") and data is not None:
            self._require_inside(node, number, data)
        return None

    def _reshape(self, node: onnx.NodeProto, number: int, data: Value) -> list[Value | None] | None:
        before = self._infer(node, new=False)
        if before is None or before[0] is None:
            return None
        after, _ = self._attempt(node)
        target = self.known.get(node.input[1]) if len(node.input) > 1 else None
        fitting = reshaped(data, before[0][1], self._old)
        if fitting is None:
            if after is not None and after[0] is not None and target and _differ(target):
                return [Value(before[0][0], before[0][1], after[0][1])]
            raise self._refused(
                node, number,
                f"from {_text(data.old)} to {_text(before[0][1])} it mixes the dimension with"
                " others",
            )  # fmt: skip
        wanted, outer = fitting
        value = Value(before[0][0], before[0][1], wanted, outer=outer)
        if after is not None and after[0] is not None and (
            after[0][1] == wanted or ((target is not None and _differ(target))
            and math.prod(after[0][1]) == math.prod(data.new))
        ):  # fmt: skip
            value.new = after[0][1]
            value.outer = outer if after[0][1] == wanted else {}
            return [value]
        if target is None or target.old_values is None:
            return None
        entries = [int(value) for value in target.old_values]
        self._retarget(node, entries, target, data, value)
        return [value]

    def _retarget(
        self, node: onnx.NodeProto, entries: list[int], target: Value, data: Value, value: Value
    ) -> None:
        """Let a Reshape make the shape that it should at any size."""
        allow_zero = any(a.name == "allowzero" and a.i for a in node.attribute)
        was = list(entries)
        pieces: dict[int, str] = {}
        is_constant = not _differ(target)
        for place in value.changed:
            if entries[place] == -1:
                continue
            new = target.new_values
            if not is_constant and new is not None and int(new[place]) == value.new[place]:
                continue
            here = place < len(data.old) and (data.old[place], data.new[place]) == (
                value.old[place], value.new[place])  # fmt: skip
            if is_constant and here and not allow_zero:
                entries[place] = 0
            elif is_constant and -1 not in entries:
                entries[place] = -1
            else:
                axis = data.changed[0] if len(data.changed) == 1 else min(
                    data.changed,
                    key=lambda a: data.new[a] * value.old[place] != value.new[place] * data.old[a],
                )  # fmt: skip
                pieces[place] = self._size_of(node.input[0], axis, value.old[place], data.old[axis])
        self.changed.append(f"{self._label(node)}: {was} became {_shown(entries, pieces)}")
        if not pieces:
            node.input[1] = self._constant(np.array(entries, np.int64))
        else:
            source = "" if is_constant else node.input[1]
            node.input[1] = self._joined(entries, pieces, source)

    def _expand(self, node: onnx.NodeProto, data: Value) -> None:
        """Let a size in the target be 1 where the data already has the dimension."""
        target = self.known.get(node.input[1])
        if target is None or target.old_values is None or _differ(target):
            return
        entries = [int(value) for value in target.old_values]
        shift = len(entries) - len(data.old)
        was = list(entries)
        for axis in data.changed:
            if axis + shift >= 0 and entries[axis + shift] == data.old[axis]:
                entries[axis + shift] = 1
        if entries != was:
            self.changed.append(f"{self._label(node)}: {was} became {entries}")
            node.input[1] = self._constant(np.array(entries, np.int64))

    def _slice(self, node: onnx.NodeProto, number: int, data: Value) -> None:
        """Let a slice that takes all of the dimension take all of it at any size."""
        attributes = {a.name: list(a.ints) for a in node.attribute}
        parts: list[list[int] | None] = []
        for index, key in enumerate(("starts", "ends", "axes", "steps")):
            place = index + 1
            value = self.known.get(node.input[place]) if len(node.input) > place else None
            if value is not None and value.old_values is not None and not _differ(value):
                parts.append([int(element) for element in value.old_values.reshape(-1)])
            elif len(node.input) > place and node.input[place]:
                return  # computed: it follows the size, or a run shows that it does not
            else:
                parts.append(attributes.get(key))
        starts, ends = parts[0], parts[1]
        if starts is None or ends is None:
            return
        axes = parts[2] or [*range(len(starts))]
        steps = parts[3] or [1] * len(starts)
        was = list(ends)
        for index, axis in enumerate(axes):
            axis %= len(data.old)
            if axis not in data.changed:
                continue
            size = data.old[axis]
            selected = range(size)[slice(starts[index], ends[index], steps[index])]
            if selected == range(size):
                if 0 <= ends[index] < _LARGEST_SIZE:
                    ends[index] = _END
            elif self._is_batch and sorted(selected) != [*range(size)]:
                raise self._refused(
                    node, number, f"it takes {len(selected)} of the {size} along the dimension"
                )
        if ends == was:
            return
        self.changed.append(f"{self._label(node)}: ends {was} became"
                            f" {['end' if e == _END else e for e in ends]}")  # fmt: skip
        if "ends" in attributes:
            named = next(a for a in node.attribute if a.name == "ends")
            del named.ints[:]
            named.ints.extend(ends)
        else:
            dtype = np.int32 if self.known[node.input[2]].dtype == onnx.TensorProto.INT32 else None
            ends = [min(end, 2**31 - 1) for end in ends] if dtype else ends
            node.input[2] = self._constant(np.array(ends, dtype or np.int64))

    def _resize(self, node: onnx.NodeProto, data: Value) -> None:
        """Let sizes that keep the dimension follow it."""
        if len(node.input) < 4 or any(a.name == "axes" for a in node.attribute):
            return
        sizes = self.known.get(node.input[3])
        if sizes is None or sizes.old_values is None or _differ(sizes):
            return
        entries = [int(value) for value in sizes.old_values]
        pieces = {
            axis: self._size_of(node.input[0], axis, 1, 1)
            for axis in data.changed
            if (self._is_batch or axis < 2) and entries[axis] == data.old[axis]
        }
        if pieces:
            self.changed.append(
                f"{self._label(node)}: sizes {entries} became {_shown(entries, pieces)}"
            )
            node.input[3] = self._joined(entries, pieces, "")

    def _split(self, node: onnx.NodeProto, number: int, data: Value) -> None:
        """Let a split into equal parts make equal parts of any size."""
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0) % len(data.old)
        if axis not in data.changed:
            return
        sizes = next((list(a.ints) for a in node.attribute if a.name == "split"), None)
        sizes_value = self.known.get(node.input[1]) if len(node.input) > 1 else None
        if (
            sizes_value is not None
            and sizes_value.old_values is not None
            and not _differ(sizes_value)
        ):
            sizes = [int(value) for value in sizes_value.old_values]
        if self._is_batch:
            raise self._refused(node, number, "it splits the dimension"
                                + ("" if sizes is None else f" into {sizes}"))  # fmt: skip
        if sizes is None:
            return
        if len(set(sizes)) > 1:
            raise self._refused(
                node, number, f"it splits the dimension into {sizes}: which of these grow with it"
                " is not known"
            )  # fmt: skip
        self.changed.append(f"{self._label(node)}: split {sizes} became equal parts")
        kept = [a for a in node.attribute if a.name not in ("split", "num_outputs")]
        if self._imports.get("", 1) >= _PARTS_SINCE:
            kept.append(helper.make_attribute("num_outputs", len(node.output)))
        set_items(node.attribute, kept)
        del node.input[1:]

    def _squeeze(self, node: onnx.NodeProto, number: int, data: Value) -> None:
        """Name the axes that are taken away where all of 1 were meant."""
        if len(node.input) > 1 or any(a.name == "axes" for a in node.attribute):
            return
        axes = [axis for axis, size in enumerate(data.old) if size == 1]
        if any(axis in axes for axis in data.changed):
            raise self._refused(node, number, "it takes the dimension away, whose size was 1")

    def _states(self, node: onnx.NodeProto, data: Value) -> None:
        """Give the states before the first step as many items as the data has."""
        layout = next((a.i for a in node.attribute if a.name == "layout"), 0)
        axis = 0 if layout else 1
        if axis not in data.changed:
            return
        for index in (*_STATES[node.op_type], 4):
            place = 0 if index == 4 else axis
            if len(node.input) > index and node.input[index]:
                self._repeat(node, index, place, node.input[0], axis)

    def _spread(self, node: onnx.NodeProto) -> bool:
        """Repeat inputs that hold the old size beside others that follow the dimension.

        Returns:
            Whether any was.
        """
        inputs = [self.known.get(name) for name in node.input]
        aligned: dict[int, tuple[int, int]] = {}  # axis from the right -> input, its size
        for index, value in enumerate(inputs):
            for axis in value.changed if value is not None else ():
                assert value is not None
                aligned.setdefault(axis - len(value.old), (index, value.old[axis]))
        joined = None
        if node.op_type == "Concat":
            rank = len(next((v.old for v in inputs if v is not None), ()))
            joined = next((a.i for a in node.attribute if a.name == "axis"), 1)
            joined = joined - rank if joined >= 0 else joined
        elif node.op_type not in _BROADCASTING:
            return False
        is_product = node.op_type == "MatMul"
        done = False
        for index, value in enumerate(inputs):
            if value is None:
                continue
            for axis, (source, size) in aligned.items():
                place = len(value.old) + axis
                if axis == joined or place < 0 or place in value.changed:
                    continue
                if is_product and axis >= -2:
                    continue
                if value.old[place] != size or (size == 1 and joined is None):
                    continue
                other = inputs[source]
                assert other is not None
                self._repeat(node, index, place, node.input[source], len(other.old) + axis)
                done = True
        return done

    def _repeat(
        self, node: onnx.NodeProto, index: int, axis: int, source: str, source_axis: int
    ) -> None:
        """Repeat an input along an axis as often as another value has items.

        Raises:
            ActivityError: Its items differ, so that there are none for other sizes.
        """
        name = node.input[index]
        value, other = self.known.get(name), self.known[source]
        if value is None or axis in value.changed:
            return
        if value.old[axis] != 1 and value.old[axis] != other.old[source_axis]:
            return
        if value.old[axis] > 1 and not self._is_uniform(name, value, axis):
            raise ActivityError(
                f"{clip(visible(name), 80, keep='middle')!r}, an input of {self._label(node)}, has"
                f" {value.old[axis]} items along the dimension that differ: there are none for"
                " other sizes"
            )
        if self._imports.get("", 1) < 8:
            raise ActivityError(f"{self._label(node)} needs Expand, which opset 8 has")
        label = self._label(node)
        if value.old[axis] > 1:
            first = self._name(f"{name}_first")
            self._add("Gather", [name, self._constant(np.array([0], np.int64))], [first], axis=axis)
        else:
            first = name
        entries = [1] * len(value.old)
        target = self._joined(entries, {axis: self._size_of(source, source_axis, 1, 1)}, "")
        output = self._name(f"{name}_repeated")
        self._add("Expand", [first, target], [output])
        sizes = list(value.old)
        sizes[axis] = other.new[source_axis]
        self.known[output] = Value(value.dtype, value.old, tuple(sizes))
        node.input[index] = output
        self.changed.append(f"{label}: {shortened(name)} is repeated")

    def _is_uniform(self, name: str, value: Value, axis: int) -> bool:
        values = value.old_values if value.old_values is not None else self._read(name)
        if values is None:
            return False
        values = values.reshape(value.old)
        return bool((values == values.take([0], axis)).all())

    # -- what stands in the way

    def _require_inside(self, node: onnx.NodeProto, number: int, data: Value) -> None:
        is_flat = self._imports.get("", 1) < 13
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1 if is_flat else -1)
        axis %= max(len(data.old), 1)
        mixed = [
            changed_axis
            for changed_axis in data.changed
            if (changed_axis >= axis if is_flat else changed_axis == axis)
        ]
        if mixed and self._is_batch:
            raise self._refused(node, number, "it computes along the dimension")

    def _require_kept(
        self,
        node: onnx.NodeProto,
        number: int,
        inputs: Sequence[Value | None],
        outputs: Sequence[Value | None],
    ) -> None:
        known = [value for value in outputs if value is not None]
        if not known or any(value.changed for value in known):
            return
        sizes = next(v for v in inputs if v is not None and v.changed)
        raise self._refused(
            node, number, f"it takes the dimension away: {_text(sizes.old)} becomes"
            f" {_text(known[0].old)} at any size"
        )  # fmt: skip

    def _refused(self, node: onnx.NodeProto, number: int, why: str) -> ActivityError:
        label = self._label(node) if node.name or node.output else f"node {number}"
        return ActivityError(f"the dimension cannot be made dynamic: {label}: {why}")

    def _label(self, node: onnx.NodeProto) -> str:
        name = node.name or next((name for name in node.output if name), "")
        return f"{visible(node.op_type)} {clip(visible(name), 80, keep='middle')}"

    # -- new nodes

    def _size_of(self, name: str, axis: int, times: int, over: int) -> str:
        """Return a value with one element: a size, times a whole number, over another."""
        shape, size = self._name(f"{name}_shape"), self._name(f"{name}_size")
        self._add("Shape", [name], [shape])
        self._add("Gather", [shape, self._constant(np.array([axis], np.int64))], [size], axis=0)
        common = math.gcd(times, over)
        for op_type, factor in (("Mul", times // common), ("Div", over // common)):
            if factor != 1:
                product = self._name(f"{name}_size")
                self._add(op_type, [size, self._constant(np.array([factor], np.int64))], [product])
                size = product
        return size

    def _joined(self, entries: Sequence[int], pieces: Mapping[int, str], source: str) -> str:
        """Return a value of entries, some of them other values; others are those of a source."""
        parts: list[str] = []
        run: list[int] = []

        def flush() -> None:
            if run and source:
                part = self._name(f"{source}_part")
                self._add("Gather", [source, self._constant(np.array(run, np.int64))], [part],
                          axis=0)  # fmt: skip
                parts.append(part)
            elif run:
                parts.append(self._constant(np.array([entries[i] for i in run], np.int64)))
            run.clear()

        for place in range(len(entries)):
            if place in pieces:
                flush()
                parts.append(pieces[place])
            else:
                run.append(place)
        flush()
        shape = self._name("shape")
        self._add("Concat", parts, [shape], axis=0)
        return shape

    def _constant(self, values: Values) -> str:
        name = self._name("size")
        tensor = numpy_helper.from_array(values, name)
        if self._ir >= _SINCE_IR:
            self._weights.append(tensor)
        else:  # initializers were inputs then
            tensor.name = ""
            self._before.append(helper.make_node("Constant", [], [name], name, value=tensor))
        self.known[name] = Value(tensor.data_type, values.shape, values.shape, values, values)
        return name

    def _add(self, op_type: str, inputs: list[str], outputs: list[str], **about: Any) -> None:
        node = helper.make_node(op_type, inputs, outputs, outputs[0], **about)
        self._before.append(node)
        before, after = self._infer(node, new=False), self._infer(node, new=True)
        if before and after and before[0] is not None and after[0] is not None:
            self.known[outputs[0]] = Value(
                before[0][0], before[0][1], after[0][1], before[0][2], after[0][2]
            )

    def _name(self, base: str) -> str:
        number, name = 1, f"{base}_dld"
        while name in self._names:
            number += 1
            name = f"{base}_dld{number}"
        self._names.add(name)
        return name


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _used(graph: onnx.GraphProto) -> set[str]:
    return {
        name
        for body in _graphs(graph)
        for name in (
            *(name for node in body.node for name in node.input),
            *(info.name for info in body.output),
        )
    }


def _values(tensor: onnx.TensorProto) -> Values | None:
    """Return the values of a small tensor, None for another or one that is elsewhere."""
    if math.prod(tensor.dims) > _MOST_VALUES or tensor.data_location == tensor.EXTERNAL:
        return None
    try:
        return numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None  # cut out


def _reference(node: onnx.NodeProto, inputs: Sequence[Values | None], version: int) -> list[Values]:
    from onnx.reference import ReferenceEvaluator

    names = [name for name in node.input if name]
    feeds = {name: array for name, array in zip(node.input, inputs, strict=False) if name}
    graph = helper.make_graph(
        [node], "one",
        [helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(names)],
        [helper.make_empty_tensor_value_info(name) for name in node.output if name],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)])
    try:
        with np.errstate(all="ignore"):
            return [np.asarray(array) for array in ReferenceEvaluator(model).run(None, feeds)]
    # The seam: what the reference does not know is left to inference.
    except Exception:  # noqa: BLE001
        return []


class _SizedValue(NamedTuple):
    """What is known of a value at one size."""

    dtype: int
    sizes: Sizes
    values: Values | None = None
    wraps: tuple[str, ...] = ()


def _sized_value(proto: onnx.TypeProto | None) -> _SizedValue | None:
    if proto is None:
        return None
    tensor, wraps = _inner(proto)
    if not tensor.HasField("shape") or any(not d.HasField("dim_value") for d in tensor.shape.dim):
        return None
    return _SizedValue(tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim), wraps=wraps)


def _inner(proto: onnx.TypeProto) -> tuple[Any, tuple[str, ...]]:
    """Return the tensor type in sequences and optionals, and these, the outermost first."""
    wraps: list[str] = []
    while (kind := proto.WhichOneof("value")) in ("sequence_type", "optional_type"):
        wraps.append(str(kind).removesuffix("_type"))
        proto = getattr(proto, str(kind)).elem_type
    return proto.tensor_type, tuple(wraps)


def _typed(value: Value, sizes: Sizes) -> onnx.TypeProto:
    proto = helper.make_tensor_type_proto(value.dtype, sizes)
    for kind in reversed(value.wraps):
        make = helper.make_sequence_type_proto if kind == "sequence" else (
            helper.make_optional_type_proto
        )  # fmt: skip
        proto = make(proto)
    return proto


def _without(sizes: Sizes, axis: int) -> Sizes:
    axis %= len(sizes)
    return (*sizes[:axis], *sizes[axis + 1 :])


def _differ(value: Value) -> bool:
    """Return whether the elements of a value depend on the dimension."""
    old, new = value.old_values, value.new_values
    if old is None or new is None:
        return old is not new
    return old.shape != new.shape or not np.array_equal(old, new)


def _inherited(value: Value, inputs: Sequence[Value | None]) -> dict[int, int]:
    """Return where in the axes of an output the dimension is, as in the input that is alike."""
    outer: dict[int, int] = {}
    for axis in value.changed:
        pair = value.old[axis], value.new[axis]
        for other in inputs:
            for place, repeated in (other.outer if other is not None else {}).items():
                assert other is not None
                if (other.old[place], other.new[place]) == pair:
                    outer[axis] = repeated
    return outer


def _shown(entries: Sequence[int], pieces: Mapping[int, str]) -> list[int | str]:
    return ["size" if place in pieces else entry for place, entry in enumerate(entries)]


def _text(sizes: Sizes) -> str:
    return "x".join(map(str, sizes)) or "a scalar"


def _reason(text: str) -> str:
    """Return the sentence of an error of inference."""
    line = text.strip().splitlines()[0] if text.strip() else "inference fails"
    return clip(visible(line.split("] ")[-1]), 160)
