"""Edits that convert the model: other dimensions, another model merged in."""

from __future__ import annotations

from dld_tui.core.conversion.edits import dimensions, merging

__all__ = ["dimensions", "merging"]
