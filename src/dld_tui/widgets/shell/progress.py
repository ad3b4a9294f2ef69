"""Long work on a page: its progress in a panel or a line, and work on a thread that Esc stops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from rich.cells import cell_len

from dld_tui.core import fmt
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback
from dld_tui.widgets.lists.styled import Piece, Rows
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.glyphs import bar
from dld_tui.widgets.shell.page import Page, host

if TYPE_CHECKING:
    from dld_tui.core.events import Progress


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
        from dld_tui.core.events import RateMeter

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
        percent = f"{fmt.progress(progress.done, progress.total):>6}"
        cells = max(1, width - len(percent))
        return [first, [(bar(fraction, cells), "bar"), (percent, "")], *phases]

    def _phases(self, progress: Progress, width: int) -> list[list[Piece]]:
        """Return a row for each phase: its name by depth, how far it is, a small bar."""
        rows: list[list[Piece]] = []
        phases = progress.phases
        for phase in phases[: self._phase_rows]:
            done, total = phase.done, phase.total
            figures = f"{done:,g} of {total:,g}" if total else f"{done:,g}"
            fraction = done / total if total else 0.0
            indent = "  " * min(phase.depth, _DEEPEST)
            tail = f"  {figures:>14}  "
            room = max(8, width - len(indent) - len(tail) - _PHASE_CELLS - 2)
            name = clip(visible(phase.name), room)
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


_BAR_CELLS = 40
_SETTLED_S = 0.5
"""A rate is shown after so many seconds."""


class WorkPanel(Rows):
    """Three rows in the middle of the room, or one row when it is docked at an edge."""

    def __init__(self, title: str, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._title = title
        self._done = self._total = 0
        self._begun = monotonic()

    def report(self, done: int, total: int) -> None:
        """Show how many bytes are done, of how many; total 0 is unknown."""
        self._done, self._total = done, total
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        cells = min(_BAR_CELLS, max(10, width - 4))
        title = clip(visible(self._title), width)
        if self.has_class("-line"):
            tail = f"  {self._figures()}  {hint('{work.stop} stops')}"
            return [[(" " + clip(title, width // 2), "strong"), (tail, "dim")]]
        bar: list[Piece] = []
        if self._total:
            full = glyphs.bar(self._done / self._total, cells)
            blank = len(full) - len(full.rstrip())
            bar = [(full.rstrip(), "bar"), (glyphs.current().rest * blank, "rest")]
        figures: list[Piece] = [(self._figures(), "dim")]
        return [[(title, "strong")], [], bar, figures, [], [(hint("{work.stop} stops"), "dim")]]

    def _figures(self) -> str:
        if not self._total:
            return "reading …" if not self._done else fmt.size(self._done)
        sizes = f"{fmt.size(self._done)} of {fmt.size(self._total)}"
        parts = [fmt.progress(self._done, self._total), sizes]
        passed = monotonic() - self._begun
        if passed > _SETTLED_S and self._done:
            rate = self._done / passed
            parts.append(f"{fmt.size(int(rate))}/s")
            parts.append(f"{fmt.duration((self._total - self._done) / rate)} left")
        return "  ".join(parts)


class WorkLine(WorkPanel):
    """One row above the keys: what runs and the part of it that is done."""

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        title = clip(visible(self._title), width // 2)
        percent = f"{fmt.progress(self._done, self._total)}  " if self._done and self._total else ""
        return [[(f" {title} …  ", "strong"), (f"{percent}{hint('{work.stop} stops')}", "dim")]]


class JobLine(Rows):
    """The row."""

    def __init__(self, title: str) -> None:
        super().__init__()
        self._title = title
        self._stage = ""
        self._begun = monotonic()
        self._stopping = False

    def on_mount(self) -> None:
        """Count the seconds."""
        self.set_interval(1.0, self.refresh)

    def show_progress(self, event: Progress) -> None:
        """Show what the job does now."""
        self._stage = visible(event.stage)
        self.refresh()

    def stopping(self) -> None:
        """Show that it was asked to stop."""
        self._stopping = True
        self.refresh()

    def content(self, width: int) -> Sequence[Sequence[Piece]]:
        title = clip(visible(self._title), width // 2)
        passed = fmt.duration(monotonic() - self._begun)
        if self._stopping:
            return [[(f" {title}", "strong"), ("  stopping …", "dim")]]
        tail = f"  {passed}{hint('  {work.stop} stops')}"
        # A long stage leaves room for the way to stop it.
        room = width - cell_len(f" {title}  {tail}")
        stage = clip(self._stage, room, keep="end")
        return [[(f" {title}", "strong"), (f"  {stage}{tail}" if stage else tail, "dim")]]


_GLYPHS = {
    "0": ("█▀█", "█ █", "▀▀▀"),
    "1": ("▄█ ", " █ ", "▀▀▀"),
    "2": ("▀▀█", "█▀▀", "▀▀▀"),
    "3": ("▀▀█", " ▀█", "▀▀▀"),
    "4": ("█ █", "▀▀█", "  ▀"),
    "5": ("█▀▀", "▀▀█", "▀▀▀"),
    "6": ("█▀▀", "█▀█", "▀▀▀"),
    "7": ("▀▀█", "  █", "  ▀"),
    "8": ("█▀█", "█▀█", "▀▀▀"),
    "9": ("█▀█", "▀▀█", "▀▀▀"),
    ".": (" ", " ", "▀"),
    ",": (" ", " ", "▄"),
    "–": ("  ", "▀▀", "  "),
    "-": ("  ", "▀▀", "  "),
    " ": (" ", " ", " "),
}


def big_digits(text: str) -> tuple[str, str, str] | None:
    """Return a number as three lines, or None when a character has no large form."""
    if not text or any(char not in _GLYPHS for char in text):
        return None
    top, middle, bottom = (" ".join(_GLYPHS[char][row] for char in text) for row in range(3))
    return top, middle, bottom


class Work:
    """Runs work on a thread for a page.

    Args:
        page: It shows how far the work is.
    """

    def __init__(self, page: Page) -> None:
        self._page = page

    @property
    def is_running(self) -> bool:
        """Whether a thread may be editing, reading or writing the model."""
        return self._page.tasks.is_working

    def run(
        self,
        title: str,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        *,
        panel: WorkPanel | None = None,
        after_close: bool = False,
    ) -> None:
        """Run something long on a thread.

        Args:
            title: What it is: untrusted text.
            task: Called on the thread.
            done: Called on the event loop afterwards, with the error when there was one.
            panel: Shows how far it is; by default one row above the keys.
            after_close: Call `done` also when the page has been closed meanwhile.
        """
        panel = panel or WorkPanel(title, classes="-line")
        # Of the app: the page itself may be gone before the thread is.
        work = self._run(task, done, panel, after_close)
        host(self._page).tasks.start(work, "work", name=title)

    async def _run(
        self,
        task: Callable[[ProgressCallback, CancelCheck], None],
        done: Callable[[DldError | None], None],
        panel: WorkPanel,
        after_close: bool,
    ) -> None:
        page = self._page
        page.mount(panel, before="KeyBar")
        failure: DldError | None = CancelledError()
        try:
            await page.tasks.work(task, panel.report)
            failure = None
        except DldError as error:
            failure = error
        finally:
            if panel.is_attached:
                panel.remove()
            if after_close or page.is_attached:
                done(failure)

    def cancel(self) -> bool:
        """Ask the running work to stop; False when nothing runs."""
        return self._page.tasks.cancel_work()
