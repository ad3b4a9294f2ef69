"""Runs compared: reports side by side, two versions in alternation, results of two models.

>>> from dld_tui.api.commands import profile
>>> report = profile(path, iterations=3, layer_passes=1)
>>> [layer.type for layer in report.layers], len(report.latencies)
(['Relu', 'Relu'], 3)
>>> comparison = compare(report, report)
>>> [row.key for row in comparison.rows("type")]
['Relu']
>>> report.close()
>>> same_results(path, path).is_good
True
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from dld_tui.activities.gate import Request as Gate
from dld_tui.activities.gate import compare_versions
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.api.commands import accuracy
from dld_tui.api.requests import in_python_words, settings_from
from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.compare.comparison import Comparison, open_subject, subject_of
from dld_tui.core.compare.gate import (
    TOLERANCE_PERCENT,
    WITHIN_PERCENT,
    GateResult,
    command_pairs,
    gated,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.events import events_of, result_of
from dld_tui.core.report.report import Report
from dld_tui.targets import registry as targets

__all__ = ["compare", "gate", "same_results"]


def compare(*reports: Report | str | Path, base: int = 0) -> Comparison:
    """Compare reports or engine plans.

    Args:
        reports: Open reports or files, two or more.
        base: The number, from 0, of the one that the others are compared with.

    Raises:
        InputError: A file cannot be read, or is neither.
        UsageError: There are fewer than two.
    """
    subjects = [
        subject_of(report) if isinstance(report, Report) else open_subject(Path(report))
        for report in reports
    ]
    return Comparison(subjects, base)


def _require_numbers(**values: object) -> None:
    for name, value in values.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not value >= 0:  # type: ignore[operator]  # which NaN is not, either
            raise UsageError(f"{name} is {value!r}, which is not a number of at least 0")


Progress = Callable[[int, int], None]


def gate(
    base: str | Path,
    new: str | Path,
    *,
    runs: int | None = None,
    within_percent: float = WITHIN_PERCENT,
    limit_s: float | None = None,
    tolerance_percent: float = TOLERANCE_PERCENT,
    commands: bool = False,
    base_settings: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    progress: Progress = lambda done, of: None,
    **settings: Any,
) -> GateResult:
    """Measure two versions in alternation, each pair in a separate process, and return a verdict.

    Args:
        base: A model, or a command line with `commands`.
        new: The new version; it may be the same model with other settings.
        runs: The number of pairs; None for as many as make the interval narrow enough.
        within_percent: The sufficient half-width of the interval.
        limit_s: The time limit: the verdict is ``undecided`` with fewer than 6 pairs within it.
            By default 170 s, and none with `runs`.
        tolerance_percent: How much slower the new one may be.
        commands: Measure the elapsed time of whole commands.
        base_settings: Settings of :func:`dld_tui.api.profile` for the base only.
        new_settings: The same for the new one.
        progress: Called with the number of pairs done, and the estimated number of all.
        settings: Of both, such as ``provider="CUDA"``, ``shape={"x": (1, 3, 9, 9)}``, ``target=…``.

    Raises:
        DldError: A setting is wrong, or a run failed.
    """
    _require_numbers(
        tolerance_percent=tolerance_percent, within_percent=within_percent,
        limit_s=0 if limit_s is None else limit_s, runs=0 if runs is None else runs,
    )  # fmt: skip
    with in_python_words(Profile), ExitStack() as stack:
        if commands:
            counts = gated(
                str(base), str(new), command_pairs(str(base), str(new)), runs,
                within_percent=within_percent, limit_s=limit_s,
                tolerance_percent=tolerance_percent, are_models=False,
            )  # fmt: skip
        else:
            target = settings.pop("target", None)
            both, of_base, of_new = (
                settings_from(Profile, values, stack)
                for values in (settings, base_settings or {}, new_settings or {})
            )
            request = Gate(
                model=Path(base), new=Path(new), runs=runs, within=within_percent, limit=limit_s,
                tolerance_percent=tolerance_percent, **both,
            )  # fmt: skip
            run_job = partial(targets.result_of, target=target)
            counts = compare_versions(request, run_job, of_base, of_new, target)
        return result_of(events_of(counts, lambda count: progress(*count)))


def same_results(base: str | Path, new: str | Path, **settings: Any) -> AccuracyReport:
    """Run both models on the same inputs and compare their outputs.

    Args:
        base: The reference.
        new: The other model.
        settings: The options of ``dld accuracy``, by their JSON names, such as ``atol=1e-3``.

    Raises:
        DldError: A setting is wrong, or a model cannot be run.
    """
    return accuracy(base, against=new, **settings)
