"""A view of bars, or of a chart between axes with a cursor on what it shows."""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.strip import Strip

from dld_tui.widgets.charts.plots import Picture
from dld_tui.widgets.lists.line_source import LineSource, ListSource
from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.tasks import Tasks, on_thread, task


class ChartView(LineView):
    """Lines that a cursor goes through, or a chart with a cursor of its own."""

    picture: Picture | None = None
    """The chart between axes that is shown."""
    spot = 0
    """Where its cursor is."""

    _chart: tuple[str, Callable[[int, int], Picture]] | None = None
    _room = (0, 0)

    def __init__(self, *, empty: str = "", gutter: bool = True, id: str | None = None) -> None:
        super().__init__(empty=empty, gutter=gutter, id=id)
        self.tasks = Tasks(self)

    def show_chart(self, name: str, draw: Callable[[int, int], Picture]) -> None:
        """Draw a chart for the room that there is, and again whenever that is another.

        Args:
            name: Of the chart: with the same one the cursor stays.
            draw: Makes it for a width and a height in cells; runs on a thread.
        """
        if self._chart is None or self._chart[0] != name:
            self.spot, self.picture = 0, None
            self.set_lines(ListSource([[("Drawing …", "dim")]]))
        self._chart, self._room = (name, draw), (0, 0)
        self._draw_again()

    def show_bars(self, source: LineSource) -> None:
        """Show lines that a cursor goes through."""
        self._chart = self.picture = None
        self.set_lines(source)

    def on_resize(self) -> None:
        """Draw for the new size."""
        super().on_resize()
        self.call_after_refresh(self._draw_again)

    def _draw_again(self) -> None:
        room = self.size.width - self._gutter_cells, self.size.height
        if self._chart is not None and room != self._room and min(room) > 0:
            self._room = room
            self._draw(*room)

    @task("chart", replace=True)
    async def _draw(self, width: int, height: int) -> None:
        wanted = self._chart
        assert wanted is not None
        picture = await on_thread(wanted[1], width, height)
        if self._chart == wanted:
            self.picture = picture
            self.go_to_spot(self.spot)

    def go_to_spot(self, at: int) -> None:
        """Put the cursor of a chart on one of its spots, or the nearest that there is."""
        if self.picture is None:
            return
        self.spot = max(0, min(at, len(self.picture.spots) - 1))
        self.set_lines(ListSource(self.picture.with_cursor(self.spot)))

    def step(self, rows: int) -> None:
        """Move by some rows, or spots."""
        if self.picture is None:
            super().step(rows)
        else:
            # Home and End go by the number of lines, which may be less than that of the spots.
            is_end = abs(rows) >= len(self.lines)
            self.go_to_spot(self.spot + rows * (len(self.picture.spots) if is_end else 1))

    def step_page(self, way: int) -> None:
        """Move by a page, or by a tenth of the spots."""
        if self.picture is None:
            super().step_page(way)
        else:
            self.go_to_spot(self.spot + way * max(len(self.picture.spots) // 10, 1))

    def go_left(self) -> None:
        """Go to the spot before."""
        self.go_to_spot(self.spot - 1)

    def go_right(self) -> None:
        """Go to the next spot."""
        self.go_to_spot(self.spot + 1)

    def activate(self) -> None:
        """Say which row or spot was chosen."""
        if self.picture is None:
            super().activate()
        elif self.picture.spots:
            key = self.picture.spots[self.spot].key
            self.post_message(self.Activated(self, self.spot, key))

    def on_click(self, event: events.Click) -> None:
        """Move to the row or the nearest spot; twice opens it."""
        offset = event.get_content_offset(self)
        if self.picture is None or offset is None:
            return super().on_click(event)
        row = offset.y + self.scroll_offset.y
        at = self.picture.nearest(offset.x - self._gutter_cells, row)
        if at is not None:
            self.go_to_spot(at)
        if event.chain == 2:
            self.activate()
        event.stop()
        return None

    def _row(self, index: int, width: int) -> Strip:
        if self.picture is None or index >= len(self.lines):
            return super()._row(index, width)
        # The cursor of a chart is in the chart, not on a row.
        return self._strip(self.lines.line(index, width - self._gutter_cells), width, ())
