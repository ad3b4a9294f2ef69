"""ONNX Runtime: the only place that imports it. Works with versions 1.23 to 1.31.

Its errors come out as :class:`DldError`, with the node named where its text names one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import re
import time
from array import array
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.backends.onnxruntime_errors import error_from
from dld_tui.core.errors import DldError, UnavailableError
from dld_tui.core.inputs.dtypes import AnyArray, is_extended
from dld_tui.core.inputs.shapes import InputSpec
from dld_tui.core.latency import TimeCalls
from dld_tui.core.text import visible

Feed: TypeAlias = "dict[str, Any]"
"""What a session takes: arrays, lists of arrays, and its own values for types that NumPy lacks."""

OPTIMIZATION_LEVELS = ("disabled", "basic", "extended", "layout", "all")
_SUFFIX = "ExecutionProvider"
_WITH_DEVICE_ID = ("CUDA", "Tensorrt", "NvTensorRTRTX", "ROCM", "MIGraphX", "Dml", "CANN")
_INSTALL = "Install it with: pip install 'dld-tui[cpu]'"
_INSTALL_GPU = "Install it with: pip install 'dld-tui[gpu]' (in place of onnxruntime)"
_WARNING, _FATAL = 2, 4


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


def providers() -> list[str]:
    """Return the execution providers that are installed, by their short names, e.g. ``CPU``."""
    return [name.removesuffix(_SUFFIX) for name in load().get_available_providers()]


def find_provider(name: str) -> str:
    """Return an installed provider by its short or full name, whatever its case, as its short name.

    Raises:
        UnavailableError: This ONNX Runtime does not have it.
    """
    wanted = name.removesuffix(_SUFFIX).lower()
    installed = providers()
    for provider in installed:
        if provider.lower() == wanted:
            return provider
    raise UnavailableError(
        f"ONNX Runtime {version()} here has no {visible(name)} provider; it has"
        f" {', '.join(installed)}",
        hint=_INSTALL_GPU if wanted in ("cuda", "tensorrt") else None,
    )


@dataclass(frozen=True)
class SessionSettings:
    """How to make a session."""

    providers: tuple[str, ...] = ("CPU",)
    """Short names, the preferred one first."""
    device_id: int = 0
    threads: int = 0
    """Threads within an operator; 0 lets ONNX Runtime choose."""
    inter_threads: int = 0
    """Operators at once; above 1 the parallel executor is used."""
    optimization_level: str = "all"
    profile_prefix: Path | None = None
    """Where to write ONNX Runtime's own profile; None for no profiling."""
    optimized_path: Path | None = None
    """Where to write the optimised model, without its weights; None for not at all."""
    quiet: bool = False
    """Log errors only."""


class Session:
    """A model that is loaded and can be run.

    Args:
        model: The file; external data beside it is found.
        settings: See :class:`SessionSettings`.

    Raises:
        UnavailableError: A provider is not there or does not start.
        InputError: The file cannot be read as a model.
        ActivityError: ONNX Runtime cannot run the model; names the node where it does.
    """

    def __init__(self, model: Path, settings: SessionSettings) -> None:
        runtime = load()
        names = [find_provider(name) for name in settings.providers]
        self._model = model
        with errors_of(model, "load"):
            self._session = runtime.InferenceSession(
                str(model), _options(runtime, settings), providers=_providers(names, settings)
            )
        self.providers = [n.removesuffix(_SUFFIX) for n in self._session.get_providers()]
        """Those in use, the preferred one first."""
        if names and names[0] not in self.providers:
            raise UnavailableError(
                f"the {names[0]} provider does not start; ONNX Runtime fell back to"
                f" {', '.join(self.providers)}",
                hint="The log says why",
            )
        self.inputs = [_spec(argument) for argument in self._session.get_inputs()]
        self.outputs: list[str] = [argument.name for argument in self._session.get_outputs()]

    def feed(self, values: Mapping[str, AnyArray | Sequence[AnyArray]]) -> Feed:
        """Return the values in the form that :attr:`call` takes."""
        types = {spec.name: spec.dtype for spec in self.inputs}
        return {name: _fed(value, types[name]) for name, value in values.items()}

    def timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        """Return the loop that times runs with one feed after another, round and round.

        Its calls are as bare as can be: all outputs, and errors as ONNX Runtime raises them.
        """

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

    def run(self, feed: Feed) -> list[Any]:
        """Run once and return the outputs.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = load().RunOptions()
        options.log_severity_level = _FATAL  # what it logs of an error, it raises, too
        with errors_of(self._model, "run"):
            return list(self._session.run(None, feed, options))

    def end_profiling(self) -> Path:
        """Stop profiling and return the file that was written."""
        return Path(self._session.end_profiling())


def _options(runtime: Any, settings: SessionSettings) -> Any:
    options = runtime.SessionOptions()
    options.log_severity_level = _WARNING + settings.quiet
    options.intra_op_num_threads = settings.threads
    options.inter_op_num_threads = settings.inter_threads
    if settings.inter_threads > 1:
        options.execution_mode = runtime.ExecutionMode.ORT_PARALLEL
    level = {
        "disabled": "ORT_DISABLE_ALL",
        "basic": "ORT_ENABLE_BASIC",
        "extended": "ORT_ENABLE_EXTENDED",
        "layout": "ORT_ENABLE_LAYOUT",
        "all": "ORT_ENABLE_ALL",
    }[settings.optimization_level]
    options.graph_optimization_level = getattr(runtime.GraphOptimizationLevel, level)
    if settings.profile_prefix is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(settings.profile_prefix)
    if settings.optimized_path is not None:
        _save_graph_only(options, settings.optimized_path)
    return options


def _save_graph_only(options: Any, path: Path) -> None:
    """Have the optimised model saved without its weights: in no time, and of any size."""
    weights = path.with_suffix(".weights")
    weights.symlink_to(os.devnull)
    options.optimized_model_filepath = str(path)
    prefix = "session.optimized_model_external_initializers"
    options.add_session_config_entry(f"{prefix}_file_name", weights.name)
    options.add_session_config_entry(f"{prefix}_min_size_in_bytes", "1024")


def _providers(names: Sequence[str], settings: SessionSettings) -> list[Any]:
    options = {"device_id": str(settings.device_id)}
    return [
        (name + _SUFFIX, options) if name in _WITH_DEVICE_ID else name + _SUFFIX for name in names
    ]


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


def _fed(value: AnyArray | Sequence[AnyArray], dtype: str) -> Any:
    if not is_extended(dtype):
        return value
    import numpy as np
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
