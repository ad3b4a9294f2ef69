"""Which overlay the graph pane shows, and what others there are: found on a thread if large."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dld_tui.widgets.graph_notes import GraphNotes
from dld_tui.widgets.graph_overlays import Overlay, overlays
from dld_tui.widgets.graph_viewed import ViewedGraph
from dld_tui.widgets.line_view import LineView

if TYPE_CHECKING:
    from textual.containers import Vertical

    _Base = Vertical
else:
    _Base = object

AT_ONCE = 1_000
"""Vertices of the largest graph whose overlays are made between two key presses."""
AskTimes = Callable[[], "tuple[Mapping[Any, float], str]"]
"""Returns milliseconds by node or layer, and which report they are from; empty without a report.
Called on a thread where the graph is large."""


class Colours(_Base):
    """The part of the graph pane that says what the colours mean."""

    model: ViewedGraph | None
    notes: GraphNotes | None
    list: LineView

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.ask_times: AskTimes = lambda: ({}, "")
        self.ask_errors: AskTimes = lambda: ({}, "")
        """The same, of errors relative to the values, from a comparison of results."""
        self._overlay = Overlay()
        self._overlay_name = Overlay.name

    @property
    def cursor_vertex(self) -> int:
        """The vertex under the cursor."""
        raise NotImplementedError

    def show_view(self, vertex: int) -> None:
        """Show the present view with the cursor on a vertex."""
        raise NotImplementedError

    def overlays(self) -> Sequence[Overlay]:
        """Return what the colours can say now."""
        if self.model is None or self.notes is None:
            return [Overlay()]
        return overlays(self.model, self.notes, *self.ask_times(), self.ask_errors())

    def weighed(self) -> None:
        """Show the sizes of the weights, which are known now."""
        before = self._overlay
        self.find_overlay()
        if self._overlay is not before:
            self.show_view(self.cursor_vertex)
        self.list.invalidate()

    def find_overlay(self) -> None:
        """Take the overlay that was chosen, of this graph, where it has something to say."""
        self._overlay = Overlay()
        if self._overlay_name == Overlay.name:
            return
        is_large = self._is_large

        def take(found: Sequence[Overlay]) -> None:
            same = (overlay for overlay in found if overlay.name == self._overlay_name)
            self._overlay = next(same, self._overlay)
            if is_large:
                self.show_view(self.cursor_vertex)

        self._with_overlays(take)

    def next_overlay(self) -> None:
        """Let the colours say the next thing."""

        def take(found: Sequence[Overlay]) -> None:
            names = [overlay.name for overlay in found]
            at = names.index(self._overlay.name) if self._overlay.name in names else -1
            self._overlay = found[(at + 1) % len(found)]
            self._overlay_name = self._overlay.name
            self.show_view(self.cursor_vertex)

        self._with_overlays(take)

    @property
    def _is_large(self) -> bool:
        return self.model is not None and len(self.model.graph) > AT_ONCE

    def _with_overlays(self, take: Callable[[Sequence[Overlay]], None]) -> None:
        """Find out what the colours can say; a report may have a time for each of many nodes."""
        if not self._is_large:
            take(self.overlays())
            return
        model = self.model

        def arrived(found: Sequence[Overlay]) -> None:
            if self.is_attached and self.model is model:
                take(found)

        def task() -> None:
            # An edit may change the model while it is read: then all is found again after it.
            with suppress(RuntimeError, KeyError, IndexError):
                self.call_later(arrived, self.overlays())

        self.run_worker(task, thread=True, group="overlays", exclusive=True, name="find overlays")
