"""The changes that may make a model faster, as data that advice and tuning share.

A change converts the model through an activity, or by rewrite rules, or it sets session options.
Activities and options are named as in requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.conversion.accuracy_criteria import (
    BFLOAT16,
    FLOAT16,
    QUANTIZED,
    SAME,
    AccuracyCriteria,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.types import JSON

_GPU = ("CUDA", "Tensorrt", "NvTensorRTRTX")
LEAST_DB = 20.0
"""Signal to noise ratio that outputs of a candidate must have without a tolerance of the user, a
cosine of 0.995: embeddings and rankings survive it."""
DEFAULT_LIMIT = f"SNR of {LEAST_DB:g} dB (cosine 0.995) or more; closer where precision stays"
"""The limit of accuracy where the user gave none, for people."""


@dataclass(frozen=True)
class TuneChange:
    """A conversion or a group of session options that may make a model faster."""

    id: str
    title: str
    """A few words."""
    reason: str = ""
    """Why it can be faster, as a clause."""
    convert: str = ""
    """The id of the activity that converts the model; empty for session options."""
    values: Mapping[str, JSON] = field(default_factory=dict)
    """Settings of that activity."""
    session: Mapping[str, JSON] = field(default_factory=dict)
    """Settings of ``profile_onnxruntime``."""
    criteria: AccuracyCriteria = SAME
    """How close the outputs must be to those of the original model."""
    providers: tuple[str, ...] = ()
    """The execution providers that it applies to; empty for all."""
    needs: str = ""
    """The setting of the tuning request that it requires."""
    ops: tuple[str, ...] = ()
    """The model must contain one of these operators; empty for any model."""
    rules: tuple[str, ...] = ()
    """Rules of ``dld rewrite`` that convert the model, in this order."""
    is_explicit: bool = False
    """Whether it is tried only if it is asked for: ONNX Runtime usually does the same itself."""
    last_on: tuple[str, ...] = ()
    """Execution providers that have hardly any kernels for it: it is tried last there."""
    saves_launches: bool = False
    """Whether a pass waits for no launches any more: what launches more can be faster only then."""
    repairs: bool = False
    """Whether the conversion can exclude nodes when outputs exceed the tolerance."""

    @property
    def tolerance(self) -> tuple[str, ...]:
        """The tolerance for its conversion, where that would allow more noise than tuning does."""
        return (f"snr={LEAST_DB:g}",) if self.criteria.quiet_db < LEAST_DB else ()

    @property
    def makes_model(self) -> bool:
        """Whether it converts the model, rather than setting session options."""
        return bool(self.convert or self.rules)


_ENTRIES = "session_config"
_ATTENTION = (
    "casts", "no-ops", "shapes", "rotary-onnxruntime", "rotary-partial", "attention-grouped",
    "attention-onnxruntime",
)  # fmt: skip
"""In this order: attention is found where the sizes of rotated tensors are known."""
_PRODUCTS = ("Conv", "MatMul", "Gemm", "LSTM", "GRU", "Attention")

CHANGES: tuple[TuneChange, ...] = (
    TuneChange("int8-dynamic", "dynamic int8",
           "weights take a quarter of the bytes, and int8 products need fewer instructions",
           "convert_quantize", {"dynamic": True}, criteria=QUANTIZED, providers=("CPU",),
           repairs=True, ops=_PRODUCTS),
    TuneChange("int8", "static int8",
           "tensors take a quarter of the bytes, and int8 products need fewer instructions",
           "convert_quantize", {}, criteria=QUANTIZED, needs="calibration", repairs=True,
           ops=_PRODUCTS),
    TuneChange("fp16", "fp16", "half of the bytes have to be moved", "convert_fp16",
           {"keep_io_types": True}, criteria=FLOAT16, repairs=True, last_on=("CPU",)),
    TuneChange("bf16", "bf16", "half of the bytes have to be moved", "convert_bf16",
           {"keep_io_types": True}, criteria=BFLOAT16, providers=_GPU, repairs=True),
    TuneChange("weights-int8", "int8 weights, float computation",
           "a quarter of the weight bytes have to be read", "convert_quantize",
           {"weights_only": True}, criteria=QUANTIZED, repairs=True, ops=("MatMul", "Gather")),
    TuneChange("simplified", "simplified graph",
           "constants are folded and redundant nodes removed", "convert_sanitize"),
    TuneChange("opset", "newest opset", "newer operator versions can have faster kernels",
           "convert_opset", {"to": 0}),
    TuneChange("fused-attention", "fused attention",
           "one kernel computes attention without storing scores",
           rules=_ATTENTION, is_explicit=True, ops=("Softmax",)),
    TuneChange("fused-gelu", "fused GELU", "one kernel reads and writes the tensor once",
           rules=("gelu-onnxruntime",), is_explicit=True, ops=("Erf", "Tanh")),
    TuneChange("fused-normalization", "fused normalization",
           "one kernel reads and writes the tensor once",
           rules=("layer-norm", "rms-norm-onnxruntime"), is_explicit=True,
           ops=("ReduceMean",)),
    TuneChange("no-spinning", "no thread spinning",
           "waiting threads release their cores",
           session={_ENTRIES: ["session.intra_op.allow_spinning=0"]}, providers=("CPU",)),
    TuneChange("extended", "extended optimization",
           "tensors are not converted to a blocked layout and back",
           session={"optimization_level": "extended"}, providers=("CPU",)),
    TuneChange("basic", "basic optimization", "some fused operators are slower than separate ones",
           session={"optimization_level": "basic"}),
    TuneChange("blocks", "dynamic block size",
           "smaller blocks of work balance the load of the threads",
           session={_ENTRIES: ["session.dynamic_block_base=4"]}, providers=("CPU",)),
    TuneChange("denormals", "denormals as zero",
           "arithmetic with denormal numbers is slow",
           session={_ENTRIES: ["session.set_denormal_as_zero=1"]}, providers=("CPU",)),
    TuneChange("gelu", "tanh GELU", "tanh is cheaper than erf",
           session={_ENTRIES: ["optimization.enable_gelu_approximation=1"]},
           ops=("Erf", "Gelu", "BiasGelu")),
    TuneChange("parallel", "parallel execution",
           "independent operators run at the same time",
           session={"inter_threads": 2}, providers=("CPU",)),
    TuneChange("io-binding", "IO binding", "inputs and outputs stay on the device",
           session={"io_binding": True}, providers=_GPU),
    TuneChange("cuda-graph", "CUDA graph", "one launch replaces those of all kernels",
           session={"io_binding": True, "provider_option": ["enable_cuda_graph=1"]},
           providers=("CUDA",), saves_launches=True),
    TuneChange("nhwc", "NHWC layout", "convolutions run in the layout of Tensor Cores",
           session={"provider_option": ["prefer_nhwc=1"]}, providers=("CUDA",), ops=("Conv",)),
    TuneChange("heuristic", "heuristic convolution search",
           "cuDNN picks convolution kernels by heuristics",
           session={"provider_option": ["cudnn_conv_algo_search=HEURISTIC"]}, providers=("CUDA",),
           ops=("Conv",)),
    TuneChange("tensorrt", "TensorRT", "TensorRT fuses layers and selects kernels by timing them",
           session={"provider": "Tensorrt,CUDA"}, providers=("CUDA",)),
    TuneChange("tensorrt-fp16", "TensorRT in fp16",
           "TensorRT fuses layers and selects kernels by timing, and half of the bytes are moved",
           session={"provider": "Tensorrt,CUDA", "provider_option": ["trt_fp16_enable=1"]},
           criteria=FLOAT16, providers=("CUDA",)),
)  # fmt: skip
"""The changes that do not depend on the machine or the model, the most effective ones first."""
RULES_OF: Mapping[str, tuple[str, ...]] = {
    change.id: change.rules for change in CHANGES if change.rules
}
"""The rules of ``dld rewrite`` of changes that are made by rules."""
_THREADS, _SHAPES, _BATCH = "threads-", "fixed-shapes", "batch-"
_REASONS = {
    _THREADS: "this number of threads loses the least time to synchronization",
    _SHAPES: "shapes are computed when the session is created",
    _BATCH: "the items of a batch share kernel launches and weight reads",
}
"""Reasons for the changes that depend on the machine or the model, by the prefix of their ids."""


def reasons_of(ids: Iterable[str]) -> list[str]:
    """Return why changes can be faster, each reason once; unknown ids have none."""
    known = {change.id: change.reason for change in CHANGES}
    reasons = [
        known.get(id)
        or next((text for start, text in _REASONS.items() if id.startswith(start)), "")
        for id in ids
    ]
    return [*dict.fromkeys(reason for reason in reasons if reason)]


@dataclass(frozen=True)
class Gains:
    """The measured range of speedups of a change."""

    models: int
    least: float
    most: float

    @property
    def text(self) -> str:
        """The range, and of how many models."""
        return f"{self.least:.2f}× to {self.most:.2f}× on {fmt.plural(self.models, 'model')}"


MEASURED: Mapping[str, Gains] = {
    "int8-dynamic": Gains(16, 0.92, 5.80),
    "simplified": Gains(11, 0.94, 1.36),
    "threads-1": Gains(4, 0.79, 0.92),
    "no-spinning": Gains(4, 0.58, 1.02),
    "blocks": Gains(3, 0.95, 1.03),
    "cuda-graph": Gains(5, 1.45, 3.88),
    "attention-onnxruntime": Gains(7, 1.01, 1.30),
    "gelu-onnxruntime": Gains(6, 1.01, 1.12),
    "layer-norm": Gains(4, 1.00, 1.02),
}
"""Measured speedups by change, or by rule of ``dld rewrite``: the table in docs/guides/tune.md."""
FP16_HELD_UP = Gains(3, 0.81, 1.15)
"""Those of fp16 where a GPU waits for launches, since casts are launched, too: ConvNeXt, ResNet-50
and ViT on an H200 that waited for 58 to 74 % of a pass."""


def measured_gains(changes: Iterable[str]) -> Gains | None:
    """Return the range over all of these changes; None if none of them was measured."""
    gains = [MEASURED[name] for name in changes if name in MEASURED]
    if not gains:
        return None
    most = max(one.models for one in gains)
    return Gains(most, min(one.least for one in gains), max(one.most for one in gains))


def thread_changes(usable: int, physical: int | None) -> list[TuneChange]:
    """Return the thread counts to try; ONNX Runtime's default is one per physical core."""
    cores = min(physical or usable, usable)
    counts = sorted({1, max(1, cores // 2), cores, usable} - {0})
    return [
        TuneChange(f"{_THREADS}{count}", f"{count} {'thread' if count == 1 else 'threads'}",
               _REASONS[_THREADS], session={"threads": count}, providers=("CPU",))
        for count in counts
    ]  # fmt: skip


def shape_change(sizes: Mapping[str, int]) -> TuneChange:
    """Return the change that fixes dynamic dimensions to the sizes of the inputs."""
    text = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return TuneChange(_SHAPES, f"fixed {text}", _REASONS[_SHAPES],
                  session={"dim": [f"{n}={s}" for n, s in sizes.items()]})  # fmt: skip


def batch_change(size: int) -> TuneChange:
    """Return the change that computes a batch of several items in a pass."""
    return TuneChange(
        f"{_BATCH}{size}", f"batch of {size}", _REASONS[_BATCH], session={"batch": size}
    )


def usable_changes(
    changes: Iterable[TuneChange],
    provider: str,
    operators: frozenset[str],
    given: Callable[[str], Any],
    only: Sequence[str] = (),
) -> list[TuneChange]:
    """Return the changes that can be tried, those last that hardly help on the provider.

    Args:
        changes: All changes.
        provider: The short name of the first execution provider.
        operators: The operators of the model.
        given: Returns a setting of the request by its name.
        only: Ids of the changes to try; empty for all.
    """
    usable = (
        one
        for one in changes
        if (one.id in only if only else not one.is_explicit)
        and (not one.providers or provider in one.providers)
        and (not one.needs or given(one.needs))
        and (not one.ops or not operators.isdisjoint(one.ops))
    )
    return sorted(usable, key=lambda one: provider in one.last_on)


@dataclass(frozen=True)
class Setup:
    """A model and the session options to run it with."""

    model: Path
    changes: tuple[TuneChange, ...] = ()

    @property
    def key(self) -> str:
        """The ids of the changes."""
        return "+".join(change.id for change in self.changes) or "as it is"

    @property
    def title(self) -> str:
        """The changes in words."""
        return ", ".join(change.title for change in self.changes) or "original model"

    @property
    def session(self) -> dict[str, JSON]:
        """Settings of ``profile_onnxruntime``; those of later changes win, lists are joined."""
        settings: dict[str, JSON] = {}
        for change in self.changes:
            for name, value in change.session.items():
                known = settings.get(name)
                both = isinstance(known, list) and isinstance(value, list)
                settings[name] = [*known, *value] if both else value  # type: ignore[misc]
        return settings

    @property
    def batch(self) -> int:
        """How many times the original inputs a pass computes."""
        size = self.session.get("batch", 1)
        return size if isinstance(size, int) else 1

    @property
    def criteria(self) -> AccuracyCriteria:
        """How close the outputs must be.

        That is what the least accurate of the changes allows, and never less than :data:`LEAST_DB`.
        """
        kinds = [change.criteria for change in self.changes]
        kind = min(kinds, key=lambda one: one.quiet_db, default=SAME)
        return replace(kind, quiet_db=max(kind.quiet_db, LEAST_DB), least_db=LEAST_DB)

    def goes_with(self, change: TuneChange) -> bool:
        """Return whether no earlier change sets what this one sets."""
        return not any(
            name in change.session and not isinstance(value, list)
            for name, value in self.session.items()
        )

    def with_change(self, change: TuneChange) -> Setup:
        """Return a copy with one more change."""
        return replace(self, changes=(*self.changes, change))


def combinations(
    best: Sequence[Setup], helped: Sequence[Setup], lost: Sequence[Setup]
) -> list[Setup]:
    """Return the settings that helped, together and on the second best model, too.

    Also on models that lost, with settings that let them win: one in fp16 launches casts, too, and
    is slower as long as a GPU waits for launches.

    Args:
        best: Models that were faster than the original one, which comes last.
        helped: Settings with the best one, the fastest first.
        lost: Models that were slower.
    """
    setups = list(helped[:2])

    def add(combined: Setup, on: Setup) -> None:
        if combined.changes != on.changes and combined.key not in {one.key for one in setups}:
            setups.append(combined)

    for setup in best[:2]:
        for most in (len(helped), 2, 1):
            combined = setup
            for one in helped[:most]:
                if combined.goes_with(one.changes[-1]):
                    combined = combined.with_change(one.changes[-1])
            add(combined, setup)
    for one in helped:
        for setup in lost[:2] if one.changes[-1].saves_launches else ():
            add(setup.with_change(one.changes[-1]), setup)
    return setups
