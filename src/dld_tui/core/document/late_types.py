"""Types of inputs and outputs that edits made before their types were known.

A value that is made an input or output gets the type that is known of it. Where nothing was known
then, shape inference may tell it later; what the file had without a type stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dld_tui.core.document.primitives import Splice
from dld_tui.core.document.scope import Scope
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document

_SIDES = ("input", "output")


def untyped_terminals(document: Document) -> list[tuple[Scope, str]]:
    """Return the inputs and outputs that edits of this session made and that have no type."""
    return [
        (scope, text_of(record.name))
        for scope, record in _made(document)
        if not record.HasField("type")
    ]


def late_types(document: Document) -> list[dict[str, JSON]]:
    """Return the arguments of ``set_value_type`` for those whose types are inferred by now."""
    found: list[dict[str, JSON]] = []
    for scope, name in untyped_terminals(document):
        known = scope.inferred.get(name)
        if known is not None and known.dtype is not None and not known.container:
            dims: JSON = None if known.dims is None else list(known.dims)
            found.append(
                {"scope": list(scope.path), "value": name, "dtype": known.dtype, "dims": dims}
            )
    return found


def _made(document: Document) -> Iterator[tuple[Scope, Any]]:
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
