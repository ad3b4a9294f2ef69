"""Every sentence of a comparison or a gate that tells a difference, recomputed from the samples.

Reports are real, drawn and damaged. A sentence with a figure that none of the patterns knows fails.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import sqlite3
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from dld_tui.core.compare.comparison import Comparison, open_subject
from dld_tui.core.compare.gate import Pair, RunFigures, gate_result
from dld_tui.core.report.records import Layer, LayerInformation
from tests.oracles.plain import StoredReport, kept_tests, near, rank_p, rows, sign_interval, unpack
from tests.support.profiles import ort_report, start_report
from tests.support.tiers import first

CPU, OTHER = "CPUExecutionProvider", "DnnlExecutionProvider"
_DETAILS = "SELECT name, details FROM layers"
FEWEST = 5
"""Passes from which samples tell noise from change."""


class Sides:
    """Two reports by the names of their layers."""

    def __init__(self, *paths: Path) -> None:
        self.reports = [StoredReport(path) for path in paths]
        self.providers = [dict(rows(path, "SELECT name, provider FROM layers")) for path in paths]
        self.engines = [
            {name: json.loads(text) for name, text in rows(path, _DETAILS)} for path in paths
        ]
        self.ms = [
            {one.names[layer]: ms for layer, ms in one.layer_ms().items()} for one in self.reports
        ]
        self.names = sorted({*self.ms[0], *self.ms[1]})
        self.both = [name for name in self.names if name in self.ms[0] and name in self.ms[1]]
        self.delta = {n: self.ms[1].get(n, 0.0) - self.ms[0].get(n, 0.0) for n in self.names}

    def series(self, chosen: list[str]) -> list[list[float]]:
        """Return what layers take together in each pass in which one ran, by report."""
        found = []
        for one in self.reports:
            passes = [
                [ms for layer, ms in times.items() if one.names[layer] in chosen]
                for times in one.times.values()
            ]
            found.append([sum(times) for times in passes if times])
        return found

    def latencies(self) -> list[list[float]]:
        """Return the latencies, of the same kind in both."""
        if all(one.latencies for one in self.reports):
            return [one.latencies for one in self.reports]
        return [[*one.lengths.values()] for one in self.reports]


def are_apart(first: list[float], second: list[float]) -> bool:
    return max(first) < min(second) - 0.003 or max(second) < min(first) - 0.003


def check_certainty(said: str, series: list[list[float]]) -> None:
    """Compare how sure a sentence is of a difference with its samples."""
    if min(map(len, series)) < FEWEST:
        assert "not certain" in said or "too few passes" in said
    elif "within noise" in said:
        assert not are_apart(*series)
    else:
        assert rank_p(*series) <= 0.05


def check_whole(found: re.Match[str], sides: Sides) -> None:
    series = sides.latencies()
    there, here = map(statistics.median, series)
    assert near(found[1], here)
    assert near(found[2], there)
    assert near(found[3], here - there)
    assert found[4] is None or near(found[4], here / there)
    check_certainty(found[5], series)
    if span := re.search(r"interval ([+-][\d.,]+) to ([+-][\d.,]+) ms", found[5]):
        low, high = (float(end.replace(",", "")) for end in span.groups())
        assert low - 0.001 <= here - there <= high + 0.001
        if found[5].startswith("more than the noise"):
            assert low * high > 0


def check_sum(found: re.Match[str], sides: Sides) -> None:
    moved = sum(sides.delta.values())
    assert near(found[1], moved)
    check_certainty(found[2], sides.series(sides.names))
    if found[3]:
        there, here = map(statistics.median, sides.latencies())
        assert near(found[3], here - there)
        assert near(found[4], here - there - moved)


def check_counts(found: re.Match[str], sides: Sides) -> None:
    counts = {word: int(n) for n, word in re.findall(r", (\d+) (\w[\w ]+\w)", found[4])}
    changed, total, unchanged = (int(found[at]) for at in (1, 2, 3))
    following = counts.pop("by the common factor", 0)
    assert total == len(sides.names)
    assert counts.pop("in one only", 0) == total - len(sides.both)
    untold = counts.pop("cannot be told", 0)
    assert not counts
    assert changed + unchanged + following + untold == len(sides.both)
    tested = [
        series for name in sides.both if min(map(len, series := sides.series([name]))) >= FEWEST
    ]
    chances = [rank_p(*series) for series in tested]
    sure = [
        keeps and are_apart(*series)
        for keeps, series in zip(kept_tests(chances) if tested else [], tested, strict=True)
    ]
    assert sum(sure) <= changed + following <= sum(p <= 0.05 for p in chances)


def check_largest(found: re.Match[str], sides: Sides, below: list[str]) -> None:
    named = [re.match(r"\s+[+-][\d.,]+ ms  (.+?)  ", line) for line in below[: int(found[1] or 1)]]
    moved = sum(abs(sides.delta[one[1]]) for one in named if one is not None)
    assert near(found[2], 100 * moved / sum(map(abs, sides.delta.values())))


def check_row(found: re.Match[str], sides: Sides) -> None:
    delta, name, ratio, alone = found.groups()
    assert near(delta, sides.delta[name])
    if alone:
        assert [name in ms for ms in sides.ms] == [alone == "A", alone == "B"]
    else:
        assert near(ratio, sides.ms[1][name] / sides.ms[0][name])


def check_factor(found: re.Match[str], sides: Sides) -> None:
    there, here = sides.ms
    ratios = sorted((here[n] / there[n], there[n]) for n in sides.both)
    whole, passed = sum(ms for _, ms in ratios), 0.0
    for middle, ms in ratios:  # noqa: B007
        passed += ms
        if passed >= whole / 2:
            break
    low, high = float(found[3]), float(found[4] or found[3])
    assert int(found[2]) == len(ratios)
    assert float(found[5]) == pytest.approx(middle, rel=0.006)
    inside = [ms for ratio, ms in ratios if low * 0.994 <= ratio <= high * 1.006]
    assert sum(inside) >= 0.9 * whole
    assert int(found[1] or 0) <= len(ratios) - len(inside)


def check_only(found: re.Match[str], sides: Sides) -> None:
    own, other = sides.ms if found[1] == "A" else sides.ms[::-1]
    alone = [ms for name, ms in own.items() if name not in other]
    assert int(found[2]) == len(alone)
    assert near(found[3], sum(alone))


def check_moved(found: re.Match[str], sides: Sides) -> None:
    count, here, there, delta, doubt = found.groups()
    moved = [n for n in sides.both if [one[n] for one in sides.providers] == [there, here]]
    assert int(count) == len(moved)
    assert near(delta, sum(sides.delta[name] for name in moved))
    check_certainty(doubt, sides.series(moved))


def check_speedup(found: re.Match[str], sides: Sides) -> None:
    factor, low, high, least, doubt = found.groups()
    series = sides.latencies()
    there, here = map(statistics.median, series)
    assert near(factor, there / here)
    check_certainty(doubt or "", series)
    if low or least:
        assert float(low or least) <= there / here + 0.005
        assert high is None or there / here - 0.005 <= float(high)


def check_tactics(found: re.Match[str], sides: Sides) -> None:
    other = [n for n in sides.both if len({one[n]["tactic"] for one in sides.engines}) > 1]
    assert int(found[1]) == len(other)
    assert near(found[2], sum(sides.delta[name] for name in other))
    check_certainty(found[3], sides.series(other))


def check_inserted(found: re.Match[str], sides: Sides) -> None:
    for at, (engines, own) in enumerate(zip(sides.engines, sides.ms, strict=True)):
        chosen = [own[name] for name, facts in engines.items() if facts.get("inserted")]
        assert int(found[2 * at + 1]) == len(chosen)
        assert near(found[2 * at + 2], sum(chosen))


SENTENCES: dict[str, Callable[[re.Match[str], Sides], None]] = {
    r"B takes ([\d.,]+) ms where A takes ([\d.,]+) ms: ([+-][\d.,]+) ms(?: \(([\d.,]+)×\))?,"
    r" (.+)\.": check_whole,
    r"Layers together: ([+-][\d.,]+) ms a pass((?:, not certain|, within noise)?)"
    r"(?:, end to end ([+-][\d.,]+) ms: ([+-][\d.,]+) ms is not in the layers \(.+\))?\.":
    check_sum,
    r"(\d+) of (\d+) rows? changed by more than noise(?: and otherwise than by the common factor)?,"
    r" (\d+) did not(.*)\.": check_counts,
    r"All (?:but (\d+) of )?(\d+) rows take ([\d.]+)×(?: to ([\d.]+)×)? the time of A in B,"
    r" ([\d.]+)× in the middle: .+": check_factor,
    r" +([+-][\d.,]+) ms  (.+?)  (?:([\d.,]+)×|only in ([AB]))": check_row,
    r"Only in ([AB]): (\d+) layers?, ([\d.,]+) ms \(.+": check_only,
    r"(?:Fallback in [AB]: )?(\d+) rows? runs? on (\w+) in B, on (\w+) in A"
    r" \(([+-][\d.,]+) ms((?:, [\w ]+)?)\)\.": check_moved,
    r"Speedup of B over A: ([\d.]+)× \(end to end(?:, ([\d.]+)× to ([\d.]+)×|, at least ([\d.]+)×)?"
    r"(; .+)?\)\.": check_speedup,
    r"(\d+) rows? with another tactic in B than in A \(([+-][\d.,]+) ms((?:, [\w ]+)?)\)\.":
    check_tactics,
    r"Inserted to change a format or type: (\d+) layers?, ([\d.,]+) ms in A;"
    r" (\d+) layers?, ([\d.,]+) ms in B\.": check_inserted,
}  # fmt: skip
LARGEST = re.compile(r"(?:The (\d+) largest rows make|That row makes) (\d+) % of all that moved.*:")
WITHOUT_FIGURES = re.compile(
    r"The largest rows? that do(?:es)? not follow it.*:|No setting and nothing recorded .+"
)


def check_comparison(*paths: Path) -> set[str]:
    """Compare all sentences with the samples; return which kinds there were."""
    sides, kinds = Sides(*paths), set[str]()
    lines = Comparison([open_subject(path) for path in paths]).explanation()
    for at, line in enumerate(lines):
        if found := LARGEST.fullmatch(line):
            check_largest(found, sides, lines[at + 1 :])
            continue
        known = [(check, found) for pattern, check in SENTENCES.items()
                 if (found := re.fullmatch(pattern, line))]  # fmt: skip
        assert known or WITHOUT_FIGURES.fullmatch(line), line
        for check, found in known:
            check(found, sides)
            kinds.add(check.__name__)
    return kinds


def write(
    path: Path, dice: random.Random, layers: dict[str, float], passes: int, *, engine: bool
) -> None:
    """Write a report of layers with their usual milliseconds, delayed in some passes."""
    with start_report(path) as report:
        for name in layers:
            engine_facts = LayerInformation(
                engine_layer=0, tactic=dice.choice("xy"), inserted=dice.random() < 0.2
            )
            layer = Layer(
                name,
                name if name.startswith("only") else "Conv",
                provider=dice.choice((CPU,) * 5 + (OTHER,)),
                engine=engine_facts if engine else None,
            )
            report.add_layer(layer)
        for number in range(passes):
            start = at = 1e6 * number
            made = []
            for index, usual in enumerate(layers.values()):
                took = 1000 * usual * dice.choice((1.0, 1.0, 1.0, 1.5)) * dice.uniform(1, 1.05)
                made.append((index, at, took, took, 1))
                at += took
            report.add_pass(number, start, at - start + dice.uniform(1, 900))
            report.add_samples(number, made)
            report.add_latencies([(at - start) / 1000] if len(layers) % 3 else [])


def change(path: Path, sql: str) -> None:
    """Change the samples of a report, and forget the figures that its writer made of them."""
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute(sql)
        database.execute("DELETE FROM report WHERE key = 'fastest_quarter'")


def test_comparisons_of_drawn_and_damaged_reports(tmp_path: Path) -> None:
    kinds = set()
    for seed in range(16):
        dice = random.Random(seed)
        first = {f"layer {n}": dice.uniform(0.02, 5) for n in range(dice.randint(2, 14))}
        common = dice.choice((1.0, 1.0, 3.7, 0.3))
        second = {
            name: ms * common * dice.choice((1.0,) * 8 + (1.4, 0.4)) for name, ms in first.items()
        }
        for side, name in ((first, "only there"), (second, "only here")):
            if dice.random() < 0.4:
                side[name] = dice.uniform(0.02, 5)
        paths = [tmp_path / f"{seed}{letter}.dldprof" for letter in "ab"]
        for path, layers in zip(paths, (first, second), strict=True):
            write(path, dice, layers, dice.choice((3, 6, 12, 20)), engine=seed % 3 == 1)
        if seed % 4 == 3:  # passes with such a sample say nothing
            change(paths[1], "UPDATE samples SET self_us = -self_us WHERE pass = 1 AND seq = 0")
        kinds |= check_comparison(*paths)
    assert kinds == {check.__name__ for check in SENTENCES.values()}


def test_a_comparison_of_real_reports(tmp_path: Path) -> None:
    paths = [tmp_path / "a.dldprof", tmp_path / "b.dldprof"]
    for path in paths:
        ort_report(path, unpack("minilm_int8.ort1.31.1.json", tmp_path))
        change(path, "UPDATE layers SET name = name || ' of ' || id")
    slower = "self_us = 1.7 * self_us + 3, duration_us = 1.7 * duration_us + 3"
    change(paths[1], f"UPDATE samples SET {slower} WHERE layer % 3 = 0")
    change(paths[1], "UPDATE passes SET duration_us = 2 * duration_us + 1000")
    assert check_comparison(*paths) >= {"check_whole", "check_sum", "check_counts", "check_row"}


GATE = re.compile(
    r"(slower|faster|no difference): ([\d.,]+) ms → ([\d.,]+) ms( of processor time)?, (.+); 95 %"
    r" interval over (\d+) runs of each(?:, ([\d.]+) % allowed)?"
    r"(?:; other programs had the processor (\d+) % of the time)?"
    r"(?:; ±([\d.]+) % was not reached in this time"
    r"|; up to (\d+) % slower is possible: more runs tell)?"
)
CHANGE = re.compile(r"([+-][\d.]+) % \(([+-][\d.]+) to ([+-][\d.]+)\)")


def check_change(text: str, verdict: str, ratios: list[float], allowed: float) -> float:
    """Compare a change and its verdict with the ratios; return the most that it may be."""
    change, *ends = CHANGE.fullmatch(text).groups()  # type: ignore[union-attr]
    known = [100 * (ratio - 1) for ratio in sign_interval(ratios)]
    assert near(change, 100 * (statistics.median(ratios) - 1), about=0.05)  # of logarithms
    assert all(near(end, value) for end, value in zip(ends, known, strict=True))
    assert verdict == ("slower" if known[0] > allowed else
                       "faster" if known[1] < -allowed else "no difference")  # fmt: skip
    return known[1]


@pytest.mark.parametrize("seed", first(8, range(12)))
def test_gates_of_drawn_runs(seed: int) -> None:
    dice = random.Random(seed)
    allowed, factor = dice.choice((0.0, 0.0, 3.0)), dice.choice((1.0, 1.02, 1.2, 0.8))
    waits = dice.choice((1.0, 1.6))
    pairs = []
    for _ in range(dice.choice((3, 6, 9, 20, 41))):
        speed = dice.uniform(1, 3)  # of the machine: it is another one in each pair
        ms = [speed * dice.uniform(4, 4.2), speed * factor * dice.uniform(4, 4.2)]
        runs = [
            RunFigures(waits * one, {"a": one, "b": 2.0 + dice.uniform(0, 0.01)}, one) for one in ms
        ]
        pairs.append(Pair(runs[0], runs[1], waits * ms[1] / ms[0], ms[1] / ms[0]))
    result = gate_result("a", "b", pairs, allowed)
    own = [pair.ratio if waits == 1.0 else pair.processor_ratio or 0.0 for pair in pairs]
    sides = [[run.ms for run in (pair.base, pair.new)] for pair in pairs]
    if len(pairs) < 6:
        seen = re.search(r"so far, without an interval: ([\d.]+) ms → ([\d.]+) ms, (\S+) %",
                         result.line)  # fmt: skip
        assert seen is not None
        assert near(seen[1], statistics.median(before for before, _ in sides))
        ratio = statistics.median(pair.ratio for pair in pairs)
        assert near(seen[2], ratio * statistics.median(before for before, _ in sides))
        assert near(seen[3], 100 * (ratio - 1))
        return
    found = GATE.fullmatch(result.line)
    assert found is not None, result.line
    verdict, before, after, of, change, count, may, waited, _, most = found.groups()
    assert (bool(of), bool(waited), int(count)) == (waits > 1, waits > 1, len(pairs))
    assert near(before, statistics.median(one for one, _ in sides) / waits)
    # Both times and the change agree: medians of both sides would not.
    assert near(after, statistics.median(own) * statistics.median(one for one, _ in sides) / waits)
    assert float(may or 0) == allowed
    assert waited is None or near(waited, 100 * (1 - 1 / waits))
    high = check_change(change, verdict, own, allowed)
    assert (most is not None) == (verdict == "no difference" and high > allowed + 2)
    assert most is None or near(most, high)
    for row in result.nodes:
        nodes = [pair.new.nodes[row.key] / pair.base.nodes[row.key] for pair in pairs]
        check_change(row.text, row.verdict, nodes, 0.0)
        assert row.key == "a"
    assert result.nodes or abs(factor - 1) < 0.1
