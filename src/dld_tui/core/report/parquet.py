"""The layers of a report as a Parquet file, with pyarrow, which is optional."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.core.errors import UnavailableError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.report.encoding import as_text
from dld_tui.core.report.export import shape_text
from dld_tui.core.report.records import Layer

if TYPE_CHECKING:
    from dld_tui.core.report.reader import Report

_TIMES = ("time_ms", "percent", "min_ms", "max_ms", "mean_ms", "gpu_time_ms", "count")
_SHAPES = ("input_dims", "output_dims")
_WORDS = ("input_types", "output_types")


def write_parquet(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write the layers as Parquet, a row each, and return remarks for the user.

    The columns are those of the CSV with their types: shapes, types and ONNX nodes are lists of
    texts, unknown values are null. Facts of the run are in the file's metadata.

    Raises:
        UnavailableError: pyarrow is not installed.
        SaveError: The file cannot be written.
    """
    return write_bytes(path, parquet_bytes(report), overwrite=overwrite)


def parquet_bytes(report: Report) -> bytes:
    """Return the file's content.

    Raises:
        UnavailableError: pyarrow is not installed.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UnavailableError(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'dld-tui[parquet]', or write --csv",
        ) from error
    fields = _fields(pyarrow)
    metadata = {
        "network": report.network,
        "backend": report.backend,
        "execution_provider": report.execution_provider,
        "device": report.device,
        "created": report.created,
    }
    schema = pyarrow.schema(
        list(fields.items()), metadata={name: as_text(value) for name, value in metadata.items()}
    )
    columns = [
        pyarrow.array([_value(layer, name) for layer in report.layers], type=kind)
        for name, kind in fields.items()
    ]
    target = io.BytesIO()
    parquet.write_table(pyarrow.table(columns, schema=schema), target)
    return target.getvalue()


def _fields(pyarrow: Any) -> dict[str, Any]:
    """Return the type of each column, in order."""
    text, texts = pyarrow.string(), pyarrow.list_(pyarrow.string())
    return {
        "index": pyarrow.int64(),
        "name": text,
        "type": text,
        **dict.fromkeys(_SHAPES, texts),
        **dict.fromkeys(_WORDS, texts),
        "provider": text,
        "precision": text,
        **dict.fromkeys(_TIMES, pyarrow.float64()),
        "passes": pyarrow.int64(),
        "nodes": texts,
        "confidence": text,
    }


def _value(layer: Layer, name: str) -> object:
    if name in _SHAPES:
        return [as_text(shape_text(dims)) for dims in getattr(layer, name)]
    if name in _WORDS:
        return [as_text(word) for word in getattr(layer, name)]
    if name == "nodes":
        return [as_text(link.label) for link in layer.nodes]
    value = getattr(layer, name)
    return as_text(value) if isinstance(value, str) else value
