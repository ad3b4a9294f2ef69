"""Jobs in separate processes, here or on a target, and their reports.

>>> report = profile(path, iterations=3, layer_passes=1)
>>> [layer.type for layer in report.layers], len(report.latencies)
(['Relu', 'Relu'], 3)
>>> comparison = compare(report, report)
>>> [row.key for row in comparison.rows("type")]
['Relu']
>>> report.close()
>>> output = path.with_suffix(".fp16.onnx")
>>> result = convert("fp16", path, output=output)
>>> result["nodes"], output.exists()
(2, True)
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.activities import registry
from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.activities.time_pair import pairs_of
from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.codec import encode
from dld_tui.core.compare.comparison import Comparison, open_subject, subject_of
from dld_tui.core.compare.gate import (
    TOLERANCE_PERCENT,
    WITHIN_PERCENT,
    GateResult,
    Pair,
    PairTime,
    command_pairs,
    gate_result,
    in_turns,
    input_notes,
    partners_of,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import settings_of, to_json, validate, written_files
from dld_tui.core.report.report import Report, open_report
from dld_tui.targets import registry as targets

__all__ = ["Report", "compare", "convert", "profile"]


def profile(
    model: str | Path,
    *,
    backend: str = "onnxruntime",
    target: str | None = None,
    **settings: Any,
) -> Report:
    """Measure a model and return its report, which is to be closed.

    Args:
        model: The ONNX model.
        backend: ``onnxruntime`` or ``tensorrt``.
        target: Where to run it, as ``dld target list`` names it; this machine by default.
        settings: As the options of ``dld profile`` are called in JSON: ``iterations=10``,
            ``provider="CUDA"``. Without ``output`` the file of the report is a temporary one.

    Raises:
        DldError: A setting is wrong, or the job failed.
    """
    with contextlib.ExitStack() as stack:
        if settings.get("output") is None:
            folder = stack.enter_context(temporary_folder("report"))
            settings["output"] = folder / f"{Path(model).stem}.dldprof"
        result = run_activity(f"profile_{backend}", target, model=Path(model), **settings)
        # The open file outlives its name.
        return open_report(result.report)


def convert(kind: str, model: str | Path, *, output: str | Path, **settings: Any) -> dict[str, Any]:
    """Convert a whole model, write the result, and return a summary.

    Args:
        kind: As in ``dld convert``: ``fp16``, ``quantize``, ``shape``, ``opset``, …
        model: The ONNX model.
        output: The file to write; an existing one is replaced.
        settings: The options of the command, by their JSON names.

    Raises:
        DldError: A setting is wrong, or the job failed; nothing is written then.
    """
    result = run_activity(
        f"convert_{kind}", None, model=Path(model), output=Path(output), **settings
    )
    document: dict[str, Any] = encode(result)
    return document


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


def run_activity(activity_id: str, target: str | None, **settings: Any) -> Any:
    """Run an activity as a job and return its result.

    Raises:
        DldError: A setting is wrong, or the job failed.
    """
    activity = registry.load(activity_id)
    request = activity.request(**_values(activity.request, settings))
    validate(request)
    data = to_json(request, map(str, written_files(request)))
    with targets.get(target).start(activity_id, data) as job:
        return registry.decode_result(activity_id, job.result())


def _values(request: type[Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings of a request; a single text stands for a sequence of one.

    Raises:
        UsageError: There is no such setting.
    """
    names = {field.name for field in dataclasses.fields(request)}
    for name in settings:
        if name not in names:
            raise UsageError(f"{name} is not a setting", hint=f"There are {', '.join(names)}")
    several = {
        setting.name for setting in settings_of(request) if isinstance(setting.default, tuple)
    }
    return {
        name: ((value,) if isinstance(value, str) else tuple(value)) if name in several else value
        for name, value in settings.items()
    }


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
        settings: Of both, such as ``provider="CUDA"``, ``shape=("x:1x3x224x224",)``, ``target=…``.

    Raises:
        DldError: A setting is wrong, or a run failed.
    """
    _require_numbers(
        tolerance_percent=tolerance_percent, within_percent=within_percent,
        limit_s=0 if limit_s is None else limit_s, runs=0 if runs is None else runs,
    )  # fmt: skip
    if commands:
        time_pair = command_pairs(str(base), str(new))
    else:
        target = settings.pop("target", None)
        both, of_base, of_new = (
            _values(Profile, values)
            for values in (settings, base_settings or {}, new_settings or {})
        )
        request_of = pairs_of(Path(base), Path(new), both, of_base, of_new, target)

        def time_pair(number: int, allowed: PairTime) -> Pair:
            request = to_json(request_of(number, allowed))
            return targets.result_of("time_pair", request, target, Pair, allowed.left_s)

    series = in_turns(
        time_pair, runs, within_percent=within_percent, limit_s=limit_s, progress=progress
    )
    aim = within_percent if runs is None else None
    partners = {} if commands else partners_of(Path(base), Path(new), series.pairs)
    result = gate_result(
        str(base), str(new), series.pairs, tolerance_percent, aim, series.stopped, partners
    )
    return result if commands else replace(result, notes=input_notes(Path(base), Path(new)))


def same_results(base: str | Path, new: str | Path, **settings: Any) -> AccuracyReport:
    """Run both models on the same inputs and compare their outputs.

    Args:
        base: The reference.
        new: The other model.
        settings: The options of ``dld accuracy``, by their JSON names, such as ``atol=1e-3``.

    Raises:
        DldError: A setting is wrong, or a model cannot be run.
    """
    report: AccuracyReport = run_activity(
        "accuracy", settings.pop("target", None), model=Path(base), against=Path(new), **settings
    )
    return report
