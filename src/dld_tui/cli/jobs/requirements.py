"""``dld gate MODEL --require``: measure a model until every requirement is met, missed, or late."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dld_tui.activities.profile_onnxruntime import Request as Profile
from dld_tui.activities.profile_onnxruntime import Result as ProfileResult
from dld_tui.cli.jobs.progress import ProgressReporter
from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.compare.requirements import (
    LOOKS,
    Figures,
    Judged,
    Requirement,
    RequirementsResult,
    Source,
    is_decided,
    judge,
    parse_requirement,
)
from dld_tui.core.cost.memory import MemoryPlan
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.events import Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import from_json, to_json
from dld_tui.targets import registry

FILE = "dld.toml"
"""Beside a model: its requirements, in the table ``requirements`` by the name of its file."""
_RUN_S = 1.0
"""Of passes in each run, at least :data:`_LEAST_PASSES`."""
_LEAST_PASSES = 20


def requirements_of(model: Path) -> list[str]:
    """Return the requirements in the file beside a model.

    Raises:
        UsageError: There are none.
        InputError: The file cannot be read.
    """
    from dld_tui.core.settings.toml_files import parse_document

    document = parse_document(model.absolute().parent / FILE)
    known = None if document is None else document.get("requirements")
    found = known.get(model.name, []) if isinstance(known, Mapping) else []
    if not isinstance(found, Sequence) or isinstance(found, str) or not found:
        raise UsageError(
            "there is nothing to compare the model with, and nothing is required of it",
            hint="Give a second model, --require 'p95 <= 35 ms', or requirements in " + FILE,
        )
    return [str(text) for text in found]


def check_requirements(
    model: Path,
    texts: Sequence[str],
    settings: Mapping[str, Any],
    reference: Path | None,
    target: str | None,
    limit_s: float,
) -> RequirementsResult:
    """Measure what the requirements are about, and judge them.

    Args:
        model: The model.
        texts: The requirements, as they were written.
        settings: Of the runs, as for ``dld profile``.
        reference: The model that accuracy is required against.
        target: Where it runs; None for this machine.
        limit_s: No run begins after so many seconds.

    Raises:
        UsageError: A requirement is malformed, or needs a reference.
        DldError: The model cannot be run.
    """
    wanted = [parse_requirement(text) for text in texts]
    sources = {one.quantity.source for one in wanted}
    if Source.ACCURACY in sources and reference is None:
        raise UsageError("accuracy is required against a model", hint="Add --reference MODEL")
    known: dict[str, Figures] = {}
    run = _Run(model, settings, target)
    with ProgressReporter() as reporter:
        if Source.FILES in sources:
            known["size"] = _size(model)
        if Source.MEMORY in sources:
            reporter.event(Progress(0, None, stage="Measuring the memory"))
            known["peak memory"] = run.memory()
        if reference is not None and Source.ACCURACY in sources:
            reporter.event(Progress(0, None, stage="Comparing with the reference"))
            known |= run.accuracy(reference)
        timed = [one for one in wanted if one.quantity.source is Source.RUNS]
        if timed:
            known |= _timed(run, timed, limit_s, reporter)
    return RequirementsResult(str(model), tuple(_judged(wanted, known)))


def _judged(wanted: Sequence[Requirement], known: Mapping[str, Figures]) -> list[Judged]:
    return [judge(one, known.get(one.figure, Figures())) for one in wanted]


def _timed(
    run: _Run, wanted: Sequence[Requirement], limit_s: float, reporter: ProgressReporter
) -> dict[str, Figures]:
    """Make runs until all is decided, the looks are over, or the time is up."""
    began, values = time.monotonic(), {one.figure: list[float]() for one in wanted}
    for number in range(LOOKS[-1]):
        if number in LOOKS and is_decided(_judged(wanted, _figures(values))):
            break
        if number and time.monotonic() - began > limit_s:
            break
        reporter.event(Progress(number, LOOKS[-1], "runs", "Measuring"))
        for name, value in run.latency(wanted).items():
            values[name].append(value)
    return _figures(values)


def _figures(values: Mapping[str, Sequence[float]]) -> dict[str, Figures]:
    return {name: Figures(tuple(some)) for name, some in values.items()}


class _Run:
    """Runs of a model as jobs."""

    def __init__(self, model: Path, settings: Mapping[str, Any], target: str | None) -> None:
        self._model, self._settings, self._target = model, settings, target

    def latency(self, wanted: Sequence[Requirement]) -> dict[str, float]:
        """Return the figures of one run in a process of its own."""
        percents = {one.percent for one in wanted if one.percent is not None}
        settings = {
            "duration": _RUN_S, "iterations": _LEAST_PASSES, "layer_passes": 0,
            **self._settings, "percentile": ",".join(f"{p:g}" for p in sorted(percents)) or "50",
        }  # fmt: skip
        with temporary_folder("require") as folder:
            request = Profile(model=self._model, output=folder / "run.dldprof", **settings)
            request.require()
            result = self._result("profile_onnxruntime", to_json(request), ProfileResult)
        summary = result.summary
        if summary is None:
            return {}
        figures = dict(summary.latency_ms)
        figures |= {f"p{float(name):g}": ms for name, ms in summary.percentiles_ms.items()}
        if summary.throughput is not None:
            figures["fps"] = summary.throughput
        return {one.figure: figures[one.figure] for one in wanted if one.figure in figures}

    def memory(self) -> Figures:
        """Return the weights and the most that was in use in a run, of the CPU's arena."""
        values = self._shared("provider", "shape")
        try:
            plan = self._result("memory", {"model": str(self._model), **values}, MemoryPlan)
        except DldError as error:
            return Figures(problem=error.message)
        if plan.measured is None:
            return Figures(problem=plan.not_measured or "it was not measured")
        return Figures((float(plan.weights + plan.measured.in_use),))

    def accuracy(self, reference: Path) -> dict[str, Figures]:
        """Return the worst figures of the outputs; where they are equal, infinite and 1."""
        values = self._shared("provider", "shape", "inputs", "seed")
        request = {"model": str(reference), "against": str(self._model), **values}
        try:
            found = self._result("accuracy", request, AccuracyReport).found
        except DldError as error:
            return {name: Figures(problem=error.message) for name in ("snr", "cosine")}
        outputs = [row.error for row in found.outputs]
        if not outputs:
            return {name: Figures(problem="no output was compared") for name in ("snr", "cosine")}
        snr = [float("inf") if one.is_equal else one.snr_db for one in outputs]
        cosine = [1.0 if one.is_equal else one.cosine for one in outputs]
        return {"snr": _least(snr), "cosine": _least(cosine)}

    def _shared(self, *names: str) -> dict[str, Any]:
        known = {**to_json(from_json(Profile, {"model": str(self._model)})), **self._settings}
        chosen = {name: known[name] for name in names if known.get(name) not in (None, (), [])}
        return {
            name: str(value) if isinstance(value, Path) else value for name, value in chosen.items()
        }

    def _result(self, activity: str, request: Mapping[str, Any], kind: type[Any]) -> Any:
        return registry.result_of(activity, dict(request), self._target, kind)


def _least(values: Sequence[float | None]) -> Figures:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Figures(problem="an output has no such figure")
    return Figures((min(known),))


def _size(model: Path) -> Figures:
    """Return the bytes of the model's file and of its data files."""
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.summary import summarise

    with contextlib.closing(Document.open(model)) as document:
        files = [document.external.resolve(name) for name in summarise(document).external_files]
        try:
            return Figures((float(sum(path.stat().st_size for path in (model, *files))),))
        except OSError as error:
            return Figures(problem=f"{error.filename}: {error.strerror}")
