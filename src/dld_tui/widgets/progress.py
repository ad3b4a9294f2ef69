"""How far a job is: stage, bar, rate and time left."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

from dld_tui.core import fmt
from dld_tui.core.events import Progress
from dld_tui.widgets.glyphs import bar
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Rows

_RATE_WINDOW_S = 5.0


class RateMeter:
    """How fast a stage goes, over its last seconds, and how long it will take."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._stage: tuple[str, str] | None = None
        self._points: deque[tuple[float, float]] = deque()

    def add(self, progress: Progress) -> None:
        """Note how far the stage is."""
        now = self._clock()
        if self._stage != (progress.stage, progress.unit):
            self._stage = (progress.stage, progress.unit)
            self._points.clear()
        self._points.append((now, progress.done))
        while len(self._points) > 2 and now - self._points[0][0] > _RATE_WINDOW_S:
            self._points.popleft()

    @property
    def rate(self) -> float | None:
        """Units a second, or None while it is not known."""
        if len(self._points) < 2:
            return None
        (start, first), (end, last) = self._points[0], self._points[-1]
        return (last - first) / (end - start) if end > start and last > first else None

    def left(self, progress: Progress) -> float | None:
        """Return the seconds that are left, or None while it is not known."""
        rate = self.rate
        if rate is None or progress.total is None:
            return None
        return max(0.0, progress.total - progress.done) / rate


class ProgressRows(Rows):
    """The stage, a bar in eighths of a cell, how much is done, the rate and the time left."""

    def __init__(self) -> None:
        super().__init__([[], []])
        self.progress: Progress | None = None
        self.meter = RateMeter()

    def show_progress(self, progress: Progress) -> None:
        """Show how far the job is."""
        self.meter.add(progress)
        self.progress = progress
        self.refresh()

    def content(self, width: int) -> list[list[Piece]]:
        """Return the row of the stage and the row of the bar."""
        progress = self.progress
        if progress is None:
            return [[("starting", "dim")], [(" " * width, "rest")]]
        figures = " · ".join(self._figures(progress))
        stage = progress.stage or "working"
        padding = max(2, width - len(stage) - len(figures))
        first: list[Piece] = [(stage, "strong"), (" " * padding, ""), (figures, "dim")]
        if not progress.total:
            return [first, [("·" * width, "faint")]]
        fraction = progress.done / progress.total
        percent = f" {min(100.0, 100 * fraction):3.0f} %"
        cells = max(1, width - len(percent))
        return [first, [(bar(fraction, cells), "bar"), (percent, "")]]

    def _figures(self, progress: Progress) -> list[str]:
        is_bytes = progress.unit in ("B", "bytes")

        def show(value: float) -> str:
            if is_bytes:
                return fmt.size(int(value))
            return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"

        done = show(progress.done)
        total = f" of {show(progress.total)}" if progress.total else ""
        unit = "" if is_bytes or not progress.unit else f" {progress.unit}"
        figures = [f"{done}{total}{unit}"]
        rate, left = self.meter.rate, self.meter.left(progress)
        if rate is not None and progress.unit != "s":
            figures.append(f"{fmt.size(int(rate)) if is_bytes else f'{rate:,.3g}'}/s")
        if left is not None and progress.done < (progress.total or 0):
            figures.append(f"{fmt.duration(left)} left")
        return figures
