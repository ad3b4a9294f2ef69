"""The settings of a profiling run with TensorRT."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.tensorrt.settings import ENGINE_SUFFIXES as ENGINE_SUFFIXES
from dld_tui.core.tensorrt.settings import RunSettings


@dataclass(frozen=True)
class Request(RunSettings):
    """What to build or to load, and how to measure it."""
