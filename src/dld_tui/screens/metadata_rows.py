"""The rows of the metadata page: what can be written about a model and its parts."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dld_tui.core.document import Document, Node, Scope
from dld_tui.core.document.edits.metadata import MODEL_TEXTS
from dld_tui.core.document.type_text import format_type
from dld_tui.core.document.values import value_type_of
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.text import cell_width, clip, fit, visible
from dld_tui.core.types import JSON
from dld_tui.widgets import glyphs
from dld_tui.widgets.line_source import Piece

if TYPE_CHECKING:
    import onnx

_LABEL_CELLS = 26
_LEAST_LABEL = 12
_FIELDS = ("producer_name", "producer_version", "domain", "model_version", "ir_version")
_TITLES = {
    "producer_name": "producer", "producer_version": "producer version", "domain": "domain",
    "model_version": "model version", "ir_version": "IR version",
}  # fmt: skip


@dataclass(frozen=True)
class Part:
    """What entries belong to: the model (`scope` is None), a graph or function, or a node."""

    title: str
    """Visible text."""
    scope: Scope | None = None
    node: Node | None = None

    @property
    def where(self) -> dict[str, JSON]:
        """Return the arguments that name it in an edit."""
        if self.scope is None:
            return {}
        path: list[JSON] = list(self.scope.path)
        return {"scope": path} if self.node is None else {"scope": path, "nodes": [self.node.ref]}

    @property
    def message(self) -> Any:
        """Return the message that holds its entries."""
        if self.node is not None:
            return self.node.proto
        return self.scope.proto if self.scope is not None else None


@dataclass(frozen=True)
class MetadataRow:
    """One row; `kind` says what it is."""

    kind: str
    """``part``, ``field``, ``doc``, ``entry``, ``type`` or ``annotation``; ``note``."""
    label: str
    value: str
    """Foreign text; of an entry or doc string all of it."""
    part: Part
    key: str = ""
    """The entry's key, the field, or the value's name. Foreign text."""

    @property
    def is_text(self) -> bool:
        """Whether there is something to edit."""
        return self.kind in ("field", "doc", "entry", "type")


class MetadataLines:
    """The line source: parts from top to bottom; types of values are read when they are seen."""

    def __init__(self, document: Document, subject: Node | Scope | None) -> None:
        self.document = document
        node = subject if isinstance(subject, Node) else None
        scope = subject.scope if isinstance(subject, Node) else subject
        self.scope = scope or document.main
        self._values_part = Part(visible(self.scope.title), self.scope)
        self.rows = list(self._fixed(node))
        self._types: Sequence[Any] = self.scope.records.get("value_info", ())
        self._annotations: Sequence[Any] = self.scope.records.get("quantization_annotation", ())

    def _fixed(self, node: Node | None) -> Iterator[MetadataRow]:
        if node is not None:
            name = visible(node.name or next(filter(None, node.outputs), ""))
            yield from _part(Part(f"Node {visible(node.op_type)} {name}", node.scope, node))
        scope = self.scope
        kind = {"graph": "Graph", "function": "Function", "subgraph": "Subgraph"}[scope.kind]
        yield from _part(Part(f"{kind} {visible(text_of(scope.proto.name))}", scope))
        yield from self._model()

    def _model(self) -> Iterator[MetadataRow]:
        model = self.document.model
        part = Part("Model")
        yield MetadataRow("part", part.title, "", part)
        for field in _FIELDS:
            value = getattr(model, field) if model.HasField(field) else ""
            text = text_of(value) if field in MODEL_TEXTS else str(value)
            yield MetadataRow("field", _TITLES[field], text, part, field)
        yield from _texts(part, model)

    def __len__(self) -> int:
        return len(self.rows) + _section(self._types) + _section(self._annotations)

    def row(self, index: int) -> MetadataRow:
        """Return one row."""
        if index < len(self.rows):
            return self.rows[index]
        index -= len(self.rows)
        part = self._values_part
        if index < _section(self._types):
            if index == 0:
                return MetadataRow("part", f"Declared types in {part.title}", "", part)
            record = self._types[index - 1]
            known = value_type_of(record.type)
            text = format_type(known) or (known.text if known is not None else "")
            name = text_of(record.name)
            return MetadataRow("type", visible(name), text, part, name)
        index -= _section(self._types)
        if index == 0:
            return MetadataRow("part", f"Quantization annotations in {part.title}", "", part)
        return _annotation(self._annotations[index - 1], part)

    def key(self, index: int) -> Hashable:
        """Return what the row is about."""
        row = self.row(index)
        return (row.kind, row.part.title, row.key or row.label)

    def text(self, index: int) -> str:
        """Return what search and copy see."""
        row = self.row(index)
        return f"{row.label}  {visible(row.value)}".rstrip()

    def line(self, index: int, width: int) -> Sequence[Piece]:
        """Return one row: label and the first line of the value."""
        row = self.row(index)
        if row.kind == "part":
            return [(clip(row.label, width), "strong")]
        wide = row.kind in ("type", "annotation")
        label_cells = width // 2 if wide else max(_LEAST_LABEL, min(_LABEL_CELLS, width // 3))
        label = fit(row.label, label_cells, keep="middle")
        first, _, rest = row.value.partition("\n")
        lines = rest.count("\n") + 1 if rest else 0
        more = f"  and {lines} more {'line' if lines == 1 else 'lines'}" if lines else ""
        room = width - 4 - cell_width(label)
        style = {"type": "type", "annotation": "dim"}.get(row.kind, "")
        if not row.value:
            return [("  ", ""), (label, "key"), (f"  {glyphs.current().missing}", "faint")]
        return [
            ("  ", ""),
            (label, "key" if row.kind == "entry" else "dim"),
            ("  " + clip(visible(first), max(0, room - cell_width(more))), style),
            (more, "faint"),
        ]


def _section(records: Sequence[Any]) -> int:
    """Return how many rows records take, with their heading."""
    return len(records) + bool(len(records))


def _part(part: Part) -> Iterator[MetadataRow]:
    yield MetadataRow("part", part.title, "", part)
    yield from _texts(part, part.message)


def _texts(part: Part, message: Any) -> Iterator[MetadataRow]:
    yield MetadataRow("doc", "doc string", text_of(message.doc_string), part, "doc_string")
    for entry in message.metadata_props:
        key = text_of(entry.key)
        yield MetadataRow("entry", visible(key) or "(no key)", text_of(entry.value), part, key)


def _annotation(record: onnx.TensorAnnotation, part: Part) -> MetadataRow:
    entries = record.quant_parameter_tensor_names
    text = "  ".join(f"{text_of(e.key)} = {text_of(e.value)}" for e in entries)
    name = text_of(record.tensor_name)
    return MetadataRow("annotation", visible(name), text, part, name)
