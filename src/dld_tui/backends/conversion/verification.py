"""Verification of a converted model: it is loaded and run, compared with the original, and timed.

The first trial replaces large weights by zeros, which saves time and memory. It finds types that do
not match and operators without a kernel.

For the comparison, ONNX Runtime runs both models on a CPU. Where the outputs differ, a run that
rounds tensors to float16 or bfloat16 between nodes finds the nodes that cause it
(:mod:`dld_tui.core.conversion.error_attribution`).
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import traceback
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import onnx
from onnx import helper

from dld_tui.backends.accuracy.runs import has_halves
from dld_tui.backends.conversion.soundness import (
    default_settings,
    newer_opset,
    refusal,
    way_round,
    with_choice,
)
from dld_tui.backends.conversion.value_check import (
    QUIET,
    UNOPTIMIZED,
    Question,
    Terms,
    ValueCheck,
    Verdict,
    typed_feed,
)
from dld_tui.backends.onnxruntime.limits import is_of_limit, limit_trials, naming, with_node
from dld_tui.backends.onnxruntime.session import Session, with_loading_progress
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import (
    TensorRunner,
    has_many_nodes,
    settings_for_copies,
)
from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core import fmt
from dld_tui.core.accuracy.tensor_errors import parse_tolerances
from dld_tui.core.conversion.accuracy_criteria import (
    SAME,
    SAME_HALVES,
    AccuracyCriteria,
)
from dld_tui.core.conversion.error_attribution import (
    FailingNode,
    failing_nodes,
    rounded_copy,
)
from dld_tui.core.conversion.request import ValueVerification, Verification
from dld_tui.core.conversion.result import (
    ComparedValues,
    Latencies,
    NotCompared,
    OutputError,
    figures,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    TimeLimitError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Log, Progress
from dld_tui.core.files.external import payload_length
from dld_tui.core.files.model_set import discard_view, external_view
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.machine.environment import CpuWatch
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders
from dld_tui.core.model.inputs.guess import (
    Guess,
    candidate_guesses,
    first_that_runs,
    input_specs,
    specs_for,
)
from dld_tui.core.model.inputs.shapes import parse_shapes
from dld_tui.core.model.operators.native import too_wide
from dld_tui.core.model.tensors.value_types import value_type_of
from dld_tui.core.notes import Note, NoteKind, texts
from dld_tui.core.text import visible
from dld_tui.core.trials import Answer, Outcome

_UNVERIFIED = "--no-verify writes it without verification"
_LARGE, _MANY = 1 << 16, 64 << 20
"""Bytes of weights, and of all of them, from which nodes make them."""
_SINCE = 9
_MADE = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16, onnx.TensorProto.DOUBLE,
         onnx.TensorProto.INT8, onnx.TensorProto.UINT8, onnx.TensorProto.INT32,
         onnx.TensorProto.INT64)  # fmt: skip
"""What ConstantOfShape makes, since version 9 of the operators."""


def verify(
    original: Document,
    result: Document,
    title: Path,
    shapes: Sequence[str] = (),
    hint: str | None = None,
    *,
    is_for_runtime: bool = True,
    feed: Mapping[str, Any] | None = None,
) -> Generator[Event, None, list[Note]]:
    """Load and run a converted model; return what could not be found out.

    Yields what it does, and which shapes it guessed.

    Args:
        original: The model before: what it cannot do either is no fault of the conversion.
        result: The model after.
        title: The file that errors name.
        shapes: Of inputs, ``NAME:1x3x224x224``; what is open is guessed.
        hint: What can be done when it fails.
        is_for_runtime: ONNX Runtime is what will run it, with default options.
        feed: Inputs; guessed ones by default.

    Raises:
        ActivityError: The result cannot be loaded or run, but the original can; names the node
            where ONNX Runtime does. Or it runs as it is written, but not with default options.
        TimeLimitError: Running the result takes too long.
        UnavailableError: ONNX Runtime is missing.
    """
    stage = "Running the result with ONNX Runtime"
    try:
        why, guess = yield from with_loading_progress(
            stage, lambda: _run(result, title, shapes, feed=feed)
        )
    except (UsageError, TimeLimitError):
        raise
    except UnavailableError as error:
        message = f"the result cannot be verified: {error.message}"
        raise UnavailableError(message, hint=f"{error.hint}. {_UNVERIFIED}") from None
    except DldError as error:
        _release(error)
        try:
            yield from with_loading_progress(
                "Trying the original", lambda: _run(original, title, shapes, feed=feed)
            )
        except DldError as before:
            _release(before)
            text = f"not verified, as the original cannot be run either: {with_node(before)}"
            if before.hint and feed is None:
                text += f". {before.hint}"
            return [Note(NoteKind.UNVERIFIED, text)]
        named = None if ": " in (error.where or "") else _misdeclared(result)
        raise ActivityError(
            f"the converted model cannot be used: {named or error.message}",
            where=error.where,
            hint=newer_opset(result) or hint or error.hint,
            details=error.details,
        ) from error
    for remark in guess.remarks if guess is not None else ():
        yield Log(f"Tried with {remark}")
    if why:
        return [Note(NoteKind.NOT_RUN, f"loaded but not run: {why}")]
    if is_for_runtime:
        yield from with_loading_progress(
            stage, lambda: _require_default(original, result, title, shapes, feed)
        )
    return []


def _require_default(
    original: Document,
    result: Document,
    title: Path,
    shapes: Sequence[str],
    feed: Mapping[str, Any] | None,
) -> None:
    """Refuse a result that runs as it is written, but not with default options.

    Optimization may make something else of it.

    Raises:
        ActivityError: It does not run, but the original does; the hint says with which options it
            runs.
    """

    def error_of(document: Document, changes: Mapping[str, Any]) -> DldError | None:
        try:
            _run(document, title, shapes, replace(default_settings(document), **changes), feed)
        except TimeLimitError:
            return None
        except DldError as error:
            _release(error)
            return error
        return None

    error = error_of(result, {})
    if error is None or error_of(original, {}) is not None:
        return
    around = way_round(lambda changes: error_of(result, changes) is None)
    raise with_choice(refusal(with_node(error), around))


def _release(error: DldError) -> None:
    """Let go of the session that the frames of an error hold, with all the memory that it took."""
    one: BaseException | None = error
    while one is not None:
        traceback.clear_frames(one.__traceback__)
        one.__traceback__ = None
        one = one.__cause__ or one.__context__
    gc.collect()


def _misdeclared(result: Document) -> str | None:
    """Return which weight is not of the type that is declared, which ONNX Runtime does not say."""
    main = result.main
    for name in ("input", "value_info", "output"):
        for record in main.records[name]:
            tensor = main.initializer(text_of(record.name))
            declared = value_type_of(record.type)
            if tensor is None or declared is None or declared.dtype in (None, "", tensor.dtype):
                continue
            users = [
                f"{use.node.op_type} {visible(use.node.ref)}" for use in main.users(tensor.name)
            ]
            return (
                f"weight {visible(tensor.name)!r}{f' of node {users[0]}' if users else ''} is"
                f" {tensor.dtype}, and declared {declared.dtype}"
            )
    return None


def _run(
    document: Document,
    title: Path,
    shapes: Sequence[str],
    settings: SessionSettings | None = None,
    feed: Mapping[str, Any] | None = None,
) -> tuple[str, Guess | None]:
    """Load and run a model; return why it was not run, if so, and with which inputs it was.

    By default it is run as it is written.
    """
    view = external_view(
        skeleton_bytes(document), document.blobs, external=document.external, values=False
    )
    try:
        if why := too_wide(onnx.ModelProto.FromString(view.read_bytes())):
            return why, None
        is_large = _generate_zeros(view)
        with naming(document):
            session = Session(view, settings or settings_for_copies(UNOPTIMIZED, document), title)
            if is_large:
                return f"it has more than {fmt.size(_MANY)} of weights", None
            if any(spec.container for spec in session.inputs):
                return "an input is not a tensor", None
            specs = specs_for(session.inputs, document)
            if feed is not None:
                session.run_unread(session.feed(typed_feed(session, feed)))
                return "", None
            guesses = candidate_guesses(
                specs, document, parse_shapes(shapes, [spec.name for spec in specs])
            )
            guess, _ = first_that_runs(
                guesses, 0, lambda feeds: session.run_unread(session.feed(dict(feeds)))
            )
            return "", guess
    finally:
        discard_view(view)


def _generate_zeros(view: Path) -> bool:
    """Let nodes make the zeros of many large weights, and return whether that was done.

    ONNX Runtime copies initializers when it loads a model, and would hold all of them.
    """
    model = onnx.ModelProto.FromString(view.read_bytes())
    graph = model.graph
    large = [t for t in graph.initializer if (payload_length(t) or 0) >= _LARGE]
    opset = next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 0)
    if sum(payload_length(t) or 0 for t in large) < _MANY or opset < _SINCE:
        return False
    boundary = {record.name for record in (*graph.input, *graph.output)}
    zeros = []
    for tensor in large:
        if tensor.data_type not in _MADE or tensor.name in boundary:
            continue
        shape = helper.make_tensor(
            f"{tensor.name}.shape", onnx.TensorProto.INT64, [len(tensor.dims)], tensor.dims
        )
        zero = helper.make_tensor("", tensor.data_type, [1], [0])
        zeros.append(helper.make_node("ConstantOfShape", [shape.name], [tensor.name], value=zero))
        tensor.CopyFrom(shape)
    nodes = [*zeros, *graph.node]
    copies = [onnx.NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)
    view.write_bytes(model.SerializeToString())
    return True


MANY_BYTES = 64 << 20
"""Bytes of weights from which values are not compared unasked: two models would be in memory."""
_FEWEST, _MOST, _BUDGET_S = 5, 200, 0.5
"""Passes of each model, and seconds for both, when latencies are measured."""
_MANY_NARROW_NODES = 20_000
"""From so many nodes on a model in float16 is not loaded on a CPU: ONNX Runtime takes 7 s for the
casts around 20,000 nodes, and over 8 minutes for those around 100,000."""
_MEASURING = "Measuring both models"
_LONG_TRIAL_S = 30.0
"""From so long a trial on, nobody waits for both models to be loaded once more and measured."""

_SPARED = (
    "both models were run without CommonSubexpressionElimination and the reuse of memory of ONNX"
    " Runtime, which take it minutes for so many nodes and change no value"
)


def too_many_weights(weights: int, most: int = MANY_BYTES) -> str:
    """Return why values are not compared unasked; empty where there are few bytes of weights."""
    return (
        f"it has more than {fmt.size(most)} of weights (--values always)" if weights > most else ""
    )


class VerificationSummary(NamedTuple):
    """What conversions tell of the verification of their result."""

    values: ComparedValues | NotCompared
    latency_ms: Latencies | None
    """None where they were not measured."""


@dataclass
class VerificationOutcome:
    """What came of one result."""

    notes: list[Note] = field(default_factory=list)
    """What could not be found out. Fit for a terminal."""
    skipped: str = ""
    """Why values were not compared."""
    verdict: Verdict | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether values were compared and are not close enough."""
        return self.verdict is not None and not self.verdict.is_good


class Verifier:
    """Verifies the results of one conversion. Use it as a context manager.

    Args:
        asked: How.
        original: The model before; it stays as it is, and open until this is closed.
        output: The file that errors name.
        criteria: What is near enough by default.
        hint: What can be done when the result cannot be loaded.
        calibration: Inputs that are compared where the request names none.
        most_bytes: Of weights, up to which values are compared unasked.

    Raises:
        UsageError: A tolerance makes no sense, or is for what is no output.
    """

    def __init__(
        self,
        asked: ValueVerification,
        original: Document,
        output: Path,
        criteria: AccuracyCriteria,
        *,
        hint: str | None = None,
        calibration: Path | None = None,
        most_bytes: int | None = None,
    ) -> None:
        parse_tolerances(asked.tolerance).require_names(original.main.outputs)
        limit_trials(original, shapes=asked.shape)
        self._asked, self._original, self._output = asked, original, output
        self._criteria, self._hint = criteria, hint
        self._most_bytes = MANY_BYTES if most_bytes is None else most_bytes
        self._folder = asked.inputs or calibration
        self._most = None if asked.inputs else 8
        self._check: ValueCheck | str | None = None
        self._trial_s = 0.0
        """How long the last result took to be loaded and run."""
        self._measured: WeakKeyDictionary[Document, Latencies | None] = WeakKeyDictionary()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Verifier:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give back what was held."""
        self._stack.close()

    def check(
        self, result: Document, *, attributes_errors: bool = True
    ) -> Generator[Event, None, VerificationOutcome]:
        """Load and run a result, and compare its values with those of the original.

        Args:
            result: The result.
            attributes_errors: Whether the nodes to blame for wrong values are looked for.

        Raises:
            ActivityError: The result cannot be loaded or run, but the original can.
            InputError: The inputs cannot be read, or do not fit.
        """
        if not self._asked.verify:
            return VerificationOutcome(skipped="it is switched off")
        notes = yield from self._tried(result)
        check = yield from self._prepared()
        if isinstance(check, str):
            return VerificationOutcome(notes, check)
        try:
            with naming(check.document):  # which was tried; a result may load for minutes
                verdict = yield from with_loading_progress(
                    "Comparing the values with the original",
                    lambda: check.run(result) if attributes_errors else check.outputs(result),
                )
        except ActivityError as error:
            if not is_of_limit(error):
                raise
            return VerificationOutcome(notes, f"the comparison was stopped: {with_node(error)}")
        if why := _useless_reference(verdict):
            return VerificationOutcome(notes, why)
        # The comparison ran it.
        notes = [note for note in notes if note.kind is not NoteKind.NOT_RUN]
        if has_many_nodes(result) or has_many_nodes(self._original):
            notes.append(Note(NoteKind.INFO, _SPARED))
        return VerificationOutcome(notes, verdict=verdict)

    def to_keep(
        self, checked: VerificationOutcome, kept: Collection[Node], most: int
    ) -> dict[Node, str]:
        """Return nodes that should stay as they were, too, with the reasons.

        They are nodes of a copy of the original in which calls of functions are replaced.
        """
        if checked.verdict is None or not isinstance(self._check, ValueCheck):
            return {}
        check = self._check
        more = check.to_keep(checked.verdict, kept, most)
        if more or not checked.is_wrong:
            return more
        return check.of_same_operators(checked.verdict, kept) or check.others(kept)

    def prepare(self) -> Generator[Event, None, str]:
        """Run the original; return why values cannot be compared, empty where they can.

        Raises:
            InputError: The inputs cannot be read, or do not fit.
            UsageError: A shape does not fit.
        """
        if not self._asked.verify:
            return "it is switched off"
        check = yield from self._prepared()
        return check if isinstance(check, str) else ""

    def outcome(self, result: Document) -> Outcome:
        """Return whether one of several results is near enough; unknown where it cannot be run.

        Nothing is found out before :meth:`prepare` or :meth:`check` has run the original, nor where
        that cannot be run.
        """
        if not isinstance(self._check, ValueCheck):
            return Outcome(Answer.SUFFICIENT)
        begin = perf_counter()
        try:
            outputs = self._check.outputs(result).outputs
        except DldError as error:
            return Outcome(Answer.UNKNOWN, error.message, seconds=perf_counter() - begin)
        wrong = (f"output {visible(row.name)}: {row.problem}" for row in outputs if row.problem)
        problem = next(wrong, "")
        answer = Answer.INSUFFICIENT if problem else Answer.SUFFICIENT
        return Outcome(answer, problem, seconds=perf_counter() - begin)

    @property
    def nodes(self) -> dict[str, Node]:
        """The nodes that can stay as they were, by names; none where values are not compared."""
        if not isinstance(self._check, ValueCheck):
            return {}
        return {
            " › ".join((*scope.path, node.ref)): node
            for scope in self._check.document.main.walk()
            for node in scope.nodes
        }

    def terms(self) -> Terms | None:
        """Return how results are judged after :meth:`check`; None where they are not."""
        check = self._check
        return check.terms if isinstance(check, ValueCheck) else None

    @property
    def unfit_io(self) -> dict[str, str]:
        """Inputs and outputs of the model that the type would make wrong, with reasons."""
        return self._check.unfit_io if isinstance(self._check, ValueCheck) else {}

    def figures(
        self,
        result: Document,
        checked: VerificationOutcome,
        kept: Mapping[Node, str] | None = None,
        advice: Callable[[FailingNode], str] | None = None,
    ) -> Generator[Event, None, VerificationSummary]:
        """Return what came of the verification of a result that is to be written.

        Args:
            result: The result.
            checked: What :meth:`check` found of it.
            kept: Nodes that a repair left as they were, with the reasons.
            advice: Says what can be done about the first node with wrong values.
        """
        latency = yield from self._latency(result)
        verdict = checked.verdict
        if verdict is None:
            return VerificationSummary(NotCompared(checked.skipped), latency)
        first = verdict.first
        check = self._check if isinstance(self._check, ValueCheck) else None
        values = ComparedValues(
            {row.name: OutputError.of(row.error, row.problem)
             for row in verdict.outputs},
            verdict.is_good,
            first,
            failing_nodes(kept or {}),
            advice(first) if advice is not None and first is not None else "",
            "random" if self._folder is None else "files",
            len(check.feeds.sets) if check is not None else 0,
            [] if check is None else [*check.remarks],
            tolerance=tolerance_text(self._asked, self._criteria),
        )  # fmt: skip
        return VerificationSummary(values, latency)

    def _tried(self, result: Document) -> Generator[Event, None, list[Note]]:
        narrow = self._criteria.narrow
        with contextlib.ExitStack() as stack:
            notes: list[Note] = []
            is_slow = self._is_slow(result)
            if narrow is not None and (is_slow or not self._criteria.has_kernels):
                result = rounded_copy(result, narrow.dtype, contrib_types)
                stack.callback(result.close)
                why = "takes minutes to load so many nodes" if is_slow else "cannot compute"
                text = (
                    f"ONNX Runtime {why} in {narrow.dtype} on a CPU: nodes were computed"
                    " in float32, and rounded"
                )
                notes.append(Note(NoteKind.INFO, text))
            original, shape = self._original, self._asked.shape
            feed: Mapping[str, Any] | None = None
            if self._asked.inputs is not None:
                first = set_folders(self._asked.inputs)[0]
                feed = load_input_sets(first, input_specs(original))[0].values
            begin = perf_counter()
            try:
                notes += yield from verify(
                    original,
                    result,
                    self._output,
                    shape,
                    self._hint,
                    is_for_runtime=self._criteria.is_for_runtime,
                    feed=feed,
                )
            except TimeLimitError as error:
                why = with_node(error)
                notes.append(Note(NoteKind.NOT_RUN, f"loaded but not run: {why}"))
                self._check = f"the result was not run: {why}"
            if any(note.kind is NoteKind.UNVERIFIED for note in notes):
                self._check = "the original cannot be run"
            self._trial_s = perf_counter() - begin
        return notes

    def _is_slow(self, result: Document) -> bool:
        """Return whether ONNX Runtime would spend minutes on casts around nodes in 16 bits."""
        narrow = self._criteria.narrow
        return narrow is not None and has_many_nodes(result, _MANY_NARROW_NODES)

    def _prepared(self) -> Generator[Event, None, ValueCheck | str]:
        if self._check is None:
            self._check = yield from self._value_check()
        return self._check

    def _value_check(self) -> Generator[Event, None, ValueCheck | str]:
        """Return what compares values, or why they are not compared."""
        if self._asked.values == "never":
            return "it is switched off"
        if why := too_wide(onnx.ModelProto.FromString(skeleton_bytes(self._original))):
            return why
        weights = figures(self._original).weight_bytes
        if self._asked.values == "auto" and (why := too_many_weights(weights, self._most_bytes)):
            return why
        asked = self._asked
        question = Question(asked.shape, self._folder, self._most, asked.tolerance)
        try:
            check = yield from with_loading_progress(
                "Running the original",
                lambda: ValueCheck(self._original, question, self._criteria),
            )
        except (ActivityError, UnavailableError) as error:
            return f"the original cannot be run: {with_node(error)}"
        self._stack.callback(check.close)
        return check

    def _latency(self, result: Document) -> Generator[Event, None, Latencies | None]:
        """Return median latencies in ms of both models, whose passes alternate; measured once."""
        if result not in self._measured:
            self._measured[result] = yield from self._measured_now(result)
        return self._measured[result]

    def _measured_now(self, result: Document) -> Generator[Event, None, Latencies | None]:
        check = self._check
        is_asked = isinstance(self._asked, Verification) and self._asked.measure
        if not is_asked or not isinstance(check, ValueCheck):
            return None
        if self._trial_s > _LONG_TRIAL_S or self._is_slow(result):
            yield Log("Latencies not measured: ONNX Runtime takes too long to load both models")
            return None
        folder = self._original.path.parent if self._original.path is not None else None
        watch = CpuWatch()
        with contextlib.ExitStack() as stack:

            def passes() -> list[Callable[[], object]]:
                feed = check.feeds.sets[0]
                return [
                    _pass(document, folder, feed, stack) for document in (self._original, result)
                ]

            try:
                both = yield from with_loading_progress(_MEASURING, passes)
                times = yield from _alternating(both)
            except DldError as error:
                yield Log(f"Latencies not measured: {with_node(error)}")
                return None
        (first, before, third), (other_first, after, other_third) = times
        is_clear = third < other_first or other_third < first
        others = watch.environment().get("other_busy_threads")
        busy = others if isinstance(others, float) else None
        return Latencies(before, after, is_clear, busy)


def verified(
    asked: ValueVerification,
    original: Document,
    result: Document,
    output: Path,
    criteria: AccuracyCriteria,
    *,
    hint: str | None = None,
    unchanged: str = "",
) -> Generator[Event, None, tuple[VerificationSummary, list[str]]]:
    """Verify a result that is made in one way only; return what came of it, and notes.

    Args:
        asked: How.
        original: The model before.
        result: The model after.
        output: The file that errors name.
        criteria: What is near enough by default.
        hint: What can be done when the result cannot be loaded, or its values are wrong.
        unchanged: Why there is nothing to compare, if so.

    Raises:
        ActivityError: The result cannot be loaded or run, but the original can.
        InputError: The inputs cannot be read, or do not fit.
    """
    with Verifier(asked, original, output, criteria, hint=hint) as verifier:
        if unchanged:
            checked = VerificationOutcome(skipped=unchanged)
        else:
            checked = yield from verifier.check(result)
        outcome = yield from verifier.figures(result, checked, advice=lambda _: hint or "")
        return outcome, texts(checked.notes)


def _useless_reference(verdict: Verdict) -> str:
    """Return why a comparison with the original says nothing, if so."""
    if not verdict.outputs:
        return "its outputs differ from run to run, or cannot be read"
    errors = [row.error for row in verdict.outputs if row.error.count and not row.error.mismatch]
    if errors and all(error.nan_reference == error.count for error in errors):
        return "the original gives nothing but NaN on these inputs (--inputs takes others)"
    if errors and all(error.largest == 0 and not error.special for error in errors):
        return "the original gives nothing but zeros on these inputs (--inputs takes others)"
    return ""


def _pass(
    document: Document, folder: Path | None, feed: Mapping[str, Any], stack: contextlib.ExitStack
) -> Callable[[], object]:
    runner = stack.enter_context(TensorRunner(document, QUIET, folder=folder))
    names = runner.outputs
    session = runner.session(names)
    values = session.feed(typed_feed(session, feed))
    return lambda: session.tensors(names, values)


def _alternating(
    passes: list[Callable[[], object]],
) -> Generator[Event, None, list[list[float]]]:
    """Return the quartiles of each one's times in ms.

    They take turns, so that both see the same machine. Passes of seconds are told one by one.
    """
    times: list[list[float]] = [[] for _ in passes]
    for run in passes:
        run()  # the first pass allocates
    end = perf_counter() + _BUDGET_S
    while len(times[0]) < _FEWEST or (perf_counter() < end and len(times[0]) < _MOST):
        if sum(map(sum, times)) > 1e3 * len(times[0]):
            yield Progress(len(times[0]), None, "passes", _MEASURING)
        for run, durations in zip(passes, times, strict=True):
            begin = perf_counter()
            run()
            durations.append((perf_counter() - begin) * 1e3)
    return [statistics.quantiles(durations, n=4, method="inclusive") for durations in times]


def tolerance_text(asked: ValueVerification, criteria: AccuracyCriteria) -> str:
    """Return what to say of the tolerance of elements: what was asked for counts, if anything."""
    return visible(", ".join(asked.tolerance)) or criteria.tolerance.text


def same_arithmetic(document: Document) -> AccuracyCriteria:
    """Return what is near enough where a model is only written otherwise."""
    return SAME_HALVES if has_halves(document) else SAME
