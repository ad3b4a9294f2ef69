"""Figures of a GPU against a second computation: from the raw rows, microsecond by microsecond."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dld_tui.core.report.gpu_kernels import gpu_summary
from dld_tui.core.report.records import GpuEvent, Layer
from dld_tui.core.report.report import Report
from tests.oracles import plain
from tests.support.gpu_reports import CUDA, gpu_writer

LAYERS = 3
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["kernel", "kernel", "memcpy", "overhead"]),
        st.integers(0, 2),  # stream
        st.integers(0, 60),
        st.integers(1, 40),
        st.sampled_from([None, 0, 1, 2]),
    ),
    max_size=8,
)
RUNS = st.fixed_dictionaries(
    {
        "alone": st.lists(EVENTS, max_size=4),
        "profiled": st.lists(EVENTS, min_size=1, max_size=3),
        "latency_us": st.one_of(st.none(), st.integers(20, 200)),
        "named": st.booleans(),
    }
)


def write(path: Path, run: dict[str, Any]) -> None:
    with gpu_writer(path) as report:
        for index in range(LAYERS):
            report.add_layer(Layer(f"layer {index}", "Conv", provider=CUDA))
        if run["latency_us"] is not None:
            report.add_latencies([run["latency_us"] / 1000] * 3)
        passes = [(one, "measured") for one in run["profiled"]]
        passes += [(one, "kernels alone") for one in run["alone"]]
        for number, (events, state) in enumerate(passes):
            report.add_pass(number, 1000.0 * number, 100.0 + number, state)  # type: ignore[arg-type]
            if state == "measured":
                report.add_samples(number, [(0, 1000.0 * number, 5.0, 5.0, 1)])
            named = state == "measured" or run["named"]
            report.add_gpu_events(
                number,
                [
                    GpuEvent(f"s{stream}", kind, "k", start, took, layer if named else None)
                    for kind, stream, start, took, layer in events
                ],
            )


def moments(events: list[tuple[Any, ...]], kinds: tuple[str, ...]) -> int:
    """Return in how many microseconds any event of some kinds was running."""
    return len({
        at for kind, start, took, _ in events if kind in kinds
        for at in range(int(start), int(start + took))
    })  # fmt: skip


@pytest.mark.broad
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(run=RUNS)
def test_busy_time_gaps_and_layers(run: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "r.dldprof"
    path.unlink(missing_ok=True)
    write(path, run)
    with Report.open(path) as report:
        found, times = gpu_summary(report), [layer.gpu_time_ms for layer in report.layers]
        shares = [layer.percent for layer in report.layers]
        latency = report.latency

    states = dict(plain.rows(path, "SELECT pass, state FROM passes"))
    lengths = dict(plain.rows(path, "SELECT pass, duration_us FROM passes"))
    by_pass: dict[int, list[tuple[Any, ...]]] = {number: [] for number in states}
    sql = "SELECT pass, kind, start_us, duration_us, layer FROM gpu_events"
    for number, *event in plain.rows(path, sql):
        by_pass[number].append(tuple(event))
    alone = [number for number in states if states[number] == "kernels alone"]
    chosen = alone or [number for number in states if states[number] == "measured"]
    worked = [
        events for number in chosen
        if moments(events := by_pass[number], ("kernel", "memcpy"))
    ]  # fmt: skip

    if not worked:
        assert found is None
    else:
        assert found is not None
        assert found.passes == len(worked)
        busy = statistics.median(moments(one, ("kernel",)) for one in worked)
        either = statistics.median(moments(one, ("kernel", "memcpy")) for one in worked)
        assert found.busy_us == pytest.approx(busy)
        recorded = statistics.median(
            max([lengths[n], *(e[1] + e[2] for e in by_pass[n] if e[0] in ("kernel", "memcpy"))])
            for n in chosen
            if by_pass[n] in worked
        )
        length = recorded
        if alone and run["latency_us"] is not None:
            length = max(run["latency_us"], either)
            assert latency is not None
        assert found.length_us == pytest.approx(length)
        slowed = recorded / length if alone and recorded != length else None
        assert found.slowed_by == (None if slowed is None else pytest.approx(slowed))
        assert found.gaps_us == pytest.approx(max(length - either, 0))
        sums = [sum(e[2] for e in one if e[0] == "kernel") for one in worked]
        assert found.kernel_sum_us == pytest.approx(statistics.median(sums))

    named = [n for n in alone if any(e[0] == "kernel" and e[3] is not None for e in by_pass[n])]
    counted = named or [number for number in states if states[number] == "measured"]
    expected: list[float | None] = []
    ran = [n for n in counted if any(e[0] == "kernel" and e[3] is not None for e in by_pass[n])]
    for layer in range(LAYERS):
        own = [[e[2] for e in by_pass[n] if e[0] == "kernel" and e[3] == layer] for n in counted]
        sums = [sum(durations) / 1000 for durations in own if durations]
        part = len(sums) / len(ran) if ran else 0.0
        expected.append(plain.least_quarter(sums) * part if sums else None)
    assert times == [time if time is None else pytest.approx(time) for time in expected]
    total = sum(time or 0 for time in expected)
    if total:
        assert shares == [
            None if time is None else pytest.approx(100 * time / total) for time in expected
        ]
