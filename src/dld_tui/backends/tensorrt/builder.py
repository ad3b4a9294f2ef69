"""Build an engine: the library works in a thread, its log and its phases come out as events."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt import tactics
from dld_tui.backends.tensorrt.builder_config import configure
from dld_tui.backends.tensorrt.errors import build_error
from dld_tui.backends.tensorrt.library import Library
from dld_tui.backends.tensorrt.log import BuildLog, Phases, logger_of, monitor_of
from dld_tui.backends.tensorrt.network import (
    Network,
    is_strong,
    load_plugins,
    model_file,
    parse,
    set_precisions,
    wanted_precisions,
)
from dld_tui.backends.tensorrt.tactics import Selection, conclude, selection_for, selector_of
from dld_tui.core.document.local_functions import recursive
from dld_tui.core.document.metadata import Profile
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.text import visible
from dld_tui.core.types import JSON, Facts

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt.cuda import Cuda
    from dld_tui.core.document.document import Document
else:
    from dld_tui.backends.tensorrt.library import trt

_PERIOD_S = 0.1
_STOP_S = 60.0
"""How long a build may take from one step to the next when it is asked to stop."""
_CHUNK = 16 << 20


@dataclass
class BuiltEngine:
    """An engine that was built."""

    path: Path
    bytes: int
    seconds: float
    """Of the library's work: parsing and building."""
    log: Path | None
    strong: bool
    timing_cache: dict[str, JSON] | None = None
    device: Facts = field(default_factory=dict)
    """What is known of the GPU; empty without one."""
    remarks: list[str] = field(default_factory=list)
    """What was done otherwise than asked. Fit for a terminal."""
    warnings: int = 0
    tail: list[str] = field(default_factory=list)
    """The end of the log."""
    retyping: dict[str, JSON] | None = None
    """What the casts are that a strongly typed network got for the precisions of layers."""


def build(
    library: Library,
    document: Document,
    settings: BuildSettings,
    profiles: Sequence[Profile],
    engine: Path,
    log: Path | None = None,
    selection: Selection | None = None,
    prepare: Callable[[Network], None] | None = None,
) -> Generator[Event, None, BuiltEngine]:
    """Build an engine and write it; closing the generator stops the build.

    Args:
        library: What builds it.
        document: The model; it is not changed.
        settings: Of the build.
        profiles: One for each of the engine's, see :mod:`dld_tui.core.tensorrt.profiles`.
        engine: Where it goes.
        log: The file for all that the library says.
        selection: The tactics to take; gets what was offered and taken. By default as the settings
            say.
        prepare: Gets the network when it is parsed and before it is built, to change it.

    Raises:
        UsageError: The library cannot do what is asked for.
        InputError: The model cannot be read.
        ActivityError: There is no such engine; says why, and where in the model.
        UnavailableError: A library of plugins, or a device, is missing.
        CancelledError: It was stopped.
    """
    _check_functions(document)
    job = _Build(library, document, settings, profiles, engine, log)
    job.selection = selection
    job.prepare = prepare
    return (yield from job.events())


def _check_functions(document: Document) -> None:
    """Refuse functions that call themselves: parsers put them in without end, and crash."""
    if endless := sorted(recursive(document)):
        domain, name = endless[0][:2]
        raise InputError(
            f"function {visible(f'{domain}::{name}')} calls itself, so it cannot be built",
            where="" if document.path is None else str(document.path),
            hint="dld check lists such functions",
        )


class _Build:
    """One build."""

    def __init__(
        self,
        library: Library,
        document: Document,
        settings: BuildSettings,
        profiles: Sequence[Profile],
        engine: Path,
        log: Path | None,
    ) -> None:
        self._library = library
        self._document = document
        self._settings = settings
        self._profiles = profiles
        self._queue: queue.SimpleQueue[Log | None] = queue.SimpleQueue()
        self._phases = Phases()
        self._stage = "Starting TensorRT"
        self._host: trt.IHostMemory | None = None
        self.selection: Selection | None = None
        self.prepare: Callable[[Network], None] | None = None
        self._error: BaseException | None = None
        strong = is_strong(settings, library.facts)
        self._built = BuiltEngine(engine, 0, 0.0, log, strong)
        self._log = BuildLog(log, self._queue.put, settings.verbose)

    def events(self) -> Generator[Event, None, BuiltEngine]:
        with contextlib.ExitStack() as stack:
            stack.callback(self._log.close)
            document, wanted = self._document, wanted_precisions(self._document, self._settings)
            if self._built.strong and wanted:
                yield Progress(0, None, stage="Casting layers to their precisions")
                document = self._retype(stack)
                wanted = {}
            yield Progress(0, None, stage="Preparing the model")
            path = stack.enter_context(model_file(document))
            began = monotonic()
            yield from self._native(path, wanted)
            self._built.seconds = monotonic() - began
            if self._host is None:
                raise self._failure()
            yield Progress(0, None, stage="Writing the engine")
            pieces = _Chunks(self._host)
            write_pieces(self._built.path, pieces)
            self._built.bytes = len(pieces.view)
        while (event := self._next()) is not None:  # what closing the log says
            yield event
        self._built.warnings = self._log.warnings
        self._built.tail = list(self._log.tail)
        return self._built

    def _retype(self, stack: contextlib.ExitStack) -> Document:
        """Return a copy of the model whose casts give the layers their precisions."""
        from dld_tui.core.tensorrt.retyping import retyped

        retyping = retyped(self._document, self._settings.layer_precision)
        stack.callback(retyping.document.close)
        for line in retyping.lines():
            self._log.note(line)
        self._built.retyping = {"casts": retyping.casts, "lines": list[JSON](retyping.lines())}
        return retyping.document

    # The thread

    def _native(self, path: Path, wanted: dict[str, str]) -> Iterator[Event]:
        thread = threading.Thread(target=self._work, args=(path, wanted), daemon=True)
        thread.start()
        try:
            reported: Progress | None = None
            while True:
                try:
                    log = self._queue.get(timeout=_PERIOD_S)
                except queue.Empty:
                    progress = self._phases.progress() or Progress(0, None, stage=self._stage)
                    reported = progress
                    yield progress  # told again when nothing moved: here the worker may stop
                    continue
                if log is None:
                    break
                yield log
                if (
                    progress_now := self._phases.progress()
                ) is not None and progress_now != reported:
                    reported = progress_now
                    yield progress_now
        finally:
            self._phases.stopped.set()
            thread.join(_STOP_S)

    def _next(self) -> Log | None:
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None

    def _work(self, path: Path, wanted: dict[str, str]) -> None:
        try:
            self._build(path, wanted)
        # The seam: it is raised again by who waits.
        except BaseException as error:  # noqa: BLE001
            self._error = error
        finally:
            self._queue.put(None)

    def _build(self, path: Path, wanted: dict[str, str]) -> None:
        settings, library, log = self._settings, self._library, self._log
        logger = logger_of(log)
        with self._on_device() as cuda:
            builder = self._builder(logger)
            load_plugins(builder, settings, library.facts)
            self._stage = "Parsing the model"
            network = parse(builder, path, self._document, settings, library, log)
            if not network.strong:
                set_precisions(network, wanted, settings)
            if self.prepare is not None:
                self.prepare(network)
            self._stage = "Configuring the build"
            config = configure(builder, network, settings, self._profiles, library)
            calibrator = self._calibrator(config, network, cuda)
            selection = self.selection or selection_for(settings)
            selector = None if selection is None else selector_of(selection)
            if selector is not None:
                config.algorithm_selector = selector
            timing = tactics.attach(config, settings, library, self._device_name())
            if "IBuilderConfig.progress_monitor" in library.facts.has:
                config.progress_monitor = monitor_of(self._phases)
            for remark in network.remarks:
                log.note(remark, "warning")
            self._built.remarks += network.remarks
            self._stage = "Building the engine"
            if not self._phases.stopped.is_set():
                host = builder.build_serialized_network(network.network, config)
                if selection is not None:
                    self._built.remarks += conclude(selection, settings, host is not None)
                self._host = host
            del calibrator, selector
            if timing is not None and self._host is not None:
                problem = tactics.save(timing, config, settings, library)
                if problem:
                    log.note(problem, "warning")
                    self._built.remarks.append(problem)
                self._built.timing_cache = dict(timing.facts())

    def _builder(self, logger: trt.ILogger) -> trt.Builder:
        try:
            return trt.Builder(logger)
        # The bindings raise what they have when the library makes no builder.
        except (TypeError, RuntimeError) as error:
            log_lines = [*self._log.errors, str(error)]
            build_failure = build_error(
                log_lines, str(self._document.path), self._library.facts.title
            )
            raise UnavailableError(
                build_failure.message, hint=build_failure.hint, details=build_failure.details
            ) from None

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[Cuda | None]:
        """Make the chosen GPU the one of this thread, where there is one."""
        settings, facts = self._settings, self._library.facts
        if facts.no_driver:
            if settings.device != "0":
                raise UnavailableError(f"there is no device {settings.device}: {facts.no_driver}")
            yield None
            return
        from dld_tui.backends.tensorrt.cuda import Cuda

        try:
            cuda = Cuda(settings.device)
        except DldError:
            if settings.device != "0":
                raise
            yield None
            return
        with contextlib.closing(cuda):
            self._built.device = cuda.facts()
            yield cuda

    def _device_name(self) -> str:
        device = self._built.device
        name = f"{device.get('gpu', '')}-{device.get('gpu_compute_capability', '')}"
        return name if device else "no-device"

    def _calibrator(
        self, config: trt.IBuilderConfig, network: Network, cuda: Cuda | None
    ) -> object:
        """Give the build its INT8 calibrator, when one is asked for; keep what is returned."""
        settings = self._settings
        if settings.calibration_cache is None and settings.calibration_inputs is None:
            return None
        if network.strong:
            raise UsageError(
                f"{self._library.facts.title} does not calibrate: it takes the types of the model",
                hint="Quantize the model with Q/DQ nodes",
            )
        from dld_tui.backends.tensorrt.calibration import calibrator_for

        return calibrator_for(
            config, network.network, settings, self._library, self._profiles, cuda
        )

    # The end

    def _failure(self) -> BaseException:
        if self._error is not None:
            if isinstance(self._error, MemoryError):
                return ActivityError("out of memory", where=str(self._document.path))
            return self._error
        where = str(self._document.path or "the model")
        error = build_error(list(self._log.errors), where, self._library.facts.title)
        if self._built.log is not None:
            note = f"The log is {self._built.log}"
            error.hint = f"{error.hint}. {note}" if error.hint else note
        return error


class _Chunks(Sequence[bytes]):
    """The bytes of an engine in pieces, each copied only when it is written."""

    def __init__(self, host: Any) -> None:
        self.view = memoryview(host).cast("B")

    def __len__(self) -> int:
        return (len(self.view) + _CHUNK - 1) // _CHUNK

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return bytes(self.view[index * _CHUNK : (index + 1) * _CHUNK])
