"""Gates for pipelines: is a new version slower than a base, and does it give the same results?

::

    result = gate("base.onnx", "new.onnx", tolerance_percent=1, provider="CUDA")
    assert not result.is_regression, result.line
    assert same_results("base.onnx", "new.onnx").is_good
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dld_tui.api.runs import profile, run_activity
from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.compare.gate import (
    GATE_SETTINGS,
    RUNS,
    GateResult,
    RunFigures,
    figures_of,
    gate_result,
    in_turns,
    time_command,
)

Progress = Callable[[int, int], None]


def gate(
    base: str | Path,
    new: str | Path,
    *,
    runs: int = RUNS,
    tolerance_percent: float = 0.0,
    commands: bool = False,
    base_settings: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    progress: Progress = lambda done, of: None,
    **settings: Any,
) -> GateResult:
    """Measure two versions in turns, each run in a process of its own, and say which is slower.

    Args:
        base: A model, or a command line with `commands`.
        new: The other one; it may be the same model with other settings.
        runs: Of each.
        tolerance_percent: How much slower the new one may be.
        commands: Time whole commands by the clock on the wall.
        base_settings: Settings of :func:`dld_tui.api.profile` for the base alone.
        new_settings: The same for the new one.
        progress: Called with how many runs are done, and how many there will be.
        settings: Of both, such as ``provider="CUDA"``, ``shape=("x:1x3x224x224",)``, ``target=…``.

    Raises:
        DldError: A setting is wrong, or a run failed.
    """

    def run_of(what: str, own: Mapping[str, Any] | None) -> Callable[[], RunFigures]:
        given = {**GATE_SETTINGS, **settings, **(own or {})}
        return lambda: time_command(what) if commands else _profiled(what, given)

    one, other = run_of(str(base), base_settings), run_of(str(new), new_settings)
    found = in_turns(one, other, runs, progress)
    return gate_result(str(base), str(new), *found, tolerance_percent)


def _profiled(model: str, settings: Mapping[str, Any]) -> RunFigures:
    with contextlib.closing(profile(model, **settings)) as report:
        return figures_of(report.latencies, report.layers)


def same_results(base: str | Path, new: str | Path, **settings: Any) -> AccuracyReport:
    """Run both models on the same inputs and compare what they give.

    Args:
        base: The reference.
        new: The other model.
        settings: As the options of ``dld accuracy`` are called in JSON, such as ``atol=1e-3``.

    Raises:
        DldError: A setting is wrong, or a model cannot be run.
    """
    found: AccuracyReport = run_activity(
        "accuracy", settings.pop("target", None), model=Path(base), against=Path(new), **settings
    )
    return found
