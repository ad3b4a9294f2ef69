"""What a tuning writes: the result, the model, profiles of both, and the code to use it."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.activities.profile.onnxruntime import Request as Profile
from dld_tui.activities.tune.agreement import Agreement
from dld_tui.activities.tune.budget import PROFILE_S, QUICK_S, Budget
from dld_tui.activities.tune.found import Found
from dld_tui.activities.tune.original import OriginalModel
from dld_tui.core.errors import DldError, TimeLimitError
from dld_tui.core.events import Event, Finished, Progress
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.files.writer import put_in_place
from dld_tui.core.params import output_path, to_json
from dld_tui.core.text import visible
from dld_tui.core.tune.changes import Setup
from dld_tui.core.tune.result import TuneResult, candidates

if TYPE_CHECKING:
    from dld_tui.core.compare.gate import GateRow
    from dld_tui.core.tune.gain import Gain
    from dld_tui.core.tune.journal import KnownMeasurements


_OVER = 0.05
"""The share of the budget after which even the profiles of a confirmed winner stop."""
_PROFILES = ("before", "after")
_PROFILE_PAIRS, _TURNS_S = 8, 0.5
"""How often both are profiled in new sessions, and for how long each."""
_LEAST_PROFILED = 13
"""Passes of a session that is profiled, at least."""
_AS_CONFIRMED = 0.15
"""A difference from what was confirmed below which no more profiles are taken."""
_NOT_PROFILED = "The budget was spent before both could be profiled."
_MOST_NODES = 500
"""Of those that a result lists."""


class Outcome:
    """Writes what was found.

    Args:
        subject: The original model.
        budget: The time.
        journal: Is forgotten when the result is written.
        found: What was found.
        agreement: What candidates had to keep to.
    """

    def __init__(
        self, subject: OriginalModel, budget: Budget, journal: KnownMeasurements, found: Found,
        agreement: Agreement,
    ) -> None:  # fmt: skip
        from dld_tui.core.machine.environment import CpuWatch

        self.subject, self.budget, self.journal, self.found = subject, budget, journal, found
        self.agreement = agreement
        self._watch = CpuWatch()
        self.written: list[Path] = []
        """What a result has beside it."""

    def finished(self, winner: Setup) -> Iterator[Event]:
        """Write the result and what belongs to it, and yield the events that end the job."""
        from dld_tui.core.codec import encode
        from dld_tui.core.files.writer import write_text
        from dld_tui.core.tune.gain import Gain, gain_line

        asked, found = self.subject.request, self.found
        path = output_path(asked, "output")
        assert path is not None  # it has a default
        path = path.absolute()
        lost = [*self.found.proofs]  # where nothing is faster, the last one says so
        named = winner if winner.changes or not lost else self.found.setups[lost[-1]]
        confirmed = self.found.proofs.get(named.key)
        is_faster = confirmed is not None and confirmed.is_faster
        chosen = winner
        model, reports = None, list[str]()
        why: list[str] = []
        gain: Gain | str = ""
        share = None
        if confirmed is not None and is_faster:
            if chosen.model != self.subject.base.model:
                copied = path.with_name(f"{path.stem}.onnx")
                self.written += [copied, copied.with_name(f"{copied.name}.data")]
                model = str(self._copy_model(chosen.model, copied))
            used = replace(chosen, model=Path(model or self.subject.base.model))
            targets = [path.with_name(f"{path.stem}.{name}.dldprof") for name in _PROFILES]
            self.written += targets
            try:
                with self.budget.limited(over_s=_OVER * asked.budget):
                    gain = yield from self._profiled_pair(
                        [self.subject.base, used], targets, confirmed
                    )
            except TimeLimitError:
                gain, self.found.is_whole = _NOT_PROFILED, False
            reports = [str(target) for target in targets if target.exists()]
            if isinstance(gain, Gain):
                share = gain.percent_of(confirmed.change_percent)
                why = [gain_line(gain, confirmed.change_percent)]
            else:
                why = [gain]
        code = self._code(replace(chosen, model=Path(model or self.subject.base.model)))
        seconds = {**self.budget.seconds, "all": self.budget.passed_s}
        others = self._watch.environment().get("other_busy_threads")
        remarks = self.subject.feeds.remarks if self.subject.feeds is not None else []
        result = TuneResult(
            report=str(path), source=str(self.subject.base.model), best=chosen.key,
            title=named.title, confirmed=confirmed,
            model=model, why=tuple(why), code=code,
            candidates=candidates(
                found.setups, found.races, found.problems, found.near, chosen.key, found.proofs
            ),
            reports=tuple(reports), seconds=seconds, is_whole=self.found.is_whole,
            budget=asked.budget,
            tolerance=self.agreement.limit_text,
            inputs="; ".join(remarks) or ("random values" if asked.inputs is None else "files"),
            asked=tuple(asked.only),
            explained_percent=share,
            nodes=gain.rows[:_MOST_NODES] if isinstance(gain, Gain) else (),
            settings={"provider": asked.provider, **chosen.session},
            other_busy_threads=others if isinstance(others, float) else None,
        )  # fmt: skip
        if is_faster:
            self.written.append(path.with_name(f"{path.stem}.py"))
            write_text(self.written[-1], code.python)
        write_text(path, json.dumps(encode(result), indent=1) + "\n")
        self.written.clear()
        self.journal.forget()
        yield Finished(result)

    def _code(self, setup: Setup) -> Any:
        from dld_tui.core.params import command_line
        from dld_tui.core.tune.result import Code, cpp_code, python_code

        asked = self.subject.request
        session = {"provider": asked.provider, "device_id": asked.device_id, **setup.session}
        session.pop("batch", None)
        values = to_json(self.subject.profile_request(setup))
        return Code(
            python_code(str(setup.model), session),
            cpp_code(str(setup.model), session),
            command_line(("dld", "profile", "onnxruntime"), Profile, values),
        )

    @staticmethod
    def _copy_model(source: Path, target: Path) -> Path:
        from dld_tui.core.conversion.copies import write_copy
        from dld_tui.core.llm.folder import open_document

        with contextlib.closing(open_document(source)) as document:
            write_copy(document, target)
        return target

    def _profiled_pair(
        self, setups: Sequence[Setup], targets: Sequence[Path], confirmed: GateRow
    ) -> Generator[Event, None, Gain | str]:
        """Profile both, in turns where that can be, a few times in new sessions.

        Sessions differ: kept are the profiles of those that are most like the confirmation, which
        is of many.

        Returns:
            Where the gain is, by the profiles that were kept, or why that is not known.
        """
        on_cpu = all(self.subject.settings(one).memory == "cpu" for one in setups)
        if not on_cpu or not self.subject.holds(2 * len(setups)):
            for setup, target in zip(setups, targets, strict=True):
                yield from self._profiled(setup, target)
            return _gain_of(targets)
        needed_s = 2 * len(setups) * (self.budget.first_s + _LEAST_PROFILED * self.budget.pass_s)
        if self.budget.first_s + self.budget.pass_s > QUICK_S and needed_s > self.budget.left():
            raise TimeLimitError("there is no time to profile")
        tried: list[tuple[float, Gain | str, Sequence[Path]]] = []
        begin, most_s = time.monotonic(), min(PROFILE_S, self.budget.left())
        with temporary_folder("tune", targets[0].parent) as home:
            while len(tried) < _PROFILE_PAIRS:
                folder = home / str(len(tried))
                folder.mkdir()
                paths = [folder / target.name for target in targets]
                try:
                    with self.budget.doing("measuring"):
                        yield from self._turned(setups, paths)
                except TimeLimitError:
                    if not tried:
                        raise
                    break
                gain = _gain_of(paths)
                tried.append((_difference(gain, confirmed), gain, paths))
                if tried[-1][0] < _AS_CONFIRMED or time.monotonic() - begin > most_s:
                    break
            _, gain, kept = min(tried, key=lambda one: one[0])
            for path, target in zip(kept, targets, strict=True):
                put_in_place(path, target)
        return gain

    def _turned(self, setups: Sequence[Setup], paths: Sequence[Path]) -> Iterator[Event]:
        """Profile both in turns."""
        from dld_tui.activities.profile.onnxruntime import plan_of
        from dld_tui.backends.onnxruntime.profiling import ProfilingRun, profile_in_turns
        from dld_tui.core.llm.folder import open_document
        from dld_tui.core.machine.environment import environment

        machine = environment(())
        with contextlib.ExitStack() as stack:
            runs = []
            for setup, path in zip(setups, paths, strict=True):
                plan = plan_of(self.subject.profile_request(setup, output=str(path), warm_up=3))
                document = stack.enter_context(contextlib.closing(open_document(setup.model)))
                runs.append(ProfilingRun(plan, document, dict(machine)))
                stack.enter_context(runs[-1].kept_report(stays=False))
            for event in profile_in_turns(runs, _TURNS_S):
                if isinstance(event, Progress):
                    yield replace(event, stage=f"Profiling both: {event.stage}")

    def _profiled(self, setup: Setup, target: Path) -> Iterator[Event]:
        from dld_tui.activities import registry

        profile = registry.load("profile_onnxruntime")
        request = self.subject.profile_request(
            setup, output=str(target), duration=1.0, layer_passes=20, warm_up=3
        )
        with self.budget.doing("measuring"):
            for event in profile.run(request):
                if isinstance(event, Progress):
                    yield replace(event, stage=f"Profiling {setup.title}: {event.stage}")


def _difference(gain: Gain | str, confirmed: GateRow) -> float:
    """Return how little profiles show what was confirmed; infinite where they do not tell."""
    return math.inf if isinstance(gain, str) else gain.difference(confirmed)


def _gain_of(reports: Sequence[Path]) -> Gain | str:
    """Return where the gain is, or why profiles do not tell."""
    from dld_tui.core.report.report import open_report
    from dld_tui.core.tune.gain import NOT_MEASURED, gain_of

    try:
        with open_report(reports[0]) as before, open_report(reports[1]) as after:
            gain = gain_of(before, after)
    except DldError as error:
        return f"The profiles cannot be compared: {visible(error.message)}"
    return gain if gain is not None and gain.before_ms > 0 else NOT_MEASURED
