"""Sweeps: intervals against a binomial sum, knees against a plain search, files as written."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.report.sweep import (
    BATCH,
    PRECISION,
    THREADS,
    Sweep,
    SweepAxis,
    SweepPoint,
    joined,
    knees,
    load_sweep,
    parse_values,
    places,
    sweep_text,
)
from dld_tui.core.report.sweep_export import (
    sweep_lines,
    sweep_markdown,
    sweep_page,
    sweep_table,
)
from dld_tui.core.tables.table import ratio_text

TIMES = st.floats(0.01, 1e4)


def sweep_of(times: dict[int, float]) -> Sweep:
    points = [SweepPoint((batch,), (ms,) * 6) for batch, ms in times.items()]
    return Sweep("m.onnx", "ONNX Runtime", (SweepAxis(BATCH, tuple(times)),), tuple(points))


@given(st.dictionaries(st.integers(1, 512), TIMES, min_size=3, max_size=9))
def test_the_knee_is_the_first_size_that_is_nearly_best(times: dict[int, float]) -> None:
    rates = {batch: 1000 * batch / ms for batch, ms in times.items()}
    (found,) = knees(sweep_of(times))
    good = [batch for batch in sorted(rates) if rates[batch] >= 0.95 * max(rates.values())]
    assert (found.at, found.is_last) == (good[0], good[0] == max(times))
    assert found.best == pytest.approx(max(rates.values()))


def grid(times: Mapping[Any, float], *axes: SweepAxis) -> Sweep:
    points = [
        SweepPoint(at, (times[at],) * 6) if at in times else SweepPoint(at, problem="refused")
        for at in places(axes)
    ]
    return Sweep("m.onnx", "ONNX Runtime", axes, tuple(points))


@pytest.mark.broad
@given(st.randoms(use_true_random=False))
def test_each_knee_is_along_one_axis_with_all_others_fixed(drawn: random.Random) -> None:
    axes = (
        SweepAxis(PRECISION, ("model", "fp16")), SweepAxis(THREADS, (1, 2)),
        SweepAxis(BATCH, (1, 2, 4, 8)), SweepAxis("sequence", (16, 64)),
    )  # fmt: skip
    times = {at: drawn.uniform(0.1, 10) for at in places(axes) if drawn.random() < 0.8}
    sweep = grid(times, *axes)
    wanted = {}
    for precision, threads, sequence in itertools.product(("model", "fp16"), (1, 2), (16, 64)):
        rates = {
            batch: batch / times[precision, threads, batch, sequence]
            for batch in (1, 2, 4, 8) if (precision, threads, batch, sequence) in times
        }  # fmt: skip
        if len(rates) > 2:
            nearly = [batch for batch, rate in rates.items() if rate >= 0.95 * max(rates.values())]
            wanted[precision, threads, sequence] = min(nearly)
    found = {tuple(value for _, value in knee.fixed): knee.at for knee in knees(sweep)}
    assert found == wanted
    table = sweep_table(sweep)
    marked = [row for row in table.rows if "knee" in [one.shown_text(row) for one in table.columns]]
    assert len(marked) == len(wanted)


def test_six_turns_hold_the_median() -> None:
    """Between the smallest and the largest of six lies the true median in 97 % of the cases."""
    drawn = random.Random(7)
    held = 0
    for _ in range(2000):
        point = SweepPoint((1,), tuple(drawn.lognormvariate(0, 0.5) for _ in range(6)))
        assert point.low_ms is not None
        assert point.high_ms is not None
        held += point.low_ms <= 1.0 <= point.high_ms
    wanted = 2000 * (1 - 2 / 2**6)
    assert abs(held - wanted) < 5 * math.sqrt(2000 * 0.03)


@pytest.mark.parametrize("text", ["", "1,,2", "0", "-1", "x", "1.5", str(1 << 31), "1;2"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a size"):
        parse_values(text, "--batch")


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    sweep, path = sweep_of({1: 10.0, 2: 12.0, 4: 20.0}), tmp_path / "m.sweep.json"
    path.write_text(sweep_text(sweep))
    assert recognise(path) is FileKind.SWEEP
    found = load_sweep(path)
    assert (found.axes, found.points, found.report) == (sweep.axes, sweep.points, str(path))


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ({"points": []}, "not those of its axes"),
        ({"axes": [{"name": "batch", "values": [1, 2, 4]}] * 2}, "twice"),
        ({"axes": [{"name": "batch", "values": [1, 2, -4]}]}, "not those"),
        ({"axes": [{"name": "n", "values": [*range(2000)]}]}, "more than"),
        (
            {"axes": [{"name": "n", "values": [0, 1]}], "points": [{"at": [0]}, {"at": [1]}]},
            "size is",
        ),
        ({"axes": [{"name": "batch", "values": ["1"]}], "points": [{"at": ["1"]}]}, "size is"),
        ({"seconds": -1.0}, "time is out of range"),
        ({"seconds": "x"}, "number"),
    ],
)
def test_what_no_sweep_writes_is_refused(broken: dict[str, Any], why: str, tmp_path: Path) -> None:
    path = tmp_path / "m.sweep.json"
    path.write_text(json.dumps(json.loads(sweep_text(sweep_of({1: 1.0, 2: 1.0, 4: 1.0}))) | broken))
    with pytest.raises(InputError, match=f"not a result of dld sweep.*{why}"):
        load_sweep(path)


def test_the_page_has_a_bar_for_each_point() -> None:
    axes = SweepAxis(THREADS, (1, 2)), SweepAxis(BATCH, (1, 2, 4))
    times = {at: 1.0 * at[1] / at[0] for at in places(axes) if at != (2, 4)}  # type: ignore[operator]
    page = sweep_page(grid(times, *axes))
    for at, ms in times.items():
        assert f"batch {at[1]}: {ratio_text(1000 * int(at[1]) / ms)} items/s</title>" in page
        assert f"batch {at[1]}: {ratio_text(ms)} ms</title>" in page
    assert page.count(" items/s</title>") == len(times)
    assert "threads 2" in page
    assert "Time to the first token" not in page


def test_foreign_text_is_no_markup() -> None:
    axis = SweepAxis("<b>|x\x1b[31m", (1, 2))
    sweep = Sweep("m.onnx", "back", (axis,), tuple(SweepPoint((n,), (1.0,) * 6) for n in (1, 2)))
    page, markdown = sweep_page(sweep), sweep_markdown(sweep)
    assert "<b>" not in page
    assert "\x1b" not in page + markdown
    assert "\\<b\\>\\|x" in markdown


def test_sweeps_of_targets_are_one_with_the_target_as_an_axis() -> None:
    here, there = sweep_of({1: 10.0, 2: 12.0}), sweep_of({1: 5.0, 2: 9.0})
    both = joined({"a": here, "b": there})
    assert [point.at for point in both.points] == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
    assert [point.ms for point in both.points] == [10.0, 12.0, 5.0, 9.0]
    assert "at target b, batch 1" in sweep_lines(both)[0]
