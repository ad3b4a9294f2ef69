"""The keys of the timeline: going from span to span, zooming, panning, measuring."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.widgets.timescale import TimeScale

if TYPE_CHECKING:
    from textual.widget import Widget

    from dld_tui.widgets.timeline_model import Measure, Timeline

    class _Base(Widget):
        timeline: Timeline
        scale: TimeScale
        lane: int
        index: int
        top_lane: int
        anchor_us: float | None
        measured: Measure | None

        @property
        def lanes_seen(self) -> int: ...
        def key_at_cursor(self) -> int | None: ...
        def rescaled(self) -> None: ...
        def moved(self, old: tuple[int, int]) -> None: ...
        def measure_to_cursor(self, anchor_us: float) -> Measure: ...
else:
    _Base = object

_ZOOM = 1.6


class TimelineMoves(_Base):
    """A mixin: the actions of the timeline view."""

    def move_to(self, lane: int, index: int) -> None:
        """Put the cursor on a span and bring it into view."""
        if not (0 <= lane < len(self.timeline.lanes) and self.timeline.lanes[lane].starts):
            return
        before, old = self.key_at_cursor(), (self.lane, self.index)
        spans = self.timeline.lanes[lane]
        self.lane, self.index = lane, min(max(index, 0), len(spans) - 1)
        shown = self.scale.showing(spans.starts[self.index], spans.ends[self.index])
        if shown != self.scale:
            self.scale = shown
            self.rescaled()
        self.show_lane()
        self.moved(old)
        key = self.key_at_cursor()
        if key is not None and key != before:
            self.post_message(self.CursorMoved(self, key))  # type: ignore[attr-defined]

    def show_lane(self) -> None:
        """Scroll the lanes so that the cursor's one is seen."""
        seen = self.lanes_seen
        last = max(len(self.timeline.lanes) - seen, 0)
        top = min(max(self.top_lane, self.lane - seen + 1), self.lane, last)
        if top != self.top_lane:
            self.top_lane = top
            self.refresh()

    def action_previous_span(self) -> None:
        """Go to what ran before in this lane."""
        self.move_to(self.lane, self.index - 1)

    def action_next_span(self) -> None:
        """Go to what ran next in this lane."""
        self.move_to(self.lane, self.index + 1)

    def action_lane_up(self) -> None:
        """Go to the lane above: the parent, or another thread."""
        self._change_lane(-1)

    def action_lane_down(self) -> None:
        """Go to the lane below: the body, or another thread."""
        self._change_lane(1)

    def _change_lane(self, step: int) -> None:
        lanes = self.timeline.lanes
        target = self.lane + step
        if not 0 <= target < len(lanes) or not lanes[self.lane].starts:
            return
        here = lanes[self.lane]
        start, end = here.starts[self.index], here.ends[self.index]
        inside = lanes[target].between(start, end) if step > 0 else range(0)
        found = inside[0] if inside else lanes[target].nearest((start + end) / 2)
        if found is not None:
            self.move_to(target, found)

    def action_cross(self) -> None:
        """Go from a layer to its kernel on the GPU, or from a kernel to the layer's launch."""
        key = self.key_at_cursor()
        if key is None:
            return
        on_gpu = self.timeline.lanes[self.lane].gpu
        place = self.timeline.find_launch(key) if on_gpu else self.timeline.find_kernel(key)
        if place is not None:
            self.move_to(*place)
        else:
            what = "The layer's launch" if on_gpu else "A kernel of this layer"
            self.notify(f"{what} is not in this pass", timeout=3)

    def action_first_span(self) -> None:
        """Go to the first span of the lane."""
        self.move_to(self.lane, 0)

    def action_last_span(self) -> None:
        """Go to the last span of the lane."""
        if self.timeline.lanes:
            self.move_to(self.lane, len(self.timeline.lanes[self.lane]) - 1)

    def action_zoom_in(self) -> None:
        """Show less time, larger, round the cursor."""
        self._zoom(_ZOOM)

    def action_zoom_out(self) -> None:
        """Show more time."""
        self._zoom(1 / _ZOOM)

    def action_zoom_reset(self) -> None:
        """Show the whole pass."""
        self._rescale(TimeScale.fit(self.timeline.total_us, self.scale.cells))

    def _zoom(self, factor: float) -> None:
        lanes = self.timeline.lanes
        about = None
        if lanes and lanes[self.lane].starts:
            lane = lanes[self.lane]
            middle = (lane.starts[self.index] + lane.ends[self.index]) / 2
            if self.scale.offset_us <= middle <= self.scale.end_us:
                about = middle
        self._rescale(self.scale.zoomed(factor, about))

    def action_pan(self, direction: str) -> None:
        """Move the window: ``left`` and ``right`` by a fifth, ``page_…`` by four fifths."""
        part = 0.8 if direction.startswith("page") else 0.2
        step = self.scale.cells * part
        self._rescale(self.scale.panned(-step if direction.endswith("left") else step))

    def _rescale(self, scale: TimeScale) -> None:
        if scale != self.scale:
            self.scale = scale
            self.rescaled()

    def action_measure(self) -> None:
        """Set the first mark, then the second, then forget them."""
        lanes = self.timeline.lanes
        if not lanes or not lanes[self.lane].starts:
            return
        if self.measured is not None:
            self.anchor_us = self.measured = None
        elif self.anchor_us is None:
            self.anchor_us = lanes[self.lane].starts[self.index]
        else:
            self.measured = self.measure_to_cursor(self.anchor_us)
        self.refresh()

    def clear_measure(self) -> bool:
        """Forget the marks; False when there were none."""
        had = self.anchor_us is not None
        self.anchor_us = self.measured = None
        if had:
            self.refresh()
        return had

    def action_activate(self) -> None:
        """Say that the cursor's span was chosen."""
        key = self.key_at_cursor()
        if key is not None:
            self.post_message(self.Activated(self, key))  # type: ignore[attr-defined]
