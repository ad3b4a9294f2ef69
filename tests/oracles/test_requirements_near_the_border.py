"""What a gate says of requirements near what is true, which simulated runs have by formula."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("onnxruntime")

from benchmarks.bench_requirements import (
    DISTANCES,
    MOST_WRONG,
    SPREADS,
    Verdict,
    judged,
    placed,
    runs_of,
    simulated,
)
from dld_tui.activities import gate
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.report.latency import latency_summary


@pytest.fixture(scope="module")
def verdicts() -> list[Verdict]:
    """Return those on 400 requirements for each spread of runs."""
    return [*simulated(Path("any.onnx"), gates=10)]


@pytest.mark.broad
def test_at_most_one_of_twenty_is_wrong(verdicts: list[Verdict]) -> None:
    kinds = defaultdict[str, list[Verdict]](list)
    for one in verdicts:
        kinds[one.kind].append(one)
        kinds[one.placed.figure].append(one)
    assert len(kinds) == len(SPREADS) + 4
    for some in kinds.values():
        assert len(some) >= 100
        assert sum(one.is_wrong for one in some) <= MOST_WRONG * len(some)
        assert {Outcome.PASS, Outcome.FAIL} <= {one.outcome for one in some}


def test_far_from_the_border_most_are_decided(verdicts: list[Verdict]) -> None:
    """Where runs differ by 0.2 %, nearly all are; where by 5 %, limits 5 % away."""
    kinds = [*dict.fromkeys(one.kind for one in verdicts)]
    steady = [one for one in verdicts if one.kind == kinds[0]]
    undecided = sum(one.outcome is Outcome.UNDECIDED for one in steady)
    assert undecided <= 0.1 * len(steady)
    rough = [one for one in verdicts if one.kind == kinds[-1]]
    for distance, most in ((DISTANCES[0], 1.0), (DISTANCES[-1], 0.5)):
        some = [one for one in rough if abs(one.placed.distance) == distance]
        open_ = sum(one.outcome is Outcome.UNDECIDED for one in some)
        assert open_ <= most * len(some)
    assert open_ < sum(one.outcome is Outcome.UNDECIDED for one in rough) / len(DISTANCES)


def test_a_limit_of_time_leaves_undecided_what_few_runs_cannot_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each run takes 40 s of a simulated clock; the gate ends after 170 s, and guesses nothing."""
    clock, runs = [0.0], list[float]()
    monkeypatch.setattr("dld_tui.activities.gate.time.monotonic", lambda: clock[0])

    def figures() -> Any:
        clock[0] += 40.0
        runs.append(1.0)
        return latency_summary([10.0], [95.0])

    some = placed({"median": 10.0})
    found = [*judged("", gate.Request(Path("any.onnx")), some, runs_of(figures))]
    assert {one.outcome for one in found} == {Outcome.UNDECIDED}
    assert len(runs) == 5  # the last one began within the limit
