"""The settings of a build with TensorRT."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.tensorrt.settings import BuildSettings


@dataclass(frozen=True)
class Request(BuildSettings):
    """What to build, and how."""
