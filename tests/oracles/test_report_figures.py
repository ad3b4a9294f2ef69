"""The headline figures of reports against a second computation from the stored samples."""

from __future__ import annotations

import sqlite3
import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dld_tui.core.compare.comparison import Comparison, subject_of
from dld_tui.core.reading.export import report_json
from dld_tui.core.report.records import Layer
from dld_tui.core.report.report import Report, open_report
from tests.oracles.plain import PROFILES, RawProfile, StoredReport, unpack
from tests.support.profiles import kernel, ort_report, run, start_report, told, write_profile


def check(path: Path) -> None:
    """Compare what is printed of a report with what its rows say."""
    plain = StoredReport(path)
    with Report.open(path) as report:
        document: Any = report_json(report, "type")
        comparison = Comparison([subject_of(report), subject_of(report)])
    if not plain.times:
        assert document["covered_percent"] is None
        return
    assert document["layers_total_ms"] == pytest.approx(plain.total_ms())
    assert document["covered_percent"] == pytest.approx(plain.covered_percent())
    layers = plain.layer_ms()
    known = {n: layer["time_ms"] for n, layer in enumerate(document["layers"]) if layer["passes"]}
    assert known == pytest.approx(layers)
    for index, layer in enumerate(document["layers"]):
        expected = 100 * layers.get(index, 0.0) / (sum(layers.values()) or 1.0)
        assert (layer["percent"] or 0.0) == pytest.approx(expected)
    types = plain.type_ms()
    groups = {group["key"]: group["time_ms"] for group in document["groups"]}
    assert {key: time for key, time in groups.items() if key in types} == pytest.approx(types)
    shares = {group["key"]: group["percent"] for group in document["groups"]}
    expected_shares = dict.fromkeys(types, 0.0)
    for index, time in layers.items():
        expected_shares[plain.types[index]] += 100 * time / (sum(layers.values()) or 1.0)
    assert {key: shares[key] for key in types} == pytest.approx(expected_shares)
    # The same file beside itself: a comparison has the same figures, and nothing changed.
    assert comparison.layer_sum.cells[1].time_ms == pytest.approx(plain.total_ms())
    rows = {row.key: row.cells[0].time_ms for row in comparison.rows("type")}
    assert rows == pytest.approx(types)
    assert all(not row.cells[1].delta_ms for row in comparison.rows("layer"))
    if plain.latencies:
        assert document["latency_ms"]["median"] == pytest.approx(statistics.median(plain.latencies))
        assert document["passes"] == len(plain.latencies)


@pytest.mark.parametrize("name", [*PROFILES, "silero_if.ort1.12.1.json"])
def test_a_real_profile(name: str, tmp_path: Path) -> None:
    source = unpack(name, tmp_path)
    target = ort_report(tmp_path / "r.dldprof", source)
    check(target)
    raw = RawProfile(source)
    stored = StoredReport(target)
    # Incomplete passes are not among the measured ones.
    lengths = {number: length for number, (length, _) in enumerate(raw.passes)}
    assert stored.lengths.items() <= lengths.items()
    assert stored.times.keys() == stored.lengths.keys()
    for number, found in stored.times.items():
        own = [time for _, _, time in raw.passes[number][1]]
        assert sum(found.values()) == pytest.approx(sum(own), abs=0.002 * len(own))


TIMES = st.one_of(st.none(), st.just(0.0), st.floats(0.001, 1e6))  # a nanosecond to a second


@st.composite
def drawn(draw: st.DrawFn) -> tuple[list[list[float | None]], list[float], list[float]]:
    """Draw the times of layers in passes, what is between them, and a latency loop."""
    layers = draw(st.integers(1, 6))
    passes = draw(st.lists(st.lists(TIMES, min_size=layers, max_size=layers), max_size=9))
    between = draw(st.lists(st.floats(0.001, 1e5), min_size=len(passes), max_size=len(passes)))
    return passes, between, draw(st.lists(st.floats(0.001, 1e3), max_size=12))


def write(path: Path, passes: list[list[float | None]], between: list[float],
          latencies: list[float]) -> None:  # fmt: skip
    path.unlink(missing_ok=True)
    with start_report(path) as report:
        report.add_latencies(latencies)
        layers = max(map(len, passes), default=0)
        for index in range(layers):
            report.add_layer(Layer(f"layer {index}", ("Conv", "Relu")[index % 2]))
        start = 0.0
        for number, times in enumerate(passes):
            made, at = [], start
            for index, time in enumerate(times):
                if time is not None:
                    made.append((index, at, time, time, "thread"))
                    at += time
            report.add_pass(number, start, at - start + between[number])
            report.add_samples(number, made)
            start = at + between[number]


@pytest.mark.broad
@settings(
    max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(drawn())
def test_drawn_reports(
    tmp_path: Path, one: tuple[list[list[float | None]], list[float], list[float]]
) -> None:
    path = tmp_path / "drawn.dldprof"
    write(path, *one)
    check(path)


MUTATIONS = (
    "UPDATE samples SET self_us = -5 WHERE pass = 1 AND layer = 0",
    "UPDATE samples SET self_us = 1e12 WHERE pass = 1 AND layer = 0",
)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_time_that_can_be_none_is_in_no_sum(mutation: str, tmp_path: Path) -> None:
    path = tmp_path / "r.dldprof"
    write(path, [[10.0, 20.0], [1000.0, 20.0], [12.0, 22.0]], [1.0, 1.0, 1.0], [0.04] * 5)
    database = sqlite3.connect(path)
    with database:
        database.execute(mutation)
    database.close()
    with Report.open(path) as report:
        document: Any = report_json(report)
        lines = told(report)
    assert document["layers_total_ms"] == pytest.approx(0.030)
    assert document["covered_percent"] == pytest.approx(100 * 30 / 31)
    assert sum("1 profiled pass without valid times of layers" in line for line in lines) == 1


@pytest.mark.parametrize("value", ["NULL", "-1", "-1e300"])
def test_a_latency_that_can_be_none_is_left_out(value: str, tmp_path: Path) -> None:
    path = tmp_path / "r.dldprof"
    write(path, [[1.0]], [0.0], [0.04, 0.05, 0.06])
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA ignore_check_constraints = 1")
        columns = "pass INTEGER PRIMARY KEY, ms REAL"
        database.execute("ALTER TABLE latencies RENAME TO old")
        database.execute(f"CREATE TABLE latencies ({columns})")
        database.execute("INSERT INTO latencies SELECT * FROM old")
        database.execute("DROP TABLE old")
        database.execute(f"UPDATE latencies SET ms = {value} WHERE pass = 1")
    database.close()
    with Report.open(path) as report:
        document: Any = report_json(report)
        lines = told(report)
    assert document["latency_ms"]["median"] == 0.05
    assert document["latency_ms"]["count"] == 2
    assert any("1 inference of the latency loop without a valid time" in line for line in lines)


def test_what_delays_another_layer_in_each_pass_is_in_no_figure(tmp_path: Path) -> None:
    layers = 10
    passes = [[100.0 if n == at else 1.0 for n in range(layers)] for at in range(layers)]
    path = tmp_path / "r.dldprof"
    write(path, [list(times) for times in passes], [1.0] * layers, [])
    with Report.open(path) as report:
        text = "\n".join(told(report))
        document: Any = report_json(report, "type")
    assert "Layers sum to 0.010 of 0.011 ms (90.9 % of an undisturbed pass" in text
    assert document["layers_total_ms"] == pytest.approx(0.010)
    assert [layer["time_ms"] for layer in document["layers"]] == [0.001] * layers
    assert document["order_certain"] is False
    assert "10 may be the slowest" in text


def _mutated_profile(tmp_path: Path, mutation: str) -> dict[str, Any]:
    """Return the report of a profile of ONNX Runtime in which one event was changed."""
    passes = [
        [kernel("a", "Conv", at + 10, 40), kernel("b", "Relu", at + 60, 20, index=1), run(at, 100)]
        for at in (0, 1000, 2000)
    ]
    one = passes[1]
    if mutation == "twice":
        one.insert(1, one[0])
    elif mutation == "run twice":
        one.append(one[-1])
    elif mutation == "missing":
        del one[0]["dur"]
    elif mutation == "not a number":
        one[0]["dur"] = "nan"
    else:
        one[0]["dur"] = {"negative": -40, "too long": 4000}[mutation]
    events = [event for found in passes for event in found]
    with open_report(write_profile(tmp_path / "p.json", events)) as report:
        document: Any = report_json(report)
        return {**document, "lines": told(report)}


@pytest.mark.parametrize(
    ("mutation", "line"),
    [
        ("twice", "1 event is in the profile twice"),
        ("run twice", "1 event is in the profile twice"),
        ("negative", "1 event could not be read"),
        ("missing", "1 event could not be read"),
        ("not a number", "1 event could not be read"),
        ("too long", "1 profiled pass without valid times of layers"),
    ],
)
def test_a_changed_event_makes_no_wrong_sum(mutation: str, line: str, tmp_path: Path) -> None:
    document = _mutated_profile(tmp_path, mutation)
    assert document["layers_total_ms"] == pytest.approx(0.06)
    assert document["covered_percent"] == pytest.approx(60)
    assert [layer["time_ms"] for layer in document["layers"]] == pytest.approx([0.04, 0.02])
    assert sum(line in text for text in document["lines"]) == 1
