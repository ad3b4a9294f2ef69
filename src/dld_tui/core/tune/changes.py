"""What may be changed to make a model faster, as data: advice and tuning speak of the same.

A change converts the model by an activity, or is a setting of the session, in the words of the
requests of these activities.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from dld_tui.core.conversion.agreement import BFLOAT16, FLOAT16, QUANTIZED, SAME, Agreement
from dld_tui.core.types import JSON

_GPU = ("CUDA", "Tensorrt", "NvTensorRTRTX")


@dataclass(frozen=True)
class Change:
    """One thing that may be done."""

    id: str
    title: str
    """A few words."""
    reason: str = ""
    """Why it can be faster, as a part of a sentence."""
    convert: str = ""
    """The activity that makes another model; empty for a setting of the session."""
    values: Mapping[str, JSON] = field(default_factory=dict)
    """Of that activity."""
    session: Mapping[str, JSON] = field(default_factory=dict)
    """Settings of ``profile_onnxruntime``."""
    agreement: Agreement = SAME
    """How near to the model as it is the results must be."""
    providers: tuple[str, ...] = ()
    """For which it makes sense; empty for all."""
    needs: str = ""
    """The setting of a request without which it cannot be done."""
    ops: tuple[str, ...] = ()
    """Operators of which the model must have one; empty for any model."""
    repairs: bool = False
    """Whether the conversion can leave nodes as they are where outputs come out wrong."""


_ENTRIES = "session_config"
_PRODUCTS = ("Conv", "MatMul", "Gemm", "LSTM", "GRU", "Attention")

CHANGES: tuple[Change, ...] = (
    Change("int8-dynamic", "int8, scales while it runs",
           "weights are a quarter of the bytes, and int8 products take fewer instructions",
           "convert_quantize", {"dynamic": True}, agreement=QUANTIZED, providers=("CPU",),
           repairs=True, ops=_PRODUCTS),
    Change("int8", "int8, calibrated",
           "numbers are a quarter of the bytes, and int8 products take fewer instructions",
           "convert_quantize", {}, agreement=QUANTIZED, needs="calibration", repairs=True,
           ops=_PRODUCTS),
    Change("fp16", "fp16", "numbers are half of the bytes to move", "convert_fp16",
           {"keep_io_types": True}, agreement=FLOAT16, repairs=True),
    Change("bf16", "bf16", "numbers are half of the bytes to move", "convert_bf16",
           {"keep_io_types": True}, agreement=BFLOAT16, providers=_GPU, repairs=True),
    Change("weights-int8", "weights in int8, computed in floating point",
           "weights are a quarter of the bytes to read", "convert_quantize", {"weights_only": True},
           agreement=QUANTIZED, repairs=True, ops=("MatMul", "Gather")),
    Change("simplified", "simplified graph",
           "constants are computed beforehand, and needless nodes are gone", "convert_sanitize"),
    Change("opset", "newest opset", "newer versions of operators have kernels of their own",
           "convert_opset", {"to": 0}),
    Change("no-spinning", "threads sleep while they wait",
           "threads that wait leave their cores to others",
           session={_ENTRIES: ["session.intra_op.allow_spinning=0"]}, providers=("CPU",)),
    Change("extended", "no layouts of its own",
           "the changes to a blocked layout and back are left out",
           session={"optimization_level": "extended"}, providers=("CPU",)),
    Change("basic", "basic optimisation", "operators stay apart where fused ones are slower",
           session={"optimization_level": "basic"}),
    Change("blocks", "work in small blocks",
           "with smaller shares of the work, threads wait less for the last one",
           session={_ENTRIES: ["session.dynamic_block_base=4"]}, providers=("CPU",)),
    Change("denormals", "denormal numbers are zero",
           "processors compute slowly with the numbers next to zero",
           session={_ENTRIES: ["session.set_denormal_as_zero=1"]}, providers=("CPU",)),
    Change("gelu", "GELU by tanh", "tanh takes fewer steps than erf",
           session={_ENTRIES: ["optimization.enable_gelu_approximation=1"]},
           ops=("Erf", "Gelu", "BiasGelu")),
    Change("parallel", "operators at once",
           "operators that do not need each other run at the same time",
           session={"inter_threads": 2}, providers=("CPU",)),
    Change("io-binding", "IO binding", "inputs and outputs stay on the device",
           session={"io_binding": True}, providers=_GPU),
    Change("cuda-graph", "CUDA graph", "all kernels are launched at once",
           session={"io_binding": True, "provider_option": ["enable_cuda_graph=1"]},
           providers=("CUDA",)),
    Change("nhwc", "channels last", "convolutions get the layout of tensor cores",
           session={"provider_option": ["prefer_nhwc=1"]}, providers=("CUDA",), ops=("Conv",)),
    Change("heuristic", "convolutions by heuristic", "kernels of convolutions are chosen by rule",
           session={"provider_option": ["cudnn_conv_algo_search=HEURISTIC"]}, providers=("CUDA",),
           ops=("Conv",)),
    Change("tensorrt", "TensorRT", "TensorRT fuses layers and times kernels for each",
           session={"provider": "Tensorrt,CUDA"}, providers=("CUDA",)),
    Change("tensorrt-fp16", "TensorRT in fp16",
           "TensorRT fuses layers and times kernels for each, and numbers are half of the bytes",
           session={"provider": "Tensorrt,CUDA", "provider_option": ["trt_fp16_enable=1"]},
           agreement=FLOAT16, providers=("CUDA",)),
)  # fmt: skip
"""All that needs no figures of the machine or the model, those that mostly bring most first."""
_THREADS, _SHAPES, _BATCH = "threads-", "fixed-shapes", "batch-"
_REASONS = {
    _THREADS: "with this number of threads, the least time goes into waiting for each other",
    _SHAPES: "shapes are computed before the first run",
    _BATCH: "the items of a pass share its launches, and weights are read once",
}
"""Of changes that the machine or the model makes, by how their ids begin."""


def reasons_of(ids: Iterable[str]) -> list[str]:
    """Return why changes can be faster, each reason once; none of those that are not known."""
    known = {change.id: change.reason for change in CHANGES}
    found = [
        known.get(id)
        or next((text for start, text in _REASONS.items() if id.startswith(start)), "")
        for id in ids
    ]
    return [*dict.fromkeys(reason for reason in found if reason)]


@dataclass(frozen=True)
class Gains:
    """How many times as fast a change made models."""

    models: int
    least: float
    most: float


MEASURED: Mapping[str, Gains] = {
    "int8-dynamic": Gains(6, 0.96, 5.80),
    "simplified": Gains(7, 0.94, 1.06),
    "threads-1": Gains(4, 0.79, 0.92),
    "no-spinning": Gains(4, 0.58, 1.02),
    "blocks": Gains(3, 0.95, 1.03),
    "cuda-graph": Gains(2, 1.45, 2.96),
}
"""By change, of models whose work it is about: the table in docs/tuning.md."""


def measured_gains(changes: Iterable[str]) -> Gains | None:
    """Return what the best and the worst of some changes did; None where none was measured."""
    found = [MEASURED[name] for name in changes if name in MEASURED]
    if not found:
        return None
    most = max(one.models for one in found)
    return Gains(most, min(one.least for one in found), max(one.most for one in found))


def thread_changes(usable: int, physical: int | None) -> list[Change]:
    """Return numbers of threads that are worth trying; the default is one a physical core."""
    cores = min(physical or usable, usable)
    counts = sorted({1, max(1, cores // 2), cores, usable} - {0})
    return [
        Change(f"{_THREADS}{count}", f"{count} {'thread' if count == 1 else 'threads'}",
               _REASONS[_THREADS], session={"threads": count}, providers=("CPU",))
        for count in counts
    ]  # fmt: skip


def shape_change(sizes: Mapping[str, int]) -> Change:
    """Return the change that fixes free dimensions to the sizes of the inputs."""
    text = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return Change(_SHAPES, f"fixed {text}", _REASONS[_SHAPES],
                  session={"dim": [f"{n}={s}" for n, s in sizes.items()]})  # fmt: skip


def batch_change(size: int) -> Change:
    """Return the change that computes several items a pass."""
    return Change(
        f"{_BATCH}{size}", f"{size} items a pass", _REASONS[_BATCH], session={"batch": size}
    )


def usable_changes(
    changes: Iterable[Change],
    provider: str,
    operators: frozenset[str],
    given: Callable[[str], Any],
    only: Sequence[str] = (),
) -> list[Change]:
    """Return those that can be tried.

    Args:
        changes: All.
        provider: The short name of the first provider.
        operators: Those that the model has.
        given: Returns a setting of the request by its name.
        only: Ids; all where there are none.
    """
    return [
        one
        for one in changes
        if (not only or one.id in only)
        and (not one.providers or provider in one.providers)
        and (not one.needs or given(one.needs))
        and (not one.ops or not operators.isdisjoint(one.ops))
    ]


@dataclass(frozen=True)
class Setup:
    """A model and the settings to run it with."""

    model: Path
    changes: tuple[Change, ...] = ()

    @property
    def key(self) -> str:
        """What was changed, by ids."""
        return "+".join(change.id for change in self.changes) or "as it is"

    @property
    def title(self) -> str:
        """What was changed, in words."""
        return ", ".join(change.title for change in self.changes) or "as it is"

    @property
    def session(self) -> dict[str, JSON]:
        """Settings of ``profile_onnxruntime``; those of later changes win, lists are joined."""
        found: dict[str, JSON] = {}
        for change in self.changes:
            for name, value in change.session.items():
                known = found.get(name)
                both = isinstance(known, list) and isinstance(value, list)
                found[name] = [*known, *value] if both else value  # type: ignore[misc]
        return found

    @property
    def batch(self) -> int:
        """How many items a pass computes, in multiples of what the model is fed."""
        size = self.session.get("batch", 1)
        return size if isinstance(size, int) else 1

    @property
    def agreement(self) -> Agreement:
        """How near the results must be: what the change that costs most digits allows."""
        kinds = [change.agreement for change in self.changes]
        return min(kinds, key=lambda kind: kind.quiet_db, default=SAME)

    def goes_with(self, change: Change) -> bool:
        """Return whether a change sets nothing that another one has set."""
        return not any(
            name in change.session and not isinstance(value, list)
            for name, value in self.session.items()
        )

    def with_change(self, change: Change, model: Path | None = None) -> Setup:
        """Return it with one change more, and perhaps another model."""
        return replace(self, model=model or self.model, changes=(*self.changes, change))
