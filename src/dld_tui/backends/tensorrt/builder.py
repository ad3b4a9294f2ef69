"""Builds of engines: settings become a builder configuration, and the library runs in a thread.

Its log and its phases come out as events. What the library does not have was refused before
(:mod:`dld_tui.core.tensorrt.availability`); settings left at their default are not passed, so that
an older library never hears of them.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import field
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from dld_tui.backends.tensorrt import tactics
from dld_tui.backends.tensorrt.errors import build_error
from dld_tui.backends.tensorrt.library import Library, load_plugins
from dld_tui.backends.tensorrt.log import BuildLog, Phases, monitor_of
from dld_tui.backends.tensorrt.network import (
    Network,
    builder_for,
    is_strong,
    layers,
    matching_entries,
    model_file,
    node_names,
    parse,
    set_precisions,
    wanted_precisions,
)
from dld_tui.backends.tensorrt.tactics import TacticSelection, conclude, selection_for, selector_of
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.files import permission
from dld_tui.core.files.writer import write_pieces
from dld_tui.core.model.document.local_functions import recursive
from dld_tui.core.model.document.metadata import Profile
from dld_tui.core.notes import NoteKind
from dld_tui.core.report.startup import Stage
from dld_tui.core.tensorrt.availability import FLAGS, TYPES, member_of
from dld_tui.core.tensorrt.build_routes import Knobs, parse_routes, read_knobs, route_text
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import mebibytes, named_value
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, PlainValues

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt.cuda import Cuda
    from dld_tui.core.model.document.document import Document
else:
    from dld_tui.backends.tensorrt.library import trt


_POOLS = {
    "dlasram": "DLA_MANAGED_SRAM",
    "dlalocaldram": "DLA_LOCAL_DRAM",
    "dlaglobaldram": "DLA_GLOBAL_DRAM",
    "tacticdram": "TACTIC_DRAM",
    "tacticsharedmem": "TACTIC_SHARED_MEMORY",
}
"""trtexec's names of memory pools, in lower case."""
_VERBOSITY = {"layer_names": "LAYER_NAMES_ONLY", "detailed": "DETAILED", "none": "NONE"}
_MIB = 1 << 20
_INPUT_RANGE, _OUTPUT_RANGE = 2.0, 4.0
"""As trtexec has them; a concatenation has that of outputs throughout, a pooling that of inputs."""


def configure(
    builder: trt.Builder,
    network: Network,
    settings: BuildSettings,
    profiles: Sequence[Profile],
    library: Library,
) -> trt.IBuilderConfig:
    """Return the configuration of a build, without what the build itself needs.

    Raises:
        UsageError: The library does not have what is asked for.
    """
    if settings.sparsity == "force":
        raise UsageError(
            "--sparsity force: weights are not changed here",
            hint="Prune a copy with polygraphy surgeon prune, and build it with --sparsity enable",
        )
    config = builder.create_builder_config()
    capabilities = library.capabilities
    _set_flags(config, network, settings, capabilities)
    _set_numbers(config, settings, capabilities)
    _set_pools(config, settings, capabilities)
    _set_sources(config, settings, capabilities)
    _set_devices(config, network, settings, capabilities)
    _set_capabilities(config, settings, capabilities)
    _set_route(config, settings, capabilities)
    if settings.placeholder_ranges:
        _set_ranges(network)
    if settings.verbosity != "layer_names":
        kind = _member("ProfilingVerbosity", _VERBOSITY[settings.verbosity], capabilities)
        config.profiling_verbosity = kind
    if settings.dynamic_plugins:
        config.plugins_to_serialize = list(settings.dynamic_plugins)
    for profile in profiles:
        _add_profile(builder, config, network.network, profile)
    return config


def _member(kind: str, name: str, capabilities: LibraryCapabilities) -> Any:
    """Return a member of an enumeration.

    Raises:
        UsageError: The library does not have it.
    """
    member = getattr(getattr(trt, kind, None), name, None)
    if member is None:
        raise UsageError(f"{capabilities.title} has no {kind} {name}")
    return member


def flag_names(settings: BuildSettings, strong: bool, flags: frozenset[str]) -> list[str]:
    """Return the builder flags that settings ask for, in a fixed order.

    Args:
        settings: Of the build.
        strong: Whether the network is strongly typed: then no flag allows a type.
        flags: What the library has, for what has other names in other versions.
    """
    names = []
    if not strong:
        names = [FLAGS[setting] for setting in TYPES if getattr(settings, setting)]
        names += _TYPING.get(settings.typing, ())
    for setting, flag in FLAGS.items():
        if setting in TYPES or setting == "tf32":  # the library allows TF32 by itself
            continue
        value = getattr(settings, setting)
        if value == "strip":
            names += ["STRIP_PLAN" if "STRIP_PLAN" in flags else "WEIGHTLESS"]
            names += ["REFIT_IDENTICAL" if "REFIT_IDENTICAL" in flags else "REFIT"]
        elif value not in (False, "none", "disable"):
            names.append(flag)
    return names


_TYPING = {"obey": ["OBEY_PRECISION_CONSTRAINTS"], "prefer": ["PREFER_PRECISION_CONSTRAINTS"]}


def _set_flags(
    config: trt.IBuilderConfig,
    network: Network,
    settings: BuildSettings,
    capabilities: LibraryCapabilities,
) -> None:
    for name in flag_names(settings, network.strong, capabilities.flags):
        if name == "DISABLE_TIMING_CACHE" and name not in capabilities.flags:
            continue  # there is nothing to disable
        config.set_flag(_member("BuilderFlag", name, capabilities))
    if not settings.tf32 and "TF32" in capabilities.flags:
        config.clear_flag(trt.BuilderFlag.TF32)


_NUMBERS = ("optimization_level", "max_aux_streams", "avg_timing", "max_tactics", "l2_limit")


def _set_numbers(
    config: trt.IBuilderConfig, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    for setting in _NUMBERS:
        value = getattr(settings, setting)
        if value is not None:
            _set(config, member_of(setting), value, capabilities)
    if settings.tiling_level is not None:
        level = ("NONE", "FAST", "MODERATE", "FULL")[settings.tiling_level]
        kind = _member("TilingOptimizationLevel", level, capabilities)
        _set(config, "tiling_optimization_level", kind, capabilities)
    if settings.hardware_compatible != "none":
        name = settings.hardware_compatible.upper()
        kind = _member("HardwareCompatibilityLevel", name, capabilities)
        _set(config, "hardware_compatibility_level", kind, capabilities)
    if settings.runtime_platform != "same_as_build":
        kind = _member("RuntimePlatform", settings.runtime_platform.upper(), capabilities)
        _set(config, "runtime_platform", kind, capabilities)


def _set(
    config: trt.IBuilderConfig, name: str, value: Any, capabilities: LibraryCapabilities
) -> None:
    if f"IBuilderConfig.{name}" not in capabilities.has:
        raise UsageError(f"{capabilities.title} has no {name.replace('_', ' ')}")
    setattr(config, name, value)


def _set_pools(
    config: trt.IBuilderConfig, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    if settings.workspace is not None:
        kind = _member("MemoryPoolType", "WORKSPACE", capabilities)
        config.set_memory_pool_limit(kind, int(settings.workspace * _MIB))
    for item in settings.memory_pools:
        name, size = named_value(item)
        pool = _POOLS.get(name.lower(), name.upper())
        if pool not in capabilities.pools:
            raise UsageError(
                f"{capabilities.title} has no memory pool {visible(name)}",
                hint=f"Known: {', '.join(sorted(capabilities.pools))}",
            )
        limit = int(mebibytes(size) * _MIB)
        config.set_memory_pool_limit(_member("MemoryPoolType", pool, capabilities), limit)


def tactic_mask(default: int, sources: Iterable[str], numbers: dict[str, int]) -> int:
    """Return the mask of tactic sources.

    Args:
        default: The library's own.
        sources: ``+NAME`` and ``-NAME`` change the default, ``NAME`` alone starts from none.
        numbers: The sources that the library has.

    Raises:
        UsageError: It does not have one.
    """
    items = [item.strip().upper() for item in sources]
    plain = [item for item in items if item[:1] not in "+-"]
    mask = 0 if plain else default
    for item in items:
        name = item.lstrip("+-")
        if name == "NONE":
            continue
        if name not in numbers:
            known = ", ".join(sorted(numbers)) or "none"
            raise UsageError(f"unknown tactic source {visible(name)}", hint=f"Known: {known}")
        bit = 1 << numbers[name]
        mask = mask & ~bit if item.startswith("-") else mask | bit
    return mask


def _set_sources(
    config: trt.IBuilderConfig, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    if settings.tactic_sources:
        numbers = {
            name: int(getattr(trt.TacticSource, name)) for name in capabilities.tactic_sources
        }
        default = config.get_tactic_sources()
        config.set_tactic_sources(tactic_mask(default, settings.tactic_sources, numbers))
    for item in settings.preview_features:
        name = item.lstrip("+-").upper()
        kind = _member("PreviewFeature", name, capabilities)
        config.set_preview_feature(kind, not item.startswith("-"))


def _set_route(
    config: trt.IBuilderConfig, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    if not settings.build_route:
        return
    knobs = known_knobs(config, capabilities)
    fixed = {name: values[0] for name, values in parse_routes(settings.build_route, knobs).items()}
    _set(config, "build_route", route_text(fixed), capabilities)


def known_knobs(config: trt.IBuilderConfig, capabilities: LibraryCapabilities) -> Knobs:
    """Return the knobs of a library's compiler.

    Raises:
        UsageError: It has none.
    """
    text = getattr(config, "all_build_routes", "")
    knobs = read_knobs(text)
    if not knobs.knobs:
        raise UsageError(
            f"{capabilities.title} has no knobs for build routes",
            hint="TensorRT 11.1 and later have them, but not on Windows, nor TensorRT-RTX",
        )
    return knobs


def _set_ranges(network: Network) -> None:
    """Give each tensor that has no range the one that trtexec would make up."""
    count = 0
    for layer in layers(network.network):
        ends = [
            *(
                (layer.get_input(at), _INPUT_RANGE, "CONCATENATION")
                for at in range(layer.num_inputs)
            ),
            *((layer.get_output(at), _OUTPUT_RANGE, "POOLING") for at in range(layer.num_outputs)),
        ]
        for tensor, limit, turned in ends:
            if tensor is not None and tensor.dynamic_range is None:
                limit = _INPUT_RANGE + _OUTPUT_RANGE - limit if layer.type.name == turned else limit
                tensor.set_dynamic_range(-limit, limit)
                count += 1
    network.remarks.append(
        f"{count} tensors have made-up ranges: time this engine, but do not use its results"
    )


def _set_devices(
    config: trt.IBuilderConfig,
    network: Network,
    settings: BuildSettings,
    capabilities: LibraryCapabilities,
) -> None:
    if settings.dla_core is not None:
        cores = network.builder.num_DLA_cores
        if settings.dla_core >= cores:
            here = "no DLA core" if not cores else f"DLA cores 0 to {cores - 1}"
            raise UsageError(f"there is no DLA core {settings.dla_core}: the device has {here}")
        config.default_device_type = trt.DeviceType.DLA
        config.DLA_core = settings.dla_core
        if network.strong and not _has_types(network.network, ("HALF", "INT8")):
            network.remarks.append(
                "no tensor of the model is float16 or int8, and the DLA computes in these only:"
                " convert it first, with dld convert fp16 or quantize"
            )
    devices = dict(named_value(item) for item in settings.layer_device)
    missing = set(devices)
    for layer in layers(network.network) if devices else ():
        for name, device in matching_entries(devices, node_names(layer, network.functions)):
            missing.discard(name)
            config.set_device_type(layer, _member("DeviceType", device.upper(), capabilities))
    for name in sorted(missing):
        network.remarks.append(
            f"no layer has the name '{clip(visible(name), 60)}': its device is not set"
        )


def _has_types(network: trt.INetworkDefinition, names: Sequence[str]) -> bool:
    return any(
        layer.get_output(at).dtype.name in names
        for layer in layers(network)
        for at in range(layer.num_outputs)
    )


def _set_capabilities(
    config: trt.IBuilderConfig, settings: BuildSettings, capabilities: LibraryCapabilities
) -> None:
    if not settings.compute_capability:
        return
    if "IBuilderConfig.set_compute_capability" not in capabilities.has:
        raise UsageError(f"{capabilities.title} builds only for the device that it runs on")
    kinds = []
    for text in settings.compute_capability:
        if text.lower() != "current" and text not in capabilities.compute_capabilities:
            known = ", ".join(capabilities.compute_capabilities)
            raise UsageError(
                f"{capabilities.title} does not build for compute capability {visible(text)}",
                hint=f"It builds for {known}",
            )
        name = "CURRENT" if text.lower() == "current" else f"SM{text.replace('.', '')}"
        kinds.append(_member("ComputeCapability", name, capabilities))
    target: Any = config  # TensorRT-RTX alone has these
    target.num_compute_capabilities = len(kinds)
    for index, kind in enumerate(kinds):
        target.set_compute_capability(kind, index)


def _add_profile(
    builder: trt.Builder,
    config: trt.IBuilderConfig,
    network: trt.INetworkDefinition,
    profile: Profile,
) -> None:
    added = builder.create_optimization_profile()
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        limits = profile.get(tensor.name)
        if limits is None:
            continue
        if tensor.is_shape_tensor:
            added.set_shape_input(tensor.name, list(limits.min), list(limits.opt), list(limits.max))
        else:
            shapes: Any = (limits.min, limits.opt, limits.max)  # tuples become Dims
            added.set_shape(tensor.name, *shapes)
    if config.add_optimization_profile(added) < 0:
        names = ", ".join(clip(visible(name), 40) for name in profile)
        raise UsageError(f"the library rejects the optimization profile of {names}")


_PERIOD_S = 0.1
_STOP_S = 60.0
"""How long a build may take from one step to the next when it is asked to stop."""
_CHUNK = 16 << 20


class BuildStage(Enum):
    """A step of a build, as people see it."""

    STARTING = "Starting TensorRT"
    PARSING = "Parsing the model"
    CONFIGURING = "Configuring the build"
    BUILDING = "Building the engine"


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
    device: PlainValues = field(default_factory=dict)
    """What is known of the GPU; empty without one."""
    remarks: list[str] = field(default_factory=list)
    """What was done otherwise than asked. Fit for a terminal."""
    warnings: int = 0
    tail: list[str] = field(default_factory=list)
    """The end of the log."""
    stages: list[Stage] = field(default_factory=list)
    """What the time went to. Names of the library's phases are untrusted text."""
    retyping: dict[str, JSON] | None = None
    """What the casts are that a strongly typed network got for the precisions of layers."""


def build(
    library: Library,
    document: Document,
    settings: BuildSettings,
    profiles: Sequence[Profile],
    engine: Path,
    log: Path | None = None,
    selection: TacticSelection | None = None,
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
        self._stage = ""
        self._began: list[tuple[BuildStage, float]] = []
        """The stages, and when each began."""
        self._enter(BuildStage.STARTING)
        self._host: trt.IHostMemory | None = None
        self.selection: TacticSelection | None = None
        self.prepare: Callable[[Network], None] | None = None
        self._error: BaseException | None = None
        strong = is_strong(settings, library.capabilities)
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
            self._built.stages = self._stages(began)
            if self._host is None:
                raise self._failure()
            yield Progress(0, None, stage="Writing the engine")
            pieces = _Chunks(self._host)
            self._built.path = permission.place(self._built.path)
            write_pieces(self._built.path, pieces)
            self._built.bytes = len(pieces.view)
        while (event := self._next()) is not None:  # what closing the log says
            yield event
        self._built.warnings = self._log.warnings
        self._built.tail = list(self._log.tail)
        return self._built

    def _enter(self, stage: BuildStage) -> None:
        self._stage = stage.value
        self._began.append((stage, monotonic()))

    def _stages(self, began: float) -> list[Stage]:
        """Return the stages with the phases of the library inside the last; they add up."""
        ended = began + self._built.seconds
        begins = [began, *(at for _, at in self._began[1:]), ended]
        times = [
            (stage.value, end - begin)
            for (stage, _), begin, end in zip(self._began, begins, begins[1:], strict=False)
        ]
        phases = self._phases.durations()
        if self._began[-1][0] is BuildStage.BUILDING and phases:
            rest = times[-1][1] - sum(took for _, took in phases)
            if rest >= 0:
                times[-1:] = [*phases, ("Building, outside these phases", rest)]
        return [Stage(name, round(1000 * took, 3)) for name, took in times]

    def _retype(self, stack: contextlib.ExitStack) -> Document:
        """Return a copy of the model whose casts give the layers their precisions."""
        from dld_tui.core.conversion.retyping import retyped

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
        with self._on_device() as cuda:
            builder = builder_for(log, library, str(self._document.path))
            load_plugins(library, builder, builder.logger, settings.all_plugins)
            self._enter(BuildStage.PARSING)
            network = parse(builder, path, self._document, settings, library, log)
            if not network.strong:
                set_precisions(network, wanted, settings)
            if self.prepare is not None:
                self.prepare(network)
            self._enter(BuildStage.CONFIGURING)
            config = configure(builder, network, settings, self._profiles, library)
            calibrator = self._calibrator(config, network, cuda)
            selection = self.selection or selection_for(settings)
            selector = None if selection is None else selector_of(selection)
            if selector is not None:
                config.algorithm_selector = selector
            timing = tactics.attach(config, settings, library, self._device_name())
            if "IBuilderConfig.progress_monitor" in library.capabilities.has:
                config.progress_monitor = monitor_of(self._phases)
            for remark in network.remarks:
                log.note(remark, NoteKind.WARNING)
            self._built.remarks += network.remarks
            self._enter(BuildStage.BUILDING)
            if not self._phases.stopped.is_set():
                host = builder.build_serialized_network(network.network, config)
                if selection is not None:
                    self._built.remarks += conclude(selection, settings, host is not None)
                self._host = host
            del calibrator, selector
            if timing is not None and self._host is not None:
                problem = tactics.save(timing, config, settings, library)
                if problem:
                    log.note(problem, NoteKind.WARNING)
                    self._built.remarks.append(problem)
                self._built.timing_cache = dict(timing.description())

    @contextlib.contextmanager
    def _on_device(self) -> Iterator[Cuda | None]:
        """Make the chosen GPU the one of this thread, where there is one."""
        settings, capabilities = self._settings, self._library.capabilities
        if capabilities.no_driver:
            if settings.device != "0":
                raise UnavailableError(
                    f"there is no device {settings.device}: {capabilities.no_driver}"
                )
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
            self._built.device = cuda.environment()
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
                f"{self._library.capabilities.title} does not calibrate: it takes the types of the"
                " model",
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
        error = build_error(list(self._log.errors), where, self._library.capabilities.title)
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
        if not 0 <= index < len(self):
            raise IndexError(index)
        return bytes(self.view[index * _CHUNK : (index + 1) * _CHUNK])
