"""Settings that all conversions share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.tensor_errors import ToleranceSettings, parse_tolerances
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.inputs.settings import VERIFIED_HELP, InputSettings
from dld_tui.core.params import OneOf, like, param, when
from dld_tui.core.types import JSON

_PAGE = "Verification"
_METHOD = OneOf(
    "Method",
    "dynamic computes the scales of activations at run time; weights only stores MatMul weights in"
    " few bits and computes in floating point; static needs sample inputs.",
    otherwise="static",
    first="dynamic",
)
"""How a form asks for it; a command needs a flag or samples."""


def _is_static(values: Mapping[str, JSON]) -> bool:
    return not (values.get("dynamic") or values.get("weights_only"))


def _is_calibrated(values: Mapping[str, JSON]) -> bool:
    return _is_static(values) and not values.get("list_only")


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
        None, **_about_output("The file to write; not needed with options that write nothing.")
    )


@dataclass(frozen=True, kw_only=True)
class PreviewedRequest(_Files):
    """The settings of conversions that can also say what they would do, and write nothing."""

    in_place: bool = param(
        False,
        label="In place",
        help="Allow the output to replace the model itself, atomically.",
        spellings=("--in-place",),
    )

    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit | None:
        """Return the edit that does the same, where there is one.

        Otherwise the result replaces the model.

        Args:
            keep: Returns the argument that stands for the file of another model.
        """
        return None


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
        help="Load and run the result with ONNX Runtime before writing it.",
        spellings=("--verify",),
        page=_PAGE,
    )
    values: str = param(
        "auto",
        label="Values",
        applies=when("verify", True),
        help="Compare the outputs with those of the original. auto: only up to 67 MB of weights.",
        choices=("auto", "always", "never"),
        spellings=("--values",),
        page=_PAGE,
    )
    shape: tuple[str, ...] = like(
        InputSettings, "shape", help=VERIFIED_HELP, page=_PAGE, applies=when("verify", True)
    )
    inputs: Path | None = like(InputSettings, "inputs", page=_PAGE, applies=when("verify", True))
    tolerance: tuple[str, ...] = like(
        ToleranceSettings, "tolerance", page=_PAGE, applies=when("verify", True)
    )
    keep_wrong: bool = param(
        False,
        label="Keep wrong",
        applies=when("verify", True),
        help="Write the result even if outputs are outside the tolerance.",
        spellings=("--keep-wrong",),
        page=_PAGE,
    )

    def require(self) -> None:
        """Refuse tolerances that make no sense.

        Raises:
            UsageError: Says which.
        """
        super().require()
        parse_tolerances(self.tolerance)


@dataclass(frozen=True, kw_only=True)
class EditRequest(ValueVerification, ConversionRequest, ABC):
    """Of conversions that make one edit of a document."""

    @abstractmethod
    def as_edit(self, keep: Callable[[Path], JSON]) -> Edit:
        """Return the edit."""


@dataclass(frozen=True)
class Verification(ValueVerification):
    """For conversions that may change how long a model takes, too."""

    measure: bool = param(
        True,
        label="Latency",
        decides=False,
        applies=when("verify", True),
        help="Measure the latency of both models briefly on this CPU.",
        spellings=("--measure",),
        page=_PAGE,
    )


@dataclass(frozen=True)
class Repair(Verification):
    """For conversions that can leave nodes as they were."""

    repair: bool = param(
        False,
        label="Repair",
        applies=when("verify", True),
        help=(
            "If outputs are outside the tolerance, keep the nodes that cause it in their "
            "original type."
        ),
        spellings=("--repair",),
        page=_PAGE,
    )
    limit: float | None = param(
        None,
        label="Repair limit",
        decides=False,
        applies=when("repair", True),
        help="Start no trial of --repair after this time. The same command resumes it.",
        unit="s",
        minimum=0,
        spellings=("--limit",),
        metavar="S",
        empty="20 s, or 120 s to quantize",
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
        if self.limit is not None and not self.repair:
            raise UsageError("--limit is for --repair")


@dataclass(frozen=True)
class QuantizationSettings:
    """What is quantized, and how."""

    dynamic: bool = param(
        False,
        label="dynamic",
        one_of=_METHOD,
        help=(
            "Dynamic quantization: compute scales of activations at run time; needs no calibration."
        ),
        spellings=("--dynamic",),
    )
    weights_only: bool = param(
        False,
        label="weights only",
        one_of=_METHOD,
        help=(
            "Weight-only quantization: store MatMul weights in blocks of 4 or 8 bits and "
            "compute in floating point; needs no calibration."
        ),
        spellings=("--weights-only",),
    )
    calibration: Path | None = param(
        None,
        label="Calibration",
        applies=_is_calibrated,
        help="Folder with input_0.pb, … or NAME.npy, or with subfolders test_data_set_0, ….",
        kind="folder",
        spellings=("--calibration",),
        metavar="DIR",
    )
    runtime: str = param(
        "onnxruntime",
        label="For",
        help="Backend of the result. tensorrt uses symmetric types and no quantized biases.",
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
        applies=_is_static,
        help="Element type of activations.",
        choices=("int8", "uint8", "int16", "uint16", "fp8"),
        spellings=("--activations",),
    )
    block: int = param(
        128,
        label="Block size",
        applies=when("weights_only", True),
        help="Number of weights that share a scale (weight-only).",
        minimum=16,
        maximum=256,
        spellings=("--block",),
        metavar="N",
    )
    format: str = param(
        "auto",
        label="Format",
        applies=when("weights_only", True),
        help=(
            "Weight-only: matmulnbits uses ONNX Runtime's MatMulNBits, dequantize uses blocked "
            "DequantizeLinear (opset 21). auto depends on the backend."
        ),
        choices=("auto", "matmulnbits", "dequantize"),
        spellings=("--format",),
    )
    rounding: str = param(
        "nearest",
        label="Rounding",
        applies=when("weights_only", True),
        help=(
            "Weight-only: round to the nearest level, or k-quant, which minimises the weighted "
            "error of each block (uint4)."
        ),
        choices=("nearest", "k-quant"),
        spellings=("--rounding",),
    )
    lm_head: bool = param(
        False,
        label="lm_head",
        applies=when("weights_only", True),
        help="Weight-only: also quantize the MatMul that computes the logits.",
        spellings=("--lm-head",),
    )
    method: str = param(
        "auto",
        label="Calibration method",
        applies=_is_calibrated,
        help=(
            "Calibration method. auto: minmax, or the best of all if outputs are outside the "
            "tolerance."
        ),
        choices=("auto", "minmax", "entropy", "percentile"),
        spellings=("--method",),
    )
    ops: tuple[str, ...] = param(
        (),
        label="Operators",
        help=(
            "Quantize only these operators, separated by commas. By default all supported ones; "
            "dynamic quantization takes those that run faster here."
        ),
        spellings=("--ops",),
        metavar="OP,OP",
    )
    exclude: tuple[str, ...] = param(
        (),
        label="Exclude",
        help=(
            "Do not quantize the node with this name, or that makes a tensor of this name; * "
            "matches any characters."
        ),
        spellings=("--exclude",),
        metavar="NAME",
    )
    exclude_from: Path | None = param(
        None,
        label="Exclude from",
        help=(
            "Text file with the names of nodes to exclude, one per line, as dld accuracy "
            "--search int8 --script writes it."
        ),
        kind="file",
        spellings=("--exclude-from",),
        metavar="FILE",
    )
    per_channel: bool = param(
        True,
        label="Per channel",
        applies=when("weights_only", False),
        help="Use one scale per channel of a weight, if the opset supports it.",
        spellings=("--per-channel",),
    )
    reduce_range: bool = param(
        False,
        label="Reduced range",
        applies=when("weights_only", False),
        help="Use 7 bits for weights, for CPUs without VNNI.",
        spellings=("--reduce-range",),
    )
    list_only: bool = param(
        False,
        label="List only",
        applies=_is_static,
        help=("List the tensors that static quantization would quantize; write nothing."),
        spellings=("--list",),
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
        help="Keep the inputs and outputs of the model in float32.",
        spellings=("--keep-io-types",),
    )
    op_block: tuple[str, ...] = param(
        (),
        label="Blocked operators",
        help="Keep these operators in float32, separated by commas.",
        spellings=("--op-block",),
        metavar="OP,OP",
    )
    node_block: tuple[str, ...] = param(
        (),
        label="Blocked nodes",
        help=(
            "Keep the node with this name, or that makes a tensor of this name, in float32; * "
            "matches any characters."
        ),
        spellings=("--node-block",),
        metavar="NAME",
    )
    range_check: bool = param(
        False,
        label="Range check",
        decides=False,
        help="List all weights with values outside the range of the type.",
        spellings=("--range-check",),
    )
