"""The settings of a build: which model, for which library and device, with which profiles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.params import param


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
    )
    max_shapes: tuple[str, ...] = param(
        (),
        label="Largest shapes",
        help="Largest shape of an input.",
        kind="shapes",
        spellings=("--max-shapes", "--maxShapes", "--trt-max-shapes"),
        metavar="NAME:DIMS",
        page="Profiles",
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
    )
    input_formats: tuple[str, ...] = param(
        (),
        label="Input formats",
        help="Type and format of the inputs in their order, as fp16:chw; one stands for all.",
        spellings=("--input-formats", "--inputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
    )
    output_formats: tuple[str, ...] = param(
        (),
        label="Output formats",
        help="Type and format of the outputs in their order, as fp32:chw; one stands for all.",
        spellings=("--output-formats", "--outputIOFormats"),
        metavar="TYPE:FORMAT",
        page="Profiles",
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
