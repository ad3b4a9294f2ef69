"""ONNX Runtime: the only place that imports it. Works with versions 1.23 to 1.31.

Its errors come out as :class:`DldError`, with the node named where its text names one.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import re
import time
from array import array
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.backends.onnxruntime_binding import BoundFeed, bound_timer
from dld_tui.backends.onnxruntime_errors import error_from
from dld_tui.backends.onnxruntime_options import (
    SUFFIX,
    SessionSettings,
    provider_list,
    session_options,
)
from dld_tui.core.errors import DldError, UnavailableError
from dld_tui.core.inputs.dtypes import AnyArray, is_extended
from dld_tui.core.inputs.shapes import InputSpec
from dld_tui.core.latency import TimeCalls
from dld_tui.core.text import visible

Feed: TypeAlias = "dict[str, Any]"
"""What a session takes: arrays, lists of arrays, and its own values for types that NumPy lacks."""

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
    raise UnavailableError(
        f"ONNX Runtime {version()} here has no {visible(name)} provider; it has"
        f" {', '.join(installed)}",
        hint=_INSTALL_GPU if wanted in ("cuda", "tensorrt") else None,
    )


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
        runtime = load()
        names = [find_provider(name) for name in settings.providers]
        self._model, self._settings = title or model, settings
        if settings.uses_cuda:
            _load_cuda(runtime)
        options = session_options(runtime, settings)
        with errors_of(self._model, "load"):
            self._session = runtime.InferenceSession(
                str(model), options, providers=provider_list(names, settings)
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

    def bind(self, feeds: Sequence[Feed]) -> list[BoundFeed]:
        """Put feeds into the memory of the preferred provider; see :class:`BoundFeed`.

        Raises:
            ActivityError: An input is not a tensor, or there is no room.
        """
        device = (self._settings.memory, self._settings.device_id)
        if device[0] == "cpu":
            device = ("cpu", 0)
        with errors_of(self._model, "run"):
            return [BoundFeed(load(), self._session, feed, device) for feed in feeds]

    def bound_timer(self, feeds: Sequence[BoundFeed]) -> TimeCalls:
        """Return the loop that times runs with feeds that are on the device."""
        return bound_timer(self._session, feeds)

    def run(self, feed: Feed) -> list[Any]:
        """Run once and return the outputs.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = load().RunOptions()
        options.log_severity_level = _FATAL  # what it logs of an error, it raises, too
        with errors_of(self._model, "run"):
            return list(self._session.run(None, feed, options))

    def run_unread(self, feed: Feed) -> None:
        """Run once on tensors and drop the outputs, whose types NumPy may lack.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        runtime = load()
        options = runtime.RunOptions()
        options.log_severity_level = _FATAL
        with errors_of(self._model, "run"):
            values = {
                name: value
                if isinstance(value, runtime.OrtValue)
                else runtime.OrtValue.ortvalue_from_numpy(value)
                for name, value in feed.items()
            }
            self._session.run_with_ort_values(None, values, options)

    def run_bound(self, feed: BoundFeed) -> None:
        """Run once with a feed that is on the device.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        options = load().RunOptions()
        options.log_severity_level = _FATAL
        with errors_of(self._model, "run"):
            self._session.run_with_iobinding(feed.binding, options)

    def profiling_start_ns(self) -> int:
        """Return when profiling began: the zero of its times, in nanoseconds of the Unix epoch."""
        return int(self._session.get_profiling_start_time_ns())

    def end_profiling(self) -> Path:
        """Stop profiling and return the file that was written."""
        return Path(self._session.end_profiling())


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
