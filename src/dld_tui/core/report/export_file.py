"""A report into a file of another kind, which its name tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.core.errors import UsageError
from dld_tui.core.files.writer import write_bytes, write_text
from dld_tui.core.report.export import layers_csv, report_json
from dld_tui.core.report.export_trace import write_trace
from dld_tui.core.report.html.report_page import report_page
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.report.schema import finite
from dld_tui.core.tables.rendering import parquet_of

if TYPE_CHECKING:
    from dld_tui.core.report.model import Report


def write_html(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report as one HTML page and return remarks for the user."""
    return write_text(path, report_page(report), overwrite=overwrite)


def write_parquet(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write the layers as Parquet, a row each, and return remarks for the user.

    The columns are those of the CSV with their types; facts of the run are in the metadata.

    Raises:
        UnavailableError: pyarrow is not installed.
        SaveError: The file cannot be written.
    """
    names = ("network", "backend", "execution_provider", "device", "created")
    metadata = {name: getattr(report, name) for name in names}
    content = parquet_of(layer_table(report.layers, "report parquet"), metadata)
    return write_bytes(path, content, overwrite=overwrite)


def _write_csv(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    return write_text(path, layers_csv(report.layers), overwrite=overwrite)


def _write_json(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    text = json.dumps(finite(report_json(report)), indent=2, allow_nan=False)
    return write_text(path, text + "\n", overwrite=overwrite)


FORMATS: dict[str, tuple[str, Callable[..., list[str]]]] = {
    ".trace.json": ("a Chrome trace of all passes, for Perfetto", write_trace),
    ".csv": ("the layers as CSV", _write_csv),
    ".json": ("everything but single runs, as JSON", _write_json),
    ".html": ("one page to mail", write_html),
    ".parquet": ("the layers as Parquet", write_parquet),
}
"""What is written, and by whom, by the end of the file's name; the first that fits."""


def export_report(report: Report, path: Path, *, overwrite: bool = False) -> list[str]:
    """Write a report as what the file's name says, and return remarks for the user.

    Raises:
        UsageError: The name tells no kind.
        UnavailableError: The kind needs a package that is not installed.
        SaveError: The file cannot be written.
    """
    name = path.name.lower()
    for ending, (_, write) in FORMATS.items():
        if name.endswith(ending):
            return write(report, path, overwrite=overwrite)
    raise UsageError(
        "the name does not say what to write", where=str(path), hint=f"End it in {endings()}"
    )


def endings() -> str:
    """Return the endings for a sentence."""
    names = sorted(FORMATS)
    return f"{', '.join(names[:-1])} or {names[-1]}"
