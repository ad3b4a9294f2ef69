"""Load: figures against plain sums and Little's law, and where it saturates."""

from __future__ import annotations

import random
import statistics
from dataclasses import replace

import pytest

from dld_tui.core.codec import decode, encode
from dld_tui.core.report.load import (
    LoadPoint,
    LoadResult,
    Requests,
    load_table,
    point_of,
    saturation,
)


def queue_of(clients: int, rate: float, service_s: float, count: int) -> Requests:
    """Return requests that wait for the first free of some clients, by a plain simulation."""
    drawn, free = random.Random(3), [0.0] * clients
    arrived, begun, ended, now = [], [], [], 0.0
    for _ in range(count):
        now += drawn.expovariate(rate)
        first = min(range(clients), key=free.__getitem__)
        begin = max(now, free[first])
        free[first] = begin + service_s
        arrived.append(now)
        begun.append(begin)
        ended.append(free[first])
    return Requests(tuple(arrived), tuple(begun), tuple(ended))


def test_figures_are_those_of_a_plain_sum_and_little_holds() -> None:
    requests = queue_of(2, 15.0, 0.1, 4000)
    point = point_of(2, 15.0, requests)
    latencies = [e - a for a, e in zip(requests.arrived, requests.ended, strict=True)]
    assert point.throughput is not None
    assert point.queue_ms is not None
    assert point.compute_ms == pytest.approx(100.0)
    assert point.queue_ms + 100.0 == pytest.approx(1000 * statistics.fmean(latencies))
    assert point.latency_ms[0] == pytest.approx(1000 * statistics.median(latencies))
    ninety_nine = 1000 * statistics.quantiles(latencies, n=100)[98]
    assert point.latency_ms[2] == pytest.approx(ninety_nine, rel=0.02)
    # Requests in the system: counted at many times, and rate times latency.
    times = [point.seconds * at / 5000 for at in range(5000)]
    inside = statistics.fmean(
        sum(a <= t < e for a, e in zip(requests.arrived, requests.ended, strict=True))
        for t in times[::50]
    )
    assert inside == pytest.approx(point.throughput * statistics.fmean(latencies), rel=0.2)


def test_percentiles_of_few_requests_are_unknown() -> None:
    point = point_of(1, None, queue_of(1, 1.0, 0.1, 60))
    assert point.latency_ms[1] is not None
    assert point.latency_ms[2:] == (None, None)


def result(*points: LoadPoint) -> LoadResult:
    return LoadResult("m.onnx", "ONNX Runtime", 1, points)


def closed(clients: int, rate: float) -> LoadPoint:
    return LoadPoint(clients, None, 10, 1.0, rate, (1.0, 1.0, None, None), 0.0, 0.0)


def opened(offered: float, answered: float) -> LoadPoint:
    return LoadPoint(4, offered, 10, 10 / answered, answered, (1.0, 1.0, None, None), 0.0, 0.0)


@pytest.mark.parametrize(
    ("points", "said"),
    [
        ([closed(1, 10), closed(2, 19), closed(4, 20), closed(8, 20)], "Saturated from 2 clients"),
        ([closed(1, 10), closed(2, 20)], "No saturation up to 2 clients: 20 requests/s at most."),
        ([closed(1, 10)], ""),
        ([opened(10, 10), opened(20, 19.5), opened(40, 22)],
         "It keeps up with 20 requests/s, not with 40: 22 requests/s at most."),
        ([opened(10, 10)], "It keeps up with 10 requests/s."),
        ([opened(10, 5), opened(20, 5)], "It does not keep up with 10: 5 requests/s at most."),
        ([LoadPoint(1, problem="no")], ""),
    ],
)  # fmt: skip
def test_where_it_saturates(points: list[LoadPoint], said: str) -> None:
    assert saturation(result(*points)).startswith(said)
    found = result(*points)
    assert decode(LoadResult, encode(found)) == found
    assert len(load_table(found)) == len(points)


@pytest.mark.parametrize("slowed", [1.0, 3.0])
def test_the_interval_holds_the_rate_of_a_machine_that_others_disturb(slowed: float) -> None:
    """Services take longer for a while, and then do not: single requests are not independent."""
    drawn, held = random.Random(5), 0
    for _ in range(400):
        ended, now = [], 0.0
        while now < 5.0:
            factor = drawn.choice((1.0, slowed))
            for _ in range(drawn.randrange(1, 20)):
                now += factor * drawn.expovariate(100.0)
                ended.append(now)
        point = point_of(1, None, Requests(tuple(ended), tuple(ended), tuple(ended)))
        low, high = point.range
        assert point.throughput is not None
        assert low <= point.throughput <= high
        held += low <= 100.0 / ((1.0 + slowed) / 2) <= high
    assert held > 0.85 * 400


def test_few_requests_have_no_interval() -> None:
    point = point_of(1, None, queue_of(1, 1.0, 0.1, 19))
    assert point.throughput_low is None
    assert " to " not in point.range_text


def test_a_saturation_that_intervals_do_not_show_is_not_certain() -> None:
    def of(clients: int, rate: float, by: float) -> LoadPoint:
        ends = {"throughput_low": rate - by, "throughput_high": rate + by}
        return replace(closed(clients, rate), **ends)  # type: ignore[arg-type]

    sure = saturation(result(of(1, 10, 1), of(2, 20, 0.2), of(4, 20, 0.2)))
    assert sure == (
        "Saturated from 2 clients on: 20 requests/s at most (19.8 to 20.2); more clients wait"
        " longer."
    )
    assert "on (not certain): 20" in saturation(result(of(1, 18, 3), of(2, 20, 0), of(4, 19, 0)))
    assert "up to 2 clients (not certain)" in saturation(result(of(1, 18, 3), of(2, 20, 1)))
    assert "not with 40 (not certain): 37 " in saturation(
        result(opened(20, 20), replace(opened(40, 37), throughput_low=34, throughput_high=39))
    )
