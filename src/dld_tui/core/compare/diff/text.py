"""A diff, or one model, as deterministic lines of text.

Items without a meaningful order are sorted by name; text that is too long for a line is followed by
a hash, so that any change shows.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from math import inf
from typing import Any, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.compare.diff.attributes import attribute_text, tensor_text
from dld_tui.core.compare.diff.compare import quantization_annotations, signature
from dld_tui.core.compare.diff.model_diff import Field, ModelChange, ModelDiff, ScopeDiff
from dld_tui.core.compare.diff.side import DiffSide
from dld_tui.core.compare.diff.tensors import Meter, WeightNoise, digest
from dld_tui.core.errors import InputError
from dld_tui.core.files.proto_fields import get_text, text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Attribute, Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.text import clip, visible

_SMALL = 16
"""Elements of a tensor that is shown with its values instead of their hash."""
_LONG = 1000
"""Cells of a value that are shown."""
_NO_LIMIT = 1 << 62


def model_lines(document: Document, *, weights: bool = True) -> Iterator[str]:
    """Yield the lines of a model, fit to be shown.

    Args:
        weights: False leaves the hashes of large tensors out, so that no payload is read.
    """
    for line in _Printer(weights).model(document):
        yield visible(line)


class _Printer:
    def __init__(self, weights: bool) -> None:
        self.weights = weights
        self.meter = Meter()

    def model(self, document: Document) -> Iterator[str]:
        model = document.model
        yield "model"
        for name in ("ir_version", "producer_name", "producer_version", "domain", "model_version"):
            if model.HasField(name):
                yield f"  {name}: {text_or_number(getattr(model, name))}"
        for domain, version in sorted(document.opset_imports.items()):
            yield f"  opset {domain or 'ai.onnx'}: {version}"
        yield from _notes(model, "  ")
        yield from self.scope(document.main, "main", "")
        for function in sorted(document.functions, key=lambda scope: scope.step):
            yield from self.scope(function, function.step, "")

    def scope(self, scope: Scope, title: str, indent: str) -> Iterator[str]:
        side = DiffSide(scope, None)
        inner = f"{indent}  "
        yield f"{indent}{title}"
        proto: Any = scope.proto
        if not scope.is_function and proto.name:
            yield f"{inner}name: {text_of(proto.name)}"
        yield from _notes(proto, inner)
        if scope.is_function:
            yield from _function_head(proto, inner)
        for kind, names in (("input", side.inputs), ("output", side.outputs)):
            for name in names:
                yield f"{inner}{kind} {name}: {side.type_text(name) or '?'}"
        for name in sorted(side.initializers):
            yield f"{inner}initializer {name}: {self.initializer(side, name)}"
        boundary = {*side.inputs, *side.outputs}
        for name in sorted(side.types.keys() - boundary):
            yield f"{inner}type {name}: {side.type_text(name)}"
        for name, text in sorted(quantization_annotations(scope, {}).items()):
            yield f"{inner}quantization of {name}: {text}"
        for index, node in enumerate(side.nodes):
            yield from self.node(side, index, node, inner)

    def initializer(self, side: DiffSide, name: str) -> str:
        tensor = side.tensor(name)
        if tensor is not None:
            return self.tensor(tensor)
        sparse = side.initializers[name]
        parts = (Tensor(part, side.scope.document) for part in (sparse.values, sparse.indices))
        values, indices = (self.tensor(part) for part in parts)
        return f"sparse {fmt.shape(tuple(sparse.dims))}, values {values}, indices {indices}"

    def tensor(self, tensor: Tensor) -> str:
        text = tensor_text(tensor)
        if tensor.element_count <= _SMALL or not self.weights:
            return text
        try:
            return f"{text} blake2b {digest(tensor, self.meter)}"
        except InputError as error:
            return f"{text} ({error.message})"

    def node(self, side: DiffSide, index: int, node: Node, indent: str) -> Iterator[str]:
        yield f"{indent}node {side.names[index]}: {signature(side, index)}"
        inner = f"{indent}    "
        for attribute in sorted(node.attributes(), key=lambda attribute: attribute.name):
            scopes = node.children.get(attribute.name)
            if scopes is not None and attribute.reference is None:
                for number, scope in enumerate(scopes):
                    place = "" if scope.position is None else f"[{number}]"
                    yield from self.scope(scope, f"{attribute.name}{place}", inner)
                continue
            value = attribute.value
            is_tensor = isinstance(value, Tensor) and attribute.reference is None
            text = self.tensor(value) if is_tensor else _whole(attribute)
            yield f"{inner}{attribute.name}: {text}"
        yield from _notes(node.proto, inner)


def _whole(attribute: Attribute) -> str:
    """Return the value of an attribute; a long one as its beginning and a hash of all of it."""
    text = attribute_text(attribute, limit=_NO_LIMIT)
    if len(text) <= _LONG:
        return text
    hasher = hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=16)
    return f"{clip(text, _LONG)} blake2b {hasher.hexdigest()}"


def text_or_number(value: Any) -> str:
    """Return a field of a message as text."""
    return text_of(value) if isinstance(value, (str, bytes)) else str(value)


def _notes(message: Any, indent: str) -> Iterator[str]:
    doc_string = get_text(message, "doc_string")
    if doc_string:
        yield f"{indent}doc_string: {doc_string}"
    entries = [(text_of(entry.key), text_of(entry.value)) for entry in message.metadata_props]
    for key, value in sorted(entries):
        yield f"{indent}metadata {key}: {value}"


def _function_head(proto: Any, indent: str) -> Iterator[str]:
    for entry in sorted(proto.opset_import, key=lambda entry: text_of(entry.domain)):
        yield f"{indent}opset {text_of(entry.domain) or 'ai.onnx'}: {entry.version}"
    for name in proto.attribute:
        yield f"{indent}parameter {text_of(name)}"
    for default in proto.attribute_proto:
        yield f"{indent}parameter {text_of(default.name)} has a default"


Part: TypeAlias = "tuple[str, str]"
"""(text that is fit to be shown, style): a status of a change, ``head``, ``quiet`` or nothing."""

MARKS = {"added": "+", "removed": "-", "changed": "~", "renamed": ">", "moved": "^"}
"""The first character of a line, by status."""
_PLURALS = {"model": "model", "graph": "graph", "order": "order"}
_MOST_RENAMED, _RENAMED_SHOWN = 8, 3
"""The most renamed items of a kind in a graph that are listed; beyond it, a summary is more useful
for a model that was exported again. JSON has all of them."""
_MOST_WEIGHTS = 20
"""Weights in few bits that are shown, those with the most noise first."""
_MOST_TYPES = 8
"""From here on, types that only one model declares are counted instead of listed."""


def lines(diff: ModelDiff) -> Iterator[list[Part]]:
    """Yield the lines of a comparison; none when nothing differs."""
    if diff.same:
        return
    yield [(f"--- {visible(diff.old)}", "head")]
    yield [(f"+++ {visible(diff.new)}", "head")]
    if diff.changes:
        yield [("model", "head")]
        for change in diff.changes:
            yield from _model_lines(change)
    for scope in diff.scopes:
        if scope.changes:
            yield [(scope_title(scope), "head")]
            yield from _scope_lines(scope)
    if diff.weights:
        yield [("weights in few bits, signal to noise", "head")]
        worst = noisiest(diff)
        yield from ([(noise_text(noise), "")] for noise in worst[:_MOST_WEIGHTS])
        if len(worst) > _MOST_WEIGHTS:
            rest = len(worst) - _MOST_WEIGHTS
            verb = "has" if rest == 1 else "have"
            yield [(f"  {fmt.count(rest)} more {verb} less noise", "")]
    yield []
    yield [(summary(diff), "")]


def noisiest(diff: ModelDiff) -> list[WeightNoise]:
    """Return the weights in few bits, those with the most noise first."""
    return sorted(diff.weights, key=lambda weight: inf if weight.snr_db is None else weight.snr_db)


def noise_text(noise: WeightNoise) -> str:
    """Return the line of a weight in few bits. Fit to be shown."""
    name = f"{visible(noise.weight)} {fmt.shape(noise.shape)}"
    if noise.snr_db is None:
        return f"     same  {name}  {noise.format}"
    # The important part comes first: names are long, and terminals are narrow.
    return f"{noise.snr_db:6.1f} dB  {name}  max |Δ| {noise.max_abs:.3g}, {noise.format}"


def scope_title(scope: ScopeDiff) -> str:
    """Return the path of a scope, of both models where they differ. Fit to be shown."""
    texts = [visible(" › ".join(path)) or "main" for path in (scope.old_path, scope.new_path)]
    return texts[0] if texts[0] == texts[1] else f"{texts[0]} -> {texts[1]}"


def summary(diff: ModelDiff) -> str:
    """Return for example ``nodes: 1 added, 2 changed; initializers: 1 changed``."""
    if diff.same:
        return "no differences"
    parts = []
    for kind, by_status in diff.counts().items():
        figures = ", ".join(f"{fmt.count(count)} {status}" for status, count in by_status.items())
        parts.append(f"{_PLURALS.get(kind, kind + 's')}: {figures}")
    return "; ".join(parts)


def title(change: ModelChange) -> str:
    """Return the names of an item: both where they differ. Fit to be shown."""
    if change.old is not None and change.new is not None and change.old != change.new:
        return f"{visible(change.old)} -> {visible(change.new)}"
    return visible(change.name)


def field_text(field: Field) -> str:
    """Return a difference as one line. Fit to be shown."""
    name = visible(field.name)
    if field.old is None and field.new is None:
        return f"{name} differs"
    if field.old is None:
        # Fields without old text are new, or describe the difference themselves.
        return f"{name}: {visible(field.new or '')}"
    return (
        f"{name}: {visible(field.old)} -> {visible(field.new) if field.new is not None else 'none'}"
    )


def shown_fields(change: ModelChange) -> list[Field]:
    """Return the differences that the names of the item do not say."""
    if change.kind == "value":
        return []
    return [field for field in change.fields if field.name != "name" or change.kind == "graph"]


def _model_lines(change: ModelChange) -> Iterator[list[Part]]:
    if change.kind == "function":
        about = f"  {visible(change.about)}"
        yield [(f"  {MARKS[change.status]} function {title(change)}", change.status), (about, "")]
        return
    for field in change.fields:
        yield [(f"  {MARKS[field_status(field)]} {_pair_text(field)}", field_status(field))]


def field_status(field: Field) -> str:
    """Return ``added``, ``removed`` or ``changed``."""
    if field.old is None and field.new is not None:
        return "added"
    return "removed" if field.old is not None and field.new is None else "changed"


def _pair_text(field: Field) -> str:
    status = field_status(field)
    if status == "removed":
        return f"{visible(field.name)}: {visible(field.old or '')}"
    return field_text(field)


def _scope_lines(scope: ScopeDiff) -> Iterator[list[Part]]:
    one_sided = Counter(
        change.status
        for change in scope.changes
        if change.kind == "value" and change.status in ("added", "removed")
    )
    counted: set[str] = set()
    renamed = Counter(change.kind for change in scope.changes if change.status == "renamed")
    shown_kinds: Counter[str] = Counter()
    for change in scope.changes:
        if change.status == "renamed" and renamed[change.kind] > _MOST_RENAMED:
            shown_kinds[change.kind] += 1
            if shown_kinds[change.kind] <= _RENAMED_SHOWN:
                yield next(change_lines(change))
            elif shown_kinds[change.kind] == _RENAMED_SHOWN + 1:
                more = fmt.count(renamed[change.kind] - _RENAMED_SHOWN)
                yield [(f"  {MARKS['renamed']} {more} more {change.kind}s are renamed", "renamed")]
            continue
        if change.kind == "value" and one_sided[change.status] > _MOST_TYPES:
            if change.status not in counted:
                counted.add(change.status)
                number = fmt.count(one_sided[change.status])
                text = f"  {MARKS[change.status]} declared types of {number} values"
                yield [(text, change.status)]
            continue
        yield from change_lines(change)


def change_lines(change: ModelChange) -> Iterator[list[Part]]:
    """Yield the lines of one change of a scope."""
    mark = MARKS[change.status]
    if change.kind == "order":
        yield [(f"  {mark} order", change.status), (f"  {visible(change.about)}", "")]
        return
    if change.kind in ("graph", "function"):
        for field in change.fields:
            status = field_status(field)
            yield [(f"  {MARKS[status]} {change.kind} {_pair_text(field)}", status)]
        return
    kind = "type of" if change.kind == "value" else change.kind
    about = visible(change.about)
    if change.kind == "value" and change.status == "changed":
        about = f"{visible(change.fields[0].old or '?')} -> {visible(change.fields[0].new or '?')}"
    if change.new_place is not None:
        about += f"  to {visible(' › '.join(change.new_place)) or 'main'}"
    yield [(f"  {mark} {kind} {title(change)}", change.status), (f"  {about}" if about else "", "")]
    for field in shown_fields(change):
        yield [(f"      {field_text(field)}", "")]
