"""What a profiling run with ONNX Runtime shall do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.backends.gpu_capture import GpuPlan
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.core.latency import Extent
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Plan:
    """What to run and how long."""

    model: Path
    report: Path
    """Replaced if it exists."""
    session: SessionSettings
    shapes: tuple[str, ...]
    """As :func:`dld_tui.core.inputs.shapes.parse_shapes` takes them."""
    inputs: Path | None
    """A folder of data; None for random ones."""
    seed: int
    warm_up_passes: int
    warm_up_seconds: float
    timed: Extent
    layer_passes: int | None
    """None for a sensible number; 0 for no layers."""
    recorded_settings: dict[str, JSON]
    gpu: GpuPlan | None = None
    """What to capture of a GPU; None when the model runs on none."""
    io_binding: bool = False
    """Inputs and outputs stay on the device, so that latency is without copies."""
    optimized_model: Path | None = None
    """Where to save the optimised model; replaced if it exists."""
