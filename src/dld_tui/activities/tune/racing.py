"""Races: candidates are timed in turns, and the slower ones drop out."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from typing import TYPE_CHECKING

from dld_tui.activities.tune.agreement import Agreement
from dld_tui.activities.tune.budget import BOTH, OVERHEAD, Budget
from dld_tui.activities.tune.found import NO_TIME, Found, failed
from dld_tui.activities.tune.original import OriginalModel
from dld_tui.core.errors import DldError, TimeLimitError
from dld_tui.core.events import Event, Log, Metric, Progress
from dld_tui.core.tune.changes import Setup
from dld_tui.core.tune.result import no_time

if TYPE_CHECKING:
    from dld_tui.backends.onnxruntime.contest import Contestant
    from dld_tui.core.compare.gate import RunFigures
    from dld_tui.core.tune.journal import KnownMeasurements
    from dld_tui.core.tune.race import Race


_RENEWING = 0.05
"""Share of the time measured that is spent on new sessions in the place of those that race: as long
as it lasts, a session keeps where its threads and its memory are, which can make it faster or
slower than another one of the same set-up."""
_ROUNDS, _LEAST_ROUNDS = 12, 2
"""How many rounds a race has, at most, and for how many there must be time to admit a candidate."""
_SHORTEST_S, _LONGEST_S = 0.1, 1.0
"""How long one turn takes, unless three passes take longer, or the session took long to load."""
_SEEMS = 0.98
"""The ratio to the first one of a race below which a set-up goes on without proof."""


class Racing:
    """Lets set-ups race.

    Args:
        subject: The original model.
        budget: The time.
        journal: Keeps the rounds.
        found: Gets the races, and why some set-ups do not count.
        agreement: Judges outputs.
    """

    def __init__(
        self,
        subject: OriginalModel,
        budget: Budget,
        journal: KnownMeasurements,
        found: Found,
        agreement: Agreement,
    ) -> None:
        self.subject, self.budget, self.journal, self.found = subject, budget, journal, found
        self.agreement = agreement
        self.made: dict[str, Contestant] = {}
        self._judged: set[str] = set()
        """Candidates whose outputs were compared."""
        self._renewing_s = 0.0

    def raced(
        self, stage: str, setups: Sequence[Setup], share: float
    ) -> Generator[Event, None, list[Setup]]:
        """Let set-ups race; return those that are faster than the first one, which comes last.

        Nothing where no round was run.
        """
        from dld_tui.core.tune.race import Race

        setups = list({setup.key: setup for setup in setups}.values())
        lost = {key for key, row in self.found.proofs.items() if not row.is_faster}
        for race in self.found.races:
            lost |= {*race.names} - {*race.running} - self.found.again
        setups = [one for at, one in enumerate(setups) if at == 0 or one.key not in lost]
        self.found.setups.update({setup.key: setup for setup in setups})
        yield from self._admitted(stage, setups, share)
        keys = [setup.key for setup in setups if setup.key not in self.found.problems]
        if len(keys) < 2 or keys[0] != setups[0].key:
            return []
        begun = [one for one in self.found.races if one.names == tuple(keys)]
        race = begun[0] if begun else Race(keys, _ROUNDS)
        known: Iterator[dict[str, float]] = iter(())
        if not begun:
            self.found.races.append(race)
            known = iter(self.journal.rounds(stage, keys))
        while not race.is_over:
            end = share if race.rounds else BOTH  # a race without a round was in vain
            figures = next(known, None)
            if figures is None or set(figures) != set(race.running):
                known = iter(())
                if self.budget.left(end) <= 0:
                    break
                try:
                    figures = yield from self._round(race, end)
                except TimeLimitError:
                    break
                self.journal.add_round(stage, keys, figures)
            before = set(self.found.problems)
            out = race.add_round(figures, self._may_win)
            for name in set(self.found.problems) - before:
                self.made[name].close()
                yield Log(f"{self.found.setups[name].title}: {self.found.problems[name].text}")
            yield Progress(race.rounds, _ROUNDS, "runs", f"Comparing {stage}")
            best = race.best
            yield Metric("best", race.figures[best][-1], "ms")
            for name in out:
                self.made[name].close() if name in self.made else None
                # Times of different rounds do not compare, ratios within rounds do.
                ratio = race.ratio(name, best) or 1.0
                yield Log(f"{self.found.setups[name].title}: slower, {ratio:.2f}× the best latency")
        if not race.rounds:
            self.found.races.remove(race)
            raced = {key for one in self.found.races for key in one.figures if one.figures[key]}
            self.found.problems |= {key: NO_TIME for key in keys[1:] if key not in raced}
            return []
        reference = setups[0]
        ratios = {key: race.ratio(key, keys[0]) or 9e9 for key in race.running}
        # What only seems to be faster goes on, too: the winner has to prove it.
        faster = [
            key
            for key in sorted(race.running, key=ratios.__getitem__)
            if key != keys[0]
            and (ratios[key] < _SEEMS or race.is_slower(keys[0], key))
            and self._may_win(key)
        ]
        return [*(self.found.setups[key] for key in faster), reference]

    def _admitted(self, stage: str, setups: Sequence[Setup], share: float) -> Iterator[Event]:
        """Load what has not been loaded, and leave out what computes something else."""
        turn_s = self._turn_s(len(setups))
        for at, setup in enumerate(setups):
            key = setup.key
            if self.found.problems.get(key) is NO_TIME:  # in an earlier stage
                del self.found.problems[key]
            if key in self.made or key in self.found.problems:
                continue
            yield Progress(at, len(setups), "candidates", f"Checking {stage}")
            try:
                is_loaded = setup is self.subject.base and self.subject.first is not None
                admitted = sum(one.key in self.made for one in setups)
                needed_s = self.budget.first_s + turn_s * _LEAST_ROUNDS * (admitted + 1)
                if self.budget.left(share) < (0.0 if is_loaded else needed_s):
                    raise TimeLimitError("there is no time to load and measure it")
                with self.budget.limited(share):
                    with self.budget.doing("loading"):
                        contestant = self.subject.contestant(setup)
                        contestant.open()
                    self.made[key] = contestant
                    if self.subject.settings(
                        setup
                    ).cuda_graph:  # its first run decides what it reads
                        self._may_win(key)
                if not self.subject.holds(len(setups)):
                    contestant.close()
            except TimeLimitError:
                self.found.problems[key] = NO_TIME
            except DldError as error:
                if not setup.changes:
                    raise
                self.found.problems[key] = failed(error.message)
            if key in self.found.problems:
                yield Log(f"{setup.title}: {self.found.problems[key].text}")

    def _turn_s(self, count: int) -> float:
        """Return how long a turn of so many candidates takes at least, by the original model."""
        from dld_tui.backends.onnxruntime.contest import least_turn_s

        loading_s = 0.0 if self.subject.holds(count) else self.budget.first_s
        return max(_SHORTEST_S, least_turn_s(self.budget.pass_s)) + loading_s

    def _may_win(self, key: str) -> bool:
        """Compare the outputs of a candidate once, when it is the fastest or goes on.

        What is slower than another candidate need not be compared.
        """
        if key not in self._judged and key not in self.found.problems:
            self._judged.add(key)
            setup, contestant = self.found.setups[key], self.made[key]
            was_open = contestant.is_open
            try:
                with self.budget.limited(BOTH):
                    with self.budget.doing("loading"):
                        contestant.open()
                    with self.budget.doing("checking"):
                        self.found.problems |= self.agreement.compared(setup, contestant)
            except TimeLimitError:
                self._judged.discard(key)
                self.found.problems[key] = no_time("before its outputs were compared")
            except DldError as error:
                self.found.problems[key] = failed(error.message)
            if not was_open:
                contestant.close()
        return key not in self.found.problems

    def _round(self, race: Race, share: float) -> Generator[Event, None, dict[str, float]]:
        holds, setups = self.subject.holds(len(race.names)), self.found.setups
        renews = race.rounds > 0 and self.subject.settings(self.subject.base).memory == "cpu"
        rounds = max(1, _ROUNDS // 2 - race.rounds)
        # Sessions that are not held would be made again for each turn.
        order = race.order() if holds else race.order(len(race.running))
        turn = self.budget.left(share) / (rounds * len(order))
        turns: list[tuple[str, RunFigures]] = []
        for name in order:
            one = self.made[name]
            cost = self._renewing_s + one.opening_s
            is_cheap = cost <= _RENEWING * self.budget.seconds["measuring"]
            is_cheap &= (
                self.budget.overhead_s + one.opening_s
                <= OVERHEAD * self.budget.seconds["measuring"]
            )
            if renews and one.is_open and is_cheap:
                self._renewing_s = cost
                one.close()
            with self.budget.limited(share):
                with self.budget.doing("loading"):
                    one.open()
                with self.budget.doing("measuring"):
                    longest_s = max(_LONGEST_S, one.opening_s / (OVERHEAD * _LEAST_ROUNDS))
                    turns.append((name, one.measure_slice(min(longest_s, max(_SHORTEST_S, turn)))))
            if not holds:
                one.close()
            yield Progress(
                race.rounds, _ROUNDS, "rounds", f"Racing: {self.found.setups[name].title}"
            )

        def ratio(name: str, base: RunFigures, new: RunFigures) -> float:
            return self.subject.ratio(setups[race.names[0]], setups[name], base, new)

        return race.figures_of(turns, ratio)
