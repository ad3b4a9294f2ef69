"""Whether a new version is slower than a base, or a model meets what is required of it.

Both are measured by runs in processes of their own. The verdict on two versions comes from pairs of
runs (:mod:`dld_tui.core.compare.gate`), that on requirements from runs that go on until each is met
or missed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.profile.onnxruntime import Result as ProfileResult
from dld_tui.activities.separate_process import run_in_process
from dld_tui.activities.time_pair import NOT_SET, pairs_of
from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.codec import optional
from dld_tui.core.compare.gate import (
    GATE_SETTINGS,
    LEAST_RUNS,
    LIMIT_S,
    TOLERANCE_PERCENT,
    WITHIN_PERCENT,
    GateResult,
    Pair,
    PairTime,
    gated,
)
from dld_tui.core.compare.requirement_files import FILE, KeptRequirements, kept_requirements
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
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import DldError, UsageError
from dld_tui.core.events import Event, Finished, Progress, events_of, result_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.cost.memory import MemoryPlan
from dld_tui.core.params import like, param, settings_of, to_json
from dld_tui.core.types import JSON

_LEAST_PASSES = 20
"""Of each run for requirements."""
T = TypeVar("T")


class RunJob(Protocol):
    """Runs another activity in a process of its own and returns its result."""

    def __call__(
        self, activity_id: str, request: Mapping[str, JSON], kind: type[T], limit_s: float = ...
    ) -> T:
        """Run it.

        Raises:
            DldError: As the activity.
            TimeLimitError: It took too long, and was ended.
        """
        ...


def _beside(values: Mapping[str, JSON]) -> str:
    """Return what is required of the model of a form by the file beside it."""
    try:
        kept = kept_requirements(Path(str(values.get("model") or "")).expanduser())
    except DldError as error:
        return error.message
    return "; ".join(kept.texts) or f"none in {FILE} beside it"


def _kept_texts(request: Request) -> tuple[str, ...]:
    return () if request.new is not None else request.kept.texts


def _kept_reference(request: Request) -> Path | None:
    return None if request.new is not None else request.kept.reference


def _is_alone(values: Mapping[str, JSON]) -> bool:
    return not values.get("new")


def _are_two(values: Mapping[str, JSON]) -> bool:
    return not _is_alone(values)


@dataclass(frozen=True)
class _Gate:
    """What is compared or required, before the settings of the runs."""

    model: Path = like(Profile, "model")
    new: Path | None = param(
        None,
        label="New version",
        help="The new version of the model. Without one, the model has to meet requirements.",
        kind="file",
        positional=True,
        metavar="NEW",
        empty="none: it must meet requirements",
    )
    requirements: tuple[str, ...] = param(
        (),
        label="Require",
        help=(
            "Without NEW: a requirement of the model, such as 'p95 <= 35 ms', 'fps >= 30', "
            "'size <= 20 MB', 'nodes <= 900', 'peak memory <= 500 MB' or 'snr >= 30 dB'; "
            f"repeatable. By default those in {FILE} beside it."
        ),
        spellings=("--require",),
        metavar="TEXT",
        empty=_beside,
        read_here=_kept_texts,
        applies=_is_alone,
    )
    reference: Path | None = param(
        None,
        label="Reference",
        help=f"The model that accuracy is required against. By default that in {FILE}.",
        spellings=("--reference",),
        kind="file",
        metavar="MODEL",
        empty="none: accuracy is not required",
        read_here=_kept_reference,
        applies=_is_alone,
    )
    tolerance_percent: float = param(
        TOLERANCE_PERCENT,
        label="Tolerance",
        help="Accepted slowdown of NEW.",
        unit="%",
        minimum=0.0,
        spellings=("--tolerance", "--slower"),
        metavar="PERCENT",
        applies=_are_two,
    )
    runs: int | None = param(
        None,
        label="Runs",
        help="Number of runs of each. By default as many as needed.",
        minimum=LEAST_RUNS,
        spellings=("--runs",),
        metavar="N",
        empty="as many as needed",
        applies=_are_two,
    )
    within: float = param(
        WITHIN_PERCENT,
        label="Interval",
        help="Continue until the interval is at most ± this wide.",
        unit="%",
        minimum=0.0,
        spellings=("--within",),
        metavar="PERCENT",
        applies=_are_two,
    )
    limit: float | None = param(
        None,
        label="Time limit",
        help=f"Time limit. By default {LIMIT_S:g} s, and none with --runs.",
        unit="s",
        minimum=0.0,
        spellings=("--limit", "--budget"),
        metavar="S",
        empty=f"{LIMIT_S:g}; none with Runs",
    )


@dataclass(frozen=True)
class Request(Profile, _Gate):
    """What is compared or required, and the settings of the runs."""

    model: Path = like(
        Profile,
        "model",
        label="Base",
        help="The baseline or, without a new version, the model that has to meet requirements.",
        metavar="BASE",
    )
    output: Path | None = like(Profile, "output", internal=True, default_path=None, kind="")
    optimized_model: Path | None = like(Profile, "optimized_model", internal=True, kind="")
    duration: float | None = like(
        Profile, "duration", GATE_SETTINGS["duration"], help="Measure each run for this time."
    )
    layer_passes: int | None = like(Profile, "layer_passes", GATE_SETTINGS["layer_passes"])

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        super().require()
        if self.new is None and self.runs is not None:
            raise UsageError("these options compare two versions", hint="Give a second model")
        if self.new is not None and (self.requirements or self.reference is not None):
            raise UsageError(
                "requirements are of one model",
                hint="Leave out NEW, or --require and --reference",
            )
        if self.new is None:
            for text in self.required.texts:
                parse_requirement(text)

    @functools.cached_property
    def kept(self) -> KeptRequirements:
        """What the request or the file beside the model requires of it, if anything.

        Raises:
            InputError: The file cannot be read.
        """
        asked = KeptRequirements(self.requirements, self.reference)
        if asked.texts and asked.reference is not None:
            return asked
        kept = kept_requirements(self.model)
        return KeptRequirements(asked.texts or kept.texts, asked.reference or kept.reference)

    @property
    def required(self) -> KeptRequirements:
        """What is required of the model.

        Raises:
            UsageError: Nothing is.
            InputError: The file cannot be read.
        """
        if not self.kept.texts:
            raise UsageError(
                "there is nothing to compare the model with, and nothing is required of it",
                hint=f"Give a second model, --require 'p95 <= 35 ms', or requirements in {FILE}",
            )
        return self.kept

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a run by name."""
        return {name: getattr(self, name) for name in RUN_SETTINGS}


RUN_SETTINGS = tuple(one.name for one in settings_of(Profile) if one.name not in NOT_SET)


@dataclass(frozen=True)
class Result:
    """The verdict: one of both."""

    versions: GateResult | None = optional()
    required: RequirementsResult | None = optional()


def run(request: Request) -> Iterator[Event]:
    """Measure and judge.

    Raises:
        UsageError: The settings do not fit each other or a model.
        DldError: A model cannot be run.
    """
    request.require()
    with temporary_folder("gate") as folder:

        def run_job(
            activity_id: str, request: Mapping[str, JSON], kind: type[T], limit_s: float = math.inf
        ) -> T:
            result: T = result_of(run_in_process(activity_id, request, folder, limit_s))
            return result

        if request.new is None:
            required = yield from check_requirements(request, run_job)
            yield Finished(Result(required=required))
            return
        compared = compare_versions(request, run_job)
        versions = yield from events_of(
            compared, lambda counts: Progress(*counts, "pairs", "Measuring in turns")
        )
        yield Finished(Result(versions=versions))


def compare_versions(
    request: Request,
    run_job: RunJob,
    base_settings: Mapping[str, Any] | None = None,
    new_settings: Mapping[str, Any] | None = None,
    target: str | None = None,
) -> Generator[tuple[int, int], None, GateResult]:
    """Measure both versions in turns, and yield how many pairs there are and will be.

    Args:
        request: What is compared.
        run_job: Runs each pair.
        base_settings: Settings of the base only, as for a profile.
        new_settings: The same of the new version.
        target: Where the pairs run.

    Raises:
        UsageError: The settings do not fit each other.
        DldError: A model cannot be run.
    """
    new = request.new or request.model
    request_of = pairs_of(
        request.model, new, request.settings, base_settings or {}, new_settings or {}, target
    )

    def time_pair(number: int, allowed: PairTime) -> Pair:
        return run_job("time_pair", to_json(request_of(number, allowed)), Pair, allowed.left_s)

    return gated(
        str(request.model), str(new), time_pair, request.runs, within_percent=request.within,
        limit_s=request.limit, tolerance_percent=request.tolerance_percent,
    )  # fmt: skip


def check_requirements(
    request: Request, run_job: RunJob
) -> Generator[Progress, None, RequirementsResult]:
    """Measure what the requirements are about, and judge them.

    Args:
        request: The model and what is required of it.
        run_job: Makes each run.

    Raises:
        UsageError: A requirement is malformed, or needs a reference.
        DldError: The model cannot be run.
    """
    required = request.required
    wanted = [parse_requirement(text) for text in required.texts]
    sources = {one.quantity.source for one in wanted}
    if Source.ACCURACY in sources and required.reference is None:
        raise UsageError(
            "accuracy is required against a model", hint=f"Add --reference MODEL, or it in {FILE}"
        )
    known: dict[str, Figures] = {}
    runs = _Runs(request, run_job)
    if Source.MODEL in sources:
        known |= _figures_of_file(request.model)
    if Source.MEMORY in sources:
        yield Progress(0, None, stage="Measuring the memory")
        known["peak memory"] = runs.memory()
    if required.reference is not None and Source.ACCURACY in sources:
        yield Progress(0, None, stage="Comparing with the reference")
        known |= runs.accuracy(required.reference)
    timed = [one for one in wanted if one.quantity.source is Source.RUNS]
    if timed:
        known |= yield from _timed(runs, timed, LIMIT_S if request.limit is None else request.limit)
    return RequirementsResult(str(request.model), tuple(_judged(wanted, known)))


def _judged(wanted: Sequence[Requirement], known: Mapping[str, Figures]) -> list[Judged]:
    return [judge(one, known.get(one.figure, Figures())) for one in wanted]


def _timed(
    runs: _Runs, wanted: Sequence[Requirement], limit_s: float
) -> Generator[Progress, None, dict[str, Figures]]:
    """Make runs until all is decided, the looks are over, or the time is up."""
    began, values = time.monotonic(), {one.figure: list[float]() for one in wanted}
    for number in range(LOOKS[-1]):
        if number in LOOKS and is_decided(_judged(wanted, _figures(values))):
            break
        if number and time.monotonic() - began > limit_s:
            break
        yield Progress(number, LOOKS[-1], "runs", "Measuring")
        for name, value in runs.latency(wanted).items():
            values[name].append(value)
    return _figures(values)


def _figures(values: Mapping[str, Sequence[float]]) -> dict[str, Figures]:
    return {name: Figures(tuple(some)) for name, some in values.items()}


class _Runs:
    """Runs of a model as jobs."""

    def __init__(self, request: Request, run_job: RunJob) -> None:
        self._request, self._run_job = request, run_job

    def latency(self, wanted: Sequence[Requirement]) -> dict[str, float]:
        """Return the figures of one run in a process of its own."""
        percents = {one.percent for one in wanted if one.percent is not None}
        settings = {
            **self._request.settings, "layer_passes": 0,
            "iterations": self._request.iterations or _LEAST_PASSES,
            "percentile": ",".join(f"{p:g}" for p in sorted(percents)) or "50",
        }  # fmt: skip
        with temporary_folder("require") as folder:
            profile = Profile(model=self._request.model, output=folder / "run.dldprof", **settings)
            result = self._run_job("profile_onnxruntime", to_json(profile), ProfileResult)
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
        request = {"model": str(self._request.model), **self._shared("provider", "shape")}
        try:
            plan = self._run_job("memory", request, MemoryPlan)
        except DldError as error:
            return Figures(problem=error.message)
        if plan.measured is None:
            return Figures(problem=plan.not_measured or "it was not measured")
        return Figures((float(plan.weights + plan.measured.in_use),))

    def accuracy(self, reference: Path) -> dict[str, Figures]:
        """Return the worst figures of the outputs; where they are equal, infinite and 1."""
        values = self._shared("provider", "shape", "inputs", "seed")
        request = {"model": str(reference), "against": str(self._request.model), **values}
        try:
            report = self._run_job("accuracy", request, AccuracyReport).found
        except DldError as error:
            return {name: Figures(problem=error.message) for name in ("snr", "cosine")}
        outputs = [row.error for row in report.outputs]
        if not outputs:
            return {name: Figures(problem="no output was compared") for name in ("snr", "cosine")}
        snr = [math.inf if one.is_equal else one.snr_db for one in outputs]
        cosine = [1.0 if one.is_equal else one.cosine for one in outputs]
        return {"snr": _least(snr), "cosine": _least(cosine)}

    def _shared(self, *names: str) -> dict[str, JSON]:
        known = to_json(self._request)
        return {name: known[name] for name in names if known[name] not in (None, [])}


def _least(values: Sequence[float | None]) -> Figures:
    known = [value for value in values if value is not None]
    if len(known) < len(values):
        return Figures(problem="an output has no such figure")
    return Figures((min(known),))


def _figures_of_file(model: Path) -> dict[str, Figures]:
    """Return what needs no run: the bytes of the model's file and data files, and counts."""
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.model.document.summary import summarise

    with contextlib.closing(open_document(model)) as document:
        summary = summarise(document)
        counts = {
            "parameters": summary.weight_parameters, "nodes": summary.nodes_total,
            "operators": len(summary.op_types), "opset": summary.opsets.get("", 0),
        }  # fmt: skip
        known = {name: Figures((float(count),)) for name, count in counts.items()}
        files = [document.external.resolve(name) for name in summary.external_files]
        try:
            known["size"] = Figures((float(sum(path.stat().st_size for path in (model, *files))),))
        except OSError as error:
            known["size"] = Figures(problem=f"{error.filename}: {error.strerror}")
    return known
