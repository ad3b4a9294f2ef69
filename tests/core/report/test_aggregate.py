from __future__ import annotations

import pytest

from dld_tui.core.report.records import PassState
from dld_tui.core.report.statistics import collect, counted_passes, summarise_layers


def test_only_measured_passes_count() -> None:
    assert counted_passes(
        {0: PassState.WARM_UP, 1: PassState.MEASURED, 2: PassState.INCOMPLETE}
    ) == {1}


def test_incomplete_passes_count_when_there_is_nothing_else() -> None:
    assert counted_passes({0: PassState.WARM_UP, 1: PassState.INCOMPLETE}) == {1}
    assert counted_passes({}) == set()


def test_repeated_runs_are_summed_per_pass_and_counted() -> None:
    rows = [(0, 5, 10.0), (0, 5, 20.0), (1, 5, 40.0), (1, 5, 10.0)]
    found = summarise_layers(collect(rows, {0, 1}))[5]
    assert (found.min_ms, found.max_ms) == (0.03, 0.05)
    assert found.time_ms == pytest.approx(0.04)
    assert (found.count, found.passes) == (2, 2)


def test_a_branch_is_judged_by_the_passes_in_which_it_ran() -> None:
    rows = [(0, 1, 100.0), (0, 2, 8.0), (1, 1, 100.0), (2, 1, 100.0)]
    found = summarise_layers(collect(rows, {0, 1, 2}))
    assert (found[2].time_ms, found[2].passes, found[1].passes) == (0.008, 1, 3)
    assert found[1].percent == pytest.approx(100 * 100 / 108)


def test_samples_of_other_passes_are_left_out() -> None:
    found = collect([(0, 1, 999.0), (1, 1, 5.0)], {1})
    assert list(found[1].per_pass_us) == [5.0]


def test_layers_without_time_do_not_divide() -> None:
    assert summarise_layers(collect([(0, 1, 0.0)], {0}))[1].percent == 0
