"""What every conversion is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.statistics import ToleranceSettings, parse_tolerances
from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.settings import VERIFIED_HELP, InputSettings
from dld_tui.core.params import like, param

_PAGE = "Verification"


class _Settings:
    def require(self) -> None:
        """Refuse settings that do not go together, before anything is opened.

        Raises:
            UsageError: Says which.
        """


def _about_output(text: str) -> dict[str, Any]:
    """Return the declaration of the file that a conversion writes."""
    return {
        "label": "Output", "help": text, "kind": "output", "beside": ("{name}.data",),
        "spellings": ("-o", "--output"), "metavar": "OUT",
    }  # fmt: skip


@dataclass(frozen=True)
class _Files(_Settings):
    model: Path = param(label="Model", help="The ONNX model.", kind="file", positional=True)
    output: Path | None = param(
        None, **_about_output("The file to write; not needed where nothing is written.")
    )


@dataclass(frozen=True, kw_only=True)
class PreviewedRequest(_Files):
    """The settings of conversions that can also say what they would do, and write nothing."""

    in_place: bool = param(
        False,
        label="In place",
        help="The output may be the model itself, which is replaced in one step.",
        spellings=("--in-place",),
    )


@dataclass(frozen=True)
class ConversionRequest(PreviewedRequest):
    """The settings that all conversions have."""

    output: Path = param(**_about_output("The file to write."))


@dataclass(frozen=True)
class ValueVerification(_Settings):
    """How the result of a conversion is verified before it is written."""

    verify: bool = param(
        True,
        label="Verify",
        help="Load and run the result with ONNX Runtime before it is written.",
        spellings=("--verify",),
        page=_PAGE,
    )
    values: str = param(
        "auto",
        label="Values",
        help="Whether to compare the results with those of the original; auto: with up to 67 MB of"
        " weights.",
        choices=("auto", "always", "never"),
        spellings=("--values",),
        page=_PAGE,
    )
    shape: tuple[str, ...] = like(InputSettings, "shape", help=VERIFIED_HELP, page=_PAGE)
    inputs: Path | None = like(InputSettings, "inputs", page=_PAGE)
    tolerance: tuple[str, ...] = like(ToleranceSettings, "tolerance", page=_PAGE)

    def require(self) -> None:
        """Refuse tolerances that make no sense.

        Raises:
            UsageError: Says which.
        """
        super().require()
        parse_tolerances(self.tolerance)


@dataclass(frozen=True)
class Verification(ValueVerification):
    """For conversions that may change how long a model takes, too."""

    measure: bool = param(
        True,
        label="Latency",
        help="Measure both models on the CPU of this machine for a moment.",
        spellings=("--measure",),
        page=_PAGE,
    )


@dataclass(frozen=True)
class Repair(Verification):
    """For conversions that can leave nodes as they were."""

    repair: bool = param(
        False,
        label="Repair",
        help="Where outputs are not near enough, leave the nodes that cause it as they were.",
        spellings=("--repair",),
        page=_PAGE,
    )

    def require(self) -> None:
        """Refuse a repair without a comparison.

        Raises:
            UsageError: Values are not to be compared.
        """
        super().require()
        if self.repair and (self.values == "never" or not self.verify):
            raise UsageError("--repair needs the values to be compared")


@dataclass(frozen=True)
class QuantizationSettings:
    """What is quantized, and how."""

    list_only: bool = param(
        False,
        label="List",
        help="Only list the tensors that static quantization would give QuantizeLinear and"
        " DequantizeLinear; needs no calibration.",
        spellings=("--list",),
    )
    calibration: Path | None = param(
        None,
        label="Calibration",
        help="Folder with input_0.pb, … or NAME.npy, or with folders test_data_set_0, … of these.",
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    dynamic: bool = param(
        False,
        label="Dynamic",
        help="Compute the scales of activations while the model runs; needs no calibration.",
        spellings=("--dynamic",),
    )
    weights_only: bool = param(
        False,
        label="Weights only",
        help="Store the weights of matrix products in blocks of 4 or 8 bits and compute in floating"
        " point; needs no calibration.",
        spellings=("--weights-only",),
    )
    runtime: str = param(
        "onnxruntime",
        label="For",
        help="What is to run the result; tensorrt takes symmetric types and no quantized biases.",
        choices=("onnxruntime", "tensorrt"),
        words=(("cpu", "onnxruntime"), ("ort", "onnxruntime"), ("trt", "tensorrt")),
        spellings=("--for",),
    )
    weights: str = param(
        "int8",
        label="Weights",
        help="Element type of weights.",
        choices=("int8", "uint8", "int4", "uint4", "int16", "uint16", "fp8"),
        spellings=("--weights",),
    )
    activations: str = param(
        "int8",
        label="Activations",
        help="Element type of activations.",
        choices=("int8", "uint8", "int16", "uint16", "fp8"),
        spellings=("--activations",),
    )
    block: int = param(
        128,
        label="Block size",
        help="How many weights have a scale in common, with weights only.",
        minimum=16,
        maximum=256,
        spellings=("--block",),
        metavar="N",
    )
    format: str = param(
        "auto",
        label="Format",
        help="With weights only: matmulnbits, ONNX Runtime's operator, or dequantize,"
        " DequantizeLinear in blocks, which opset 21 has; auto: what it is for takes.",
        choices=("auto", "matmulnbits", "dequantize"),
        spellings=("--format",),
    )
    rounding: str = param(
        "nearest",
        label="Rounding",
        help="With weights only: to the nearest level, or k-quant, which looks for the scale and"
        " zero point of each block with the least weighted error (uint4).",
        choices=("nearest", "k-quant"),
        spellings=("--rounding",),
    )
    lm_head: bool = param(
        False,
        label="lm_head",
        help="With weights only: also the product that makes the logits.",
        spellings=("--lm-head",),
    )
    method: str = param(
        "auto",
        label="Method",
        help="How ranges are found; auto: minmax, and the best of all where values come out wrong.",
        choices=("auto", "minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    ops: tuple[str, ...] = param(
        (),
        label="Operators",
        help="Quantize only these operators, separated by commas. By default all that can be, and"
        " of dynamic quantization those that make the model faster here.",
        spellings=("--ops",),
        metavar="OP,OP",
    )
    exclude: tuple[str, ...] = param(
        (),
        label="Exclude",
        help="Name of a node that is not quantized; * stands for any characters.",
        spellings=("--exclude",),
        metavar="NAME",
    )
    exclude_from: Path | None = param(
        None,
        label="Exclude from",
        help="Text file with the name of such a node on each line, as dld accuracy --search int8"
        " --script writes it.",
        kind="file",
        spellings=("--exclude-from",),
        metavar="FILE",
    )
    per_channel: bool = param(
        True,
        label="Per channel",
        help="A scale for each channel of a weight, where the model's opset has that.",
        spellings=("--per-channel",),
    )
    reduce_range: bool = param(
        False,
        label="Reduced range",
        help="7 bits for weights, for processors without VNNI.",
        spellings=("--reduce-range",),
    )

    @property
    def stored_as(self) -> str:
        """How weights of few bits are stored: ``matmulnbits`` or ``dequantize``."""
        if self.format != "auto":
            return self.format
        return "dequantize" if self.runtime == "tensorrt" else "matmulnbits"


@dataclass(frozen=True)
class HalfRequest(Repair, ConversionRequest):
    """Which model becomes one in 16 bits, and what stays in float32."""

    keep_io_types: bool = param(
        False,
        label="Keep I/O types",
        help="Inputs and outputs of the model stay float32.",
        spellings=("--keep-io-types",),
    )
    op_block: tuple[str, ...] = param(
        (),
        label="Blocked operators",
        help="Operators that stay in float32, separated by commas.",
        spellings=("--op-block",),
        metavar="OP,OP",
    )
    node_block: tuple[str, ...] = param(
        (),
        label="Blocked nodes",
        help="Name of a node that stays in float32; * stands for any characters.",
        spellings=("--node-block",),
        metavar="NAME",
    )
    range_check: bool = param(
        False,
        label="Range check",
        help="List all weights with values that the type cannot hold.",
        spellings=("--range-check",),
    )
