"""The figures of a tensor's error as text, for tables and CSV."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.result import Row
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.csv_text import csv_text
from dld_tui.core.text import visible

CSV_COLUMNS = (
    "tensor", "other", "node", "op_type", "order", "is_output", "shape", "count", "max_abs",
    "mean_abs", "max_rel", "mean_rel", "cosine", "snr_db", "largest", "nan_reference", "nan_other",
    "inf_reference", "inf_other", "special", "outside", "tolerance", "problem",
)  # fmt: skip

_EXACT = 1e-12
"""Cosines that differ less from 1 do so because sums are rounded."""


def rows_csv(rows: Iterable[Row]) -> str:
    """Return tensors as CSV with :data:`CSV_COLUMNS`."""
    return csv_text(CSV_COLUMNS, map(csv_row, rows), newline="\n")


def csv_row(row: Row) -> list[object]:
    """Return the fields of :data:`CSV_COLUMNS`; what is unknown is empty. Foreign text."""
    error = row.error
    figures = (getattr(error, name) for name in CSV_COLUMNS[CSV_COLUMNS.index("count") : -2])
    shape = "x".join(map(str, error.shape))
    return [
        row.name, row.other, row.node, row.op_type, row.order, int(row.is_output), shape,
        *("" if figure is None else figure for figure in figures), row.tolerance,
        error.mismatch or row.problem,
    ]  # fmt: skip


def figure(value: float | None) -> str:
    """Return an error in three digits, empty when it is unknown."""
    if value is None:
        return ""
    return "0" if value == 0 else f"{value:.2e}"


def cosine_text(value: float | None) -> str:
    """Return a cosine, or how far it is from 1 where that needs many digits."""
    if value is None:
        return ""
    return f"1-{1 - value:.0e}" if _EXACT < 1 - value < 1e-5 else f"{value:.6g}"


def signal_text(error: TensorError) -> str:
    """Return the signal to noise ratio in dB; ``same`` without any noise."""
    if error.is_equal:
        return "same"
    return "" if error.snr_db is None else f"{error.snr_db:.1f}"


def special_text(error: TensorError) -> str:
    """Return what is NaN or infinite, as ``reference → other``; empty without any."""
    parts = []
    for name, mine, theirs in (
        ("NaN", error.nan_reference, error.nan_other),
        ("Inf", error.inf_reference, error.inf_other),
    ):
        if mine or theirs:
            parts.append(f"{mine:,}>{theirs:,} {name}" if mine else f"{theirs:,} {name}")
    return " ".join(parts)


def side_text(side: Mapping[str, Any]) -> str:
    """Return how a side was run: ``model.onnx (ONNX Runtime 1.31.1, CPU, optimization all)``.

    Fit for a terminal.
    """
    rounded = f", rounded to {side['round']}" if side["round"] != "none" else ""
    return visible(f"{Path(side['model']).name} ({side['how']}{rounded})")


def verdict(row: Row) -> str:
    """Return what is wrong with a tensor; ``ok`` when nothing is. Foreign text."""
    return row.problem or "ok"


def listed(rows: Sequence[Row], most: int) -> list[Row]:
    """Return at most so many rows; 0 is all."""
    return list(rows[:most] if most else rows)
