"""The budget of a decoder before a run: memory by batch and context, and the least time per token.

Least times are those of the roofline: the larger of the time of all operations at the peak and of
all bytes at the bandwidth. The bytes are the weights read and the KV cache. Devices come from a
table, from numbers, or are this machine.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Literal

from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.machine.environment import environment
from dld_tui.core.machine.kernel_names import roof_of
from dld_tui.core.machine.peaks import Peaks, gpu_peaks, kept_peaks
from dld_tui.core.model.cost.memory import memory_plan
from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.cost.operators import operator
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.shapes.noting import follow_shapes, sizes_of
from dld_tui.core.report.roofline import multiplies_integers, node_kind
from dld_tui.core.tables.table import BYTES, COUNT, FLAG, MS, SHORT, TEXT, Column, Table
from dld_tui.core.text import visible
from dld_tui.core.types import ELEMENT_BITS, SHORT_DTYPES

if TYPE_CHECKING:
    from dld_tui.core.llm.feeds import Decoder
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.inputs.guess import Guess


@dataclass(frozen=True)
class Device:
    """A device for a decoder."""

    name: str
    """Visible text."""
    memory_bytes: int | None
    peaks: Peaks | None
    """None where they are unknown."""


def device_of(text: str) -> Device:
    """Return a device from its name or from numbers.

    Args:
        text: ``H200``, or ``NAME=TFLOPS,GB/s,GB``.

    Raises:
        UsageError: The name is not in the table, or the numbers are malformed.
    """
    name, sign, numbers = text.partition("=")
    if sign:
        try:
            tflops, bandwidth, memory = map(float, numbers.split(","))
        except ValueError:
            raise _malformed(text) from None
        if not name.strip():
            raise _malformed(text)
        if not (0 < tflops < 1e6 and 0 < bandwidth < 1e6 and 0 < memory < 1e6):
            raise UsageError(f"--device {text!r} has a number out of range")
        flops = dict.fromkeys(("fp32", "fp16", "bf16", "int8"), tflops * 1e12)
        return Device(visible(name), int(memory * 1e9), Peaks(name, flops, bandwidth * 1e9))
    peaks = gpu_peaks(text)
    if peaks is None:
        raise UsageError(
            f"the table of devices has no {visible(text)!r}",
            hint="Give numbers, as NAME=TFLOPS,GB/s,GB",
        )
    return Device(visible(text), peaks.memory_bytes, peaks)


def _malformed(text: str) -> UsageError:
    return UsageError(f"--device {text!r} is malformed", hint="Write NAME=TFLOPS,GB/s,GB")


def this_machine() -> Device:
    """Return the CPU of this machine; its peaks are known once a model was profiled here."""
    machine = environment()
    memory = machine.get("memory_bytes")
    return Device(
        "this machine",
        memory if isinstance(memory, int) else None,
        kept_peaks(str(machine.get("cpu", ""))),
    )


Phase = Literal["prefill", "decode"]


_LARGEST_CACHE = 128 << 20
"""No GPU has a larger one (B200: 126 MB): what fits may be read faster than its memory allows."""


@dataclass(frozen=True)
class PhaseBudget:
    """One run: prefill of a whole prompt, or decode of one token of each sequence."""

    phase: Phase
    batch: int
    context: int
    """Tokens of each sequence in the context at the end of the run."""
    flops: int | None
    """Operations (a multiply-accumulate is two), without nodes of unknown operators."""
    weight_bytes: int
    """Weights read: of an embedding table only the selected rows."""
    cache_bytes: int
    """KV cache read and written."""
    activation_bytes: int
    """The peak of all tensors between nodes, as far as their shapes are known."""
    logits_bytes: int

    def least_ms(self, peaks: Peaks, types: Collection[str]) -> tuple[float, str] | None:
        """Return the least time in milliseconds, and its limit: ``compute`` or ``memory``.

        None where the peaks are no bound: unknown, or measured while other programs ran. Weights
        and cache that may stay in a cache of the device are not bound by its memory.

        Args:
            peaks: Of a device.
            types: Those that the decoder may compute in: the fastest one bounds it.
        """
        roofs = (roof_of("", kind, peaks) for kind in types)
        peak = max((roof.flops for roof in roofs if roof), default=peaks.flops.get("fp32", 0.0))
        moved = self.weight_bytes + self.cache_bytes
        bandwidth = peaks.bandwidth_of(moved)
        if self.flops is None or not peak or not bandwidth or peaks.busy:
            return None
        is_in_cache = not peaks.caches and moved <= _LARGEST_CACHE
        compute, memory = self.flops / peak, 0.0 if is_in_cache else moved / bandwidth
        return 1000 * max(compute, memory), "compute" if compute > memory else "memory"


@dataclass(frozen=True)
class Fit:
    """The memory needed for a batch and a context."""

    batch: int
    context: int
    weight_bytes: int
    """All weights of the model."""
    kv_bytes: int
    activation_bytes: int
    """While decoding: a prompt may be processed in chunks."""
    logits_bytes: int
    prompt_bytes: int
    """The total while a prompt of the whole context is processed at once."""

    @property
    def total_bytes(self) -> int:
        """The total while decoding."""
        return self.weight_bytes + self.kv_bytes + self.activation_bytes + self.logits_bytes


@dataclass(frozen=True)
class Budget:
    """Memory and operations of a decoder by batch and context."""

    weight_bytes: int
    kv_token_bytes: int
    """Of one token of one sequence, in all layers."""
    kv_fixed_bytes: int
    """Of one sequence, whatever its length: windows, states, what an encoder made."""
    precision: str
    """The type of its cache, which it computes in."""
    types: tuple[str, ...]
    """Those that its products may be computed in."""
    unknown_nodes: int
    """Nodes of unknown operators."""
    phases: tuple[PhaseBudget, ...]
    fits: tuple[Fit, ...]


def budget_of(decoder: Decoder, batches: Sequence[int], contexts: Sequence[int]) -> Budget:
    """Return the budget of a decoder, by the inferred types of its document.

    The document is modified and must not be saved afterwards.

    Args:
        decoder: The model.
        batches: Numbers of sequences.
        contexts: Numbers of tokens of each sequence.

    Raises:
        UsageError: The model does not accept such sizes.
        ActivityError: A cache has more dynamic dimensions than batch and length.
    """
    phases, fits, unknown = [], [], 0
    weights = summarise(decoder.document).weight_bytes
    for batch in batches:
        for context in contexts:
            for phase in ("prefill", "decode"):
                budget, missing = _phase(decoder, phase, batch, context)
                phases.append(budget)
                unknown = max(unknown, missing)
            prefill, decode = phases[-2:]
            kv = kv_bytes(decoder, batch, context)
            at_once = kv + prefill.activation_bytes + prefill.logits_bytes
            now = decode.activation_bytes, decode.logits_bytes
            fits.append(Fit(batch, context, weights, kv, *now, weights + at_once))
    precision = SHORT_DTYPES.get(next(iter(decoder.caches.values())).dtype, "fp16")
    integers = any(map(_multiplies_integers, decoder.document.main.nodes))
    types = (precision, "int8") if integers else (precision,)
    return Budget(
        weights,
        kv_token_bytes(decoder),
        kv_bytes(decoder, 1, 1) - kv_token_bytes(decoder),
        precision,
        types,
        unknown,
        tuple(phases),
        tuple(fits),
    )


def _multiplies_integers(node: Node) -> bool:
    """Return whether a node does, or is a DequantizeLinear: those are fused into products."""
    is_fused = node.op_type == "DequantizeLinear"
    return is_fused or multiplies_integers(node_kind(node.op_type, node))


def kv_token_bytes(decoder: Decoder) -> int:
    """Return the bytes that one token of one sequence adds to all caches."""
    return kv_bytes(decoder, 1, 2) - kv_bytes(decoder, 1, 1)


def kv_bytes(decoder: Decoder, batch: int, context: int) -> int:
    """Return the bytes of all caches, windows and states for so many tokens of each sequence.

    Keys and values that an encoder made count, too.
    """
    shapes = {name: decoder.cache_shape(name, batch, context) for name in decoder.caches}
    shapes |= decoder.crossed_shapes(batch)
    kinds = {spec.name: spec.dtype for spec in decoder.specs}
    return sum(
        math.prod(shape) * ELEMENT_BITS.get(kinds[name], 16) // 8 for name, shape in shapes.items()
    )


def run_bytes(decoder: Decoder, batch: int, prompt: int, tokens: int) -> int:
    """Return the least memory of a run: weights, the cache at its end, the logits of the prompt."""
    cache = kv_bytes(decoder, batch, prompt + tokens)
    weights = summarise(decoder.document).weight_bytes
    return weights + cache + _logits_bytes(decoder, batch, prompt)


def _logits_bytes(decoder: Decoder, batch: int, length: int) -> int:
    known = decoder.document.main.value_type(decoder.logits)
    width = known.dims[-1] if known is not None and known.dims else None
    if known is None or not isinstance(width, int) or width < 1:
        return 0
    return batch * length * width * ELEMENT_BITS.get(known.dtype or "", 32) // 8


def _phase(decoder: Decoder, phase: Phase, batch: int, context: int) -> tuple[PhaseBudget, int]:
    at_once = phase == "prefill" and not decoder.takes_one
    past, length = (0, context) if at_once else (context - 1, 1)
    document = decoder.document
    # One token at a time: as many runs as the prompt has tokens, each as long as the last one.
    runs = context if phase == "prefill" and decoder.takes_one else 1
    guess = decoder.guess(batch, past, length)
    follow_shapes(document, guess.shapes)
    costs = ModelCosts(document, _symbols(decoder, guess, past + length))
    flops = costs.known.flops
    return PhaseBudget(
        phase,
        batch,
        context,
        flops * runs if isinstance(flops, int) else None,
        _read_weights(document, batch * length) * runs,
        sum(kv_bytes(decoder, batch, seen) for seen in (1, context)) * runs // 2
        if runs > 1
        else kv_bytes(decoder, batch, context),
        memory_plan(costs, outputs=False).peak,
        _logits_bytes(decoder, batch, length),
    ), len(costs.unknown)


def _read_weights(document: Document, rows: int) -> int:
    """Return the bytes of the main graph's weights that a run reads."""
    main, total = document.main, 0
    for tensor in main.initializers:
        users = main.consumers(tensor.name)
        size = tensor.nbytes or 0
        picks = users and all(
            operator(node.domain, node.op_type).selects and node.inputs[0] == tensor.name
            for node in users
        )
        if picks and tensor.shape and tensor.shape[0]:
            size = min(size, rows * size // tensor.shape[0])
        total += size
    return total


def _symbols(decoder: Decoder, guess: Guess, total: int) -> dict[str, int]:
    """Return the sizes of symbolic dimensions of inputs and of caches."""
    main, sizes = decoder.document.main, dict[str, int]()
    shapes = guess.shapes
    for spec in decoder.specs:
        sizes.update(sizes_of(spec.dims, shapes[spec.name]))
    for pair in decoder.pairs:
        known = main.value_type(pair.present)
        dim = known.dims[pair.axis] if known is not None and known.dims else None
        if isinstance(dim, str):
            sizes.setdefault(dim, total)
    return sizes


FIT_COLUMNS: tuple[Column[Fit], ...] = (
    Column("batch", "batch", lambda row: row.batch, COUNT),
    Column("context", "context", lambda row: row.context, COUNT),
    Column("weight_bytes", "weights", lambda row: row.weight_bytes, BYTES),
    Column("kv_bytes", "KV cache", lambda row: row.kv_bytes, BYTES),
    Column("activation_bytes", "activations", lambda row: row.activation_bytes, BYTES),
    Column("logits_bytes", "logits", lambda row: row.logits_bytes, BYTES),
    Column("total_bytes", "together", lambda row: row.total_bytes, BYTES),
    Column("prompt_bytes", "prompt at once", lambda row: row.prompt_bytes, BYTES,
           help="Total while one prompt fills the whole context."),
)  # fmt: skip


def fit_table(budget: Budget, devices: Sequence[Device]) -> Table[Fit]:
    """Return a row for each batch and context, with a column for each device whether it fits."""

    def fits(device: Device) -> Column[Fit]:
        memory = device.memory_bytes or 0
        return Column(
            f"fits {device.name}", device.name, lambda row: row.total_bytes <= memory, FLAG,
            help="Whether everything fits in memory.",
        )  # fmt: skip

    sized = [fits(device) for device in devices if device.memory_bytes]
    return Table((*FIT_COLUMNS, *sized), list(budget.fits), name="fits", title="Memory")


@dataclass(frozen=True)
class LeastTime:
    """A phase on a device."""

    budget: PhaseBudget
    device: str
    ms: float | None
    bound: str

    @property
    def tokens_per_s(self) -> float | None:
        """Tokens of all sequences a second."""
        tokens = self.budget.context if self.budget.phase == "prefill" else 1
        return 1000 * self.budget.batch * tokens / self.ms if self.ms else None


TIME_COLUMNS: tuple[Column[LeastTime], ...] = (
    Column("phase", "phase", lambda row: row.budget.phase),
    Column("batch", "batch", lambda row: row.budget.batch, COUNT),
    Column("context", "context", lambda row: row.budget.context, COUNT),
    Column("flops", "FLOPs", lambda row: row.budget.flops, SHORT),
    Column("weight_bytes", "weights", lambda row: row.budget.weight_bytes, BYTES),
    Column("cache_bytes", "cache", lambda row: row.budget.cache_bytes, BYTES),
    Column("device", "device", lambda row: row.device, TEXT),
    Column("least_ms", "at least", lambda row: row.ms, MS),
    Column("tokens_per_s", "tokens/s at most", lambda row: row.tokens_per_s, SHORT),
    Column("bound", "limit", lambda row: row.bound, TEXT),
)


def time_table(budget: Budget, devices: Sequence[Device]) -> Table[LeastTime]:
    """Return a row for each phase and device; without devices one without times."""
    rows = []
    for phase in budget.phases:
        for device in devices or (Device("", None, None),):
            least = None if device.peaks is None else phase.least_ms(device.peaks, budget.types)
            rows.append(
                LeastTime(phase, device.name, *(least if least is not None else (None, "")))
            )
    return Table(TIME_COLUMNS, rows, name="times", title="Least times")
