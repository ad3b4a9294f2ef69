"""The models that are candidates: conversions and rewrites of the original one."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.activities.tune.agreement import Agreement
from dld_tui.activities.tune.budget import CONVERTING, QUICK_S, Budget
from dld_tui.activities.tune.found import NO_TIME, Found, failed
from dld_tui.activities.tune.original import OriginalModel
from dld_tui.core.conversion.result import VerifiedResult, value_problem
from dld_tui.core.errors import ActivityError, CancelledError, DldError, TimeLimitError
from dld_tui.core.events import Event, Finished, Log, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.params import from_json
from dld_tui.core.tune.changes import Setup, TuneChange
from dld_tui.core.tune.result import NOTHING, CandidateState, Exclusion, no_time
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tune.journal import KnownMeasurements


_QUICK_BYTES = 64 << 20
"""Weights up to which conversions of a quick model run in this process: they end soon."""


class Conversions:
    """Makes models, as long as there is time.

    Args:
        subject: The original model.
        budget: The time.
        journal: Keeps what was made.
        found: Gets the set-ups, and why some do not count.
        agreement: Says whether a metric decides.
    """

    def __init__(
        self, subject: OriginalModel, budget: Budget, journal: KnownMeasurements, found: Found,
        agreement: Agreement,
    ) -> None:  # fmt: skip
        self.subject, self.budget, self.journal, self.found = subject, budget, journal, found
        self.agreement = agreement
        self._failed: set[str] = set()
        """Changes whose conversion failed (a full disk, say): a resumed run tries them again."""

    def converted(self, changes: Sequence[TuneChange]) -> Generator[Event, None, list[Setup]]:
        """Convert the model in each way, as long as there is time for it."""
        setups = []
        for at, change in enumerate(changes):
            yield Progress(at, len(changes), "conversions", change.title)
            setup = self.subject.base.with_change(change)
            self.found.setups[setup.key] = setup
            is_made = self.journal.is_made(change.id)
            if not is_made and self.budget.left(CONVERTING) <= 0:
                self.found.problems[setup.key] = NO_TIME
                continue
            if is_made:
                excluded = self.journal.exclusion(change.id)
            else:
                with self.budget.doing("converting"):
                    excluded = yield from self._convert(change)
                is_untried = excluded is not None and excluded.state is CandidateState.NOT_TRIED
                if not is_untried and change.id not in self._failed:
                    self.journal.add_made(change.id, excluded)
            if excluded is not None:
                self.found.problems[setup.key] = excluded
                yield Log(f"{change.title}: {excluded.text}")
            else:
                setups.append(replace(setup, model=self.journal.model(change.id)))
                self.found.setups[setup.key] = setups[-1]
        return setups

    def _convert(self, change: TuneChange) -> Generator[Event, None, Exclusion | None]:
        """Make a model; return why it does not count, None where it does."""
        steps = self._rewritten(change) if change.rules else self._verified(change)
        try:
            with contextlib.closing(steps):
                excluded = yield from steps
        except TimeLimitError:
            return no_time("during the conversion")
        except CancelledError:
            raise
        except DldError as error:
            excluded = failed(error.message)
            self._failed.add(change.id)
        # Where the time is up, a conversion can blame the outputs that it could not compare.
        is_late = excluded is not None and self.budget.left(self.budget.converted_share) <= 0
        return no_time("during the conversion") if is_late else excluded

    def _rewritten(self, change: TuneChange) -> Generator[Event, None, Exclusion | None]:
        """Apply rewrite rules; return why the result does not count, None where it does.

        Its outputs are compared when it races.
        """
        from dld_tui.backends.conversion import rewriter
        from dld_tui.backends.conversion.library_file import by_library
        from dld_tui.core.conversion.copies import write_copy

        limit_s = max(0.0, self.budget.left(self.budget.converted_share))
        with contextlib.ExitStack() as stack:
            result = yield from by_library(
                self.subject.document, rewriter.__name__, [*change.rules], change.title, stack,
                limit_s=limit_s,
            )  # fmt: skip
            if _operators(result) == _operators(self.subject.document):
                return NOTHING
            write_copy(result, self.journal.model(change.id))
        return None

    def _verified(self, change: TuneChange) -> Generator[Event, None, Exclusion | None]:
        """Run a conversion, which compares outputs; return why the result does not count."""
        asked = self.subject.request
        values: dict[str, JSON] = {
            "model": str(self.subject.base.model), "output": str(self.journal.model(change.id)),
            "values": "always", "measure": False,
            "tolerance": [*(asked.tolerance or change.tolerance)],
            "shape": [*asked.shape],
            "inputs": None if asked.inputs is None else str(asked.inputs),
            **change.values,
        }  # fmt: skip
        if change.needs:
            values[change.needs] = str(getattr(asked, change.needs))
        if self.agreement.is_by_metric:
            values["keep_wrong"] = True
        elif change.repairs:
            values["repair"] = True
        is_quick = (
            self.budget.first_s + self.budget.pass_s < QUICK_S
            and self.subject.weight_bytes <= _QUICK_BYTES
        )
        conversion = self._converted_here if is_quick else self._converted_in_process
        with contextlib.closing(conversion(change, values)) as events:
            result = yield from events
        if not self.agreement.is_by_metric:
            return _value_problem(result)
        excluded = _value_problem(result, of_outputs=False)
        if excluded is None and change.repairs and isinstance(result, VerifiedResult):
            setup = replace(
                self.subject.base.with_change(change), model=self.journal.model(change.id)
            )
            if result.values.is_wrong and self._loses_too_much(setup):
                # The nodes that cause it may be few; without them, the metric may be met.
                values["repair"] = True
                with contextlib.closing(conversion(change, values)) as events:
                    return _value_problem((yield from events), of_outputs=False)
        return excluded

    def _loses_too_much(self, setup: Setup) -> bool:
        with self.budget.limited(self.budget.converted_share), self.budget.doing("checking"):
            problem, _ = self.agreement.by_metric(setup)
        return bool(problem)

    def _converted_here(
        self, change: TuneChange, values: Mapping[str, JSON]
    ) -> Generator[Event, None, object]:
        from dld_tui.activities import registry

        activity = registry.load(change.convert)
        with (
            self.budget.limited(self.budget.converted_share),
            contextlib.closing(activity.run(from_json(activity.request, values))) as events,
        ):
            for event in events:
                if isinstance(event, Finished):
                    return event.result
                if isinstance(event, Progress):
                    yield replace(event, stage=f"{change.title}: {event.stage}")
                if self.budget.left(self.budget.converted_share) < 0:
                    raise TimeLimitError("stopped at the time limit")
        raise ActivityError("the conversion wrote no model")

    def _converted_in_process(
        self, change: TuneChange, values: Mapping[str, JSON]
    ) -> Generator[Event, None, object]:
        """Convert in a process that can be stopped at any time."""
        from dld_tui.activities.separate_process import run_in_process

        with temporary_folder("tune") as folder:
            limit_s = max(0.0, self.budget.left(self.budget.converted_share))
            process = run_in_process(change.convert, values, folder, limit_s)
            with contextlib.closing(process):
                while True:
                    try:
                        event = next(process)
                    except StopIteration as end:
                        return end.value
                    yield replace(event, stage=change.title)


def _operators(document: Document) -> Counter[str]:
    return Counter(node.op_type for scope in document.scopes() for node in scope.nodes)


def _value_problem(result: object, *, of_outputs: bool = True) -> Exclusion | None:
    """Return why the result of a conversion does not count, None where it does.

    Args:
        result: Of the conversion.
        of_outputs: Whether wrong outputs are a reason.
    """
    if isinstance(result, VerifiedResult) and result.unchanged:
        return NOTHING
    if isinstance(result, VerifiedResult) and not of_outputs:
        return None
    problem = value_problem(result)
    return failed(problem) if problem else None
