"""Races between set-ups, on a machine that drifts and is disturbed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dld_tui.core.compare.gate import RunFigures
from dld_tui.core.tune.race import LEAST_ROUNDS, Race


def raced(true_ms: dict[str, float], seed: int, most: int = 12) -> tuple[Race, int]:
    """Return the race and how many turns it took; the machine drifts and noise is of one side."""
    random = np.random.default_rng(seed)
    race, turns, drift = Race(list(true_ms), most), 0, 1.0
    while not race.is_over:
        drift *= float(np.exp(random.normal(0, 0.2)))
        figures = {}
        for name in race.order(len(true_ms)):
            busy = 1 + random.exponential(0.03)
            figures[name] = true_ms[name] * drift * busy
            turns += 1
        race.add_round(figures)
    return race, turns


def test_the_fastest_wins_though_the_machine_drifts_more_than_they_differ() -> None:
    true_ms = {"as it is": 10.0, "a": 8.0, "b": 9.0, "c": 15.0, "d": 30.0}
    wins = sum(raced(true_ms, seed)[0].best == "a" for seed in range(40))
    assert wins >= 38


def test_losers_are_stopped_early() -> None:
    true_ms = {"as it is": 10.0, "a": 5.0} | {f"slow {n}": 10.0 + n for n in range(8)}
    turns = [raced(true_ms, seed)[1] for seed in range(10)]
    assert max(turns) <= 0.5 * 12 * len(true_ms)


def test_what_is_alike_is_not_called_slower() -> None:
    wrong = 0
    for seed in range(100):
        race, _ = raced({"as it is": 10.0, "same": 10.0}, seed)
        wrong += race.is_slower("as it is", "same") or race.is_slower("same", "as it is")
    assert wrong <= 0.1 * 100  # 1 % at each side and look, up to nine looks; what wins is confirmed


def test_ratios_are_of_rounds_and_the_reference_stays_in() -> None:
    race = Race(["base", "other"])
    for drift in (1.0, 7.0, 3.0, 2.0):
        race.add_round({"base": 2 * drift, "other": 1 * drift})
    assert race.ratio("other", "base") == pytest.approx(0.5)
    assert race.running == ["base", "other"]
    assert race.rounds == LEAST_ROUNDS
    assert race.is_over  # nobody else is left and the two differ for sure


def test_each_is_first_now_and_then() -> None:
    race = Race(["a", "b", "c"], most_rounds=9)
    firsts = []
    while not race.is_over:
        order = race.order()
        firsts.append(order[0])
        assert sorted(order) == ["a", "b", "c"]
        race.add_round({"a": 1.0, "b": 1.0, "c": 1.0})
    assert set(firsts) == {"a", "b", "c"}


def test_what_delays_the_reference_does_not_make_all_others_seem_faster() -> None:
    """The speed of the machine changes from turn to turn; all are alike."""

    def common_error(seed: int, beside: int) -> float:
        """Return by how much the others seem to differ from the reference, in the mean."""
        random, speed = np.random.default_rng(seed), 1.0
        race = Race(["base", *(f"same {at}" for at in range(10))])
        turns = []
        for name in race.order(beside):
            speed *= float(np.exp(random.normal(0, 0.1)))
            turns.append((name, RunFigures(10.0 * speed * (1 + random.exponential(0.1)))))
        figures = race.figures_of(turns, lambda name, base, new: new.ms / base.ms)
        logs = [math.log(figures[name] / figures["base"]) for name in race.names[1:]]
        return abs(float(np.mean(logs)))

    alone, beside = (np.mean([common_error(seed, many) for seed in range(100)]) for many in (10, 3))
    assert beside < alone / 2


def test_the_reference_runs_again_beside_those_that_it_is_compared_with() -> None:
    race = Race(["base", *"abcdefg"])
    for _ in range(9):
        order = race.order()
        assert sorted(set(order)) == sorted(race.names)
        at_base = [at for at, name in enumerate(order) if name == "base"]
        assert all(min(abs(at - base) for base in at_base) <= 3 for at in range(len(order)))
        race.add_round(dict.fromkeys(race.names, 1.0))
    turns = [("base", 2.0), ("a", 3.0), ("base", 4.0), ("b", 3.0)]
    figures = Race(["base", "a", "b"]).figures_of(
        [(name, RunFigures(ms)) for name, ms in turns], lambda name, base, new: new.ms / base.ms
    )
    assert figures == pytest.approx({"base": 3.0, "a": 3.0 * math.sqrt(1.5 * 0.75), "b": 2.25})
