"""Inputs and outputs that stay on the device (IO binding), and what copying them takes."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dld_tui.core.errors import ActivityError
from dld_tui.core.latency import TimeCalls
from dld_tui.core.text import visible

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
        self._moved: list[tuple[Any, Any]] = []
        memory, number = device
        for name, value in feed.items():
            if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
                there = runtime.OrtValue.ortvalue_from_numpy(value, memory, number)
                self._moved.append((there, value))
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

    def time_copies(self, passes: int = _COPY_PASSES) -> Copies:
        """Time the copies; call it after a run, which makes the outputs."""
        outputs: list[Any] = []

        def bring() -> None:
            for there, value in self._moved:
                there.update_inplace(value)
            self.binding.synchronize_inputs()

        def fetch() -> None:
            outputs[:] = self.binding.copy_outputs_to_cpu()

        inputs_ms, outputs_ms = _median_ms(bring, passes), _median_ms(fetch, passes)
        sizes = [int(one.nbytes) for one in outputs if isinstance(one, np.ndarray)]
        moved = sum(int(value.nbytes) for _, value in self._moved)
        return Copies(inputs_ms, outputs_ms, moved, sum(sizes))


def bound_timer(session: Any, feeds: Sequence[BoundFeed]) -> TimeCalls:
    """Return the loop that times runs with one bound feed after another, round and round."""
    bindings = [feed.binding for feed in feeds]

    def time_calls(first: int, durations: array[int], most: int, until: int) -> int:
        clock, count = time.perf_counter_ns, len(bindings)
        for slot in range(most):
            binding = bindings[(first + slot) % count]
            begin = clock()
            session.run_with_iobinding(binding)
            end = clock()
            durations[slot] = end - begin
            if end >= until:
                return slot + 1
        return most

    return time_calls


def _median_ms(call: Callable[[], None], passes: int) -> float:
    times = []
    for _ in range(passes):
        begin = time.perf_counter_ns()
        call()
        times.append(time.perf_counter_ns() - begin)
    return sorted(times)[passes // 2] / 1e6
