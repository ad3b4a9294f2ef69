"""Quality of outputs on labelled samples: top-1, F1, word errors, …, with intervals.

A metric gives each sample a row of figures, and the figure of the whole from all rows. Intervals
hold 95 %: those of shares by Wilson's score, of their differences by Tango's (1998), of
other figures by drawing samples with replacement (percentiles of 2,000 draws), in pairs where two
models ran on the same samples. Other packages add metrics as entry points of ``dld_tui.metrics``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dld_tui.core.accuracy.scores import DatasetScores, Interval, Score
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.process.plugins import plugins

Array: TypeAlias = "np.ndarray[Any, Any]"
_Z = 1.959964
"""The 97.5 % quantile of the normal distribution."""
_DRAWS = 2_000


@dataclass(frozen=True)
class Metric:
    """How the outputs of a sample are judged."""

    name: str
    title: str
    sample: Callable[[Sequence[Array], Any], Sequence[float]]
    """Takes the outputs of a sample, without the batch axis, and its label; returns its row."""
    total: Callable[[Array], float]
    """Takes the rows of all samples, [samples, figures]; returns the figure of the whole."""
    is_better_higher: bool = True
    factor: float = 1.0
    """Of the figure that is shown: 100 for a share that is shown in percent."""
    unit: str = ""
    is_share: bool = False
    """Each row is 0 or 1 and the figure is their mean."""


def find_metric(name: str) -> Metric:
    """Return a metric by its name.

    Raises:
        UsageError: There is none.
    """
    known = dict(METRICS)
    for plugin in plugins("metrics", Metric):
        known.setdefault(plugin.value.name, plugin.value)
    if name not in known:
        raise UsageError(f"there is no metric {name!r}", hint=f"There are {', '.join(known)}")
    return known[name]


def interval(metric: Metric, rows: Array) -> Interval:
    """Return the figure of a model.

    Args:
        metric: The metric.
        rows: [samples, figures].
    """
    value = metric.total(rows)
    if metric.is_share:
        low, high = _wilson(value, len(rows))
    else:
        low, high = _drawn(lambda at: metric.total(rows[at]), len(rows))
    return Interval(*(metric.factor * figure for figure in (value, low, high)))


def difference(metric: Metric, base: Array, other: Array) -> Interval:
    """Return how much higher the figure of another model is on the same samples."""
    value = metric.total(other) - metric.total(base)
    if metric.is_share:
        low, high = _paired(base[:, 0], other[:, 0])
    else:
        low, high = _drawn(lambda at: metric.total(other[at]) - metric.total(base[at]), len(base))
    return Interval(*(metric.factor * figure for figure in (value, low, high)))


@dataclass(frozen=True)
class Judged:
    """The rows of a model."""

    model: str
    """Its file. Untrusted text."""
    backend: str
    rows: Array
    """[samples, figures]."""


def dataset_scores(
    metric: Metric, dataset: Path, judged: Sequence[Judged], most_loss: float | None
) -> DatasetScores:
    """Return the figures of one model, or of two on the same samples.

    Args:
        metric: The metric.
        dataset: The samples.
        judged: The reference, and perhaps another model.
        most_loss: How much worse the other one may be, in the unit of the metric.
    """
    rows = [one.rows for one in judged]
    is_pair = len(rows) == 2
    return DatasetScores(
        str(dataset), metric.name, metric.title, metric.unit, metric.is_better_higher, len(rows[0]),
        tuple(Score(one.model, interval(metric, one.rows), one.backend) for one in judged),
        difference(metric, *rows) if is_pair else None, most_loss,
        int(np.sum(np.any(rows[0] != rows[1], axis=1))) if is_pair else None,
    )  # fmt: skip


def _wilson(share: float, count: int) -> tuple[float, float]:
    weight = _Z * _Z / count
    middle = (share + weight / 2) / (1 + weight)
    half = _Z / (1 + weight) * math.sqrt(share * (1 - share) / count + weight / (4 * count))
    return max(0.0, middle - half), min(1.0, middle + half)


def _paired(base: Array, other: Array) -> tuple[float, float]:
    """Return the interval of a difference of shares on the same samples: Tango's score interval.

    T. Tango: Equivalence test and confidence interval for the difference in proportions for the
    paired-sample design, Statistics in Medicine 17 (1998).
    """
    gained, lost = float(np.sum(other > base)), float(np.sum(other < base))
    count, value = len(base), (gained - lost) / len(base)

    def is_within(change: float) -> bool:
        linear = (2 * count - gained + lost) * change - gained - lost
        constant = -lost * change * (1 - change)
        root = math.sqrt(max(0.0, linear * linear - 8 * count * constant))
        share = max(0.0, (root - linear) / (4 * count))  # of lost samples, were this the truth
        variance = count * (2 * share + change * (1 - change))
        deviation = abs(gained - lost - count * change)
        return deviation < 1e-9 or (variance > 0 and deviation <= _Z * math.sqrt(variance))

    return _edge(is_within, value, -1.0), _edge(is_within, value, 1.0)


def _edge(is_within: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where an interval ends between a point in it and the end of the scale."""
    for _ in range(60):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
    return inside


def _drawn(figure: Callable[[Array], float], count: int) -> tuple[float, float]:
    random = np.random.default_rng(0)  # the same interval each time
    draws = [figure(random.integers(0, count, count)) for _ in range(_DRAWS)]
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return float(low), float(high)


def _scores(outputs: Sequence[Array]) -> Array:
    """Return the scores of classes of a sample: its first output, flat.

    Raises:
        InputError: There is no output with several numbers.
    """
    if not outputs or outputs[0].size < 2:
        raise InputError("the first output does not have a score for each class")
    return np.asarray(outputs[0], np.float64).reshape(-1)


def _class(label: Any) -> int:
    values = np.asarray(label).reshape(-1)
    if values.size > 1 and set(np.unique(values)) <= {0, 1} and values.sum() == 1:
        return int(np.argmax(values))  # one-hot
    if values.size != 1 or float(values[0]) != int(values[0]):
        raise InputError(f"label {label!r:.40} is not one class")
    return int(values[0])


def _among_best(count: int) -> Callable[[Sequence[Array], Any], Sequence[float]]:
    def hit(outputs: Sequence[Array], label: Any) -> Sequence[float]:
        scores, wanted = _scores(outputs), _class(label)
        if not 0 <= wanted < scores.size:
            raise InputError(f"label {wanted} is not one of {scores.size} classes")
        if math.isnan(scores[wanted]):
            return [0.0]
        # Of equal scores the one with the lower index counts as higher, as ArgMax has it.
        above = np.sum(scores > scores[wanted]) + np.sum(scores[:wanted] == scores[wanted])
        return [float(above < count)]

    return hit


def _prediction(outputs: Sequence[Array], label: Any) -> Sequence[float]:
    return [float(np.argmax(_scores(outputs))), float(_class(label))]


def _macro_f1(rows: Array) -> float:
    """Return the mean of F1 over the classes that occur as label or prediction."""
    predicted, wanted = rows[:, 0], rows[:, 1]
    figures = []
    for kind in np.union1d(predicted, wanted):
        hits = np.sum((predicted == kind) & (wanted == kind))
        figures.append(2 * hits / (np.sum(predicted == kind) + np.sum(wanted == kind)))
    return float(np.mean(figures))


def _scores_and_targets(outputs: Sequence[Array], label: Any) -> Sequence[float]:
    scores = _scores(outputs)
    marks = np.asarray(label).reshape(-1)
    if marks.size == scores.size and set(np.unique(marks)) <= {0, 1}:
        targets = marks.astype(np.float64)
    else:
        targets = np.zeros(scores.size)
        targets[[_class(one) for one in marks]] = 1
    return [*scores, *targets]


def _mean_average_precision(rows: Array) -> float:
    """Return the mean over the classes that occur of the average precision of their ranking."""
    scores, targets = np.split(rows, 2, axis=1)
    figures = []
    for kind in np.flatnonzero(targets.any(axis=0)):
        order = np.argsort(-scores[:, kind], kind="stable")
        hits = targets[order, kind]
        precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
        figures.append(float(np.sum(precision * hits) / np.sum(hits)))
    return float(np.mean(figures)) if figures else math.nan


def _word_errors(outputs: Sequence[Array], label: Any) -> Sequence[float]:
    """Return (errors, words): the edit distance of the ids to those of the label, and their number.

    Scores over a vocabulary become the best id of each step.
    """
    predicted = np.asarray(outputs[0])
    if not np.issubdtype(predicted.dtype, np.integer):
        predicted = np.argmax(predicted, axis=-1)
    words = np.asarray(label).reshape(-1).tolist()
    return [float(_distance(predicted.reshape(-1).tolist(), words)), float(len(words))]


def _distance(predicted: Sequence[int], wanted: Sequence[int]) -> int:
    row = list(range(len(wanted) + 1))
    for count, one in enumerate(predicted, 1):
        diagonal, row[0] = row[0], count
        for at, other in enumerate(wanted, 1):
            best = min(row[at] + 1, row[at - 1] + 1, diagonal + (one != other))
            diagonal, row[at] = row[at], best
    return row[-1]


def _flat(outputs: Sequence[Array], label: Any) -> tuple[Array, Array]:
    predicted, wanted = (
        np.asarray(outputs[0], np.float64).reshape(-1),
        np.asarray(label).reshape(-1),
    )
    if predicted.size != wanted.size:
        raise InputError(f"the label has {wanted.size:,} values, the output {predicted.size:,}")
    return predicted, wanted.astype(np.float64)


def _cosine(outputs: Sequence[Array], label: Any) -> Sequence[float]:
    predicted, wanted = _flat(outputs, label)
    lengths = float(np.linalg.norm(predicted) * np.linalg.norm(wanted))
    return [float(predicted @ wanted) / lengths if lengths else float(not predicted.any() and
                                                                 not wanted.any())]  # fmt: skip


def _squares(outputs: Sequence[Array], label: Any) -> Sequence[float]:
    predicted, wanted = _flat(outputs, label)
    return [float(np.mean((predicted - wanted) ** 2))]


def _mean(rows: Array) -> float:
    return float(np.mean(rows[:, 0]))


_ALL = (
    Metric("top1", "top-1", _among_best(1), _mean, factor=100, unit="%", is_share=True),
    Metric("top5", "top-5", _among_best(5), _mean, factor=100, unit="%", is_share=True),
    Metric("f1", "macro F1", _prediction, _macro_f1),
    Metric("map", "mean average precision", _scores_and_targets, _mean_average_precision),
    Metric("wer", "word error rate", _word_errors,
           lambda rows: float(np.sum(rows[:, 0]) / max(1.0, np.sum(rows[:, 1]))),
           is_better_higher=False, factor=100, unit="%"),
    Metric("cosine", "mean cosine to the label", _cosine, _mean),
    Metric("rmse", "root mean square error", _squares, lambda rows: math.sqrt(_mean(rows)),
           is_better_higher=False),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ALL}
"""The built-in metrics by name."""
