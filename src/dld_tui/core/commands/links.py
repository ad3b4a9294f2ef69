"""Links: connecting, rewiring, inputs and outputs; the context menu."""

from __future__ import annotations

from dld_tui.core.commands.model import Command

ROWS: tuple[Command, ...] = ()
