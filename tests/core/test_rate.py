from __future__ import annotations

from dld_tui.core.events import Progress, RateMeter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def rate_of(meter: RateMeter) -> float | None:
    return meter.rate


def test_the_rate_is_that_of_the_last_seconds() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    assert rate_of(meter) is None
    for second in range(11):
        clock.now = float(second)
        # Ten a second at first, one a second at last.
        meter.add(Progress(min(second, 5) * 10 + max(0, second - 5), 100))
    assert rate_of(meter) == 1.0
    assert meter.left(Progress(55, 100)) == 45.0
    assert meter.left(Progress(55, None)) is None


def test_the_rate_of_slow_steps_is_that_of_the_last() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    for minute in range(3):
        clock.now = 60.0 * minute
        meter.add(Progress(6 * minute, 100))
    assert rate_of(meter) == 0.1


def test_another_stage_begins_anew() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    meter.add(Progress(0, 10, stage="load"))
    clock.now = 1.0
    meter.add(Progress(10, 10, stage="load"))
    assert rate_of(meter) == 10.0
    meter.add(Progress(0, 10, stage="run"))
    assert rate_of(meter) is None
