"""A profiling run with ONNX Runtime: latency first, then the time of each layer.

The two are measured in sessions of their own, because ONNX Runtime's profiling slows down what it
profiles. The latency run times ``session.run`` alone.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from dld_tui.backends.onnxruntime import Feed, Session, SessionSettings, errors_of, version
from dld_tui.core.document.document import Document
from dld_tui.core.errors import ActivityError, CancelledError, DldError, SaveError
from dld_tui.core.events import Event, Log, Metric, Progress
from dld_tui.core.inputs.folder import load_input_sets
from dld_tui.core.inputs.generate import random_inputs
from dld_tui.core.inputs.shapes import guessed_inputs, parse_shapes, resolve_shapes
from dld_tui.core.latency import Burst, Extent, measure
from dld_tui.core.model_identity import identify
from dld_tui.core.report.import_ort import add_ort_profile
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.types import JSON

_AUTO_LAYER_PASSES, _AUTO_LAYER_EVENTS = 50, 200_000
_MOST_LAYER_EVENTS = 900_000
"""ONNX Runtime stops to record at 1,000,000."""
_WRITE_SECONDS = 1.0
_OPTIMIZED = "optimized.onnx"


@dataclass(frozen=True)
class Plan:
    """What to run and how long."""

    model: Path
    report: Path
    """Replaced if it exists."""
    session: SessionSettings
    shapes: tuple[str, ...]
    """As :func:`dld_tui.core.inputs.shapes.parse_shapes` takes them."""
    inputs: Path | None
    """A folder of data; None for random ones."""
    seed: int
    warm_up_passes: int
    warm_up_seconds: float
    timed: Extent
    layer_passes: int | None
    """None for a sensible number; 0 for no layers."""
    recorded_settings: dict[str, JSON]


class ProfilingRun:
    """One run, stage by stage. Iterate over :meth:`events` once.

    Args:
        plan: What to do.
        document: The model of the plan.
        environment: Facts of the machine, with at least ``cpu``.

    Raises:
        UsageError: A shape is given for what is no input.
    """

    def __init__(self, plan: Plan, document: Document, environment: dict[str, JSON]) -> None:
        self.latencies: list[float] = []
        """Of the timed passes, in milliseconds."""
        self.report_path = plan.report
        self._plan = plan
        self._document = document
        self._environment = environment
        inputs = [name for name in document.main.inputs if document.main.initializer(name) is None]
        self._given_shapes = parse_shapes(plan.shapes, inputs)
        self._model: dict[str, JSON] = {}
        self._input_shapes: dict[str, JSON] = {}
        self._feeds: list[Feed] = []
        self._load_ms = 0.0
        self._written = 0
        self._written_at = 0.0
        self._writer: ReportWriter | None = None

    def events(self) -> Iterator[Event]:
        """Do it. Stopped early, it leaves a partial report when passes were timed, else nothing.

        Raises:
            DldError: Of a class that tells what is at fault; the report is dealt with.
        """
        try:
            yield from self._stages()
            self.report_path = self._report.finish()
        except BaseException as error:
            self._give_up(error)
            raise

    def _stages(self) -> Iterator[Event]:
        self._model = yield from identify(self._plan.model, self._document)
        yield Progress(0, None, stage="Loading the model")
        begin = time.perf_counter()
        session = Session(self._plan.model, self._plan.session)
        self._load_ms = 1000 * (time.perf_counter() - begin)
        yield Metric("load", self._load_ms, "ms")
        self._make_inputs(session)
        yield from self._warm_up(session)
        yield from self._measure_latency(session)
        del session  # two at once would take twice the memory
        yield from self._measure_layers()

    @property
    def _report(self) -> ReportWriter:
        """The report, which is started when there is something to write."""
        if self._writer is None:
            provider = self._plan.session.providers[0]
            device = f"{provider} device {self._plan.session.device_id}"
            self._writer = ReportWriter.create(
                self._plan.report,
                network=self._plan.model.name,
                backend=f"ONNX Runtime {version()}",
                execution_provider=provider,
                device=str(self._environment["cpu"]) if provider == "CPU" else device,
                model=self._model,
                settings={**self._plan.recorded_settings, "input_shapes": self._input_shapes},
                environment=self._environment,
                overwrite=True,
            )
            self._writer.set_fact("load_ms", self._load_ms)
        return self._writer

    def _give_up(self, error: BaseException) -> None:
        if self._writer is None or isinstance(error, SaveError):  # what is on disk is all there is
            return
        self._write_latencies()
        cancelled = isinstance(error, (GeneratorExit, CancelledError))
        kept = self._writer.abort("the run was cancelled" if cancelled else str(error))
        if kept is not None and isinstance(error, DldError) and error.hint is None:
            error.hint = f"What was measured before is in {kept}"

    def _make_inputs(self, session: Session) -> None:
        if self._plan.inputs is not None:
            sets = load_input_sets(self._plan.inputs, session.inputs)
            self._feeds = [session.feed(one.values) for one in sets]
            self._input_shapes = {
                name: list(value.shape)
                for name, value in sets[0].values.items()
                if not isinstance(value, list)
            }
            return
        shapes = resolve_shapes(session.inputs, self._given_shapes)
        self._input_shapes = {name: list(shape) for name, shape in shapes.items()}
        values = random_inputs(session.inputs, shapes, self._plan.seed)
        self._feeds = [session.feed(values)]

    def _warm_up(self, session: Session) -> Iterator[Event]:
        """Run once with care, so that a model that cannot run says why, then a few times more."""
        yield Progress(0, None, stage="Warming up")
        try:
            session.run(self._feeds[0])
        except ActivityError as error:
            guessed = guessed_inputs(session.inputs, self._given_shapes)
            if guessed and self._plan.inputs is None:
                options = " ".join(f"--shape {spec.option}" for spec in guessed)
                error.hint = f"Free dimensions were taken as 1; give their sizes: {options}"
            raise
        extent = Extent(max(0, self._plan.warm_up_passes - 1), self._plan.warm_up_seconds)
        for _, progress in self._bursts(session, extent, "Warming up"):
            yield progress

    def _measure_latency(self, session: Session) -> Iterator[Event]:
        yield Progress(0, None, stage="Measuring latency")
        self._written_at = time.monotonic()
        for burst, progress in self._bursts(session, self._plan.timed, "Measuring latency"):
            self.latencies += burst.milliseconds
            if time.monotonic() - self._written_at >= _WRITE_SECONDS:
                self._write_latencies()
            yield progress
            yield Metric("latency", sorted(burst.milliseconds)[len(burst.milliseconds) // 2], "ms")
        self._write_latencies()

    def _write_latencies(self) -> None:
        new = self.latencies[self._written :]
        if new:
            self._report.add_latencies(new)
            self._report.flush()
        self._written = len(self.latencies)
        self._written_at = time.monotonic()

    def _measure_layers(self) -> Iterator[Event]:
        passes = self._layer_passes()
        if not passes:
            return
        if self._plan.layer_passes and passes < self._plan.layer_passes:
            text = f"layers: {passes} passes, which is what ONNX Runtime's profile has room for"
            yield Log(text, "warning")
        with tempfile.TemporaryDirectory(prefix="layers-") as name:
            folder = Path(name)
            session = self._profiled_session(folder)
            # One more to warm up.
            for _, progress in self._bursts(session, Extent(passes + 1), "Measuring layers"):
                yield progress
            profile = session.end_profiling()
            del session
            yield Progress(0, None, stage="Writing the report")
            self._write_layers(profile, folder / _OPTIMIZED)

    def _layer_passes(self) -> int:
        nodes = max(1, cast("int", self._model["nodes"]))
        wanted = self._plan.layer_passes
        if wanted is None:
            room = max(5, _AUTO_LAYER_EVENTS // nodes)
            wanted = min(_AUTO_LAYER_PASSES, len(self.latencies), room)
        return min(wanted, max(1, _MOST_LAYER_EVENTS // nodes - 1))

    def _profiled_session(self, folder: Path) -> Session:
        settings = replace(self._plan.session, profile_prefix=folder / "layers", quiet=True)
        optimized = replace(settings, optimized_path=folder / _OPTIMIZED)
        try:
            return Session(self._plan.model, optimized)
        except ActivityError:  # what some providers make of a graph cannot be written
            return Session(self._plan.model, settings)

    def _write_layers(self, profile: Path, optimized: Path) -> None:
        with contextlib.ExitStack() as stack:
            document = None
            if optimized.exists():
                document = stack.enter_context(contextlib.closing(Document.open(optimized)))
            add_ort_profile(self._report, profile, self._document, document, warm_up=1)

    def _bursts(
        self, session: Session, extent: Extent, stage: str
    ) -> Iterator[tuple[Burst, Progress]]:
        """Call the session and tell how far that is, after every burst."""
        with contextlib.closing(measure(session.timer(self._feeds), extent)) as bursts:
            while True:
                with errors_of(self._plan.model, "run"):
                    burst = next(bursts, None)
                if burst is None:
                    return
                yield burst, Progress(*extent.progress(burst.calls, burst.seconds), stage)
