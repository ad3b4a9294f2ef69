"""``dld tool list``."""

from __future__ import annotations

import click

from dld_tui.cli.output import narrate, write_json, write_table
from dld_tui.core.custom_tools import store
from dld_tui.core.custom_tools.form import tool_table
from dld_tui.core.custom_tools.model import Tool, unavailable_tools
from dld_tui.core.types import JSON


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(as_json: bool) -> None:
    """List the tools."""
    tools = list(store.load().values())
    for line in unavailable_tools():
        narrate(line)
    if as_json:
        write_json({"tools": [_data(tool) for tool in tools]})
    elif tools:
        write_table(tool_table(tools))
    else:
        narrate("There is no tool yet. Add one with dld tool add NAME APPLICATION ARGUMENTS")


def _data(tool: Tool) -> dict[str, JSON]:
    return {
        "name": tool.name,
        "application": tool.application,
        "arguments": list(tool.arguments),
        "output": tool.output or None,
        "ask": tool.ask,
        "open": tool.open,
        "folder": tool.folder or None,
        "limit_s": tool.limit or None,
    }
