"""All settings of a profiling run with TensorRT: of the build, the measurement, and the report."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param
from dld_tui.core.tensorrt.settings import BuildSettings, MeasureSettings
from dld_tui.core.tensorrt.shape_texts import plain_texts
from dld_tui.core.tensorrt.values import split_items

ENGINE_SUFFIXES = (".engine", ".plan", ".trt")
"""Names that an engine is known by."""


@dataclass(frozen=True)
class RunSettings(MeasureSettings, BuildSettings):
    """What to build or to load, and how to measure it."""

    model: Path = param(
        label="Model",
        help="The ONNX model, or an engine.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Keep the engine",
        help="Where to keep the engine that is built. By default it is not kept.",
        kind="output",
        spellings=("--save-engine", "--saveEngine"),
        metavar="ENGINE",
    )
    report: Path | None = param(
        None,
        label="Report",
        help="Where to write the report. By default NAME.dldprof in the current folder, with a"
        " number where that exists.",
        kind="output",
        spellings=("--output", "-o"),
        suffix=".dldprof",
        metavar="REPORT",
    )
    engine: Path | None = param(
        None,
        label="Prebuilt engine",
        help="Measure this engine of the model instead of building one.",
        kind="file",
        spellings=("--engine", "--loadEngine", "--load-engine"),
        metavar="ENGINE",
    )
    trust: bool = param(
        False,
        label="Trust the engine",
        help="Load a prebuilt engine. An engine can hold code: load only those that you trust.",
        spellings=("--trust",),
    )
    refit_engine: bool = param(
        False,
        label="Refit",
        help="Give a prebuilt engine the weights of the model, where it can be refitted.",
        spellings=("--refit-from-model", "--refitFromOnnx"),
        page="Refit",
    )

    def __post_init__(self) -> None:
        """Bring the values to their plain form.

        Raises:
            UsageError: A size, a shape or a list cannot be read.
        """
        super().__post_init__()
        object.__setattr__(self, "shape", plain_texts(self.shape, "--shape"))
        files = tuple(item for text in self.load_inputs for item in split_items(text))
        object.__setattr__(self, "load_inputs", files)

    @property
    def prebuilt(self) -> Path | None:
        """The engine to load; None when one is built."""
        if self.engine is None and self.model.suffix.lower() in ENGINE_SUFFIXES:
            return self.model
        return self.engine

    @property
    def onnx(self) -> Path | None:
        """The model; None when only an engine is given."""
        return None if self.prebuilt == self.model else self.model
