"""The verdict of a gate: how often it is wrong, what it finds, and what it writes."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt

from dld_tui.core.compare import gate
from dld_tui.core.compare.gate import (
    GateResult,
    GateRow,
    Pair,
    PairTime,
    RunFigures,
    TimePair,
    Verdict,
    command_pairs,
    gate_result,
    in_turns,
    judge,
    junit,
    markdown,
    pair_of_turns,
    per_item,
    time_command,
)
from dld_tui.core.errors import ActivityError, TimeLimitError, UsageError
from dld_tui.core.events import events_of, result_of
from dld_tui.core.report.latency import Turn
from dld_tui.core.statistics import median_ranks
from dld_tui.core.text import clip, visible


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
    ratios = [1 + at**2 / 100 for at in range(15)]
    # Of 15 pairs P(at most 3 below the median) = 576 / 32768 = 1.8 %, at most 4: 5.9 %.
    row = judge("x", base, ratios)
    assert row.low_percent == pytest.approx(100 * (ratios[3] - 1))
    assert row.high_percent == pytest.approx(100 * (ratios[11] - 1))
    assert row.change_percent == pytest.approx(100 * (ratios[7] - 1))


@pytest.mark.parametrize("count", [6, 9, 20, 57, 400])
def test_as_many_ratios_are_outside_as_the_binomial_distribution_says(count: int) -> None:
    beyond, above = median_ranks(count)
    assert above == count - 1 - beyond
    tails = [
        sum(Fraction(math.comb(count, below), 2**count) for below in range(most + 1))
        for most in (beyond, beyond + 1)
    ]
    assert tails[0] <= Fraction(25, 1000) < tails[1]


def test_too_few_runs_say_nothing() -> None:
    for base, new in (([1.0] * 4, [1.0] * 4), ([1.0] * 6, [1.0] * 5), ([1.0] * 6, [0.0] * 6)):
        with pytest.raises(UsageError):
            judge("x", base, new)


def pair_of(ratio: float, nodes: dict[str, float] | None = None) -> Pair:
    return Pair(RunFigures(1.0, nodes or {}), RunFigures(ratio, nodes or {}), ratio)


def test_commands_take_turns_and_each_is_first_as_often(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []

    def time_command(line: str, limit_s: float) -> RunFigures:
        order.append(line)
        return RunFigures(len(line), {})

    monkeypatch.setattr(gate, "time_command", time_command)
    told: list[tuple[int, int]] = []
    pairs = result_of(events_of(in_turns(command_pairs("base", "newer"), 6), told.append)).pairs
    assert order == ["base", "newer", "newer", "base"] * 3
    assert [(pair.base.ms, pair.new.ms, pair.ratio) for pair in pairs] == [(4, 5, 1.25)] * 6
    assert told[-1] == (6, 6)


@pytest.mark.parametrize(
    "wrong", [{"runs": 5}, {"limit_s": math.nan}, {"limit_s": math.inf}, {"within_percent": 0.0}]
)
def test_a_gate_without_an_end_or_a_verdict_does_not_begin(wrong: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        result_of(in_turns(lambda number, *_: pytest.fail("it began"), **wrong))


def drawn(dice: np.random.Generator, noise: float, middle: float = 1.0) -> TimePair:
    return lambda number, *_: pair_of(float(middle * np.exp(dice.normal(0, noise))))


def test_pairs_are_made_until_the_interval_is_narrow() -> None:
    dice = np.random.default_rng(4)
    for noise, least, most in ((0.001, 10, 10), (0.02, 11, 40), (0.05, 60, 400)):
        pairs = result_of(in_turns(drawn(dice, noise), within_percent=1.0)).pairs
        assert least <= len(pairs) <= most
        row = judge("x", [one.base.ms for one in pairs], [one.new.ms for one in pairs])
        assert row.high_percent - row.low_percent < 2.05
        assert gate_result("a", "b", pairs, within_percent=1.0).within_percent is None


def test_pairs_end_when_the_change_is_clear_or_the_time_is_up() -> None:
    dice = np.random.default_rng(5)

    assert len(result_of(in_turns(drawn(dice, 0.3, 3.0))).pairs) < 20
    clock = count(0, 2)
    late = result_of(in_turns(drawn(dice, 0.3), limit_s=60, clock=lambda: next(clock))).pairs
    assert len(late) == 30
    found = gate_result("a", "b", late, within_percent=1.0)
    assert found.within_percent == 1.0
    assert found.line.endswith("; ±1 % was not reached in this time")


def busy_pair(waited: tuple[float, float], ratio: float, processor: float) -> Pair:
    """Return a pair whose versions had no processor for these shares of the time."""
    base, new = RunFigures(10.0, {}, 10 * (1 - waited[0])), RunFigures(10 * ratio)
    new = RunFigures(new.ms, {}, new.ms * (1 - waited[1]))
    return Pair(base, new, ratio, processor)


def test_on_a_busy_machine_processor_times_are_compared() -> None:
    pairs = [busy_pair((0.6, 0.5), 0.9 + at / 50, 1.03 + at / 1e4) for at in range(12)]
    found = gate_result("a", "b", pairs)
    assert found.verdict == "slower"
    assert found.waited_percent == pytest.approx(50)
    assert found.ratios == tuple(pair.processor_ratio for pair in pairs)
    assert found.base_runs_ms == pytest.approx([4.0] * 12)
    assert found.new_runs_ms == pytest.approx([pair.new.ms / 2 for pair in pairs])
    assert found.end_to_end is not None
    assert found.end_to_end.change_percent == pytest.approx(3.055)
    assert "4.122 ms of processor time, +3.1 %" in found.line
    assert found.line.endswith("; other programs had the processor 50 % of the time")


def test_a_pair_is_the_medians_of_its_turns_of_an_item() -> None:
    turns = [Turn([4.0, 6.0], [9.0], 2.0, 3.0), Turn([8.0], [6.0, 8.0, 30.0], 4.0, 8.0),
             Turn([6.0], [6.0], 1.0, 5.0)]  # fmt: skip
    pair = per_item(pair_of_turns(turns, by_processor=True), 1, 2)
    assert pair == Pair(RunFigures(6.0, {}, 2.0), RunFigures(4.0, {}, 2.5), 0.5, 1.0)
    assert pair_of_turns(turns, by_processor=False).processor_ratio is None
    coarse = [*turns, Turn([1.0], [1.0], 0.0, 1.0)]
    assert pair_of_turns(coarse, by_processor=True).processor_ratio is None


def timed(seconds: Sequence[float], told: list[PairTime]) -> dict[str, Any]:
    """Return pairs that take so long, unless they are stopped before, and the clock beside them."""
    now = 0.0

    def time_pair(number: int, allowed: PairTime) -> Pair:
        nonlocal now
        told.append(allowed)
        now += min(seconds[number], allowed.left_s)
        if seconds[number] > allowed.left_s:
            raise TimeLimitError("stopped at “base: Loading the model”")
        return pair_of(1.25)

    return {"time_pair": time_pair, "clock": lambda: now}


@pytest.mark.parametrize("runs", [None, 8])
@pytest.mark.parametrize("limit_s", [0.0, 25.0, 170.0])
@pytest.mark.parametrize("seconds", [0.5, 7.0, 24.0, 400.0])
def test_the_time_limit_holds_whatever_a_pair_takes(
    runs: int | None, limit_s: float, seconds: float
) -> None:
    told: list[PairTime] = []
    series = timed([seconds] * 1000, told)
    found = result_of(in_turns(series["time_pair"], runs, limit_s=limit_s, clock=series["clock"]))
    assert series["clock"]() <= limit_s
    assert all(at.share_s <= at.left_s <= limit_s for at in told)
    result = gate_result("a", "b", found.pairs, 0.0, 1.0, found.stopped)
    fits = seconds * (runs or 6) <= limit_s
    assert (not found.stopped) == fits
    if len(found.pairs) >= 6:
        assert (result.verdict, result.is_undecided) == ("slower", False)
    else:
        assert (result.verdict, result.end_to_end, result.is_undecided) == ("undecided", None, True)
        least = "8" if runs else "at least 6"
        text = f"undecided: {len(found.pairs)} of {least} pairs of runs within the time limit of "
        assert result.line.startswith(text)
        assert (
            "; so far, without an interval: 1.000 ms → 1.250 ms, +25.0 %" in result.line
        ) == bool(found.pairs)
    assert found.stopped in result.line
    if seconds > limit_s:
        assert "stopped at “base: Loading the model”" in result.line


def test_a_given_number_of_runs_has_no_time_limit_by_default() -> None:
    series = timed([100.0] * 6, [])
    assert len(result_of(in_turns(series["time_pair"], 6, clock=series["clock"])).pairs) == 6


def test_six_pairs_share_a_short_limit() -> None:
    """A pair that exceeds its share, by the start of a process, leaves less to measure."""
    told: list[PairTime] = []
    series = timed([2.5, *[1.5] * 9], told)
    counts = [*in_turns(series["time_pair"], limit_s=12, clock=series["clock"])]
    assert counts == [(done, 10) for done in range(1, 8)]
    assert [round(at.share_s, 2) for at in told[:3]] == [2.0, 1.4, 1.9]


@pytest.mark.broad
def test_a_command_that_takes_too_long_is_stopped_with_what_it_started(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    line = f"sh -c 'sleep 60 & echo $! > {mark}; wait'"
    begin = time.monotonic()
    with pytest.raises(TimeLimitError):
        time_command(line, 1.0)
    assert time.monotonic() - begin < 20
    stat = Path(f"/proc/{mark.read_text().strip()}/stat")
    while time.monotonic() - begin < 20 and _is_running(stat):
        time.sleep(0.01)  # a signal takes a while to arrive
    assert not _is_running(stat)


def _is_running(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:  # it is gone
        return False


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.004, 0.02, 0.05])
def test_to_stop_when_it_is_clear_alarms_no_more_and_finds_three_percent(noise: float) -> None:
    """Noise by pair as it was measured: idle, busy with others, and 5 % with heavy tails."""
    dice = np.random.default_rng(6)

    def ratios(middle: float) -> TimePair:
        return lambda number, *_: pair_of(
            float(middle * np.exp(noise * dice.standard_t(4) / np.sqrt(2)))
        )

    verdicts = {
        middle: [
            gate_result(
                "a", "b", result_of(in_turns(ratios(middle), clock=clock_of(6))).pairs
            ).verdict
            for _ in range(400)
        ]
        for middle in (1.0, 1.03)
    }
    assert verdicts[1.0].count(Verdict.SLOWER) <= 400 * 0.05
    assert verdicts[1.03].count(Verdict.SLOWER) >= 400 * (0.95 if noise < 0.04 else 0.7)


def clock_of(seconds: float) -> Callable[[], float]:
    """Return a clock on which a pair takes so long."""
    times = count(0, seconds)
    return lambda: next(times)


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
    pairs = [Pair(one, other, other.ms / one.ms) for one, other in zip(base, new, strict=True)]
    return gate_result("base.onnx", "new.onnx", [*pairs, pair_of(slower), pair_of(slower)])


HOSTILE = [
    "bad|<b>\x1b", "a|b|", "`c`d``e", "`", "line\nbreak", "<script>alert(1)</script>",
    "![x](http://evil/x.png)", "[x](javascript:x)", "@user #12", "*bold*__init__", "\\|x\\", "\\",
    "$x$", "nul\x00\x0b\ufffe\uffff\ud800", "- [ ] t", "&lt;&amp;", "http://evil.example/",
    "e\u202ex", " pad ", " ", "~~s~~", "|---|---|", "L" * 100_000,
]  # fmt: skip


def with_names(names: Sequence[str]) -> GateResult:
    rows = tuple(GateRow(name, 1.0, 2.0, 100.0, 90.0, 110.0, Verdict.SLOWER) for name in names)
    return replace(result(), nodes=rows)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_name_is_text_in_markdown_and_junit(name: str) -> None:
    found = replace(with_names([name]), base=name, new=name)
    text = markdown(found)
    tokens = MarkdownIt("commonmark", {"html": True, "linkify": False}).enable("table").parse(text)
    cells = [token for token in tokens if token.type == "inline"]
    kinds = {child.type for cell in cells for child in cell.children or ()}
    assert kinds <= {"text", "code_inline"}
    assert [token.type for token in tokens].count("td_open") == 5
    code = [child.content for cell in cells for child in cell.children or ()
            if child.type == "code_inline"]  # fmt: skip
    shown = clip(visible(name), 200, keep="end")
    assert code == [shown] * 3
    assert len(text) < 2_000
    suite = ElementTree.fromstring(junit(found).encode())
    assert [suite.get(key) for key in ("tests", "failures", "errors", "skipped")] == [*"2100"]
    assert [case.get("name") for case in suite] == [f"{visible(name)} → {visible(name)}",
                                                     visible(name)]  # fmt: skip


def test_an_undecided_gate_is_no_pass_anywhere_and_its_reason_is_text() -> None:
    reason = "<b>*x* [l](u) `c`</b>"
    found = gate_result("a", "b", [pair_of(1.0)] * 2, 0.5, 0.5, reason)
    suite = ElementTree.fromstring(junit(found))
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    assert suite[0].find("error") is not None
    text = markdown(gate_result("a", "b", [], stopped=reason))
    assert "### dld gate: undecided" in text
    (line,) = [line for line in text.splitlines() if line.startswith("undecided:")]
    (inline,) = MarkdownIt("commonmark", {"html": True}).parseInline(line)
    assert {child.type for child in inline.children or ()} <= {"text", "text_special"}
    assert "".join(child.content for child in inline.children or ()) == f"undecided: {reason}"


def test_a_command_is_timed_and_one_that_fails_says_why() -> None:
    assert time_command(f"{sys.executable} -c pass").ms > 0
    with pytest.raises(ActivityError, match="status 3: no luck"):
        time_command(
            f"{sys.executable} -c 'import sys; print(\"no luck\", file=sys.stderr); sys.exit(3)'"
        )
    for line in ("/nowhere/at/all", "sh -c 'no end", "a\0b"):
        with pytest.raises(ActivityError, match="cannot be run"):
            time_command(line)
    with pytest.raises(ActivityError, match="a command line is empty"):
        time_command("  ")
