"""Marked nodes: marking, copying, pasting, extracting, editing many."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Selecting(Editing):
    """The part of the workspace for marked nodes."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
