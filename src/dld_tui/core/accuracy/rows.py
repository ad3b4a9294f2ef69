"""The figures of a tensor's error as text, for tables and CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.result import Row
from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.tables.as_csv import csv_of
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import COUNT, NOTE, PLACE, RATIO, Unit
from dld_tui.core.text import visible

_EXACT = 1e-12
"""Cosines that differ less from 1 do so because sums are rounded."""


def rows_csv(rows: Sequence[Row]) -> str:
    """Return tensors as CSV; what is unknown is empty."""
    return csv_of(accuracy_table(rows, "csv"))


def accuracy_table(rows: Sequence[Row], view: str) -> Table[Row]:
    """Return tensors as a table of one of `VIEWS`."""

    def figure_of(name: str) -> Callable[[Row], Any]:
        return lambda row: getattr(row.error, name)

    columns: dict[str, Column[Row]] = {column.key: column for column in (
        Column("order", "#", lambda row: row.order, PLACE, 5, priority=6, style="dim",
               descending=False),
        Column("bad", "", lambda row: "!" if row.problem else "", NOTE, 1, style="error",
               order=lambda row: not row.problem),
        Column("tensor", "tensor", lambda row: row.name, NOTE, least=14, keep="end",
               style=lambda row: "strong" if row.is_output else ""),
        Column("other", "other", lambda row: row.other),
        Column("op_type", "operator", lambda row: row.op_type, NOTE, 14, priority=3, style="type"),
        Column("node", "node", lambda row: row.node, NOTE, 22, priority=7, keep="end",
               style="dim"),
        Column("made_by", "node", lambda row: (
            f"{row.op_type} {row.node}" if row.node != row.name else row.op_type), NOTE),
        Column("is_output", "output", lambda row: int(row.is_output), COUNT),
        Column("shape", "shape", lambda row: "x".join(map(str, row.error.shape)), width=18),
        Column("count", "elements", lambda row: row.error.count, COUNT),
        Column("max_abs", "max abs", lambda row: row.error.max_abs, ERROR, 9),
        Column("mean_abs", "mean abs", lambda row: row.error.mean_abs, ERROR, 9, priority=5,
               style="dim"),
        Column("max_rel", "max rel", lambda row: row.error.max_rel, ERROR, 9, priority=4),
        Column("mean_rel", "mean rel", lambda row: row.error.mean_rel, ERROR, 9),
        Column("cosine", "cosine", lambda row: row.error.cosine, COSINE, 9, priority=2,
               descending=False),
        Column("snr_db", "SNR dB", lambda row: row.error.snr_db, RATIO, 7, descending=False,
               text=lambda row: signal_text(row.error), order=lambda row: -row.error.noise),
        Column("largest", "largest", lambda row: row.error.largest, ERROR, 9),
        *(
            Column(name, name.replace("_", " "), figure_of(name), COUNT)
            for name in ("nan_reference", "nan_other", "inf_reference", "inf_other")
        ),
        Column("special", "NaN, Inf", lambda row: row.error.special, COUNT, 15, align="left",
               priority=1, style="warn", text=lambda row: special_text(row.error)),
        Column("outside", "outside", lambda row: row.error.outside, COUNT),
        Column("tolerance", "tolerance", lambda row: row.tolerance),
        Column("problem", "problem", lambda row: row.error.mismatch or row.problem),
        Column("differs", "", lambda row: "differs" if row.problem else "", NOTE),
    )}  # fmt: skip
    keys = VIEWS[view].split()
    return Table([columns[key] for key in keys], rows, row_key=lambda row: row.name)


VIEWS = {
    "csv": "tensor other node op_type order is_output shape count max_abs mean_abs max_rel mean_rel"
    " cosine snr_db largest nan_reference nan_other inf_reference inf_other special outside"
    " tolerance problem",
    "text": "tensor made_by max_abs mean_abs max_rel cosine snr_db special differs",
    "screen": "order bad tensor op_type node max_abs mean_abs max_rel cosine snr_db special",
}
"""The columns of each output, in order. Those of CSV are a contract."""


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


ERROR = Unit("error", figure, unknown="")
COSINE = Unit("cosine", cosine_text, unknown="")


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
