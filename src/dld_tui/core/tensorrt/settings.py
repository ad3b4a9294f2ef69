"""All settings of TensorRT builds, each declared once: one class per form page.

Values given in the ways of trtexec and Polygraphy become the plain form when a request is made, so
that its users see one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.process.paths import unused
from dld_tui.core.tensorrt.trtexec_arguments import (
    device_text,
    mebibytes,
    plain_texts,
    split_items,
    split_profile,
)
from dld_tui.core.types import JSON


def beside_engine(suffix: str) -> Callable[[Mapping[str, JSON]], str]:
    """Return the function that names a file beside the engine, from the values of a form."""

    def name(values: Mapping[str, JSON]) -> str:
        engine = values.get("output") or values.get("model")
        stem = Path(engine).stem if isinstance(engine, str) else "NAME"
        return f"{stem}{suffix} beside the engine"

    return name


@dataclass(frozen=True)
class CommonSettings:
    """The model, the library and the output of a build."""

    model: Path = param(
        label="Model",
        help="The ONNX model.",
        kind="file",
        positional=True,
        metavar="MODEL",
    )
    output: Path | None = param(
        None,
        label="Engine",
        help="Write the engine here. By default NAME.engine in the current folder.",
        kind="output",
        spellings=("--output", "-o", "--saveEngine", "--save-engine"),
        suffix=".engine",
        default_path=lambda request: request.engine_path,
        beside=("{stem}.trt.json", "{stem}.build.json", "{stem}.build.log"),
        metavar="ENGINE",
    )
    library: str = param(
        "auto",
        label="Library",
        help=(
            "tensorrt, tensorrt_rtx, or the folder of another installation. By default tensorrt "
            "if installed, else tensorrt_rtx."
        ),
        spellings=("--library",),
        runs_code=True,
        metavar="NAME",
    )
    layer_info: Path | None = param(
        None,
        label="Layer information",
        help="Write the layer information here. By default NAME.trt.json beside the engine.",
        kind="output",
        spellings=("--layer-info", "--exportLayerInfo"),
        metavar="FILE",
        empty=beside_engine(".trt.json"),
    )
    verbosity: str = param(
        "detailed",
        label="Metadata detail",
        help=(
            "Layer information stored in the engine: detailed, names only, or none. dld plan "
            "needs detailed."
        ),
        choices=("layer_names", "detailed", "none"),
        words=(("layer_names_only", "layer_names"),),
        spellings=("--verbosity", "--profilingVerbosity", "--profiling-verbosity"),
    )
    open_metadata: bool = param(
        False,
        label="Open afterwards",
        decides=False,
        help="Open the engine plan in the user interface after the build.",
        spellings=("--open-metadata",),
    )
    plugins: tuple[str, ...] = param(
        (),
        label="Plugins",
        help="Plugin library that the model needs. Loading it runs its code.",
        spellings=("--plugins", "--staticPlugins"),
        runs_code=True,
        metavar="FILE",
    )
    dynamic_plugins: tuple[str, ...] = param(
        (),
        label="Stored plugins",
        help="Plugin library to store in the engine. Loading it runs its code.",
        spellings=("--dynamic-plugins", "--setPluginsToSerialize"),
        runs_code=True,
        metavar="FILE",
    )
    verbose: bool = param(
        False,
        label="Verbose log",
        help="Log the library's verbose messages.",
        spellings=("--verbose",),
    )
    log: Path | None = param(
        None,
        label="Log",
        help="Write the library's messages here. By default NAME.build.log beside the engine.",
        kind="output",
        spellings=("--log",),
        metavar="FILE",
        empty=beside_engine(".build.log"),
    )

    @property
    def all_plugins(self) -> tuple[str, ...]:
        """The plugin libraries to load: those that the engine stores, too."""
        return (*self.plugins, *self.dynamic_plugins)


@dataclass(frozen=True)
class ProfileSettings:
    """Ranges of input shapes."""

    min_shapes: tuple[str, ...] = param(
        (),
        label="Minimum shapes",
        help=(
            "Minimum shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]. A repeated "
            "input starts the next profile; --profile=N before it selects a profile. For a "
            "shape tensor, give its values."
        ),
        kind="shapes",
        spellings=("--min-shapes", "--minShapes", "--trt-min-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="same as the optimum shape",
    )
    opt_shapes: tuple[str, ...] = param(
        (),
        label="Optimum shapes",
        help="Optimum shape of an input. Alone it also sets the minimum and the maximum.",
        kind="shapes",
        spellings=("--opt-shapes", "--optShapes", "--trt-opt-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="from the model",
    )
    max_shapes: tuple[str, ...] = param(
        (),
        label="Maximum shapes",
        help="Maximum shape of an input.",
        kind="shapes",
        spellings=("--max-shapes", "--maxShapes", "--trt-max-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="same as the optimum shape",
    )
    batch: int | None = param(
        None,
        label="Inferred batch",
        help=(
            "Size of the first dimension of inputs whose only dynamic dimension it is, if "
            "neither the command nor the model gives a range."
        ),
        minimum=1,
        maximum=2**31 - 1,
        spellings=("--batch",),
        metavar="N",
        page="Profiles",
        of_model=True,
        empty="from the input shapes",
    )
    input_formats: tuple[str, ...] = param(
        (),
        label="Input formats",
        help="Type and format of the inputs in order, as fp16:chw; a single value applies to all.",
        spellings=("--input-formats", "--inputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
        empty="as in the model",
    )
    output_formats: tuple[str, ...] = param(
        (),
        label="Output formats",
        help=(
            "Type and format of the outputs in order, as fp32:chw; a single value applies to all."
        ),
        spellings=("--output-formats", "--outputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
        empty="as in the model",
    )


@dataclass(frozen=True)
class DeviceSettings:
    """Where the engine is to run."""

    device: str = param(
        "0",
        label="Device",
        help=(
            "Number of the GPU, or UUID of a GPU or MIG instance (MIG-…). dld doctor lists them."
        ),
        spellings=("--device",),
        metavar="N|UUID",
        page="Device",
    )
    hardware_compatible: str = param(
        "none",
        label="Runs on",
        help="Other GPUs that must be able to run the engine.",
        choices=("none", "ampere_plus", "same_compute_capability"),
        words=(("ampere+", "ampere_plus"), ("sameComputeCapability", "same_compute_capability")),
        spellings=(
            "--hardware-compatible",
            "--hardwareCompatibilityLevel",
            "--hardware-compatibility-level",
        ),
        page="Device",
    )
    compute_capability: tuple[str, ...] = param(
        (),
        label="Compute capability",
        help="Compute capability to build for without the device, such as 8.9 (TensorRT-RTX).",
        spellings=("--compute-capability", "--compute-capabilities", "--computeCapabilities"),
        metavar="X.Y",
        page="Device",
        of_model=False,
        empty="of the building device",
    )
    dla_core: int | None = param(
        None,
        label="DLA core",
        help="DLA core that runs all layers it supports.",
        minimum=0,
        maximum=63,
        spellings=("--dla-core", "--useDLACore"),
        flags=(("--use-dla", 0),),
        metavar="N",
        page="Device",
        empty="none: all layers run on the GPU",
    )
    gpu_fallback: bool = param(
        False,
        label="GPU fallback",
        help="Run layers on the GPU that the DLA does not support.",
        spellings=("--gpu-fallback", "--allowGPUFallback", "--allow-gpu-fallback"),
        page="Device",
    )
    layer_device: tuple[str, ...] = param(
        (),
        label="Layer devices",
        help="Device of a layer, as NAME:DLA or NAME:GPU; a name may contain one *.",
        spellings=("--layer-device", "--layerDeviceTypes"),
        metavar="NAME:DEVICE",
        page="Device",
        empty="chosen by the library",
    )
    adjust_for_dla: bool = param(
        False,
        label="Adjust for DLA",
        help="Transform layers so that the DLA can run more of them. TensorRT 10.16 and newer.",
        spellings=("--adjust-for-dla", "--adjustForDLA"),
        page="Device",
    )
    report_dla: bool = param(
        False,
        label="Only DLA",
        help=(
            "Reject a model with a node that the DLA does not support, and name the node. "
            "TensorRT 10.15 and newer."
        ),
        spellings=("--report-dla", "--reportCapabilityDLA"),
        page="Device",
    )
    dla_uint8: bool = param(
        False,
        label="DLA UINT8",
        help="Allow nonzero zero points and UINT8, for DLA software 3.16 and newer.",
        spellings=("--dla-uint8", "--uint8AsymmetricQuantizationDLA"),
        page="Device",
    )
    runtime_platform: str = param(
        "same_as_build",
        label="Platform",
        help="Platform that runs the engine.",
        choices=("same_as_build", "windows_amd64"),
        words=(("SameAsBuild", "same_as_build"), ("WindowsAMD64", "windows_amd64")),
        spellings=("--platform", "--runtimePlatform", "--runtime-platform"),
        page="Device",
    )


@dataclass(frozen=True)
class OptimizerSettings:
    """How long the builder searches."""

    optimization_level: int | None = param(
        None,
        label="Builder level",
        help=(
            "Builder optimisation level: 0 builds fastest, 5 gives the best engine. By default 3."
        ),
        minimum=0,
        maximum=5,
        spellings=(
            "--optimization-level",
            "--builderOptimizationLevel",
            "--builder-optimization-level",
        ),
        metavar="N",
        page="Optimizer",
        empty="3",
    )
    max_aux_streams: int | None = param(
        None,
        label="Auxiliary streams",
        help="Maximum number of auxiliary CUDA streams for parallel layers.",
        minimum=0,
        maximum=4096,
        spellings=("--max-aux-streams", "--maxAuxStreams"),
        metavar="N",
        page="Optimizer",
        empty="chosen by the library",
    )
    avg_timing: int | None = param(
        None,
        label="Average timings",
        help="Number of timings averaged per tactic.",
        minimum=1,
        maximum=10_000,
        spellings=("--avg-timing", "--avgTiming"),
        metavar="N",
        page="Optimizer",
        empty="chosen by the library",
    )
    max_tactics: int | None = param(
        None,
        label="Maximum tactics",
        help="Maximum number of tactics to time per layer.",
        minimum=1,
        spellings=("--max-tactics", "--maxTactics"),
        metavar="N",
        page="Optimizer",
        empty="chosen by the library",
    )
    tiling_level: int | None = param(
        None,
        label="Tiling level",
        help="0 to 3: effort of the search for tilings.",
        minimum=0,
        maximum=3,
        spellings=("--tiling-level", "--tilingOptimizationLevel", "--tiling-optimization-level"),
        metavar="N",
        page="Optimizer",
        empty="chosen by the library",
    )
    timing_cache: Path | None = param(
        None,
        label="Timing cache",
        help=(
            "Timing cache to read and update. By default one file per library version and GPU "
            "in the cache folder."
        ),
        kind="file",
        spellings=(
            "--timing-cache",
            "--timingCacheFile",
            "--load-timing-cache",
            "--save-timing-cache",
        ),
        metavar="FILE",
        page="Optimizer",
        empty="one per library and GPU, in the cache folder",
    )
    no_timing_cache: bool = param(
        False,
        label="No timing cache",
        help="Do not use a timing cache.",
        spellings=("--no-timing-cache", "--noBuilderCache"),
        page="Optimizer",
    )
    no_compilation_cache: bool = param(
        False,
        label="No compiler cache",
        help="Do not store compiled code in the timing cache.",
        spellings=("--no-compilation-cache", "--noCompilationCache"),
        page="Optimizer",
    )
    editable_timing_cache: bool = param(
        False,
        label="Editable cache",
        help=(
            "Use the tactics in the timing cache, including edited ones, and log measured "
            "tactics. TensorRT 10.8 and newer."
        ),
        spellings=("--editable-timing-cache",),
        page="Optimizer",
    )
    error_on_cache_miss: bool = param(
        False,
        label="Fail on cache miss",
        help="Fail if a tactic is not in the timing cache.",
        spellings=(
            "--error-on-cache-miss",
            "--errorOnTimingCacheMiss",
            "--error-on-timing-cache-miss",
        ),
        page="Optimizer",
    )


@dataclass(frozen=True)
class MemorySettings:
    """Memory of the build and of the engine."""

    workspace: float | None = param(
        None,
        label="Workspace",
        help="Maximum workspace memory; by default all of the device.",
        unit="MiB",
        minimum=0,
        spellings=("--workspace",),
        metavar="MIB",
        page="Memory",
        empty="all device memory",
    )
    memory_pools: tuple[str, ...] = param(
        (),
        label="Other pools",
        help=(
            "Limit of a memory pool, such as dlaSRAM:1M, dlaLocalDRAM:1G, dlaGlobalDRAM:512M or "
            "tacticSharedMem:48K. A number without a unit is in MiB."
        ),
        spellings=("--memory-pool", "--memPoolSize", "--pool-limit", "--memory-pool-limit"),
        metavar="POOL:SIZE",
        page="Memory",
        of_model=False,
        empty="chosen by the library",
    )
    weight_streaming: bool = param(
        False,
        label="Weight streaming",
        help=(
            "Allow the engine to stream weights and use less GPU memory than their size. Needs "
            "strong typing."
        ),
        spellings=("--weight-streaming", "--allowWeightStreaming"),
        page="Memory",
    )
    l2_limit: int | None = param(
        None,
        label="L2 for tiling",
        help="Maximum L2 cache for tilings.",
        unit="bytes",
        minimum=0,
        spellings=("--l2-limit", "--l2LimitForTiling"),
        metavar="BYTES",
        page="Memory",
        empty="chosen by the library",
    )


@dataclass(frozen=True)
class RefitSettings:
    """What an engine can be given later, and by which library it can be read."""

    refit: str = param(
        "none",
        label="Refit",
        help="refit makes weights replaceable; strip also leaves them out of the engine.",
        choices=("none", "refit", "strip"),
        spellings=("--refit-mode",),
        flags=(
            ("--refit", "refit"),
            ("--refittable", "refit"),
            ("--stripWeights", "strip"),
            ("--strip-weights", "strip"),
            ("--strip-plan", "strip"),
            ("--stripAllWeights", "strip"),
            ("--weightless", "strip"),
        ),
        page="Refit",
    )
    version_compatible: bool = param(
        False,
        label="Version compatible",
        help="Build a version-compatible engine, which newer versions of the library can run.",
        spellings=("--version-compatible", "--versionCompatible", "--vc"),
        page="Refit",
    )
    exclude_lean_runtime: bool = param(
        False,
        label="No lean runtime",
        help="Exclude the lean runtime from a version-compatible engine.",
        spellings=("--exclude-lean-runtime", "--excludeLeanRuntime"),
        page="Refit",
    )


@dataclass(frozen=True)
class PrecisionSettings:
    """Types that layers may run in."""

    typing: str = param(
        "default",
        label="Typing mode",
        help=(
            "How layer types are chosen: default (the builder decides), strong (from the model "
            "only), obey or prefer (layer precisions are binding or preferred)."
        ),
        choices=("default", "strong", "obey", "prefer"),
        words=(("none", "default"),),
        spellings=("--typing", "--precisionConstraints", "--precision-constraints"),
        flags=(("--stronglyTyped", "strong"), ("--strongly-typed", "strong")),
        page="Precision",
    )
    tf32: bool = param(
        True,
        label="TF32",
        help="Allow TF32 (10-bit mantissa) in FP32 layers.",
        spellings=("--tf32",),
        flags=(("--noTF32", False),),
        page="Precision",
    )
    fp16: bool = param(
        False,
        label="FP16",
        help="Allow FP16 layers.",
        spellings=("--fp16",),
        flags=(("--best", True),),
        page="Precision",
    )
    bf16: bool = param(
        False,
        label="BF16",
        help="Allow BF16 layers.",
        spellings=("--bf16",),
        flags=(("--best", True),),
        page="Precision",
    )
    int8: bool = param(
        False,
        label="INT8",
        help=(
            "Allow INT8 layers. Needs a quantized model, a calibration cache or calibration inputs."
        ),
        spellings=("--int8",),
        flags=(("--best", True),),
        page="Precision",
    )
    fp8: bool = param(
        False,
        label="FP8",
        help="Allow FP8 layers.",
        spellings=("--fp8",),
        page="Precision",
    )
    int4: bool = param(
        False,
        label="INT4",
        help="Allow INT4 weights.",
        spellings=("--int4",),
        page="Precision",
    )
    layer_precision: tuple[str, ...] = param(
        (),
        label="Layer precisions",
        help=(
            "Precision of a layer, as NAME:fp16; a name may contain one *. Overrides precisions "
            "in the model."
        ),
        spellings=("--layer-precision", "--layerPrecisions", "--layer-precisions"),
        metavar="NAME:TYPE",
        page="Precision",
        empty="from the model",
    )
    layer_output_type: tuple[str, ...] = param(
        (),
        label="Output types",
        help="Output types of a layer, as NAME:fp16+fp32; a name may contain one *.",
        spellings=("--layer-output-type", "--layerOutputTypes"),
        metavar="NAME:TYPE",
        page="Precision",
        empty="chosen by the library",
    )
    calibration_cache: Path | None = param(
        None,
        label="Calibration cache",
        help="INT8 calibration cache: read if the file exists, else written.",
        kind="file",
        spellings=("--calibration-cache", "--calib"),
        metavar="FILE",
        page="Precision",
    )
    calibration_inputs: Path | None = param(
        None,
        label="Calibration inputs",
        help="Folder with input sets for INT8 calibration.",
        kind="folder",
        spellings=("--calibration-inputs",),
        metavar="DIR",
        page="Precision",
        empty="none",
    )
    placeholder_ranges: bool = param(
        False,
        label="Fake ranges",
        help=(
            "Use fake ranges for tensors without one, to measure INT8 speed without "
            "calibration. The outputs are meaningless."
        ),
        spellings=("--placeholder-ranges",),
        page="Precision",
    )
    strict_nans: bool = param(
        False,
        label="Strict NaNs",
        help="Handle NaN as in IEEE 754, which disables some optimisations.",
        spellings=("--strict-nans",),
        page="Precision",
    )


@dataclass(frozen=True)
class TacticSettings:
    """Which implementations of layers are tried."""

    sparsity: str = param(
        "disable",
        label="Sparsity",
        help=(
            "Try tactics for 2:4 structured sparsity; force also prunes the weights to that "
            "pattern."
        ),
        choices=("disable", "enable", "force"),
        spellings=("--sparsity",),
        flags=(("--sparse-weights", "enable"),),
        page="Tactics",
    )
    tactic_sources: tuple[str, ...] = param(
        (),
        label="Tactic sources",
        help=(
            "Tactic source to add or remove, as +CUBLAS or -CUDNN. Without a sign, use only "
            "these; NONE means no source."
        ),
        spellings=("--tactic-source", "--tacticSources", "--tactic-sources"),
        metavar="SOURCE",
        page="Tactics",
        of_model=False,
        empty="chosen by the library",
    )
    native_instance_norm: bool = param(
        True,
        label="Native norm",
        help="Parse InstanceNormalization to a native layer; off uses the plugin.",
        spellings=("--native-instance-norm",),
        flags=(("--pluginInstanceNorm", False), ("--pi", False), ("--plugin-instancenorm", False)),
        page="Tactics",
    )
    direct_io: bool = param(
        False,
        label="Direct IO",
        help="Forbid reformatting at inputs and outputs with a given format.",
        spellings=("--direct-io", "--directIO"),
        page="Tactics",
    )
    plugin_override: bool = param(
        False,
        label="Prefer plugins",
        help="Prefer a plugin to the built-in operator of the same name.",
        spellings=("--plugin-override", "--enablePluginOverride"),
        page="Tactics",
    )
    distributive_independence: bool = param(
        False,
        label="Batch invariance",
        help="Compute the same result for an item regardless of the batch size.",
        spellings=("--distributive-independence", "--distributiveIndependence"),
        page="Tactics",
    )
    build_route: str = param(
        "",
        label="Build route",
        help=(
            "Knobs of the compiler, such as '-copy_ppg=off -peep:max=2'; the others keep their "
            "defaults. dld routes lists and tunes them. TensorRT 11.1 and newer."
        ),
        spellings=("--build-route", "--setBuildRoute"),
        metavar="ROUTE",
        page="Tactics",
        empty="chosen by the library",
    )
    tactic_replay: Path | None = param(
        None,
        label="Tactic replay",
        help=(
            "Use the tactics in this file, and fail if one is unavailable. Needs an algorithm "
            "selector (TensorRT 8 to 10)."
        ),
        kind="file",
        spellings=("--tactic-replay", "--load-tactics"),
        metavar="FILE",
        page="Tactics",
    )
    save_tactics: Path | None = param(
        None,
        label="Record tactics",
        help="Write the chosen tactics to this file, for --tactic-replay.",
        kind="output",
        decides=True,  # only trials that are made write it
        spellings=("--save-tactics",),
        metavar="FILE",
        page="Tactics",
    )
    preview_features: tuple[str, ...] = param(
        (),
        label="Preview features",
        help="Preview feature to enable or disable, as +NAME or -NAME.",
        spellings=("--preview-feature", "--preview", "--preview-features"),
        metavar="NAME",
        page="Tactics",
        of_model=False,
        empty="chosen by the library",
    )


SHAPES = ("min_shapes", "opt_shapes", "max_shapes")
_LISTS = (
    "input_formats",
    "output_formats",
    "layer_precision",
    "layer_output_type",
    "layer_device",
    "tactic_sources",
    "memory_pools",
    "preview_features",
    "compute_capability",
)
"""Settings whose items may be separated by commas in one text, as trtexec takes them."""


# The fields of the last base come first.
@dataclass(frozen=True)
class BuildSettings(
    DeviceSettings,
    RefitSettings,
    MemorySettings,
    OptimizerSettings,
    TacticSettings,
    ProfileSettings,
    PrecisionSettings,
    CommonSettings,
):
    """All settings of a build."""

    def __post_init__(self) -> None:
        """Bring the values to their plain form.

        Raises:
            UsageError: A size, a list or a device cannot be read.
        """
        for name in _LISTS:
            texts: tuple[str, ...] = getattr(self, name)
            items = tuple(item for text in texts for item in split_items(text))
            object.__setattr__(self, name, items)
        for name in SHAPES:
            flag = f"--{name.replace('_', '-')}"
            object.__setattr__(self, name, plain_texts(getattr(self, name), flag))
        object.__setattr__(self, "device", device_text(self.device))
        sources = tuple(source.upper() for source in self.tactic_sources)
        object.__setattr__(self, "tactic_sources", sources)
        self._take_workspace()

    def _take_workspace(self) -> None:
        others = []
        for pool in self.memory_pools:
            name, colon, size = pool.partition(":")
            if not colon or not name:
                raise UsageError(f"--memory-pool {pool!r} is not a pool", hint="Write POOL:SIZE")
            if name.strip().lower() == "workspace":
                object.__setattr__(self, "workspace", mebibytes(size))
            else:
                mebibytes(size)
                others.append(pool)
        object.__setattr__(self, "memory_pools", tuple(others))

    @property
    def shape_profiles(self) -> list[dict[str, tuple[str, ...]]]:
        """The shapes of the command by setting, one dictionary a profile."""
        profiles: dict[int, dict[str, tuple[str, ...]]] = {}
        for name in SHAPES:
            for text in getattr(self, name):
                number, shape = split_profile(text)
                profile = profiles.setdefault(number or 0, {})
                profile[name] = (*profile.get(name, ()), shape)
        return [profiles.get(number, {}) for number in range(max(profiles, default=-1) + 1)]

    @property
    def engine_path(self) -> Path:
        """Where the engine goes."""
        return self.output or Path(f"{self.model.stem}.engine")

    @property
    def layer_info_path(self) -> Path:
        """Where the layers of the engine go."""
        return self.layer_info or self.engine_path.with_suffix(".trt.json")

    @property
    def log_path(self) -> Path:
        """Where the log goes: beside the engine, and not over that of a build that failed."""
        path = self.engine_path.with_suffix(".build.log")
        return self.log or (path if os.path.lexists(self.engine_path) else unused(path))
