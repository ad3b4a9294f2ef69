"""What a conversion has its result undergo: loaded and run, compared with the original, timed.

Its part of a conversion's result: ``"values"``, which is ``{"skipped": WHY}`` or ``{"is_good",
"outputs": {NAME: {"problem", ...}}, "first": CULPRIT or null, "repaired": [CULPRIT, ...],
"advice", "inputs": "random" or "files", "sets", "guess": [LINE, ...]}`` with culprits as
:mod:`dld_tui.core.conversion.culprits`
has them, and ``"latency_ms"``, which is ``{"before", "after", "is_clear"}``, medians on the CPU of
this machine and whether the middle halves of their passes are apart, or null.
"""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable, Collection, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from dld_tui.backends.converted import verify
from dld_tui.backends.onnxruntime_options import SessionSettings
from dld_tui.backends.onnxruntime_tensors import TensorRunner
from dld_tui.backends.value_check import Question, ValueCheck, Verdict
from dld_tui.core import fmt
from dld_tui.core.accuracy.tolerance import parse_tolerances
from dld_tui.core.conversion.agreement import Agreement
from dld_tui.core.conversion.culprits import Culprit, culprits
from dld_tui.core.conversion.request import ValueVerification, Verification
from dld_tui.core.conversion.rounded import rounded_copy
from dld_tui.core.conversion.summary import figures
from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.errors import ActivityError, DldError, UnavailableError
from dld_tui.core.events import Event, Progress
from dld_tui.core.types import JSON

MANY_BYTES = 64 << 20
"""Bytes of weights from which values are not compared unasked: two models would be in memory."""
_FEWEST, _MOST, _BUDGET_S = 5, 200, 0.5
"""Passes of each model, and seconds for both, when latencies are measured."""
_QUICKEST = SessionSettings(quiet=True)


@dataclass
class Checked:
    """What came of one result."""

    notes: list[str] = field(default_factory=list)
    """What could not be found out. Fit for a terminal."""
    skipped: str = ""
    """Why values were not compared."""
    verdict: Verdict | None = None

    @property
    def is_wrong(self) -> bool:
        """Whether values were compared and are not near enough."""
        return self.verdict is not None and not self.verdict.is_good


class Verifier:
    """Verifies the results of one conversion. Use it as a context manager.

    Args:
        asked: How.
        original: The model before; it stays as it is, and open until this is closed.
        output: The file that errors name.
        agreement: What is near enough by default.
        hint: What can be done when the result cannot be loaded.
        calibration: Inputs that are compared where the request names none.

    Raises:
        UsageError: A tolerance makes no sense, or is for what is no output.
    """

    def __init__(
        self,
        asked: ValueVerification,
        original: Document,
        output: Path,
        agreement: Agreement,
        *,
        hint: str | None = None,
        calibration: Path | None = None,
    ) -> None:
        parse_tolerances(asked.tolerance).require_names(original.main.outputs)
        self._asked, self._original, self._output = asked, original, output
        self._agreement, self._hint = agreement, hint
        self._folder = asked.inputs or calibration
        self._most = None if asked.inputs else 8
        self._check: ValueCheck | str | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Verifier:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give back what was held."""
        self._stack.close()

    def check(self, result: Document) -> Generator[Event, None, Checked]:
        """Load and run a result, and compare its values with those of the original.

        Raises:
            ActivityError: The result cannot be loaded or run, but the original can.
            InputError: The inputs cannot be read, or do not fit.
        """
        if not self._asked.verify:
            return Checked(skipped="it is switched off")
        notes = yield from self._tried(result)
        check = yield from self._prepared()
        if isinstance(check, str):
            return Checked(notes, check)
        yield Progress(0, None, stage="Comparing the values with the original")
        verdict = check.run(result)
        if why := _useless_reference(verdict):
            return Checked(notes, why)
        return Checked(notes, verdict=verdict)

    def to_keep(self, checked: Checked, kept: Collection[Node], most: int) -> dict[Node, str]:
        """Return nodes that should stay as they were, too, with the reasons.

        They are nodes of a copy of the original in which calls of functions are replaced.
        """
        if checked.verdict is None or not isinstance(self._check, ValueCheck):
            return {}
        more = self._check.to_keep(checked.verdict, kept, most)
        if more or not checked.is_wrong:
            return more
        return self._check.of_same_operators(checked.verdict, kept)

    def figures(
        self,
        result: Document,
        checked: Checked,
        kept: Mapping[Node, str] | None = None,
        advice: Callable[[Culprit], str] | None = None,
    ) -> Generator[Event, None, dict[str, JSON]]:
        """Return ``"values"`` and ``"latency_ms"`` of a result that is to be written.

        Args:
            result: The result.
            checked: What :meth:`check` found of it.
            kept: Nodes that a repair left as they were, with the reasons.
            advice: Says what can be done about the first node with wrong values.
        """
        latency = yield from self._latency(result)
        if checked.verdict is None:
            return {"values": {"skipped": checked.skipped}, "latency_ms": latency}
        first = checked.verdict.first
        check = self._check if isinstance(self._check, ValueCheck) else None
        sets = len(check.feeds.sets) if check is not None else 0
        values: dict[str, JSON] = {
            "skipped": "", **checked.verdict.to_json(),
            "repaired": [culprit.to_json() for culprit in culprits(kept or {})],
            "advice": advice(first) if advice is not None and first is not None else "",
            "inputs": "random" if self._folder is None else "files", "sets": sets,
            "guess": [] if check is None else [*check.remarks],
        }  # fmt: skip
        return {"values": values, "latency_ms": latency}

    def _tried(self, result: Document) -> Generator[Event, None, list[str]]:
        narrow = self._agreement.narrow
        with contextlib.ExitStack() as stack:
            notes = []
            if narrow is not None and not self._agreement.has_kernels:
                result = rounded_copy(result, narrow.dtype)
                stack.callback(result.close)
                notes.append(
                    f"ONNX Runtime cannot compute in {narrow.dtype} on a CPU: nodes were computed"
                    " in float32, and rounded"
                )
            original, shape = self._original, self._asked.shape
            notes += yield from verify(original, result, self._output, shape, self._hint)
        return notes

    def _prepared(self) -> Generator[Event, None, ValueCheck | str]:
        if self._check is None:
            self._check = yield from self._value_check()
        return self._check

    def _value_check(self) -> Generator[Event, None, ValueCheck | str]:
        """Return what compares values, or why they are not compared."""
        if self._asked.values == "never":
            return "it is switched off"
        weights = cast("int", figures(self._original)["weight_bytes"])
        if self._asked.values == "auto" and weights > MANY_BYTES:
            return f"it has more than {fmt.size(MANY_BYTES)} of weights (--values always)"
        yield Progress(0, None, stage="Running the original")
        asked = self._asked
        question = Question(asked.shape, self._folder, self._most, asked.tolerance)
        try:
            check = ValueCheck(self._original, question, self._agreement)
        except (ActivityError, UnavailableError) as error:
            return f"the original cannot be run: {error.message}"
        self._stack.callback(check.close)
        return check

    def _latency(self, result: Document) -> Generator[Event, None, JSON]:
        """Return median latencies in ms of both models, whose passes alternate."""
        check = self._check
        is_asked = isinstance(self._asked, Verification) and self._asked.measure
        if not is_asked or not isinstance(check, ValueCheck):
            return None
        yield Progress(0, None, stage="Measuring both models")
        folder = self._original.path.parent if self._original.path is not None else None
        with contextlib.ExitStack() as stack:
            try:
                passes = [
                    _pass(document, folder, check.feeds.sets[0], stack)
                    for document in (self._original, result)
                ]
                times = _alternating(passes)
            except DldError:
                return None  # that it does not run here was said before
        (first, before, third), (other_first, after, other_third) = times
        is_clear = third < other_first or other_third < first
        return {"before": before, "after": after, "is_clear": is_clear}


def verified(
    asked: ValueVerification,
    original: Document,
    result: Document,
    output: Path,
    agreement: Agreement,
    *,
    hint: str | None = None,
    unchanged: str = "",
) -> Generator[Event, None, tuple[dict[str, JSON], list[str]]]:
    """Verify a result that is made in one way only; return its figures, and notes.

    Args:
        asked: How.
        original: The model before.
        result: The model after.
        output: The file that errors name.
        agreement: What is near enough by default.
        hint: What can be done when the result cannot be loaded, or its values are wrong.
        unchanged: Why there is nothing to compare, if so.

    Raises:
        ActivityError: The result cannot be loaded or run, but the original can.
        InputError: The inputs cannot be read, or do not fit.
    """
    with Verifier(asked, original, output, agreement, hint=hint) as verifier:
        if unchanged:
            checked = Checked(skipped=unchanged)
        else:
            checked = yield from verifier.check(result)
        outcome = yield from verifier.figures(result, checked, advice=lambda _: hint or "")
        return outcome, checked.notes


def _useless_reference(verdict: Verdict) -> str:
    """Return why a comparison with the original says nothing, if so."""
    errors = [row.error for row in verdict.outputs if row.error.count and not row.error.mismatch]
    if errors and all(error.nan_reference == error.count for error in errors):
        return "the original gives nothing but NaN on these inputs (--inputs takes others)"
    if errors and all(error.largest == 0 and not error.special for error in errors):
        return "the original gives nothing but zeros on these inputs (--inputs takes others)"
    return ""


def _pass(
    document: Document, folder: Path | None, feed: Mapping[str, Any], stack: contextlib.ExitStack
) -> Callable[[], object]:
    runner = stack.enter_context(TensorRunner(document, _QUICKEST, folder=folder))
    names = runner.outputs
    session = runner.session(names)
    taken = {spec.name for spec in session.inputs}
    values = session.feed({name: value for name, value in feed.items() if name in taken})
    return lambda: session.tensors(names, values)


def _alternating(passes: list[Callable[[], object]]) -> list[list[float]]:
    """Return the quartiles of each one's times in ms.

    They take turns, so that both see the same machine.
    """
    times: list[list[float]] = [[] for _ in passes]
    for run in passes:
        run()  # the first pass allocates
    end = perf_counter() + _BUDGET_S
    while len(times[0]) < _FEWEST or (perf_counter() < end and len(times[0]) < _MOST):
        for run, taken in zip(passes, times, strict=True):
            begin = perf_counter()
            run()
            taken.append((perf_counter() - begin) * 1e3)
    return [statistics.quantiles(taken, n=4, method="inclusive") for taken in times]
