"""A context of an engine with memory for all that goes in and out, ready to run.

Everything is enqueued on one stream, so that a pass can be captured as a CUDA graph.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.backends.tensorrt_allocator import allocator_of
from dld_tui.backends.tensorrt_runtime import Binding, Engine, buffer_bytes, failures, sizes_of
from dld_tui.backends.tensorrt_runtime_errors import running_problem
from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError, DldError, InputError, UsageError
from dld_tui.core.inputs.dtypes import AnyArray
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.backends.tensorrt_cuda import Cuda


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
            with failures(engine, "Making an execution context"):
                context = engine.engine.create_execution_context()
                if context is None:
                    raise running_problem(
                        engine.log.errors, "Making an execution context", engine.where
                    )
                self.context = context
                self._set_shapes(inputs, shapes, profile)
                self._allocate()
            for buffer in self.buffers:
                if buffer.binding.is_input:
                    self._fill(buffer, inputs[buffer.binding.name])
        except BaseException:
            self.close()
            raise

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
        done = {buffer.binding.name for buffer in self.buffers}
        for binding in self.engine.bindings:
            if binding.name not in done:
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
            f"input {visible(binding.name)} is not in plain order in this engine",
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
