"""The table of targets."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.connections.model import Connection
from dld_tui.core.tables.table import Column, Table


def target_table(connections: Sequence[Connection]) -> Table[Connection]:
    """Return the targets as a table."""
    return Table(
        (
            Column("name", "name", lambda one: one.name, width=16, style="strong"),
            Column("address", "address", lambda one: one.address, least=20, keep="end"),
            Column("auth", "auth", lambda one: one.auth, width=9, priority=4, style="dim"),
            Column("way", "way", lambda one: one.jump or one.proxy_command, width=18, priority=2,
                   style="dim"),
            Column("launcher", "launcher", lambda one: " ".join(one.launcher), width=20,
                   priority=3, style="dim"),
        ),
        connections,
        row_key=lambda one: one.name,
    )  # fmt: skip
