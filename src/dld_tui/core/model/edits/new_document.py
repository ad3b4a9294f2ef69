"""New documents from their settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.model.document.new_model import VALUES, NewModel, opsets_of
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.tensors.value_types import ValueType


def new_document(request: NewModel) -> Document:
    """Return a new document.

    Raises:
        UsageError: A setting makes no sense; names its flag.
    """
    from dld_tui.core.files.proto_fields import set_text
    from dld_tui.core.model.document.document import Document

    taken: set[str] = set()
    inputs = [_value("--input", text, taken) for text in request.inputs]
    outputs = [_value("--output", text, taken) for text in request.outputs]
    document = Document.new(opsets_of(request))
    set_text(document.model.graph, "name", request.name)
    _declare(document, "input", inputs)
    _declare(document, "output", outputs)
    return document


def _value(flag: str, text: str, taken: set[str]) -> tuple[str, ValueType | None]:
    from dld_tui.core.model.tensors.value_types import parse_type

    name, colon, kind = text.rpartition(":")
    if not colon:
        name, kind = text, ""
    if not name:
        raise UsageError(f"{flag} {visible(text)!r} is not a value", hint=f"Write {VALUES}")
    if name in taken:
        raise UsageError(f"{flag} gives the name {visible(name)!r} twice")
    taken.add(name)
    try:
        return name, parse_type(kind)
    except DldError as error:
        raise UsageError(f"{flag} {visible(text)!r}: {error.message}", hint=error.hint) from None


def _declare(document: Document, side: str, values: Sequence[tuple[str, ValueType | None]]) -> None:
    import onnx

    from dld_tui.core.model.edits.subgraphs import declare

    for name, value_type in values:
        info = onnx.ValueInfoProto()
        declare(info, name, value_type)
        document.main.records[side].append(info)
