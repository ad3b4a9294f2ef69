"""A race between set-ups whose runs take turns, and of which slow ones are stopped early.

Each round has one figure of each that is still in. What changes slowly on a busy machine hits all
of a round alike, so that only ratios within rounds are judged (Birattari and others, "A racing
algorithm for configuring metaheuristics", GECCO 2002, with Student's t in the place of Friedman's
test).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence

from dld_tui.core.compare.gate import RunFigures

LEAST_ROUNDS = 4
_BESIDE = 3
"""After so many turns of others the reference runs again."""
_QUICK_ROUNDS, _QUICK_FACTOR = 2, 1.5
"""After so many rounds, what is always slower by this factor is out."""
_T99 = {3: 4.54, 4: 3.75, 5: 3.36, 6: 3.14, 7: 3.0, 8: 2.9, 9: 2.82, 10: 2.76, 12: 2.68, 15: 2.6}
"""One-sided 1 % points of Student's t by degrees of freedom: many looks are taken."""
_T_LIMIT = 2.5


class Race:
    """One race.

    Args:
        names: Who starts, the reference first: it stays in to the end.
        most_rounds: When the race is over at the latest.
    """

    def __init__(self, names: Sequence[str], most_rounds: int = 20) -> None:
        self.names = tuple(names)
        self.running = list(names)
        """Those that are still in."""
        self.figures: dict[str, list[float]] = {name: [] for name in names}
        """Milliseconds by round."""
        self._most = most_rounds

    @property
    def rounds(self) -> int:
        """How many rounds were run."""
        return len(self.figures[self.names[0]])

    def order(self, beside: int = _BESIDE) -> list[str]:
        """Return who runs when in the next round: each is early now and then.

        The reference runs before the others, and again after so many of them: the speed of a busy
        machine changes within a round, and what delays its only turn would make all seem faster.
        """
        reference, *others = self.running
        at = self.rounds // 2 % len(others)
        others = others[at:] + others[:at]
        groups = [others[start : start + beside] for start in range(0, len(others), beside)]
        turned = [name for group in groups for name in (reference, *group)]
        return turned if self.rounds % 2 == 0 else turned[::-1]

    def figures_of(
        self,
        turns: Sequence[tuple[str, RunFigures]],
        ratio: Callable[[str, RunFigures, RunFigures], float],
    ) -> dict[str, float]:
        """Return the milliseconds of each in a round.

        Those of the reference are the median of its turns; those of another one are as many times
        as long as it took in comparison with the turns of the reference before and after it.

        Args:
            turns: Who ran, as in :meth:`order`, and what was measured.
            ratio: Says how many times as long as the reference one took, given its name, a run of
                the reference and its own.
        """
        reference = self.names[0]
        places = [at for at, (name, _) in enumerate(turns) if name == reference]
        figures = {reference: statistics.median(turns[at][1].ms for at in places)}
        for at, (name, run) in enumerate(turns):
            if name != reference:
                adjacent = [*[one for one in places if one < at][-1:],
                        *[one for one in places if one > at][:1]]  # fmt: skip
                logs = [math.log(ratio(name, turns[one][1], run)) for one in adjacent]
                figures[name] = figures[reference] * math.exp(statistics.fmean(logs))
        return figures

    @property
    def is_over(self) -> bool:
        """Whether there is nothing left to find out."""
        alone = len(self.running) < 2 or (len(self.running) == 2 and self._is_clear())
        return alone or self.rounds >= self._most

    def _is_clear(self) -> bool:
        """Return whether the reference and the only other one that is left differ for sure."""
        one, other = self.running
        return self.is_slower(one, other) or self.is_slower(other, one)

    def add_round(
        self,
        milliseconds: Mapping[str, float],
        may_win: Callable[[str], bool] = lambda name: True,
    ) -> list[str]:
        """Add a figure of each that is in, and return who is out by that.

        Args:
            milliseconds: By name.
            may_win: Asked about the fastest one; if it may not win, it is out, and nobody is out
                for being slower than it.
        """
        for name in self.running:
            self.figures[name].append(milliseconds[name])
        while (best := self.best) != self.names[0] and not may_win(best):
            self.running.remove(best)
        out = [
            name
            for name in self.running
            if name not in (best, self.names[0]) and self.is_slower(name, best)
        ]
        self.running = [name for name in self.running if name not in out]
        return out

    def drop(self, name: str) -> None:
        """Take one out that cannot go on."""
        self.running.remove(name)

    def _ratios(self, name: str, other: str) -> list[float]:
        """Return the logarithms of ratios in the rounds that both ran."""
        pairs = zip(self.figures[name], self.figures[other], strict=False)
        return [math.log(one / two) for one, two in pairs]

    def ratio(self, name: str, other: str) -> float | None:
        """Return how many times as long as another one it takes, the median of the rounds."""
        ratios = self._ratios(name, other)
        return math.exp(statistics.median(ratios)) if ratios else None

    def is_slower(self, name: str, other: str) -> bool:
        """Return whether one is slower than another for sure."""
        ratios = self._ratios(name, other)
        count = len(ratios)
        if count >= _QUICK_ROUNDS and min(ratios) > math.log(_QUICK_FACTOR):
            return True
        if count < LEAST_ROUNDS:
            return False
        limit = _T99[max((df for df in _T99 if df < count), default=3)]
        error = statistics.stdev(ratios) / math.sqrt(count)
        return statistics.fmean(ratios) > (_T_LIMIT if count > 20 else limit) * error

    @property
    def best(self) -> str:
        """The fastest of those that are in."""
        reference = self.names[0]
        return min(self.running, key=lambda name: self.ratio(name, reference) or math.inf)
