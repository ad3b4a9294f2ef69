"""The proof of a winner: pairs of runs against the original model in new processes."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

from dld_tui.activities.tune.budget import OVERHEAD, PROCESS_S, PROFILE_S, Budget
from dld_tui.activities.tune.found import Found
from dld_tui.activities.tune.original import OriginalModel
from dld_tui.core import fmt
from dld_tui.core.errors import TimeLimitError
from dld_tui.core.events import Event, Log, Progress, events_of
from dld_tui.core.files.temporary import temporary_folder
from dld_tui.core.notes import NoteKind
from dld_tui.core.params import to_json
from dld_tui.core.tune.changes import Setup
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.backends.processes import ForkServer
    from dld_tui.core.compare.gate import GateRow, Pair


_CONFIRM_S, _CONFIRM_LEAST_S = 2.0, 0.2
"""How long a run of a pair takes that confirms the winner, unless the overhead asks for more, and
at least."""
_CONFIRM_PAIRS = 12
"""Pairs that confirm it, at most: each starts a process, which takes about a second."""
_PAIR_IMPORTS = (
    "onnx",
    "onnxruntime",
    "dld_tui.activities.time_pair",
    "dld_tui.backends.onnxruntime.profiling",
    "dld_tui.core.model.inputs.feeds",
    "dld_tui.core.model.inputs.guess",
)
"""Modules whose imports take most of the time that a process for a pair takes to start."""

_SLACK_S = 5.0
"""How much more a busy machine may need for a pair before it measures less."""
_PROFILE_SHARE = 0.15
"""The share of a short budget that is left for profiles."""


class Proof:
    """Confirms winners.

    Args:
        subject: The original model.
        budget: The time.
        found: Is told where there was no time.
    """

    def __init__(self, subject: OriginalModel, budget: Budget, found: Found) -> None:
        self.subject, self.budget, self.found = subject, budget, found
        self._open = contextlib.ExitStack()

    def close(self) -> None:
        """End the process that starts others."""
        self._open.close()

    @functools.cached_property
    def _pair_server(self) -> ForkServer | None:
        """Starts the processes of pairs; None on a GPU, whose driver a fork may not inherit."""
        from dld_tui.activities.separate_process import process_server

        if not self.subject.is_on_cpu:
            return None
        return self._open.enter_context(contextlib.closing(process_server(_PAIR_IMPORTS)))

    def confirmed(self, winner: Setup) -> Generator[Event, None, GateRow | None]:
        """Compare the winner with the original model as ``dld gate`` does.

        None where there is no time for the pairs of runs that an interval needs.

        Each pair of runs has a process of its own: sessions of one process share its memory layout
        and its threads, so that the interval would leave out what differs between processes.
        """
        from dld_tui.core.compare.gate import (
            LEAST_RUNS,
            TOLERANCE_PERCENT,
            compared_times,
            judge,
        )

        pairs: list[Pair] = []
        overhead_s = self.budget.pair_s()
        """What a pair takes beside its runs."""
        profile_s = min(PROFILE_S, _PROFILE_SHARE * self.subject.request.budget)

        def judged() -> GateRow:
            times = compared_times(pairs)
            return judge("end to end", times.base_ms, times.new_ms, TOLERANCE_PERCENT, times.ratios)

        def is_undecided() -> bool:
            """Return whether more pairs would help; profiles are of what is faster only."""
            rest_s = profile_s if judged().is_faster else self.budget.pair_took_s
            return len(pairs) < _CONFIRM_PAIRS and self.budget.left() > rest_s

        def progress(_: Event | None = None) -> Progress:
            return Progress(len(pairs), _CONFIRM_PAIRS, "pairs", "Confirming the fastest")

        with temporary_folder("tune") as folder:
            while len(pairs) < LEAST_RUNS or is_undecided():
                least_pairs = max(1, LEAST_RUNS - len(pairs))
                if least_pairs * (self.budget.pair_s() - PROCESS_S) > self.budget.left():
                    break
                # A short budget has shorter runs, rather than fewer processes.
                most_s = ((self.budget.left() - profile_s) / least_pairs - overhead_s) / 2
                wanted_s = self._run_s(_CONFIRM_PAIRS - len(pairs), overhead_s)
                duration_s = max(_CONFIRM_LEAST_S, min(wanted_s, most_s))
                yield progress()
                begin = time.monotonic()
                new_first = len(pairs) % 2 == 1
                try:
                    running = self._timed_pair(winner, folder, duration_s, new_first=new_first)
                    pair = yield from events_of(running, progress)
                except TimeLimitError:
                    break
                pairs.append(pair)
                pair_s = self.budget.pair_took_s = time.monotonic() - begin
                overhead_s = max(0.0, pair_s - 2 * duration_s)
                self.budget.seconds["measuring"] += pair_s - overhead_s
                self.budget.seconds["loading"] += overhead_s
        if len(pairs) < LEAST_RUNS:
            self.found.is_whole = False
            took = fmt.duration(LEAST_RUNS * self.budget.pair_s())
            yield Log(f"{winner.title}: not confirmed, which takes about {took}", NoteKind.WARNING)
            return None
        return judged()

    def _run_s(self, pairs: int, overhead_s: float) -> float:
        """Return how long a run lasts for the overhead to be a small share after so many pairs.

        Args:
            pairs: How many are to come.
            overhead_s: What each takes beside its two runs.
        """
        overhead_s = self.budget.overhead_s + pairs * overhead_s
        needed_s = overhead_s / OVERHEAD - self.budget.seconds["measuring"]
        return max(_CONFIRM_S, needed_s / (2 * pairs))

    def _timed_pair(
        self, winner: Setup, folder: Path, duration_s: float, *, new_first: bool
    ) -> Generator[Event, None, Pair]:
        """Time the original model and the winner in turns in a new process; times are of an item.

        Args:
            winner: The setup that is compared with the original model.
            folder: For the result of the process.
            duration_s: How long to time each of both.
            new_first: Whether the winner has the first turn.
        """
        from dld_tui.activities.separate_process import run_in_process
        from dld_tui.core.compare.gate import per_item
        from dld_tui.core.machine.environment import waited_percent

        timing: dict[str, JSON] = {"duration": duration_s, "layer_passes": 0, "warm_up": 3}
        share_s = self.budget.pair_s() + 2 * duration_s + _SLACK_S
        base, new = (
            to_json(self.subject.profile_request(setup, **timing))
            for setup in (self.subject.base, winner)
        )
        request: dict[str, JSON] = {
            **base, "new": new["model"], "new_first": new_first, "share": share_s,
            "waited": waited_percent(),  # the process, a fork, has hardly run when it asks
            "new_settings": {
                name: value for name, value in new.items()
                if name != "model" and value != base[name]
            },
        }  # fmt: skip
        left_s = max(0.0, self.budget.left())
        process = run_in_process("time_pair", request, folder, left_s, self._pair_server)
        with contextlib.closing(process):
            pair: Pair = yield from process
        return per_item(pair, self.subject.base.batch, winner.batch)
