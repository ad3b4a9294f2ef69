"""Sweeps: intervals against a binomial sum, knees against a plain search, files as written."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.errors import ActivityError, InputError, UsageError
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
    drawn_axis,
    sweep_lines,
    sweep_markdown,
    sweep_page,
    sweep_table,
)
from tests.support.recorded import Recorded, settled, table_text

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


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    sweep, path = sweep_of({1: 10.0, 2: 12.0, 4: 20.0}), tmp_path / "m.sweep.json"
    path.write_text(sweep_text(sweep))
    assert recognise(path) is FileKind.SWEEP
    found = load_sweep(path)
    assert (found.axes, found.points, found.report) == (sweep.axes, sweep.points, str(path))


def test_foreign_text_is_no_markup() -> None:
    axis = SweepAxis("<b>|x\x1b[31m", (1, 2))
    sweep = Sweep("m.onnx", "back", (axis,), tuple(SweepPoint((n,), (1.0,) * 6) for n in (1, 2)))
    page, markdown = sweep_page(sweep), sweep_markdown(sweep)
    assert "<b>" not in page
    assert "\x1b" not in page + markdown
    assert "\\<b\\>\\|x" in markdown


def noisy(ms: float, spread: float = 0.0, turns: int = 6, **more: Any) -> dict[str, Any]:
    factors = [1 + spread * (at % 3 - 1) for at in range(turns)]
    return {"rounds_ms": tuple(ms * factor for factor in factors), **more}


def swept(points: Mapping[Any, dict[str, Any]], *axes: SweepAxis, **more: Any) -> Sweep:
    made = [SweepPoint(at, **points.get(at, {"problem": "refused"})) for at in places(axes)]
    return Sweep("/a/m.onnx", "ONNX Runtime", axes, tuple(made), **more)


def sweeps() -> dict[str, Sweep]:
    """Return sweeps with every kind of axis, knee, doubt and problem."""
    batch, threads = SweepAxis(BATCH, (1, 2, 4)), SweepAxis(THREADS, (1, 2, 3))
    precision, length = SweepAxis(PRECISION, ("model", "fp16")), SweepAxis("n\x1b", (5, 6))
    by_batch = {(n,): noisy(ms) for n, ms in ((1, 1.0), (2, 1.5), (4, 2.5))}
    decoder = {(n,): noisy(4.0 + n, 0.01, first_rounds_ms=(9.0 + n,) * 6) for n in (1, 2, 4)}
    both = {at: noisy(at[1] / at[0], memory_bytes=1000 * at[1]) for at in places((threads, batch))}  # type: ignore[operator]
    by_precision = {at: noisy(len(str(at[0])) * float(at[1])) for at in places((precision, batch))}
    sizes = SweepAxis("n", (1, 2, 3, 4, 5))
    made = {
        "batches": swept(by_batch, batch, fixed="x 1x3", measured_s=3.0, seconds=9.0),
        "a last one": swept({(n,): noisy(1.0) for n in (1, 2, 4)}, batch),
        "alike": swept({(n,): noisy(n) for n in (1, 2, 4)}, batch),
        "not certain": swept({(n,): noisy(n, 0.4) for n in (1, 2, 4)}, batch),
        "two sizes": swept({(1,): noisy(1.0), (2,): noisy(3.0)}, batch),
        "one": swept({(2,): noisy(3.0)}, batch), "none": swept({}, batch),
        "other problems": swept({(1,): noisy(1.0), (2,): {"problem": "no"}}, batch),
        "a decoder": swept(decoder, batch, tokens=8),
        "threads": swept({(n,): noisy(6.0 / n) for n in (1, 2, 3)}, threads),
        "one thread": swept({(n,): noisy(6.0 + n) for n in (1, 2, 3)}, threads),
        "threads and batches": swept(both, threads, batch),
        "precisions": swept(by_precision, precision, batch),
        "hostile": swept({(n,): noisy(n) for n in (5, 6)}, length),
        "sizes and batches": swept({at: noisy(at[0] * at[1] + 1) for at in places((sizes, batch))},  # type: ignore[operator]
                                   sizes, batch),
        "few turns": swept({(1,): noisy(1.0, 0.1, 1), (2,): noisy(1.5, 0.1, 3),
                            (4,): noisy(2.5, 0.1, 5)}, batch),
        "no axes": swept({(): noisy(1.0)}), "words": swept({("fp16",): noisy(1.0)}, precision),
    }  # fmt: skip
    made["targets"] = joined({"a": made["batches"], "b\x1b": made["a last one"]})
    return made


def test_what_sweeps_become(recorded: Recorded) -> None:
    texts = {}
    for name, sweep in sweeps().items():
        axis = drawn_axis(sweep)
        lines = [*sweep_lines(sweep), table_text(sweep_table(sweep)), str(knees(sweep))]
        lines += [f"over {None if axis is None else axis.name}"]
        lines += re.findall(r"<title>(.*?)</title>", sweep_page(sweep))[1:]
        texts[name] = settled("\n".join(lines).replace("\x1b", "ESC"))
    recorded("sweeps", texts)
    with pytest.raises(ActivityError, match="did not measure the same points"):
        joined({"a": sweeps()["batches"], "b": sweeps()["threads"]})


def test_whole_sweep_files(tmp_path: Path, recorded: Recorded) -> None:
    """What is no size of an option, and what no sweep writes into its file."""
    lines = []
    for text in ("1,2,4", " 3 ,3, 1", "2147483647", "", "1,,2", "0", "-1", "x\x1b", "1.5",
                 "2147483648", "1;2"):  # fmt: skip
        try:
            lines.append(f"{text!r}: {parse_values(text, '--batch N')}")
        except UsageError as error:
            lines.append(f"{text!r}: {error}")
    path = tmp_path / "m.sweep.json"
    written = json.loads(sweep_text(sweep_of({1: 1.0, 2: 1.0, 4: 1.0})))
    first, *others = written["points"]
    one = [{"name": "n", "values": [1]}]
    cases: dict[str, dict[str, Any]] = {
        "as written": {}, "no points": {"points": []}, "twice": {"axes": written["axes"] * 2},
        "a negative size": {"axes": [{"name": "batch", "values": [1, 2, -4]}]},
        "too many": {"axes": [{"name": "n", "values": [*range(2000)]}]},
        "no size": {"axes": [{"name": "n", "values": [0]}], "points": [{"at": [0]}]},
        "a large size": {"axes": [{"name": "n", "values": [1 << 31]}],
                         "points": [{"at": [1 << 31]}]},
        "the largest size": {"axes": [{"name": "n", "values": [(1 << 31) - 1]}],
                             "points": [{"at": [(1 << 31) - 1]}]},
        "a word": {"axes": [{"name": "batch", "values": ["1"]}], "points": [{"at": ["1"]}]},
        "a word of another": {"axes": [{"name": "n", "values": ["1"]}], "points": [{"at": ["1"]}]},
        "seconds": {"seconds": -1.0}, "text": {"seconds": "x"}, "measured": {"measured_s": -0.5},
        **{f"memory {size}": {"points": [{**first, "memory_bytes": size}, *others]}
           for size in (0, (1 << 60) - 1, 1 << 60, -1)},
        **{f"a time of {ms}": {"axes": one, "points": [{"at": [1], key: [ms]}]}
           for ms in (0, -1, 1e300) for key in ("rounds_ms", "first_rounds_ms")},
    }  # fmt: skip
    texts = {"sizes": "\n".join(lines)}
    lines = []
    for name, broken in cases.items():
        path.write_text(json.dumps(written | broken))
        try:
            found = load_sweep(path)
        except InputError as error:
            lines.append(f"{name}: {error}")
        else:
            lines.append(f"{name}: {len(found.points)} points, {found.report}")
    contents = {
        "no text": b"\xff", "no JSON": b"{", "a list": b"[]", "deep": b"[" * 100_000,
        "large": b" " * ((16 << 20) + 1),
    }  # fmt: skip
    for name, content in contents.items():
        path.write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_sweep(path)
        is_ours = name in ("no text", "large")
        lines.append(f"{name}: {str(caught.value) if is_ours else 'not a result'}")
        assert "not a result of dld sweep" in str(caught.value)
    texts["files"] = settled("\n".join(lines), tmp_path)
    recorded("whole_sweep_files", texts)
