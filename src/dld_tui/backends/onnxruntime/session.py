"""ONNX Runtime's sessions. Only this room imports it; versions 1.23 to 1.31 work.

Its errors come out as :class:`DldError`, with the node named where its text names one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import os
import re
import tempfile
import time
from array import array
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from dld_tui.backends.onnxruntime.denormals import denormals_of
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    SaveError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.inputs.shapes import AnyArray, InputSpec, is_extended
from dld_tui.core.machine.environment import usable_threads
from dld_tui.core.machine.jetson import lacks_gpu_wheels
from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.text import visible

_INPUT_FAULTS = ("InvalidProtobuf", "NoSuchFile", "NoModel")
_LONGEST = 8_000
"""Texts may hold names of any length; what is looked at is bounded, so that the search is, too."""
_OP = r"(?P<op>[^\s\"'(),]{1,200})"
_NODE_PATTERNS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        rf"while running {_OP} node\. Name:'(?P<node>.*?)' Status Message: (?P<why>.*)",
        rf'In Node, \("(?P<node>.*?)", {_OP}, "[^"]*", -?\d+\) : .*, Error (?P<why>.*)',
        rf"(?P<why>Could not find an implementation for {_OP}\(\d+\)"
        r" node with name '(?P<node>.*)')",
        rf"Node \((?P<node>.*?)\) Op \({_OP}\) (?P<why>.*)",
        rf"(?P<why>Type '[^']*' of (?:input|output) .*? of operator \({_OP}\)"
        r" in node \((?P<node>.*)\) is .*)",
        rf"(?P<why>Type parameter \(\w+\) of Optype \({_OP}\) bound to different types .*?)"
        r" in node \((?P<node>.*)\)",
        rf"(?<!\S)(?P<why>{_OP}\(-?\d+\) is not a registered function/op)",
    )
)
_GPU_FAULTS = (
    "unspecified launch failure",
    "illegal memory access",
    "CUDA failure 46:",
    "CUDA failure 100:",
    "CUDA failure 214:",
    "CUDA failure 719:",
    "devices are busy or unavailable",
    "uncorrectable ECC error",
    "GPU is lost",
)
"""What ONNX Runtime passes on of CUDA when the device fails in the middle of a run."""
_PREFIX = re.compile(
    r"^\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : "
    r"|Load model from .*? failed: ?"
    r"|This is an invalid model\. (?:Type Error: |Error: )?"
    r"|Exception during (?:initialization|loading): "
    r"|Fatal error: "
    r"|/\S*/onnxruntime/\S+\.(?:h|cc|cpp|cu):\d+ ",
    re.DOTALL,
)
_SIGNATURE = re.compile(
    r"^[\w:*&<>, ]+?\(.*?\)(?: const)? (?=\w+.*? was false\. |[A-Z])", re.DOTALL
)


def error_from(error: Exception, model: Path, doing: str, version: str) -> DldError:
    """Return the error to show for one that ONNX Runtime raised.

    Args:
        error: Of whatever class; its name tells an unreadable file from other faults.
        doing: ``load`` or ``run``.
        version: Of ONNX Runtime.
    """
    full = str(error).strip()[:_LONGEST]
    where, why = str(model), full
    for pattern in _NODE_PATTERNS:
        if match := pattern.search(full):
            groups = match.groupdict()
            why = groups["why"]
            node = f"node {groups['node']!r}" if groups.get("node") else "a node"
            where = f"{model}: {node} ({visible(groups['op'])})"
            break
    message = _short(why)
    details = f"{type(error).__name__}: {full}"
    if type(error).__name__ in _INPUT_FAULTS:
        return InputError(f"ONNX Runtime cannot read it: {message}", where=where, details=details)
    return ActivityError(
        f"ONNX Runtime {version} cannot {doing} it: {message}",
        where=where,
        hint=_hint(full),
        details=details,
    )


def _short(text: str, limit: int = 300) -> str:
    """Return the sentence without the parts that name source files and functions."""
    for _ in range(4):
        text = _PREFIX.sub("", text, count=1).strip()
    text = _SIGNATURE.sub("", text)
    text = visible(" ".join(text.split())).rstrip(". ")
    return text if len(text) <= limit else text[:limit] + "…"


def _hint(text: str) -> str | None:
    if "llocate memory" in text or "bad_alloc" in text:
        return "It needs more memory than there is"
    if any(sign in text for sign in _GPU_FAULTS):
        return "The GPU failed or is gone: look at nvidia-smi and at the kernel's log (dmesg)"
    if "No Op registered" in text or "not a registered function/op" in text:
        return "The operator is not part of ONNX Runtime; it may need a custom operator library"
    if "Could not find an implementation" in text:
        return "There is no kernel for these types on this provider"
    return None


SUFFIX = "ExecutionProvider"
CUDA_PROVIDERS = ("CUDA", "Tensorrt", "NvTensorRTRTX")
"""Those whose work CUPTI records and whose memory is that of CUDA."""

_WITH_DEVICE_ID = (*CUDA_PROVIDERS, "ROCM", "MIGraphX", "Dml", "CANN")
_MEMORY = {**dict.fromkeys(CUDA_PROVIDERS, "cuda"), "Dml": "dml", "CANN": "cann"}
_WARNING, _FATAL = 2, 4
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
    provider_libraries: tuple[Path, ...] = ()
    """Libraries with providers that ONNX Runtime does not have."""
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
    verbose: bool = False
    """Log all there is to say."""
    reuse_memory: bool = True
    """Whether a value may get the memory of one that is no longer needed."""
    memory_arena: bool = True
    """Whether memory of the processor is kept between runs."""
    memory_pattern: bool = True
    """Whether memory is taken at once where the shapes of a run were there before."""
    left_out: tuple[str, ...] = ()
    """Optimizations that are not made, by ONNX Runtime's names."""

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


def processor_times_compare(settings: SessionSettings, other: SessionSettings) -> bool:
    """Return whether processor times of the calling thread tell which of two is faster.

    On the CPU it computes or spins until a pass ends, and waits for nothing but a processor; it
    waits for others where operators run at once, where threads are more than processors, or do not
    spin. Where threads differ, it does another share of the work.
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
    """Return whether threads of a session go on spinning when a pass has ended."""
    return any(
        (side.threads or usable_threads()) > 1 and side.config.get(_SPINNING, "1") == "1"
        for side in settings
    )


_THREADS = "session.intra_op"
_SPINNING = "session.intra_op.allow_spinning"


def session_options(runtime: Any, settings: SessionSettings) -> Any:
    """Return the ``SessionOptions``.

    Raises:
        InputError: A library of operators cannot be loaded.
        UsageError: A configuration entry is refused.
    """
    options = runtime.SessionOptions()
    options.log_severity_level = 0 if settings.verbose else _WARNING + settings.quiet
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


_GENAI_LEVELS = {
    "ORT_DISABLE_ALL": "disabled", "ORT_ENABLE_BASIC": "basic", "ORT_ENABLE_EXTENDED": "extended",
    "ORT_ENABLE_LAYOUT": "layout", "ORT_ENABLE_ALL": "all",
}  # fmt: skip


def with_genai_options(
    settings: SessionSettings, options: Mapping[str, bool | int | str]
) -> tuple[SessionSettings, dict[str, bool | int | str]]:
    """Return settings with what ``genai_config.json`` says of the session, and what was taken.

    What the settings say themselves holds. Of entries for ONNX Runtime those that name files are
    left out, and libraries are not loaded: the file is foreign.

    Args:
        settings: Of the user.
        options: ``session_options`` of the decoder.
    """
    changes: dict[str, Any] = {}
    config, taken = dict(settings.config), dict[str, bool | int | str]()
    for name, value in options.items():
        is_count = isinstance(value, int) and not isinstance(value, bool)
        is_count = is_count and 0 <= int(value) <= _MOST_THREADS
        if name == "intra_op_num_threads" and is_count and not settings.threads:
            changes["threads"] = value
        elif name == "inter_op_num_threads" and is_count and not settings.inter_threads:
            changes["inter_threads"] = value
            if settings.execution_mode == "auto":  # onnxruntime-genai sets no mode
                changes["execution_mode"] = "sequential"
        elif name == "graph_optimization_level" and value in _GENAI_LEVELS:
            changes["optimization_level"] = _GENAI_LEVELS[str(value)]
        elif name == "enable_cpu_mem_arena" and isinstance(value, bool):
            changes["memory_arena"] = value
        elif name == "enable_mem_pattern" and isinstance(value, bool):
            changes["memory_pattern"] = value
        elif _is_harmless(name) and isinstance(value, str) and name not in config:
            config[name] = value
        else:
            continue
        taken[name] = value
    return replace(settings, **changes, config=config), taken


_MOST_THREADS = 1024
"""Of a foreign file: so many are made at once."""


def _is_harmless(entry: str) -> bool:
    return entry.startswith("session.") and not any(
        word in entry for word in ("file", "path", "folder", "model", "external")
    )


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
    entries: list[Any] = []
    for name in names:
        device = {"device_id": str(settings.device_id)} if name in _WITH_DEVICE_ID else {}
        options = {**device, **settings.provider_options.get(name, {})}
        entries.append((name + SUFFIX, options) if options else name + SUFFIX)
    return entries


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
        entries[key.strip()] = value.strip()
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
    """Return provider options by provider: of the first one, or of ``NAME.KEY=VALUE``'s.

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


_UNREADABLE = ("tensor(bfloat16)",)
"""Types of outputs that ONNX Runtime cannot make arrays of."""
_COPY_PASSES = 20


@dataclass(frozen=True)
class Copies:
    """What it takes to bring one set of inputs to the device and its outputs back."""

    inputs_ms: float
    outputs_ms: float
    input_bytes: int
    output_bytes: int


class BoundFeed:
    """One set of inputs on the device, and the outputs bound to it.

    Args:
        runtime: The module of ONNX Runtime.
        session: Its ``InferenceSession``.
        feed: The inputs, as ``session.run`` takes them.
        device: The memory's name and the device's number, e.g. ``("cuda", 0)``.

    Raises:
        ActivityError: An input is not a tensor.
    """

    def __init__(
        self, runtime: Any, session: Any, feed: dict[str, Any], device: tuple[str, int]
    ) -> None:
        self.on_host: list[str] = []
        """Inputs that are not put on the device: text, and types that NumPy lacks."""
        self.binding = session.io_binding()
        self._is_readable = _is_readable(session)
        self._moved: dict[str, tuple[Any, Any]] = {}
        memory, number = device
        for name, value in feed.items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                there = runtime.OrtValue.ortvalue_from_numpy(value, memory, number)
                self._moved[name] = (there, value)
                self.binding.bind_ortvalue_input(name, there)
            elif isinstance(value, np.ndarray):
                self._bind_on_host(name, value)
            elif isinstance(value, list):
                raise ActivityError(
                    f"input {visible(name)} is a sequence, which cannot be bound to a device",
                    hint="Measure it without --io-binding",
                )
            else:  # a value of ONNX Runtime, of a type that NumPy lacks
                self.on_host.append(name)
                self.binding.bind_ortvalue_input(name, value)
        for argument in session.get_outputs():
            self.binding.bind_output(argument.name, memory, number)
        self.binding.synchronize_inputs()

    def _bind_on_host(self, name: str, value: Any) -> None:
        self.on_host.append(name)
        self.binding.bind_cpu_input(name, value)

    def fill(self, feed: dict[str, Any]) -> None:
        """Put other values of the same shapes where the inputs are, as a CUDA graph needs it."""
        for name, (there, _) in self._moved.items():
            there.update_inplace(feed[name])
        self.binding.synchronize_inputs()

    def outputs(self) -> list[Any]:
        """Return what the last run made, on the host; of types that NumPy has."""
        self.binding.synchronize_outputs()
        return list(self.binding.copy_outputs_to_cpu())

    def time_copies(self, passes: int = _COPY_PASSES) -> Copies:
        """Time the copies; call it after a run, which makes the outputs.

        Outputs that NumPy has no type for are left out.
        """
        outputs: list[Any] = []

        def bring() -> None:
            for there, value in self._moved.values():
                there.update_inplace(value)
            self.binding.synchronize_inputs()

        def fetch() -> None:
            if self._is_readable:
                outputs[:] = self.binding.copy_outputs_to_cpu()
                return
            values = self.binding.get_outputs()
            outputs[:] = [
                output.numpy() for output in values if output.data_type() not in _UNREADABLE
            ]

        inputs_ms, outputs_ms = _median_ms(bring, passes), _median_ms(fetch, passes)
        sizes = [int(output.nbytes) for output in outputs if isinstance(output, np.ndarray)]
        moved = sum(int(value.nbytes) for _, value in self._moved.values())
        return Copies(inputs_ms, outputs_ms, moved, sum(sizes))


def _is_readable(session: Any) -> bool:
    return not any(argument.type in _UNREADABLE for argument in session.get_outputs())


def _median_ms(call: Callable[[], None], passes: int) -> float:
    times = []
    for _ in range(passes):
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return sorted(times)[passes // 2] / 1e6


Feed: TypeAlias = "dict[str, Any]"
"""What a session takes: arrays, lists of arrays, and its own values for types that NumPy lacks."""

_INSTALL = "Install it with: pip install 'dld-tui[cpu]'"
_INSTALL_GPU = "Install it with: pip install 'dld-tui[gpu]' (in place of onnxruntime)"
_INSTALL_JETPACK_6 = "Install NVIDIA's build for JetPack 6, as docs/install.md says"


@functools.cache
def load() -> Any:
    """Import ONNX Runtime and return its module.

    Raises:
        UnavailableError: It is not installed, or its libraries cannot be loaded.
    """
    try:
        module = importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        if error.name == "onnxruntime":
            raise UnavailableError("ONNX Runtime is not installed", hint=_INSTALL) from None
        raise UnavailableError(f"ONNX Runtime cannot be loaded: {error}", hint=_INSTALL) from error
    except (ImportError, OSError) as error:
        raise UnavailableError(f"ONNX Runtime cannot be loaded: {error}", hint=_INSTALL) from error
    module.disable_telemetry_events()
    module.set_default_logger_severity(_WARNING)
    return module


def version() -> str:
    """Return its version, e.g. ``1.31.1``."""
    return str(load().__version__)


def newest_opset() -> int:
    """Return the newest version of ai.onnx that both onnx and the installed ONNX Runtime know.

    Raises:
        UnavailableError: ONNX Runtime is missing.
    """
    import onnx
    from onnx import helper

    runtime = load()
    options = runtime.SessionOptions()
    options.log_severity_level = _FATAL
    value = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1])
    graph = helper.make_graph([], "newest", [value], [value])
    for version in range(onnx.defs.onnx_opset_version(), 1, -1):
        imports = [helper.make_opsetid("", version)]
        model = helper.make_model(graph, opset_imports=imports)
        model.ir_version = helper.find_min_ir_version_for(imports)
        with contextlib.suppress(Exception):  # ONNX Runtime's errors have no common class
            runtime.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            return version
    raise AssertionError("ONNX Runtime loads no model")


def providers() -> list[str]:
    """Return the execution providers that are installed, by their short names, e.g. ``CPU``."""
    return [name.removesuffix(SUFFIX) for name in load().get_available_providers()]


def find_provider(name: str) -> str:
    """Return an installed provider by its short or full name, whatever its case, as its short name.

    Raises:
        UnavailableError: This ONNX Runtime does not have it.
    """
    wanted = name.removesuffix(SUFFIX).lower()
    installed = providers()
    for provider in installed:
        if provider.lower() == wanted:
            return provider
    hint = _INSTALL_JETPACK_6 if lacks_gpu_wheels() else _INSTALL_GPU
    raise UnavailableError(
        f"ONNX Runtime {version()} here has no {visible(name)} provider; it has"
        f" {', '.join(installed)}",
        hint=hint if wanted in ("cuda", "tensorrt") else None,
    )


class _Loading:
    """Since when sessions are being made, for who shows what a job waits for."""

    def __init__(self) -> None:
        self._since: list[float] = []

    @contextlib.contextmanager
    def noted(self) -> Generator[None]:
        """Note that one is being made for as long as the context lasts."""
        begin = time.monotonic()
        self._since.append(begin)
        try:
            yield
        finally:
            self._since.remove(begin)

    def seconds(self) -> float | None:
        """Return for how long the oldest one has been in the making; None where none is."""
        since = min(self._since, default=None)
        return None if since is None else time.monotonic() - since


_LOADING = _Loading()


def seconds_loading() -> float | None:
    """Return for how long ONNX Runtime has been making a session in this process, None for not."""
    return _LOADING.seconds()


class Session:
    """A model that is loaded and can be run.

    Args:
        model: The file; external data beside it is found.
        settings: See :class:`SessionSettings`.
        title: The file that errors name, where `model` is made for the session only.

    Raises:
        UnavailableError: A provider is not there or does not start.
        InputError: The file cannot be read as a model.
        ActivityError: ONNX Runtime cannot run the model; names the node where it does.
    """

    def __init__(self, model: Path, settings: SessionSettings, title: Path | None = None) -> None:
        from dld_tui.backends.onnxruntime import plugin_providers

        runtime = load()
        plugin_providers.register(settings.provider_libraries)
        names = [find_provider(name) for name in settings.providers]
        self._model, self._settings = title or model, settings
        if settings.uses_cuda:
            _load_cuda(runtime)
        options = session_options(runtime, settings)
        given = provider_list(names, settings)
        if settings.provider_libraries:
            own = {name: dict(settings.provider_options.get(name, {})) for name in names}
            plugin_providers.add_providers(options, names, settings.device_id, own)
            given = []
        with errors_of(self._model, "load"), _LOADING.noted(), self.denormals():
            self._session = runtime.InferenceSession(
                str(model), options, providers=given, disabled_optimizers=list(settings.left_out)
            )
        self.providers = [n.removesuffix(SUFFIX) for n in self._session.get_providers()]
        """Those in use, the preferred one first."""
        if names and names[0] not in self.providers:
            raise UnavailableError(
                f"the {names[0]} provider does not start; ONNX Runtime fell back to"
                f" {', '.join(self.providers)}",
                hint="The log says why",
            )
        self.inputs = [_spec(argument) for argument in self._session.get_inputs()]
        self._extended = {spec.name: spec.dtype for spec in self.inputs if is_extended(spec.dtype)}
        """Inputs of types that NumPy lacks."""
        self.outputs: list[str] = [argument.name for argument in self._session.get_outputs()]
        self.is_readable = _is_readable(self._session)
        """Whether NumPy has the types of all outputs, so that :meth:`run` can return them."""

    @property
    def device(self) -> tuple[str, int]:
        """The memory of the preferred provider and its number, as bindings take them."""
        memory = self._settings.memory
        return (memory, 0 if memory == "cpu" else self._settings.device_id)

    @property
    def inference(self) -> Any:
        """The ``InferenceSession`` itself, for loops that bind memory step by step."""
        return self._session

    def denormals(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which this session is run; see :func:`.denormals.denormals_of`."""
        return denormals_of(self._settings.config)

    def feed(self, values: Mapping[str, AnyArray | Sequence[AnyArray]]) -> Feed:
        """Return the values in the form that :attr:`call` takes."""
        if not self._extended:
            return dict(values)
        return {name: _fed(value, self._extended.get(name)) for name, value in values.items()}

    def timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        """Return the loop that times runs with one feed after another, round and round.

        Its calls are as bare as can be: all outputs, and errors as ONNX Runtime raises them. What
        NumPy has no type for stays with ONNX Runtime.
        """
        return self._in_its_mode(
            self._read_timer(feeds) if self.is_readable else self._unread_timer(feeds)
        )

    def _in_its_mode(self, timer: TimeCalls) -> TimeCalls:
        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            with self.denormals():
                return timer(first, durations, most, until)

        return time_calls

    def _read_timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            # Not `run = session.run`: Python calls a method that it looks up faster.
            session, clock, feed_count = self._session, time.perf_counter_ns, len(feeds)
            for slot in range(most):
                feed = feeds[(first + slot) % feed_count]
                begin = clock()
                session.run(None, feed)
                end = clock()
                durations[slot] = end - begin
                if end >= until:
                    return slot + 1
            return most

        return time_calls

    def _unread_timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        values = [self._as_values(feed) for feed in feeds]

        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            session, clock, feed_count = self._session, time.perf_counter_ns, len(values)
            for slot in range(most):
                feed = values[(first + slot) % feed_count]
                begin = clock()
                session.run_with_ort_values(None, feed)
                end = clock()
                durations[slot] = end - begin
                if end >= until:
                    return slot + 1
            return most

        return time_calls

    @staticmethod
    def _as_values(feed: Feed) -> dict[str, Any]:
        runtime = load()
        return {
            name: value
            if isinstance(value, runtime.OrtValue)
            else runtime.OrtValue.ortvalue_from_numpy(value)
            for name, value in feed.items()
        }

    def bind(self, feeds: Sequence[Feed]) -> list[BoundFeed]:
        """Put feeds into the memory of the preferred provider; see :class:`BoundFeed`.

        Raises:
            ActivityError: An input is not a tensor, or there is no room.
        """
        with errors_of(self._model, "run"):
            return [BoundFeed(load(), self._session, feed, self.device) for feed in feeds]

    def bound_timer(self, feeds: Sequence[BoundFeed]) -> TimeCalls:
        """Return the loop that times runs with feeds that are on the device."""
        bindings = [feed.binding for feed in feeds]

        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            session, clock, count = self._session, time.perf_counter_ns, len(bindings)
            for slot in range(most):
                binding = bindings[(first + slot) % count]
                begin = clock()
                session.run_with_iobinding(binding)
                end = clock()
                durations[slot] = end - begin
                if end >= until:
                    return slot + 1
            return most

        return self._in_its_mode(time_calls)

    def run(self, feed: Feed) -> list[Any]:
        """Run once and return the outputs.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = _run_options()
        with errors_of(self._model, "run"), self.denormals():
            return list(self._session.run(None, feed, options))

    def run_unread(self, feed: Feed) -> None:
        """Run once on tensors and drop the outputs, whose types NumPy may lack.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = _run_options()
        with errors_of(self._model, "run"), self.denormals():
            if has_text(feed):
                self._session.run(None, feed, options)
            else:
                self._session.run_with_ort_values(None, self._as_values(feed), options)

    def try_once(self, feed: Feed) -> None:
        """Run once, whatever the types of inputs and outputs, and drop what comes out.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        if self.is_readable:
            self.run(feed)
        else:
            self.run_unread(feed)

    def run_bound(self, feed: BoundFeed) -> None:
        """Run once with a feed that is on the device.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = _run_options()
        with errors_of(self._model, "run"), self.denormals():
            self._session.run_with_iobinding(feed.binding, options)

    def assigned(self) -> list[tuple[str, str, str]] | None:
        """Return provider, name and operator of each node, as they were given out before a run.

        None where this version does not tell (before 1.24). The session must have been made with
        ``session.record_ep_graph_assignment_info``.
        """
        ask = getattr(self._session, "get_provider_graph_assignment_info", None)
        if ask is None:
            return None
        return [
            (str(part.ep_name).removesuffix(SUFFIX), str(node.name), str(node.op_type))
            for part in ask()
            for node in part.get_nodes()
        ]

    def profiling_start_ns(self) -> int:
        """Return when profiling began: the zero of its times, in nanoseconds of the Unix epoch."""
        return int(self._session.get_profiling_start_time_ns())

    def end_profiling(self) -> Path:
        """Stop profiling and return the file that was written."""
        return Path(self._session.end_profiling())


def _run_options() -> Any:
    options = load().RunOptions()
    options.log_severity_level = _FATAL  # what it logs of an error, it raises, too
    return options


def has_text(feed: Feed) -> bool:
    """Return whether there are strings, of which ONNX Runtime makes no values of its own."""
    kinds = (getattr(getattr(value, "dtype", None), "kind", None) for value in feed.values())
    return any(kind in ("O", "U", "S") for kind in kinds)


def _load_cuda(runtime: Any) -> None:
    """Load the libraries of CUDA that come as packages, where the loader does not look for them."""
    preload = getattr(runtime, "preload_dlls", None)  # since 1.21
    if preload is not None:
        with contextlib.redirect_stdout(io.StringIO()):  # it prints what it does not find
            preload()


_TYPE = re.compile(r"(?:(seq|optional|sparse_tensor|map)\()?(?:tensor\((\w+)\)|(.*?))\)?$")
_CONTAINERS = {"seq": "sequence", "sparse_tensor": "sparse", "optional": "optional", "map": "map"}
_DTYPES = {"float": "float32", "double": "float64"}


def _spec(argument: Any) -> InputSpec:
    match = _TYPE.match(argument.type)
    container, dtype, other = match.groups() if match else ("", None, argument.type)
    if dtype is None:
        return InputSpec(argument.name, other or "?", None, _CONTAINERS.get(container, "other"))
    dims = tuple(dim if isinstance(dim, (int, str)) else None for dim in argument.shape)
    return InputSpec(argument.name, _DTYPES.get(dtype, dtype), dims, _CONTAINERS.get(container, ""))


def _fed(value: AnyArray | Sequence[AnyArray], dtype: str | None) -> Any:
    if dtype is None:
        return value
    from onnx import TensorProto

    array = np.asarray(value)
    number = TensorProto.DataType.Value(dtype.upper())
    as_bytes = array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    return load().OrtValue.ortvalue_from_numpy_with_onnx_type(as_bytes, number)


@contextlib.contextmanager
def errors_of(model: Path, doing: str) -> Generator[None]:
    """Turn what ONNX Runtime raises into a DldError; `doing` is ``load`` or ``run``.

    Raises:
        InputError: The file cannot be read as a model.
        ActivityError: Anything else that it said.
    """
    try:
        yield
    except (DldError, MemoryError):
        raise
    # The seam: its errors share no base class, and some are plain RuntimeError or ValueError.
    except Exception as error:
        raise error_from(error, model, doing, version()) from error


_LARGEST_INSIDE = 1_500_000_000
"""A protobuf file ends at 2 GB; the optimised model may be larger than the given one."""


def save_optimized_model(
    model: Path, settings: SessionSettings, target: Path, weight_bytes: int
) -> None:
    """Write the optimised model to `target`, of a large one the weights to a file beside it.

    Args:
        model: The file to optimise.
        settings: Of the session that does it.
        target: Replaced if it exists.
        weight_bytes: Size of the model's initializers.

    Raises:
        ActivityError: ONNX Runtime cannot write what its providers made of the model.
        SaveError: The folder cannot be written.
    """
    weights = "beside" if weight_bytes > _LARGEST_INSIDE else "inside"
    try:
        with tempfile.TemporaryDirectory(prefix=".optimized-", dir=target.parent) as name:
            written = Path(name, target.name)
            saving = replace(
                settings,
                profile_prefix=None,
                optimized_path=written,
                optimized_weights=weights,
                quiet=True,
            )
            try:
                Session(model, saving)
            except InputError as error:  # the same model has been read before
                raise ActivityError(error.message, where=error.where) from error
            if not written.is_file():
                raise ActivityError("ONNX Runtime wrote no file")
            for path in sorted(Path(name).iterdir(), key=lambda path: path == written):
                os.replace(path, target.parent / path.name)
    except OSError as error:
        raise SaveError(f"cannot be written: {error.strerror}", where=str(target)) from error
