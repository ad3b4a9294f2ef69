"""The settings of a build: types of layers, and which tactics are tried."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param


@dataclass(frozen=True)
class PrecisionSettings:
    """Types that layers may run in."""

    typing: str = param(
        "default",
        label="Typing mode",
        help="Who decides on the types of layers: the builder (default), the model alone (strong),"
        " or precisions set on layers, which the builder must obey or may prefer.",
        choices=("default", "strong", "obey", "prefer"),
        words=(("none", "default"),),
        spellings=("--typing", "--precisionConstraints", "--precision-constraints"),
        flags=(("--stronglyTyped", "strong"), ("--strongly-typed", "strong")),
        page="Precision",
    )
    tf32: bool = param(
        True,
        label="TF32",
        help="Let FP32 layers run with the 10 bits of mantissa of TF32.",
        spellings=("--tf32",),
        flags=(("--noTF32", False),),
        page="Precision",
    )
    fp16: bool = param(
        False,
        label="FP16",
        help="Let layers run in FP16.",
        spellings=("--fp16",),
        flags=(("--best", True),),
        page="Precision",
    )
    bf16: bool = param(
        False,
        label="BF16",
        help="Let layers run in BF16.",
        spellings=("--bf16",),
        flags=(("--best", True),),
        page="Precision",
    )
    int8: bool = param(
        False,
        label="INT8",
        help="Let layers run in INT8. Needs a quantized model, a calibration cache or inputs to"
        " calibrate with.",
        spellings=("--int8",),
        flags=(("--best", True),),
        page="Precision",
    )
    fp8: bool = param(
        False,
        label="FP8",
        help="Let layers run in FP8.",
        spellings=("--fp8",),
        page="Precision",
    )
    int4: bool = param(
        False,
        label="INT4",
        help="Let weights be INT4.",
        spellings=("--int4",),
        page="Precision",
    )
    layer_precision: tuple[str, ...] = param(
        (),
        label="Layer precisions",
        help="Precision of a layer, as NAME:fp16; a name may hold one *. Comes after what the model"
        " says of its layers.",
        spellings=("--layer-precision", "--layerPrecisions", "--layer-precisions"),
        metavar="NAME:TYPE",
        page="Precision",
    )
    layer_output_type: tuple[str, ...] = param(
        (),
        label="Output types",
        help="Types of a layer's outputs, as NAME:fp16+fp32; a name may hold one *.",
        spellings=("--layer-output-type", "--layerOutputTypes"),
        metavar="NAME:TYPE",
        page="Precision",
    )
    calibration_cache: Path | None = param(
        None,
        label="Calibration cache",
        help="Ranges of tensors for INT8: read when the file exists, else written.",
        kind="file",
        spellings=("--calibration-cache", "--calib"),
        metavar="FILE",
        page="Precision",
    )
    calibration_inputs: Path | None = param(
        None,
        label="Calibration inputs",
        help="Folder with sets of inputs to calibrate INT8 with.",
        kind="folder",
        spellings=("--calibration-inputs",),
        metavar="DIR",
        page="Precision",
    )
    strict_nans: bool = param(
        False,
        label="Strict NaNs",
        help="Keep to IEEE 754 for NaN, which rules some optimisations out.",
        spellings=("--strict-nans",),
        page="Precision",
    )


@dataclass(frozen=True)
class TacticSettings:
    """Which implementations of layers are tried."""

    sparsity: str = param(
        "disable",
        label="Sparsity",
        help="Try tactics for weights of which two in four are zero; force makes them so.",
        choices=("disable", "enable", "force"),
        spellings=("--sparsity",),
        flags=(("--sparse-weights", "enable"),),
        page="Tactics",
    )
    tactic_sources: tuple[str, ...] = param(
        (),
        label="Tactic sources",
        help="Source to add to the defaults or to take away, as +CUBLAS or -CUDNN. Without a sign:"
        " only these; NONE is no source.",
        spellings=("--tactic-source", "--tacticSources", "--tactic-sources"),
        metavar="SOURCE",
        page="Tactics",
        of_model=False,
    )
    native_instance_norm: bool = param(
        True,
        label="Native norm",
        help="Parse InstanceNormalization to a native layer; off for the plugin.",
        spellings=("--native-instance-norm",),
        flags=(("--pluginInstanceNorm", False), ("--pi", False), ("--plugin-instancenorm", False)),
        page="Tactics",
    )
    direct_io: bool = param(
        False,
        label="Direct IO",
        help="Put no reformatting at inputs and outputs of a given format.",
        spellings=("--direct-io", "--directIO"),
        page="Tactics",
    )
    tactic_replay: Path | None = param(
        None,
        label="Tactic replay",
        help="Take the tactics that this file names, and fail where the library has them no more."
        " For libraries with an algorithm selector, TensorRT 8 to 10.",
        kind="file",
        spellings=("--tactic-replay", "--load-tactics"),
        metavar="FILE",
        page="Tactics",
    )
    save_tactics: Path | None = param(
        None,
        label="Record tactics",
        help="Where to write the tactics that are taken, as a file to replay.",
        kind="output",
        spellings=("--save-tactics",),
        metavar="FILE",
        page="Tactics",
    )
    preview_features: tuple[str, ...] = param(
        (),
        label="Preview features",
        help="Feature to add or to take away, as +NAME or -NAME.",
        spellings=("--preview-feature", "--preview", "--preview-features"),
        metavar="NAME",
        page="Tactics",
        of_model=False,
    )
