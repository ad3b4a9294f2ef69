from __future__ import annotations

import pytest

from dld_tui.core.report.gpu_kernels import (
    Activity,
    ActivityLog,
    LayerSpan,
    NamedRange,
    PassSpan,
    attribute,
    spans_of_ranges,
)
from dld_tui.core.report.records import GpuEvent

ORIGIN = 1_700_000_000_000_000_000
"""Nanoseconds of the Unix epoch at which profiling began; a float could not tell microseconds."""


def log_of(*kernels: tuple[float, float, float]) -> ActivityLog:
    """Return kernels of (launched, started, duration) in microseconds since the origin."""
    log = ActivityLog()
    for number, (launched, started, duration) in enumerate(kernels):
        log.launched(number, ORIGIN + round(1000 * launched))
        start = ORIGIN + round(1000 * started)
        end = start + round(1000 * duration)
        log.work.append(Activity("kernel", f"k{number}", start, end, number, "stream 7"))
    return log


def one_pass(*layers: tuple[int, float, float]) -> list[PassSpan]:
    return [PassSpan(0, 100.0, 100.0, [LayerSpan(*layer) for layer in layers])]


def layers_of(log: ActivityLog, passes: list[PassSpan]) -> list[int | None]:
    found = attribute(log, ORIGIN, passes)
    return [event.layer for events in found.events.values() for event in events]


def test_a_kernel_belongs_to_the_layer_that_launched_it_not_to_the_one_that_runs() -> None:
    # Launched by layer 4, it runs when the CPU is long at layer 5, and after the pass, too.
    found = attribute(log_of((112, 160, 75)), ORIGIN, one_pass((4, 110, 10), (5, 120, 60)))

    assert found.events == {0: [GpuEvent("stream 7", "kernel", "k0", 60.0, 75.0, 4)]}


@pytest.mark.parametrize(
    ("launched", "layer"),
    [(110.0, 4), (120.4, 4), (121.9, 4), (124.0, None), (130.0, 5), (105.0, None), (109.9, None)],
)
def test_edges_allow_for_times_cut_to_microseconds(launched: float, layer: int | None) -> None:
    passes = one_pass((4, 110, 10), (5, 130, 10))

    assert layers_of(log_of((launched, 150, 1)), passes) == [layer]


def test_a_kernel_without_a_known_call_is_in_its_pass_but_of_no_layer() -> None:
    log = log_of((112, 115, 3))
    log.launches.clear()

    assert layers_of(log, one_pass((4, 110, 10))) == [None]
    assert attribute(log, ORIGIN, []).outside.count == 1


def test_of_nested_calls_the_earlier_one_counts() -> None:
    log = ActivityLog()
    for start in (20, 10, 30):
        log.launched(1, start)

    assert log.launches == {1: 10}


def test_ranges_on_the_cpu_name_the_layers_of_kernels() -> None:
    origin = 1_000_000
    passes = [PassSpan(0, 0.0, 100.0, ()), PassSpan(1, 200.0, 100.0, ())]
    layers = [("conv", 7), ("myelin", 8), ("conv", 9)]

    def named(name: str, start_us: float, end_us: float) -> NamedRange:
        return NamedRange(name, origin + int(1000 * start_us), origin + int(1000 * end_us))

    ranges = [
        named("enqueue", 0, 99),
        *(
            named(name, base + start, base + end)
            for base in (0, 200)
            for name, start, end in (("conv", 1, 9), ("myelin", 10, 40), ("inner", 12, 20),
                                     ("conv", 50, 60), ("conv", 70, 80))
        ),
    ]  # fmt: skip
    spans = spans_of_ranges(passes, ranges, layers, origin)
    assert [[one.layer for one in span.layers] for span in spans] == [[7, 8, 9], [7, 8, 9]]
    log = ActivityLog()
    for number, launched_us in enumerate((2, 15, 55, 75, 230, 290), start=1):
        start = origin + 1000 * launched_us
        log.launched(number, start)
        log.work.append(Activity("kernel", f"k{number}", start + 500, start + 1500, number, "s"))
    found = attribute(log, origin, spans)
    assert [event.layer for event in found.events[0]] == [7, 8, 9, None]
    assert [event.layer for event in found.events[1]] == [8, None]
    assert (found.given.count, found.unclaimed.count, found.outside.count) == (4, 2, 0)
    assert found.missing_us == 0


def test_without_ranges_no_layer_is_told() -> None:
    passes = [PassSpan(0, 0.0, 100.0, ())]
    assert spans_of_ranges(passes, [], [("conv", 1)], 0) == [PassSpan(0, 0.0, 100.0, [])]
