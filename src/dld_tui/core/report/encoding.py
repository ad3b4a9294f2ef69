"""How values are put into the columns of a report."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dld_tui.core.errors import SaveError
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.types import JSON


def as_json(value: JSON) -> str:
    """Return JSON text; numbers that JSON cannot hold become null."""
    try:
        return json.dumps(value, allow_nan=False)
    except ValueError:
        return json.dumps(finite(value), allow_nan=False)


def finite(value: JSON) -> JSON:
    """Return a value in which numbers that JSON cannot hold are null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return value


def as_text(text: str) -> str:
    """Return text that SQLite can hold: bytes that were not UTF-8 are written as escapes."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode()


def as_list(dims: Sequence[int | str | None] | None) -> JSON:
    """Return a shape as JSON data; None for an unknown one."""
    return None if dims is None else list(dims)


def layer_row(index: int, layer: Layer) -> tuple[object, ...]:
    """Return the row of a layer whose statistics are not known yet."""
    return (
        index,
        as_text(layer.name),
        as_text(layer.type),
        None if layer.provider is None else as_text(layer.provider),
        layer.precision,
        as_json([as_list(dims) for dims in layer.input_dims]),
        as_json([as_list(dims) for dims in layer.output_dims]),
        as_json(list(layer.input_types)),
        as_json(list(layer.output_types)),
        layer.confidence,
        as_json(dict(layer.details)),
        *(None,) * 8,
    )


def link_row(index: int, position: int, link: NodeLink) -> tuple[object, ...]:
    """Return the row of a layer's link to an ONNX node."""
    scope = as_json(list(link.scope))
    texts = (as_text(link.node), as_text(link.name), as_text(link.op_type))
    return (index, position, scope, *texts, link.confidence, link.share)


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Turn what goes wrong with a file or database being written into a SaveError."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise SaveError(f"cannot write the report: {reason}", where=str(path)) from error
    except sqlite3.Error as error:
        raise SaveError(f"cannot write the report: {error}", where=str(path)) from error
