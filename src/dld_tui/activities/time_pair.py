"""A pair of runs for ``dld gate``: two versions in one process, with alternating passes.

A helper activity: a gate starts as many of these processes as it needs. If the memory does not hold
both models, and on a GPU, the versions are measured in sequence: a model with launches longer than
its kernels was 1.0 to 1.5 times as slow in alternation with a CUDA graph as alone (H200, 1.1 ms).
"""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.core import fmt
from dld_tui.core.compare.gate import (
    GATE_SETTINGS,
    NODE_PAIRS,
    WAITED_PERCENT,
    Pair,
    PairTime,
    RunFigures,
    node_times,
    pair_of_turns,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.events import Event, Finished, Metric, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import from_json, param, settings_of, to_json
from dld_tui.core.process.interpreter import freeze
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.profiling import ProfilingRun
    from dld_tui.core.report.latency import Turn

Result = Pair
NOT_SET = frozenset({"model", "output", "optimized_model"})
"""Fields that are not settings of a run."""
_ALL_THE_TIME = PairTime()
_STAGE = "Measuring in turns"
_PROGRESS_S = 0.2
_MEMORY_SHARE = 0.5
"""Of the machine's memory, for the weights of both."""


@dataclass(frozen=True)
class Request(Profile):
    """Both versions, with the settings of both; `model` is the base."""

    new: Path | None = param(None, label="New", help="The new version.", kind="file")
    base_settings: dict[str, JSON] | None = param(
        None,
        label="Settings of the base",
        help="Settings of the baseline only, by name.",
        empty="none",
    )
    new_settings: dict[str, JSON] | None = param(
        None,
        label="Settings of the new one",
        help="Settings of the new version only, by name.",
        empty="none",
    )
    new_first: bool = param(False, label="New first", help="Run the new version first.")
    share: float | None = param(
        None,
        label="Share of the time",
        help="Measure as much as fits in this time, but at least one pass of each.",
        unit="s",
        empty="all that the settings ask for",
    )
    waited: float | None = param(
        None,
        label="Time without a processor",
        help="Share of its time that the caller was ready to run and had no processor.",
        unit="%",
        empty="that of the process of the pair",
    )

    def sides(self) -> tuple[Profile, Profile]:
        """Return the requests of the base and of the new version.

        Raises:
            UsageError: A setting does not exist, or has an invalid value.
        """
        common = {setting.name for setting in settings_of(Profile)}
        both = {name: value for name, value in to_json(self).items() if name in common}
        base = from_json(Profile, {**both, **(self.base_settings or {})})
        new = from_json(Profile, {**both, "model": str(self.new), **(self.new_settings or {})})
        return base, new


def pairs_of(
    base: Path,
    new: Path,
    settings: Mapping[str, Any],
    base_settings: Mapping[str, Any],
    new_settings: Mapping[str, Any],
    target: str | None = None,
) -> Callable[..., Request]:
    """Return a function that creates the request of a pair from its number, from 0, and its time.

    Args:
        base: A model.
        new: The other model.
        settings: Of both, as for :class:`Profile`.
        base_settings: Of the base only.
        new_settings: Of the new version only.
        target: Where the pairs run.

    Raises:
        UsageError: A setting does not exist, or has an invalid value, or a target would need
            files of one version only.
    """
    known = {setting.name for setting in settings_of(Profile)} - {*NOT_SET}
    for name in {**settings, **base_settings, **new_settings}:
        if name not in known:
            raise UsageError(
                f"{visible(name)} is not a setting of a gate",
                hint=f"There are {', '.join(sorted(known))}",
            )
    for name in {**base_settings, **new_settings}:
        if target is not None and name == "inputs":
            raise UsageError(
                "on a target, both versions have the same --inputs",
                hint="Leave out --target, or give a folder that holds the inputs of both",
            )
    own = [
        _as_json({"model": base, **settings}, settings)
        for settings in (base_settings, new_settings)
    ]
    common: dict[str, Any] = {"model": base, **GATE_SETTINGS, **settings}
    first = Request(**common, new=new, base_settings=own[0], new_settings=own[1])
    first.sides()

    def request_of(number: int, allowed: PairTime = _ALL_THE_TIME) -> Request:
        share = None if math.isinf(allowed.share_s) else allowed.share_s
        pair = replace(first, new_first=number % 2 == 1, share=share)
        return pair if number < NODE_PAIRS else replace(pair, layer_passes=0)

    return request_of


def _as_json(settings: dict[str, Any], wanted: Collection[str]) -> dict[str, JSON]:
    data = to_json(Profile(**settings))
    return {name: data[name] for name in wanted}


def run(request: Request) -> Iterator[Event]:
    """Measure.

    Raises:
        UsageError: The settings do not fit each other or a model.
        InputError: A model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: ONNX Runtime cannot run a model.
    """
    from dld_tui.activities.profile.onnxruntime import plan_of, require_memory
    from dld_tui.backends.onnxruntime.profiling import ProfilingRun
    from dld_tui.backends.onnxruntime.session_options import processor_times_compare
    from dld_tui.core.llm.folder import open_document
    from dld_tui.core.machine.environment import environment, waited_percent
    from dld_tui.core.model.document.summary import summarise

    sides = request.sides()
    freeze()  # what the imports made need not be collected before each measurement
    machine = environment(())
    waited = waited_percent() if request.waited is None else request.waited
    is_busy = waited > WAITED_PERCENT
    end = time.monotonic() + (math.inf if request.share is None else request.share)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary_folder("pair"))
        runs, sessions, weights = [], [], 0
        for name, side in zip(("base", "new"), sides, strict=True):
            with _named(side.model):
                side.require()
                document = stack.enter_context(contextlib.closing(open_document(side.model)))
                weights += summarise(document).weight_bytes
                plan = plan_of(replace(side, output=folder / f"{name}.dldprof"))
                if plan.session.memory == "cpu":
                    yield from require_memory(document, machine)
                if is_busy:
                    plan = replace(plan, session=plan.session.sleeping_between_passes())
                sessions.append(plan.session)
                runs.append(ProfilingRun(plan, document, dict(machine)))
            stack.enter_context(runs[-1].kept_report(stays=False))
        memory = machine.get("memory_bytes")
        fits = not isinstance(memory, int) or weights < _MEMORY_SHARE * memory
        if fits and all(session.memory == "cpu" for session in sessions):
            turns = yield from _in_turns(runs, end, new_first=request.new_first)
            pair = pair_of_turns(turns, by_processor=processor_times_compare(*sessions))
        else:
            yield from _one_by_one(runs, end, new_first=request.new_first)
            base, new = (RunFigures(statistics.median(run.latencies)) for run in runs)
            pair = Pair(base, new, new.ms / base.ms)
        base, new = (
            replace(figures, nodes=_node_times(run))
            for figures, run in zip((pair.base, pair.new), runs, strict=True)
        )
    yield Finished(replace(pair, base=base, new=new))


_WARM_UP_SHARE, _LATENCY_SHARE = 0.15, 0.5
"""Of the time that is left: for warming up one version, and for the latency of the first of two
that are measured in sequence."""
_RECORDING = 1.5
"""A pass with recorded layers takes at most so many times as long."""


def _prepared(run: ProfilingRun, name: str, end: float) -> Iterator[Event]:
    """Load a version and warm it up; stages say which version, and how long loading took."""
    prefix = name
    run.warm_up_limit_s = math.inf if math.isinf(end) else _WARM_UP_SHARE * _remaining_s(end)
    with _named(run.model):
        for event in run.prepare(reports=False):
            if isinstance(event, Metric) and event.name == "load":
                prefix = f"{name}, loaded in {fmt.duration(event.value / 1000)}"
            yield (
                replace(event, stage=f"{prefix}: {event.stage}")
                if isinstance(event, Progress)
                else event
            )


@contextlib.contextmanager
def _named(model: Path) -> Generator[None]:
    """Let errors say which of both models they are about."""
    try:
        yield
    except (UsageError, ActivityError) as error:
        error.where = error.where or str(model)
        raise


def _remaining_s(end: float) -> float:
    return max(0.0, end - time.monotonic())


def _finished(runs: Sequence[ProfilingRun], end: float) -> Iterator[Event]:
    """Measure the layers of all versions if they are asked for and there is time for it."""
    needed_s = sum(run.seconds_of_layers(_RECORDING) for run in runs)
    for run in runs:
        if 0 < needed_s <= _remaining_s(end):
            yield from run.finish()
        else:
            run.drop()


def _in_turns(
    runs: Sequence[ProfilingRun], end: float, *, new_first: bool
) -> Generator[Event, None, list[Turn]]:
    """Measure both in alternation, up to a time on the monotonic clock."""
    from dld_tui.backends.onnxruntime.session_options import spins
    from dld_tui.core.report.latency import measure_in_turns

    base, new = runs
    order = [(base, "base"), (new, "new")][:: -1 if new_first else 1]
    for side, name in order:
        yield from _prepared(side, name, end)
    done: list[Turn] = []
    reported_at = time.monotonic()
    turns = measure_in_turns(
        base.timer, new.timer, replace(base.timed, limit_s=_remaining_s(end) / 2),
        new_first=new_first, spins=spins(*(side.settings for side in runs)),
    )  # fmt: skip
    with contextlib.closing(turns):
        for turn in turns:
            done.append(turn)
            base.latencies += turn.base_ms
            new.latencies += turn.new_ms
            if time.monotonic() - reported_at >= _PROGRESS_S:
                reported_at = time.monotonic()
                yield Progress(len(done), None, "turns", _STAGE)
    yield from _finished([side for side, _ in order], end)
    return done


def _one_by_one(runs: Sequence[ProfilingRun], end: float, *, new_first: bool) -> Iterator[Event]:
    base, new = runs
    for at, (side, name) in enumerate([(base, "base"), (new, "new")][:: -1 if new_first else 1]):
        side_end = (
            end if at or math.isinf(end) else time.monotonic() + _LATENCY_SHARE * _remaining_s(end)
        )
        yield from _prepared(side, name, side_end)
        side.timed = replace(side.timed, limit_s=_remaining_s(side_end))
        yield from side.measure_latency()
        yield from _finished([side], side_end)


def _node_times(run: ProfilingRun) -> dict[str, float]:
    from dld_tui.core.report.report import open_report

    if not run.report_path.exists():  # layers were not measured
        return {}
    with contextlib.closing(open_report(run.report_path)) as report:
        return node_times(report.layers)
