"""Metadata, layer precision, optimization profiles."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Metadata(Editing):
    """The part of the workspace for metadata, layer precision, optimization profiles."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
