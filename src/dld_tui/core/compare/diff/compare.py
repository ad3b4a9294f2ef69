"""The comparison of two documents, scope by scope: nodes, and items of a graph.

Items are inputs, outputs, initializers, declared types, and graphs as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.compare.diff.attributes import (
    attribute_fields,
    nodes_text,
    same_bytes,
    values_difference,
)
from dld_tui.core.compare.diff.matching import Pairs, match_scopes, out_of_order
from dld_tui.core.compare.diff.model_diff import Field, ModelChange, ModelDiff, ScopeDiff
from dld_tui.core.compare.diff.side import DiffSide, value_text
from dld_tui.core.compare.diff.tensors import (
    Meter,
    TensorDifference,
    digest,
    payload_bytes,
    weight_noise,
)
from dld_tui.core.errors import InputError
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.blobs import SENTINEL_LENGTH
from dld_tui.core.files.proto_fields import text_of, texts_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.index import record_name
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback

_KNOWN = frozenset(
    ("input", "output", "name", "op_type", "domain", "overload", "attribute", "doc_string",
     "metadata_props")
)  # fmt: skip

_COMPARED_FIELDS = frozenset(("input", "output", "name", "op_type", "domain", "overload"))


def signature(side: DiffSide, index: int) -> str:
    """Return a node as text: ``Conv(x, w) -> y``. Untrusted text."""
    ins, outs = _listed(side.ins[index]), _listed(side.outs[index])
    return f"{side.operators[index]}({ins}) -> {outs or '–'}"


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names if "" not in names else [name or "–" for name in names])


class NodeComparison:
    """Compares the matched nodes of two scopes."""

    def __init__(self, old: DiffSide, new: DiffSide, meter: Meter, notes: list[str]) -> None:
        self.old = old
        self.new = new
        self._meter = meter
        self._notes = notes
        # Values of these names may mean something else in the other model.
        self._odd = {name for name in old.values if old.values[name] != name}
        self._odd |= {name for name in new.values if new.values[name] != name}
        parents = old.parent, new.parent
        self._nested = None not in parents

    def change(self, index: int, other: int) -> ModelChange | None:
        """Return what differs between a node of the old scope and its partner, or None."""
        old, new = self.old, self.new
        first, second = old.nodes[index], new.nodes[other]
        if self._plainly_same(index, other, first, second):
            return None
        fields = tuple(self._fields(index, other, first, second))
        if not fields:
            return None
        status = "renamed" if all(field.is_name for field in fields) else "changed"
        return ModelChange(
            "node",
            status,
            old.ref(index),
            new.ref(other),
            signature(new, other),
            fields,
            old_node=first,
            new_node=second,
        )

    def _plainly_same(self, index: int, other: int, first: Node, second: Node) -> bool:
        """Return True for the many nodes that nothing has happened to."""
        if self._nested or self.old.ins[index] != self.new.ins[other]:
            return False
        if not self._odd.isdisjoint(self.old.ins[index]):
            return False
        return same_bytes(first.proto, second.proto)

    def _fields(self, index: int, other: int, first: Node, second: Node) -> Iterator[Field]:
        old, new = self.old, self.new
        if old.names[index] != new.names[other]:
            yield Field("name", old.names[index], new.names[other], is_name=True)
        if old.operators[index] != new.operators[other]:
            yield Field("op_type", old.operators[index], new.operators[other])
        values = old.values
        for number, (old_name, new_name) in enumerate(zip_longest(old.ins[index], new.ins[other])):
            plainly = old_name and new_name and values.get(old_name) == new_name
            if not plainly and not self.same_value(old_name, new_name):
                yield Field(f"input {number}", *self._described(old_name, new_name))
        for number, (old_name, new_name) in enumerate(
            zip_longest(old.outs[index], new.outs[other])
        ):
            if old_name != new_name:
                yield Field(
                    f"output {number}",
                    _shown(old_name),
                    _shown(new_name),
                    is_name=bool(old_name and new_name),
                )
        if _has_more(first.proto) or _has_more(second.proto):
            yield from attribute_fields(first, second, self._meter, self._notes)
            yield from text_fields(first.proto, second.proto, ("doc_string",))
            yield from metadata_fields(first.proto, second.proto)
            yield from other_fields(first.proto, second.proto, _KNOWN)

    def _described(
        self, old_name: str | None, new_name: str | None
    ) -> tuple[str | None, str | None]:
        """Return two inputs as text, with their makers where the names are the same."""
        if old_name != new_name or not old_name or not new_name:
            return _shown(old_name), _shown(new_name)
        return (
            f"{old_name} of {source(self.old, old_name)}",
            f"{new_name} of {source(self.new, new_name)}",
        )

    def same_value(self, old_name: str | None, new_name: str | None) -> bool:
        """Return whether two inputs mean the same value; None is one that is not there."""
        if old_name is None or new_name is None or not old_name or not new_name:
            return old_name == new_name
        partner = self.old.counterpart(old_name)
        if partner is None:
            # Produced by a removed node, or by none: only the name identifies it.
            return old_name == new_name and self.new.counterpart(new_name) is None
        return partner == self.new.home(new_name)


def _has_more(proto: Any) -> bool:
    """Return whether a node has more than a name, an operator and links."""
    return any(field.name not in _COMPARED_FIELDS for field, _ in proto.ListFields())


def source(side: DiffSide, name: str) -> str:
    """Return the producer of a value: the ref of a node, or words. Untrusted text."""
    place = side.producers.get(name)
    if place is not None:
        return side.ref(place[0])
    if name in side.initializers:
        return "an initializer"
    if name in side.leaves:
        return "an input"
    return "an outer scope" if side.home(name) is not None else "nothing"


def _shown(name: str | None) -> str | None:
    return "–" if name == "" else name


def text_fields(
    old: Any, new: Any, names: tuple[str, ...], *, is_name: bool = False
) -> Iterator[Field]:
    """Yield the text and number fields of two messages that differ."""
    for name in names:
        values = [
            getattr(message, name) if message.HasField(name) else None for message in (old, new)
        ]
        if (values[0] or None) != (values[1] or None):
            yield Field(name, _text(values[0]), _text(values[1]), is_name)


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return text_of(value) if isinstance(value, (str, bytes)) else str(value)


def metadata_fields(old: Any, new: Any) -> Iterator[Field]:
    """Yield the entries of ``metadata_props`` that differ, by key."""
    if not len(old.metadata_props) and not len(new.metadata_props):
        return
    before, after = (
        {text_of(entry.key): text_of(entry.value) for entry in message.metadata_props}
        for message in (old, new)
    )
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield Field(f"metadata {key}", before.get(key), after.get(key))


@lru_cache(maxsize=16)
def _others(message: str, known: frozenset[str]) -> tuple[tuple[str, bool], ...]:
    """Return the fields of a message of ONNX that are not known, and which of them are lists."""
    fields = getattr(onnx, message).DESCRIPTOR.fields
    return tuple(
        (field.name, bool(field.is_repeated)) for field in fields if field.name not in known
    )


def other_fields(old: Any, new: Any, known: frozenset[str]) -> Iterator[Field]:
    """Yield the fields that this program has no view of, when they differ."""
    for name, is_list in _others(type(old).__name__, known):
        first, second = (
            getattr(message, name)
            if (len(getattr(message, name)) if is_list else message.HasField(name))
            else None
            for message in (old, new)
        )
        if _bytes(first) != _bytes(second):
            yield Field(name, _outline(first), _outline(second))


def _outline(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, (str, bytes, int, float)):
        return _text(value)
    return f"{len(value)} entries" if hasattr(value, "__len__") else "set"


def _bytes(value: Any) -> object:
    if value is None or isinstance(value, (str, bytes, int, float)):
        return value
    if hasattr(value, "SerializeToString"):
        return value.SerializeToString()
    return [
        item.SerializeToString() if hasattr(item, "SerializeToString") else item for item in value
    ]


_TENSOR_FIELDS = frozenset(("dims", "data_type", "name", "raw_data"))


class ItemComparison:
    """Compares the items of two scopes other than nodes."""

    def __init__(
        self, nodes: NodeComparison, weights: bool, meter: Meter, notes: list[str]
    ) -> None:
        self.nodes = nodes
        self.old = nodes.old
        self.new = nodes.new
        self._weights = weights
        self._meter = meter
        self._notes = notes

    def inputs_or_outputs(self, kind: str, pairs: Pairs) -> Iterator[ModelChange]:
        """Yield the inputs or outputs that differ, in the order of the new scope, then the gone.

        Args:
            kind: ``input`` or ``output``.
            pairs: Those that belong together.
        """
        before, after = (
            side.inputs if kind == "input" else side.outputs for side in (self.old, self.new)
        )
        partners = {other: name for name, other in pairs}
        places = self._places(before, after, partners)
        for name in after:
            if name not in partners:
                yield ModelChange(kind, "added", None, name, self.new.type_text(name))
                continue
            fields = tuple(self._terminal_fields(kind, partners[name], name, places.get(name)))
            if fields:
                status = "renamed" if all(field.is_name for field in fields) else "changed"
                about = self.new.type_text(name)
                yield ModelChange(kind, status, partners[name], name, about, fields)
        matched = set(partners.values())
        for name in before:
            if name not in matched:
                yield ModelChange(kind, "removed", name, None, self.old.type_text(name))

    @staticmethod
    def _places(
        before: list[str], after: list[str], partners: dict[str, str]
    ) -> dict[str, tuple[int, int]]:
        """Return old and new position of each pair, when the order of the pairs differs."""
        rank = {name: number for number, name in enumerate(before)}
        matched = [name for name in after if name in partners]
        old_order = sorted(matched, key=lambda name: rank[partners[name]])
        if old_order == matched:
            return {}
        old_rank = {name: number for number, name in enumerate(old_order)}
        return {
            name: (old_rank[name], number)
            for number, name in enumerate(matched)
            if old_rank[name] != number
        }

    def _terminal_fields(
        self, kind: str, name: str, other: str, places: tuple[int, int] | None
    ) -> Iterator[Field]:
        if name != other:
            yield Field("name", name, other, is_name=True)
        if places is not None:
            yield Field("position", str(places[0] + 1), str(places[1] + 1))
        yield from self._type_fields(name, other)
        if kind == "output" and not self.nodes.same_value(name, other):
            yield Field("source", source(self.old, name), source(self.new, other))
        records = [
            next(
                (r for r in side.scope.records.get(kind, ()) if record_name(kind, r) == tensor),
                None,
            )
            for side, tensor in ((self.old, name), (self.new, other))
        ]
        if records[0] is not None and records[1] is not None:
            yield from text_fields(records[0], records[1], ("doc_string",))
            yield from metadata_fields(records[0], records[1])

    def _type_fields(self, name: str, other: str) -> Iterator[Field]:
        first, second = self.old.types.get(name), self.new.types.get(other)
        if first is None and second is None:
            return
        if first is None or second is None or not _same_type(first, second):
            texts = self.old.type_text(name), self.new.type_text(other)
            if texts[0] == texts[1] and texts[0]:
                yield Field("type denotation", None, None)
            elif texts[0] != texts[1]:
                yield Field("type", texts[0] or None, texts[1] or None)

    def values(self) -> Iterator[ModelChange]:
        """Yield the values whose declared type differs, or is declared on one side only."""
        old, new = self.old, self.new
        boundary = ({*old.inputs, *old.outputs}, {*new.inputs, *new.outputs})
        for name, other in old.values.items():
            if name in boundary[0] and other in boundary[1]:
                continue
            first, second = old.types.get(name), new.types.get(other)
            if first is second or (first is not None and first == second):
                continue
            fields = tuple(self._type_fields(name, other))
            if not fields:
                continue
            if first is None:
                yield ModelChange("value", "added", None, other, new.type_text(other), fields)
            elif second is None:
                yield ModelChange("value", "removed", name, None, old.type_text(name), fields)
            else:
                yield ModelChange("value", "changed", name, other, new.type_text(other), fields)

    def initializers(self, pairs: Pairs) -> Iterator[ModelChange]:
        """Yield the initializers that differ, in the order of the new scope, then the gone."""
        old, new = self.old, self.new
        partners = {other: name for name, other in pairs}
        for name in new.initializers:
            if name not in partners:
                yield ModelChange("initializer", "added", None, name, _about(new, name))
                continue
            change = self._initializer(partners[name], name)
            if change is not None:
                yield change
        matched = set(partners.values())
        for name in old.initializers:
            if name not in matched:
                yield ModelChange("initializer", "removed", name, None, _about(old, name))

    def _initializer(self, name: str, other: str) -> ModelChange | None:
        first, second = self.old.initializers[name], self.new.initializers[other]
        if name == other and same_bytes(first, second):
            return None
        fields: list[Field] = []
        if name != other:
            fields.append(Field("name", name, other, is_name=True))
            if _same_but_for_names(first, second):
                about = _about(self.new, other)
                return ModelChange("initializer", "renamed", name, other, about, tuple(fields))
        old, new = self.old.tensor(name), self.new.tensor(other)
        difference = None
        if old is None or new is None:
            fields += self._sparse_fields(name, other)
        else:
            difference = self._tensor_fields(old, new, fields)
            fields += text_fields(old.proto, new.proto, ("doc_string",))
            fields += metadata_fields(old.proto, new.proto)
        if not fields:
            return None
        status = "renamed" if all(field.is_name for field in fields) else "changed"
        about = _about(self.new, other)
        return ModelChange("initializer", status, name, other, about, tuple(fields), difference)

    def _tensor_fields(
        self, old: Tensor, new: Tensor, fields: list[Field]
    ) -> TensorDifference | None:
        first, second = old.proto, new.proto
        if first.data_type != second.data_type:
            fields.append(Field("dtype", old.dtype, new.dtype))
        if first.dims != second.dims:
            fields.append(Field("shape", fmt.shape(old.shape), fmt.shape(new.shape)))
        if not self._weights or any(field.name in ("dtype", "shape") for field in fields):
            return None
        try:
            difference = values_difference(old, new, self._meter)
        except InputError as error:
            where = visible(new.name)
            self._notes.append(f"the values of {where} cannot be compared: {error.message}")
            return None
        if isinstance(difference, TensorDifference):
            fields.append(Field("values", None, difference.text))
            return difference
        if difference is not None:
            fields.append(Field("values", *difference))
        return None

    def _sparse_fields(self, name: str, other: str) -> Iterator[Field]:
        first, second = self.old.initializers[name], self.new.initializers[other]
        if hasattr(first, "data_type") or hasattr(second, "data_type"):
            yield Field("form", _form(first), _form(second))
            return
        if first.dims != second.dims:
            yield Field("shape", fmt.shape(tuple(first.dims)), fmt.shape(tuple(second.dims)))
        for part in ("values", "indices"):
            tensors = [
                Tensor(getattr(proto, part), side.scope.document)
                for proto, side in ((first, self.old), (second, self.new))
            ]
            inner: list[Field] = []
            self._tensor_fields(tensors[0], tensors[1], inner)
            for field in inner:
                label = part if field.name == "values" else f"{part} {field.name}"
                yield Field(label, field.old, field.new)


def _same_but_for_names(first: Any, second: Any) -> bool:
    """Return True for two small tensors that are alike but for their names; False says nothing."""
    if type(first) is not onnx.TensorProto or type(second) is not onnx.TensorProto:
        return False
    data = first.raw_data
    if data != second.raw_data or len(data) == SENTINEL_LENGTH or first.dims != second.dims:
        return False
    return first.data_type == second.data_type and all(
        field.name in _TENSOR_FIELDS for proto in (first, second) for field, _ in proto.ListFields()
    )


def _form(proto: Any) -> str:
    return "dense" if hasattr(proto, "data_type") else "sparse"


def _about(side: DiffSide, name: str) -> str:
    if side.tensor(name) is None:
        return f"sparse {fmt.shape(tuple(side.initializers[name].dims))}"
    return value_text(side, name)


def _same_type(first: Any, second: Any) -> bool:
    return bool(first == second)


_MODEL_TEXTS = (
    "ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string",
)  # fmt: skip
_MODEL_KNOWN = frozenset(
    (*_MODEL_TEXTS, "opset_import", "graph", "metadata_props", "functions", "training_info")
)
_SCOPE_KNOWN = frozenset(
    ("name", "doc_string", "metadata_props", "opset_import", "attribute", "attribute_proto",
     "domain", "overload", "input", "output")
)  # fmt: skip


def model_changes(old: Document, new: Document) -> list[ModelChange]:
    """Return what differs of two models outside of their graphs: at most one change."""
    first, second = old.model, new.model
    fields = [
        *text_fields(first, second, _MODEL_TEXTS),
        *_opset_fields(old.opset_imports, new.opset_imports),
        *metadata_fields(first, second),
        *_training_fields(first, second),
        *other_fields(first, second, _MODEL_KNOWN),
    ]
    return (
        [ModelChange("model", "changed", "model", "model", fields=tuple(fields))] if fields else []
    )


def _opset_fields(old: dict[str, int], new: dict[str, int]) -> Iterator[Field]:
    for domain in sorted({*old, *new}):
        versions = [opsets.get(domain) for opsets in (old, new)]
        if versions[0] != versions[1]:
            yield Field(
                f"opset {domain or 'ai.onnx'}", _version(versions[0]), _version(versions[1])
            )


def _version(version: int | None) -> str | None:
    return None if version is None else str(version)


def _training_fields(old: onnx.ModelProto, new: onnx.ModelProto) -> Iterator[Field]:
    # Payloads that were cut out carry a mark of their document, so only the outline is compared.
    before, after = (", ".join(map(_training, model.training_info)) for model in (old, new))
    if before != after:
        yield Field("training_info", before or None, after or None)


def _training(info: onnx.TrainingInfoProto) -> str:
    parts = (len(info.initialization.node), len(info.algorithm.node), len(info.update_binding))
    return "{} initialization nodes, {} algorithm nodes, {} updates".format(*parts)


def scope_changes(old: DiffSide, new: DiffSide) -> list[ModelChange]:
    """Return what differs of two graphs or functions as a whole: at most one change."""
    first: Any = old.scope.proto
    second: Any = new.scope.proto
    is_function = old.scope.is_function
    fields: list[Field] = []
    if not is_function:
        fields += text_fields(first, second, ("name",), is_name=True)
    fields += text_fields(first, second, ("doc_string",))
    fields += metadata_fields(first, second)
    if is_function:
        fields += _opset_fields(_opsets(first), _opsets(second))
        fields += _list_fields("parameters", first.attribute, second.attribute)
        fields += _defaults(old, new)
    fields += _annotation_fields(old, new)
    fields += other_fields(first, second, _SCOPE_KNOWN)
    if not fields:
        return []
    status = "renamed" if all(field.is_name for field in fields) else "changed"
    kind = "function" if is_function else "graph"
    old_name, new_name = text_of(first.name), text_of(second.name)
    return [ModelChange(kind, status, old_name, new_name, fields=tuple(fields))]


def _opsets(function: onnx.FunctionProto) -> dict[str, int]:
    opsets = {text_of(entry.domain): int(entry.version) for entry in function.opset_import}
    if "ai.onnx" in opsets:
        opsets.setdefault("", opsets.pop("ai.onnx"))
    return opsets


def _list_fields(name: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Field]:
    before, after = texts_of(old), texts_of(new)
    if before != after:
        yield Field(name, ", ".join(before) or None, ", ".join(after) or None)


def _defaults(old: DiffSide, new: DiffSide) -> Iterator[Field]:
    before, after = (
        {text_of(proto.name): proto for proto in _function(side).attribute_proto}
        for side in (old, new)
    )
    for name in sorted({*before, *after}):
        first, second = before.get(name), after.get(name)
        texts = [_default_text(proto) for proto in (first, second)]
        if texts[0] != texts[1] or _plain_bytes(first, old) != _plain_bytes(second, new):
            yield Field(f"parameter {name}", texts[0], texts[1])


def _annotation_fields(old: DiffSide, new: DiffSide) -> Iterator[Field]:
    """Yield the quantization annotations that differ but for names, by the new one of the value."""
    before, after = (
        quantization_annotations(old.scope, old.values),
        quantization_annotations(new.scope, {}),
    )
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield Field(f"quantization of {name}", before.get(name), after.get(name))


def quantization_annotations(scope: Scope, names: Mapping[str, str]) -> dict[str, str]:
    """Return the quantization annotations of a scope by value. Untrusted text.

    Args:
        scope: The scope.
        names: What to call values instead.
    """
    annotations = {}
    for record in scope.records.get("quantization_annotation", ()):
        entries = [
            (text_of(entry.key), text_of(entry.value))
            for entry in record.quant_parameter_tensor_names
        ]
        tensor = text_of(record.tensor_name)
        annotations[names.get(tensor, tensor)] = ", ".join(
            f"{key} {names.get(name, name)}" for key, name in sorted(entries)
        )
    return annotations


def _function(side: DiffSide) -> onnx.FunctionProto:
    assert isinstance(side.scope.proto, onnx.FunctionProto)
    return side.scope.proto


def _plain_bytes(proto: onnx.AttributeProto | None, side: DiffSide) -> bytes:
    """Return a default as bytes; nothing for one with a payload that was cut out."""
    data = b"" if proto is None else proto.SerializeToString()
    return b"" if side.scope.document.blobs.nonce in data else data


def _default_text(proto: onnx.AttributeProto | None) -> str | None:
    from onnx.helper import printable_attribute

    return None if proto is None else str(printable_attribute(proto))


def diff_documents(
    old: Document,
    new: Document,
    *,
    weights: bool = True,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> ModelDiff:
    """Return the differences of two models.

    The order of initializers, attributes and declared types has no meaning and is not compared, nor
    is the place and encoding of a tensor's values in the file.

    Args:
        old: The old document.
        new: The new document.
        weights: False leaves the values of initializers out.
        progress: Called with bytes of weights compared and bytes in all.
        cancelled: Asked at intervals.

    Raises:
        CancelledError: `cancelled` returned True.
    """
    meter = Meter(progress, cancelled)
    with collector_paused():
        return _Comparison(old, new, weights, meter).run()


class _Comparison:
    def __init__(self, old: Document, new: Document, weights: bool, meter: Meter) -> None:
        self.old = old
        self.new = new
        self.weights = weights
        self.meter = meter
        self.found = ModelDiff(_place(old), _place(new))
        self._digests: dict[int, str | None] = {}
        self._unmatched: tuple[list[_Loose], list[_Loose]] = ([], [])
        if weights:
            meter.total = payload_bytes(new)

    def run(self) -> ModelDiff:
        diff = self.found
        diff.changes += model_changes(self.old, self.new)
        self._scopes(self.old.main, self.new.main, None, None)
        functions = {scope.step: scope for scope in self.new.functions}
        for scope in self.old.functions:
            other = functions.pop(scope.step, None)
            if other is not None:
                self._scopes(scope, other, None, None)
            else:
                diff.changes.append(_function_change(scope, "removed"))
        diff.changes += [_function_change(scope, "added") for scope in functions.values()]
        self._find_moved()
        if self.weights:
            for noise in weight_noise(self.old, self.new):
                self.meter.check()
                if isinstance(noise, str):
                    diff.notes.append(noise)
                else:
                    diff.weights.append(noise)
        return diff

    def _scopes(
        self, old: Scope, new: Scope, old_parent: DiffSide | None, new_parent: DiffSide | None
    ) -> None:
        self.meter.check()
        sides = DiffSide(old, old_parent), DiffSide(new, new_parent)
        matches, initializers = match_scopes(*sides, self._digest)
        result = ScopeDiff(old, new, sides[0].path, sides[1].path, sides[0].partners)
        self.found.scopes.append(result)
        notes = self.found.notes
        nodes = NodeComparison(*sides, self.meter, notes)
        items = ItemComparison(nodes, self.weights, self.meter, notes)
        result.changes += scope_changes(*sides)
        result.changes += items.inputs_or_outputs("input", matches.inputs)
        result.changes += items.inputs_or_outputs("output", matches.outputs)
        self._nodes(nodes, result)
        result.changes += items.initializers(initializers)
        result.changes += items.values()
        for index, partner in enumerate(sides[0].partners):
            if partner >= 0 and sides[0].nodes[index].children:
                self._children(sides, index, partner)

    def _children(self, sides: tuple[DiffSide, DiffSide], index: int, partner: int) -> None:
        mine, theirs = sides[0].nodes[index].children, sides[1].nodes[partner].children
        for attribute, scopes in mine.items():
            others = theirs.get(attribute, [])
            if len(scopes) == len(others):
                for scope, other in zip(scopes, others, strict=True):
                    self._scopes(scope, other, *sides)

    def _nodes(self, comparison: NodeComparison, result: ScopeDiff) -> None:
        old, new = comparison.old, comparison.new
        changes = result.changes
        removed = [index for index, partner in enumerate(old.partners) if partner < 0]
        at = 0
        for index, partner in enumerate(new.partners):
            if partner < 0:
                self._unmatched[1].append(_Loose(new, index, result, len(changes)))
                changes.append(_only(new, index, "added"))
                continue
            while at < len(removed) and removed[at] < partner:
                self._remove(old, removed[at], result)
                at += 1
            change = comparison.change(partner, index)
            if change is not None:
                changes.append(change)
        for index in removed[at:]:
            self._remove(old, index, result)
        moved = out_of_order([partner for partner in old.partners if partner >= 0])
        if moved:
            about = (
                f"{fmt.count(moved)} of {nodes_text(len(old.nodes))} stand elsewhere in the file"
            )
            changes.append(ModelChange("order", "changed", "nodes", "nodes", about))

    def _remove(self, old: DiffSide, index: int, result: ScopeDiff) -> None:
        self._unmatched[0].append(_Loose(old, index, result, len(result.changes)))
        result.changes.append(_only(old, index, "removed"))

    def _find_moved(self) -> None:
        """Turn nodes that are gone here and new there into moved ones."""
        if len(self.found.scopes) < 2:
            return
        mine, theirs = (_by_identity(loose) for loose in self._unmatched)
        gone: dict[int, set[int]] = {}
        for key, removed in mine.items():
            other = theirs.get(key)
            if removed is None or other is None:
                continue
            removed.result.changes[removed.at] = ModelChange(
                "node",
                "moved",
                removed.side.ref(removed.index),
                other.side.ref(other.index),
                signature(other.side, other.index),
                old_node=removed.side.nodes[removed.index],
                new_node=other.side.nodes[other.index],
                new_place=other.side.path,
            )
            gone.setdefault(id(other.result), set()).add(other.at)
        for result in self.found.scopes:
            places = gone.get(id(result))
            if places:
                result.changes = [
                    change for at, change in enumerate(result.changes) if at not in places
                ]

    def _digest(self, side: DiffSide, name: str) -> str | None:
        tensor = side.tensor(name)
        if tensor is None or not self.weights:
            return None
        key = id(tensor.proto)
        if key not in self._digests:
            try:
                self._digests[key] = digest(tensor, self.meter)
            except InputError:
                self._digests[key] = None  # said when the values themselves are compared
        return self._digests[key]


class _Loose:
    """A node without a partner, and where its change is."""

    __slots__ = ("at", "index", "result", "side")

    def __init__(self, side: DiffSide, index: int, result: ScopeDiff, at: int) -> None:
        self.side = side
        self.index = index
        self.result = result
        self.at = at


def _by_identity(loose: list[_Loose]) -> dict[tuple[object, ...], _Loose | None]:
    """Return the nodes by name, operator and attributes; None where several are alike."""
    by_key: dict[tuple[object, ...], _Loose | None] = {}
    for item in loose:
        name = item.side.names[item.index]
        if name:
            key = (name, item.side.operators[item.index], item.side.attributes(item.index))
            by_key[key] = None if key in by_key else item
    return by_key


def _only(side: DiffSide, index: int, status: str) -> ModelChange:
    node = side.nodes[index]
    ref, is_old = side.ref(index), status == "removed"
    return ModelChange(
        "node",
        status,
        ref if is_old else None,
        None if is_old else ref,
        signature(side, index),
        old_node=node if is_old else None,
        new_node=None if is_old else node,
    )


def _function_change(scope: Scope, status: str) -> ModelChange:
    name = scope.step.removeprefix("function ")
    nodes = sum(len(inner.nodes) for inner in scope.walk())
    old, new = (name, None) if status == "removed" else (None, name)
    return ModelChange("function", status, old, new, nodes_text(nodes))


def _place(document: Document) -> str:
    path: Path | None = document.path
    return str(path) if path is not None else document.title
