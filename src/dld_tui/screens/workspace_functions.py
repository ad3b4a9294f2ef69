"""Bodies of nodes, and local functions."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Functions(Editing):
    """The part of the workspace for bodies of nodes, and local functions."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
