"""What `benchmarks/bench_llm.py` says of two programs that take turns."""

from __future__ import annotations

import math
import random
from itertools import combinations
from statistics import median

import pytest

pytest.importorskip("onnxruntime")

from benchmarks.bench_llm import median_interval, ratio_interval, take_turns, verdict


def test_the_interval_has_the_median_of_all_in_95_of_100_runs() -> None:
    draw = random.Random(0)
    missed = 0
    for _ in range(4000):
        values = [draw.expovariate(1.0) for _ in range(25)]
        middle, low, high = median_interval(values)
        assert middle == median(values)
        assert low <= middle <= high
        missed += not low <= 0.6931471805599453 <= high  # the median of this distribution: log 2
    # By the binomial distribution 4.33 of 100; three deviations of 4,000 runs are 0.97.
    assert 0.0336 < missed / 4000 < 0.053


@pytest.mark.parametrize("count", [1, 2, 3, 5, 6, 1280])
def test_the_interval_of_any_number_of_values(count: int) -> None:
    middle, low, high = median_interval(range(count))
    assert low + high == pytest.approx(2 * middle)
    # Up to five values even the lowest and the highest one are not sure enough, and taken.
    assert (low, high) == (0, count - 1) if count <= 6 else (604, 675)


def test_a_verdict_is_given_where_the_interval_lies_on_one_side() -> None:
    assert verdict(0.98, 1.01, 0.03) == "inside"
    assert verdict(0.90, 0.96, 0.03) == "outside"
    assert verdict(1.04, 1.10, 0.03) == "outside"
    assert verdict(0.96, 1.01, 0.03) == "cannot tell"


class Writer:
    """One that takes turns, and says how it was asked."""

    def __init__(self, told: list[str], name: str) -> None:
        self.told, self.name, self.prompts = told, name, 0

    def begin(self) -> None:
        """Read a prompt."""
        self.prompts += 1

    def write(self, tokens: int) -> float:
        """Write tokens."""
        self.told.append(self.name)
        return 100 * self.prompts + tokens


def test_turns_come_in_a_drawn_order_and_the_first_prompt_does_not_count() -> None:
    told: list[str] = []
    writers = [Writer(told, name) for name in "abc"]
    seconds = take_turns(writers, 3, 10, 4)
    assert seconds == [[100 * prompt + 4 for prompt in (2, 3, 4) for _ in range(2)]] * 3
    turns = ["".join(told[at : at + 3]) for at in range(0, len(told), 3)]
    assert len(turns) == 8
    assert {"".join(sorted(turn)) for turn in turns} == {"abc"}
    assert len(set(turns)) > 2


@pytest.mark.parametrize(("mine", "others"), [(4, 4), (4, 6), (5, 5), (6, 6), (7, 4)])
def test_the_interval_over_processes_has_the_ratio_in_95_of_100_orders(
    mine: int, others: int
) -> None:
    # All orders in which processes of one and the same program may come: the ratio is 1.
    numbers = [1.1**place for place in range(mine + others)]
    missed = count = 0
    for chosen in combinations(numbers, mine):
        middle, low, high = ratio_interval(chosen, sorted(set(numbers) - set(chosen)))
        assert low <= middle <= high
        missed += not low <= 1 <= high
        count += 1
    assert 0.02 < missed / count <= 0.05


def test_the_interval_over_processes_of_a_few() -> None:
    assert ratio_interval([2.0, 2.0], [1.0, 1.0]) == (0.5, 0.0, math.inf)
    # The outermost of 16 ratios.
    assert ratio_interval([1, 2, 3, 4], [12, 24, 36, 48])[1:] == (3, 48)
