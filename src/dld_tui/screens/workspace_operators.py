"""Adding operators, and what is known of them."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Operating(Editing):
    """The part of the workspace for adding operators, and what is known of them."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
