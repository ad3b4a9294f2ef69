"""Verifies a model that is made of others: its outputs are those of running them in turn.

All run with the default options of a session, on the same inputs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from dld_tui.backends.conversion.soundness import write_sound
from dld_tui.backends.conversion.value_check import session_of
from dld_tui.backends.conversion.verification import (
    VerificationSummary,
    same_arithmetic,
    tolerance_text,
    too_many_weights,
)
from dld_tui.backends.onnxruntime.limits import limit_trials, with_node
from dld_tui.backends.onnxruntime.session import Session, with_loading_progress
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.accuracy.tensor_errors import (
    Tolerances,
    compare_element,
    elements_of,
    parse_tolerances,
)
from dld_tui.core.conversion.accuracy_criteria import AccuracyCriteria
from dld_tui.core.conversion.copies import copy_of, open_model
from dld_tui.core.conversion.request import EditRequest, ValueVerification
from dld_tui.core.conversion.result import (
    ChangedTerminals,
    ComparedValues,
    NotCompared,
    OutputError,
    figures,
)
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import (
    ActivityError,
    DldError,
    InputError,
    UnavailableError,
    UsageError,
)
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.parts.merging import Added
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders
from dld_tui.core.model.inputs.guess import candidate_guesses, first_that_runs, specs_for
from dld_tui.core.model.inputs.shapes import parse_shapes

Values = Mapping[str, Any]
_DEFAULT = SessionSettings(quiet=True)


@dataclass(frozen=True)
class Stage:
    """A model that runs on values by the names that they have in the result."""

    document: Document
    inputs: Mapping[str, str]
    """The name in the result of each input."""
    outputs: Mapping[str, str]
    adapt: Callable[[str, Any], Any] = lambda name, value: value
    """Makes the value of an input of the model of that in the result."""
    adapt_output: Callable[[str, Any], Any] = lambda name, value: value
    """Makes the value in the result of that of an output of the model."""

    @classmethod
    def of(cls, document: Document, names: Added | None = None) -> Stage:
        """Return the stage of a model that was merged; without `names`, as the first one."""
        main = document.main
        inputs = {name: name for name in main.inputs} if names is None else names.inputs
        outputs = {name: name for name in main.outputs} if names is None else names.outputs
        return cls(document, inputs, outputs)

    def later(self, added: Added) -> Stage:
        """Return the stage after another model was added."""
        return replace(self, inputs=added.later(self.inputs), outputs=added.later(self.outputs))

    def run(self, values: Values, title: Path) -> dict[str, Any]:
        """Return the outputs by their names in the result."""
        session = session_of(self.document, title, _DEFAULT)
        feed = {
            spec.name: self.adapt(spec.name, values[self.inputs[spec.name]])
            for spec in session.inputs
        }
        made = session.run(session.feed(feed))
        return {
            self.outputs[name]: self.adapt_output(name, value)
            for name, value in zip(session.outputs, made, strict=True)
        }


@dataclass(frozen=True)
class Changed:
    """What an edit of inputs and outputs did."""

    lines: list[str]
    """One for each change. Untrusted text."""
    original: Stage
    """The original, run on values of the result."""
    inner: Collection[str] = ()
    """Tensors of the result that the original takes as they are in it, or makes."""


def write_changed(
    request: EditRequest,
    change: Callable[[Document, Document, Transaction, dict[str, Any]], Changed],
    stage: str = "",
) -> Iterator[Event]:
    """Change inputs and outputs of a copy of a model, compare it with the model, and write it.

    Args:
        request: The model, the edit, and the file to write.
        change: Makes the edit; gets the model, its copy, a transaction and the edit's arguments.
        stage: What the progress says meanwhile; empty for nothing of its own.

    Raises:
        UsageError: Settings do not go together.
        InputError: The model cannot be opened, or an input cannot be read.
        EditError: The edit cannot be made.
        ActivityError: The result is not sound.
        SaveError: The result cannot be written.
    """
    request.require()
    yield Progress(0, None, stage="Opening the model")
    with contextlib.ExitStack() as stack:
        document = stack.enter_context(contextlib.closing(open_model(request.model)))
        result = stack.enter_context(contextlib.closing(copy_of(document)))
        if stage:
            yield Progress(0, None, stage=stage)
        edit = request.as_edit(str)
        changed = change(document, result, Transaction.of(edit), edit.arguments)
        verified = yield from compared_in_turn(
            request, result, request.output, [changed.original], {}, changed.inner
        )
        make = partial(
            ChangedTerminals, values=verified.values, latency_ms=None, changed=changed.lines
        )
        yield from write_sound(request, document, result, request.output, make)


def compared_in_turn(
    request: ValueVerification,
    result: Document,
    output: Path,
    stages: Sequence[Stage],
    names: Mapping[str, str],
    inner: Collection[str] = (),
) -> Generator[Event, None, VerificationSummary]:
    """Run a result, and what it is made of in turn, and compare the outputs.

    Args:
        request: How.
        result: The result.
        output: The file that errors name.
        stages: What it is made of.
        names: The names in `stages` of outputs of the result that have others there.
        inner: Tensors of the result that stages take as they are in it, or make.

    Raises:
        ActivityError: The result cannot be run, but what it is made of can.
        InputError: The inputs cannot be read, or do not fit.
    """
    if why := _why_not(request, [stage.document for stage in stages]):
        return VerificationSummary(NotCompared(why), None)
    limit_trials(result, shapes=request.shape)

    def compared() -> VerificationSummary:
        return _compared(request, result, output, stages, names, inner)

    stage = "Comparing the values with the models in turn"
    return (yield from with_loading_progress(stage, compared))


def _why_not(request: ValueVerification, documents: Sequence[Document]) -> str:
    if not request.verify or request.values == "never":
        return "it is switched off"
    weights = sum(figures(document).weight_bytes for document in documents)
    return too_many_weights(weights) if request.values == "auto" else ""


def _compared(
    request: ValueVerification,
    result: Document,
    output: Path,
    stages: Sequence[Stage],
    names: Mapping[str, str],
    inner: Collection[str],
) -> VerificationSummary:
    from dld_tui.core.model.edits import inputs_outputs

    with contextlib.ExitStack() as stack:
        if inner:
            result = stack.enter_context(contextlib.closing(copy_of(result)))
            for name in inner:
                if name not in result.main.outputs:
                    result.apply(inputs_outputs.add_output(scope=[], name=name))
        try:
            session = session_of(result, output, _DEFAULT)
            if not session.is_readable:
                why = "NumPy lacks the type of an output"
                return VerificationSummary(NotCompared(why), None)
            feed, remarks = _feed(request, result, session)
            arrays = session.run(session.feed(feed))
        except (UnavailableError, UsageError, InputError):
            raise
        except DldError as error:
            if why := _why_unusable(request, stages, output):
                return VerificationSummary(NotCompared(why), None)
            raise ActivityError(
                f"the result cannot be used: {error.message}",
                where=error.where, hint=error.hint, details=error.details,
            ) from error  # fmt: skip
        values = dict(zip(session.outputs, arrays, strict=True))
        present = {**feed, **{name: values[name] for name in inner}}
        computed: dict[str, Any] = {}
        for part in stages:
            try:
                computed.update(part.run(present | computed, part.document.path or output))
            except DldError as error:
                why = f"the models cannot be run in turn: {with_node(error)}"
                return VerificationSummary(NotCompared(why), None)
        criteria = same_arithmetic(result)
        rows = {
            name: _rows(request, criteria, name, computed[reference], value)
            for name, value in values.items()
            if (reference := names.get(name, name)) in computed
        }
        if any(_is_wrong(found) for found in rows.values()):  # of random numbers, say
            again = dict(zip(session.outputs, session.run(session.feed(feed)), strict=True))
            rows = {
                name: found
                for name, found in rows.items()
                if not _is_wrong(_rows(request, criteria, name, values[name], again[name]))
            }
            if not rows:
                why = "its outputs differ from run to run"
                return VerificationSummary(NotCompared(why), None)
    outputs = {name: row for found in rows.values() for name, row in found.items()}
    compared_values = ComparedValues(
        outputs, not _is_wrong(outputs), guess=remarks,
        tolerance=tolerance_text(request, criteria),
        inputs="random" if request.inputs is None else "files",
    )  # fmt: skip
    return VerificationSummary(compared_values, None)


def _is_wrong(rows: Mapping[str, OutputError]) -> bool:
    return any(row.problem for row in rows.values())


def _why_unusable(request: ValueVerification, stages: Sequence[Stage], output: Path) -> str:
    """Return why a model that the result is made of cannot be loaded or run itself."""
    for part in stages:
        try:
            session = session_of(part.document, part.document.path or output, _DEFAULT)
            if request.inputs is None and not request.shape:  # those are of the result
                _feed(request, part.document, session)
        except DldError as error:
            why = f"a model that it is made of cannot be run: {with_node(error)}"
            return f"{why}. {error.hint}" if error.hint else why
    return ""


def _feed(
    request: ValueVerification, result: Document, session: Session
) -> tuple[dict[str, Any], list[str]]:
    specs = specs_for(session.inputs, result)
    if request.inputs is not None:
        folder = set_folders(request.inputs)[0]
        return dict(load_input_sets(folder, specs)[0].values), []
    shapes = parse_shapes(request.shape, [spec.name for spec in specs])

    def run(values: Mapping[str, Any]) -> None:
        session.run_unread(session.feed(dict(values)))

    guess, _ = first_that_runs(candidate_guesses(specs, result, shapes), 0, run)
    return dict(guess.values(0)), guess.remarks


def _rows(
    request: ValueVerification, criteria: AccuracyCriteria, name: str, reference: Any, other: Any
) -> dict[str, OutputError]:
    tolerances = (
        parse_tolerances(request.tolerance) if request.tolerance else Tolerances(criteria.tolerance)
    )
    tolerance = tolerances.of(name)
    first, second = dict(elements_of(name, reference)), dict(elements_of(name, other))
    rows: dict[str, OutputError] = {}
    for element in {**first, **second}:
        error = compare_element(first.get(element), second.get(element), tolerance)
        problem = tolerance.problem(error) or ""
        if not request.tolerance:
            problem = criteria.problem(error, problem)
        rows[element] = OutputError.of(error, problem)
    return rows
