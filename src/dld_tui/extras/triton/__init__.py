"""Model repositories for Triton Inference Server."""

from __future__ import annotations

from dld_tui.core.command_line import CommandInfo

COMMAND = CommandInfo(
    "triton",
    "Write a Triton model repository.",
    "dld_tui.extras.triton.command",
    example="model.onnx -o models",
    group="TensorRT",
)
