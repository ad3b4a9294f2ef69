"""What became of the options of a trtexec command in another version."""

from __future__ import annotations

from dataclasses import dataclass

from dld_tui.core.tensorrt.trtexec_options import LAST, SINCE, Version, has_option, version_of
from dld_tui.core.tensorrt.trtexec_parse import command_words
from dld_tui.core.tensorrt.trtexec_print import DEFAULT_ON_IN_11
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_FP16 = (
    "precision lives in the ONNX graph: write it with `dld convert fp16`, or set precisions on"
    " layers and build with `dld build`, which puts the casts in a copy"
)
_QUANTIZE = "quantize the ONNX graph with QuantizeLinear and DequantizeLinear beforehand"
_SHAPES = "give the ranges to --minShapes, --optShapes and --maxShapes alone"
_NO_CALIBRATION = f"calibration is gone: {_QUANTIZE}"
_NETWORK = "only ONNX models are read"
_INSTEAD = {
    "--fp16": _FP16,
    "--bf16": "precision lives in the ONNX graph: set bf16 on layers and build with `dld build`",
    "--int8": _QUANTIZE,
    "--fp8": _QUANTIZE,
    "--int4": _QUANTIZE,
    "--best": f"each type must be in the ONNX graph: {_FP16}; {_QUANTIZE}",
    "--calib": _NO_CALIBRATION,
    "--calibProfile": _NO_CALIBRATION,
    "--minShapesCalib": _SHAPES,
    "--optShapesCalib": _SHAPES,
    "--maxShapesCalib": _SHAPES,
    "--precisionConstraints": "the types of the ONNX graph always hold",
    "--layerPrecisions": "set the precision on the layers of the model; `dld build` then puts the"
    " casts in a copy",
    "--layerOutputTypes": "put Cast nodes after the layers",
    "--weightless": "now --stripWeights",
    "--workspace": "now --memPoolSize=workspace:SIZE, in MiB",
    "--batch": "the batch is a dimension: give it with --shapes",
    "--maxBatch": "the batch is a dimension: give it with --maxShapes",
    "--explicitBatch": "always so; leave it out",
    "--explicitPrecision": "always so; leave it out",
    "--buildOnly": "now --skipInference",
    "--nvtxMode": "now --profilingVerbosity",
    "--minTiming": "use --avgTiming",
    "--heuristic": "use --builderOptimizationLevel=2",
    "--deploy": _NETWORK,
    "--model": _NETWORK,
    "--output": _NETWORK,
    "--uff": _NETWORK,
    "--uffInput": _NETWORK,
    "--uffNHWC": _NETWORK,
}
_RENAMED = ("--weightless", "--workspace", "--buildOnly", "--nvtxMode")
_CHANGED_IN_11 = {
    "--stronglyTyped": "always so now; leave it out",
    "--plugins": "deprecated: use --staticPlugins",
    "--streams": "deprecated: use --infStreams",
    "--directIO": "deprecated",
    "--separateProfileRun": "always so now; leave it out",
    "--allowWeightStreaming": "works without --stronglyTyped",
    "--tacticSources": "cuDNN, cuBLAS and cuBLAS-LT are gone as sources",
    "--inputIOFormats": "the type must be that of the graph's input; the format is free",
    "--outputIOFormats": "the type must be that of the graph's output; the format is free",
}
_DEFAULTS_IN_11 = {
    "use_cuda_graph": "a CUDA graph is used by default",
    "spin_wait": "spin wait is on by default",
    "no_data_transfers": "inputs and outputs are not copied by default: latency is without copies",
}


@dataclass(frozen=True)
class Explained:
    """What became of one option."""

    option: str
    """Foreign text."""
    status: str
    """``kept``, ``changed``, ``renamed``, ``removed``, ``default``, ``newer`` or ``unknown``."""
    text: str

    def to_json(self) -> dict[str, JSON]:
        """Return the line as JSON data."""
        return {"option": self.option, "status": self.status, "text": self.text}


def explain(text: str, version: str = "11") -> list[Explained]:
    """Return what a version of trtexec makes of a command: one line an option, then defaults.

    Args:
        text: A command of trtexec of any version from 8.
        version: The version that is to run it.

    Raises:
        UsageError: It is no command of trtexec.
    """
    found = command_words(text)
    release = version_of(version)
    options = [word.partition("=")[0] for word in found.words if word.startswith("-")]
    lines = [_explained(option, release) for option in dict.fromkeys(options)]
    if release >= (11, 0):
        lines += _defaults(options)
    return lines


def _explained(option: str, release: Version) -> Explained:
    shown = clip(visible(option), 60)
    if option not in SINCE:
        return Explained(shown, "unknown", "trtexec has no such option")
    if SINCE[option] > release:
        return Explained(shown, "newer", f"only since {_text(SINCE[option])}")
    if not has_option(option, release):
        status = "renamed" if option in _RENAMED else "removed"
        instead = _INSTEAD.get(option, "there is nothing in its place")
        return Explained(shown, status, f"gone after {_text(LAST[option])}: {instead}")
    if release >= (11, 0):
        positive = {on: _DEFAULTS_IN_11[name] for name, (on, _) in DEFAULT_ON_IN_11.items()}
        if option in positive:
            return Explained(shown, "changed", f"{positive[option]}; leave it out")
        if option in _CHANGED_IN_11:
            return Explained(shown, "changed", _CHANGED_IN_11[option])
    return Explained(shown, "kept", "")


def _defaults(options: list[str]) -> list[Explained]:
    """Return what a command gets in 11 without having asked for it."""
    lines = []
    for name, (positive, negative) in DEFAULT_ON_IN_11.items():
        if positive not in options and negative not in options:
            text = f"{_DEFAULTS_IN_11[name]}; add this option for figures like those of 10"
            lines.append(Explained(negative, "default", text))
    if "--separateProfileRun" not in options and "--dumpProfile" in options:
        text = "layers are always measured in a run of their own"
        lines.append(Explained("--separateProfileRun", "default", text))
    return lines


def _text(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
