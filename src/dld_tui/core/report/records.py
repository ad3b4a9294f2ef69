"""The rows of a report. All times are on the report's own clock; names end in the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias, final

from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import JSON, TextEnum

Dims: TypeAlias = "tuple[int | str | None, ...] | None"
"""A shape; None when it is unknown."""

Confidence: TypeAlias = Literal["tensor", "name", "rule", "none"]
"""How a layer was matched to ONNX nodes: by the tensors that it produces, by an exact name, by a
naming rule of the backend, or not at all."""


class Program(TextEnum):
    """A program that measures, as reports name it; its version follows."""

    ONNX_RUNTIME = "ONNX Runtime"
    TENSORRT = "TensorRT"


def program_of(backend: str) -> Program | None:
    """Return the program that a report names; None for others."""
    return next((program for program in Program if backend.startswith(program.value)), None)


class PassState(TextEnum):
    """What a pass is for."""

    MEASURED = "measured"
    WARM_UP = "warm-up"
    INCOMPLETE = "incomplete"
    KERNELS_ALONE = "kernels alone"
    """Only kernels were recorded, at true speed."""


"""Statistics of layers use measured passes only, or incomplete ones where there are no others.
Passes with ``kernels alone`` ran without layer profiling, with the work of the GPU recorded: the
timeline of the GPU is read from these."""


SharedBy: TypeAlias = Literal["macs", "bytes", "equal"]
"""What the time of a layer of several nodes was shared by."""
Bound: TypeAlias = Literal["compute", "memory"]
"""The higher of the two roofs of a layer."""


@dataclass(frozen=True)
class NodeLink:
    """An ONNX node that a layer computes, completely or in part."""

    scope: tuple[str, ...]
    """`Scope.path` of the graph, subgraph or function body that holds the node."""
    node: str
    """`Node.ref` in that scope."""
    name: str
    """`Node.name`, which may be empty."""
    op_type: str
    confidence: Confidence = "name"
    share: float = 1.0
    """The share of the layer's time attributed to this node, 0 to 1. An estimate by cost where a
    layer has several nodes, see :mod:`dld_tui.core.report.sharing`."""
    calls: tuple[str, ...] = ()
    """The nodes that call the local functions it is in, the outermost first, where known: a body
    then has its own times for each call."""

    @property
    def label(self) -> str:
        """The node's name after the path of its scope, e.g. ``If_0:then_branch › /stft/Conv``.

        In the body of a function, after the calls if these are known.
        """
        return " › ".join((*(self.calls or self.scope), self.name or self.node))


@final
@dataclass(frozen=True, slots=True)
class Cost:
    """What one run of a layer takes, as far as it is known; see :mod:`.roofline`."""

    flops: float | None = None
    """A multiply-accumulate counts as two."""
    moved_bytes: float | None = None
    parameter_bytes: float | None = None
    activation_bytes: float | None = None
    output_bytes: float | None = None
    in_use_bytes: float | None = None
    """Arena bytes in use after the layer in the first pass, less those before all layers."""
    arena_bytes: float | None = None
    arena_peak_bytes: float | None = None
    roof_ms: float | None = None
    """The least time by the peaks of the device."""
    bound: Bound | None = None
    peak: str = ""
    """The type whose peak it is compared with, such as ``int8`` or ``tf32``."""
    launch_ms: float | None = None
    """The time of an empty layer."""


NOTHING_KNOWN = Cost()


@final
@dataclass(frozen=True, slots=True)
class LayerInformation:
    """What the files of an engine say of a layer. Texts are foreign, and empty if unknown."""

    engine_layer: int | None = None
    """Its place in the file of the engine; None where only times are known."""
    layer_type: str = ""
    output_precision: str = ""
    tactic: str = ""
    """The kernel that was chosen for it."""
    origin: str = ""
    """Why a Reformat layer is there."""
    stream: int | None = None
    inserted: bool = False
    """Whether TensorRT put it in, between the layers of the model."""
    mapping: str = ""
    """How its ONNX nodes were found."""
    mapping_confidence: str = ""
    findings: int | None = None
    is_warned: bool = False
    """Whether one of the findings is a warning, not a note."""
    """How many may cost time."""
    footprint: float | None = None
    """Bytes of weights, outputs, and what it reads of its inputs."""
    weights_bytes: float | None = None
    io_bytes: float | None = None
    unread_bytes: float | None = None
    """Of the inputs, what no window of the layer touches."""
    total_ms: float | None = None
    average_ms: float | None = None
    median_ms: float | None = None
    trtexec_percentage: float | None = None


@dataclass(frozen=True)
class Layer:
    """One kernel or engine layer with its statistics over the measured passes.

    For `ReportWriter.add_layer` only the fields up to `other` matter; the rest is computed.
    """

    name: str
    """The backend's name: for ONNX Runtime the node of the optimised graph."""
    type: str
    """The backend's type, e.g. ``FusedConv``."""
    input_dims: tuple[Dims, ...] = ()
    """One shape an input."""
    output_dims: tuple[Dims, ...] = ()
    provider: str | None = None
    precision: str | None = None
    """Of the first output, e.g. ``float16``; None when unknown."""
    input_types: tuple[str, ...] = ()
    output_types: tuple[str, ...] = ()
    nodes: tuple[NodeLink, ...] = ()
    confidence: Confidence = "none"
    cost: Cost | None = None
    engine: LayerInformation | None = None
    node_index: int | None = None
    """The number of its node in the graph that ONNX Runtime ran."""
    around: str = ""
    """The node of the main graph in whose subgraphs it ran."""
    shared_by: SharedBy | None = None
    """How its time was shared over several nodes."""
    other: Mapping[str, JSON] | None = field(default=None, hash=False)
    """What else a report says of it, such as what a later version records."""
    index: int = -1
    """The layer's number in the report, in order of first execution."""
    time_ms: float | None = None
    """Self time in a pass, see :mod:`.measurement`; None if it never ran."""
    percent: float | None = None
    """Of the sum of `cost_ms` over all layers."""
    min_ms: float | None = None
    max_ms: float | None = None
    mean_ms: float | None = None
    count: float | None = None
    """Mean number of runs per pass: above 1 in a loop, below 1 in a branch."""
    passes: int = 0
    """The number of measured passes in which it ran: fewer than all for a branch."""
    gpu_time_ms: float | None = None
    """Its kernels' durations on the GPU in a pass, by `Report.gpu_passes`. None when no kernel is
    attributed to it."""
    without_kernels: bool = False
    """It had no kernel where those of other layers are known: it costs nothing on the GPU."""

    @property
    def cost_ms(self) -> float | None:
        """What it costs: its kernels where these are known, else its own time.

        Launches are asynchronous: the time of a launch says little about the work of a layer.
        """
        if self.gpu_time_ms is not None:
            return self.gpu_time_ms
        return None if self.without_kernels else self.time_ms


@dataclass(frozen=True)
class Wording:
    """The words for the rows of a report or an engine, and for their times."""

    row: str = "layer"
    figure: str = "mean of the fastest quarter of passes"
    whole: str = "pass"
    """One run of the whole model."""

    @property
    def rows(self) -> str:
        """The plural of `row`."""
        return f"{self.row}s"

    @property
    def figures(self) -> str:
        """The plural of `figure`."""
        return self.figure.replace("mean", "means", 1)


LAYER_MEANS = Wording(figure="mean")
"""For engines and profiles of TensorRT: trtexec writes mean times of layers."""
PHASES = Wording(row="phase", whole="inference")
"""For whole inferences: their copies and the compute time of the GPU."""


@dataclass(frozen=True)
class ReportPass:
    """One run of the model with profiling on, or at true speed with the GPU's work recorded."""

    index: int
    start_us: float
    """On the report's clock; 0 is where the recording of passes began."""
    duration_us: float
    state: PassState = PassState.MEASURED
    counter_start_us: float | None = None
    """On the clock of the counters; None when that is the report's."""

    @property
    def counter_origin_us(self) -> float:
        """Where the pass starts on the clock of the counters."""
        return self.start_us if self.counter_start_us is None else self.counter_start_us


@dataclass(frozen=True)
class PassEvent:
    """One run of one layer within a pass."""

    layer: int
    """`Layer.index`."""
    start_us: float
    """Since the start of the pass."""
    duration_us: float
    """Including nested layers (the body of an If, Loop or Scan)."""
    self_us: float
    """Excluding nested layers."""
    track: int
    """`Track.id`: the thread."""
    depth: int = 0
    """0 at the top, 1 inside one other layer of the same track, and so on."""


@dataclass(frozen=True)
class Track:
    """A row of the timeline."""

    id: int
    kind: str
    """``thread`` or ``stream``; readers skip other kinds."""
    name: str


@dataclass(frozen=True)
class Group:
    """The time of all layers with the same key."""

    key: str
    count: int
    """How many layers, or nodes when grouped by node, op or scope."""
    time_ms: float
    percent: float
    """Of the sum over all layers."""
    estimate: bool = False
    """True when the time of a layer made of several nodes had to be shared."""
    gpu_time_ms: float | None = None
    """On the GPU; None when none of the layers had a kernel."""
    cost_ms: float = 0.0
    """The kernels on a GPU plus the layers on the CPU where kernels are known; else `time_ms`."""
    is_timed: bool = True
    """False when no layer has a time: then the figures are 0, and shown as not known."""


GpuKind: TypeAlias = Literal["kernel", "memcpy", "memset", "overhead", "sync"]
"""``overhead`` is time of the driver or the profiler itself, ``sync`` a wait for the device."""

GPU_KINDS: tuple[GpuKind, ...] = ("kernel", "memcpy", "memset", "overhead", "sync")

CounterSource: TypeAlias = Literal["cupti-pm", "nvml-gpm", "nvml", "sysfs"]
"""The source: hardware counters, utilisation between two snapshots, the driver, or sysfs files of a
Jetson."""


@dataclass(frozen=True)
class GpuEvent:
    """A kernel, copy or wait of a GPU within a pass."""

    stream: str
    """The stream's display name, e.g. ``stream 7``, or ``GPU 1 stream 7`` with several GPUs."""
    kind: GpuKind
    name: str
    """Of the kernel, demangled if possible; of a copy its direction, e.g. ``HtoD``."""
    start_us: float
    """Since the start of the pass."""
    duration_us: float
    layer: int | None = None
    """`Layer.index` of the layer that launched it; None when unknown."""
    bytes: int | None = None
    """Of copies and memsets."""
    details: Mapping[str, JSON] = field(default_factory=dict, hash=False)
    """Further details, e.g. ``grid``, ``block``, ``shared_bytes``, ``registers``."""


@dataclass(frozen=True)
class Counter:
    """A value sampled over time."""

    id: int
    name: str
    """The source's own name, e.g. ``sm__cycles_active.avg.pct_of_peak_sustained_elapsed``."""
    title: str
    """The display name, e.g. ``SM active``."""
    unit: str
    """``%``, ``GB/s``, ``MHz``, …"""
    maximum: float | None
    """The largest possible value, e.g. 100 for a percentage; None when unknown."""
    source: str
    """A `CounterSource`, or a word of a later version."""
    absent: str | None = None
    """Why nothing was measured; None when something was."""
    samples: int = 0
    first_us: float = 0.0
    """Time of the first sample, on the clock of the counters."""
    last_us: float = 0.0
    highest: float | None = None
    """The largest value measured."""
    period_us: float = 0.0
    """The usual time from a sample to the next; 0 for fewer than two."""
    levels: int = 0
    """The number of coarser levels that the report holds."""

    @property
    def top(self) -> float:
        """The value to draw at full height."""
        return max(self.maximum or 0.0, self.highest or 0.0) or 1.0


@dataclass(frozen=True)
class Bucket:
    """The samples of a counter in a part of the time."""

    samples: int
    """Their number; 0 where the nearest one is repeated because samples are further apart."""
    mean: float
    minimum: float
    maximum: float
