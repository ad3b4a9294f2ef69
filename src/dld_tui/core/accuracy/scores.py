"""Quality of one or two models on a dataset, and whether the second one lost too much."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import TEXT, Column, Table
from dld_tui.core.text import visible

FEW = 30
"""Samples below which intervals tell little."""


@dataclass(frozen=True)
class Interval:
    """A figure with its interval of 95 %, in the unit of the metric."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Score:
    """The figure of one model."""

    model: str
    """Its file. Untrusted text."""
    figure: Interval
    backend: str = ""


@dataclass(frozen=True)
class DatasetScores:
    """The result of the activity ``score``. Fields may be added, never renamed."""

    dataset: str
    metric: str
    title: str
    unit: str
    is_better_higher: bool
    samples: int
    scores: tuple[Score, ...]
    """Of the reference, and of the other model."""
    difference: Interval | None = None
    """Of the other model to the reference, on the same samples."""
    most_loss: float | None = None
    """How much worse the other one may be."""
    changed: int | None = None
    """Samples whose own figures differ."""
    seconds: float = 0.0

    @property
    def loss(self) -> Interval | None:
        """How much worse the other model is; None for one model."""
        given = self.difference
        if given is None or not self.is_better_higher:
            return given
        return Interval(-given.value, -given.high, -given.low)

    @property
    def outcome(self) -> Outcome | None:
        """Whether the loss is allowed; None where no limit was given."""
        loss = self.loss
        if loss is None or self.most_loss is None:
            return None
        if loss.high <= self.most_loss:
            return Outcome.PASS
        return Outcome.FAIL if loss.low > self.most_loss else Outcome.UNDECIDED


def figure_text(result: DatasetScores, value: float) -> str:
    """Return a figure with its unit."""
    text = f"{value:.1f}" if result.unit == "%" else fmt.three_digits(value)
    return f"{text} {result.unit}".strip()


def _change_text(result: DatasetScores, value: float) -> str:
    """Return a difference: of percentages it is in points, which the sentence says."""
    return figure_text(result, value).removesuffix(" %")


def _interval_text(result: DatasetScores, given: Interval) -> str:
    low, high = (figure_text(result, end) for end in (given.low, given.high))
    return f"{low} to {high}"


def loss_text(result: DatasetScores) -> str:
    """Return how much worse the other model is, with the interval; empty for one model."""
    loss = result.loss
    if loss is None:
        return ""
    points = " points" if result.unit == "%" else ""
    size = _change_text(result, abs(loss.value)) + points
    ends = f"({_loss_ends(result, loss)}{points})"
    if loss.low > 0:
        said = f"worse by {size} {ends}"
    elif loss.high < 0:
        said = f"better by {size} {ends}"
    elif not result.changed:
        said = "the same for every sample"
    else:
        value = _change_text(result, loss.value)
        said = f"no certain difference: loss {value}{points} {ends}"
    return f"{result.title}: {said}"


def score_lines(result: DatasetScores) -> list[str]:
    """Return the verdict and on how many samples it stands."""
    lines = [*filter(None, [loss_text(result)])]
    if result.outcome is not None and result.most_loss is not None:
        limit = _change_text(result, result.most_loss)
        lines.append(f"{result.outcome}: a loss of {limit} is allowed")
    few = "; few, so the intervals are rough" if result.samples < FEW else ""
    lines.append(
        f"{fmt.plural(result.samples, 'sample')} of {visible(Path(result.dataset).name)}{few}"
    )
    if result.changed:
        lines.append(f"{fmt.plural(result.changed, 'sample')} judged differently")
    return lines


def _loss_ends(result: DatasetScores, loss: Interval) -> str:
    ends = sorted((loss.low, loss.high)) if loss.high >= 0 else sorted((-loss.high, -loss.low))
    return " to ".join(_change_text(result, end) for end in ends)


def score_table(result: DatasetScores) -> Table[Score]:
    """Return a row for each model."""
    columns: list[Column[Score]] = [
        Column("model", "model", lambda row: visible(Path(row.model).name), TEXT, keep="end"),
        Column("value", result.title, lambda row: row.figure.value, text=lambda row: figure_text(
            result, row.figure.value)),
        Column("low", "95 % interval", lambda row: row.figure.low, text=lambda row: _interval_text(
            result, row.figure)),
        Column("backend", "run by", lambda row: row.backend, TEXT),
    ]  # fmt: skip
    return Table(columns, result.scores)
