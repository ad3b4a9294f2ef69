"""The table of custom tools."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.custom_tools.form import line_of
from dld_tui.core.custom_tools.model import Tool
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import COUNT


def tool_table(tools: Sequence[Tool]) -> Table[Tool]:
    """Return the tools as a table."""
    return Table(
        (
            Column("name", "name", lambda tool: tool.name, width=20, style="strong"),
            Column("application", "application", lambda tool: tool.application, width=20,
                   priority=1),
            Column("arguments", "arguments", lambda tool: line_of(tool.arguments), least=20,
                   style="dim"),
            Column("output", "output", lambda tool: tool.output, width=8, priority=2),
            Column("limit_s", "limit", lambda tool: tool.limit or None, COUNT, 9, priority=3,
                   text=lambda tool: f"{tool.limit:,} s" if tool.limit else "–"),
        ),
        tools,
        row_key=lambda tool: tool.name,
    )  # fmt: skip
