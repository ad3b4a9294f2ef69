"""The course of a tuning: races of models, of settings and of both, then proofs, then the rest."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.tune.agreement import Agreement
from dld_tui.activities.tune.budget import BOTH, MODELS, MOST_PROOF, SETTINGS, Budget
from dld_tui.activities.tune.conversions import Conversions
from dld_tui.activities.tune.found import Found
from dld_tui.activities.tune.original import HELD_BYTES, OriginalModel
from dld_tui.activities.tune.outcome import Outcome
from dld_tui.activities.tune.proof import Proof
from dld_tui.activities.tune.racing import Racing
from dld_tui.activities.tune.request import Request
from dld_tui.core.errors import CancelledError, DldError, SaveError, TimeLimitError, UsageError
from dld_tui.core.events import Event, Metric, Progress
from dld_tui.core.params import deciding
from dld_tui.core.text import comma_separated, visible
from dld_tui.core.tune.changes import CHANGES, Setup, TuneChange, combinations
from dld_tui.core.tune.result import CandidateState, no_time, ratios_of

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document


_PROOFS = 2
"""Candidates that have to prove themselves after the same races, at most."""
_IDLE_S = 1.0
"""Races that take less have found nothing to do."""
_MOST_ITEMS = 1_000_000
_HELD_MODELS = 30
"""More sessions than race at once."""


def run(request: Request) -> Iterator[Event]:
    """Tune.

    Raises:
        UsageError: Settings do not fit each other or the model.
        InputError: The model or an input cannot be read.
        UnavailableError: ONNX Runtime or the provider is missing.
        ActivityError: The model cannot be run.
        SaveError: A result cannot be written.
    """
    from dld_tui.core.llm.folder import open_document

    request.require()
    folder = Path.cwd() if request.output is None else request.output.absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):  # said before the work
        raise SaveError(
            "the folder is not writable", where=str(folder), hint="Choose another --output"
        )
    yield Progress(0, None, stage="Reading the model")
    yield Metric("budget", request.budget, "s")  # beside the time that has passed
    with contextlib.closing(open_document(request.model)) as document:
        tuning = Tuning(request, document)
        try:
            yield from tuning.events()
        except (CancelledError, SaveError) as error:
            error.hint = tuning.left_behind() or error.hint
            raise
        finally:
            tuning.close()


class Tuning:
    """One run.

    Args:
        request: What is tuned.
        document: The model.
    """

    def __init__(self, request: Request, document: Document) -> None:
        from dld_tui.core.tune.journal import KnownMeasurements

        self.budget = Budget(request.budget)
        self.subject = OriginalModel(request, document, self.budget)
        self.found = Found({self.subject.base.key: self.subject.base})
        self.journal = KnownMeasurements.of(deciding(request), document, again=request.again)
        self.agreement = Agreement(self.subject, self.found)
        parts = self.subject, self.budget, self.journal, self.found, self.agreement
        self.conversions = Conversions(*parts)
        self.racing = Racing(*parts)
        self.proof = Proof(self.subject, self.budget, self.found)
        self.outcome = Outcome(*parts)

    def close(self) -> None:
        """Let the next run of the same have what was found."""
        self.proof.close()
        self.journal.close()

    def left_behind(self) -> str:
        """Remove the files of a result that is not whole, and return what is kept, for people."""
        for path in self.outcome.written:
            path.unlink(missing_ok=True)
        if not self.journal.is_kept:
            return ""
        return "The measurements are kept: tune the model again, with any output, to continue"

    def events(self) -> Iterator[Event]:
        """Tune, and write what was found."""
        from dld_tui.backends.onnxruntime.limits import limit_trials, naming

        if self.subject.settings(self.subject.base).providers == ("CPU",):
            held_bytes = 2 * min(HELD_BYTES, _HELD_MODELS * self.subject.weight_bytes)
            limit_trials(self.subject.document, shapes=self.subject.request.shape, more=held_bytes)
        with naming(self.subject.document):
            in_time = self._inputs_in_time() and (yield from self._judged_in_time())
        if not in_time:
            yield from self.outcome.finished(self.subject.base)
            return
        usable = self._usable()
        winner, ranked = self.subject.base, list[Setup]()
        while True:
            self.budget.since_s, before = self.budget.passed_s, self._unfinished()
            raced = yield from self._raced_all(usable, winner)
            ranked = self._ranked([*raced, *ranked])
            goes_on = self._would_go_on(before) and self.budget.left(BOTH) > self.budget.rest_s
            if goes_on and not self._must_prove(ranked[0]):
                continue  # what is left races before anything has to prove itself
            winner = yield from self._proven(ranked, winner)
            if not self._would_go_on(before) or self.budget.left() <= self.budget.rest_s:
                break
        self.found.is_whole &= not self._unfinished()
        yield from self.outcome.finished(winner)

    def _ranked(self, raced: Sequence[Setup]) -> list[Setup]:
        """Return set-ups that won a race, the fastest first, and the original model last.

        A series of races that had no time for all of them does not undo those before it. Whoever
        ran in one round only comes last: on a busy machine a single ratio can be 10 for what is
        alike, and a confirmation takes long.
        """
        ratios, races = ratios_of(self.found.races), self.found.races
        rounds = {key: sum(len(race.figures.get(key, ())) for race in races) for key in ratios}
        chosen = {
            one.key: one for one in raced if one.changes and one.key not in self.found.problems
        }
        faster = [one for one in chosen.values() if ratios.get(one.key, 1.0) < 1]
        faster.sort(key=lambda one: (rounds[one.key] < 2, ratios[one.key]))
        return [*faster, self.subject.base]

    def _must_prove(self, leader: Setup) -> bool:
        """Return whether later there would be no time to confirm the one that leads."""
        is_open = bool(leader.changes) and leader.key not in self.found.proofs
        return is_open and self.budget.proof_s() > MOST_PROOF * self.budget.left()

    def _proven(self, ranked: Sequence[Setup], winner: Setup) -> Generator[Event, None, Setup]:
        """Confirm those that won their races, and return the fastest one that is confirmed.

        Args:
            ranked: The fastest first.
            winner: What was confirmed before; the original model where nothing was.
        """
        from dld_tui.core.compare.gate import LEAST_RUNS

        for one in self.racing.made.values():
            one.close()
        for candidate in [one for one in ranked if one.key not in self.found.proofs][:_PROOFS]:
            if not candidate.changes or LEAST_RUNS * self.budget.pair_took_s > self.budget.left():
                break
            row = yield from self.proof.confirmed(candidate)
            if row is None:
                break
            self.found.proofs[candidate.key] = row
            best = self.found.proofs.get(winner.key)
            if row.is_faster and (best is None or row.change_percent < best.change_percent):
                return candidate
        return winner

    def _would_go_on(self, before: frozenset[tuple[str, int]]) -> bool:
        """Return whether there is something left that more time may finish.

        Args:
            before: What was unfinished when the present races began.
        """
        now = self._unfinished()
        # A repair that was stopped goes on from its journal, so that the same may be left.
        return bool(now) and (now != before or self.budget.passed_s - self.budget.since_s > _IDLE_S)

    def _unfinished(self) -> frozenset[tuple[str, int]]:
        """Return what there was no time for: candidates, and races with their numbers of rounds."""
        untried = {
            (key, 0)
            for key, excluded in self.found.problems.items()
            if excluded.state is CandidateState.NOT_TRIED
        }
        races = {
            (" ".join(race.names), race.rounds) for race in self.found.races if not race.is_over
        }
        return frozenset(untried | races)

    def _usable(self) -> list[TuneChange]:
        """Return the changes to try, those first that the newest report of the model advises."""
        from dld_tui.core.tune.changes import usable_changes

        known = self._changes()
        self._require_known(known)
        provider = self.subject.settings(self.subject.base).providers[0]
        nodes = (node for scope in self.subject.document.scopes() for node in scope.nodes)
        operators = frozenset(node.op_type for node in nodes)
        usable = usable_changes(
            known,
            provider,
            operators,
            lambda name: getattr(self.subject.request, name),
            comma_separated(*self.subject.request.only),
        )
        advised = _advised(self.subject.request.model)
        return sorted(usable, key=lambda one: (one.id not in advised, advised.get(one.id, 0)))

    def _raced_all(
        self, usable: Sequence[TuneChange], winner: Setup
    ) -> Generator[Event, None, list[Setup]]:
        """Race models, then settings, then both; return who was faster than the original model.

        Returns:
            The fastest first, the original model last.
        """
        self.found.again = {
            key for key, one in self.found.problems.items() if one.state is CandidateState.NOT_TRIED
        }
        for key in self.found.again:  # now there may be time
            del self.found.problems[key]
            if key != self.subject.base.key:  # it stays the first
                del self.found.setups[key]
        models = yield from self.conversions.converted([one for one in usable if one.makes_model])
        proven = [winner] if winner.changes else []
        raced = yield from self.racing.raced(
            "models", [self.subject.base, *proven, *models], MODELS
        )
        best = raced or [winner]
        settings = [
            best[0].with_change(one)
            for one in usable
            if not one.makes_model and best[0].goes_with(one) and one not in best[0].changes
        ]
        if settings:
            raced = yield from self.racing.raced("settings", [best[0], *settings], SETTINGS)
            second = raced or [best[0]]
            helped = [one for one in second if one.key != best[0].key]
            won = {one.key for one in best}
            lost = [
                one for one in models if one.key not in won and one.key not in self.found.problems
            ]
            finals = combinations(best, helped, lost)
            raced = yield from self.racing.raced("together", [best[0], *finals], BOTH)
            best = raced or second
        return best

    def _changes(self) -> list[TuneChange]:
        from dld_tui.backends.onnxruntime.runtime import newest_opset
        from dld_tui.core.machine.environment import physical_cores, usable_threads
        from dld_tui.core.tune.changes import batch_change, shape_change, thread_changes

        assert self.subject.feeds is not None
        changes = [*CHANGES, *thread_changes(usable_threads(), physical_cores())]
        sizes = self.subject.free_sizes() if self.subject.request.fix_shapes else {}
        if sizes:
            changes.append(shape_change(sizes))
        for text in comma_separated(*self.subject.request.batch):
            if not text.isdecimal() or not 2 <= int(text) <= _MOST_ITEMS:
                raise UsageError(
                    f"--batch is {text!r}", hint="Write sizes from 2 to a million: 2,4,8"
                )
            changes.append(batch_change(int(text)))
        opset = next(
            (o.version for o in self.subject.document.model.opset_import if not o.domain), 0
        )
        newest = newest_opset()
        return [
            replace(change, values={"to": newest}) if change.id == "opset" else change
            for change in changes
            if change.id != "opset" or opset < newest
        ]

    def _require_known(self, known: Sequence[TuneChange]) -> None:
        names = {one.id for one in known} | {one.id for one in CHANGES}
        for name in comma_separated(*self.subject.request.only):
            if name not in names:
                raise UsageError(
                    f"no change is called {visible(name)}",
                    hint=f"Choose from {', '.join(sorted(names))}",
                )

    def _judged_in_time(self) -> Generator[Event, None, bool]:
        """Let the metric judge the original model; return whether there was time for it."""
        try:
            with self.budget.limited(), self.budget.doing("checking"):
                yield from self.agreement.prepare()
        except TimeLimitError:
            self.found.is_whole = False
            excluded = no_time("before the original model was judged on the dataset")
            self.found.problems[self.subject.base.key] = excluded
            return False
        return True

    def _inputs_in_time(self) -> bool:
        """Load and run the original model; return whether there was time for it."""
        try:
            with self.budget.limited():
                self.subject.make_inputs()
        except TimeLimitError:
            self.found.is_whole = False
            took = "run" if self.subject.first is not None else "loaded"
            self.found.problems[self.subject.base.key] = no_time(
                f"before the original model was {took}"
            )
            return False
        return True


def _advised(model: Path) -> dict[str, int]:
    """Return the changes that the newest report of a model advises, by id with their places."""
    from dld_tui.core.reading.story import next_steps
    from dld_tui.core.report.reports_of_model import newest_report

    here = map(str, Path.cwd().glob("*.dldprof"))  # where profiles are written by default
    with contextlib.suppress(DldError, OSError), newest_report(model, here) as report:
        steps = [] if report is None else next_steps(report)
        ids = dict.fromkeys(id for step in steps for id in step.changes)
        return {id: at for at, id in enumerate(ids)}
    return {}
