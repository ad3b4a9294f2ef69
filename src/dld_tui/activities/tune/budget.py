"""The time of a tuning: what is left of it for what, and what it was spent on."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator

PROOF, MOST_PROOF = 0.3, 0.75
"""What is kept of the time for the confirmation and the profiles of the winner: this share of it. A
model whose pairs of runs take longer gets more; nothing is kept where they take more than the last
share: there is time for the races alone."""
_LEAST_PROOF_S = 9.0
"""About what the least number of the shortest pairs takes."""
_LEAST_PASSES = 3
"""Passes of each version in a pair of runs, at least: two before the clock runs."""
PROCESS_S = 1.0
"""What a process takes to start."""
_SPENT = 0.1
"""Share of the budget that may be left where candidates are."""
CONVERTING, _CONVERTED, _CONVERTED_LATER = 0.45, 0.55, 0.8
"""Shares of the other time after which no conversion is started any more, and none goes on: a slow
one has to let the others race first."""
MODELS, SETTINGS, BOTH = 0.7, 0.9, 1.0
"""Shares of it at which the races end at the latest."""
OVERHEAD = 0.08
"""Share of the time measured that loading and checking may take. A model that loads slowly gets
longer turns and longer runs of pairs for it, as far as the budget allows, and no new sessions."""
QUICK_S = 1.0
"""Loading and a pass of a model that is quick."""
PROFILE_S = 20.0
"""After how long the original model and the winner are profiled no more."""


class Budget:
    """The seconds of one run, and what has been measured of the original model for planning.

    Args:
        total_s: The budget.
    """

    def __init__(self, total_s: float) -> None:
        self.total_s, self.begin = total_s, time.monotonic()
        self.seconds = dict.fromkeys(
            ("measuring", "waiting", "converting", "loading", "checking"), 0.0
        )
        """What was spent, by what for."""
        self.since_s = 0.0
        """When the present races began."""
        self.is_on_cpu = True
        """Whether processes for pairs are forks, which have loaded all modules."""
        self.first_s = 0.0
        """The seconds that it took to create the session of the original model."""
        self.pass_s = 0.0
        """What a pass of the original model takes, by the longest of the first ones."""
        self.pair_took_s = 0.0
        """What the last pair of runs took."""

    @property
    def rest_s(self) -> float:
        """The seconds that may be left where candidates are."""
        return _SPENT * self.total_s

    @property
    def converted_share(self) -> float:
        """The share of the time after which no conversion goes on."""
        return _CONVERTED_LATER if self.since_s else _CONVERTED

    @property
    def passed_s(self) -> float:
        """The seconds since the begin."""
        return time.monotonic() - self.begin

    def left(self, share: float | None = None) -> float:
        """Return how many seconds are left to a share of the time before the winner is known.

        Without a share, to all of the time.
        """
        budget = self.total_s
        if share is None:
            return budget - self.passed_s
        span = budget - self.since_s
        kept_s = PROOF * (budget if 2 * span > budget else span)
        proof_s = max(kept_s, min(_LEAST_PROOF_S, span / 2), self.proof_s())
        if proof_s > MOST_PROOF * span:
            proof_s = 0.0
        return self.since_s + share * (span - proof_s) - self.passed_s

    @property
    def overhead_s(self) -> float:
        """The seconds of loading and checking."""
        return self.seconds["loading"] + self.seconds["checking"]

    def proof_s(self) -> float:
        """Return how long the confirmation takes at least, as far as that is known."""
        from dld_tui.core.compare.gate import LEAST_RUNS

        is_quick = self.is_on_cpu and self.first_s + self.pass_s <= QUICK_S
        return 0.0 if is_quick else LEAST_RUNS * self.pair_s()

    def pair_s(self) -> float:
        """Return how long a pair of runs takes at least: a process that loads two sessions."""
        return PROCESS_S + 2 * (self.first_s + _LEAST_PASSES * self.pass_s)

    def limited(
        self, share: float | None = None, over_s: float = 0.0
    ) -> contextlib.AbstractContextManager[None]:
        """Return the context in which ONNX Runtime stops at a share of the time."""
        from dld_tui.backends.onnxruntime.limits import time_limit

        return time_limit(time.monotonic() + self.left(share) + over_s)

    @contextlib.contextmanager
    def doing(self, what: str) -> Generator[None]:
        """Add the seconds, but for those that turns wait for threads of others to sleep."""
        from dld_tui.core.report.latency import settled_s

        begin, settled = time.monotonic(), settled_s()
        try:
            yield
        finally:
            waited = settled_s() - settled
            self.seconds["waiting"] += waited
            self.seconds[what] += time.monotonic() - begin - waited
