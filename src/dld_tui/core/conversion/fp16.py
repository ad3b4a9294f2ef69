"""A model in float16 or bfloat16: nodes compute in it, weights are converted, casts are added.

:mod:`dld_tui.core.model.edits.casting` plans casts for all nodes that can compute in the type.
Casts of weights are replaced by converted weights, casts at inputs and outputs by their new types.
Values keep their names where nothing needs them in the old type. As in ONNX Runtime's converter,
weights out of range become the largest number of the type, and none becomes zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Iterable, Iterator
from copy import deepcopy
from dataclasses import field, replace
from typing import Any

import numpy as np
import onnx

from dld_tui.core.conversion.accuracy_criteria import FP16, NarrowType
from dld_tui.core.conversion.copies import (
    infer,
    inline_calls,
    relink,
    relink_users,
    working_copy,
)
from dld_tui.core.conversion.definition_types import unfit_definitions
from dld_tui.core.conversion.tensor_casting import listed_numbers
from dld_tui.core.conversion.widening import join_casts, widen
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.files.proto_fields import set_text, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.model.document.node import Node, node_proto
from dld_tui.core.model.document.operator_matching import schema_of
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import SetAttribute, Splice, Transaction
from dld_tui.core.model.document.traversal import nodes_called
from dld_tui.core.model.edits.casting import (
    Cast,
    CastBar,
    CastPlan,
    Changes,
    FreshNames,
    Relink,
    Unchangeable,
    changes_of,
    plan_casts,
    type_text_of,
)
from dld_tui.core.model.edits.initializers import list_as_input
from dld_tui.core.model.edits.nodes import carry_out, free_node_name, new_cast
from dld_tui.core.model.edits.tensors import location_of, put_payload, without_values
from dld_tui.core.model.inputs.shapes import numpy_dtype
from dld_tui.core.model.operators.categories import SIZE_OPERATORS
from dld_tui.core.model.operators.registry import schema_for
from dld_tui.core.model.shapes.inference import TypeSource
from dld_tui.core.model.tensors.elements import PART_ELEMENTS, Array, encode_elements
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import visible

_FLOATS = ("float32", "float64", "bfloat16")


@dataclass(frozen=True)
class WeightLoss:
    """A weight with values that the narrow type does not hold."""

    name: str
    """Untrusted text."""
    count: int
    """All elements."""
    overflow: int
    """Finite numbers out of range, which became the largest that is."""
    underflow: int
    """Numbers too near to zero, which became the smallest."""
    largest: float
    """The largest magnitude before."""


@dataclass
class StoredWeight:
    """A weight that nodes want in the narrow type."""

    scope: Scope
    """Where it is defined."""
    name: str
    """Untrusted text."""
    node: Node | None
    """The Constant that makes it; None for an initializer."""
    target: str
    """The name under which the nodes use it."""
    targets: list[str] = field(default_factory=list)
    """The names that casts of it would have had."""


def stored_casts(plan: CastPlan) -> dict[str, StoredWeight]:
    """Return the weights that replace their casts, by the name of the first cast."""
    weights: dict[tuple[int, str], StoredWeight] = {}
    for cast in plan.casts:
        home = cast.scope.resolve(cast.source) if not cast.after else None
        if home is None or _tensor(home.scope, home.node, cast.source) is None:
            continue
        if home.node is not None and not _can_make(home.node, cast.dtype):
            continue
        key = (id(home.scope), cast.source)
        if key not in weights:
            weights[key] = StoredWeight(home.scope, cast.source, home.node, cast.target)
        weights[key].targets.append(cast.target)
    return {stored.target: stored for stored in weights.values()}


def _can_make(node: Node, dtype: str) -> bool:
    """Return whether an operator that stores its value has outputs of a type in its opset."""
    schema = schema_of(node)
    formal = schema.output(0) if schema is not None else None
    return formal is not None and type_text_of(dtype) in formal.types


def _tensor(scope: Scope, node: Node | None, name: str) -> Tensor | None:
    """Return the values of a weight of a floating point type; None for what stays a cast."""
    if node is None:
        tensor = scope.initializer(name)
    elif node.op_type not in ("Constant", "ConstantOfShape"):
        return None
    else:
        tensor = node.tensor("value") or listed_numbers(node)
    return tensor if tensor is not None and tensor.dtype in _FLOATS else None


def convert_weights(
    copy: Document,
    transaction: Transaction,
    stored: dict[str, StoredWeight],
    narrow: NarrowType,
    losses: list[WeightLoss],
) -> Iterator[tuple[int, int]]:
    """Convert weights; a converted weight replaces the old one where nothing else uses that.

    Yields:
        Bytes done and bytes in all.
    """
    sources = [
        (
            weight_to_convert,
            _tensor(weight_to_convert.scope, weight_to_convert.node, weight_to_convert.name),
        )
        for weight_to_convert in stored.values()
    ]
    total = sum(tensor.nbytes or 0 for _, tensor in sources if tensor is not None)
    done = 0
    for weight, tensor in sources:
        assert tensor is not None
        proto = without_values(tensor.proto, narrow.dtype)
        loss = _Tally(weight.name)
        put_payload(
            copy,
            proto,
            _halves(tensor, narrow, loss),
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


def _halves(tensor: Tensor, narrow: NarrowType, loss: _Tally) -> Iterator[bytes]:
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS)
        if values.dtype.kind == "V" or values.dtype.itemsize < 4:
            values = values.astype(np.float32)
        yield encode_elements(_halved(values, narrow, loss), narrow.dtype)


def largest(tensor: Tensor) -> float:
    """Return the largest finite magnitude in a weight of a floating point type, read in parts.

    Raises:
        InputError: It cannot be read.
    """
    peak = 0.0
    for start in range(0, tensor.element_count, PART_ELEMENTS):
        values = tensor.read(start, PART_ELEMENTS)
        if values.dtype.kind == "V" or values.dtype.itemsize < 4:
            values = values.astype(np.float32)
        finite = values[np.isfinite(values)]
        peak = max(peak, float(np.abs(finite).max())) if finite.size else peak
    return peak


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


def _place(transaction: Transaction, weight: StoredWeight, proto: onnx.TensorProto) -> None:
    """Put a converted weight beside the old one, or in its place."""
    home, name = weight.scope, weight.name
    alone = not home.is_used(name)
    kept = name if alone else weight.target
    if alone:
        relink_users(transaction, home, weight.target, name)
    if weight.node is None:
        set_text(proto, "name", kept)
        old = home.named("initializer").first(name)
        if alone:
            transaction.replace(home, "initializer", old, proto)
        else:
            at = home.place_of("initializer", old)
            transaction.do(Splice(home, "initializer", at + 1, [], [proto]))
            if home.owner is None:
                list_as_input(transaction, home, proto)
        return
    _place_constant(transaction, weight, weight.node, proto, kept if not alone else "")


def _place_constant(
    transaction: Transaction, weight: StoredWeight, node: Node, proto: onnx.TensorProto, new: str
) -> None:
    """Put a converted weight into the Constant that had it, or into one with another output."""
    home = weight.scope
    attribute = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR)
    attribute.t.CopyFrom(proto)
    if new:
        dtype = Tensor(proto, home.document).dtype
        name = free_node_name(home, f"{text_of(node.proto.name)}_{dtype}")
        new_node = node_proto(node.op_type, node.inputs, [new], name)
        new_node.attribute.append(attribute)
        place = home.index_of(node) + 1
        transaction.do(Splice(home, "node", place, [], [home.new_node(new_node)]))
        return
    place = next(
        at for at, attribute_proto in enumerate(node.proto.attribute)
        if text_of(attribute_proto.name) in ("value", "value_float", "value_floats")
    )  # fmt: skip
    before = deepcopy(node.proto.attribute[place])
    transaction.do(SetAttribute(node, place, before, attribute))


_FLOAT = onnx.TensorProto.FLOAT


def redeclare(
    document: Document, halved: Collection[tuple[Scope, str]], narrow: NarrowType
) -> None:
    """Update ``value_info``: drop values that no longer exist, and set the types of narrow ones.

    Args:
        document: The document; its records are changed in place.
        halved: The values that are narrow now, with their scopes: others may have their names.
        narrow: The type.
    """
    half = element_type(narrow)
    for scope in document.main.walk():
        for record in scope.records["input"]:
            if _is_half(scope, text_of(record.name), half) and record.type.HasField("tensor_type"):
                record.type.tensor_type.elem_type = half
        kept, changed = [], False
        for record in scope.records["value_info"]:
            name = text_of(record.name)
            if scope.definition(name) is None:
                changed = True
                continue
            if (scope, name) in halved or _is_half(scope, name, half):
                record.type.tensor_type.elem_type = half
            kept.append(record)
        if changed:
            old = list(scope.records["value_info"])
            Splice(scope, "value_info", 0, old, kept).do()


def element_type(narrow: NarrowType) -> int:
    """Return the number of a type in ONNX."""
    return onnx.TensorProto.DataType.Value(narrow.dtype.upper())


def _is_half(scope: Scope, name: str, half: int) -> bool:
    """Return whether a value is a weight in the narrow type."""
    node = scope.producer(name)
    if node is None:
        tensor = scope.initializer(name)
        return tensor is not None and tensor.proto.data_type == half
    if node.op_type not in ("Constant", "ConstantOfShape"):
        return False
    value = node.tensor("value")
    return value is not None and value.proto.data_type == half


def halve_borders(
    copy: Document, transaction: Transaction, narrow: NarrowType, but: Collection[str] = ()
) -> list[str]:
    """Give the inputs and outputs of a model the narrow type; return notes on exceptions.

    Args:
        copy: The model.
        transaction: Records the changes.
        narrow: The type.
        but: The names of inputs and outputs to leave as they are.
    """
    names, half = FreshNames(copy), element_type(narrow)
    notes = []
    for side, halve in (("input", _halve_input), ("output", _halve_output)):
        for record in list(copy.main.records[side]):
            if record.type.tensor_type.elem_type != _FLOAT:
                continue
            name = text_of(record.name)
            if name in but:
                continue
            if side == "input" and copy.main.is_weight(name):
                continue  # a weight that could be given: it follows the weight
            if why := halve(copy.main, transaction, names, name, half):
                notes.append(f"{side} {visible(name)} stays float32: {why}")
                continue
            _declare_half(copy.main, transaction, side, record, half)
    return notes


def _used_as_output(main: Scope, name: str) -> str:
    """Return why a value keeps its type: a body has it as an output. Empty where none has."""
    body = next((s for s in main.reach(name) if s is not main and name in s.outputs), None)
    return f"it is an output of {visible(body.title)}" if body is not None else ""


def _halve_input(
    main: Scope, transaction: Transaction, names: FreshNames, name: str, half: int
) -> str:
    """Give an input the type; return why it keeps its own, or an empty text."""
    if name in main.outputs:
        return "it is also an output"
    if why := _used_as_output(main, name):
        return why
    users = list(dict.fromkeys(use.node for use in main.users(name)))
    casts = [node for node in users if node.op_type == "Cast"]  # they take any type
    if len(casts) < len(users):
        wide = names.take(f"{name}_float32")
        relink_users(transaction, main, name, wide, but=casts)
        _add_cast(transaction, main, 0, name, wide, _FLOAT)
    _drop_casts(transaction, casts, name, half)
    return ""


def _halve_output(
    main: Scope, transaction: Transaction, names: FreshNames, name: str, half: int
) -> str:
    """Give an output the type; return why it keeps its own, or an empty text."""
    node = main.producer(name)
    if node is None:
        definition = main.definition(name)
        kind = "no node produces it" if definition is None else f"it is also an {definition.kind}"
        return "" if _is_half(main, name, half) else kind
    if why := _used_as_output(main, name):
        return why
    wide = names.take(f"{name}_float32")
    users = main.users(name)
    source = node.inputs[0] if node.op_type == "Cast" and node.inputs else ""
    maker = main.producer(source) if source and _is_cast_of_half(node, source, half) else None
    if maker is not None and not main.is_output(source):
        if users:
            relink_users(transaction, main, name, wide)
            relink(transaction, node, "output", name, wide)
        else:
            transaction.replace(node.scope, "node", node)
        relink(transaction, maker, "output", source, name)
        relink_users(transaction, main, source, name)
        return ""
    casts = [use.node for use in users if use.node.op_type == "Cast"]
    relink_users(transaction, main, name, wide)
    relink(transaction, node, "output", name, wide)
    _add_cast(transaction, main, main.index_of(node) + 1, wide, name, half)
    _drop_casts(transaction, casts, name, half)
    return ""


def _drop_casts(transaction: Transaction, casts: Iterable[Node], name: str, half: int) -> None:
    """Let a value that has the narrow type now stand for what was cast to it."""
    for cast in casts:
        target = cast.outputs[0]
        if _cast_type(cast) == half and not cast.scope.is_output(target):
            transaction.replace(cast.scope, "node", cast)
            relink_users(transaction, cast.scope, target, name)


def _is_cast_of_half(node: Node, source: str, half: int) -> bool:
    # The plan of casts gives outputs of nodes that compute in the narrow type such names.
    dtype = onnx.TensorProto.DataType.Name(half).lower()
    return _cast_type(node) == _FLOAT and source.startswith(f"{node.outputs[0]}_{dtype}")


def _cast_type(node: Node) -> int:
    return node.integer("to", 0) if node.op_type == "Cast" else 0


def _add_cast(
    transaction: Transaction, scope: Scope, place: int, source: str, target: str, to: int
) -> None:
    transaction.do(Splice(scope, "node", place, [], [new_cast(scope, source, target, to)]))


def _declare_half(
    scope: Scope, transaction: Transaction, side: str, record: Any, half: int
) -> None:
    changed = deepcopy(record)
    changed.type.tensor_type.elem_type = half
    transaction.replace(scope, side, record, changed)


_FILLS = ("ConstantOfShape", "Expand", "Tile", "OneHot", "EyeLike", "RandomNormal",
          "RandomUniform")  # fmt: skip
"""Operators that make data out of sizes."""


@dataclass(frozen=True)
class Fp16Options:
    """The type of nodes, and what keeps its type."""

    keep_io_types: bool = False
    """Inputs and outputs of the model keep float32."""
    borders: frozenset[str] = frozenset()
    """Inputs and outputs of the model that keep float32 for their values."""
    op_block: tuple[str, ...] = ()
    """Operators whose nodes keep their type."""
    node_block: tuple[str, ...] = ()
    """Nodes that keep their type: see :func:`nodes_called`."""
    places: frozenset[tuple[tuple[str, ...], str]] = frozenset()
    """Nodes that keep their type for their values: paths of scopes, and refs, where calls of local
    functions are replaced already."""
    narrow: NarrowType = FP16
    """The type."""
    extra_types: TypeSource | None = None
    """As for :func:`~dld_tui.core.model.shapes.inference.infer`."""


@dataclass
class Fp16Model:
    """The copy, and what was done to it."""

    document: Document
    """Has no path. Close it before the document that it was made of."""
    nodes: int = 0
    """Nodes that compute in float16 now."""
    casts: int = 0
    """Casts added, less those removed."""
    kept: Counter[str] = field(default_factory=Counter)
    """Nodes that keep their type, counted by reason. Untrusted text."""
    weights: int = 0
    losses: list[WeightLoss] = field(default_factory=list)
    """Of the weights with values out of range."""
    inlined: int = 0
    """Calls of local functions that were replaced."""
    notes: list[str] = field(default_factory=list)
    """Messages of type inference, and what was not converted. Fit for a terminal."""


def fp16_steps(
    document: Document, options: Fp16Options
) -> Generator[tuple[int, int], None, Fp16Model]:
    """Make a copy of a model in float16; yields bytes of weights done and in all.

    Runs onnx's shape inference: call it in a child process.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        options: What stays in float32. Nodes with another layer precision also do.

    Returns:
        The copy.

    Raises:
        UsageError: A blocked node is not there.
        InputError: The values of a weight cannot be read.
        SaveError: There is no room for the new weights.
    """
    with working_copy(document) as copy:
        result = Fp16Model(copy, inlined=inline_calls(copy))
        # Values that bfloat16 holds and float16 does not must pass no edge in float16.
        borders = widen(copy) if options.narrow.dtype == "bfloat16" else []
        result.notes += infer(copy, document.path, options.extra_types)
        before = _casts(copy)
        chosen = _chosen(copy, options, result.kept)
        result.nodes = len(chosen)
        plan = plan_casts(copy, dict.fromkeys(chosen, options.narrow.precision))
        renamed = _old_names(plan)
        halved = {
            (link.node.scope, renamed[name])
            for link in plan.relinks
            for name in link.outputs
            if name in renamed
        }
        stored = stored_casts(plan)
        _restore_names(plan, renamed, stored)
        transaction = Transaction(f"to_{options.narrow.precision}", {})
        carry_out(plan, transaction)
        redeclare(copy, halved, options.narrow)
        if not chosen:
            result.notes.append(
                f"no node can compute in {options.narrow.dtype}: nothing was converted"
            )
        elif not options.keep_io_types:
            result.notes += halve_borders(copy, transaction, options.narrow, options.borders)
        yield from convert_weights(copy, transaction, stored, options.narrow, result.losses)
        redeclare(copy, (), options.narrow)
        join_casts(copy, transaction, borders)
        result.weights = len(stored)
        result.casts = _casts(copy) - before
    return result


def _casts(document: Document) -> int:
    return sum(len(scope.nodes_of_type("Cast")) for scope in document.main.walk())


def _chosen(copy: Document, options: Fp16Options, kept: Counter[str]) -> list[Node]:
    blocked_ops, scopes = set(options.op_block), list(copy.main.walk())
    blocked: set[Node] = set()
    for name in options.node_block:
        meant = nodes_called(scopes, name)
        if not meant:
            raise UsageError(f"no node is named {visible(name)!r}", hint="See dld inspect --nodes")
        blocked.update(meant)
    chosen = []
    is_castable = _takes_cast(copy, options.narrow)
    for scope in scopes:
        sizes = _size_arithmetic(scope)
        for node in scope.nodes:
            is_blocked = node in blocked or node.op_type in blocked_ops
            why = _why_kept(node, is_blocked, sizes, options.narrow)
            if why is None and (tuple(scope.path), node.ref) in options.places:
                why = f"{node.op_type}: its values do not fit {options.narrow.dtype}"
            if why is None and not is_castable:
                why = f"{node.op_type}: Cast does not take {options.narrow.dtype} in this opset"
            if why is None:
                chosen.append(node)
            elif why:
                kept[why] += 1
    if options.narrow.dtype != "bfloat16":  # float16 is in all versions of operators
        return chosen
    changes = ((node, changes_of(node, options.narrow.precision)) for node in chosen)
    unfit = unfit_definitions((n, one) for n, one in changes if isinstance(one, Changes))
    for node in chosen:
        if why := unfit.get(node.op_type, "") if not node.domain else "":
            kept[f"{node.op_type}: the {why} in its definition does not take bfloat16"] += 1
    return [node for node in chosen if node.domain or node.op_type not in unfit]


def _takes_cast(copy: Document, narrow: NarrowType) -> bool:
    """Return whether Cast makes the type in the opset of a model."""
    cast = schema_for("Cast", "", copy.opset_imports.get(""))
    formal = cast.output(0) if cast is not None else None
    return formal is not None and type_text_of(narrow.dtype) in formal.types


def _why_kept(
    node: Node, is_blocked: bool, sizes: Collection[Node], narrow: NarrowType
) -> str | None:
    """Return why a node keeps its type: empty when it has none to change, None when it does not."""
    changes = changes_of(node, narrow.precision)
    if isinstance(changes, Unchangeable):
        is_plain = changes.bar is not CastBar.OTHER
        return "" if is_plain else f"{node.op_type}: {changes.text}"
    if node.op_type == "Cast" or not (changes.inputs or changes.outputs):
        return ""
    if is_blocked:
        return f"{node.op_type}: blocked"
    if precision_of(node) not in ("", narrow.precision):
        return f"{node.op_type}: its layer precision is {precision_of(node)}"
    if changes.note:
        return f"{node.op_type}: does not take {narrow.dtype} in this opset"
    return "sizes of tensors are computed in it" if node in sizes else None


def _size_arithmetic(scope: Scope) -> set[Node]:
    """Return the nodes that compute with sizes of tensors only: 16 bits would round them."""
    values: set[str] = set()
    nodes: set[Node] = set()
    for node in scope.nodes:
        inputs = [name for name in node.inputs if name]
        is_size = node.op_type in SIZE_OPERATORS or (
            node.op_type not in _FILLS
            and not node.children
            and any(name in values for name in inputs)
            and all(name in values or _is_constant(scope, name) for name in inputs)
        )
        if is_size:
            values.update(name for name in node.outputs if name)
            if node.op_type not in SIZE_OPERATORS:
                nodes.add(node)
    return nodes


def _is_constant(scope: Scope, name: str) -> bool:
    definition = scope.resolve(name)
    if definition is None or definition.kind == "input":
        return False
    return definition.node is None or definition.node.op_type == "Constant"


def _old_names(plan: CastPlan) -> dict[str, str]:
    """Return new names of outputs whose old ones nothing needs, with these."""
    still = {cast.target for cast in plan.casts if cast.after}
    return {
        new: old
        for relink in plan.relinks
        for old, new in zip(relink.node.outputs, relink.outputs, strict=True)
        if old != new and old not in still
    }


def _restore_names(
    plan: CastPlan, renamed: dict[str, str], stored: dict[str, StoredWeight]
) -> None:
    """Give values their old names back, and let weights take the place of their casts."""
    weights = {name: weight.target for weight in stored.values() for name in weight.targets}
    names = renamed | weights

    def named(links: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in links)

    plan.relinks = [
        Relink(link.node, named(link.inputs), named(link.outputs)) for link in plan.relinks
    ]
    plan.casts = [_renamed(cast, names) for cast in plan.casts if cast.target not in weights]


def _renamed(cast: Cast, names: dict[str, str]) -> Cast:
    return replace(
        cast,
        source=names.get(cast.source, cast.source),
        target=names.get(cast.target, cast.target),
    )
