"""Operators: adding nodes, documentation, opset imports."""

from __future__ import annotations

from dld_tui.core.commands.model import Command

ROWS: tuple[Command, ...] = ()
