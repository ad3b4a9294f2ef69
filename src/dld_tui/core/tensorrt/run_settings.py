"""The settings of measured engines, each declared once: what to run them with, and how long."""

from __future__ import annotations

from pathlib import Path

from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.inputs.settings import InputSettings
from dld_tui.core.params import like, param
from dld_tui.core.process.paths import report_path
from dld_tui.core.tensorrt.settings import BuildSettings, CommonSettings
from dld_tui.core.tensorrt.trtexec_arguments import (
    plain_texts,
    split_items,
)
from dld_tui.core.types import ENGINE_SUFFIXES


@dataclass(frozen=True)
class MeasureSettings:
    """What to run an engine with, and how long."""

    shape: tuple[str, ...] = like(
        InputSettings,
        "shape",
        help=(
            "Input shape to measure, as NAME:1x3x224x224. By default the optimum shape of the "
            "first profile. Without other ranges it also sets the profile."
        ),
        page="Measure",
        empty="same as the optimum shape",
    )
    inputs: Path | None = like(
        InputSettings,
        "inputs",
        help=(
            "Folder with input_0.pb, … or NAME.npy; of several sets the first is used. By "
            "default inputs are generated."
        ),
        page="Measure",
    )
    load_inputs: tuple[str, ...] = param(
        (),
        label="Input files",
        help="File with the raw bytes of an input, as NAME:FILE.",
        spellings=("--load-input", "--loadInputs"),
        metavar="NAME:FILE",
        page="Measure",
    )
    iterations: int = param(
        10,
        label="Iterations",
        help="Minimum number of timed passes.",
        minimum=1,
        maximum=10_000_000,
        spellings=("--iterations",),
        metavar="N",
        page="Measure",
    )
    duration: float = param(
        3.0,
        label="Duration",
        help="Measure for at least this time.",
        unit="s",
        minimum=0,
        spellings=("--duration",),
        metavar="S",
        page="Measure",
    )
    warm_up_ms: float = param(
        200.0,
        label="Warm-up time",
        help="Warm up for at least this time.",
        unit="ms",
        minimum=0,
        spellings=("--warm-up-ms", "--warmUp"),
        metavar="MS",
        page="Measure",
    )
    percentile: str = param(
        "90,95,99",
        label="Percentiles",
        help="Latency percentiles to print, separated by commas.",
        spellings=("--percentile",),
        metavar="P,…",
        page="Measure",
    )
    streams: int = param(
        1,
        label="Streams",
        help="Number of concurrent streams, each with its own execution context.",
        minimum=1,
        maximum=1024,
        spellings=("--streams", "--infStreams"),
        metavar="N",
        page="Measure",
    )
    use_cuda_graph: bool = param(
        False,
        label="CUDA graph",
        help=(
            "Capture a pass as a CUDA graph and launch it. Default in trtexec 11.1, not in "
            "earlier versions."
        ),
        spellings=("--cuda-graph", "--useCudaGraph"),
        flags=(("--noCudaGraph", False),),
        page="Measure",
    )
    spin_wait: bool = param(
        False,
        label="Spin wait",
        help=(
            "Busy-wait for the GPU, which lowers the latency. Default in trtexec 11.1, not in "
            "earlier versions."
        ),
        spellings=("--spin-wait", "--useSpinWait"),
        flags=(("--noSpinWait", False),),
        page="Measure",
    )
    no_data_transfers: bool = param(
        False,
        label="No data transfers",
        help=(
            "Keep inputs and outputs on the GPU; the latency then excludes copies. Default in "
            "trtexec 11.1, not in earlier versions."
        ),
        spellings=("--no-data-transfers", "--noDataTransfers"),
        flags=(("--includeDataTransfers", False),),
        page="Measure",
    )
    weight_streaming_budget: str = param(
        "",
        label="Streaming budget",
        help="GPU memory for streamed weights, such as 50% or 512M; -1 lets the library choose.",
        spellings=("--weight-streaming-budget", "--weightStreamingBudget"),
        metavar="SIZE",
        page="Measure",
        of_model=True,
        empty="chosen by the library",
    )
    layer_passes: int | None = param(
        None,
        label="Layer passes",
        help=(
            "Passes of the separate run that measures layers; 0 skips it. By default as many as "
            "timed passes, at most 50."
        ),
        minimum=0,
        spellings=("--layer-passes",),
        metavar="N",
        page="Measure",
        empty="as many as timed passes, at most 50",
    )
    seed: int = like(InputSettings, "seed", page="Measure")
    hide_non_compute: bool = param(
        False,
        label="Hide non-compute",
        help="Omit constants, shape arithmetic and copies from the layers.",
        spellings=("--hide-non-compute",),
        page="Measure",
    )
    gpu_timeline: bool = param(
        True,
        label="Timeline",
        help="Record GPU kernels and copies by stream.",
        spellings=("--gpu-timeline",),
        page="GPU",
    )
    gpu_counters: str = param(
        "auto",
        label="Counters",
        help=(
            "Source of GPU utilisation over time: hardware counters, NVML's GPM or plain "
            "utilisation, or a Jetson's sysfs files. auto uses the best available."
        ),
        choices=("auto", "hardware", "gpm", "nvml", "sysfs", "off"),
        spellings=("--gpu-counters",),
        page="GPU",
    )
    counter_interval: float = param(
        20.0,
        label="Counter interval",
        help="Sampling interval of the hardware counters.",
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
        help="Maximum number of layer passes with counters; 0 for none.",
        minimum=0,
        spellings=("--counter-passes",),
        metavar="N",
        page="GPU",
        empty="all layer passes",
    )
    lock_clocks: bool = param(
        False,
        label="Lock clocks",
        help=(
            "Lock the GPU at its base clock, or a Jetson at the highest clocks of its power "
            "mode, for stable results. Needs permission. The clocks are always restored."
        ),
        spellings=("--lock-clocks",),
        page="GPU",
    )


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
        label="Save engine",
        help="Save the built engine here. By default it is discarded.",
        kind="output",
        spellings=("--save-engine", "--saveEngine"),
        metavar="ENGINE",
        empty="discarded",
    )
    layer_info: Path | None = like(
        CommonSettings, "layer_info", beside=("{root}.profile.json", "{root}.timing.json")
    )
    report: Path | None = param(
        None,
        label="Report",
        help=(
            "Write the report here. By default NAME.dldprof in the current folder, numbered if "
            "that file exists."
        ),
        kind="output",
        spellings=("--output", "-o"),
        suffix=".dldprof",
        default_path=lambda request: report_path(None, request.model),
        metavar="REPORT",
    )
    engine: Path | None = param(
        None,
        label="Prebuilt engine",
        help="Profile this engine of the model instead of building one.",
        kind="file",
        spellings=("--engine", "--loadEngine", "--load-engine"),
        metavar="ENGINE",
        empty="built from the model",
    )
    trust: bool = param(
        False,
        label="Trust the engine",
        help=(
            "Allow loading the prebuilt engine. Engines can contain code: load only engines "
            "that you trust."
        ),
        spellings=("--trust",),
        runs_code=True,
    )
    refit_engine: bool = param(
        False,
        label="Refit",
        help="Refit a prebuilt engine with the weights of the model, if it is refittable.",
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
