"""Requirements: limits as they are written, and how often a verdict near the border is wrong."""

from __future__ import annotations

import random
import statistics
from xml.etree import ElementTree

import pytest

from dld_tui.core.compare.gate import Outcome
from dld_tui.core.compare.requirement_files import VERDICT_STYLES
from dld_tui.core.compare.requirements import (
    LOOKS,
    Figures,
    RequirementsResult,
    is_decided,
    judge,
    parse_requirement,
    requirements_bars,
    requirements_junit,
    requirements_markdown,
)
from dld_tui.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "figure", "limit"),
    [
        ("p95 <= 35 ms", "p95", 35.0),
        ("p99.9<1s", "p99.9", 1000.0),
        ("Latency < 500us", "median", 0.5),
        ("fps >= 30", "fps", 30.0),
        ("throughput >= 1e2 items/s", "fps", 100.0),
        ("size <= 20 MB", "size", 20e6),
        ("peak  memory <= 1.5 GiB", "peak memory", 1.5 * 2**30),
        ("snr >= 30 dB", "snr", 30.0),
        ("cosine > 0.999", "cosine", 0.999),
        ("nodes <= 900", "nodes", 900.0),
        ("Parameters <= 1.5 M", "parameters", 1.5e6),
    ],
)
def test_limits_are_read_with_their_units(text: str, figure: str, limit: float) -> None:
    found = parse_requirement(text)
    assert found.figure == figure
    assert found.limit == pytest.approx(limit)


@pytest.mark.parametrize(
    "text",
    ["", "p95", "p95 = 3 ms", "p95 <= ms", "p95 <= 3", "p95 <= 3 MB", "size <= 3 ms",
     "p100 <= 1 ms", "speed <= 3 ms", "percentile <= 3 ms", "snr >= 1e dB", "p95 <= 3 ms ms"],
)  # fmt: skip
def test_what_is_no_requirement_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_requirement(text)


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


def test_files_for_pipelines_hold_each_verdict_and_no_markup() -> None:
    texts = {"size <= 1 kB": (5.0,), "size <= 2 B": (5.0,), "snr >= 1 dB": ()}
    judged = [judge(parse_requirement(text), Figures(some)) for text, some in texts.items()]
    result = RequirementsResult("<b>[x](y)|.onnx", tuple(judged))
    assert (result.outcome, [one.outcome.value for one in judged]) == (
        Outcome.FAIL, ["PASS", "FAIL", "UNDECIDED"]
    )  # fmt: skip
    assert [
        [column.style(one) for one in judged if callable(column.style)]
        for column in requirements_bars(result).columns[:4:2]
    ] == [[VERDICT_STYLES[one.outcome.value] for one in judged]] * 2
    suite = ElementTree.fromstring(requirements_junit(result))
    assert [suite.get(name) for name in ("tests", "failures", "errors")] == ["3", "1", "1"]
    assert [next(child.tag for child in case) for case in suite] == [
        "system-out",
        "failure",
        "error",
    ]
    text = requirements_markdown(result)
    assert "<b>" not in text.replace("\\<b\\>", "")
    assert text.count("\n| ") == 4
