"""How a session of ONNX Runtime is made: its options, and those of its providers."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.text import visible

SUFFIX = "ExecutionProvider"
OPTIMIZATION_LEVELS = ("disabled", "basic", "extended", "layout", "all")
EXECUTION_MODES = ("auto", "sequential", "parallel")
CUDA_PROVIDERS = ("CUDA", "Tensorrt", "NvTensorRTRTX")
"""Those whose work CUPTI records and whose memory is that of CUDA."""

_WITH_DEVICE_ID = (*CUDA_PROVIDERS, "ROCM", "MIGraphX", "Dml", "CANN")
_MEMORY = {**dict.fromkeys(CUDA_PROVIDERS, "cuda"), "Dml": "dml", "CANN": "cann"}
_WARNING = 2
_GRAPH_OPTIONS = ("enable_cuda_graph", "trt_cuda_graph_enable", "nv_cuda_graph_enable")
"""Of the providers CUDA, TensorRT and TensorRT-RTX."""


@dataclass(frozen=True)
class SessionSettings:
    """How to make a session."""

    providers: tuple[str, ...] = ("CPU",)
    """Short names, the preferred one first."""
    provider_options: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """By short name."""
    device_id: int = 0
    threads: int = 0
    """Threads within an operator; 0 lets ONNX Runtime choose."""
    inter_threads: int = 0
    """Operators at once; above 1 the parallel executor is used."""
    execution_mode: str = "auto"
    optimization_level: str = "all"
    dimensions: Mapping[str, int] = field(default_factory=dict)
    """Sizes of free dimensions by their names; ONNX Runtime then optimises for them."""
    custom_operators: tuple[Path, ...] = ()
    """Libraries with operators that ONNX Runtime does not have."""
    config: Mapping[str, str] = field(default_factory=dict)
    """Further configuration entries of the session, as ONNX Runtime names them."""
    profile_prefix: Path | None = None
    """Where to write ONNX Runtime's own profile; None for no profiling."""
    optimized_path: Path | None = None
    """Where to write the optimised model; None for not at all."""
    optimized_weights: str = "none"
    """Where the optimised model has its weights: ``inside``, ``beside`` it in a file of its own, or
    ``none``, which takes no time and no room."""
    quiet: bool = False
    """Log errors only."""

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
        """Whether operators may run at once."""
        asked = self.execution_mode == "parallel"
        return asked or (self.execution_mode == "auto" and self.inter_threads > 1)

    @property
    def cuda_graph(self) -> bool:
        """Whether a provider captures the model as a CUDA graph and replays it."""
        return any(
            options.get(name, "").strip().lower() in ("1", "true")
            for options in self.provider_options.values()
            for name in _GRAPH_OPTIONS
        )

    @property
    def least_warm_up(self) -> int:
        """How many bound runs come before the timed ones at least: some capture a CUDA graph."""
        return 3 if self.cuda_graph else 1

    def without_graph(self) -> SessionSettings:
        """Return the same without CUDA graphs."""
        plain = {
            provider: {name: value for name, value in options.items() if name not in _GRAPH_OPTIONS}
            for provider, options in self.provider_options.items()
        }
        return replace(self, provider_options=plain)


def session_options(runtime: Any, settings: SessionSettings) -> Any:
    """Return the ``SessionOptions``.

    Raises:
        InputError: A library of operators cannot be loaded.
        UsageError: A configuration entry is refused.
    """
    options = runtime.SessionOptions()
    options.log_severity_level = _WARNING + settings.quiet
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = settings.inter_threads
    if settings.parallel:
        options.execution_mode = runtime.ExecutionMode.ORT_PARALLEL
    level = {
        "disabled": "ORT_DISABLE_ALL",
        "basic": "ORT_ENABLE_BASIC",
        "extended": "ORT_ENABLE_EXTENDED",
        "layout": "ORT_ENABLE_LAYOUT",
        "all": "ORT_ENABLE_ALL",
    }[settings.optimization_level]
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
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
        raise InputError("there is no such library of operators", where=str(library))
    try:
        options.register_custom_ops_library(str(library.absolute()))
    # The seam: ONNX Runtime's errors share no base class.
    except Exception as error:
        raise InputError(
            f"is not a library of operators for this ONNX Runtime: {visible(str(error))[:300]}",
            where=str(library),
        ) from error


def _configure(options: Any, key: str, value: str) -> None:
    try:
        options.add_session_config_entry(key, value)
    # The seam, as above.
    except Exception as error:
        raise UsageError(f"--session-config {key}={value}: {visible(str(error))[:300]}") from error


def _save_optimized(options: Any, path: Path, weights: str) -> None:
    options.optimized_model_filepath = str(path)
    if weights == "inside":
        return
    data = path.with_name(f"{path.stem}.weights")
    if weights == "none":
        data.symlink_to(os.devnull)
    prefix = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{prefix}_file_name", data.name)
    options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")


def provider_list(names: Sequence[str], settings: SessionSettings) -> list[Any]:
    """Return the providers with their options, in the form that a session takes."""
    made: list[Any] = []
    for name in names:
        device = {"device_id": str(settings.device_id)} if name in _WITH_DEVICE_ID else {}
        options = {**device, **settings.provider_options.get(name, {})}
        made.append((name + SUFFIX, options) if options else name + SUFFIX)
    return made


def parse_pairs(texts: Sequence[str], flag: str) -> dict[str, str]:
    """Return ``KEY=VALUE`` texts as a dictionary; values may hold ``=`` and commas.

    Raises:
        UsageError: One has no ``=`` or no key.
    """
    found: dict[str, str] = {}
    for text in texts:
        key, sign, value = text.partition("=")
        if not sign or not key.strip():
            raise UsageError(f"{flag} is {text!r}", hint=f"Write {flag} KEY=VALUE")
        found[key.strip()] = value.strip()
    return found


def parse_sizes(texts: Sequence[str]) -> dict[str, int]:
    """Return ``NAME=SIZE`` texts, several of them separated by commas, as sizes by name.

    Raises:
        UsageError: A text is not of this form.
    """
    parts = [part for text in texts for part in text.split(",") if part.strip()]
    found = {}
    for name, size in parse_pairs(parts, "--dim").items():
        if not size.isdecimal() or not 0 < int(size) < 2**31:
            raise UsageError(f"--dim {name}={size} is not a size", hint="Write --dim N=1")
        found[name] = int(size)
    return found


def options_by_provider(texts: Sequence[str], names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return provider options by provider: of the first one, or of ``NAME.KEY=VALUE``'s.

    Raises:
        UsageError: A text is not ``KEY=VALUE``.
    """
    found: dict[str, dict[str, str]] = {}
    for key, value in parse_pairs(texts, "--provider-option").items():
        prefix, dot, rest = key.partition(".")
        wanted = prefix.removesuffix(SUFFIX).lower()
        owner = next((name for name in names if dot and name.lower() == wanted), None)
        name, option = (names[0], key) if owner is None else (owner, rest)
        found.setdefault(name, {})[option] = value
    return found
