"""Measure a model at several sizes and settings; the points are measured in turns.

One session serves all sizes of a setting. A sweep that is stopped goes on where it was.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.profile.llm import Request as LlmProfile
from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.sweep.setups import Generation, Passes, Runner, Setup
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    CancelledError,
    DldError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.writer import write_text
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import deciding, from_json, like, param
from dld_tui.core.report.latency import settled_s
from dld_tui.core.report.sweep import (
    BATCH,
    CONTEXT,
    PRECISION,
    PROMPT,
    PROVIDER,
    SETTINGS,
    SUFFIX,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    parse_values,
    places,
    sweep_text,
)
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import CHANGES, TuneChange
from dld_tui.core.tune.result import CandidateState, Exclusion
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.llm.folder import GenaiConfig
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tune.journal import KnownMeasurements

Result = Sweep
TURNS = 6
"""Turns of each point: between the smallest and the largest of six medians lies the median with a
confidence of 97 %."""
Place = tuple[int | str, ...]
_BATCHES = (1, 2, 4, 8)
"""Where nothing else is varied."""
_PROMPT = 128
_MEMORY_PART = 0.05
"""The part of the time to measure that the memory of passes may take."""
MEMORY_S = 2.0
"""Seconds that it may take in any case."""
AS_GIVEN = "model"
"""The precision of the model as it is given."""
_FLOAT = "fp32"
"""The same, for a model that computes in float32."""
CONVERSIONS: Mapping[str, TuneChange] = {
    change.id: change
    for change in CHANGES
    if change.convert in ("convert_fp16", "convert_bf16", "convert_quantize")
}
"""What makes a model of another precision, by its name."""
_OWN_AXES = (BATCH, *SETTINGS, PROMPT, CONTEXT)


def _no_batch(values: Mapping[str, JSON]) -> str:
    varied = [values.get(name) for name in ("dim", "threads", "precision", "prompt", "context")]
    several = values.get("provider")
    is_alone = not any(varied) and not (isinstance(several, list) and len(several) > 1)
    return ",".join(map(str, _BATCHES)) if is_alone else "as guessed"


@dataclass(frozen=True)
class Request:
    """What to vary, and how long to measure."""

    model: Path = like(
        Profile, "model",
        help="The ONNX model; for prompts a decoder, or a folder with genai_config.json or a single"
        " decoder.",
    )  # fmt: skip
    output: Path | None = param(
        None,
        label="Result",
        help="Write the result here, to open, compare and share it.",
        spellings=("--output", "-o"),
        kind="output",
        suffix=SUFFIX,
        metavar="FILE",
        empty="not written",
    )
    batch: str = param(
        "",
        label="Batch sizes",
        help="Batch sizes with commas between them, such as 1,2,4,8.",
        spellings=("--batch",),
        metavar="N,…",
        empty=_no_batch,
        of_model=True,
    )
    dim: tuple[str, ...] = param(
        (),
        label="Dimensions",
        help="Sizes of a dynamic dimension by name, such as sequence=16,64,256. May be repeated.",
        spellings=("--dim", "--dims"),
        metavar="NAME=N,…",
        empty="as guessed",
    )
    threads: str = param(
        "",
        label="Threads",
        help="Counts of intra-op threads, such as 1,2,4.",
        spellings=("--threads",),
        metavar="N,…",
        empty="one a core",
    )
    provider: tuple[str, ...] = param(
        (),
        label="Providers",
        help="Execution providers to compare. May be repeated.",
        spellings=("--provider", "--providers"),
        metavar="NAME",
        empty="CPU",
        of_model=False,
    )
    precision: str = param(
        "",
        label="Precisions",
        help=f"Precisions to convert the model to, of {', '.join(CONVERSIONS)}; {AS_GIVEN} is the"
        f" model as it is, {_FLOAT} if that is float32. int8 needs a calibration folder.",
        spellings=("--precision", "--precisions"),
        metavar="NAME,…",
        empty="as the model is",
        of_model=True,
    )
    prompt: str = param(
        "",
        label="Prompts",
        help="Prompt lengths of a decoder in tokens, such as 128,512.",
        spellings=("--prompt", "--prompts"),
        metavar="N,…",
        empty="no decoder",
        of_model=True,
    )
    context: str = param(
        "",
        label="Contexts",
        help="Tokens in the cache of a decoder before the prompt, such as 1024,4096.",
        spellings=("--context", "--contexts"),
        metavar="N,…",
        empty="an empty cache",
        of_model=True,
    )
    decode: int = like(
        LlmProfile, "decode",
        help="Tokens that a decoder makes after each prompt; end-of-text tokens are ignored.",
        applies=lambda values: bool(values.get("prompt") or values.get("context")),
    )  # fmt: skip
    duration: float = param(
        3.0,
        label="Seconds a point",
        help="Time that each point is measured for, in six turns.",
        unit="s",
        minimum=0.0,
        maximum=3600.0,
        spellings=("--duration",),
        metavar="S",
    )
    shape: tuple[str, ...] = like(InputSettings, "shape")
    calibration: Path | None = param(
        None,
        label="Calibration",
        help="Folder of inputs for static int8.",
        applies=lambda values: "int8" in str(values.get("precision")).split(","),
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    seed: int = like(InputSettings, "seed")
    device_id: int = like(Profile, "device_id")
    again: bool = param(
        False,
        label="Start over",
        decides=False,
        help="Start over instead of resuming an interrupted sweep.",
        spellings=("--again",),
    )

    @property
    def is_of_decoder(self) -> bool:
        """Whether prompts and tokens are measured."""
        return bool(self.prompt or self.context or self.model.is_dir())

    def axes(self) -> list[SweepAxis]:
        """Return what is varied; what needs a session of its own varies slowest.

        Raises:
            UsageError: A value is malformed, or a dimension is given twice.
        """
        axes = []
        if self.precision:
            axes.append(SweepAxis(PRECISION, _precisions(self.precision)))
        if len(set(self.provider)) > 1:
            axes.append(SweepAxis(PROVIDER, tuple(dict.fromkeys(self.provider))))
        for name, text in ((THREADS, self.threads), (BATCH, self.batch)):
            if text:
                axes.append(SweepAxis(name, parse_values(text, f"--{name}")))
        if self.is_of_decoder:
            if self.dim or self.shape:
                raise UsageError("the sizes of a decoder are --batch, --prompt and --context")
            prompts = self.prompt or str(_PROMPT)
            axes.append(SweepAxis(PROMPT, parse_values(prompts, "--prompt")))
            if self.context:
                axes.append(SweepAxis(CONTEXT, parse_values(self.context, "--context")))
        for text in self.dim:
            name, equals_sign, sizes = text.rpartition("=")
            if not equals_sign or not name:
                raise UsageError(f"--dim is {text!r}", hint="Write --dim sequence=16,64,256")
            if name in SETTINGS:
                raise UsageError(
                    f"--dim {name}=: a sweep has something else of this name",
                    hint="Rename the dimension: dld edit",
                )
            axes.append(SweepAxis(name, parse_values(sizes, f"--dim {name}=")))
        names = [axis.name for axis in axes]
        if len(set(names)) < len(names):
            raise UsageError("a dimension is given twice", hint="Give its sizes in one --dim")
        return axes or [SweepAxis(BATCH, _BATCHES)]


def _precisions(text: str) -> tuple[str, ...]:
    known = (AS_GIVEN, _FLOAT, *CONVERSIONS)
    precisions = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in precisions:
        if name not in known:
            raise UsageError(
                f"--precision: {visible(name) or 'an empty value'} is no precision",
                hint=f"Known: {', '.join(known)}",
            )
    if AS_GIVEN in precisions and _FLOAT in precisions:
        raise UsageError(f"{AS_GIVEN} and {_FLOAT} are the same model")
    return precisions


@dataclass
class _Point:
    """A point while it is measured."""

    at: Place
    runner: Runner | None = None
    rounds: list[float] = field(default_factory=list)
    first_rounds: list[float] = field(default_factory=list)
    problem: str = ""
    memory_bytes: int | None = None

    @property
    def key(self) -> str:
        """Its name in the journal."""
        return "/".join(map(str, self.at))


def run(request: Request) -> Iterator[Event]:
    """Measure.

    Raises:
        UsageError: A value is malformed, or the model has no such dimension.
        InputError: The model cannot be read.
        UnavailableError: ONNX Runtime or the only provider is missing.
        ActivityError: No point can be run.
        SaveError: The result cannot be written.
    """
    from dld_tui.core.llm.folder import find_decoder, open_document
    from dld_tui.core.tune.journal import KnownMeasurements

    axes = request.axes()
    spots = [_Point(at) for at in places(axes)]
    model, config = find_decoder(request.model) if request.is_of_decoder else (request.model, None)
    with contextlib.closing(open_document(model)) as document:
        _require_dimensions(document, axes)
        journal = KnownMeasurements.of(
            {"sweep": True, **deciding(request)}, document, again=request.again
        )
        with contextlib.closing(journal), contextlib.ExitStack() as stack:
            sweep = _Measurement(request, axes, spots, document, journal, stack)
            yield from sweep.events(model, config)


def _require_dimensions(document: Document, axes: list[SweepAxis]) -> None:
    """Refuse names that no input has."""
    from dld_tui.core.model.inputs.guess import input_specs

    known = {
        dim for spec in input_specs(document) for dim in spec.dims or () if isinstance(dim, str)
    }
    for axis in axes:
        if axis.name not in _OWN_AXES and axis.name not in known:
            named = ", ".join(sorted(known)) or "none: all of its sizes are fixed"
            raise UsageError(f"no input has a dimension {axis.name!r}", hint=f"There are {named}")


class _Measurement:
    """Makes models and sessions, tries each point once, and measures those that ran in turns."""

    def __init__(
        self,
        request: Request,
        axes: list[SweepAxis],
        spots: list[_Point],
        document: Document,
        journal: KnownMeasurements,
        stack: contextlib.ExitStack,
    ) -> None:
        self._request, self._axes, self._spots = request, axes, spots
        self._document, self._journal, self._stack = document, journal, stack
        self._setups: dict[Place, Setup | DldError] = {}
        self._last_setup: Place = ()
        self._fixed = ""
        self._measured_s = 0.0

    def events(self, model: Path, config: GenaiConfig | None) -> Iterator[Event]:
        """Yield what happens, the result last."""
        from dld_tui.backends.onnxruntime.limits import limit_trials, naming
        from dld_tui.backends.onnxruntime.runtime import version

        began, request = time.monotonic(), self._request
        models = yield from self._converted(model)
        if {*request.provider} <= {"CPU"}:
            limit_trials(self._document, shapes=request.shape, is_asked=True)
        with naming(self._document):
            for done, spot in enumerate(self._spots):
                yield Progress(done, len(self._spots), "points", "Trying each point once")
                self._prepare(spot, models, config)
            ready = [spot for spot in self._spots if not spot.problem]
            if not ready:
                raise ActivityError(f"no point can be run: {self._spots[0].problem}")
            yield from self._rounds(ready)
            self._add_memory(ready)
        points = [
            SweepPoint(spot.at, problem=spot.problem) if spot.problem
            else SweepPoint(
                spot.at, tuple(spot.rounds), "", tuple(spot.first_rounds), spot.memory_bytes
            )
            for spot in self._spots
        ]  # fmt: skip
        path = request.output
        sweep = Sweep(
            str(request.model), f"ONNX Runtime {version()}", tuple(self._axes), tuple(points),
            self._fixed, self._measured_s, time.monotonic() - began,
            tokens=request.decode if request.is_of_decoder else 0,
            report="" if path is None else str(path.absolute()),
            digest=self._journal.digest, settings=asked_settings(request),
        )  # fmt: skip
        if path is not None:
            write_text(path, sweep_text(sweep))
        self._journal.forget()
        yield Finished(sweep)

    def _converted(self, model: Path) -> Generator[Event, None, dict[str, Path | str]]:
        """Return the model of each precision, or why there is none."""
        names = next((axis.values for axis in self._axes if axis.name == PRECISION), (AS_GIVEN,))
        models: dict[str, Path | str] = {}
        for done, name in enumerate(map(str, names)):
            yield Progress(done, len(names), "conversions", f"Converting to {name}")
            if name == AS_GIVEN:
                models[name] = model
            elif name == _FLOAT:
                models[name] = _other_than_float(self._document) or model
            else:
                models[name] = yield from self._conversion(CONVERSIONS[name], model)
        return models

    def _conversion(self, change: TuneChange, model: Path) -> Generator[Event, None, Path | str]:
        """Convert the model as ``dld convert`` does, verified, unless the journal has it."""
        journal = self._journal
        if not journal.is_made(change.id):
            try:
                problem = yield from self._problem_of(change, model)
            except CancelledError:
                raise
            except DldError as error:
                problem = ". ".join(filter(None, (error.message, error.hint)))
            excluded = Exclusion(CandidateState.FAILED, visible(problem)) if problem else None
            journal.add_made(change.id, excluded)
        excluded = journal.exclusion(change.id)
        return journal.model(change.id) if excluded is None else excluded.text

    def _problem_of(self, change: TuneChange, model: Path) -> Generator[Event, None, str]:
        from dld_tui.activities import registry
        from dld_tui.core.conversion.result import VerifiedResult, value_problem

        request = self._request
        if change.needs and getattr(request, change.needs) is None:
            return f"{change.title} needs --{change.needs}"
        values: dict[str, JSON] = {
            "model": str(model), "output": str(self._journal.model(change.id)),
            "values": "always", "measure": False, "tolerance": [*change.tolerance],
            "shape": [*request.shape], **change.values,
        }  # fmt: skip
        if change.needs:
            values[change.needs] = str(getattr(request, change.needs))
        activity, result = registry.load(change.convert), None
        events = activity.run(from_json(activity.request, values))
        with contextlib.closing(events):
            for event in events:
                if isinstance(event, Finished):
                    result = event.result
                elif isinstance(event, Progress):
                    yield replace(event, stage=f"{change.title}: {event.stage}")
        if isinstance(result, VerifiedResult) and result.unchanged:
            return "the conversion found nothing to do"
        return value_problem(result)

    def _prepare(
        self, spot: _Point, models: Mapping[str, Path | str], config: GenaiConfig | None
    ) -> None:
        from dld_tui.backends.onnxruntime.limits import with_node

        sizes = {
            axis.name: value for axis, value in zip(self._axes, spot.at, strict=True)
            if axis.name not in SETTINGS and isinstance(value, int)
        }  # fmt: skip
        try:
            spot.runner = self._setup(spot, models, config).runner(sizes)
            self._fixed = self._fixed or spot.runner.about
        except ActivityError as error:
            spot.problem = with_node(error)
        except UnavailableError as error:  # other providers are there
            if len({*self._request.provider}) < 2:
                raise
            spot.problem = visible(error.message)
        except UsageError as error:  # of an ordinary model, what is wrong is so for all points
            if not self._request.is_of_decoder:
                raise
            spot.problem = visible(error.message)

    def _setup(
        self, spot: _Point, models: Mapping[str, Path | str], config: GenaiConfig | None
    ) -> Setup:
        """Return the session that all sizes of the settings of a point share.

        Raises:
            DldError: It cannot be made.
        """
        key = self._setup_key(spot)
        if key not in self._setups:
            precision, provider, threads = map(str, key)
            try:
                self._setups[key] = self._make_setup(
                    models[precision], config, provider, int(threads)
                )
            except DldError as error:  # not tried again for each size
                self._setups[key] = error
        setup_or_error = self._setups[key]
        if isinstance(setup_or_error, DldError):
            raise setup_or_error
        return setup_or_error

    def _setup_key(self, spot: _Point) -> Place:
        """Return the precision, provider and threads of a point."""
        at = {axis.name: value for axis, value in zip(self._axes, spot.at, strict=True)}
        provider = at.get(PROVIDER, next(iter(self._request.provider), "CPU"))
        return at.get(PRECISION, AS_GIVEN), provider, at.get(THREADS, 0)

    def _make_setup(
        self, model: Path | str, config: GenaiConfig | None, provider: str, threads: int
    ) -> Setup:
        from dld_tui.core.llm.folder import open_document

        if isinstance(model, str):
            raise ActivityError(model)
        request = self._request
        asked = Profile(
            model=model, provider=provider, threads=threads, device_id=request.device_id
        )
        settings = replace(asked.session_settings(), quiet=True)
        if not request.is_of_decoder:
            return Passes(model, settings, self._document, request.shape, request.seed)
        document = self._document
        if model != document.path:
            document = self._stack.enter_context(contextlib.closing(open_document(model)))
        return Generation(model, settings, config, document, request.decode, request.seed)

    def _add_memory(self, ready: list[_Point]) -> None:
        """Measure the memory of passes, as far as that takes a small part of the time.

        Threads make no difference: those of the first count of them are measured.
        """
        limit_s = max(MEMORY_S, _MEMORY_PART * self._request.duration * len(ready))
        by_setup: dict[Place, list[_Point]] = {}
        for spot in ready:
            if not spot.problem:
                precision, provider, _ = self._setup_key(spot)
                by_setup.setdefault((precision, provider), []).append(spot)
        for spots in by_setup.values():
            first = self._setup_key(spots[0])
            setup, began = self._setups[first], time.monotonic()
            own = [spot for spot in spots if self._setup_key(spot) == first]
            runners = [spot.runner for spot in own if spot.runner is not None]
            peaks = [] if isinstance(setup, DldError) else setup.peaks(runners, limit_s)
            limit_s -= time.monotonic() - began
            known = {self._sizes(spot): peak for spot, peak in zip(own, peaks, strict=False)}
            for spot in spots:
                spot.memory_bytes = known.get(self._sizes(spot))

    def _sizes(self, spot: _Point) -> Place:
        """Return the values of a point along the axes that are no settings."""
        named = zip(self._axes, spot.at, strict=True)
        return tuple(value for axis, value in named if axis.name not in SETTINGS)

    def _rounds(self, ready: list[_Point]) -> Iterator[Event]:
        known = sum(self._known(spot) for spot in ready)
        total = len(ready) * TURNS
        if known:
            yield Log(f"{known} of {total} turns are known from before")
        done = 0
        for number in range(TURNS):
            # The order turns, so that what changes slowly hits all points alike.
            at = number * len(ready) // TURNS
            for spot in ready[at:] + ready[:at]:
                yield Progress(done, total, "turns", "Measuring in turns")
                if not spot.problem and len(spot.rounds) <= number:
                    self._time(spot)
                done += 1

    def _known(self, spot: _Point) -> int:
        """Take the turns of a point that a sweep that was stopped had measured."""
        for figures in self._journal.rounds("sweep", [spot.key])[:TURNS]:
            spot.rounds.append(figures["ms"])
            if "first_ms" in figures:
                spot.first_rounds.append(figures["first_ms"])
        return len(spot.rounds)

    def _time(self, spot: _Point) -> None:
        from dld_tui.backends.onnxruntime.limits import with_node

        assert spot.runner is not None
        setup, settled = self._setup_key(spot), settled_s()
        wait_for_idle_threads = setup != self._last_setup
        self._last_setup = setup
        try:
            began = time.monotonic()
            measured = spot.runner.measure_slice(
                self._request.duration / TURNS, wait_for_idle_threads=wait_for_idle_threads
            )
        except ActivityError as error:
            spot.problem = with_node(error)
            return
        self._measured_s += time.monotonic() - began - (settled_s() - settled)
        figures = {"ms": measured.ms}
        spot.rounds.append(measured.ms)
        if measured.first_ms is not None:
            figures["first_ms"] = measured.first_ms
            spot.first_rounds.append(measured.first_ms)
        self._journal.add_round("sweep", [spot.key], figures)


def asked_settings(request: Request) -> dict[str, JSON]:
    """Return the settings that a result depends on."""
    return {**deciding(request, ("model",))}


def _other_than_float(document: Document) -> str:
    """Return why a model does not compute in float32; empty where it does."""
    sizes: dict[str, int] = {}
    for scope in document.scopes():
        for tensor in scope.initializers:
            sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + (tensor.nbytes or 0)
    most = max(sizes, key=lambda dtype: sizes[dtype], default="float32")
    if most == "float32" or not sizes[most]:
        return ""
    return f"most of its weights are {visible(most)}: {AS_GIVEN} measures it as it is"
