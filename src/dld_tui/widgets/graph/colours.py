"""What the colours of a graph pane mean, and where that comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.widgets.graph.overlays import Overlay, TimeOverlay, overlays_of
from dld_tui.widgets.tasks import on_thread

if TYPE_CHECKING:
    from dld_tui.widgets.graph.pane import GraphPane

_LARGE = 1_000
"""Vertices of the largest graph whose overlays are made between two key presses."""
AskTimes = Callable[[], "tuple[Mapping[Any, float], str]"]
"""Returns milliseconds by node or layer, and which report they are from; empty without a report.
Called on a thread where the graph is large."""


class Colours:
    """What the colours of a graph pane mean.

    A report may have a time for each of many nodes: in large graphs a thread finds out.
    """

    def __init__(self, pane: GraphPane) -> None:
        self.pane = pane
        self.ask_times: AskTimes = lambda: ({}, "")
        self.ask_errors: AskTimes = lambda: ({}, "")
        """The same, of errors relative to the values, from a comparison of results."""
        self.ask_quantized: AskTimes = lambda: ({}, "")
        """How many quantized tensors nodes take and make, or would."""
        self.ask_flops: AskTimes = lambda: ({}, "")
        """How many operations nodes compute."""
        self.tell: Callable[[Overlay], None] = lambda overlay: None
        """Called with what the colours say now."""
        self.has_reports: Callable[[], bool] = lambda: False
        """Whether there is anything that may know times; asked often."""
        self.overlay = Overlay()
        self._chosen = ""
        """The overlay that was chosen; empty for the times of the newest report, if there are."""

    def overlays(self) -> Sequence[Overlay]:
        """Return what the colours can say now."""
        if self.pane.model is None or self.pane.notes is None:
            return [Overlay()]
        figures = self.ask_errors(), self.ask_quantized(), self.ask_flops()
        return overlays_of(self.pane.model, self.pane.notes, *self.ask_times(), *figures)

    def weighed(self) -> None:
        """Show the sizes of the weights, which are known now."""
        before = self.overlay
        self.find()
        if self.overlay is not before:
            self.pane.show_view(self.pane.cursor_vertex)
        self.pane.list.invalidate()

    def types_changed(self) -> None:
        """Show the types of values that are known now; boxes are as wide as these."""
        self.overlay.forget_types()
        if self.pane.list.display:
            self.pane.list.invalidate()
        else:
            self.pane.show_view(self.pane.cursor_vertex)

    def find(self) -> None:
        """Take the overlay that was chosen, of this graph, where it has something to say."""
        self.overlay = Overlay()
        self.tell(self.overlay)
        if self._chosen == Overlay.name:
            return
        if self._chosen or self.has_reports():
            self._give_overlays(self._take_same)

    def _take_same(self, overlays: Sequence[Overlay]) -> None:
        wanted = self._chosen or TimeOverlay.name
        same = (overlay for overlay in overlays if overlay.name == wanted)
        self.overlay = next(same, self.overlay)
        self.tell(self.overlay)
        if self._is_large:
            self.pane.show_view(self.pane.cursor_vertex)

    def next(self) -> None:
        """Let the colours say the next thing."""
        # A key asked for it: the next key steps on from there.
        self._give_overlays(self._take_next, "recolour")

    def _take_next(self, overlays: Sequence[Overlay]) -> None:
        names = [overlay.name for overlay in overlays]
        at = names.index(self.overlay.name) if self.overlay.name in names else -1
        self.overlay = overlays[(at + 1) % len(overlays)]
        self._chosen = self.overlay.name
        self.tell(self.overlay)
        self.pane.show_view(self.pane.cursor_vertex)

    @property
    def _is_large(self) -> bool:
        return self.pane.model is not None and len(self.pane.model.graph) > _LARGE

    def _give_overlays(
        self, take: Callable[[Sequence[Overlay]], None], group: str = "overlays"
    ) -> None:
        self.pane.tasks.start(self._find_overlays(take), group, replace=True)

    async def _find_overlays(self, take: Callable[[Sequence[Overlay]], None]) -> None:
        if not self._is_large:
            take(self.overlays())
            return
        model = self.pane.model
        try:
            overlays = await on_thread(self.overlays)
        except (RuntimeError, KeyError, IndexError):
            return  # an edit has changed the model while it was read: all is found again after it
        if self.pane.model is model:
            take(overlays)
