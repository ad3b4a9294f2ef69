"""The result of a comparison of two runs: matched tensors, their errors, the verdict."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from dld_tui.core.accuracy.tensor_errors import TensorError
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.inputs.guessed_input import GuessedInput
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import BAR, COUNT, NOTE, PLACE, RATIO, Column, Table, Unit
from dld_tui.core.text import visible

T = TypeVar("T")


def match_names(mine: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Return the other name by each name that has one.

    Those that are called otherwise are matched by place: the first that is left to the first that
    is left, but only when equally many are left.
    """
    matches = {name: name for name in mine if name in set(theirs)}
    unmatched = [name for name in mine if name not in matches]
    others = [name for name in theirs if name not in set(matches.values())]
    if len(unmatched) == len(others):
        matches.update(zip(unmatched, others, strict=True))
    return {name: matches[name] for name in mine if name in matches}


def carried_over(
    values: Mapping[str, T], mine: Sequence[str], theirs: Collection[str]
) -> tuple[dict[str, T], list[str]]:
    """Return values of one model's inputs by the names of another's, and those without a value."""
    names = {other: name for name, other in match_names(mine, list(theirs)).items()}
    carried = {other: values[names[other]] for other in theirs if names.get(other) in values}
    return carried, [name for name in theirs if name not in carried]


def as_type(value: Any, dtype: Any) -> Any:
    """Return an array in another element type; lists of arrays one by one."""
    if isinstance(value, list):
        return [as_type(item, dtype) for item in value]
    return value if value.dtype == dtype else value.astype(dtype)


@dataclass(frozen=True)
class AccuracyRow:
    """One tensor. All names are untrusted text."""

    name: str
    other: str
    """Its name in the other model."""
    node: str
    """The node that makes it, in the main graph; empty for an input."""
    op_type: str
    order: int
    """Its place in the order of the computation."""
    is_output: bool
    tolerance: str
    """The tolerance, for display."""
    problem: str
    """What of that does not hold; empty when all does."""
    error: TensorError

    def worse(self, other: AccuracyRow) -> AccuracyRow:
        """Return the worse one of two comparisons of the same tensor."""
        mine, theirs = ((bool(row.problem), _size(row.error)) for row in (self, other))
        return other if theirs > mine else self


def _size(error: TensorError) -> tuple[float, float]:
    return error.noise, error.max_abs or 0.0


@dataclass(frozen=True)
class Result:
    """All rows in the order of the computation."""

    rows: tuple[AccuracyRow, ...]
    remarks: tuple[str, ...] = ()
    """Fit for a terminal."""

    @property
    def first(self) -> AccuracyRow | None:
        """The first tensor, as the model computes, that is not within its tolerance."""
        return next((row for row in self.rows if row.problem), None)

    @property
    def outputs(self) -> list[AccuracyRow]:
        """The rows of the model's outputs."""
        return [row for row in self.rows if row.is_output]

    @property
    def is_good(self) -> bool:
        """Whether all outputs are within their tolerances."""
        return not any(row.problem for row in self.outputs)

    def worst(self) -> list[AccuracyRow]:
        """Return the rows, those with the largest errors first."""
        return sorted(self.rows, key=lambda row: (-row.error.noise, row.order))

    @property
    def growth(self) -> dict[str, float]:
        """By node, the largest error relative to the values, in parts of one; at most 1."""
        growths: dict[str, float] = {}
        for row in self.rows:
            if row.node:
                noise = min(row.error.noise, 1.0)
                growths[row.node] = max(growths.get(row.node, 0.0), noise)
        return growths


@dataclass(frozen=True)
class RunBy:
    """What runs a side."""

    library: str
    provider: str
    optimization: str
    how: str
    """All of it, for people."""


@dataclass(frozen=True)
class RunSide(RunBy):
    """One side of a comparison."""

    model: str
    """Its path."""
    round: str
    """The precision that its values are rounded to, or ``none``."""


@dataclass(frozen=True)
class AccuracyReport:
    """The result of the activity ``accuracy``. Fields may be added, never renamed."""

    reference: RunSide
    other: RunSide
    inputs: list[str]
    sets: int
    guess: list[GuessedInput] | None
    """The guessed inputs; None where nothing was guessed."""
    tolerance: str
    tensors: list[AccuracyRow]
    is_good: bool
    first: str | None
    """The name of the first tensor that is not within its tolerance."""
    unmatched: int
    not_compared: dict[str, list[str]]
    """Tensors by the reason."""
    kept_bytes: int
    seconds: float
    remarks: list[str]

    @property
    def found(self) -> Result:
        """The rows and the verdict."""
        return Result(tuple(self.tensors), tuple(self.remarks))


def merged(rows: Sequence[AccuracyRow], more: Sequence[AccuracyRow]) -> list[AccuracyRow]:
    """Return for each tensor the worse of two rows; `rows` may be empty at first."""
    known = {row.name: row for row in rows}
    return [known[row.name].worse(row) if row.name in known else row for row in more]


def in_order(rows: Sequence[AccuracyRow]) -> tuple[AccuracyRow, ...]:
    """Return rows in the order of the computation."""
    ordered = sorted(rows, key=lambda row: row.order)
    return tuple(replace(row, order=at) for at, row in enumerate(ordered))


_EXACT = 1e-12
"""Cosines that differ less from 1 do so because sums are rounded."""


def rows_csv(rows: Sequence[AccuracyRow]) -> str:
    """Return tensors as CSV; unknown values are empty."""
    return csv_of(accuracy_table(rows, "csv"))


def _part_wrong(row: AccuracyRow) -> float:
    """Return the relative error of a tensor; 1 for larger ones and NaN.

    Used for the order of rows. Not by element: close to 0, elements differ by any factor.
    """
    return min(row.error.noise, 1.0)


def accuracy_table(rows: Sequence[AccuracyRow], view: str) -> Table[AccuracyRow]:
    """Return tensors as a table of one of `VIEWS`."""

    def figure_of(name: str) -> Callable[[AccuracyRow], Any]:
        return lambda row: getattr(row.error, name)

    columns: dict[str, Column[AccuracyRow]] = {column.key: column for column in (
        Column("order", "#", lambda row: row.order, PLACE, 5, priority=6, style="dim",
               descending=False),
        Column("bad", "", lambda row: "!" if row.problem else "", NOTE, 1, style="error",
               order=lambda row: not row.problem),
        Column("tensor", "tensor", lambda row: row.name, NOTE, least=30, keep="end",
               style=lambda row: "strong" if row.is_output else ""),
        Column("other", "other", lambda row: row.other),
        Column("op_type", "operator", lambda row: row.op_type, NOTE, 14, priority=3, style="type"),
        Column("node", "node", lambda row: row.node, NOTE, least=22, priority=7, keep="end",
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
        Column("bar", "", _part_wrong, BAR, 8, align="left", heat=True,
               priority=4, sortable=False),
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
    if view == "screen" and not any(row.error.special for row in rows):
        keys.remove("special")
    return Table([columns[key] for key in keys], rows, row_key=lambda row: row.name)


VIEWS = {
    "csv": "tensor other node op_type order is_output shape count max_abs mean_abs max_rel mean_rel"
    " cosine snr_db largest nan_reference nan_other inf_reference inf_other special outside"
    " tolerance problem",
    "text": "tensor made_by max_abs mean_abs max_rel cosine snr_db special differs",
    "screen": "order bad tensor op_type node max_abs mean_abs max_rel bar cosine snr_db special",
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


def output_text(name: str, error: TensorError) -> str:
    """Return how far an output is off, in one line."""
    if error.is_equal:
        return f"{visible(name)}: no error"
    noise = signal_text(error)
    signal = f", SNR {noise} dB" if noise else ""
    largest, cosine = figure(error.max_abs), cosine_text(error.cosine)
    return f"{visible(name)}: largest error {largest}, cosine {cosine}{signal}"


def special_text(error: TensorError) -> str:
    """Return counts of NaN and infinite elements, as ``reference → other``; empty without any."""
    parts = []
    for name, mine, theirs in (
        ("NaN", error.nan_reference, error.nan_other),
        ("Inf", error.inf_reference, error.inf_other),
    ):
        if mine or theirs:
            parts.append(f"{mine:,}>{theirs:,} {name}" if mine else f"{theirs:,} {name}")
    return " ".join(parts)


def side_text(side: RunSide) -> str:
    """Return how a side was run: ``model.onnx (ONNX Runtime 1.31.1, CPU, optimization all)``.

    Fit for a terminal.
    """
    rounded = f", rounded to {side.round}" if side.round != "none" else ""
    return visible(f"{Path(side.model).name} ({side.how}{rounded})")


def verdict(row: AccuracyRow) -> str:
    """Return the problem of a tensor; ``ok`` without one. Untrusted text."""
    return row.problem or "ok"


def listed(rows: Sequence[AccuracyRow], most: int) -> list[AccuracyRow]:
    """Return at most this many rows; 0 returns all."""
    return list(rows[:most] if most else rows)
