from __future__ import annotations

from dld_tui.core.events import Progress
from dld_tui.widgets.progress import ProgressRows, RateMeter
from tests.support.tui import HostApp, rows_of


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


def test_another_stage_begins_anew() -> None:
    clock = Clock()
    meter = RateMeter(clock)
    meter.add(Progress(0, 10, stage="load"))
    clock.now = 1.0
    meter.add(Progress(10, 10, stage="load"))
    assert rate_of(meter) == 10.0
    meter.add(Progress(0, 10, stage="run"))
    assert rate_of(meter) is None


async def test_a_bar_with_figures() -> None:
    rows = ProgressRows()
    clock = Clock()
    rows.meter = RateMeter(clock)
    app = HostApp(rows)
    async with app.run_test(size=(60, 6)) as pilot:
        assert rows_of(app)[0].startswith("starting")
        rows.show_progress(Progress(0, 4_000_000, "bytes", "Reading"))
        clock.now = 1.0
        rows.show_progress(Progress(1_000_000, 4_000_000, "bytes", "Reading"))
        await pilot.pause()
        drawn = rows_of(app)
        assert drawn[0].startswith("Reading")
        assert drawn[0].rstrip().endswith("1 MB of 4 MB · 1 MB/s · 3.0 s left")
        assert drawn[1].rstrip().endswith(" 25 %")
        assert drawn[1].count("█") == (60 - 6) // 4
        rows.show_progress(Progress(7, None, "passes", "Warming up"))
        await pilot.pause()
        assert "7 passes" in rows_of(app)[0]
