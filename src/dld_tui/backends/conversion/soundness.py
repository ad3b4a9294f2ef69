"""Whether a model that was made of another one is as sound as that one.

Every command that writes a model asks here: conversions by :func:`write_sound`, and what edits or
takes models apart by the activity ``check_sound``.

Native code looks at the models, which can end the process: call it only in one that may end.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from dld_tui.backends.onnxruntime.limits import (
    are_limited,
    excess_of,
    limit_trials,
    time_limit,
)
from dld_tui.backends.onnxruntime.session import Session
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import has_many_nodes, spared
from dld_tui.backends.onnxruntime.verdict import (
    Fault,
    finding_of,
    place_of,
    settings_to_load,
)
from dld_tui.core.checks import check
from dld_tui.core.checks.demands import broken_demands
from dld_tui.core.checks.findings import (
    KERNEL,
    LOAD,
    OPERANDS,
    Finding,
    ToolFinding,
    complaints_of,
    findings_of,
    joined,
    name_of,
)
from dld_tui.core.conversion.result import ConversionResult, write_result
from dld_tui.core.errors import ActivityError, DldError, TimeLimitError, UnavailableError
from dld_tui.core.events import Event, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import key_of
from dld_tui.core.model.document.locations import Labels
from dld_tui.core.model.document.serialise import loadable_view, skeleton_bytes
from dld_tui.core.model.document.summary import summarise
from dld_tui.core.model.operators.registry import DEFAULT_OPSET, OLDEST_OPSET, known_domains
from dld_tui.core.model.shapes.inference import infer, inline_small_data, store_types
from dld_tui.core.process.child import says_no_memory
from dld_tui.core.text import clip, visible
from dld_tui.core.types import plain_domain

_LESS_OPTIMIZED: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "the session entry session.disable_quant_qdq = 1",
        {"config": {"session.disable_quant_qdq": "1"}},
    ),
    ("optimization level basic", {"optimization_level": "basic"}),
    ("optimization disabled", {"optimization_level": "disabled"}),
)
"""Settings of a session by which a fault of the optimizer is avoided, the fastest first."""
_LIMIT_S = 20.0
"""So long ONNX Runtime may take to load a model, with weights of zeros."""
_NO_FAULT = {"tensor-without-data", KERNEL}
"""Errors that a conversion may cause on purpose: a model without weights, or for other devices."""


def write_sound(
    asked: object,
    before: Document,
    after: Document,
    output: Path,
    make: Callable[..., ConversionResult],
    notes: Sequence[str] = (),
    *,
    is_for_runtime: bool = True,
    others: Sequence[Document] = (),
) -> Iterator[Event]:
    """Write the result of a conversion if it is sound and right; yield the events that end the job.

    Every conversion writes with this function, whether it verified its result or not.

    Args:
        asked: The request. With ``verify`` switched off, the result is written in any case, and
            says what is wrong with it. With ``keep_wrong``, it is written with wrong outputs.
        before: The model that was converted.
        after: The result.
        output: The file to write.
        make: Makes the result from the common fields.
        notes: What was not converted.
        is_for_runtime: Whether ONNX Runtime is what will run it.
        others: Other models that it was made of.

    Raises:
        ActivityError: The result is not sound, but the model is.
        SaveError: It cannot be written; what was there is untouched.
    """
    yield Progress(0, None, stage="Checking the result")
    unsound = ""
    try:
        more = require_sound(before, after, is_for_runtime=is_for_runtime, others=others)
        notes = [*notes, *more]
    except ActivityError as error:
        is_verified = getattr(asked, "verify", None)
        if is_verified is not False:
            raise (error if is_verified is None else with_choice(error)) from None
        unsound = str(error)
    yield from write_result(
        before, after, output, partial(make, unsound=unsound), notes,
        keep_wrong=getattr(asked, "keep_wrong", False),
    )  # fmt: skip


def require_sound(
    before: Document,
    after: Document,
    *,
    is_for_runtime: bool = True,
    others: Sequence[Document] = (),
) -> list[str]:
    """Refuse a result with kinds of errors that its original model does not have.

    That is first of all what ONNX Runtime does not load with default options.

    Args:
        before: The model that was converted, edited, or taken apart.
        after: The result.
        is_for_runtime: Whether ONNX Runtime is what will run it.
        others: Other models that it was made of.

    Returns:
        Notes on what cannot be told: operators that only other runtimes, or a library, have.

    Raises:
        ActivityError: The result has new errors. The hint says with which options ONNX Runtime
            loads it, where its optimizer is at fault.
    """
    if not are_limited():  # nothing was tried before
        limit_trials(before, after)
    home = after.path or before.path
    errors, refusals = errors_of(after, home, is_for_runtime)
    foreign = _foreign_operators(after)
    sources = (before, *others)
    notes = _foreign_note(foreign.difference(*map(_foreign_operators, sources)))
    errors = [one for one in errors if one.rule != LOAD or not _is_of(one, foreign)]
    if not errors:
        return notes
    known = [errors_of(source, source.path, is_for_runtime) for source in sources]
    rules = {one.rule for found, _ in known for one in found} | _NO_FAULT
    if any(refused for _, refused in known):
        rules.add(LOAD)
    # A refusal counts by itself, even where a rule names the same node in the original, too.
    added = [one for one in errors if one.rule not in rules] or [
        one for one in refusals if one.rule not in rules and not _is_of(one, foreign)
    ]
    if not added:
        return notes
    more = f" (and {len(added) - 1} more)" if added[1:] else ""
    text = f"{_described(added[0])}{more}"
    if unfit := [one for found, _ in known for one in found if one.rule == OPERANDS]:
        raise ActivityError(f"the model itself cannot run: {_described(unfit[0])}", details=text)
    around = None
    if all(finding.rule == LOAD for finding in added):
        around = way_round(lambda changes: _runtime_faults(after, **changes)[1])
    error = refusal(text, around)
    raise ActivityError(error.message, hint=error.hint or newer_opset(after))


def newer_opset(document: Document) -> str | None:
    """Return the hint that helps a result of old operators, which no runtime has all of."""
    if document.opset_imports.get("", OLDEST_OPSET) >= OLDEST_OPSET:
        return None
    return f"Convert it to a newer opset first: dld convert opset --to {DEFAULT_OPSET}"


def refusal(text: str, around: str | None) -> ActivityError:
    """Return the error of a result that is not sound.

    Args:
        text: What is wrong.
        around: With which options it is right.
    """
    if around is None:
        return ActivityError(f"the result is not valid: {text}")
    return ActivityError(
        f"ONNX Runtime's optimizer makes an invalid model of the result: {text}",
        hint=f"The result would load with {around}",
    )


def with_choice(error: ActivityError) -> ActivityError:
    """Return the error of a conversion that writes its result with ``--no-verify`` all the same."""
    hints = [error.hint] if error.hint else []
    return ActivityError(
        error.message, where=error.where, hint=". ".join([*hints, "--no-verify writes it anyway"]),
        details=error.details,
    )  # fmt: skip


def way_round(is_taken: Callable[[dict[str, Any]], bool]) -> str | None:
    """Return with which options ONNX Runtime takes what it refuses with the default ones.

    Args:
        is_taken: Tries changes of the default settings.
    """
    return next((words for words, changes in _LESS_OPTIMIZED if is_taken(changes)), None)


def errors_of(
    document: Document, home: Path | None, is_for_runtime: bool = True
) -> tuple[list[Finding], list[Finding]]:
    """Return the errors of a document, and those of them with which ONNX Runtime refuses it.

    Inference is left out for very many nodes that ONNX Runtime takes: it would find no more.
    """
    faults, is_taken = _runtime_faults(document) if is_for_runtime else ([], False)
    reported = [*faults]
    if is_taken and has_many_nodes(document):
        document.forget_types()  # those of before a conversion may be other ones
    else:
        model = onnx.ModelProto.FromString(skeleton_bytes(document))
        if home is not None:
            inline_small_data(model, home)
        inference = infer(model)
        document.forget_types()
        with contextlib.suppress(KeyError):
            store_types(document, inference.model)
        reported = [*complaints_of(inference), *broken_demands(document), *faults]
    # Errors of rules count even where ONNX Runtime takes them: other readers do not.
    findings = joined(findings_of(document, reported), None, check(document))
    return _errors(findings), _errors(findings_of(document, faults))


def _runtime_faults(document: Document, **changes: Any) -> tuple[list[ToolFinding], bool]:
    """Return why ONNX Runtime refuses a document, and whether it takes it.

    Neither is known where it is missing, or takes too long or too much memory.

    Args:
        document: The document.
        changes: Of the default settings.
    """
    if excess_of(document) is not None:
        return [], False
    with loadable_view(document) as view:
        labels = Labels.of_file(view, repeated=True)
        model = onnx.ModelProto.FromString(view.read_bytes())
        try:
            settings = default_settings(document)
            with time_limit(time.monotonic() + _LIMIT_S):
                Session(view, replace(settings, **changes))
        except (TimeLimitError, UnavailableError):
            return [], False
        except DldError as error:
            if says_no_memory(f"{error.message} {error.details}"):
                return [], False
            cause = error.__cause__ or error
            fault = Fault("load", type(cause).__name__, str(cause))
            place = place_of(fault.text, model, labels)
            return [finding_of(fault, labels, place)], False
    return [], True


def default_settings(document: Document) -> SessionSettings:
    """Return the default settings, less what takes very long or much memory, and refuses nothing.

    Args:
        document: The document to load.
    """
    settings = settings_to_load(summarise(document, constants=False).weight_bytes)
    return spared(settings) if has_many_nodes(document) else settings


def _foreign_operators(document: Document) -> set[tuple[str, str]]:
    """Return the operators, with their domains, that neither ONNX nor ONNX Runtime defines."""
    known, functions = {*known_domains()}, {key_of(one)[:2] for one in document.functions}
    used = {
        (plain_domain(node.domain), node.op_type)
        for scope in document.scopes()
        for node in scope.nodes
        if node.domain
    }
    return {one for one in used if one[0] not in known and one not in functions}


def _foreign_note(added: set[tuple[str, str]]) -> list[str]:
    names = [f"{op_type} of {visible(domain)}" for domain, op_type in sorted(added)]
    if not names:
        return []
    return [
        f"{clip(', '.join(names), 120)}: ONNX Runtime cannot load the model without a library that"
        " has this"
    ]


def _is_of(finding: Finding, operators: set[tuple[str, str]]) -> bool:
    node = finding.node
    return node is not None and (plain_domain(node.domain), node.op_type) in operators


def _described(finding: Finding) -> str:
    name = name_of(finding.node.ref) if finding.node is not None else ""
    return finding.message if name in finding.message else f"{name}: {finding.message}"


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.level == "error"]
