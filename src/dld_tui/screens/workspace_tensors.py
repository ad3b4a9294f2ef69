"""Initializers and tensors."""

from __future__ import annotations

from dld_tui.screens.workspace_edit import Editing


class Tensors(Editing):
    """The part of the workspace for initializers and tensors."""

    def facts(self) -> set[str]:
        """Return what holds for its commands, too."""
        return super().facts()
