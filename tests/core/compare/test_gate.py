"""The verdict of a gate: how often it is wrong, what it finds, and what it writes."""

from __future__ import annotations

import sys
from itertools import count
from xml.etree import ElementTree

import numpy as np
import pytest

from dld_tui.core.compare.gate import (
    GateResult,
    RunFigures,
    gate_result,
    gate_table,
    in_turns,
    judge,
    junit,
    markdown,
    time_command,
)
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.tables.rendering import csv_of


def noisy(dice: np.random.Generator, pairs: int) -> tuple[list[float], list[float]]:
    """Return runs of one model in turns, on a machine whose speed drifts and that is disturbed."""
    drift = np.exp(np.cumsum(dice.normal(0, 0.02, 2 * pairs)))
    disturbed = 1 + dice.exponential(0.03, 2 * pairs) + 0.5 * (dice.random(2 * pairs) < 0.05)
    runs = (drift * disturbed).reshape(pairs, 2)
    order = np.arange(pairs) % 2
    rows = np.arange(pairs)
    return runs[rows, order].tolist(), runs[rows, 1 - order].tolist()


def test_a_model_against_itself_alarms_in_at_most_five_percent() -> None:
    dice = np.random.default_rng(1)
    alarms = sum(judge("x", *noisy(dice, 15)).verdict == "slower" for _ in range(600))
    assert alarms <= 600 * 0.05


def test_the_interval_is_that_of_the_sign_test() -> None:
    base = [1.0] * 15
    row = judge("x", base, [1 + at / 100 for at in range(15)])
    # Of 15 pairs P(at most 3 below the median) = 576 / 32768 = 1.8 %, at most 4: 5.9 %.
    assert row.low_percent == pytest.approx(3)
    assert row.high_percent == pytest.approx(11)


def test_a_planted_slow_down_is_found() -> None:
    dice = np.random.default_rng(2)
    found = 0
    for _ in range(200):
        base, new = noisy(dice, 40)
        found += judge("x", base, [1.06 * ms for ms in new]).verdict == "slower"
    assert found >= 200 * 0.95


def test_what_is_allowed_is_no_regression() -> None:
    base = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0]
    new = [1.03 * ms for ms in base]
    assert judge("x", base, new).verdict == "slower"
    assert judge("x", base, new, 5).verdict == "no difference"
    assert judge("x", new, base).verdict == "faster"
    row = judge("x", base, new)
    assert row.change_percent == pytest.approx(3)
    assert row.low_percent == pytest.approx(row.high_percent) == pytest.approx(3)


def test_too_few_runs_say_nothing() -> None:
    for base, new in (([1.0] * 4, [1.0] * 4), ([1.0] * 6, [1.0] * 5), ([1.0] * 6, [0.0] * 6)):
        with pytest.raises(UsageError):
            judge("x", base, new)


def test_runs_take_turns_and_each_is_first_as_often() -> None:
    clock = count(1)
    told: list[tuple[int, int]] = []
    base, new = in_turns(
        lambda: RunFigures(next(clock), {}), lambda: RunFigures(next(clock), {}), 4,
        lambda done, of: told.append((done, of)),
    )  # fmt: skip
    assert [run.ms for run in base] == [1, 4, 5, 8]
    assert [run.ms for run in new] == [2, 3, 6, 7]
    assert told[-1] == (8, 8)


def result(slower: float = 1.1) -> GateResult:
    dice = np.random.default_rng(3)
    noise = dice.normal(1, 0.002, (2, 12))
    nodes = [{f"n{at}": 0.1 for at in range(20)} | {"bad|<b>\x1b": 1.0} for _ in range(12)]
    base = [RunFigures(10 * n, {k: v * n for k, v in at.items()})
            for n, at in zip(noise[0], nodes, strict=True)]  # fmt: skip
    new = [
        RunFigures(10 * slower * n, {k: v * n * (slower if k[0] == "b" else 1)
                                     for k, v in at.items()})
        for n, at in zip(noise[1], nodes, strict=True)
    ]  # fmt: skip
    return gate_result("base.onnx", "new.onnx", base, new)


def test_the_node_that_changed_is_named_and_no_other() -> None:
    found = result()
    assert found.is_regression
    assert [row.key for row in found.nodes] == ["bad|<b>\x1b"]
    assert found.nodes_compared == 21
    assert result(1.0).nodes == ()
    assert not result(1.0).is_regression


def test_markdown_and_junit_hold_no_foreign_markup() -> None:
    found = result()
    text = markdown(found)
    assert text.startswith("### dld gate: slower\n\n`base.onnx` → `new.onnx`\n\nslower: 9.99")
    (row,) = [line for line in text.splitlines() if line.startswith("| bad")]
    assert row.count("|") == 6
    assert not {"<", "\x1b"} & set(row)
    suite = ElementTree.fromstring(junit(found))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    assert suite[0].find("failure") is not None
    assert ElementTree.fromstring(junit(result(1.0))).get("failures") == "0"
    assert csv_of(gate_table(found)).count("\n") == 2


def test_a_command_is_timed_and_one_that_fails_says_why() -> None:
    assert time_command(f"{sys.executable} -c pass").ms > 0
    with pytest.raises(ActivityError, match="status 3: no luck"):
        time_command(
            f"{sys.executable} -c 'import sys; print(\"no luck\", file=sys.stderr); sys.exit(3)'"
        )
    with pytest.raises(ActivityError, match="cannot be run"):
        time_command("/nowhere/at/all")
