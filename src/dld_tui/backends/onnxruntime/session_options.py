"""Settings of sessions of ONNX Runtime: their options, and the options of execution providers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.backends.onnxruntime.runtime import (
    CUDA_PROVIDERS,
    SUFFIX,
    WARNING,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    InputError,
    UsageError,
)
from dld_tui.core.machine.environment import usable_threads
from dld_tui.core.params import put_once
from dld_tui.core.text import visible

if TYPE_CHECKING:
    pass

_WITH_DEVICE_ID = (*CUDA_PROVIDERS, "ROCM", "MIGraphX", "Dml", "CANN")
_MEMORY = {**dict.fromkeys(CUDA_PROVIDERS, "cuda"), "Dml": "dml", "CANN": "cann"}
_GRAPH_OPTIONS = ("enable_cuda_graph", "trt_cuda_graph_enable", "nv_cuda_graph_enable")
"""Of the providers CUDA, TensorRT and TensorRT-RTX."""
_THREADS = "session.intra_op"
_SPINNING = "session.intra_op.allow_spinning"
_STOP_SPINNING = "session.force_spinning_stop"
"""At the end of a pass."""


@dataclass(frozen=True)
class SessionSettings:
    """The settings of a session."""

    providers: tuple[str, ...] = ("CPU",)
    """Short names, in order of preference."""
    provider_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By short name."""
    device_id: int = 0
    threads: int = 0
    """Threads within an operator; 0 lets ONNX Runtime choose."""
    inter_threads: int = 0
    """Operators that run in parallel; above 1, the parallel executor is used."""
    execution_mode: str = "auto"
    optimization_level: str = "all"
    dimensions: Mapping[str, int] = field(default_factory=dict)
    """Sizes of dynamic dimensions by name; ONNX Runtime optimizes the model for them."""
    custom_operators: tuple[Path, ...] = ()
    """Libraries of custom operators."""
    provider_libraries: tuple[Path, ...] = ()
    """Libraries of plug-in execution providers."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Further configuration entries of the session, as ONNX Runtime names them."""
    profile_prefix: Path | None = None
    """Where to write ONNX Runtime's own profile; None disables profiling."""
    optimized_path: Path | None = None
    """Where to write the optimized model; None does not write it."""
    optimized_weights: str = "none"
    """Where the optimized model has its weights: ``inside``, ``beside`` it in a data file, or
    ``none``, which takes neither time nor disk space."""
    quiet: bool = False
    """Log errors only."""
    verbose: bool = False
    """Log everything."""
    reuse_memory: bool = True
    """Whether a tensor may reuse the memory of one that is no longer needed."""
    memory_arena: bool = True
    """Whether CPU memory is kept between runs."""
    memory_pattern: bool = True
    """Whether memory is allocated as one block when the shapes of a run occurred before."""
    left_out: tuple[str, ...] = ()
    """Disabled optimizations, by ONNX Runtime's names."""

    @property
    def memory(self) -> str:
        """ONNX Runtime's name for the memory of the preferred provider, e.g. ``cuda``."""
        return _MEMORY.get(self.providers[0], "cpu") if self.providers else "cpu"

    @property
    def uses_cuda(self) -> bool:
        """Whether the preferred provider works on a CUDA device."""
        return self.providers[:1] != () and self.providers[0] in CUDA_PROVIDERS

    @property
    def parallel(self) -> bool:
        """Whether operators may run in parallel."""
        asked = self.execution_mode == "parallel"
        return asked or (self.execution_mode == "auto" and self.inter_threads > 1)

    @property
    def cuda_graph(self) -> bool:
        """Whether a provider captures the model as a CUDA graph and replays that."""
        return any(
            options.get(name, "").strip().lower() in ("1", "true")
            for options in self.provider_options.values()
            for name in _GRAPH_OPTIONS
        )

    @property
    def least_warm_up(self) -> int:
        """The least number of passes before the timed ones: some capture a CUDA graph."""
        return 3 if self.cuda_graph else 1

    def without_graph(self) -> SessionSettings:
        """Return these settings with CUDA graphs disabled."""
        plain = {
            provider: {name: value for name, value in options.items() if name not in _GRAPH_OPTIONS}
            for provider, options in self.provider_options.items()
        }
        return replace(self, provider_options=plain)

    def sleeping_between_passes(self) -> SessionSettings:
        """Return the same settings, with threads that stop spinning when a pass ends."""
        return replace(self, config={_STOP_SPINNING: "1", **self.config})


def processor_times_compare(settings: SessionSettings, other: SessionSettings) -> bool:
    """Return whether the processor time of the calling thread tells which session is faster.

    On the CPU, the calling thread computes or spins until a pass ends. It waits for other threads
    where operators run in parallel, where there are more threads than processors, or where threads
    do not spin. With different numbers of threads, its share of the work differs.
    """
    alike = settings.threads == other.threads and settings.threads <= usable_threads()
    return alike and all(
        side.providers == ("CPU",)
        and not side.parallel
        and (side.threads == 1 or side.config.get(_SPINNING, "1") == "1")
        and not any(name.startswith(_THREADS) and name != _SPINNING for name in side.config)
        for side in (settings, other)
    )


def spins(*settings: SessionSettings) -> bool:
    """Return whether the threads of a session keep spinning after a pass."""
    return any(
        (side.threads or usable_threads()) > 1
        and side.config.get(_SPINNING, "1") == "1"
        and side.config.get(_STOP_SPINNING, "0") == "0"
        for side in settings
    )


def session_options(runtime: Any, settings: SessionSettings) -> Any:
    """Return the ``SessionOptions``.

    Raises:
        InputError: A library of custom operators cannot be loaded.
        UsageError: ONNX Runtime rejects a configuration entry.
    """
    options = runtime.SessionOptions()
    options.log_severity_level = 0 if settings.verbose else WARNING + settings.quiet
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = settings.inter_threads
    if settings.parallel:
        options.execution_mode = runtime.ExecutionMode.ORT_PARALLEL
    level = _LEVELS[settings.optimization_level]
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    options.enable_mem_reuse = settings.reuse_memory
    options.enable_cpu_mem_arena = settings.memory_arena
    options.enable_mem_pattern = settings.memory_pattern
    for name, size in settings.dimensions.items():
        options.add_free_dimension_override_by_name(name, size)
    for library in settings.custom_operators:
        _register(options, library)
    for key, value in settings.config.items():
        _configure(options, key, value)
    if settings.profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(settings.profile_prefix)
    if settings.optimized_path is not None:
        _save_optimized(options, settings.optimized_path, settings.optimized_weights)
    return options


def _register(options: Any, library: Path) -> None:
    if not library.is_file():
        raise InputError("the library of custom operators does not exist", where=str(library))
    try:
        options.register_custom_ops_library(str(library.absolute()))
    # The seam: ONNX Runtime's errors share no base class.
    except Exception as error:
        reason = visible(str(error))[:300]
        raise InputError(
            f"is not a library of custom operators for this ONNX Runtime: {reason}",
            where=str(library),
        ) from error


def _configure(options: Any, key: str, value: str) -> None:
    try:
        options.add_session_config_entry(key, value)
    # The seam, as above.
    except Exception as error:
        raise UsageError(f"--session-config {key}={value}: {visible(str(error))[:300]}") from error


def _save_optimized(options: Any, path: Path, weights: str) -> None:
    options.optimized_model_filepath = str(path.absolute())
    if weights == "inside":
        return
    data = path.with_name(f"{path.stem}.weights")
    if weights == "none":
        data.symlink_to(os.devnull)
    prefix = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{prefix}_file_name", data.name)
    options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")


def provider_list(names: Sequence[str], settings: SessionSettings) -> list[Any]:
    """Return the providers with their options, as a session takes them."""
    entries: list[Any] = []
    for name in names:
        device = {"device_id": str(settings.device_id)} if name in _WITH_DEVICE_ID else {}
        options = {**device, **settings.provider_options.get(name, {})}
        entries.append((name + SUFFIX, options) if options else name + SUFFIX)
    return entries


_LEVELS = {
    "disabled": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC", "extended": "ORT_ENABLE_EXTENDED",
    "layout": "ORT_ENABLE_LAYOUT", "all": "ORT_ENABLE_ALL",
}  # fmt: skip
"""ONNX Runtime's names of the optimization levels."""
_GENAI_LEVELS = {name: level for level, name in _LEVELS.items()}
_GENAI_SWITCHES = {"enable_cpu_mem_arena": "memory_arena", "enable_mem_pattern": "memory_pattern"}
_GENAI_THREADS = {"intra_op_num_threads": "threads", "inter_op_num_threads": "inter_threads"}
_MOST_THREADS = 1024
"""The file is foreign, and a session starts as many threads as it says."""


def with_genai_options(
    settings: SessionSettings, options: Mapping[str, bool | int | str]
) -> tuple[SessionSettings, dict[str, bool | int | str]]:
    """Add the session options of a ``genai_config.json``; return also those that were applied.

    Settings that the user made are kept. The file is foreign: entries that name files are ignored,
    and no library is loaded.

    Args:
        settings: Of the user.
        options: ``session_options`` of the decoder.
    """
    changes: dict[str, Any] = {}
    config, applied = dict(settings.config), dict[str, bool | int | str]()
    for name, value in options.items():
        threads, switch = _GENAI_THREADS.get(name), _GENAI_SWITCHES.get(name)
        if threads and _is_thread_count(value) and not getattr(settings, threads):
            changes[threads] = value
            if threads == "inter_threads" and settings.execution_mode == "auto":
                changes["execution_mode"] = "sequential"  # onnxruntime-genai sets no mode
        elif name == "graph_optimization_level" and value in _GENAI_LEVELS:
            changes["optimization_level"] = _GENAI_LEVELS[str(value)]
        elif switch and isinstance(value, bool):
            changes[switch] = value
        elif _is_harmless(name) and isinstance(value, str) and name not in config:
            config[name] = value
        else:
            continue
        applied[name] = value
    return replace(settings, **changes, config=config), applied


def _is_thread_count(value: bool | int | str) -> bool:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return is_number and 0 <= int(value) <= _MOST_THREADS


def _is_harmless(entry: str) -> bool:
    return entry.startswith("session.") and not any(
        word in entry for word in ("file", "path", "folder", "model", "external")
    )


def parse_pairs(texts: Sequence[str], flag: str) -> dict[str, str]:
    """Return ``KEY=VALUE`` texts as a dictionary; values may hold ``=`` and commas.

    Raises:
        UsageError: One has no ``=`` or no key.
    """
    entries: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{flag} is {text!r}", hint=f"Write {flag} KEY=VALUE")
        put_once(entries, key.strip(), value.strip(), flag)
    return entries


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Return ``NAME=SIZE`` texts, several of them separated by commas, as sizes by name.

    Raises:
        UsageError: A text is not of this form.
    """
    parts = [part for text in texts for part in text.split(",") if part.strip()]
    sizes = {}
    for name, size in parse_pairs(parts, "--dim").items():
        if not size.isdecimal() or not 0 < int(size) < 2**31:
            raise UsageError(f"--dim {name}={size} is not a size", hint="Write --dim N=1")
        sizes[name] = int(size)
    return sizes


def options_by_provider(texts: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return options by provider: ``KEY=VALUE`` is for the first, ``NAME.KEY=VALUE`` for NAME.

    Raises:
        UsageError: A text is not ``KEY=VALUE``.
    """
    by_provider: dict[str, dict[str, str]] = {}
    for key, value in parse_pairs(texts, "--provider-option").items():
        prefix, dot, rest = key.partition(".")
        wanted = prefix.removesuffix(SUFFIX).lower()
        owner = next((name for name in names if dot and name.lower() == wanted), None)
        name, option = (names[0], key) if owner is None else (owner, rest)
        by_provider.setdefault(name, {})[option] = value
    return by_provider
