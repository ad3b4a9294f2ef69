"""Weights in float16 or bfloat16, converted one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import onnx

from dld_tui.core.conversion.agreement import NarrowType
from dld_tui.core.conversion.copies import is_graph_output, relink_users
from dld_tui.core.document.casting import CastPlan
from dld_tui.core.document.document import Document
from dld_tui.core.document.edits.attributes import find_attribute
from dld_tui.core.document.edits.nodes import free_node_name
from dld_tui.core.document.edits.tensor_targets import emptied, location_of, place_of, put_payload
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.node import Node
from dld_tui.core.document.primitives import SetAttribute, Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.document.wiretext import set_text, set_texts, text_of
from dld_tui.core.errors import CancelledError
from dld_tui.core.inputs.dtypes import numpy_dtype
from dld_tui.core.tensors.elements import PART_ELEMENTS, Array, encoded
from dld_tui.core.types import JSON, CancelCheck

_FLOATS = ("float32", "float64", "bfloat16")


@dataclass(frozen=True)
class WeightLoss:
    """A weight with values that the narrow type does not hold."""

    name: str
    """Foreign text."""
    count: int
    """All elements."""
    overflow: int
    """Finite numbers out of range, which became the largest that is."""
    underflow: int
    """Numbers too near to zero, which became the smallest."""
    largest: float
    """The largest magnitude before."""

    def to_json(self) -> dict[str, JSON]:
        """Return the loss as JSON data."""
        return {
            "name": self.name, "count": self.count, "overflow": self.overflow,
            "underflow": self.underflow, "largest": self.largest,
        }  # fmt: skip


@dataclass
class Stored:
    """A weight that nodes want in the narrow type."""

    scope: Scope
    """Where it is defined."""
    name: str
    """Foreign text."""
    node: Node | None
    """The Constant that makes it; None for an initializer."""
    target: str
    """What the nodes call it there."""
    targets: list[str] = field(default_factory=list)
    """What casts of it would have been called."""


def stored_casts(plan: CastPlan) -> dict[str, Stored]:
    """Return the weights whose casts can be done now, by the name of the first cast."""
    found: dict[tuple[int, str], Stored] = {}
    for cast in plan.casts:
        home = cast.scope.resolve(cast.source) if not cast.after else None
        if home is None or _tensor(home.scope, home.node, cast.source) is None:
            continue
        key = (id(home.scope), cast.source)
        if key not in found:
            found[key] = Stored(home.scope, cast.source, home.node, cast.target)
        found[key].targets.append(cast.target)
    return {stored.target: stored for stored in found.values()}


def _tensor(scope: Scope, node: Node | None, name: str) -> Tensor | None:
    """Return the values of a weight of a floating point type; None for what stays a cast."""
    if node is None:
        tensor = scope.initializer(name)
    elif node.op_type not in ("Constant", "ConstantOfShape"):
        return None
    else:
        _, attribute = find_attribute(node, "value")
        if attribute is None or not attribute.HasField("t"):
            return _of_number(node)
        tensor = Tensor(attribute.t, scope.document)
    return tensor if tensor is not None and tensor.dtype in _FLOATS else None


def _of_number(node: Node) -> Tensor | None:
    for name in ("value_float", "value_floats"):
        _, attribute = find_attribute(node, name)
        if attribute is not None:
            many = name.endswith("s")
            values = list(attribute.floats) if many else [attribute.f]
            dims = [len(values)] if many else []
            proto = onnx.helper.make_tensor("", onnx.TensorProto.FLOAT, dims, values)
            return Tensor(proto, node.scope.document)
    return None


def convert_weights(
    copy: Document,
    transaction: Transaction,
    stored: dict[str, Stored],
    narrow: NarrowType,
    losses: list[WeightLoss],
    cancelled: CancelCheck | None,
) -> Iterator[tuple[int, int]]:
    """Convert weights; those that nothing wants in their old type make place for the new ones.

    Yields:
        Bytes done and bytes in all.
    """
    sources = [(one, _tensor(one.scope, one.node, one.name)) for one in stored.values()]
    total = sum(tensor.nbytes or 0 for _, tensor in sources if tensor is not None)
    done = 0
    for weight, tensor in sources:
        assert tensor is not None
        proto = emptied(tensor.proto, narrow.dtype)
        loss = _Tally(weight.name)
        put_payload(
            copy,
            proto,
            _halves(tensor, narrow, loss, cancelled),
            location=location_of(tensor.proto),
        )
        if loss.overflow or loss.underflow:
            losses.append(
                WeightLoss(weight.name, tensor.element_count, loss.overflow, loss.underflow,
                           loss.largest)
            )  # fmt: skip
        _place(transaction, weight, proto)
        done += tensor.nbytes or 0
        yield done, total


@dataclass
class _Tally:
    name: str
    overflow: int = 0
    underflow: int = 0
    largest: float = 0.0


def _halves(
    tensor: Tensor, narrow: NarrowType, loss: _Tally, cancelled: CancelCheck | None
) -> Iterator[bytes]:
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        values = tensor.read(start, PART_ELEMENTS)
        if values.dtype.kind == "V" or values.dtype.itemsize < 4:
            values = values.astype(np.float32)
        yield encoded(_halved(values, narrow, loss), narrow.dtype)


def largest(tensor: Tensor) -> float:
    """Return the largest finite magnitude in a weight of a floating point type, read in parts.

    Raises:
        InputError: It cannot be read.
    """
    found = 0.0
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS)
        if values.dtype.kind == "V" or values.dtype.itemsize < 4:
            values = values.astype(np.float32)
        finite = values[np.isfinite(values)]
        found = max(found, float(np.abs(finite).max())) if finite.size else found
    return found


def _halved(values: Array, narrow: NarrowType, loss: _Tally) -> Array:
    with np.errstate(all="ignore"):
        dtype = numpy_dtype(narrow.dtype)
        half: Array = values.astype(dtype)
        over = np.isinf(half) & np.isfinite(values)
        under = (half == 0) & (values != 0)
        if over.any():
            loss.overflow += int(over.sum())
            half[over] = np.copysign(narrow.largest, values[over]).astype(dtype)
        if under.any():
            loss.underflow += int(under.sum())
            half[under] = np.copysign(narrow.smallest, values[under]).astype(dtype)
        finite = np.isfinite(values)
        if (over.any() or under.any()) and finite.any():
            loss.largest = max(loss.largest, float(np.abs(values[finite]).max()))
    return half


def _place(transaction: Transaction, weight: Stored, proto: onnx.TensorProto) -> None:
    """Put a converted weight beside the old one, or in its place."""
    home, name = weight.scope, weight.name
    alone = not home.users(name) and not is_graph_output(home, name)
    kept = name if alone else weight.target
    if alone:
        relink_users(transaction, home, weight.target, name)
    if weight.node is None:
        set_text(proto, "name", kept)
        old = home.named("initializer").first(name)
        at = place_of(home, "initializer", old)
        if alone:
            transaction.do(Splice(home, "initializer", at, [old], [proto]))
        else:
            transaction.do(Splice(home, "initializer", at + 1, [], [proto]))
            _list_as_input(transaction, home, proto)
        return
    _place_constant(transaction, weight, weight.node, proto, kept if not alone else "")


def _list_as_input(transaction: Transaction, home: Scope, proto: onnx.TensorProto) -> None:
    """Before version 4 of the format, initializers had to be inputs as well."""
    if home.owner is None and home.document.model.ir_version < 4:
        record = onnx.helper.make_tensor_value_info("", proto.data_type, list(proto.dims))
        set_text(record, "name", text_of(proto.name))
        transaction.do(Splice(home, "input", len(home.records["input"]), [], [record]))


def _place_constant(
    transaction: Transaction, weight: Stored, node: Node, proto: onnx.TensorProto, new: str
) -> None:
    """Put a converted weight into the Constant that had it, or into one with another output."""
    home = weight.scope
    attribute = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(proto)
    if new:
        made = onnx.NodeProto(op_type=node.op_type)
        set_texts(made, "input", node.inputs)
        set_text(
            made,
            "name",
            free_node_name(
                home, f"{text_of(node.proto.name)}_{Tensor(proto, home.document).dtype}"
            ),
        )
        set_texts(made, "output", [new])
        made.attribute.append(attribute)
        place = home.index_of(node) + 1
        transaction.do(Splice(home, "node", place, [], [home.new_node(made)]))
        return
    place = next(
        at for at, one in enumerate(node.proto.attribute)
        if text_of(one.name) in ("value", "value_float", "value_floats")
    )  # fmt: skip
    before = onnx.AttributeProto()
    before.CopyFrom(node.proto.attribute[place])
    transaction.do(SetAttribute(node, place, before, attribute))
