"""Types of the inputs and outputs that edits made, declared once they are inferred."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.transactions import Edit, Splice
from dld_tui.core.model.edits.inputs_outputs import set_value_type

_SIDES = ("input", "output")


def untyped_terminals(document: Document) -> list[tuple[Scope, str]]:
    """Return the inputs and outputs that edits of this session made and that have no type."""
    return [
        (scope, text_of(record.name))
        for scope, record in _added_terminals(document)
        if not record.HasField("type")
    ]


def late_types(document: Document) -> list[Edit]:
    """Return the edits that give a type to those whose types are inferred by now."""
    edits: list[Edit] = []
    for scope, name in untyped_terminals(document):
        known = scope.inferred.get(name)
        if known is not None and known.dtype is not None and not known.container:
            edits.append(
                set_value_type(scope=scope.path, value=name, dtype=known.dtype, dims=known.dims)
            )
    return edits


def declare_late(document: Document) -> list[str]:
    """Infer and declare the types that inputs and outputs made by edits lack.

    Returns:
        The names of those whose types stay unknown. Untrusted text.
    """
    if document.ask_types is not None and untyped_terminals(document):
        document.ask_types()
        for edit in late_types(document):
            document.apply(edit)
    return [name for _, name in untyped_terminals(document)]


def _added_terminals(document: Document) -> Iterator[tuple[Scope, Any]]:
    """Yield the records of inputs and outputs that edits put in and that are still there."""
    seen: set[int] = set()
    for transaction in document.history.done:
        for primitive in transaction.primitives:
            if not isinstance(primitive, Splice) or primitive.list_name not in _SIDES:
                continue
            present = primitive.scope.records.get(primitive.list_name, ())
            for record in primitive.inserted:
                if id(record) not in seen and any(other is record for other in present):
                    seen.add(id(record))
                    yield primitive.scope, record
