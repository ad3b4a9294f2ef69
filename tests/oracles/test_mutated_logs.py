"""Logs of trtexec with damaged figures: no crash, a dash, one line, and no wrong sum."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.trtexec_log import read_log
from dld_tui.screens.results.trtexec_log import summary_lines
from tests.oracles.plain import check_numbers
from tests.support.tiers import first

STAMP = "[07/07/2026-02:11:43] [I]"
BEGIN = "&&&& RUNNING TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=m.onnx"
END = "&&&& PASSED TensorRT.trtexec [TensorRT v101601] [b11] # trtexec --onnx=m.onnx"
WRONG = ("", "nan", "-nan", "inf", "-0.5", "text", "1e999", "1.2.3", "--")
TIMES = {"Latency": "latency", "GPU Compute Time": "compute", "Enqueue Time": "enqueue",
         "H2D Latency": "h2d", "D2H Latency": "d2h"}  # fmt: skip
FIGURES = ("min", "max", "mean", "median", "percentile(90%)", "percentile(95%)", "percentile(99%)")


def summary(rng: random.Random) -> dict[str, list[str]]:
    """Return the figures of a performance summary, as text."""
    found = {}
    for name in TIMES:
        ordered = sorted(rng.uniform(0.5, 5) for _ in range(6))
        least, median, p90, p95, p99, greatest = ordered
        mean = rng.uniform(least, greatest)
        found[name] = [f"{value:.6g}" for value in (least, greatest, mean, median, p90, p95, p99)]
    return found


def rows(rng: random.Random, count: int) -> list[list[str]]:
    """Return rows of layers: total, mean, median, share, name."""
    found = []
    for number in range(6):
        mean = rng.uniform(0.01, 2)
        found.append([f"{mean * count:.2f}", f"{mean:.4f}", f"{mean * 0.98:.4f}", "5.0",
                      f"conv{number} + relu {number}"])  # fmt: skip
    return found


def text_of(
    figures: dict[str, list[str]], table: list[list[str]], total: str, more: tuple[str, ...] = ()
) -> str:
    lines = [BEGIN, *(f"{STAMP} {line}" for line in more)]
    lines += [f"{STAMP} === Performance summary ===", f"{STAMP} Throughput: 250.5 qps"]
    for name, values in figures.items():
        pairs = zip(FIGURES, values, strict=True)
        lines.append(f"{STAMP} {name}: " + ", ".join(f"{key} = {one} ms" for key, one in pairs))
    lines += [f"{STAMP} ", f"{STAMP} === Profile (100 iterations ) ===",
              f"{STAMP}    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer"]  # fmt: skip
    lines += [f"{STAMP}       {'       '.join(row)}" for row in table]
    lines += [f"{STAMP}       {total}       1.0       1.0       100.0   Total", f"{STAMP} ", END]
    return "\n".join(lines) + "\n"


def total_of(table: list[list[str]]) -> str:
    return f"{sum(float(row[0]) for row in table):.2f}"


def opened(path: Path, text: str) -> tuple[Any, list[str]]:
    path.write_text(text)
    plan = open_plan(path)
    shown: Any = plan_json(plan)
    check_numbers(shown)
    for line in summary_lines(read_log(text), 100):
        assert "nan" not in "".join(piece for piece, _ in line).lower().split()
    return shown, list(plan.notes)


def layer_sum(shown: Any) -> float:
    return sum(layer["time_ms"] or 0.0 for layer in shown["layers"])


@pytest.mark.parametrize("seed", first(9, range(36)))
def test_a_damaged_figure_of_the_summary(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    figures, table = summary(rng), rows(rng, 100)
    name, place = rng.choice([*TIMES]), rng.randrange(4)
    before, _ = opened(tmp_path / "a.log", text_of(figures, table, total_of(table)))
    for key, own in TIMES.items():
        told = before["timing_ms"][own]
        assert [told[one] for one in ("min", "max", "mean", "median", "p90", "p95", "p99")] == [
            float(value) for value in figures[key]
        ]
    figures[name][place] = WRONG[seed % len(WRONG)]
    shown, notes = opened(tmp_path / "b.log", text_of(figures, table, total_of(table)))
    assert shown["timing_ms"][TIMES[name]] is None
    for key, own in TIMES.items():
        if key != name:
            assert shown["timing_ms"][own] == before["timing_ms"][own]
    assert sum(f"no valid numbers in the performance summary: {name}" in at for at in notes) == 1
    assert layer_sum(shown) == pytest.approx(layer_sum(before))


@pytest.mark.parametrize("left_out", range(7))
def test_figures_are_known_by_their_names(left_out: int, tmp_path: Path) -> None:
    rng = random.Random(left_out)
    figures, table = summary(rng), rows(rng, 100)
    text = text_of(figures, table, total_of(table))
    gone = f"{FIGURES[left_out]} = {figures['Latency'][left_out]} ms"
    assert gone in text
    shown, notes = opened(tmp_path / "a.log", text.replace(f"{gone}, ", "").replace(gone, ""))
    latency = shown["timing_ms"]["latency"]
    if left_out < 4:
        assert latency is None
        assert (
            sum("no valid numbers in the performance summary: Latency" in at for at in notes) == 1
        )
        return
    values = dict(zip(("p90", "p95", "p99"), map(float, figures["Latency"][4:]), strict=True))
    values[("p90", "p95", "p99")[left_out - 4]] = None  # type: ignore[assignment]
    assert {key: latency[key] for key in values} == values
    compute = shown["timing_ms"]["compute"]
    assert compute["p99"] == (float(figures["GPU Compute Time"][6]) if left_out < 6 else None)


@pytest.mark.parametrize("seed", first(9, range(36)))
def test_a_damaged_row_of_the_layers(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    figures, table = summary(rng), rows(rng, 100)
    total = total_of(table)
    place, column = rng.randrange(6), rng.randrange(4)
    sound = [float(row[1]) for at, row in enumerate(table) if at != place]
    name = table[place][4]
    table[place][column] = WRONG[seed % len(WRONG)]
    shown, notes = opened(tmp_path / "a.log", text_of(figures, table, total))
    assert layer_sum(shown) == pytest.approx(sum(sound))
    [layer] = [one for one in shown["layers"] if one["time_ms"] is None]
    assert layer["name"].endswith(name)  # text for a share may as well begin the name
    assert sum("1 row of the profile without a valid time" in note for note in notes) == 1
    assert len(shown["layers"]) == 6


def test_rows_that_are_missing_repeated_or_contradictory(tmp_path: Path) -> None:
    rng = random.Random(0)
    figures, table = summary(rng), rows(rng, 100)
    total = total_of(table)
    means = [float(row[1]) for row in table]
    shown, notes = opened(tmp_path / "a.log", text_of(figures, table, total))
    assert layer_sum(shown) == pytest.approx(sum(means))
    assert not any("rows are missing" in note for note in notes)
    shown, notes = opened(tmp_path / "b.log", text_of(figures, table[:-1], total))
    assert layer_sum(shown) == pytest.approx(sum(means[:-1]))
    assert sum("rows are missing, repeated or changed" in note for note in notes) == 1
    shown, notes = opened(tmp_path / "c.log", text_of(figures, [*table, table[2]], total))
    assert layer_sum(shown) == pytest.approx(sum(means))
    assert sum("twice" in note for note in notes) == 1
    table[1][1] = f"{means[1] * 3:.4f}"
    shown, notes = opened(tmp_path / "d.log", text_of(figures, table, total))
    assert layer_sum(shown) == pytest.approx(sum(means) - means[1])
    assert sum("contradict each other" in note for note in notes) == 1


@pytest.mark.parametrize("wrong", ["", "nan", "inf", "-3", "text", "1e999", "0"])
def test_a_throughput_that_cannot_be(wrong: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    table = rows(rng, 100)
    text = text_of(summary(rng), table, total_of(table)).replace("250.5 qps", f"{wrong} qps")
    shown, notes = opened(tmp_path / "a.log", text)
    assert shown["timing_ms"]["throughput"] is None
    assert sum("performance summary: Throughput" in note for note in notes) == 1


@pytest.mark.parametrize("wrong", ["", "nan", "inf", "-3", "text"])
def test_facts_of_a_build_that_cannot_be(wrong: str, tmp_path: Path) -> None:
    rng = random.Random(0)
    table = rows(rng, 100)
    memory = "[TRT] [MemUsageStats] Peak memory usage of TRT CPU/GPU memory allocators: "
    good = (f"{memory}CPU 0 MiB, GPU 13 MiB", "Engine built in 8.09138 sec.")
    bad = (f"{memory}CPU 0 MiB, GPU {wrong} MiB", f"Engine built in {wrong} sec.")
    text = text_of(summary(rng), table, total_of(table), good)
    figures = read_log(text.replace("[I] [TRT]", "[I] [TRT]")).figures
    assert figures == {"build peak": "CPU 0 MiB, GPU 13 MiB", "build time": "8.09138 sec"}
    text = text_of(summary(rng), table, total_of(table), bad)
    assert read_log(text).figures == {}
    _, notes = opened(tmp_path / "a.log", text)
    for what in ("the peak memory of the build", "the time of the build"):
        assert sum(f"{what} is not a valid number in the log" in note for note in notes) == 1


@pytest.mark.parametrize("seed", first(6, range(25)))
def test_a_log_that_was_cut(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    table = rows(rng, 100)
    lines = text_of(summary(rng), table, total_of(table)).splitlines()
    begin = next(at for at, line in enumerate(lines) if "=== Profile" in line) + 2
    whole = rng.randrange(begin, begin + 6)  # so many lines are whole
    rest = lines[whole]
    text = "\n".join(lines[:whole]) + "\n" + rest[: rng.randrange(len(rest))]
    shown, notes = opened(tmp_path / "a.log", text)
    assert sum("the log ends before the run does" in note for note in notes) == 1
    assert sum("the table of layer times has no total" in note for note in notes) == 1
    means = [float(row[1]) for row in table]
    sums = (sum(means[: whole - begin]), sum(means[: whole - begin + 1]))
    assert any(layer_sum(shown) == pytest.approx(one) for one in sums)
