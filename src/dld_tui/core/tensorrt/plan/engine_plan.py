"""An engine plan as data: its layers, their tensors and times, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.report.dla import DlaKind
from dld_tui.core.report.groups import UNKNOWN, layer_type
from dld_tui.core.types import ELEMENT_BITS, JSON, PRECISION_DTYPES

BITS: Mapping[str, int] = {
    precision: ELEMENT_BITS[dtype] for precision, dtype in PRECISION_DTYPES.items()
}
"""How many bits an element takes in memory."""


LARGEST_ELEMENTS = 1 << 50
"""No tensor has more."""
WeightsFrom: TypeAlias = Literal["file", "shapes", "unknown"]
"""``file``: listed in the file, or not needed. ``shapes``: estimated for a convolution or product
whose weights are not listed. ``unknown``: needed, of unknown size."""


@dataclass(frozen=True, slots=True)
class EngineTensor:
    """A tensor at the border of a layer or of the engine. Names are untrusted text."""

    name: str
    dims: tuple[int, ...] | None
    """Dimensions, -1 where one is dynamic; None when the file does not say."""
    dtype: str
    """``fp32 fp16 bf16 fp8 fp4 int64 int32 int8 int4 uint8 bool e8m0``; empty when unknown."""
    format: str
    """Memory format and type in the words of the file."""
    location: str
    mode: str = ""
    """``input`` or ``output`` for a binding."""
    profile_dims: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...] = ()
    """Least, optimum and greatest dimensions, one an optimization profile."""
    sources: tuple[str, ...] = ()
    """The tensors that this one is a view of, where a NoOp with several inputs was folded."""

    @property
    def source_names(self) -> tuple[str, ...]:
        """The names by which the layers that write it know it."""
        return self.sources or (self.name,)

    @property
    def elements(self) -> int | None:
        """The number of elements.

        None when a dimension is dynamic or unknown, or when there are more than any memory holds.
        """
        if self.dims is None or (self.dims and min(self.dims) < 0):
            return None
        elements = math.prod(self.dims)
        return elements if elements <= LARGEST_ELEMENTS else None

    @property
    def bytes(self) -> int | None:
        """Size in bytes without the padding of vectorised formats; None when unknown."""
        bits = BITS.get(self.dtype)
        elements = self.elements
        return None if bits is None or elements is None else (elements * bits + 7) // 8


@dataclass(frozen=True)
class EngineLayer:
    """A layer of an engine. Texts are foreign."""

    index: int
    """Index in the file, from 0; it stays when other layers are folded away."""
    name: str
    type: str
    """LayerType of the file; empty in a plan of names only."""
    subtype: str
    """ParameterType of the file; empty if missing."""
    inputs: tuple[EngineTensor, ...]
    outputs: tuple[EngineTensor, ...]
    constants: tuple[EngineTensor, ...]
    precision: str
    """Type of the first input that carries data: conditions and indices are skipped if there is
    another; of the first output without inputs; empty if unknown."""
    output_precision: str
    """Type of the first output that carries data, likewise."""
    tactic: str
    """TacticName of the file."""
    tactic_value: str
    stream: int | None
    metadata: str
    """What names the ONNX nodes."""
    origin: str
    """Why a Reformat layer is there."""
    weights_bytes: int
    """Weights and biases, in the types of the engine; 0 if the file lists none."""
    attributes: Mapping[str, JSON]
    """All that the file says of the layer."""
    time_ms: float | None = None
    """Mean time of one pass."""
    median_ms: float | None = None
    percent: float | None = None
    """Share of the time of all layers, 0 to 100."""
    weights_from: WeightsFrom = "file"
    """Where `weights_bytes` is from."""
    unread_bytes: int = 0
    """Bytes of its first input that it does not read: a 1x1 window in steps of two takes a quarter
    of the places."""
    dla: DlaKind | None = None
    """What it has to do with a DLA, by its neighbours, too."""

    @property
    def kind(self) -> str:
        """ParameterType if any, else LayerType, by which TREx groups layers; a Reformat is one.

        For a layer of which only the name is known, it is derived from the name; empty if that is
        not possible. What has to do with a DLA goes by that.
        """
        written = self.type if self.type == "Reformat" else self.subtype or self.type
        return self.dla or written or type_of_name(self.name)

    @property
    def is_named_only(self) -> bool:
        """Whether only the name is known."""
        return not self.type and not self.inputs and not self.outputs

    @property
    def known_weights(self) -> int | None:
        """Bytes of its weights; None where it may have some that the file does not list.

        Myelin's layers list none.
        """
        is_myelin = self.type in ("kgen", "Myelin", "ForeignNode") or self.name.startswith("__my")
        hides = self.is_named_only or (is_myelin and not self.weights_bytes)
        return None if hides or self.weights_from == "unknown" else self.weights_bytes

    @property
    def weights_source(self) -> WeightsFrom:
        """Where its weights are from; unknown, too, where it may have some that are not listed."""
        return "unknown" if self.known_weights is None else self.weights_from

    @property
    def io_bytes(self) -> int | None:
        """Bytes of inputs and outputs together; None when one of them is unknown."""
        return None if self.is_named_only else bytes_of((*self.inputs, *self.outputs))

    @property
    def footprint(self) -> int | None:
        """Bytes that it has to move: weights, outputs, and what it reads of its inputs.

        None when one of them is unknown.
        """
        io_bytes = self.io_bytes
        if io_bytes is None or self.weights_from == "unknown":
            return None
        return io_bytes - self.unread_bytes + self.weights_bytes


def bytes_of(tensors: Iterable[EngineTensor]) -> int | None:
    """Return the bytes of tensors; None when those of one are unknown."""
    sizes = [tensor.bytes for tensor in tensors]
    return None if None in sizes else sum(size or 0 for size in sizes)


def type_of_name(name: str) -> str:
    """Return the type of a layer by its name; empty if it cannot be derived."""
    by_name = layer_type(name)
    return "" if by_name == UNKNOWN else by_name


@dataclass(frozen=True)
class TimeStatistics:
    """One kind of time over the inferences, in milliseconds; None is what the file does not say."""

    min: float
    max: float
    mean: float
    median: float
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    count: int | None = None
    cov_percent: float | None = None
    """Coefficient of variation."""


@dataclass(frozen=True)
class TimingSummary:
    """Times of whole inferences, in milliseconds."""

    latency: TimeStatistics | None
    """From the first copy to the last."""
    compute: TimeStatistics | None
    h2d: TimeStatistics | None
    d2h: TimeStatistics | None
    enqueue: TimeStatistics | None
    throughput: float | None
    """Inferences per second of elapsed time."""
    series: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """One value an inference: ``latency compute h2d d2h enqueue``; empty when only the
    summary is known."""
    source: str = "timing file"
    """``timing file``, ``metadata`` or ``log``."""


@dataclass(frozen=True)
class EnginePlan:
    """An engine with all that its files say of it. Texts are foreign."""

    path: str
    title: str
    layers: tuple[EngineLayer, ...]
    """Without constants and NoOps: these are folded into the layers that read them."""
    all_layers: tuple[EngineLayer, ...]
    """As in the file."""
    bindings: tuple[EngineTensor, ...]
    names_only: bool
    """True when the engine was built without detailed profiling verbosity."""
    passes: int | None
    """How many passes the profile is of; None without one."""
    total_ms: float | None
    """Sum of the mean times of all layers; None without a profile."""
    timing: TimingSummary | None
    device: Mapping[str, JSON]
    metadata: Mapping[str, JSON]
    """By the names of TREx: ``performance_summary``, ``inference_options``, ``build_options`` …"""
    model_path: str
    """The ONNX file that the engine was built from, by its metadata; empty when unknown."""
    notes: tuple[str, ...]
    """What could not be read or joined, one sentence each."""
    files: Mapping[str, str]
    """Role (``graph profile timing metadata log archive``, and ``… 2`` for more) to path."""
    profile_count: int
    """The number of optimization profiles in the file; 0 if unknown."""
    profile_index: int = 0
    """The optimization profile that `layers` are of, where an engine has several."""
    log: TrtexecLog | None = None
    """The content of a log, if one was read."""


def missing(plan: EnginePlan) -> list[str]:
    """Return a sentence for each missing piece of information, the most important first."""
    lines: list[str] = []
    if plan.passes is None and plan.total_ms is None:
        lines.append(
            "No times of the layers: trtexec --loadEngine=ENGINE --exportProfile=NAME.profile.json "
            "--separateProfileRun writes them; keep the file beside this one."
        )
    if plan.timing is None:
        lines.append(
            "No times of whole inferences: trtexec --loadEngine=ENGINE "
            "--exportTimes=NAME.timing.json writes them."
        )
    if not plan.device:
        lines.append(
            "The device is not known, so no roofline can be drawn: keep the log of trtexec, or "
            "NAME.profile.metadata.json, beside this file."
        )
    return lines


_MOST_TACTICS = 1_000_000


@dataclass
class Tactics:
    """Names of tactics by value, which the builder logs as it tries them."""

    of_layer: dict[tuple[str, str], str] = field(default_factory=dict)
    """By layer and value."""
    by_value: dict[str, str] = field(default_factory=dict)
    """By value only, for kernels, whose values are hashes; empty where names differ."""

    def add(self, layer: str, value: str, name: str) -> None:
        """Record the name of a tactic, and the layer that it was tried for, if known."""
        key = _tactic_key(value)
        if key is None or len(self.of_layer) + len(self.by_value) > _MOST_TACTICS:
            return
        if layer:
            self.of_layer[layer, key] = name
        if len(key) > _SHORT_TACTIC:
            self.by_value[key] = name if self.by_value.get(key, name) == name else ""

    def name(self, layer: str, value: str) -> str:
        """Return the name of the tactic of a layer; empty if the log does not contain it."""
        key = _tactic_key(value)
        if key is None:
            return ""
        return self.of_layer.get((layer, key)) or self.by_value.get(key, "")


_SHORT_TACTIC = 8
"""Digits of small values: these number the tactics of one kind of layer only."""


def _tactic_key(value: str) -> str | None:
    """Return a value as hexadecimal digits: before 8.4 it is a signed decimal number."""
    try:
        return f"{int(value, 16 if value.lower().startswith('0x') else 10) % (1 << 64):x}"
    except ValueError:
        return None


@dataclass
class TrtexecLog:
    """One run in a log. Texts are foreign."""

    command: str = ""
    """The command line that reproduces the run; empty when the log has none."""
    version: str = ""
    """Of TensorRT, e.g. ``8.4.1``."""
    status: str = ""
    """``PASSED`` or ``FAILED``; empty when the log ends before."""
    sections: dict[str, dict[str, JSON]] = field(default_factory=dict)
    """By the names of :data:`.trtexec_log.SECTIONS`; numbers are as in TREx's metadata."""
    percentiles: tuple[float, ...] = ()
    """Which percentiles follow min, max, mean and median in the performance summary."""
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    layers: list[JSON] = field(default_factory=list)
    bindings: list[JSON] = field(default_factory=list)
    profile: list[JSON] = field(default_factory=list)
    """Rows as ``--exportProfile`` writes them, the count first."""
    figures: dict[str, str] = field(default_factory=dict)
    tactics: Tactics = field(default_factory=Tactics)
    """Names of tactics, which a verbose build logs and its table of layers lacks."""
    modes: dict[str, str] = field(default_factory=dict)
    """``input`` or ``output`` by the name of a binding."""
    doubts: list[str] = field(default_factory=list)
    """What cannot be true or is not whole, a sentence each."""
    runs: int = 0
    """How many runs the log has; this is the last."""
    is_trtexec: bool = True
    is_loaded: bool = False
    """The run loaded an engine: the log does not know how that was built."""

    @property
    def metadata(self) -> Mapping[str, JSON]:
        """What TREx's metadata files would say."""
        return {name: dict(values) for name, values in self.sections.items() if values}
