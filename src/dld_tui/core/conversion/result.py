"""Results of conversions of whole models, and writing the converted model in one step.

Every result has the written file and how the model changed (:class:`ConversionResult`); most also
have the outcome of the verification (:class:`VerifiedResult`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Literal

from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import WeightLoss
from dld_tui.core.conversion.quantization_plan import Point
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.document.document import Document
from dld_tui.core.document.serialise import skeleton_bytes
from dld_tui.core.document.summary import summarise
from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import SaveError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.external import is_data_file, named_data_files, remove_unused
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.tensorrt.retyping import CastFigures, CastLoss
from dld_tui.core.text import clip, visible


@dataclass(frozen=True)
class ModelFigures:
    """Figures of a model that a conversion changes."""

    nodes: int
    """Of all scopes."""
    operators: dict[str, int]
    """Nodes by operator."""
    initializers: int
    weight_bytes: int
    """Of initializers and Constant nodes."""
    external_bytes: int
    """In data files."""
    weights_by_type: dict[str, int]
    """Bytes by element type, the most first."""
    functions: int
    opsets: dict[str, int]
    """Versions by domain."""


def figures(document: Document) -> ModelFigures:
    """Return nodes, weights, operators and element types of a model."""
    summary = summarise(document)
    weights: Counter[str] = Counter()
    for scope in document.scopes():
        for tensor in scope.initializers:
            if tensor.location != "none":
                weights[tensor.dtype] += tensor.nbytes or 0
        for node in scope.nodes_of_type("Constant"):
            for attribute in node.proto.attribute:
                if attribute.HasField("t"):
                    tensor = Tensor(attribute.t, document)
                    weights[tensor.dtype] += tensor.nbytes or 0
    return ModelFigures(
        nodes=summary.nodes_total,
        operators=dict(summary.op_types),
        initializers=summary.initializers,
        weight_bytes=sum(weights.values()),
        external_bytes=summary.external_bytes,
        weights_by_type=dict(weights.most_common()),
        functions=len(summary.functions),
        opsets=dict(summary.opsets),
    )


@dataclass(frozen=True)
class OutputError(TensorError):
    """The error of an output."""

    problem: str = ""
    """Why that is too large; empty where it is acceptable."""

    @classmethod
    def of(cls, error: TensorError, problem: str) -> OutputError:
        """Return an error, and why it is too large."""
        values = {item.name: getattr(error, item.name) for item in fields(error)}
        return cls(**values, problem=problem)


@dataclass(frozen=True)
class NotCompared:
    """The values of a result were not compared with the original's."""

    skipped: str
    """Why not. Foreign text."""
    is_wrong = False


@dataclass(frozen=True)
class ComparedValues:
    """The comparison of the values of a result with the original's."""

    outputs: dict[str, OutputError]
    is_good: bool
    """Whether the errors of all outputs are acceptable."""
    first: FailingNode | None = None
    """The first node whose values are wrong."""
    repaired: list[FailingNode] = field(default_factory=list)
    """Nodes that kept their type, so that the values are right."""
    advice: str = ""
    """What can be done about the first node. Foreign text."""
    inputs: Literal["random", "files"] = "random"
    sets: int = 1
    """Of inputs."""
    guess: list[str] = field(default_factory=list)
    """The guessed shapes of inputs. Foreign text."""
    skipped: str = ""

    @property
    def is_wrong(self) -> bool:
        """Whether the error of an output is too large."""
        return not self.is_good


@dataclass(frozen=True)
class Latencies:
    """Medians of one pass of both models on the CPU of this machine, in ms."""

    before: float
    after: float
    is_clear: bool
    """Whether the interquartile ranges of both do not overlap."""


@dataclass(frozen=True, kw_only=True)
class ConversionResult:
    """The common part of all conversion results."""

    path: Path
    """The model that was written."""
    before: ModelFigures
    after: ModelFigures
    notes: list[str]
    """What was not converted, and the like. Foreign text."""
    remarks: list[str]
    """Remarks on writing the file. Foreign text."""


@dataclass(frozen=True, kw_only=True)
class VerifiedResult(ConversionResult):
    """The result of a conversion that is loaded, run and compared before it is written."""

    values: ComparedValues | NotCompared
    latency_ms: Latencies | None
    """None where they were not measured."""


@dataclass(frozen=True, kw_only=True)
class StrippedModel(ConversionResult):
    """A model without the values of its weights."""

    moved: int
    """Weights."""
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class MovedWeights(VerifiedResult):
    """A model whose weights are in another file."""

    moved: int
    """Weights."""
    moved_bytes: int


@dataclass(frozen=True, kw_only=True)
class DequantizedModel(VerifiedResult):
    """A model whose quantized weights were converted to floating point."""

    weights: int
    weight_bytes: int


@dataclass(frozen=True, kw_only=True)
class HalfModel(VerifiedResult):
    """A model in float16 or bfloat16, made by any converter."""

    losses: list[WeightLoss]
    """Weights with values out of the range of the type."""
    library: str
    """The converter."""
    range_check: bool
    """Whether all of them are listed."""


@dataclass(frozen=True, kw_only=True)
class OwnHalfModel(HalfModel):
    """A model made by dld's own converter, which reports more."""

    nodes: int
    """In the type."""
    casts: int
    """That were added."""
    weights: int
    """That were converted."""
    kept: dict[str, int]
    """Nodes that kept their type, counted by reason. Foreign text."""
    inlined: int
    """Calls of functions."""
    to: str
    """The type."""


@dataclass(frozen=True, kw_only=True)
class ConvertedOpset(VerifiedResult):
    """A model of another version of the ai.onnx operators. Counts are of nodes, by operator."""

    from_: int
    to: int
    changed: dict[str, int]
    added: dict[str, int]
    removed: dict[str, int]
    initializers: int
    """That were added."""
    unconverted: list[str]
    """What could not be converted, one sentence each. Foreign text."""


@dataclass(frozen=True, kw_only=True)
class ResizedDimension:
    """A dimension that was made dynamic, fixed, or got another size."""

    key: str
    """Foreign text."""
    axes: dict[str, int]
    """By input."""
    from_: int | str | None
    """A size, or the name of a dynamic one; None where it had none."""
    to: int | str


@dataclass(frozen=True, kw_only=True)
class ResizedModel(VerifiedResult):
    """A model with other dimensions."""

    dimensions: list[ResizedDimension]
    changed: list[str]
    """Nodes with constants that held an old size, one sentence each. Foreign text."""


@dataclass(frozen=True)
class SimplifierTrial:
    """A trial of one simplifier, or of several in sequence."""

    by: str
    nodes: int | None
    """None where it failed."""
    problem: str | None
    """Why it was not taken. Foreign text."""


@dataclass(frozen=True, kw_only=True)
class SanitizedModel(VerifiedResult):
    """A model that simplifiers reduced."""

    tried: list[SimplifierTrial]


@dataclass(frozen=True, kw_only=True)
class QuantizedModel(VerifiedResult):
    """A model with quantized weights, and perhaps activations."""

    sets: int
    """Of calibration inputs."""
    method: str
    ops: list[str]
    points: list[Point]
    """Tensors with QuantizeLinear and DequantizeLinear of static quantization."""


@dataclass(frozen=True)
class QuantizationPoints:
    """The tensors that static quantization would quantize; nothing is written."""

    points: list[Point]
    notes: list[str]
    lines: list[str]
    """For people."""
    remarks: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class ConvertedWeights(VerifiedResult):
    """A model with weights in another element type."""

    converted: int
    """Tensors."""
    casts: int
    """That were added."""


@dataclass(frozen=True)
class TensorLosses:
    """What tensors would lose in another element type; nothing is written."""

    to: str
    tensors: list[TensorLoss]


@dataclass(frozen=True, kw_only=True)
class PrecisionCasts:
    """The casts that layers need; nothing is written."""

    lines: list[str]
    """For people."""
    figures: CastFigures
    losses: list[CastLoss]


@dataclass(frozen=True, kw_only=True)
class PrecisionModel(VerifiedResult, PrecisionCasts):
    """A model with these casts."""


HalfResult = OwnHalfModel | HalfModel
QuantizationResult = QuantizedModel | QuantizationPoints
TensorsResult = ConvertedWeights | TensorLosses
PrecisionsResult = PrecisionModel | PrecisionCasts
Preview = QuantizationPoints | TensorLosses | PrecisionCasts
"""Results of conversions that only report what they would do."""


def write_result(
    before: Document,
    after: Document,
    output: Path,
    make: Callable[..., ConversionResult],
    notes: Sequence[str] = (),
) -> Iterator[Event]:
    """Write a converted model and yield the events that end the job.

    Args:
        before: The model as it was; it may be what is at `output` now.
        after: The converted model.
        output: The file to write.
        make: Makes the result from the common fields.
        notes: What was not converted.

    Raises:
        SaveError: It cannot be written; what was there is untouched.
    """
    if before.path is not None and is_data_file(output, before.path):
        raise SaveError(
            f"it holds weights of {visible(before.path.name)}", where=str(output),
            hint="Give another path",
        )  # fmt: skip
    yield Progress(0, None, stage="Writing the result")
    sides = figures(before), figures(after)
    plan = plan_model(
        skeleton_bytes(after), after.blobs, output, external=after.external, spill=after.spill
    )
    former = named_data_files(output) if output.exists() else []
    remarks = [*plan.write()]
    remarks += (f"{path.name} is removed: only the former model used it"
                for path in remove_unused(former, output))  # fmt: skip
    yield Finished(
        make(
            path=output, before=sides[0], after=sides[1],
            notes=[*notes, *_removed_inputs(before, after)], remarks=remarks,
        )
    )  # fmt: skip


def _removed_inputs(before: Document, after: Document) -> list[str]:
    """Return a note on inputs with a default that the conversion folded."""
    left = {*after.main.inputs}
    gone = [name for name in before.main.inputs if name not in left]
    names = ", ".join(visible(name) for name in gone if before.main.is_default(name))
    return [f"{clip(names, 80)}: no longer an input, its default was folded"] if names else []
