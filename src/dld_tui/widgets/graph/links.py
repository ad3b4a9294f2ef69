"""The cursor of a graph pane on a link of a node, and where links lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.model.graph.layout import Link, links_at
from dld_tui.widgets.graph.state import GraphModel
from dld_tui.widgets.shell.command_dispatch import hint

if TYPE_CHECKING:
    from dld_tui.widgets.graph.pane import GraphPane
    from dld_tui.widgets.parameters.terminals import Terminal


class LinkCursor:
    """The link of the node under the cursor that the cursor is on; mostly none."""

    def __init__(self, pane: GraphPane) -> None:
        self.pane = pane
        self.link: Link | None = None

    def forget(self) -> None:
        """Be on no link: the graph is drawn anew."""
        self.link = None

    def reach(self, link: Link | None) -> None:
        """Put the cursor on a link, or back on its node, and say so."""
        self.link = link
        self.pane.boxes.show_link(link)
        self.pane.show_title()
        self.pane.post_message(self.pane.LinkReached())

    def leave(self) -> None:
        """Go back to the node."""
        if self.link is not None:
            self.reach(None)

    def next(self) -> None:
        """Put the cursor on the first link of its node, or on the next one."""
        self.step(1)

    def step(self, step: int) -> None:
        """Go so many links of the node further; from the node to its first one."""
        model, vertex = self.pane.model, self.pane.vertex
        links = links_at(model.graph, vertex) if model is not None and vertex is not None else []
        if not links:
            message = hint("Only nodes have links; {graph.fold} unfolds a block")
            self.pane.notify(message, timeout=3)
            return
        at = links.index(self.link) + step if self.link in links else 0
        self.reach(links[at % len(links)])

    def follow(self, end: str) -> None:
        """Go to the node at the end of the link."""
        link, model = self.link, self.pane.model
        if link is not None and model is not None:
            vertex = link.source if end == "source" else link.target
            self.leave()
            model.overview.reveal(vertex)
            self.pane.show_view(vertex)
            self.pane.say_selected(self.pane.subject_at_cursor)

    def go_back(self, link: Link | None, vertex: int) -> None:
        """Put the cursor on a link where it was once, if the vertex still has it."""
        model = self.pane.model
        if model is not None and link is not None and link in links_at(model.graph, vertex):
            self.reach(link)

    @property
    def terminal(self) -> Terminal | None:
        """The end of the link."""
        if self.link is None or not isinstance(self.pane.model, GraphModel):
            return None
        return self.pane.model.terminal(self.link)
