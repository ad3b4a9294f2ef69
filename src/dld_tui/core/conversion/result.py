"""Results of conversions of whole models: as data, as text, and written in one step.

Every result has the written file and how the model changed (:class:`ConversionResult`); most also
have the outcome of the verification (:class:`VerifiedResult`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from dld_tui.core import fmt
from dld_tui.core.accuracy.result import figure, signal_text
from dld_tui.core.accuracy.tensor_errors import TensorError
from dld_tui.core.codec import optional
from dld_tui.core.conversion.error_attribution import FailingNode
from dld_tui.core.conversion.fp16 import WeightLoss
from dld_tui.core.conversion.quantization_plan import QdqInsertion
from dld_tui.core.conversion.retyping import CastFigures, CastLoss
from dld_tui.core.conversion.tensor_casting import TensorLoss
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import SaveError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.external import is_data_file, named_data_files, remove_unused
from dld_tui.core.files.model_set import plan_model
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.tensors.tensor import Tensor
from dld_tui.core.notes import Note, NoteKind, plain_notes
from dld_tui.core.params import is_same_file
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.text import clip, shortened, visible

if TYPE_CHECKING:
    from dld_tui.core.conversion.opset import OpsetChanges


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
    summary = summarise(document, constants=False)  # they are counted by type below
    weights: Counter[str] = Counter()
    for scope in document.scopes():
        constants = [
            Tensor(attribute.t, document)
            for node in scope.nodes_of_type("Constant")
            for attribute in node.proto.attribute
            if attribute.HasField("t")
        ]
        for tensor in [*scope.initializers, *constants]:
            if tensor.location != "none":  # else it was stripped
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
    """Why not. Untrusted text."""
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
    """What can be done about the first node. Untrusted text."""
    inputs: Literal["random", "files"] = "random"
    sets: int = 1
    """Of inputs."""
    guess: list[str] = field(default_factory=list)
    """The guessed shapes of inputs. Untrusted text."""
    skipped: str = ""
    tolerance: str = ""
    """Of the elements, as ``dld accuracy`` writes it."""

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
    other_busy_threads: float | None = None
    """How many threads other programs kept busy meanwhile; None if that is not known."""


@dataclass(frozen=True, kw_only=True)
class ConversionResult:
    """The common part of all conversion results."""

    path: Path
    """The model that was written, or would have been."""
    before: ModelFigures
    after: ModelFigures
    notes: list[str]
    """What was not converted, and the like. Untrusted text."""
    remarks: list[str]
    """Remarks on writing the file. Untrusted text."""
    unsound: str = optional("")
    """Why the model is not valid, if it was written all the same. Untrusted text."""
    is_written: bool = True
    """False where outputs are wrong, unless they may be: what was at the path is untouched."""

    @property
    def end_text(self) -> str:
        """Where the model is, or why it is not there. Fit for a terminal."""
        path = visible(str(self.path))
        if self.is_written:
            return f"written to {path}"
        return f"not written to {path}, since outputs are wrong: --keep-wrong writes it anyway"


@dataclass(frozen=True, kw_only=True)
class VerifiedResult(ConversionResult):
    """The result of a conversion that is loaded, run and compared before it is written."""

    values: ComparedValues | NotCompared
    latency_ms: Latencies | None
    """None where they were not measured."""
    unchanged: bool = optional(False)
    """The conversion found nothing to do."""


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
    data_file: str = ""
    """Beside the model; empty where the weights are in the model. Untrusted text."""


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
    """Nodes that kept their type, counted by reason. Untrusted text."""
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
    """What could not be converted, one sentence each. Untrusted text."""


@dataclass(frozen=True, kw_only=True)
class ResizedDimension:
    """A dimension that was made dynamic, fixed, or got another size."""

    key: str
    """Untrusted text."""
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
    """Nodes with constants that held an old size, one sentence each. Untrusted text."""


@dataclass(frozen=True, kw_only=True)
class MergedModel(VerifiedResult):
    """Several models in one. Lists have one item for each model that was added."""

    links: list[dict[str, str]]
    """The tensor that became each input. Untrusted text."""
    renamed: list[dict[str, str]]
    """New names of tensors whose names were taken. Untrusted text."""


@dataclass(frozen=True, kw_only=True)
class CleanedModel(VerifiedResult):
    """A model that is written down in another way."""

    passes: dict[str, int]
    """How many places each pass has changed."""


@dataclass(frozen=True, kw_only=True)
class FoldedModel(VerifiedResult):
    """A model in which nodes are replaced by what they compute."""

    folded: str
    """What was done. Untrusted text."""


@dataclass(frozen=True, kw_only=True)
class ChangedTerminals(VerifiedResult):
    """A model whose inputs and outputs have other types or layouts, or nodes before or behind."""

    changed: list[str]
    """What changed, one line each. Untrusted text."""


@dataclass(frozen=True)
class SimplifierTrial:
    """A trial of one simplifier, or of several in sequence."""

    by: str
    nodes: int | None
    """None where it failed."""
    problem: str | None
    """Why it was not taken. Untrusted text."""


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
    points: list[QdqInsertion]
    """Tensors with QuantizeLinear and DequantizeLinear of static quantization."""


@dataclass(frozen=True)
class QuantizationPoints:
    """The tensors that static quantization would quantize; nothing is written."""

    points: list[QdqInsertion]
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
    *,
    keep_wrong: bool = False,
) -> Iterator[Event]:
    """Write a converted model unless its outputs are wrong, and yield the events that end the job.

    Args:
        before: The model as it was; it may be what is at `output` now.
        after: The converted model.
        output: The file to write.
        make: Makes the result from the common fields.
        notes: What was not converted.
        keep_wrong: Write it with wrong outputs, too.

    Raises:
        SaveError: It cannot be written; what was there is untouched.
    """
    if before.path is not None and is_data_file(output, before.path):
        raise SaveError(
            f"it holds weights of {visible(before.path.name)}", where=str(output),
            hint="Give another path",
        )  # fmt: skip
    result = make(
        path=output, before=figures(before), after=figures(after),
        notes=[*notes, *_removed_inputs(before, after)], remarks=[],
    )  # fmt: skip
    if isinstance(result, VerifiedResult) and result.values.is_wrong and not keep_wrong:
        yield Finished(replace(result, is_written=False))
        return
    yield Progress(0, None, stage="Writing the result")
    plan = plan_model(
        skeleton_bytes(after), after.blobs, output, external=after.external, spill=after.spill
    )
    former = named_data_files(output) if output.exists() else []
    # Only a conversion in place has the file of its model as its output.
    in_place = before.path is not None and is_same_file(output, before.path)
    if in_place:
        plan.text = before.text
    remarks = [*plan.write(overwrite=in_place)]
    remarks += (f"{path.name} is removed: only the former model used it"
                for path in remove_unused(former, output))  # fmt: skip
    yield Finished(replace(result, remarks=remarks))


def _removed_inputs(before: Document, after: Document) -> list[str]:
    """Return a note on inputs with a default that the conversion folded."""
    left = {*after.main.inputs}
    gone = [name for name in before.main.inputs if name not in left]
    names = ", ".join(visible(name) for name in gone if before.main.is_default(name))
    return [f"{clip(names, 80)}: no longer an input, its default was folded"] if names else []


_LISTED = 12
"""Operators that a summary names."""


def summary_lines(before: ModelFigures, after: ModelFigures) -> list[str]:
    """Return lines on the figures of a model before and after. Fit for a terminal."""
    lines = [
        _line("nodes", before.nodes, after.nodes),
        _line("initializers", before.initializers, after.initializers),
        _sizes("weights", before.weight_bytes, after.weight_bytes),
    ]
    if before.external_bytes or after.external_bytes:
        lines.append(_sizes("  external", before.external_bytes, after.external_bytes))
    return lines + count_lines(before, after)


def count_lines(before: ModelFigures, after: ModelFigures, *, all_types: bool = True) -> list[str]:
    """Return lines on weights by type, functions, and operators whose count changed.

    Args:
        before: The figures of the model.
        after: Those of the result.
        all_types: Name types, too, whose weights are as large as before.
    """
    sizes = {
        dtype: (before.weights_by_type.get(dtype, 0), after.weights_by_type.get(dtype, 0))
        for dtype in [*before.weights_by_type, *after.weights_by_type]
    }
    lines = [
        _sizes(f"  {dtype}", old, new)
        for dtype, (old, new) in sizes.items()
        if all_types or old != new
    ]
    if before.functions or after.functions:
        lines.append(_line("functions", before.functions, after.functions))
    return lines + _operators(before, after)


def _operators(before: ModelFigures, after: ModelFigures) -> list[str]:
    before_counts, after_counts = Counter(before.operators), Counter(after.operators)
    changed = [
        (abs(after_counts[name] - before_counts[name]), name)
        for name in {*before_counts, *after_counts}
        if before_counts[name] != after_counts[name]
    ]
    changed.sort(key=lambda item: (-item[0], item[1]))
    lines = [
        _line(f"  {clip(visible(name), 24)}", before_counts[name], after_counts[name])
        for _, name in changed[:_LISTED]
    ]
    if len(changed) > _LISTED:
        lines.append(f"  and {fmt.plural(len(changed) - _LISTED, 'operator')} more")
    return ["operators whose count changed:", *lines] if lines else []


def _line(label: str, before: int, after: int) -> str:
    change = "" if before == after else f"  ({after - before:+,})"
    return f"{label:<26} {fmt.count(before):>12} → {fmt.count(after)}{change}"


def _sizes(label: str, before: int, after: int) -> str:
    return f"{label:<26} {fmt.size(before):>12} → {fmt.size(after)}"


_LISTED_OUTPUTS = 12
NOISY = 10 ** (-10 / 20)
"""The noise of 10 dB, above which values are not called close."""


def values_lines(values: ComparedValues | NotCompared) -> list[str]:
    """Return lines on the values of a conversion's result. Fit for a terminal."""
    if isinstance(values, NotCompared):
        return [f"values were not compared: {visible(values.skipped)}"]
    lines = list(_near(values) if values.is_good else _wrong(values))
    lines += [f"compared with {visible(line)}" for line in values.guess]
    return lines + repaired_lines(values.repaired)


def _wrong(values: ComparedValues) -> Iterator[str]:
    for name, error in values.outputs.items():
        if error.problem:
            yield f"WRONG VALUES: output {_output(name, error)}: {visible(error.problem)}"
    if (first := values.first) is not None:
        yield f"  first at {_node(first)}: {_short(first.reason, 200)}"
    if values.advice:
        yield f"  {visible(values.advice)}"


def worst_output(values: ComparedValues) -> tuple[str, OutputError] | None:
    """Return the output with the most noise, and its error; None where none was compared."""
    return max(values.outputs.items(), key=lambda item: item[1].noise, default=None)


def outside_text(values: ComparedValues) -> str:
    """Return how many elements are outside of the tolerance; empty if none is."""
    outside = sum(error.outside or 0 for error in values.outputs.values())
    tolerance = f" ({values.tolerance})" if values.tolerance else ""
    verb = "is" if outside == 1 else "are"
    text = f"{fmt.plural(outside, 'element')} of outputs {verb} outside of the tolerance"
    return f"{text}{tolerance}" if outside else ""


def _near(values: ComparedValues) -> Iterator[str]:
    output = worst_output(values)
    if output is None:
        return
    name, worst = output
    fed = "random inputs" if values.inputs == "random" else "the inputs"
    tolerance = f" ({values.tolerance})" if values.tolerance else ""
    outside = outside_text(values)
    agreement = f"{outside or f'all outputs are within the tolerance{tolerance}'} on {fed}"
    if worst.noise > NOISY:  # small values may be below the tolerance of an element
        agreement += f", with noise of {fmt.whole_percent(100 * worst.noise)} %"
    elif outside:
        agreement += ", with little noise on the whole"
    yield f"{agreement}; largest error: {_output(name, worst)}"


def repaired_lines(nodes: Sequence[FailingNode]) -> list[str]:
    """Return lines on nodes that kept their type. Fit for a terminal."""
    if not nodes:
        return []
    lines = [f"{fmt.plural(len(nodes), 'node')} kept in the old type for accuracy:"]
    lines += [f"  {_node(node)}: {_short(node.reason, 120)}" for node in nodes[:_LISTED_OUTPUTS]]
    if len(nodes) > _LISTED_OUTPUTS:
        lines.append(f"  and {fmt.count(len(nodes) - _LISTED_OUTPUTS)} more")
    return lines


def _output(name: str, error: TensorError) -> str:
    noise = signal_text(error)
    ratio = "" if not noise else ", exact" if noise == "same" else f", signal to noise {noise} dB"
    largest = figure(error.max_abs)
    return f"{_short(name, 60)}{f' differs by at most {largest}' if largest else ''}{ratio}"


def _node(culprit: FailingNode) -> str:
    return f"{visible(culprit.op_type)} {_short(culprit.node, 80)}"


def _short(text: str, width: int) -> str:
    return clip(visible(text), width, keep="middle")


_LISTED_LOSSES = 12


def loss_lines(losses: Sequence[CastLoss | TensorLoss]) -> list[str]:
    """Return lines on weights that lose values, those out of range first. Fit for a terminal."""
    if not losses:
        return []

    ordered = sorted(losses, key=lambda loss: -(loss.overflow + loss.underflow))
    lines = [f"{fmt.plural(len(losses), 'weight')} would be rounded:"]
    for loss in ordered[:_LISTED_LOSSES]:
        counts = [
            f"{fmt.count(count)} {text}"
            for count, text in (
                (loss.overflow, "too large"), (loss.underflow, "to zero"), (loss.rounded, "rounded")
            )
            if count
        ]  # fmt: skip
        name = clip(visible(loss.name), 50, keep="middle")
        lines.append(f"  {name}: {', '.join(counts)}; largest error {loss.max_error:.3g}")
    if len(ordered) > _LISTED_LOSSES:
        lines.append(f"  and {fmt.count(len(ordered) - _LISTED_LOSSES)} more")
    return lines


_NAMED = 4
"""The most inputs of a dimension that are named."""
_CHANGED = 10
"""The most nodes with old sizes in constants that are named."""
_LISTED_LINES = 5
"""The most weights out of range that are named without ``--range-check``."""


def report_notes(result: ConversionResult) -> list[Note]:
    """Return what a conversion did, the most important first. Fit for a terminal."""
    lines = [f"NOT VALID: {visible(result.unsound)}"] if result.unsound else []
    notes = made_notes(result)
    if isinstance(result, VerifiedResult):
        lines += values_lines(result.values)
        lines += _latency_lines(result.latency_ms)
    lines += summary_lines(result.before, result.after)
    return [*notes, *plain_notes([*lines, *noted_lines(result)])]


def made_notes(result: ConversionResult) -> list[Note]:
    """Return notes on what a conversion of its kind did. Fit for a terminal."""
    notes = conversion_notes(result) if isinstance(result, ConvertedOpset) else []
    lines: list[str] = []
    if isinstance(result, MergedModel):
        lines += _link_lines(result)
    if isinstance(result, (StrippedModel, MovedWeights)):
        lines.append(_moved_line(result))
    if isinstance(result, CleanedModel):
        lines += [f"{name}: {fmt.plural(count, 'place')}" for name, count in result.passes.items()]
    if isinstance(result, ChangedTerminals):
        lines += [_short(line, 160) for line in result.changed]
    return [*notes, *plain_notes(lines)]


def _moved_line(result: StrippedModel | MovedWeights) -> str:
    weights = f"{fmt.plural(result.moved, 'weight')} of {fmt.size(result.moved_bytes)}"
    if isinstance(result, StrippedModel):
        return (
            f"{weights} taken out; dld convert restore brings them back from the original model"
            if result.moved
            else "no weight was taken out: none is an initializer above the threshold"
        )
    place = visible(result.data_file) or "the model"
    return f"{weights} moved to {place}" if result.moved else f"no weight was moved to {place}"


def noted_lines(result: ConversionResult) -> list[str]:
    """Return lines on dimensions, nodes and weights that need a look. Fit for a terminal."""
    lines = [*_dimension_lines(result)] if isinstance(result, ResizedModel) else []
    lines += note_lines(result.notes)
    if isinstance(result, HalfModel):
        lines += _half_lines(result)
    elif isinstance(result, PrecisionModel):
        lines += loss_lines(result.losses)
    return lines


def preview_lines(result: Preview) -> list[str]:
    """Return lines on what a conversion would do. Fit for a terminal."""
    if isinstance(result, TensorLosses):
        return loss_lines(result.tensors)
    if isinstance(result, PrecisionCasts):
        return [*result.lines, *loss_lines(result.losses)]
    return [*result.lines, *note_lines(result.notes)]


def note_lines(notes: Sequence[str]) -> list[str]:
    """Return notes as lines. Fit for a terminal."""
    return [f"note: {visible(note)}" for note in notes]


def conversion_notes(changes: OpsetChanges | ConvertedOpset) -> list[Note]:
    """Return notes on a change of opset; the first is a summary. Fit for a terminal."""
    counts: dict[str, Mapping[str, int]] = {
        "changed": changes.changed, "added": changes.added, "removed": changes.removed
    }  # fmt: skip
    totals = {part: sum(counted.values()) for part, counted in counts.items()}
    counts_text = [f"{fmt.count(total)} {part}" for part, total in totals.items() if total]
    summary = ", ".join(counts_text) or "no node had to change"
    lines = [f"opset {changes.from_} to {changes.to}: {summary}"]
    width = max((len(op) for counted in counts.values() for op in counted), default=0)
    for part, counted in counts.items():
        lines += [
            f"  {part:<8} {clip(visible(op_type), 60):<{min(width, 60)}}  {fmt.count(number)}"
            for op_type, number in counted.items()
        ]
    if changes.initializers:
        lines.append(f"  added    {fmt.plural(changes.initializers, 'initializer')}")
    left = (f"  not converted: {visible(note)}" for note in changes.unconverted)
    return [*plain_notes(lines), *(Note(NoteKind.WARNING, text) for text in left)]


def _dimension_lines(result: ResizedModel) -> Iterator[str]:
    for dimension in result.dimensions:
        axes = list(dimension.axes.items())
        places = [f"{clip(visible(name), 40)} axis {axis}" for name, axis in axes[:_NAMED]]
        if len(axes) > _NAMED:
            places.append(f"{len(axes) - _NAMED} more")
        before = "dynamic" if dimension.from_ is None else visible(str(dimension.from_))
        yield f"{', '.join(places)}: {before} → {visible(str(dimension.to))}"
    for line in result.changed[:_CHANGED]:
        yield f"  {visible(line)}"
    if len(result.changed) > _CHANGED:
        yield f"  and {fmt.plural(len(result.changed) - _CHANGED, 'more node')}"


def _link_lines(result: MergedModel) -> Iterator[str]:
    for links, renamed in zip(result.links, result.renamed, strict=True):
        linked = [(value, name) for name, value in links.items()]
        for verb, pairs in (("linked", linked), ("renamed", [*renamed.items()])):
            for first, second in pairs[:_CHANGED]:
                yield f"{verb}  {_short(first, 40)} → {_short(second, 40)}"
            if len(pairs) > _CHANGED:
                yield f"and {fmt.count(len(pairs) - _CHANGED)} more {verb}"


def value_problem(result: object) -> str:
    """Return why the outputs of a converted model do not count; empty where they are close."""
    if not isinstance(result, VerifiedResult):
        return "not compared"
    if isinstance(result.values, NotCompared):
        return f"not compared: {result.values.skipped}"
    wrong = (
        f"output {name}: {error.problem}"
        for name, error in result.values.outputs.items()
        if error.problem
    )
    return next(wrong, "")


def _latency_lines(latency: Latencies | None) -> Iterator[str]:
    if latency is None:
        return
    before, after = latency.before, latency.after
    text = "no difference beyond the noise"
    if latency.is_clear and 0 < after < before:
        text = f"speedup {before / after:.2f}×"
    elif latency.is_clear and after > before > 0:
        text = f"slower, {after / before:.2f}× the latency"
    busy = busy_text({"other_busy_threads": latency.other_busy_threads})
    text += f"; {busy}" if busy else ""
    yield f"{'latency on this CPU':<26} {before:>9.3g} ms → {after:.3g} ms  ({text})"


def _half_lines(result: HalfModel) -> list[str]:
    lines, dtype = [], "float16"
    if isinstance(result, OwnHalfModel):
        dtype = result.to
        lines.append(
            f"{fmt.plural(result.nodes, 'node')} in {dtype},"
            f" {fmt.plural(result.weights, 'weight')} converted,"
            f" {fmt.plural(max(result.casts, 0), 'cast')} added"
        )
        for reason, count in result.kept.items():
            lines.append(f"  kept {fmt.plural(count, 'node')}: {clip(visible(reason), 100)}")
        if result.inlined:
            lines.append(f"  {fmt.plural(result.inlined, 'function call')} inlined")
    return lines + range_lines(result.losses, dtype, all_losses=result.range_check)


def range_lines(losses: Sequence[WeightLoss], dtype: str, *, all_losses: bool) -> list[str]:
    """Return lines on weights with values out of a type's range. Fit for a terminal."""
    lines = []
    if losses:
        lines.append(f"{fmt.plural(len(losses), 'weight')} with values out of {dtype}'s range:")
    for loss in losses if all_losses else losses[:_LISTED_LINES]:
        lines.append(
            f"  {shortened(loss.name)}:"
            f" {fmt.count(loss.overflow)} too large and"
            f" {fmt.count(loss.underflow)} too small of {fmt.count(loss.count)};"
            f" largest {loss.largest:.3g}"
        )
    if len(losses) > _LISTED_LINES and not all_losses:
        lines.append(f"  and {len(losses) - _LISTED_LINES} more: --range-check lists all")
    return lines
