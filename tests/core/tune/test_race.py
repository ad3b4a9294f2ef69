"""Races between set-ups, on a machine that drifts and is disturbed."""

from __future__ import annotations

import math

import numpy as np

from dld_tui.core.compare.gate import RunFigures
from dld_tui.core.tune.race import Race
from tests.support.recorded import Recorded


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


def test_whole_races(recorded: Recorded) -> None:
    """Orders of rounds, who is slower for sure, who is out, and when a race is over."""
    race, lines = Race(["base", *"abcdefg"], most_rounds=20), []
    for number in range(9):
        lines.append(f"{race.order()} {race.order(2)}")
        if number == 3:
            race.drop("a")
        race.add_round(dict.fromkeys(race.names, 1.0))
    texts = {"orders": "\n".join(lines)}
    lines = []
    for ratio in (0.5, 0.99, 1.0, 1.001, 1.02, 1.1, 1.2, 1.25, 1.3, 1.5, 2.0, 3.0):
        answers = []
        for count in (1, 2, 3, 4, 5, 8, 20, 21, 40):
            one = Race(["base", "other"], most_rounds=99)
            for number in range(count):
                noise = (1.0, 1.03, 0.97, 1.01)[number % 4]
                one.add_round({"base": 1.0, "other": ratio * noise})
            slower = one.is_slower("other", "base"), one.is_slower("base", "other")
            answers.append(f"{count}: {'+-'[slower[1]] if any(slower) else '.'} {one.is_over:d}")
        lines.append(f"{ratio}  {'  '.join(answers)}")
    texts["two"] = "\n".join(lines)
    lines = []
    times = {"base": 2.0, "a": 1.0, "b": 1.02, "c": 1.5, "d": 3.0, "e": 0.9}
    race = Race([*times], most_rounds=9)
    while not race.is_over:
        figures = {
            name: ms * (1 + 0.01 * (len(name) + 3 * at + race.rounds) % 0.05)
            for at, (name, ms) in enumerate(times.items())
        }
        out = race.add_round(figures, lambda name: name != "e")
        ratios = [f"{race.ratio(name, 'base'):.4f}" for name in race.names]
        lines.append(f"out {out}, in {race.running}, best {race.best} {' '.join(ratios)}")
    texts["six"] = "\n".join(lines)
    empty = Race(["base", "a"])
    alone = Race(["base"])
    texts["none"] = f"{empty.ratio('a', 'base')} {empty.best} {empty.is_over} {alone.is_over}"
    recorded("whole_races", texts)
