"""The search for the build route, knobs of TensorRT's compiler, with the fastest engine."""

from __future__ import annotations

from dld_tui.core.command_line import CommandInfo

COMMAND = CommandInfo(
    "routes",
    "Find the fastest TensorRT build route.",
    activity="routes",
    example="model.onnx",
    group="TensorRT",
)
