"""What the arena of ONNX Runtime's CPU provider hands out in a run, from ONNX Runtime's profile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from dld_tui.backends.onnxruntime.runtime import version
from dld_tui.backends.onnxruntime.session import Session, SessionSettings
from dld_tui.core.cost.memory import MeasuredMemory
from dld_tui.core.errors import ActivityError
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.inputs.shapes import AnyArray
from dld_tui.core.report.formats.json_stream import ArrayReader

_KERNEL = "_kernel_time"


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
    with temporary_folder("arena") as folder:
        recording = replace(settings, profile_prefix=folder / "run", memory_pattern=False)
        session = Session(model, recording)
        session.try_once(session.feed(inputs))
        events: list[Any] = list(ArrayReader(session.end_profiling()).objects())
    kernels = [
        (event["ts"], event["name"].removesuffix(_KERNEL), event["args"])
        for event in events
        if event.get("cat") == "Node" and event.get("name", "").endswith(_KERNEL)
        and "mem_bytes_requested_in_use" in event.get("args", {})
    ]  # fmt: skip
    if not kernels:
        raise ActivityError(
            f"ONNX Runtime {version()} does not record memory in its profile", where=str(model)
        )
    _, _, first = min(kernels, key=itemgetter(0))
    requested, weights = _before(first, "requested_in_use"), _before(first, "in_use")
    _, at, highest = max(kernels, key=lambda kernel: _bytes(kernel[2], "requested_in_use"))
    return MeasuredMemory(
        peak=_bytes(highest, "requested_in_use") - requested,
        at=at,
        in_use=max(int(arguments["mem_in_use_peak"]) for _, _, arguments in kernels) - weights,
        held=max(int(arguments["mem_arena_held"]) for _, _, arguments in kernels),
    )


def _bytes(arguments: Mapping[str, str | int], kind: str) -> int:
    return int(arguments[f"mem_bytes_{kind}"])


def _before(arguments: Mapping[str, str | int], kind: str) -> int:
    """Return the bytes before a node, from those after it."""
    return _bytes(arguments, kind) - int(arguments[f"mem_{kind}_delta"])
