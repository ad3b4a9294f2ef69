"""Execution contexts of an engine, with memory for inputs and outputs, ready to run.

Everything is enqueued on one stream, so that a pass can be captured as a CUDA graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.backends.tensorrt.cuda import allocator_of
from dld_tui.backends.tensorrt.errors import running_problem
from dld_tui.backends.tensorrt.runtime import Binding, Engine, buffer_bytes, failures, sizes_of
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, DldError, InputError, UsageError
from dld_tui.core.files.source import open_error
from dld_tui.core.model.inputs.feeds import load_input_sets
from dld_tui.core.model.inputs.guess import guess_inputs
from dld_tui.core.model.inputs.shape_texts import Shape
from dld_tui.core.model.inputs.shapes import AnyArray, InputSpec, parse_shapes
from dld_tui.core.tensorrt.trtexec_arguments import named_value
from dld_tui.core.text import visible

if TYPE_CHECKING:
    import tensorrt as trt

    from dld_tui.backends.tensorrt.cuda import Cuda
    from dld_tui.core.model.document.document import Document
else:
    from dld_tui.backends.tensorrt.library import trt

Values = dict[str, "AnyArray | bytes"]
_RAW = ("int4", "float4e2m1", "float8e8m0")
"""Types that NumPy has no arrays of: random bytes do."""


def specs_of(bindings: Sequence[Binding]) -> list[InputSpec]:
    """Return the inputs as the readers of input data take them."""
    return [
        InputSpec(
            binding.name, binding.dtype, tuple(None if size < 0 else size for size in binding.dims)
        )
        for binding in bindings
    ]


def engine_inputs(
    inputs: Sequence[Binding],
    shapes: Sequence[str] = (),
    folder: Path | None = None,
    files: Sequence[str] = (),
    seed: int = 0,
    profile: int = 0,
    document: Document | None = None,
) -> tuple[Values, dict[str, Shape]]:
    """Return values and shapes of all inputs.

    Args:
        inputs: Of the engine.
        shapes: As ``NAME:1x3x224x224``; for a shape tensor its values. By default a profile's
            optimum.
        folder: Of data, whose shapes count; its first set is used.
        files: ``NAME:FILE`` with the raw bytes of an input.
        seed: Of the values that are made.
        profile: Number of the optimization profile.
        document: The model that the engine was built from, where it is known: it tells what values
            its inputs are to have.

    Raises:
        UsageError: A text is malformed or names no input.
        InputError: Data cannot be read or do not fit.
    """
    names = [binding.name for binding in inputs]
    user_shapes = parse_shapes(shapes, names)
    input_shapes = {
        binding.name: user_shapes.get(binding.name, binding.shape(profile))
        for binding in inputs
        if not binding.on_host
    }
    values: Values = {}
    for binding in inputs:
        if binding.on_host:
            values[binding.name] = _shape_values(binding, user_shapes.get(binding.name), profile)
            input_shapes[binding.name] = binding.shape(profile)
    raw = {name: _raw_bytes(path) for name, path in _files(files, names).items()}
    if folder is not None:
        data = load_input_sets(folder, specs_of(inputs))[0].values
        arrays = {name: value for name, value in data.items() if not isinstance(value, list)}
        values |= arrays
        input_shapes |= {name: tuple(value.shape) for name, value in arrays.items()}
    missing = [
        binding for binding in inputs if binding.name not in values and binding.name not in raw
    ]
    values |= _made(missing, input_shapes, seed, document)
    return values | raw, input_shapes


def fitting_profile(inputs: Sequence[Binding], shapes: Mapping[str, Shape]) -> int:
    """Return the number of the first optimization profile that allows shapes; 0 when none does."""
    count = max((len(binding.ranges) for binding in inputs), default=0)
    for profile in range(count):
        if all(_allows(binding, shapes.get(binding.name), profile) for binding in inputs):
            return profile
    return 0


def _allows(binding: Binding, shape: Shape | None, profile: int) -> bool:
    if binding.on_host or shape is None or profile >= len(binding.ranges):
        return True
    low, _, high = binding.ranges[profile]
    return len(shape) == len(low) and all(
        least <= size <= most for least, size, most in zip(low, shape, high, strict=True)
    )


def _made(
    inputs: Sequence[Binding], shapes: Mapping[str, Shape], seed: int, document: Document | None
) -> Values:
    values: Values = {}
    generator = np.random.default_rng(seed)
    plain = []
    for binding in inputs:
        if binding.dtype in _RAW:
            count = int(np.prod(shapes[binding.name], dtype=np.int64))
            size = count if binding.dtype == "float8e8m0" else (count + 1) // 2
            values[binding.name] = generator.bytes(size)
        else:
            plain.append(binding)
    given = {binding.name: shapes[binding.name] for binding in plain}
    specs = [InputSpec(binding.name, binding.dtype, given[binding.name]) for binding in plain]
    values.update(guess_inputs(specs, document, given).values(seed))
    return values


def _shape_values(binding: Binding, given: Shape | None, profile: int) -> AnyArray:
    """Return the values of a shape tensor: those given, or the optimum of its profile."""
    values = given
    if values is None:
        if profile >= len(binding.ranges):
            raise UsageError(
                f"input {visible(binding.name)} is a shape: its values are needed",
                hint=f"Give them with --shape {visible(binding.name)}:1x3",
            )
        values = binding.ranges[profile][1]
    array: AnyArray = np.array(values, dtype=binding.dtype).reshape(
        () if binding.dims == () else (-1,)
    )
    return array


def _files(texts: Sequence[str], names: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for text in texts:
        name, path = named_value(text)
        if name not in names:
            listed = ", ".join(map(visible, names)) or "none"
            raise UsageError(
                f"--load-input names {visible(name)!r}, which is not an input of the engine",
                hint=f"Its inputs: {listed}",
            )
        files[name] = Path(path)
    return files


def _raw_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise open_error(path, error) from None


@dataclass
class Buffer:
    """Memory of one input or output. Addresses; 0 where there is none."""

    binding: Binding
    shape: tuple[int, ...]
    size: int
    host: int = 0
    device: int = 0
    allocator: Any = None
    """Tells the shape of an output whose size the data decide."""

    def take_shape(self, shape: tuple[int, ...]) -> None:
        """Take the shape that a run found."""
        self.shape = shape


class Execution:
    """One context of an engine. Close it at the end.

    Args:
        cuda: The device.
        engine: What to run.
        inputs: Values of the inputs: arrays, or raw bytes in the format that the engine wants.
        shapes: Shapes of the inputs, by name.
        profile: Number of the optimization profile.

    Raises:
        UsageError: A shape is outside the profile.
        InputError: Values do not fit an input.
        ActivityError: There is not enough memory, or the library refuses.
    """

    def __init__(
        self,
        cuda: Cuda,
        engine: Engine,
        inputs: Mapping[str, AnyArray | bytes],
        shapes: Mapping[str, tuple[int, ...]],
        profile: int = 0,
    ) -> None:
        self.cuda, self.engine = cuda, engine
        self.buffers: list[Buffer] = []
        self.stream = cuda.stream()
        self._graph = 0
        try:
            with failures(engine, "Creating an execution context"):
                context = engine.engine.create_execution_context()
                if context is None:
                    raise running_problem(
                        engine.log.errors, "Creating an execution context", engine.where
                    )
                self.context = context
                # Whoever hears of named ranges takes time, which a measured pass has not to spare.
                context.nvtx_verbosity = trt.ProfilingVerbosity.NONE
                self._set_shapes(inputs, shapes, profile)
                self._allocate()
            for buffer in self.buffers:
                if buffer.binding.is_input:
                    self._fill(buffer, inputs[buffer.binding.name])
        except BaseException:
            self.close()
            raise

    def name_layers(self) -> None:
        """Let TensorRT name its layers on the CPU (NVTX), as far as the engine knows them."""
        self.context.nvtx_verbosity = self.engine.engine.profiling_verbosity

    def _set_shapes(
        self,
        inputs: Mapping[str, AnyArray | bytes],
        shapes: Mapping[str, tuple[int, ...]],
        profile: int,
    ) -> None:
        if profile and not self.context.set_optimization_profile_async(profile, self.stream):
            raise UsageError(f"the engine has no optimization profile {profile}")
        self.cuda.synchronize(self.stream)
        for binding in self.engine.inputs:
            shape = shapes.get(binding.name, binding.shape(profile))
            self.engine.log.errors.clear()
            if not self.context.set_input_shape(binding.name, shape):
                raise _outside(binding, shape, profile)
            if binding.on_host:
                self._add(binding, shape)
                self._fill(self.buffers[-1], inputs[binding.name])
                self._address(binding.name, self.buffers[-1].host)
        missing = [name for name in self.context.infer_shapes() if name]
        if missing:
            raise UsageError(
                f"input {visible(missing[0])} has no shape", hint="Give it with --shape NAME:DIMS"
            )

    def _allocate(self) -> None:
        allocated = {buffer.binding.name for buffer in self.buffers}
        for binding in self.engine.bindings:
            if binding.name not in allocated:
                self._add(binding, sizes_of(self.context.get_tensor_shape(binding.name)))
            buffer = next(b for b in self.buffers if b.binding.name == binding.name)
            self._address(binding.name, buffer.host if binding.on_host else buffer.device)
            if not binding.is_input and any(size < 0 for size in buffer.shape):
                self._tell_shape(buffer)

    def _tell_shape(self, buffer: Buffer) -> None:
        """Have the library say what shape an output gets."""
        address = buffer.device or buffer.host
        buffer.allocator = allocator_of(address, buffer.size, buffer.take_shape)
        name = buffer.binding.name
        if not self.context.set_output_allocator(name, buffer.allocator):
            raise running_problem(
                self.engine.log.errors, f"Placing {visible(name)}", self.engine.where
            )

    def _add(self, binding: Binding, shape: tuple[int, ...]) -> None:
        if any(size < 0 for size in shape):  # decided by data: room for the most there can be
            size = int(self.context.get_max_output_size(binding.name))
        else:
            size = buffer_bytes(self.engine.engine, binding, shape)
        if size < 0:
            raise ActivityError(
                f"the size of output {visible(binding.name)} is not known before the run",
                where=self.engine.where,
            )
        buffer = Buffer(binding, shape, size)
        self.buffers.append(buffer)
        buffer.host = self.cuda.allocate_host(size)
        if not binding.on_host:
            buffer.device = self.cuda.allocate(size)

    def _address(self, name: str, address: int) -> None:
        if not self.context.set_tensor_address(name, address):
            raise running_problem(
                self.engine.log.errors, f"Placing {visible(name)}", self.engine.where
            )

    def _fill(self, buffer: Buffer, value: AnyArray | bytes) -> None:
        data = _bytes_of(buffer, value)
        self.cuda.write_host(buffer.host, data)
        if buffer.device:
            self.cuda.copy_to_device(buffer.device, buffer.host, len(data), self.stream)
            self.cuda.synchronize(self.stream)

    def copy_inputs(self) -> None:
        """Enqueue the copies of the inputs to the device."""
        for buffer in self.buffers:
            if buffer.binding.is_input and buffer.device:
                self.cuda.copy_to_device(buffer.device, buffer.host, buffer.size, self.stream)

    def copy_outputs(self) -> None:
        """Enqueue the copies of the outputs to the host."""
        for buffer in self.buffers:
            if not buffer.binding.is_input and buffer.device:
                self.cuda.copy_to_host(buffer.host, buffer.device, buffer.size, self.stream)

    def enqueue(self) -> None:
        """Enqueue the work of the engine, as a CUDA graph if it was captured.

        Raises:
            ActivityError: The library refuses.
        """
        if self._graph:
            self.cuda.launch(self._graph, self.stream)
        elif not self.context.execute_async_v3(self.stream):
            raise running_problem(self.engine.log.errors, "Running the engine", self.engine.where)

    def wait(self) -> None:
        """Wait until all that was enqueued is done."""
        self.cuda.synchronize(self.stream)

    def capture(self) -> None:
        """Make a CUDA graph of the engine's work, for later passes.

        Raises:
            ActivityError: The engine does what cannot be captured; it still runs without.
        """
        self.enqueue()  # what is set up lazily must not happen within the capture
        self.wait()
        self.cuda.begin_capture(self.stream)
        try:
            self.enqueue()
            self._graph = self.cuda.end_capture(self.stream)
        except DldError:
            self.cuda.abort_capture(self.stream)
            raise

    @contextlib.contextmanager
    def profiled(self, profiler: Any) -> Iterator[None]:
        """Have the library time each layer; it tells `profiler` after each pass."""
        self.context.profiler = profiler
        try:
            yield
        finally:
            self.wait()

    def outputs(self) -> dict[str, bytes]:
        """Return the raw bytes of the outputs of the last pass."""
        self.copy_outputs()
        self.wait()
        return {
            buffer.binding.name: self.cuda.read_host(buffer.host, buffer.size)
            for buffer in self.buffers
            if not buffer.binding.is_input
        }

    def close(self) -> None:
        """Give everything back."""
        with contextlib.suppress(DldError):
            self.cuda.synchronize(self.stream)
        if self._graph:
            self.cuda.destroy_graph(self._graph)
            self._graph = 0
        self.__dict__.pop("context", None)  # before the memory that it uses
        for buffer in self.buffers:
            if buffer.device:
                self.cuda.free(buffer.device)
            if buffer.host:
                self.cuda.free_host(buffer.host)
        self.buffers.clear()
        if self.stream:
            self.cuda.destroy_stream(self.stream)
            self.stream = 0


def _bytes_of(buffer: Buffer, value: AnyArray | bytes) -> bytes:
    data = value if isinstance(value, bytes) else np.ascontiguousarray(value).tobytes()
    if len(data) == buffer.size:
        return data
    binding = buffer.binding
    if not binding.linear and not isinstance(value, bytes):
        raise InputError(
            f"input {visible(binding.name)} does not have linear layout in this engine",
            hint="Give its raw bytes with --load-input NAME:FILE",
        )
    raise InputError(
        f"input {visible(binding.name)} takes {buffer.size:,} bytes"
        f" ({binding.dtype}{fmt.shape(buffer.shape)}), not {len(data):,}"
    )


def _outside(binding: Binding, shape: tuple[int, ...], profile: int) -> UsageError:
    hint = None
    if profile < len(binding.ranges) and not binding.on_host:
        low, _, high = binding.ranges[profile]
        hint = f"It takes {fmt.shape(low)} to {fmt.shape(high)}"
    return UsageError(
        f"shape {fmt.shape(shape)} of input {visible(binding.name)} is outside profile {profile}",
        hint=hint,
    )
