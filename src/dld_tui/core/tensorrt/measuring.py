"""Settings of measurements with TensorRT, beside those of the build that comes before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dld_tui.core.inputs.settings import InputSettings
from dld_tui.core.params import like, param
from dld_tui.core.tensorrt.build_settings import BuildSettings
from dld_tui.core.tensorrt.trtexec_arguments import plain_texts, split_items


@dataclass(frozen=True)
class MeasureSettings:
    """What to run an engine with, and how long."""

    shape: tuple[str, ...] = like(
        InputSettings,
        "shape",
        help="Shape to measure with, as NAME:1x3x224x224. By default the usual shape of the first"
        " profile. Without other ranges it is the profile of the engine, too.",
        page="Measure",
        empty="as the usual shape",
    )
    inputs: Path | None = like(
        InputSettings,
        "inputs",
        help="Folder with input_0.pb, input_1.pb, … or NAME.npy; of several sets the first one is"
        " taken. By default inputs are made.",
        page="Measure",
    )
    load_inputs: tuple[str, ...] = param(
        (),
        label="Input files",
        help="File with the raw bytes of one input, as NAME:FILE.",
        spellings=("--load-input", "--loadInputs"),
        metavar="NAME:FILE",
        page="Measure",
    )
    iterations: int = param(
        10,
        label="Iterations",
        help="Timed passes, at least.",
        minimum=1,
        maximum=10_000_000,
        spellings=("--iterations",),
        metavar="N",
        page="Measure",
    )
    duration: float = param(
        3.0,
        label="Duration",
        help="Measure for at least so long.",
        unit="s",
        minimum=0,
        spellings=("--duration",),
        metavar="S",
        page="Measure",
    )
    warm_up_ms: float = param(
        200.0,
        label="Warm-up time",
        help="Run for at least so long before the timed passes.",
        unit="ms",
        minimum=0,
        spellings=("--warm-up-ms", "--warmUp"),
        metavar="MS",
        page="Measure",
    )
    percentile: str = param(
        "90,95,99",
        label="Percentiles",
        help="Percentiles of the latency to print, separated by commas.",
        spellings=("--percentile",),
        metavar="P,…",
        page="Measure",
    )
    streams: int = param(
        1,
        label="Streams",
        help="Passes that run at the same time, each with a context of its own.",
        minimum=1,
        maximum=1024,
        spellings=("--streams", "--infStreams"),
        metavar="N",
        page="Measure",
    )
    use_cuda_graph: bool = param(
        False,
        label="CUDA graph",
        help="Launch a pass as one captured CUDA graph. trtexec 11.1 does so by default, earlier"
        " ones do not.",
        spellings=("--cuda-graph", "--useCudaGraph"),
        flags=(("--noCudaGraph", False),),
        page="Measure",
    )
    spin_wait: bool = param(
        False,
        label="Spin wait",
        help="Wait for the GPU with a busy CPU, which takes less time. trtexec 11.1 does so by"
        " default, earlier ones do not.",
        spellings=("--spin-wait", "--useSpinWait"),
        flags=(("--noSpinWait", False),),
        page="Measure",
    )
    no_data_transfers: bool = param(
        False,
        label="No copies",
        help="Keep inputs and outputs on the GPU: latency is then without copies. trtexec 11.1 does"
        " so by default, earlier ones do not.",
        spellings=("--no-data-transfers", "--noDataTransfers"),
        flags=(("--includeDataTransfers", False),),
        page="Measure",
    )
    weight_streaming_budget: str = param(
        "",
        label="Streaming budget",
        help="GPU memory for the weights of an engine that streams them, such as 50% or 512M; -1"
        " lets the library choose.",
        spellings=("--weight-streaming-budget", "--weightStreamingBudget"),
        metavar="SIZE",
        page="Measure",
        of_model=True,
        empty="the library's",
    )
    layer_passes: int | None = param(
        None,
        label="Layer passes",
        help="Passes of the run that measures the layers; 0 leaves it out. By default as many as"
        " the timed ones, up to 50.",
        minimum=0,
        spellings=("--layer-passes",),
        metavar="N",
        page="Measure",
        empty="as many as are timed, at most 50",
    )
    seed: int = like(InputSettings, "seed", page="Measure")
    hide_non_compute: bool = param(
        False,
        label="Hide non-compute",
        help="Leave constants, shape arithmetic and copies out of the layers.",
        spellings=("--hide-non-compute",),
        page="Measure",
    )
    gpu_timeline: bool = param(
        True,
        label="Timeline",
        help="Record kernels and copies by stream.",
        spellings=("--gpu-timeline",),
        page="GPU",
    )
    gpu_counters: str = param(
        "auto",
        label="Counters",
        help="What GPU utilisation over time is taken from: hardware counters, NVML's GPM or plain"
        " utilisation, or a Jetson's files; auto is the best of these that works.",
        choices=("auto", "hardware", "gpm", "nvml", "sysfs", "off"),
        spellings=("--gpu-counters",),
        page="GPU",
    )
    counter_interval: float = param(
        20.0,
        label="Counter interval",
        help="Time between two samples of the hardware counters.",
        unit="us",
        minimum=1,
        maximum=1_000_000,
        spellings=("--counter-interval",),
        metavar="US",
        page="GPU",
    )
    counter_passes: int | None = param(
        None,
        label="Counter passes",
        help="Layer passes to sample counters in, at most; 0 for none.",
        minimum=0,
        spellings=("--counter-passes",),
        metavar="N",
        page="GPU",
        empty="all layer passes",
    )
    lock_clocks: bool = param(
        False,
        label="Lock clocks",
        help="Hold the GPU at its base clock, or a Jetson at the highest clocks of its power"
        " mode, for steady figures. Needs the right to do so; afterwards the clocks are as before,"
        " whatever happens.",
        spellings=("--lock-clocks",),
        page="GPU",
    )


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
        empty="not kept",
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
        empty="built from the model",
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
