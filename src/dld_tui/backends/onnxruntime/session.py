"""Sessions of ONNX Runtime: their settings, running a model, timing passes, binding inputs."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import platform
import re
import sys
import time
from array import array
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from dld_tui.backends.onnxruntime.limits import (
    limited_options,
    run_options,
    stoppable,
    trial,
    within_limit,
)
from dld_tui.backends.onnxruntime.runtime import (
    SUFFIX,
    add_providers,
    errors_of,
    find_provider,
    load,
    load_cuda_libraries,
    register,
)
from dld_tui.backends.onnxruntime.session_options import (
    SessionSettings,
    provider_list,
    session_options,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    InputError,
    SaveError,
    UnavailableError,
)
from dld_tui.core.events import Event, Progress
from dld_tui.core.files.model_set import binary_file
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.files.writer import put_in_place
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, is_extended
from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.text import visible
from dld_tui.core.types import DTYPES

if TYPE_CHECKING:
    pass

"""Inputs as a session takes them: arrays, lists of arrays; OrtValues for types that NumPy lacks."""

Feed: TypeAlias = "dict[str, Any]"

_UNREADABLE = ("tensor(bfloat16)",)
"""Types of outputs that ONNX Runtime cannot convert to arrays."""
_COPY_PASSES = 20


@dataclass(frozen=True)
class Copies:
    """The cost of copying one set of inputs to the device and its outputs back."""

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
        """Inputs that stay in host memory: text, and types that NumPy lacks."""
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
            else:  # an OrtValue of a type that NumPy lacks
                self.on_host.append(name)
                self.binding.bind_ortvalue_input(name, value)
        for argument in session.get_outputs():
            self.binding.bind_output(argument.name, memory, number)
        self.binding.synchronize_inputs()

    def _bind_on_host(self, name: str, value: Any) -> None:
        self.on_host.append(name)
        self.binding.bind_cpu_input(name, value)

    def fill(self, feed: dict[str, Any]) -> None:
        """Replace the values of the inputs in place, as a CUDA graph requires; shapes stay."""
        for name, (there, _) in self._moved.items():
            there.update_inplace(feed[name])
        self.binding.synchronize_inputs()

    def outputs(self) -> list[Any]:
        """Return the outputs of the last run in host memory; NumPy must have their types."""
        self.binding.synchronize_outputs()
        return list(self.binding.copy_outputs_to_cpu())

    def time_copies(self, passes: int = _COPY_PASSES) -> Copies:
        """Time the copies; call this after a run, which creates the outputs.

        Outputs of types that NumPy lacks are left out.
        """
        outputs: list[Any] = []

        def upload() -> None:
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

        inputs_ms, outputs_ms = _median_ms(upload, passes), _median_ms(fetch, passes)
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


_loading_since: list[float] = []
"""When the sessions that are being created were begun, on the monotonic clock."""


@contextlib.contextmanager
def _loading() -> Generator[None]:
    begin = time.monotonic()
    _loading_since.append(begin)
    try:
        yield
    finally:
        _loading_since.remove(begin)


def seconds_loading() -> float | None:
    """Return how long ONNX Runtime has been creating a session in this process; None if it is not.

    For the progress of a job: ONNX Runtime reports none, and a large model takes a minute.
    """
    since = min(_loading_since, default=None)
    return None if since is None else time.monotonic() - since


_EVERY_S = 1.0
_T = TypeVar("_T")


def with_loading_progress(stage: str, call: Callable[[], _T]) -> Generator[Event, None, _T]:
    """Make a call on a thread; yield its stage, and each second how long ONNX Runtime loads.

    ONNX Runtime reports no progress while it creates a session, which can take a minute.

    Args:
        stage: The name of the work, for the progress.
        call: Does the work. It runs to its end even if the generator is closed.

    Returns:
        The result of the call.

    Raises:
        Exception: The exception of the call.
    """
    yield Progress(0, None, stage=stage)
    with ThreadPoolExecutor(1, thread_name_prefix="with-progress") as pool:
        future = pool.submit(call)
        while not wait([future], _EVERY_S).done:
            if (seconds := seconds_loading()) is not None:
                yield Progress(round(seconds), None, "s", f"{stage}: ONNX Runtime loads the model")
        return future.result()


_FILE_WRITERS = ("QNN",)
"""Providers that write files to the working folder: QNN a ``NAME.dlc`` for each part of a model."""


def _writes_files(settings: SessionSettings) -> bool:
    return any(name.removesuffix(SUFFIX).upper() in _FILE_WRITERS for name in settings.providers)


def _absolute(settings: SessionSettings) -> SessionSettings:
    """Return settings whose provider options name files wherever the working folder is."""
    return replace(
        settings,
        provider_options={
            name: {
                key: str(Path(value).absolute()) if os.path.isfile(value) else value
                for key, value in options.items()
            }
            for name, options in settings.provider_options.items()
        },
    )


@contextlib.contextmanager
def _scratch_working_folder(settings: SessionSettings) -> Iterator[None]:
    """Keep files that a provider writes to the working folder out of that of the user."""
    if not _writes_files(settings):
        yield
        return
    here = Path.cwd()
    with temporary_folder("session") as folder:
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(here)


class Session:
    """A loaded model.

    Args:
        model: The file; external data is read from beside it.
        settings: See :class:`SessionSettings`.
        title: The file that errors name, where `model` is a temporary one.

    Raises:
        UnavailableError: A provider is not installed or does not start.
        InputError: The file cannot be read as a model.
        ActivityError: ONNX Runtime cannot run the model; names the node if ONNX Runtime does.
        TimeLimitError: A :func:`~.limits.time_limit` ended.
    """

    def __init__(self, model: Path, settings: SessionSettings, title: Path | None = None) -> None:
        runtime = load()
        register(settings.provider_libraries)
        if _writes_files(settings):
            settings = _absolute(settings)
        names = [find_provider(name) for name in settings.providers]
        self._model, self._settings = title or model, settings
        if settings.uses_cuda:
            load_cuda_libraries(runtime)
        options = session_options(runtime, settings)
        providers = provider_list(names, settings)
        if settings.provider_libraries:
            own = {name: dict(settings.provider_options.get(name, {})) for name in names}
            add_providers(options, names, settings.device_id, own)
            providers = []

        def create() -> Any:
            with (
                self.denormals(),
                binary_file(model.absolute()) as path,
                _scratch_working_folder(settings),
            ):
                return runtime.InferenceSession(
                    str(path), options, providers=providers,
                    disabled_optimizers=list(settings.left_out),
                )  # fmt: skip

        with trial(), stoppable(options), errors_of(self._model, "load"), _loading():
            self._session = within_limit(create)
        self.providers = [n.removesuffix(SUFFIX) for n in self._session.get_providers()]
        """The active ones, in order of preference."""
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
        """Whether NumPy has the types of all outputs, which :meth:`run` returns."""

    @property
    def device(self) -> tuple[str, int]:
        """The memory and device number of the preferred provider, as bindings take them."""
        memory = self._settings.memory
        return (memory, 0 if memory == "cpu" else self._settings.device_id)

    @property
    def inference(self) -> Any:
        """The ``InferenceSession``, for loops that bind memory step by step."""
        return self._session

    def denormals(self) -> contextlib.AbstractContextManager[None]:
        """Return the context in which this session runs; see :func:`denormals_of`."""
        return denormals_of(self._settings.config)

    def feed(self, values: Mapping[str, AnyArray | Sequence[AnyArray]]) -> Feed:
        """Return inputs as :meth:`run` takes them."""
        if not self._extended:
            return dict(values)
        return {name: _fed(value, self._extended.get(name)) for name, value in values.items()}

    def timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        """Return a loop that times passes with each feed in turn.

        It adds as little overhead as possible: it fetches all outputs, and lets ONNX Runtime's own
        exceptions through. Outputs of types that NumPy lacks are not fetched.
        """
        return self._in_its_mode(
            self._read_timer(feeds) if self.is_readable else self._unread_timer(feeds)
        )

    def _in_its_mode(self, timer: TimeCalls) -> TimeCalls:
        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            with stoppable(), self.denormals():
                return timer(first, durations, most, until)

        return time_calls

    def _read_timer(self, feeds: Sequence[Feed]) -> TimeCalls:
        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            # Not `run = session.run`: Python calls a method that it looks up faster.
            session, clock, feed_count = self._session, time.perf_counter_ns, len(feeds)
            options = limited_options()
            for slot in range(most):
                feed = feeds[(first + slot) % feed_count]
                begin = clock()
                session.run(None, feed, options)
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
            options = limited_options()
            for slot in range(most):
                feed = values[(first + slot) % feed_count]
                begin = clock()
                session.run_with_ort_values(None, feed, options)
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
        """Copy feeds into the memory of the preferred provider; see :class:`BoundFeed`.

        Raises:
            ActivityError: An input is not a tensor, or the memory is full.
        """
        with errors_of(self._model, "run"):
            return [BoundFeed(load(), self._session, feed, self.device) for feed in feeds]

    def bound_timer(self, feeds: Sequence[BoundFeed]) -> TimeCalls:
        """Return a loop that times passes with feeds that are on the device."""
        bindings = [feed.binding for feed in feeds]

        def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
            session, clock, count = self._session, time.perf_counter_ns, len(bindings)
            options = limited_options()
            for slot in range(most):
                binding = bindings[(first + slot) % count]
                begin = clock()
                session.run_with_iobinding(binding, options)
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
        return list(self._once(lambda options: self._session.run(None, feed, options)))

    def _once(self, run: Callable[[Any], _T]) -> _T:
        """Run once, given the options of the run, within the limits."""

        def call() -> _T:
            with self.denormals():
                return run(options)

        with trial(), stoppable(), errors_of(self._model, "run"):
            options = run_options()
            return within_limit(call)

    def run_unread(self, feed: Feed) -> None:
        """Run once on tensors and discard the outputs, whose types NumPy may lack.

        Raises:
            ActivityError: The run failed; names the node where the text does.
        """
        if has_text(feed):
            self.run(feed)
        else:
            self._once(
                lambda options: self._session.run_with_ort_values(
                    None, self._as_values(feed), options
                )
            )

    def try_once(self, feed: Feed) -> None:
        """Run once with inputs and outputs of any type, and discard the outputs.

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
        self._once(lambda options: self._session.run_with_iobinding(feed.binding, options))

    def assigned(self) -> list[tuple[str, str, str]] | None:
        """Return provider, name and operator of each node, as assigned before a run.

        None for versions before 1.24. The session must have been created with
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


def has_text(feed: Feed) -> bool:
    """Return whether a feed holds strings, which cannot become OrtValues."""
    kinds = (getattr(getattr(value, "dtype", None), "kind", None) for value in feed.values())
    return any(kind in ("O", "U", "S") for kind in kinds)


_TYPE = re.compile(r"(?:(seq|optional|sparse_tensor|map)\()?(?:tensor\((\w+)\)|(.*?))\)?$")
_CONTAINERS = {"seq": "sequence", "sparse_tensor": "sparse", "optional": "optional", "map": "map"}


def _spec(argument: Any) -> InputSpec:
    match = _TYPE.match(argument.type)
    container, dtype, other = match.groups() if match else ("", None, argument.type)
    if dtype is None:
        return InputSpec(argument.name, other or "?", None, _CONTAINERS.get(container, "other"))
    dims = tuple(dim if isinstance(dim, (int, str)) else None for dim in argument.shape)
    return InputSpec(argument.name, DTYPES.get(dtype, dtype), dims, _CONTAINERS.get(container, ""))


def _fed(value: AnyArray | Sequence[AnyArray], dtype: str | None) -> Any:
    if dtype is None:
        return value
    from onnx import TensorProto

    array = np.asarray(value)
    number = TensorProto.DataType.Value(dtype.upper())
    as_bytes = array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    return load().OrtValue.ortvalue_from_numpy_with_onnx_type(as_bytes, number)


DENORMALS_ENTRY = "session.set_denormal_as_zero"
_FLUSH_TO_ZERO, _DENORMALS_ARE_ZERO = 0x8000, 0x0040
"""Bits of MXCSR (Intel 64 and IA-32 Architectures Software Developer's Manual, 10.2.3)."""
_MXCSR = 7
"""Its index in ``fenv_t`` of Linux on x86-64: 8 numbers of 32 bits in glibc and musl."""


@contextlib.contextmanager
def denormals_of(config: Mapping[str, str]) -> Generator[None]:
    """Flush denormal numbers to zero on the calling thread if a session asks for it.

    ONNX Runtime sets this mode for the threads that a session creates, which also inherit that of
    the calling thread. For the calling thread, which computes, too, only the first session of a
    process counts; what later ones ask for is ignored (``InferenceSession::ConstructorCommon``; the
    outputs of 1.31.1 confirm it). So each session is created and run in this context, as if it were
    the first of its process.

    Has an effect on Linux on x86-64 only; on aarch64, ONNX Runtime ignores the entry.

    Args:
        config: Configuration entries of the session.
    """
    library = _library() if config.get(DENORMALS_ENTRY, "").strip() == "1" else None
    if library is None:
        yield
        return
    before = (ctypes.c_uint32 * 8)()
    library.fegetenv(before)
    inside = (ctypes.c_uint32 * 8)(*before)
    inside[_MXCSR] |= _FLUSH_TO_ZERO | _DENORMALS_ARE_ZERO
    library.fesetenv(inside)
    try:
        yield
    finally:
        library.fesetenv(before)


@functools.cache
def _library() -> Any:
    """Return the C library; None where ``fenv_t`` is not known."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    library = ctypes.CDLL("libm.so.6") if platform.libc_ver()[0] == "glibc" else ctypes.CDLL(None)
    return library if hasattr(library, "fesetenv") else None


_LARGEST_INSIDE = 1_500_000_000
"""Bytes of weights: a protobuf file is limited to 2 GB, and optimizing may add to the model."""


def save_optimized_model(
    model: Path, settings: SessionSettings, target: Path, weight_bytes: int
) -> list[str]:
    """Write the optimized model to `target`, the weights of a large one to a data file beside it.

    Returns remarks for the user, mostly none.

    Args:
        model: The file to optimize.
        settings: Of the session that optimizes it.
        target: Replaced if it exists.
        weight_bytes: Size of the model's initializers.

    Raises:
        ActivityError: ONNX Runtime cannot write the model that its providers compiled.
        SaveError: The folder cannot be written.
    """
    weights = "beside" if weight_bytes > _LARGEST_INSIDE else "inside"
    remarks: list[str] = []
    try:
        with temporary_folder("optimized", target.parent) as folder:
            written = folder / target.name
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
            for path in sorted(folder.iterdir(), key=lambda path: path == written):
                remarks += put_in_place(path, target.parent / path.name)
    except OSError as error:
        raise SaveError(f"cannot be written: {error.strerror}", where=str(target)) from error
    return remarks
