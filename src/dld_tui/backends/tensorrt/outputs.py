"""Outputs of an engine for given inputs, inner tensors included.

What is an output cannot be fused away, so an engine with more outputs may take other kernels than
one without.
"""

from __future__ import annotations

import contextlib
import math
import time
from array import array
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.backends.tensorrt.cuda import Cuda
from dld_tui.backends.tensorrt.errors import loading_problem
from dld_tui.backends.tensorrt.execution import Buffer, Execution, fitting_profile
from dld_tui.backends.tensorrt.library import Library, load_plugins
from dld_tui.backends.tensorrt.log import BuildLog, logger_of
from dld_tui.backends.tensorrt.network import Network, builder_for, layers, model_file, parse
from dld_tui.backends.tensorrt.runtime import Binding, Engine
from dld_tui.core.accuracy.result import as_type
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.files.source import open_error
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, numpy_dtype
from dld_tui.core.report.latency import TimeCalls
from dld_tui.core.tensorrt.availability import require_driver
from dld_tui.core.tensorrt.settings import BuildSettings
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.core.model.document.document import Document
else:
    from dld_tui.backends.tensorrt.library import trt

NO_TENSOR = "TensorRT's parser makes no tensor of this name: it folds it or joins it with another"
SHAPE = "TensorRT treats it as a shape, which no output holds"
CONSTANT = "it is a constant in TensorRT"
_NO_ARRAYS = ("INT4", "FP4", "E8M0")


def reasons_against(
    library: Library, document: Document, settings: BuildSettings, names: Collection[str]
) -> dict[str, str]:
    """Return the tensors of a model that cannot be outputs of its engine, and why; parses it.

    Args:
        library: What would build it.
        settings: Of the build.
        names: Tensors of the main graph. Untrusted text.

    Raises:
        ActivityError: The model cannot be parsed; names the node.
        UnavailableError: A library of plugins is missing, or the library cannot build here.
    """
    with _parsed(library, document, settings) as parsed:
        reasons = _reasons(parsed.network)
    return {name: reasons.get(name, NO_TENSOR) for name in names if reasons.get(name, NO_TENSOR)}


def mark_outputs(parsed: Network, names: Iterable[str]) -> None:
    """Make tensors of a network outputs, in plain row-major order; what is not there is left out.

    The outputs that it has stay.
    """
    network = parsed.network
    own = {network.get_output(index).name for index in range(network.num_outputs)}
    wanted = set(names) - own
    for layer in layers(network):
        for index in range(layer.num_outputs):
            tensor = layer.get_output(index)
            if tensor.name in wanted:
                wanted.discard(tensor.name)
                tensor.allowed_formats = 1 << int(trt.TensorFormat.LINEAR)
                network.mark_output(tensor)


@contextlib.contextmanager
def _parsed(library: Library, document: Document, settings: BuildSettings) -> Iterator[Network]:
    log = BuildLog(None, lambda _: None)
    builder = builder_for(log, library, str(document.path))
    load_plugins(library, builder, builder.logger, settings.all_plugins)
    with model_file(document) as path:
        yield parse(builder, path, document, settings, library, log)


def _reasons(network: trt.INetworkDefinition) -> dict[str, str]:
    """Return why each tensor of a network cannot be an output; an empty text where it can."""
    reasons = {}
    for layer in layers(network):
        is_constant = layer.type == trt.LayerType.CONSTANT
        for index in range(layer.num_outputs):
            tensor = layer.get_output(index)
            reason = CONSTANT if is_constant else ""
            if tensor.is_shape_tensor and not tensor.is_execution_tensor:
                reason = SHAPE
            elif tensor.dtype.name in _NO_ARRAYS:
                reason = f"an output of type {tensor.dtype.name} cannot be read here"
            reasons[tensor.name] = reason
    return reasons


if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt.library import Library
else:
    from dld_tui.backends.tensorrt.library import trt

_NO_OUTPUT_ARRAYS = ("int4", "float4e2m1", "float8e8m0")
"""Types that arrays are not made of here."""


def engine_outputs(
    library: Library,
    engine: bytes | Path,
    feeds: Sequence[Mapping[str, AnyArray]],
    *,
    device: str = "0",
    plugins: Sequence[str] = (),
    dla_core: int | None = None,
    where: str = "",
) -> Generator[dict[str, AnyArray], None, None]:
    """Yield the outputs of an engine by name, for one set of inputs after the other.

    The file, or the bytes, must be trusted: an engine can hold code that runs.

    Args:
        library: What loads it.
        engine: Its bytes, or its file.
        feeds: Inputs by the engine's names; integers and floats are cast to the engine's types.
        device: The GPU.
        plugins: Libraries of plugins that it needs.
        dla_core: The DLA core to run on, where the engine uses one.
        where: What to call the engine in errors; by default the file.

    Raises:
        InputError: The engine cannot be read or loaded, or lacks a value for an input.
        UsageError: A shape is outside all optimization profiles.
        UnavailableError: There is no GPU, or none that the library supports.
        ActivityError: The run fails.
    """
    if isinstance(engine, Path):
        where = where or str(engine)
        try:
            engine = engine.read_bytes()
        except OSError as error:
            raise open_error(where, error) from None
    options: dict[str, Any] = {"device": device, "plugins": plugins, "dla_core": dla_core}
    with EngineRun(library, engine, where=where, **options) as run:
        for feed in feeds:
            yield run.outputs(feed)


class EngineRun:
    """An engine on the GPU. Use it as a context manager, or close it.

    Args:
        library: What loads it.
        data: Its bytes.
        device: The GPU.
        plugins: Libraries of plugins that it needs.
        dla_core: The DLA core to run on, where the engine uses one.
        where: What to call the engine in errors.

    Raises:
        InputError: The engine cannot be loaded.
        UnavailableError: There is no GPU, or none that the library supports.
        ActivityError: There is not enough memory.
    """

    def __init__(
        self,
        library: Library,
        data: bytes,
        *,
        device: str = "0",
        plugins: Sequence[str] = (),
        dla_core: int | None = None,
        where: str = "",
    ) -> None:
        require_gpu(library)
        with contextlib.ExitStack() as stack:
            self._cuda = stack.enter_context(contextlib.closing(Cuda(device)))
            capability = self._cuda.environment()["gpu_compute_capability"]
            log = BuildLog(None, lambda _: None)
            gpu = f"compute capability {capability}"
            self.engine = Engine(library, data, log, where, gpu, plugins, dla_core)
            self._stack = stack.pop_all()

    def __enter__(self) -> EngineRun:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    @contextlib.contextmanager
    def clients(
        self,
        count: int,
        values: Mapping[str, AnyArray | bytes],
        shapes: Mapping[str, Shape],
        profile: int,
    ) -> Iterator[list[TimeCalls]]:
        """Give contexts of the engine, each with a stream, that clients use at the same time.

        Args:
            count: How many.
            values: Of the inputs.
            shapes: Of the inputs.
            profile: Number of the optimization profile.

        Raises:
            UsageError: A shape is outside the profile.
            ActivityError: There is not enough memory.
        """
        with contextlib.ExitStack() as stack:
            timers = []
            for _ in range(count):
                execution = Execution(self._cuda, self.engine, values, shapes, profile)
                stack.callback(execution.close)
                timers.append(self._timer(execution))
            yield timers

    def _timer(self, execution: Execution) -> TimeCalls:
        """Return what makes passes, with the copies, and times them by the clock of the host."""

        def timer(calls: int, durations: array[int], most: int, until: int) -> int:
            self._cuda.enter_thread()
            for slot in range(most):
                begin = time.perf_counter_ns()
                execution.copy_inputs()
                execution.enqueue()
                execution.copy_outputs()
                execution.wait()
                end = time.perf_counter_ns()
                durations[slot] = end - begin
                if end >= until:
                    return slot + 1
            return most

        return timer

    def close(self) -> None:
        """Give the engine and the device back."""
        self.__dict__.pop("engine", None)
        self._stack.close()

    def outputs(
        self, feed: Mapping[str, Any], names: Collection[str] | None = None
    ) -> dict[str, AnyArray]:
        """Run once; the values are copies.

        Args:
            feed: Inputs by the engine's names.
            names: The outputs that are wanted; None for all.

        Raises:
            InputError: An input has no value, or one that its type cannot hold.
            UsageError: A shape is outside all optimization profiles.
            ActivityError: The run fails, or an output has a type that arrays are not made of.
        """
        values = {binding.name: input_array(binding, feed) for binding in self.engine.inputs}
        shapes = {name: tuple(value.shape) for name, value in values.items()}
        profile = fitting_profile(self.engine.inputs, shapes)
        execution = Execution(self._cuda, self.engine, values, shapes, profile)
        try:
            execution.enqueue()
            raw = execution.outputs()  # a shape may be known only now
            return {
                buffer.binding.name: _array(buffer, raw.pop(buffer.binding.name))
                for buffer in execution.buffers
                if not buffer.binding.is_input and (names is None or buffer.binding.name in names)
            }
        finally:
            execution.close()


def require_gpu(library: Library) -> None:
    """Refuse to go on where the library cannot run engines.

    Raises:
        UnavailableError: There is no driver, or the library does not support the GPU.
    """
    require_driver(library.capabilities)
    log = BuildLog(None, lambda _: None)
    try:
        trt.Runtime(logger_of(log))
    # The bindings raise what they have when the library makes no runtime.
    except (TypeError, RuntimeError) as error:
        log_lines = [*log.errors] or [str(error)]
        raise loading_problem(log_lines, None, library.capabilities.title, "", "") from None


def array_problem(binding: Binding) -> str:
    """Return why an input or output is no plain array; an empty text when it is one."""
    if not binding.linear:
        return "its elements are in another order than row-major"
    if binding.dtype in _NO_OUTPUT_ARRAYS:
        return f"arrays of {binding.dtype} are not supported here"
    return ""


def input_array(binding: Binding, feed: Mapping[str, Any]) -> AnyArray:
    """Return the value of an input in the type that the engine takes.

    Raises:
        InputError: There is none, or the type cannot hold it.
    """
    name = visible(binding.name)
    value = feed.get(binding.name)
    if value is None or isinstance(value, list):
        raise InputError(
            f"the engine takes an input {name}, for which there is no tensor",
            hint=f"There are {', '.join(map(visible, feed)) or 'none'}",
        )
    if why := array_problem(binding):
        raise InputError(f"input {name} of the engine cannot be fed: {why}")
    kind: Any = numpy_dtype(binding.dtype)
    array = np.asarray(value)
    if kind.kind in "iu" and array.dtype.kind in "iu" and array.size:
        limits = np.iinfo(kind)
        if int(array.min()) < limits.min or int(array.max()) > limits.max:
            raise InputError(f"input {name} has values that the engine's {kind} cannot hold")
    cast: AnyArray = as_type(array, kind)
    return cast


def _array(buffer: Buffer, raw: bytes) -> AnyArray:
    binding = buffer.binding
    if why := array_problem(binding):
        raise ActivityError(f"output {visible(binding.name)} of the engine cannot be read: {why}")
    array = np.frombuffer(raw, numpy_dtype(binding.dtype), math.prod(buffer.shape))
    return array.reshape(buffer.shape)
