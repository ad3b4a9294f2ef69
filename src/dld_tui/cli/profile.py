"""``dld profile``: one command a backend."""

from __future__ import annotations

from dld_tui.cli.lazy import LazyGroup
from dld_tui.cli.table import CommandInfo

command = LazyGroup(
    (
        CommandInfo("onnxruntime", "Profile with ONNX Runtime.", "dld_tui.cli.profile_onnxruntime"),
        CommandInfo("tensorrt", "Profile with TensorRT.", "dld_tui.cli.profile_tensorrt"),
    ),
    name="profile",
    help="Measure the latency of a model and of each of its layers.",
    no_args_is_help=False,
)
