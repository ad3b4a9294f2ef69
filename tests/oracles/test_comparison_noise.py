"""What a comparison calls changed, against exact tests and against reports that changed nothing."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.compare.comparison import Comparison, subject_of
from dld_tui.core.compare.matching import discoveries, p_value
from dld_tui.core.compare.records import Subject
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report
from tests.support.profiles import write_report


def exact_p_value(first: list[float], second: list[float]) -> float:
    """Return the permutation p-value of the U statistic: every way to deal the values out."""
    values = first + second

    def away(chosen: tuple[int, ...]) -> float:
        mine = [values[n] for n in chosen]
        rest = [values[n] for n in range(len(values)) if n not in chosen]
        u = sum((x > y) + (x == y) / 2 for x in mine for y in rest)
        return abs(u - len(mine) * len(rest) / 2)

    seen = away(tuple(range(len(first))))
    deals = list(combinations(range(len(values)), len(first)))
    return sum(away(deal) >= seen - 1e-9 for deal in deals) / len(deals)


@pytest.mark.parametrize("shift", [0.0, 0.5, 1.0, 2.0, 4.0])
def test_p_values_are_those_of_all_permutations(shift: float) -> None:
    dice = np.random.default_rng(int(10 * shift))
    first = sorted(dice.normal(0, 1, 7).round(1).tolist())
    second = sorted(dice.normal(shift, 1, 7).round(1).tolist())
    ours = p_value(np.array(first), np.array(second))
    assert ours == pytest.approx(exact_p_value(first, second), abs=0.03)


def test_which_tests_hold_together() -> None:
    """The example of Benjamini and Hochberg (1995), section 3.2, table 2 at 5 %: the first four."""
    values = [
        0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
        0.5719, 0.6528, 0.7590, 1.0,
    ]  # fmt: skip
    assert discoveries(values) == [True] * 4 + [False] * 11
    assert discoveries([None, 0.01]) == [None, True]
    assert discoveries([]) == []


def _subject(seed: int, layers: int, passes: int, faster: int = 0) -> Subject:
    dice = np.random.default_rng(seed)
    times = 1.0 + 0.1 * dice.gamma(2.0, 1.0, (layers, passes))
    times[:faster] -= 0.5
    made = [
        Layer(f"layer {n}", "Conv", index=n, time_ms=float(np.median(times[n])))
        for n in range(layers)
    ]
    return Subject(f"{seed}", str(Path(f"{seed}.dldprof")), made, times,
                   profiled_ms=times.sum(axis=0).tolist())  # fmt: skip


def test_nothing_is_called_changed_in_the_same_thing_twice() -> None:
    """By the interval alone, about one row of twenty was called changed."""
    found = 0
    for pair in range(10):
        rows = Comparison([_subject(2 * pair, 200, 40), _subject(2 * pair + 1, 200, 40)]).rows()
        found += sum(row.cells[1].noise is False for row in rows)
    assert found <= 2


def test_all_layers_take_in_a_comparison_what_they_take_in_the_report(tmp_path: Path) -> None:
    """Of 2.4775 ms, one said 2.478 and the other 2.477: as sums of other roundings."""
    layers = [(Layer(f"layer {n}", "Conv"), [0.1 + n / 1000] * 8) for n in range(99)]
    with Report.open(write_report(tmp_path / "r.dldprof", layers)) as report:
        [cell, _] = Comparison([subject_of(report)] * 2).layer_sum.cells
        assert cell.time_ms == report.measurement.total_ms


def test_what_changed_is_still_found() -> None:
    rows = Comparison([_subject(1, 200, 40), _subject(2, 200, 40, faster=7)]).rows()
    changed = [row.key for row in rows if row.cells[1].noise is False]
    assert set(changed) >= {f"layer {n}" for n in range(7)}
    assert len(changed) <= 8
