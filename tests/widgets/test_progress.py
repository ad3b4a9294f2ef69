from __future__ import annotations

import re

import pytest

from dld_tui.core.events import Phase, Progress, RateMeter
from dld_tui.widgets.shell.progress import JobLine, ProgressRows, WorkPanel, big_digits
from tests.support.tui import HostApp, rows_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


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
        rows.show_progress(Progress(4_000_000, 4_000_000, "bytes", "Reading"))
        await pilot.pause()
        assert " left" not in rows_of(app)[0]
        rows.show_progress(Progress(7, None, "passes", "Warming up"))
        await pilot.pause()
        assert "7 passes" in rows_of(app)[0]


async def test_more_phases_than_rows_are_counted() -> None:
    rows = ProgressRows()
    app = HostApp(rows)
    phases = [Phase(f"phase {n}", n, 0, 1) for n in range(9)]
    async with app.run_test(size=(60, 12)) as pilot:
        rows.show_progress(Progress(1, 6, "steps", "Building engine", phases))
        await pilot.pause()
        drawn = rows_of(app)
        assert "phase 4" in drawn[6]
        assert drawn[7].startswith("… and 4 more")


async def test_it_says_what_runs_and_how_to_stop_it() -> None:
    line = JobLine("full \x1bcheck")
    async with HostApp(line).run_test():
        line.show_progress(Progress(0, None, stage="look\x07ing"))
        (row,) = line.content(80)
        text = "".join(piece[0] for piece in row)
        assert text.startswith(" full \\x1bcheck  look\\x07ing  ")
        assert text.endswith("Esc stops")

        line.show_progress(Progress(5, None, "s", "Comparing the values: it loads the model" * 3))
        (row,) = line.content(80)
        text = "".join(piece[0] for piece in row)
        assert len(text) == 80
        assert text.startswith(" full \\x1bcheck  …")
        assert re.search(r": it loads the model  \d+ ms  Esc stops$", text)

        line.stopping()
        (row,) = line.content(80)
        assert "".join(piece[0] for piece in row) == " full \\x1bcheck  stopping …"


def text_of(panel: WorkPanel, width: int = 80) -> str:
    return "\n".join("".join(text for text, _ in row) for row in panel.content(width))


def test_a_panel_says_what_and_how_far() -> None:
    panel = WorkPanel("Opening big [/x].onnx")
    assert "Opening big [/x].onnx" in text_of(panel)
    panel.report(500_000, 2_000_000)
    assert "25 %  500 kB of 2 MB" in text_of(panel)
    assert "█" in text_of(panel)
    # One row when docked.
    panel = WorkPanel("Saving x", classes="-line")
    panel.report(1, 2)
    assert text_of(panel) == " Saving x  50 %  1 B of 2 B  Esc stops"
    # An unknown total shows what is done.
    panel = WorkPanel("Working")
    panel.report(5000, 0)
    assert "5 kB" in text_of(panel)


@pytest.mark.parametrize("text", ["0123456789", "1,234.5", "–"])
def test_lines_are_of_one_width(text: str) -> None:
    lines = big_digits(text)
    assert lines is not None
    assert len({len(line) for line in lines}) == 1


def test_every_digit_looks_different() -> None:
    assert len({big_digits(digit) for digit in "0123456789"}) == 10


@pytest.mark.parametrize("text", ["", "12 ms", "²"])
def test_what_has_no_large_form_is_refused(text: str) -> None:
    assert big_digits(text) is None
