"""What differs of models, graphs and functions as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx

from dld_tui.core.diff.model import Change, Field
from dld_tui.core.diff.nodes import metadata_fields, other_fields, text_fields
from dld_tui.core.diff.side import Side
from dld_tui.core.document.document import Document
from dld_tui.core.document.wiretext import text_of, texts_of

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


def model_changes(old: Document, new: Document) -> list[Change]:
    """Return what differs of two models outside of their graphs: at most one change."""
    first, second = old.model, new.model
    fields = [
        *text_fields(first, second, _MODEL_TEXTS),
        *_opset_fields(old.opset_imports, new.opset_imports),
        *metadata_fields(first, second),
        *_training_fields(first, second),
        *other_fields(first, second, _MODEL_KNOWN),
    ]
    return [Change("model", "changed", "model", "model", fields=tuple(fields))] if fields else []


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


def scope_changes(old: Side, new: Side) -> list[Change]:
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
    fields += other_fields(first, second, _SCOPE_KNOWN)
    if not fields:
        return []
    status = "renamed" if all(field.is_name for field in fields) else "changed"
    kind = "function" if is_function else "graph"
    old_name, new_name = text_of(first.name), text_of(second.name)
    return [Change(kind, status, old_name, new_name, fields=tuple(fields))]


def _opsets(function: onnx.FunctionProto) -> dict[str, int]:
    found = {text_of(entry.domain): int(entry.version) for entry in function.opset_import}
    if "ai.onnx" in found:
        found.setdefault("", found.pop("ai.onnx"))
    return found


def _list_fields(name: str, old: Iterable[str], new: Iterable[str]) -> Iterator[Field]:
    before, after = texts_of(old), texts_of(new)
    if before != after:
        yield Field(name, ", ".join(before) or None, ", ".join(after) or None)


def _defaults(old: Side, new: Side) -> Iterator[Field]:
    before, after = (
        {text_of(proto.name): proto for proto in _function(side).attribute_proto}
        for side in (old, new)
    )
    for name in sorted({*before, *after}):
        first, second = before.get(name), after.get(name)
        texts = [_default_text(proto) for proto in (first, second)]
        if texts[0] != texts[1] or _plain_bytes(first, old) != _plain_bytes(second, new):
            yield Field(f"parameter {name}", texts[0], texts[1])


def _function(side: Side) -> onnx.FunctionProto:
    assert isinstance(side.scope.proto, onnx.FunctionProto)
    return side.scope.proto


def _plain_bytes(proto: onnx.AttributeProto | None, side: Side) -> bytes:
    """Return a default as bytes; nothing for one with a payload that was cut out."""
    data = b"" if proto is None else proto.SerializeToString()
    return b"" if side.scope.document.blobs.nonce in data else data


def _default_text(proto: onnx.AttributeProto | None) -> str | None:
    return None if proto is None else str(onnx.helper.printable_attribute(proto))
