"""An agent in a test: the SDK's client, with a server over standard input and output."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import CallToolResult, TextContent

from dld_tui.cli.agents.server import Agents
from dld_tui.core.files.temporary import temporary_folder

MARK = "DLD_TEST_MARK"
"""A variable that a server and all that it starts have."""


class Agent:
    """Calls tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must give a result, and return its structured content."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert not result.is_error, told(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    async def fails(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool that must fail, and return its one line."""
        result = await self.client.call_tool(tool, arguments)
        assert isinstance(result, CallToolResult)
        assert result.is_error, told(result)
        line = told(result)
        assert "\n" not in line
        return line

    async def read(self, uri: str) -> Any:
        """Return a resource that is JSON."""
        (contents,) = (await self.client.read_resource(uri)).contents
        return json.loads(getattr(contents, "text", "null"))


def told(result: CallToolResult) -> str:
    """Return the text of a result."""
    text = result.content[0]
    assert isinstance(text, TextContent)
    return text.text


def server(folder: Path, *options: object, mark: str = "") -> StdioServerParameters:
    """Return how a server is started in a folder."""
    return StdioServerParameters(
        command=sys.executable,
        args=["-m", "dld_tui", "mcp", *map(str, options)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), MARK: mark},
        cwd=folder,
    )


@asynccontextmanager
async def agent(folder: Path, *options: object, mark: str = "") -> AsyncIterator[Agent]:
    """Yield an agent whose server was started in a folder with these options."""
    async with Client(stdio_client(server(folder, *options, mark=mark))) as client:
        yield Agent(client)


@asynccontextmanager
async def agent_within(
    folder: Path, *allowed: Path, limit_s: float = 600.0
) -> AsyncIterator[Agent]:
    """Yield an agent of a server in this process; its calls are processes as ever."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        with temporary_folder("agent") as own:
            async with Client(Agents(own, allowed, limit_s).server) as client:
                yield Agent(client)
    finally:
        os.chdir(before)


def marked(mark: str) -> Iterator[int]:
    """Yield the processes that have a mark and have not ended."""
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                has_it = wanted in (entry / "environ").read_bytes().split(b"\0")
                state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
            except OSError:
                continue
            if has_it and state != "Z":
                yield int(entry.name)
