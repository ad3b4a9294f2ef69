"""Marked nodes: marking, copying, pasting, extracting, editing many."""

from __future__ import annotations

from dld_tui.core.commands.model import Command

ROWS: tuple[Command, ...] = ()
