"""How fast the stage of a job goes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import monotonic

from dld_tui.core.events import Progress

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
