"""Links between nodes, and the context menu."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Linking(Editing):
    """The part of the workspace for links between nodes, and the context menu."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
