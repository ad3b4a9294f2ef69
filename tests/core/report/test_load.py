"""Load: figures against plain sums and Little's law, and where it saturates."""

from __future__ import annotations

import random
import statistics

import pytest

from dld_tui.core.report.load import (
    Requests,
    point_of,
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
    requests = queue_of(1, 1.0, 0.1, 5001)
    known = {}
    for count in (1, 49, 51, 499, 501, 4999, 5001):
        first = Requests(requests.arrived[:count], requests.begun[:count], requests.ended[:count])
        known[count] = sum(ms is not None for ms in point_of(1, None, first).latency_ms)
    assert known == {1: 1, 49: 1, 51: 2, 499: 2, 501: 3, 4999: 3, 5001: 4}


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
