"""All settings of builds with TensorRT, each declared once: one class a page of the form.

Values given in the ways of trtexec and Polygraphy become the plain form when a request is made, so
that its users see one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.errors import UsageError
from dld_tui.core.params import param
from dld_tui.core.tensorrt.trtexec_arguments import (
    device_text,
    mebibytes,
    plain_texts,
    split_items,
    split_profile,
)
from dld_tui.core.types import JSON


def beside_engine(suffix: str) -> Callable[[Mapping[str, JSON]], str]:
    """Return what names a file that is written beside the engine: of the values of a form."""

    def name(values: Mapping[str, JSON]) -> str:
        engine = values.get("output") or values.get("model")
        stem = Path(engine).stem if isinstance(engine, str) else "NAME"
        return f"{stem}{suffix} beside the engine"

    return name


@dataclass(frozen=True)
class CommonSettings:
    """What is built, with what, and where it goes."""

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
        help="Where to write the engine. By default NAME.engine in the current folder.",
        kind="output",
        spellings=("--output", "-o", "--saveEngine", "--save-engine"),
        suffix=".engine",
        beside=("{stem}.trt.json", "{stem}.build.json", "{stem}.build.log"),
        metavar="ENGINE",
    )
    library: str = param(
        "auto",
        label="Library",
        help="tensorrt, tensorrt_rtx, or the folder of another installation. By default tensorrt"
        " where it is installed, else tensorrt_rtx.",
        spellings=("--library",),
        metavar="NAME",
    )
    layer_info: Path | None = param(
        None,
        label="Layer information",
        help="Where to write the layers of the engine. By default NAME.trt.json beside the engine.",
        kind="output",
        spellings=("--layer-info", "--exportLayerInfo"),
        metavar="FILE",
        empty=beside_engine(".trt.json"),
    )
    verbosity: str = param(
        "detailed",
        label="Metadata detail",
        help="What the engine says of its layers: all, their names, or nothing. The plan of an"
        " engine needs all.",
        choices=("layer_names", "detailed", "none"),
        words=(("layer_names_only", "layer_names"),),
        spellings=("--verbosity", "--profilingVerbosity", "--profiling-verbosity"),
    )
    open_metadata: bool = param(
        False,
        label="Open afterwards",
        help="Open the layers of the engine in the user interface when it is built.",
        spellings=("--open-metadata",),
    )
    plugins: tuple[str, ...] = param(
        (),
        label="Plugins",
        help="Library of plugins that the model needs. Its code is run.",
        spellings=("--plugins", "--staticPlugins"),
        metavar="FILE",
    )
    dynamic_plugins: tuple[str, ...] = param(
        (),
        label="Stored plugins",
        help="Library of plugins that is stored in the engine. Its code is run.",
        spellings=("--dynamic-plugins", "--setPluginsToSerialize"),
        metavar="FILE",
    )
    verbose: bool = param(
        False,
        label="Verbose log",
        help="Keep what the library says of each step in the log.",
        spellings=("--verbose",),
    )
    log: Path | None = param(
        None,
        label="Log",
        help="Where to write what the library says. By default NAME.build.log beside the engine.",
        kind="output",
        spellings=("--log",),
        metavar="FILE",
        empty=beside_engine(".build.log"),
    )


@dataclass(frozen=True)
class ProfileSettings:
    """Ranges of input shapes."""

    min_shapes: tuple[str, ...] = param(
        (),
        label="Smallest shapes",
        help="Smallest shape of an input, as NAME:1x3x224x224 or NAME:[1,3,224,224]. An input that"
        " comes again begins the next profile; --profile=N before it says which. An input whose"
        " values are a shape takes these.",
        kind="shapes",
        spellings=("--min-shapes", "--minShapes", "--trt-min-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="as the usual shape",
    )
    opt_shapes: tuple[str, ...] = param(
        (),
        label="Usual shapes",
        help="Shape that the engine is to be fastest for. Alone it stands for the smallest and the"
        " largest shape, too.",
        kind="shapes",
        spellings=("--opt-shapes", "--optShapes", "--trt-opt-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="as the model says",
    )
    max_shapes: tuple[str, ...] = param(
        (),
        label="Largest shapes",
        help="Largest shape of an input.",
        kind="shapes",
        spellings=("--max-shapes", "--maxShapes", "--trt-max-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
        empty="as the usual shape",
    )
    batch: int | None = param(
        None,
        label="Inferred batch",
        help="Size of the first dimension of inputs that leave only this open, where neither the"
        " command nor the model gives a range.",
        minimum=1,
        maximum=2**31 - 1,
        spellings=("--batch",),
        metavar="N",
        page="Profiles",
        of_model=True,
        empty="as the input shapes say",
    )
    input_formats: tuple[str, ...] = param(
        (),
        label="Input formats",
        help="Type and format of the inputs in their order, as fp16:chw; one stands for all.",
        spellings=("--input-formats", "--inputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
        empty="as the model has them",
    )
    output_formats: tuple[str, ...] = param(
        (),
        label="Output formats",
        help="Type and format of the outputs in their order, as fp32:chw; one stands for all.",
        spellings=("--output-formats", "--outputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
        empty="as the model has them",
    )


@dataclass(frozen=True)
class DeviceSettings:
    """Where the engine is to run."""

    device: str = param(
        "0",
        label="Device",
        help="Number of the GPU, or the UUID of a GPU or of a part of a divided one (MIG-…), as dld"
        " doctor lists them.",
        spellings=("--device",),
        metavar="N|UUID",
        page="Device",
    )
    hardware_compatible: str = param(
        "none",
        label="Runs on",
        help="Which GPUs other than this one the engine is to run on.",
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
        help="What to build for without the device, such as 8.9 (TensorRT-RTX).",
        spellings=("--compute-capability", "--compute-capabilities", "--computeCapabilities"),
        metavar="X.Y",
        page="Device",
        of_model=False,
        empty="the device that builds",
    )
    dla_core: int | None = param(
        None,
        label="DLA core",
        help="Deep learning accelerator that runs the layers which it can run.",
        minimum=0,
        maximum=63,
        spellings=("--dla-core", "--useDLACore"),
        flags=(("--use-dla", 0),),
        metavar="N",
        page="Device",
        empty="none: all runs on the GPU",
    )
    gpu_fallback: bool = param(
        False,
        label="GPU fallback",
        help="Run on the GPU what the accelerator cannot run.",
        spellings=("--gpu-fallback", "--allowGPUFallback", "--allow-gpu-fallback"),
        page="Device",
    )
    layer_device: tuple[str, ...] = param(
        (),
        label="Device of layers",
        help="Where a layer runs, as NAME:DLA or NAME:GPU; a name may hold one *.",
        spellings=("--layer-device", "--layerDeviceTypes"),
        metavar="NAME:DEVICE",
        page="Device",
        empty="the library chooses",
    )
    adjust_for_dla: bool = param(
        False,
        label="Adjust for DLA",
        help="Change layers of the model so that the accelerator can run more of them. From"
        " TensorRT 10.16 on.",
        spellings=("--adjust-for-dla", "--adjustForDLA"),
        page="Device",
    )
    report_dla: bool = param(
        False,
        label="Only DLA",
        help="Refuse a model with a node that the accelerator cannot run, and name it. From"
        " TensorRT 10.15 on.",
        spellings=("--report-dla", "--reportCapabilityDLA"),
        page="Device",
    )
    dla_uint8: bool = param(
        False,
        label="DLA UINT8",
        help="Let zero points be other than zero and types be UINT8, for DLA software from 3.16"
        " on.",
        spellings=("--dla-uint8", "--uint8AsymmetricQuantizationDLA"),
        page="Device",
    )
    runtime_platform: str = param(
        "same_as_build",
        label="Platform",
        help="The system that the engine is to run on.",
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
        help="0 is the fastest build, 5 the best engine; by default 3.",
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
        label="Worker streams",
        help="CUDA streams beside the main one that layers may run on at the same time.",
        minimum=0,
        maximum=4096,
        spellings=("--max-aux-streams", "--maxAuxStreams"),
        metavar="N",
        page="Optimizer",
        empty="the library chooses",
    )
    avg_timing: int | None = param(
        None,
        label="Timings",
        help="Timings of a tactic that are averaged.",
        minimum=1,
        maximum=10_000,
        spellings=("--avg-timing", "--avgTiming"),
        metavar="N",
        page="Optimizer",
        empty="the library's",
    )
    max_tactics: int | None = param(
        None,
        label="Tactics",
        help="Tactics of a layer that are timed, at most.",
        minimum=1,
        spellings=("--max-tactics", "--maxTactics"),
        metavar="N",
        page="Optimizer",
        empty="the library chooses",
    )
    tiling_level: int | None = param(
        None,
        label="Tiling level",
        help="0 to 3: how long to search for better tilings.",
        minimum=0,
        maximum=3,
        spellings=("--tiling-level", "--tilingOptimizationLevel", "--tiling-optimization-level"),
        metavar="N",
        page="Optimizer",
        empty="the library's",
    )
    timing_cache: Path | None = param(
        None,
        label="Timing cache",
        help="Measured tactics, kept from build to build. By default one file a library version and"
        " GPU in the cache folder.",
        kind="file",
        spellings=(
            "--timing-cache",
            "--timingCacheFile",
            "--load-timing-cache",
            "--save-timing-cache",
        ),
        metavar="FILE",
        page="Optimizer",
        empty="one a library and GPU, in the cache folder",
    )
    no_timing_cache: bool = param(
        False,
        label="No timing cache",
        help="Neither read nor write a timing cache.",
        spellings=("--no-timing-cache", "--noBuilderCache"),
        page="Optimizer",
    )
    no_compilation_cache: bool = param(
        False,
        label="No compiled code",
        help="Keep no compiled code in the timing cache.",
        spellings=("--no-compilation-cache", "--noCompilationCache"),
        page="Optimizer",
    )
    editable_timing_cache: bool = param(
        False,
        label="Editable cache",
        help="Keep to the tactics in the timing cache, also to edited ones, and log what was"
        " measured. From TensorRT 10.8 on.",
        spellings=("--editable-timing-cache",),
        page="Optimizer",
    )
    error_on_cache_miss: bool = param(
        False,
        label="Only cached",
        help="Fail when a tactic is not in the timing cache.",
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
        help="Scratch memory of a layer, at most; by default all of the device's.",
        unit="MiB",
        minimum=0,
        spellings=("--workspace",),
        metavar="MIB",
        page="Memory",
        empty="all of the device's memory",
    )
    memory_pools: tuple[str, ...] = param(
        (),
        label="Other pools",
        help="Limit of a pool, as dlaSRAM:1M, dlaLocalDRAM:1G, dlaGlobalDRAM:512M or"
        " tacticSharedMem:48K. A number alone is in MiB.",
        spellings=("--memory-pool", "--memPoolSize", "--pool-limit", "--memory-pool-limit"),
        metavar="POOL:SIZE",
        page="Memory",
        of_model=False,
        empty="the library's",
    )
    weight_streaming: bool = param(
        False,
        label="Weight streaming",
        help="Let the engine run with less memory than its weights need. Needs strong typing.",
        spellings=("--weight-streaming", "--allowWeightStreaming"),
        page="Memory",
    )
    l2_limit: int | None = param(
        None,
        label="L2 for tiling",
        help="L2 cache that tilings may use, at most.",
        unit="bytes",
        minimum=0,
        spellings=("--l2-limit", "--l2LimitForTiling"),
        metavar="BYTES",
        page="Memory",
        empty="the library's",
    )


@dataclass(frozen=True)
class RefitSettings:
    """What an engine can be given later, and by which library it can be read."""

    refit: str = param(
        "none",
        label="Refit",
        help="Let weights be replaced later (refit), or leave them out of the engine, too (strip).",
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
        label="Any version",
        help="Let newer versions of the library run the engine.",
        spellings=("--version-compatible", "--versionCompatible", "--vc"),
        page="Refit",
    )
    exclude_lean_runtime: bool = param(
        False,
        label="No lean runtime",
        help="Leave the lean runtime out of an engine for any version.",
        spellings=("--exclude-lean-runtime", "--excludeLeanRuntime"),
        page="Refit",
    )


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
        empty="as the model says",
    )
    layer_output_type: tuple[str, ...] = param(
        (),
        label="Output types",
        help="Types of a layer's outputs, as NAME:fp16+fp32; a name may hold one *.",
        spellings=("--layer-output-type", "--layerOutputTypes"),
        metavar="NAME:TYPE",
        page="Precision",
        empty="the library chooses",
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
        empty="none",
    )
    placeholder_ranges: bool = param(
        False,
        label="Made-up ranges",
        help="Give each tensor without a range a made-up one, to see how fast INT8 would be without"
        " calibration: the engine computes nonsense.",
        spellings=("--placeholder-ranges",),
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
        empty="the library's",
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
    plugin_override: bool = param(
        False,
        label="Plugins first",
        help="Take a plugin that has the name of an operator in the operator's place.",
        spellings=("--plugin-override", "--enablePluginOverride"),
        page="Tactics",
    )
    distributive_independence: bool = param(
        False,
        label="Same by batch",
        help="Give an item of a batch the same result whatever the size of the batch is.",
        spellings=("--distributive-independence", "--distributiveIndependence"),
        page="Tactics",
    )
    build_route: str = param(
        "",
        label="Build route",
        help="Knobs of the compiler, as '-copy_ppg=off -peep:max=2'; the others have their"
        " defaults. dld routes lists them and finds the fastest. From TensorRT 11.1 on.",
        spellings=("--build-route", "--setBuildRoute"),
        metavar="ROUTE",
        page="Tactics",
        empty="the library's",
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
        empty="the library's",
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
