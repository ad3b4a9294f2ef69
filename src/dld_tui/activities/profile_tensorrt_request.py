"""The settings of a profiling run with TensorRT."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.errors import UsageError
from dld_tui.core.tensorrt.settings import ENGINE_SUFFIXES as ENGINE_SUFFIXES
from dld_tui.core.tensorrt.settings import RunSettings


@dataclass(frozen=True)
class Request(RunSettings):
    """What to build or to load, and how to measure it."""

    def require(self) -> None:
        """Refuse settings that exclude each other, before anything is loaded.

        Raises:
            UsageError: Says which.
        """
        if self.inputs is not None and self.shape:
            raise UsageError("--shape does not go with --inputs, whose data have shapes")
        if self.refit_engine and (self.prebuilt is None or self.onnx is None):
            raise UsageError("--refit-from-model needs a model and --engine")
        if self.prebuilt is not None and self.output is not None:
            raise UsageError("--save-engine does not go with an engine that is built already")
