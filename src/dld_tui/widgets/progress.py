"""How far a job is: stage, bar, rate and time left."""

from __future__ import annotations

from rich.cells import cell_len

from dld_tui.core import fmt
from dld_tui.core.events import Progress
from dld_tui.core.rate import RateMeter
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON
from dld_tui.widgets import glyphs
from dld_tui.widgets.glyphs import bar
from dld_tui.widgets.line_source import Piece
from dld_tui.widgets.styled import Rows

_MOST_PHASES = 6
_DEEPEST = 8
_PHASE_CELLS = 12
"""Of the bar of a phase."""


class ProgressRows(Rows):
    """The stage, a bar in eighths of a cell, how much is done, the rate and the time left.

    Phases inside the stage are a tree below it. Their rows stay when they end, so that nothing
    below jumps.
    """

    def __init__(self) -> None:
        super().__init__([[], []])
        self.progress: Progress | None = None
        self._phase_rows = 0
        self.meter = RateMeter()

    def show_progress(self, progress: Progress) -> None:
        """Show how far the job is."""
        self.meter.add(progress)
        self.progress = progress
        rows = min(_MOST_PHASES, len(progress.phases))
        if rows > self._phase_rows:
            self._phase_rows = rows
            self.styles.height = 2 + rows
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
        phases = self._phases(progress, width)
        if not progress.total:
            return [first, [("·" * width, "faint")], *phases]
        fraction = progress.done / progress.total
        percent = f" {min(100.0, 100 * fraction):3.0f} %"
        cells = max(1, width - len(percent))
        return [first, [(bar(fraction, cells), "bar"), (percent, "")], *phases]

    def _phases(self, progress: Progress, width: int) -> list[list[Piece]]:
        """Return a row for each phase: its name by depth, how far it is, a small bar."""
        rows: list[list[Piece]] = []
        phases = [phase for phase in progress.phases if isinstance(phase, dict)]
        for phase in phases[: self._phase_rows]:
            done, total = _number(phase.get("done")), _number(phase.get("total"))
            figures = f"{done:,g} of {total:,g}" if total else f"{done:,g}"
            fraction = done / total if total else 0.0
            indent = "  " * min(int(_number(phase.get("depth"))), _DEEPEST)
            tail = f"  {figures:>14}  "
            room = max(8, width - len(indent) - len(tail) - _PHASE_CELLS - 2)
            name = clip(visible(str(phase.get("name", ""))), room)
            padding = " " * (room - cell_len(name))
            rows.append(
                [
                    (f"{indent}{glyphs.current().crumb} ", "guide"),
                    (f"{name}{padding}", ""),
                    (tail, "dim"),
                    (bar(fraction, _PHASE_CELLS), "bar"),
                ]
            )
        if len(phases) > self._phase_rows:
            more = len(phases) - self._phase_rows + 1
            rows[-1:] = [[(f"… and {more:,} more", "dim")]]
        return rows

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
        if progress.unit == "steps":  # of unequal length: a rate would mislead
            return figures
        rate, left = self.meter.rate, self.meter.left(progress)
        if rate is not None and progress.unit != "s":
            figures.append(f"{fmt.size(int(rate)) if is_bytes else f'{rate:,.3g}'}/s")
        if left is not None and progress.done < (progress.total or 0):
            figures.append(f"{fmt.duration(left)} left")
        return figures


def _number(value: JSON) -> float:
    """Return a number that another process sent, 0 for what is none."""
    return max(0.0, value) if isinstance(value, (int, float)) else 0.0
