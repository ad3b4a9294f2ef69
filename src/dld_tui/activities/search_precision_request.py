"""The settings of a precision search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.accuracy.engine_settings import EngineSettings
from dld_tui.core.accuracy.tolerance import about_atol, about_rtol, about_tolerance
from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.shapes import about_inputs, about_seed, about_shape
from dld_tui.core.params import param

_OWN_PRECISIONS = ("fp16", "bf16", "trust")
"""Settings of engines that mean nothing to a search."""


@dataclass(frozen=True)
class SearchSettings:
    """Which model, to which precision, and how good it has to be."""

    model: Path = param(
        label="Model", help="The ONNX model.", kind="file", positional=True, metavar="MODEL"
    )
    precision: str = param(
        "fp16",
        label="Precision",
        help="What all nodes that can are to compute in.",
        choices=("fp16", "bf16", "int8"),
        spellings=("--search", "--precision"),
    )
    tolerance: tuple[str, ...] = param(
        (),
        **about_tolerance(
            help="What outputs may be off: atol=1e-3,rtol=1e-2 or cosine=0.999 or snr=30 for all,"
            " NAME:atol=… for one."
        ),
    )
    atol: float = param(1e-2, **about_atol())
    rtol: float = param(1e-2, **about_rtol())
    calibration: Path | None = param(
        None,
        label="Calibration",
        help="For int8: folder with input_0.pb, … or NAME.npy, or with folders of these,"
        " test_data_set_0, …. Outputs are compared for the first ones if --inputs gives no others.",
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
        empty="none",
    )
    runtime: str = param(
        "onnxruntime",
        label="For",
        help="For int8: what is to run the result; tensorrt takes symmetric types and no quantized"
        " biases.",
        choices=("onnxruntime", "tensorrt"),
        spellings=("--for",),
    )
    method: str = param(
        "minmax",
        label="Method",
        help="For int8: how the ranges of activations are found.",
        choices=("minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    inputs: Path | None = param(None, **about_inputs())
    shape: tuple[str, ...] = param((), **about_shape())
    seed: int = param(0, **about_seed())
    backend: str = param(
        "onnxruntime",
        label="Tried by",
        help="What runs the trials; TensorRT builds an engine for each. ONNX Runtime computes what"
        " is right.",
        choices=("onnxruntime", "tensorrt"),
        words=(("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--backend",),
    )
    provider: str = param(
        "CPU",
        label="Provider",
        help="Execution provider. On the CPU values are rounded to the precision between nodes.",
        spellings=("--provider",),
        metavar="NAME",
    )
    most_trials: int | None = param(
        None,
        label="Most trials",
        help="Stop after so many; what was tried is kept for the next time.",
        spellings=("--most-trials",),
        minimum=1,
        metavar="N",
        empty="until the result is certain",
    )
    script: Path | None = param(
        None,
        label="Script",
        help="Where to write the edit script that assigns the precisions; for int8 the names of the"
        " nodes to leave in floating point, which dld convert quantize --exclude-from takes.",
        spellings=("--script",),
        kind="output",
        metavar="FILE",
    )
    estimate_only: bool = param(
        False,
        label="Estimate",
        help="Only say how long it would take, from one trial.",
        spellings=("--estimate",),
    )
    again: bool = param(
        False,
        label="From the start",
        help="Forget the trials of an earlier search.",
        spellings=("--from-start",),
    )


# The fields of the last base come first.
@dataclass(frozen=True)
class Request(EngineSettings, SearchSettings):
    """Which model, to which precision, how good it has to be, and how engines are built."""

    def require(self) -> None:
        """Refuse settings that do not go together, before anything is opened.

        Raises:
            UsageError: Says which.
        """
        for name in _OWN_PRECISIONS:
            if getattr(self, name):
                raise UsageError(f"--{name} does not go with --search")
        if self.precision == "int8":
            if self.calibration is None:
                raise UsageError("--search int8 needs --calibration DIR")
            if self.backend == "tensorrt" or self.provider != "CPU":
                raise UsageError("--search int8 is tried by ONNX Runtime on the CPU")
        elif self.calibration is not None:
            raise UsageError("--calibration is for --search int8")
        if self.backend != "tensorrt" and self.engine_options:
            raise UsageError(
                f"{self.engine_options[0]} is for TensorRT", hint="Give --backend tensorrt"
            )
