"""Fixed dimensions of a model made dynamic, with the constants that hold their old size.

Each node is evaluated twice (:mod:`dld_tui.core.model.shapes`): with the old sizes, and with names
in their place, all at once. An element of a shape that has become a polynomial of the names is
what a constant must follow; a node whose demands do not hold any more, or that would spread the new
size over other data, holds the old one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dld_tui.core.conversion.dimensions import inner_type
from dld_tui.core.conversion.followed import (
    Followed,
    by_axis,
    depend,
    inherited,
    sample_sizes,
    shape_only,
    value_of_tensor,
)
from dld_tui.core.conversion.regrouping import Factor, Sizes, regrouped
from dld_tui.core.conversion.size_nodes import SizeNodes, Values
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.proto_fields import set_items
from dld_tui.core.model.document.locations import names_used, weight_names
from dld_tui.core.model.operators.categories import BROADCASTING
from dld_tui.core.model.shapes.call import Call, Demands
from dld_tui.core.model.shapes.evaluation import MALFORMED
from dld_tui.core.model.shapes.rules import rule_of
from dld_tui.core.model.shapes.size import (
    Size,
    name_of,
    names_in,
    product,
    symbol,
)
from dld_tui.core.model.shapes.value import NOTHING, Dims, Value, of_array
from dld_tui.core.text import clip, shortened, visible
from dld_tui.core.types import SCAN_SINCE, plain_domain

_END = 2**63 - 1
_LARGEST_SIZE = 1 << 24
"""Ends of slices from there on stand for the end, whatever the size."""
_ONE_TO_ONE = frozenset(("Abs", "Cast", "Exp", "Identity", "Neg", "Not", "Relu", "Sigmoid", "Tanh"))
_PARTS_SINCE = 18
"""The version from which Split is told how many parts there are."""
_STATES = {"LSTM": (5, 6), "GRU": (5,), "RNN": (5,)}
"""Inputs with the state before the first step: directions x batch x hidden."""
_ASIDE = frozenset(["Shape", "Size", "Constant", "DynamicQuantizeLinear"])
"""Operators that may have an output without the dimension."""


def free_dimensions(
    model: onnx.ModelProto,
    axes: Mapping[tuple[str, int], str],
    shapes: Mapping[str, Sizes],
    *,
    batches: Collection[str] = (),
    read: Callable[[str], Values | None],
    small: onnx.ModelProto,
) -> list[str]:
    """Make fixed dimensions of some inputs dynamic, in place.

    Args:
        model: The model, whose payloads may be cut out.
        axes: The new name of each axis of an input.
        shapes: A shape of each input that the model takes.
        batches: Names of dimensions of which the items must not depend on each other.
        read: Returns the values of a weight, if they can be had.
        small: The same model with the payloads of small tensors.

    Returns:
        Lines on the nodes that were changed or added to. Untrusted text.

    Raises:
        ActivityError: A node or a weight stands in the way.
    """
    olds = {new: shapes[name][axis] for (name, axis), new in axes.items()}
    walk = _Walk(model, olds, frozenset(batches), read)
    walk.take_weights(small.graph)
    weights = weight_names(model.graph)
    for info in model.graph.input:
        if info.name in shapes and info.name not in weights:
            before = tuple(shapes[info.name])
            after = tuple(
                symbol(axes[info.name, axis]) if (info.name, axis) in axes else size
                for axis, size in enumerate(before)
            )
            walk.take_input(info, before, after)
    walk.graph(model.graph)
    walk.drop_unused(model.graph)
    for info in model.graph.input:
        for axis, dim in enumerate(inner_type(info.type)[0].shape.dim):
            if (info.name, axis) in axes:
                dim.Clear()
                dim.dim_param = axes[info.name, axis]
    walk.declare(model.graph)
    return walk.changed


def declare_outputs(model: onnx.ModelProto, small: onnx.ModelProto) -> None:
    """Declare the sizes of outputs that follow from those of inputs, where all of these are fixed.

    Args:
        model: The model, which is changed.
        small: The same model with the payloads of small tensors.
    """
    walk = _Walk(model, {}, frozenset(), lambda _: None)
    walk.take_weights(small.graph)
    for info in model.graph.input:
        tensor, _ = inner_type(info.type)
        if not tensor.HasField("shape") or any(d.dim_value <= 0 for d in tensor.shape.dim):
            return
        sizes = tuple(dim.dim_value for dim in tensor.shape.dim)
        if info.name not in walk.known:
            walk.take_input(info, sizes, sizes)
    walk.graph(model.graph)
    for info in model.graph.output:
        value, dims = walk.known.get(info.name), inner_type(info.type)[0].shape.dim
        if value is not None and len(dims) == len(value.sizes):
            for dim, size in zip(dims, value.sizes, strict=True):
                dim.dim_value = size


_Saved: TypeAlias = (
    "tuple[dict[str, Followed], list[str], list[onnx.NodeProto], int, onnx.GraphProto]"
)


class _Walk:
    def __init__(
        self,
        model: onnx.ModelProto,
        olds: Mapping[str, int],
        batches: frozenset[str],
        read: Callable[[str], Values | None],
    ) -> None:
        self.known: dict[str, Followed] = {}
        self.changed: list[str] = []
        self._olds, self._batches, self._read = olds, batches, read
        self._sample = sample_sizes(olds, batches)
        self._imports = {plain_domain(e.domain): e.version for e in model.opset_import}
        names = {name for graph in _graphs(model.graph) for node in graph.node
                 for name in (*node.input, *node.output, node.name)}  # fmt: skip
        names |= {tensor.name for tensor in model.graph.initializer}
        self._new = SizeNodes(model, names, self._take_values, self._follow)
        self._used = _used(model.graph)
        self._constants: dict[str, onnx.TensorProto] = {}
        self._producers: dict[str, onnx.NodeProto] = {}
        """Of values, to see what they consist of."""

    def take_weights(self, graph: onnx.GraphProto) -> None:
        for tensor in (weight for body in _graphs(graph) for weight in body.initializer):
            if tensor.name not in self.known:
                self._take_constant(tensor.name, tensor)

    def _take_constant(self, name: str, tensor: onnx.TensorProto) -> None:
        value = value_of_tensor(tensor)
        self.known[name] = Followed(value, value)
        self._constants[name] = tensor

    def _take_values(self, name: str, values: Values) -> None:
        value = of_array(values)
        self.known[name] = Followed(value, value)

    def _follow(self, node: onnx.NodeProto) -> None:
        """Take note of a node that was added."""
        (before, *_), _ = self._made(node, new=False)
        (after, *_), _ = self._made(node, new=True)
        self._note(node, [Followed(before, after)])

    def take_input(self, info: onnx.ValueInfoProto, before: Sizes, after: Dims) -> None:
        is_sequence = "sequence" in inner_type(info.type)[1]
        self.known[info.name] = Followed(
            Value(before, is_sequence=is_sequence), Value(after, is_sequence=is_sequence)
        )
        for axis, size in enumerate(after):
            if not is_sequence:
                for name in names_in(size):
                    self._new.sources.setdefault(name, (info.name, axis))

    def graph(self, graph: onnx.GraphProto) -> None:
        nodes: list[onnx.NodeProto] = []
        outside = self._new.before
        for number, node in enumerate(graph.node):
            self._new.before = []
            self._node(node, number)
            nodes += [*self._new.before, node]
        self._new.before = outside
        if len(nodes) != len(graph.node):
            set_items(graph.node, nodes)

    def declare(self, graph: onnx.GraphProto) -> None:
        """Declare the shapes of outputs and values; what is not known of values is dropped."""
        for info in graph.output:
            self._declare(info)
        declared = [info for info in graph.value_info if self._declare(info)]
        set_items(graph.value_info, declared)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    for info in attribute.g.input:
                        self._declare(info)
                    self.declare(attribute.g)

    def _declare(self, info: onnx.ValueInfoProto) -> bool:
        shape = inner_type(info.type)[0].shape
        value = self.known.get(info.name)
        if value is None or len(shape.dim) != len(value.sizes):
            for dim in shape.dim:
                if dim.HasField("dim_value"):
                    dim.Clear()
            return False
        for axis in value.changed:
            shape.dim[axis].Clear()
            named = name_of(value.dims[axis])
            if named in self._olds:
                shape.dim[axis].dim_param = named
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
        if node.op_type == "Constant" and node.attribute and node.attribute[0].name == "value":
            self._take_constant(node.output[0], node.attribute[0].t)
            return
        if not depend(inputs):
            outputs, _ = self._made(node, new=False)
            self._note(node, [Followed(value, value) for value in outputs])
            return
        mended = self._fix_sizes(node, number, inputs)
        outputs_followed = mended if mended is not None else self._inferred(node, number)
        if node.op_type not in _ASIDE:
            self._require_kept(node, number, inputs, outputs_followed)
        self._note(node, outputs_followed, inputs)

    def _note(
        self,
        node: onnx.NodeProto,
        outputs: Sequence[Followed],
        inputs: Sequence[Followed | None] = (),
    ) -> None:
        for name, value in zip(node.output, outputs, strict=False):
            self.known.pop(name, None)
            self._producers[name] = node
            if name and value.old.is_known and value.new.is_known:
                if not value.factors:
                    value.factors = inherited(value, inputs)
                self.known[name] = value

    def _made(self, node: onnx.NodeProto, *, new: bool) -> tuple[list[Value], str]:
        """Return what a node makes with the old sizes or the names, and what is in the way."""
        domain = plain_domain(node.domain)
        rule = rule_of(domain, node.op_type)
        if rule is None:
            return [], ""
        inputs = [
            NOTHING if (value := self.known.get(name)) is None
            else value.new if new else value.old
            for name in node.input
        ]  # fmt: skip
        demands = Demands(sample=self._sample)
        call = Call(node, inputs, demands, self._imports.get(domain, 1))
        try:
            with np.errstate(all="ignore"):
                outputs = list(rule(call))
        except MALFORMED:
            return [], "it does not take another size"
        return outputs, demands.failed[0].text if demands.failed else ""

    def _branches(self, node: onnx.NodeProto) -> None:
        branches = [attribute.g for attribute in node.attribute if attribute.HasField("g")]
        for index, name in enumerate(node.output):
            values = [self.known.get(branch.output[index].name) for branch in branches]
            first = values[0]
            if first is None or any(
                other is None or not self._alike(other, first) for other in values
            ):
                # Only one branch is taken: the other need not fit.
                known = [value for value in values if value is not None]
                if len(known) != 1:
                    continue
                first = known[0]
            self.known[name] = shape_only(first)

    def _alike(self, first: Followed, second: Followed) -> bool:
        return first.sizes == second.sizes and self._same(first.dims, second.dims)

    def _same(self, first: Dims, second: Dims) -> bool:
        """Return whether two shapes are equal, as far as can be said."""
        demands = Demands(sample=self._sample)
        return len(first) == len(second) and all(
            demands.is_equal(*pair) for pair in zip(first, second, strict=True)
        )

    def _repeated(
        self, node: onnx.NodeProto, number: int, inputs: Sequence[Followed | None]
    ) -> None:
        """Follow the dimensions through the body of a loop, which runs with one size all the time.

        Where sizes change from one iteration to the next, nothing is known of what it makes.
        """
        body = next((a.g for a in node.attribute if a.HasField("g")), None)
        if body is None:
            raise ActivityError(f"{self._label(node)} has no body")
        captured = [self.known.get(name) for name in _used(body)]
        if not depend([*inputs, *captured]):
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
        return (
            dict(self.known),
            [*self.changed],
            [*self._new.before],
            len(self._new.weights),
            copied,
        )

    def _restore(self, body: onnx.GraphProto, saved: _Saved) -> None:
        self.known, self.changed, self._new.before = dict(saved[0]), [*saved[1]], [*saved[2]]
        del self._new.weights[saved[3] :]
        body.CopyFrom(saved[4])

    def _with_first_states(
        self, node: onnx.NodeProto, inputs: Sequence[Followed | None], names: Sequence[str]
    ) -> bool:
        """Give what a loop begins with as many items as there are; return whether any was."""
        sources = {
            value.sizes[axis]: (name, axis) for name in reversed(names)
            if (value := self.known.get(name)) is not None
            for axis in value.changed
            if name_of(value.dims[axis]) in self._olds
        }  # fmt: skip
        first = 2 if node.op_type == "Loop" else 0
        is_changed = False
        for index, value in enumerate(inputs):
            if index < first or value is None or value.changed:
                continue
            name = node.input[index]
            for axis, size in enumerate(value.sizes):
                source = sources.get(size) if size > 1 else None
                if source is not None and self._is_uniform(name, axis):
                    self._repeat(node, index, axis, *source)
                    is_changed = True
                    break
        return is_changed

    def _iterated(
        self,
        node: onnx.NodeProto,
        number: int,
        body: onnx.GraphProto,
        inputs: Sequence[Followed | None],
    ) -> None:
        states, slices = self._body_inputs(node, inputs)
        if states is None:
            return
        saved = self._saved(body)
        for info, value in zip(body.input, (*states, *slices), strict=False):
            self.known.pop(info.name, None)
            if value is not None:
                self.known[info.name] = shape_only(value)
        self.graph(body)
        first = 2 if node.op_type == "Loop" else 0
        ends = body.output[1:] if node.op_type == "Loop" else body.output
        results = [self.known.get(info.name) for info in ends]
        state_values = states[first:]
        for before, after, info in zip(state_values, results, ends, strict=False):
            if before is None or after is None:
                continue
            if before.sizes != after.sizes:
                self._restore(body, saved)
                return
            if not self._same(before.dims, after.dims):
                raise self._refused(
                    node, number, f"its state {visible(info.name)} begins with a fixed size:"
                    f" {_text(before.dims)}, and becomes {_text(after.dims)}"
                )  # fmt: skip
        length = self._length(node, inputs)
        for index, name in enumerate(node.output):
            value = results[index] if index < len(results) else None
            if not name or value is None:
                continue
            if index < len(state_values):
                self.known[name] = shape_only(value)
            elif length is not None:
                self.known[name] = Followed(
                    Value((length.old, *value.sizes)), Value((length.size, *value.dims))
                )

    def _body_inputs(
        self, node: onnx.NodeProto, inputs: Sequence[Followed | None]
    ) -> tuple[Sequence[Followed | None] | None, Sequence[Followed | None]]:
        """Return what a body takes in every iteration, and one slice of what it goes through."""
        if node.op_type == "Loop":
            return [*[Followed(Value(()), Value(()))] * 2, *inputs[2:]], []
        about = {a.name: a for a in node.attribute}
        if self._imports.get("", 1) < SCAN_SINCE or "scan_output_axes" in about:
            return None, []
        count = about["num_scan_inputs"].i
        states, through = inputs[: len(inputs) - count], inputs[len(inputs) - count :]
        axes = list(about["scan_input_axes"].ints) if "scan_input_axes" in about else [0] * count
        return states, [
            None if value is None
            else Followed(Value(_without(value.sizes, axis)), Value(_without(value.dims, axis)))
            for value, axis in zip(through, axes, strict=True)
        ]  # fmt: skip

    def _length(self, node: onnx.NodeProto, inputs: Sequence[Followed | None]) -> Factor | None:
        """Return how often a Scan runs its body; of a Loop nobody knows before."""
        last = inputs[-1] if node.op_type == "Scan" and inputs else None
        if last is None:
            return None
        axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [0])
        return Factor(last.sizes[axes[-1]], last.dims[axes[-1]])

    def _inferred(self, node: onnx.NodeProto, number: int) -> list[Followed]:
        """Return the outputs; inputs that hold an old size are repeated where that helps."""
        before, problem = self._made(node, new=False)
        if problem or not before:
            return []
        after, problem = self._made(node, new=True)
        if problem and self._spread(node):
            after, problem = self._made(node, new=True)
        if problem:
            raise self._refused(node, number, problem)
        outputs = []
        for old, new in zip(before, after, strict=False):
            if old.dims is not None and new.dims is not None and len(old.dims) != len(new.dims):
                raise self._refused(node, number, "the rank of its output would change")
            outputs.append(Followed(old, new))
        return outputs

    def _is_batch(self, size: Size) -> bool:
        """Return whether items along an axis must not depend on each other."""
        return bool(names_in(size) & self._batches)

    def _fix_sizes(
        self, node: onnx.NodeProto, number: int, inputs: Sequence[Followed | None]
    ) -> list[Followed] | None:
        """Mend what would work at another size, but wrongly; return the outputs where known."""
        if plain_domain(node.domain):
            return None
        data = inputs[0] if inputs else None
        if node.op_type in ("Concat", "Gemm"):  # the rule of Gemm does not look at what it adds
            self._spread(node)
        elif data is None or not data.changed:
            return None
        elif node.op_type == "Reshape":
            return self._reshape(node, number, data)
        elif node.op_type == "Flatten":
            return self._flatten(node, data)
        elif node.op_type == "Expand":
            self._expand(node, data)
        elif node.op_type == "Slice":
            self._slice(node, number, data)
        elif node.op_type in ("Resize", "Upsample"):
            self._resize(node, data)
        elif node.op_type == "Split":
            self._split(node, number, data)
        elif node.op_type == "Squeeze":
            self._squeeze(node, number, data)
        elif node.op_type in _STATES:
            self._states(node, data)
        elif node.op_type in ("Softmax", "LogSoftmax", "Hardmax"):
            self._require_inside(node, number, data)
        return None

    def _flatten(self, node: onnx.NodeProto, data: Followed) -> list[Followed] | None:
        (old, *_), _ = self._made(node, new=False)
        (new, *_), _ = self._made(node, new=True)
        groups = regrouped(self._parts(data), old.dims or ())
        return [Followed(old, new, by_axis(groups or ()))]

    def _parts(self, data: Followed) -> list[tuple[Factor, ...]]:
        return [data.parts(axis) for axis in range(len(data.sizes))]

    def _reshape(self, node: onnx.NodeProto, number: int, data: Followed) -> list[Followed] | None:
        before, _ = self._made(node, new=False)
        if not before or not before[0].is_known:
            return None
        results, problem = self._made(node, new=True)
        after = results[0] if results and results[0].is_known and not problem else None
        old = before[0]
        target = self.known.get(node.input[1]) if len(node.input) > 1 else None
        is_computed = target is not None and target.differs
        groups = regrouped(self._parts(data), old.dims or ())
        if groups is None:
            if after is not None and is_computed:
                return [Followed(old, after)]
            raise self._refused(
                node, number,
                f"from {_text(data.sizes)} to {_text(old.dims or ())} it mixes the dimension with"
                " others",
            )  # fmt: skip
        wanted = tuple(product(part.size for part in group) for group in groups)
        value = Followed(old, Value(wanted, source=old.source), by_axis(groups))
        if after is not None and after.dims is not None:
            if self._same(after.dims, wanted):
                return [value]
            if is_computed and self._same((product(after.dims),), (product(data.dims),)):
                return [Followed(old, after)]
        if target is None or target.old.values() is None:
            return None
        entries = [int(value) for value in target.old.values() or ()]
        self._retarget(node, entries, target, data, value)
        return [value]

    def _retarget(
        self,
        node: onnx.NodeProto,
        entries: list[int],
        target: Followed,
        data: Followed,
        value: Followed,
    ) -> None:
        """Let a Reshape make the shape that it should at any size."""
        allow_zero = any(a.name == "allowzero" and a.i for a in node.attribute)
        was = list(entries)
        pieces: dict[int, str] = {}
        is_constant = not target.differs
        computed = None if is_constant else target.new.values()
        for place in value.changed:
            if entries[place] == -1:
                continue
            if computed is not None and computed[place] == value.dims[place]:
                continue
            here = place < len(data.dims) and data.dims[place] == value.dims[place]
            if is_constant and here and not allow_zero:
                entries[place] = 0
            elif is_constant and -1 not in entries:
                entries[place] = -1
            else:
                pieces[place] = self._new.computed(value.dims[place], node.input[0], data)
        self.changed.append(f"{self._label(node)}: {was} became {_shown(entries, pieces)}")
        if not pieces:
            node.input[1] = self._new.constant(np.array(entries, np.int64))
        else:
            source = "" if is_constant else node.input[1]
            node.input[1] = self._new.joined(entries, pieces, source)

    def _expand(self, node: onnx.NodeProto, data: Followed) -> None:
        """Let a size in the target be 1 where the data already has the dimension."""
        target = self.known.get(node.input[1])
        if target is None or target.constant is None:
            return
        entries = [int(value) for value in target.constant]
        shift = len(entries) - len(data.sizes)
        was = list(entries)
        for axis in data.changed:
            if axis + shift >= 0 and entries[axis + shift] == data.sizes[axis]:
                entries[axis + shift] = 1
        if entries != was:
            self.changed.append(f"{self._label(node)}: {was} became {entries}")
            node.input[1] = self._new.constant(np.array(entries, np.int64))

    def _slice(self, node: onnx.NodeProto, number: int, data: Followed) -> None:
        """Let a slice that takes all of a dimension take all of it at any size."""
        attributes = {a.name: list(a.ints) for a in node.attribute}
        parts: list[list[int] | None] = []
        for index, key in enumerate(("starts", "ends", "axes", "steps")):
            place = index + 1
            value = self.known.get(node.input[place]) if len(node.input) > place else None
            if value is not None and value.constant is not None:
                parts.append([int(element) for element in value.constant])
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
            axis %= len(data.sizes)
            if axis not in data.changed:
                continue
            size = data.sizes[axis]
            selected = range(size)[slice(starts[index], ends[index], steps[index])]
            if selected == range(size):
                if 0 <= ends[index] < _LARGEST_SIZE:
                    ends[index] = _END
            elif self._is_batch(data.dims[axis]) and sorted(selected) != [*range(size)]:
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
            tensor = self._constants.get(node.input[2])
            is_narrow = tensor is not None and tensor.data_type == onnx.TensorProto.INT32
            ends = [min(end, 2**31 - 1) for end in ends] if is_narrow else ends
            kind = np.int32 if is_narrow else np.int64
            node.input[2] = self._new.constant(np.array(ends, kind))

    def _resize(self, node: onnx.NodeProto, data: Followed) -> None:
        """Let sizes that keep a dimension follow it."""
        if len(node.input) < 4 or any(a.name == "axes" for a in node.attribute):
            return
        sizes = self.known.get(node.input[3])
        if sizes is None or sizes.constant is None:
            return
        entries = [int(value) for value in sizes.constant]
        pieces = {
            axis: self._new.size_of(node.input[0], axis, 1, 1)
            for axis in data.changed
            if (self._is_batch(data.dims[axis]) or axis < 2) and entries[axis] == data.sizes[axis]
        }
        if pieces:
            self.changed.append(
                f"{self._label(node)}: sizes {entries} became {_shown(entries, pieces)}"
            )
            node.input[3] = self._new.joined(entries, pieces, "")

    def _split(self, node: onnx.NodeProto, number: int, data: Followed) -> None:
        """Let a split into equal parts make equal parts of any size."""
        axis = next((a.i for a in node.attribute if a.name == "axis"), 0) % len(data.sizes)
        if axis not in data.changed:
            return
        sizes = next((list(a.ints) for a in node.attribute if a.name == "split"), None)
        given = self.known.get(node.input[1]) if len(node.input) > 1 else None
        if given is not None and given.constant is not None:
            sizes = [int(value) for value in given.constant]
        if self._is_batch(data.dims[axis]):
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

    def _squeeze(self, node: onnx.NodeProto, number: int, data: Followed) -> None:
        """Refuse to take a dimension away where all of 1 were meant."""
        if len(node.input) > 1 or any(a.name == "axes" for a in node.attribute):
            return
        if any(data.sizes[axis] == 1 for axis in data.changed):
            raise self._refused(node, number, "it takes the dimension away, whose size was 1")

    def _states(self, node: onnx.NodeProto, data: Followed) -> None:
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
        is_product = node.op_type in ("MatMul", "Gemm")
        joined = None
        if node.op_type == "Concat":
            rank = len(next((v.sizes for v in inputs if v is not None), ()))
            joined = next((a.i for a in node.attribute if a.name == "axis"), 1)
            joined = joined - rank if joined >= 0 else joined
        elif not is_product and node.op_type not in BROADCASTING:
            return False
        aligned: dict[int, tuple[int, int]] = {}  # axis from the right -> input, its axis
        if node.op_type == "Gemm":  # rows and columns of the product, to which C is added
            for index, key, which in ((0, "transA", 0), (1, "transB", 1)):
                value = inputs[index]
                axis = which ^ next((a.i for a in node.attribute if a.name == key), 0)
                if value is not None and axis in value.changed:
                    aligned[which - 2] = index, axis
        else:
            for index, value in enumerate(inputs):
                for axis in value.changed if value is not None else ():
                    assert value is not None
                    aligned.setdefault(axis - len(value.sizes), (index, axis))
        is_changed = False
        for index, value in enumerate(inputs):
            if value is None or (node.op_type == "Gemm" and index < 2):
                continue
            for axis, (source, source_axis) in aligned.items():
                place = len(value.sizes) + axis
                if axis == joined or place < 0 or place in value.changed:
                    continue
                if is_product and index < 2 and axis >= -2:
                    continue
                other = inputs[source]
                assert other is not None
                size = other.sizes[source_axis]
                if value.sizes[place] != size or (size == 1 and joined is None):
                    continue
                self._repeat(node, index, place, node.input[source], source_axis)
                is_changed = True
        return is_changed

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
        if value.sizes[axis] != 1 and value.sizes[axis] != other.sizes[source_axis]:
            return
        if not self._is_uniform(name, axis):
            raise ActivityError(
                f"{clip(visible(name), 80, keep='middle')!r}, an input of {self._label(node)}, has"
                f" {value.sizes[axis]} items along the dimension that differ: there are none for"
                " other sizes"
            )
        if self._imports.get("", 1) < 8:
            raise ActivityError(f"{self._label(node)} needs Expand, which opset 8 has")
        label = self._label(node)
        if value.sizes[axis] > 1:
            first = self._new.name(f"{name}_first")
            self._new.add(
                "Gather", [name, self._new.constant(np.array([0], np.int64))], [first], axis=axis
            )
        else:
            first = name
        entries = [1] * len(value.sizes)
        target = self._new.joined(entries, {axis: self._new.size_of(source, source_axis, 1, 1)}, "")
        output = self._new.name(f"{name}_repeated")
        self._new.add("Expand", [first, target], [output])
        dims = list(value.dims)
        dims[axis] = other.dims[source_axis]
        self.known[output] = Followed(Value(value.sizes), Value(tuple(dims)))
        node.input[index] = output
        self.changed.append(f"{label}: {shortened(name)} is repeated")

    def _is_uniform(self, name: str, axis: int) -> bool:
        """Return whether all items of a value along an axis are the same."""
        value = self.known.get(name)
        if value is None or axis >= len(value.sizes):
            return False
        if value.sizes[axis] == 1:
            return True
        array = self._array(name, value)
        if array is not None:
            return bool((array == array.take([0], axis)).all())
        node = self._producers.get(name)
        if node is None or plain_domain(node.domain):
            return False
        if node.op_type == "ConstantOfShape":
            return True
        spreads = node.op_type in ("Expand", "Tile")
        if not spreads and node.op_type not in BROADCASTING | _ONE_TO_ONE:
            return False
        return all(
            self._is_uniform_from_right(one, len(value.sizes) - axis)
            for one in (node.input[:1] if spreads else node.input)
        )

    def _is_uniform_from_right(self, name: str, place: int) -> bool:
        value = self.known.get(name)
        return value is not None and (
            place > len(value.sizes) or self._is_uniform(name, len(value.sizes) - place)
        )

    def _array(self, name: str, value: Followed) -> Values | None:
        if value.old.values() is not None:
            return value.old.array()
        tensor = self._constants.get(name)
        array = self._read(name)
        if array is None and tensor is not None and tensor.data_location != tensor.EXTERNAL:
            try:
                array = numpy_helper.to_array(tensor)
            except (ValueError, TypeError):  # cut out
                return None
        return None if array is None else array.reshape(value.sizes)

    def _require_inside(self, node: onnx.NodeProto, number: int, data: Followed) -> None:
        is_flat = self._imports.get("", 1) < 13
        axis = next((a.i for a in node.attribute if a.name == "axis"), 1 if is_flat else -1)
        axis %= max(len(data.sizes), 1)
        if any(
            (changed >= axis if is_flat else changed == axis) and self._is_batch(data.dims[changed])
            for changed in data.changed
        ):
            raise self._refused(node, number, "it computes along the dimension")

    def _require_kept(
        self,
        node: onnx.NodeProto,
        number: int,
        inputs: Sequence[Followed | None],
        outputs: Sequence[Followed],
    ) -> None:
        """Demand that a batch that goes in comes out, where it is known what comes out."""
        known = [value for value in outputs if value.old.is_known and value.new.is_known]
        kept = {name for value in known for size in value.dims for name in names_in(size)}
        for value in inputs if known else ():
            for size in value.dims if value is not None else ():
                if names_in(size) & self._batches - kept:
                    assert value is not None
                    raise self._refused(
                        node, number, f"it takes the dimension away: {_text(value.sizes)} becomes"
                        f" {_text(known[0].sizes)} at any size"
                    )  # fmt: skip

    def _refused(self, node: onnx.NodeProto, number: int, why: str) -> ActivityError:
        label = self._label(node) if node.name or node.output else f"node {number}"
        return ActivityError(f"the dimension cannot be made dynamic: {label}: {visible(why)}")

    def _label(self, node: onnx.NodeProto) -> str:
        name = node.name or next((name for name in node.output if name), "")
        return f"{visible(node.op_type)} {clip(visible(name), 80, keep='middle')}"


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _graphs(attribute.g)


def _used(graph: onnx.GraphProto) -> set[str]:
    return names_used(graph.node) | {info.name for info in graph.output}


def _without(sizes: Dims, axis: int) -> Dims:
    axis %= len(sizes)
    return (*sizes[:axis], *sizes[axis + 1 :])


def _shown(entries: Sequence[int], pieces: Mapping[int, str]) -> list[int | str]:
    return ["size" if place in pieces else entry for place, entry in enumerate(entries)]


def _text(sizes: Dims) -> str:
    return "x".join(map(str, sizes)) or "a scalar"
