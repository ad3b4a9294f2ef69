"""What became of each set-up of a tuning."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence

from dld_tui.core.tune.changes import Setup
from dld_tui.core.tune.race import Race
from dld_tui.core.tune.result import Candidate

TIME_UP = "the time was up"


def candidates(
    setups: Mapping[str, Setup],
    races: Sequence[Race],
    problems: Mapping[str, str],
    near: Mapping[str, str],
    best: str,
) -> tuple[Candidate, ...]:
    """Return all set-ups; ratios of later races are carried back to the model as it is.

    Args:
        setups: By key, the model as it is first.
        races: In order; the reference of each but the first ran in one before.
        problems: Why set-ups do not count, by key.
        near: How near outputs are, by key.
        best: The key of the winner.
    """
    ratios: dict[str, float] = {}
    for race in races:
        reference = race.names[0]
        to_base = ratios.setdefault(reference, 1.0)
        for name in race.names[1:]:
            ratio = race.ratio(name, reference)
            if ratio is not None:
                ratios[name] = ratio * to_base
    found = []
    for key, setup in setups.items():
        own = [race for race in races if race.figures.get(key)]
        figures = own[-1].figures[key] if own else []
        state = "in the race" if own and key in own[-1].running else "slower" if own else ""
        if key in problems:
            state = "not tried" if problems[key].startswith(TIME_UP) else "failed"
        elif key == best:
            state = "best"
        ms = statistics.median(figures) if figures else None
        rounds = sum(len(race.figures[key]) for race in own)
        problem, figure = problems.get(key, ""), near.get(key, "")
        found.append(
            Candidate(key, setup.title, ms, ratios.get(key), rounds, state, problem, figure)
        )
    return tuple(found)
