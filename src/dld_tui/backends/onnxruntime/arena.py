"""What the arena of ONNX Runtime's CPU provider hands out in a run, from ONNX Runtime's profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

from dld_tui.backends.onnxruntime.runtime import version
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.model.cost.memory import MeasuredMemory
from dld_tui.core.model.inputs.shapes import AnyArray
from dld_tui.core.report.formats.json_stream import ArrayReader

_KERNEL = "_kernel_time"
_Kernel: TypeAlias = "tuple[int, str, Mapping[str, str | int]]"
"""Microseconds, the node, and the state of memory after it."""


def measured_memory(
    model: Path, settings: SessionSettings, inputs: Mapping[str, AnyArray]
) -> MeasuredMemory:
    """Run a model once in a session of its own.

    Memory patterns are off: with them, the allocator hands out one block for all activations.

    Args:
        settings: Of a session on the CPU.
        inputs: Values by the names of the inputs.

    Raises:
        InputError: The model cannot be read.
        ActivityError: The model cannot be run, or this version of ONNX Runtime does not record
            memory in its profile.
    """
    [kernels] = _kernels_by_run(model, settings, [inputs])
    _, _, first = min(kernels, key=itemgetter(0))
    weights, (peak, at) = _before(first, "in_use"), _peak(kernels)
    return MeasuredMemory(
        peak=peak,
        at=at,
        in_use=max(int(arguments["mem_in_use_peak"]) for _, _, arguments in kernels) - weights,
        held=max(int(arguments["mem_arena_held"]) for _, _, arguments in kernels),
    )


def peaks_of_runs(
    model: Path, settings: SessionSettings, inputs: Iterable[Mapping[str, AnyArray]]
) -> list[int]:
    """Return the most bytes of activations that were asked for after a node, of a run each.

    Args:
        settings: Of a session on the CPU, which makes all runs.
        inputs: Values by the names of the inputs, for each run.

    Raises:
        InputError: The model cannot be read.
        ActivityError: As of :func:`measured_memory`.
    """
    return [_peak(kernels)[0] for kernels in _kernels_by_run(model, settings, inputs)]


def _kernels_by_run(
    model: Path, settings: SessionSettings, inputs: Iterable[Mapping[str, AnyArray]]
) -> list[list[_Kernel]]:
    """Return the nodes of each run with their start, name, and the state of memory after them."""
    with temporary_folder("arena") as folder:
        recording = replace(settings, profile_prefix=folder / "run", memory_pattern=False)
        session, runs = Session(model, recording), 0
        for values in inputs:
            session.try_once(session.feed(values))
            runs += 1
        events: list[Any] = list(ArrayReader(session.end_profiling()).objects())
    found: list[list[_Kernel]] = [[]]
    for event in events:
        if event.get("name") == "model_run":  # it comes after the nodes of the run
            found.append([])
        if (
            event.get("cat") == "Node"
            and event.get("name", "").endswith(_KERNEL)
            and "mem_bytes_requested_in_use" in event.get("args", {})
        ):
            name = event["name"].removesuffix(_KERNEL)
            found[-1].append((event["ts"], name, event["args"]))
    found = [kernels for kernels in found if kernels]
    if len(found) < runs:
        raise ActivityError(
            f"ONNX Runtime {version()} does not record memory in its profile", where=str(model)
        )
    return found


def _peak(kernels: Sequence[_Kernel]) -> tuple[int, str]:
    """Return the most bytes of activations in a run, and the node after which they are."""
    _, _, first = min(kernels, key=itemgetter(0))
    _, at, highest = max(kernels, key=lambda kernel: _bytes(kernel[2], "requested_in_use"))
    return _bytes(highest, "requested_in_use") - _before(first, "requested_in_use"), at


def _bytes(arguments: Mapping[str, str | int], kind: str) -> int:
    return int(arguments[f"mem_bytes_{kind}"])


def _before(arguments: Mapping[str, str | int], kind: str) -> int:
    """Return the bytes before a node, from those after it."""
    return _bytes(arguments, kind) - int(arguments[f"mem_{kind}_delta"])
