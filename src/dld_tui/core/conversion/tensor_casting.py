"""Many tensors in another element type at once: weights, constants and lists of numbers.

By default a Cast restores the old type for the users of a tensor, so that the model stays valid:
the weights are stored in the new type, and computed with in the old one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from fnmatch import fnmatchcase

import onnx

from dld_tui.core.conversion.copies import relink, working_copy
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.proto_fields import set_items, set_text
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Splice, Transaction
from dld_tui.core.model.edits.attributes import find_attribute
from dld_tui.core.model.edits.casting import FreshNames
from dld_tui.core.model.edits.nodes import new_cast
from dld_tui.core.model.edits.tensors import location_of, put_payload, without_values
from dld_tui.core.model.tensors.elements import converted_payload, plan_conversion, require_dtype
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.model.tensors.value_types import dtype_number
from dld_tui.core.text import shortened, visible

KINDS = ("initializer", "constant", "list")
_LISTS = {"value_float": "f", "value_floats": "floats", "value_int": "i", "value_ints": "ints"}


@dataclass(frozen=True)
class CastSelection:
    """Which tensors to convert: those that fit all criteria."""

    names: tuple[str, ...] = ()
    """Names, or patterns with ``*``; one of them must fit. Empty for all."""
    types: tuple[str, ...] = ()
    """Element types. Empty for all floating point types."""
    least_bytes: int = 0
    kinds: tuple[str, ...] = KINDS


@dataclass(frozen=True)
class Candidate:
    """A tensor that can be converted."""

    scope: Scope
    name: str
    """Of the initializer, or of the value that a node makes. Untrusted text."""
    kind: str
    """``initializer``, ``constant`` (a tensor of a Constant) or ``list`` (numbers of one)."""
    tensor: Tensor
    node: Node | None = None


@dataclass(frozen=True)
class TensorLoss:
    """What a tensor would lose by a conversion. All texts are foreign."""

    name: str
    scope: tuple[str, ...]
    kind: str
    """As in :class:`Candidate`."""
    dtype: str
    shape: tuple[int, ...]
    bytes: int | None
    overflow: int
    underflow: int
    rounded: int
    nan_lost: int
    max_error: float


@dataclass
class ConvertedTensors:
    """A copy with tensors in another type."""

    document: Document
    """Has no path. Close it before the original document."""
    count: int = 0
    casts: int = 0
    notes: list[str] = field(default_factory=list)


def candidates(document: Document, dtype: str, chosen: CastSelection) -> Iterator[Candidate]:
    """Yield the tensors of a document that a selection names and that have another type.

    Raises:
        EditError: There is no element type of this name.
    """
    require_dtype(dtype)
    for scope in document.scopes():
        for candidate in _of_scope(scope):
            tensor = candidate.tensor
            floating = tensor.dtype.startswith(("float", "bfloat"))
            typed = tensor.dtype in chosen.types if chosen.types else floating
            named = not chosen.names or any(
                candidate.name == n or fnmatchcase(candidate.name, n) for n in chosen.names
            )
            large = (tensor.nbytes or 0) >= chosen.least_bytes
            wanted = candidate.kind in chosen.kinds and tensor.dtype not in (dtype, "string")
            if typed and named and large and wanted and tensor.location != "none":
                yield candidate


def _of_scope(scope: Scope) -> Iterator[Candidate]:
    for tensor in scope.initializers:
        yield Candidate(scope, tensor.name, "initializer", tensor)
    for node in scope.nodes_of_type("Constant"):
        if not node.outputs:
            continue
        if (constant := node.tensor("value")) is not None:
            yield Candidate(scope, node.outputs[0], "constant", constant, node)
        elif (numbers := listed_numbers(node)) is not None:
            yield Candidate(scope, node.outputs[0], "list", numbers, node)


def listed_numbers(node: Node) -> Tensor | None:
    """Return the number, or the list of numbers, that a Constant holds as a tensor."""
    for name, kind in _LISTS.items():
        _, attribute = find_attribute(node, name)
        if attribute is None or attribute.ref_attr_name:
            continue
        value = getattr(attribute, kind)
        many = name.endswith("s")
        number = onnx.TensorProto.FLOAT if "float" in name else onnx.TensorProto.INT64
        values = list(value) if many else [value]
        proto = onnx.helper.make_tensor("", number, [len(values)] if many else [], values)
        return Tensor(proto, node.scope.document)
    return None


def losses(document: Document, dtype: str, chosen: CastSelection) -> Iterator[TensorLoss]:
    """Yield what each tensor would lose; reads all of them.

    Raises:
        EditError: There is no such type, or no conversion to it.
    """
    for candidate in candidates(document, dtype, chosen):
        tensor = candidate.tensor
        report = plan_conversion(tensor, dtype)
        yield TensorLoss(
            candidate.name, candidate.scope.path, candidate.kind, tensor.dtype,
            tuple(tensor.shape), tensor.nbytes, report.overflow, report.underflow, report.rounded,
            report.nan_lost, report.max_error,
        )  # fmt: skip


def convert_tensors(
    document: Document, dtype: str, chosen: CastSelection, *, casts: bool = True
) -> Iterator[ConvertedTensors]:
    """Convert the tensors of a copy, one at each step.

    Args:
        document: The model; it stays as it is, and open until the copy is closed.
        dtype: The element type.
        chosen: Which tensors.
        casts: Restore the old type for the users of a tensor by a Cast.

    Yields:
        The copy, after each tensor and at the end.

    Raises:
        EditError: There is no such type, or no conversion to it.
        SaveError: There is no room for the new values.
    """
    with working_copy(document) as copy:
        tensors = ConvertedTensors(copy)
        names = FreshNames(tensors.document)
        for candidate in list(candidates(tensors.document, dtype, chosen)):
            _convert(tensors, names, candidate, dtype, casts=casts)
            yield tensors
    yield tensors


def _convert(
    tensors: ConvertedTensors, names: FreshNames, candidate: Candidate, dtype: str, *, casts: bool
) -> None:
    shown = shortened(candidate.name)
    scope, transaction = candidate.scope, Transaction("convert_tensors", {})
    if casts and candidate.node is None and candidate.name in scope.named("input"):
        tensors.notes.append(f"{shown} is unchanged: it is also an input")
        return
    proto = without_values(candidate.tensor.proto, dtype)
    try:
        payload = converted_payload(candidate.tensor, dtype)
        put_payload(tensors.document, proto, payload, location=location_of(candidate.tensor.proto))
    except InputError as error:
        tensors.notes.append(f"{shown} is unchanged: {visible(error.message)}")
        return
    before, name = candidate.tensor.dtype, candidate.name
    stored = names.take(f"{name}_{dtype}") if casts else name
    if candidate.node is None:
        set_text(proto, "name", stored)
        transaction.replace(scope, "initializer", scope.named("initializer").first(name), proto)
        place = 0
    else:
        relink(transaction, candidate.node, "output", name, stored)
        _set_value(candidate.node, proto)
        place = scope.index_of(candidate.node) + 1
    tensors.count += 1
    if casts:
        cast = new_cast(scope, stored, name, dtype_number(before) or 0)
        transaction.do(Splice(scope, "node", place, [], [cast]))
        tensors.casts += 1
    else:
        _redeclare(scope, name, dtype)


def _set_value(node: Node, proto: onnx.TensorProto) -> None:
    attributes = [a for a in node.proto.attribute if a.name != "value" and a.name not in _LISTS]
    value = onnx.AttributeProto(name="value", type=onnx.AttributeProto.TENSOR)
    value.t.CopyFrom(proto)
    set_items(node.proto.attribute, [*attributes, value])


def _redeclare(scope: Scope, name: str, dtype: str) -> None:
    for list_name in ("input", "value_info"):
        record = scope.named(list_name).first(name) if list_name in scope.records else None
        if record is not None and record.type.HasField("tensor_type"):
            record.type.tensor_type.elem_type = dtype_number(dtype) or 0
