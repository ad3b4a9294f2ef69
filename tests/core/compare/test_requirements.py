"""Requirements: limits as they are written, and how often a verdict near the border is wrong."""

from __future__ import annotations

import random
import statistics

import pytest

from dld_tui.core.compare.gate import Outcome
from dld_tui.core.compare.requirements import (
    LOOKS,
    Figures,
    is_decided,
    judge,
    parse_requirement,
)


def verdict(drawn: random.Random, true_ms: float, limit_ms: float) -> Outcome:
    """Return the verdict on runs whose median is known, with as many looks as the gate takes."""
    requirement = parse_requirement(f"median <= {limit_ms} ms")
    values: list[float] = []
    for look in LOOKS:
        while len(values) < look:
            values.append(true_ms * drawn.lognormvariate(0, 0.05))
        judged = judge(requirement, Figures(tuple(values)))
        if is_decided([judged]):
            break
    return judged.outcome


@pytest.mark.parametrize("near", [0.99, 0.999, 1.001, 1.01])
def test_verdicts_near_the_border_are_rarely_wrong(near: float) -> None:
    drawn = random.Random(round(1000 * near))
    outcomes = [verdict(drawn, near * 35.0, 35.0) for _ in range(1000)]
    wrong = Outcome.FAIL if near < 1 else Outcome.PASS
    assert outcomes.count(wrong) <= 50


def test_far_from_the_border_it_is_decided_at_once() -> None:
    drawn = random.Random(1)
    assert {verdict(drawn, 30.0, 35.0) for _ in range(100)} == {Outcome.PASS}
    assert {verdict(drawn, 40.0, 35.0) for _ in range(100)} == {Outcome.FAIL}


def test_few_runs_decide_nothing_and_sizes_need_one() -> None:
    few = judge(parse_requirement("median <= 35 ms"), Figures((1.0,) * (LOOKS[0] - 1)))
    assert few.outcome is Outcome.UNDECIDED
    assert few.value == statistics.median([1.0])
    assert judge(parse_requirement("size <= 1 kB"), Figures((1001.0,))).outcome is Outcome.FAIL
    same = judge(parse_requirement("snr >= 30 dB"), Figures((float("inf"),)))
    assert (same.outcome, same.value, same.shown) == (Outcome.PASS, None, "the same outputs")
    lost = judge(parse_requirement("snr >= 30 dB"), Figures(problem="no | output"))
    assert (lost.outcome, is_decided([lost])) == (Outcome.UNDECIDED, True)
