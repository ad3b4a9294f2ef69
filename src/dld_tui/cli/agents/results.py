"""Results for an agent: short, with untrusted text clipped and marked, the whole as a resource."""

from __future__ import annotations

import json
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError
from dld_tui.core.files.writer import write_bytes
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

MOST_ROWS = 10
_FEWER = (MOST_ROWS, 5, 2, 1, 0)
"""Rows of each list: the first with which the result is short enough."""
_LONGEST = 12_000
"""Characters of a result."""
_MOST_KEYS, _MOST_MARKS, _DEEPEST = 60, 20, 8
_TEXT = 240
_READABLE = 1 << 20
"""Bytes of a resource that an agent may read at once."""
_MOST_CALLS = 100
_MARKUP = re.compile(r"</?[A-Za-z!][^<>]*>|\[[^\[\]]*\]\(|```|<\|")


@dataclass
class Short:
    """A document with the first rows of its lists.

    The rows of lists with times are in the order of their times: those that matter come first.
    """

    rows: int
    left_out: dict[str, int] = field(default_factory=dict)
    """How many rows or keys are missing, by place."""
    marked: dict[str, str] = field(default_factory=dict)
    """What is odd about texts, by place."""

    def value(self, value: JSON, place: str = "", depth: int = 0) -> JSON:
        """Return a short form of a value."""
        if isinstance(value, str):
            return self.text(value, place)
        if isinstance(value, float):
            return float(f"{value:.6g}")
        if isinstance(value, (list, dict)) and depth == _DEEPEST:
            return "…"
        if isinstance(value, list):
            rows = _slowest_first(value)[: self.rows]
            self._miss(place, len(value) - len(rows))
            return [self.value(one, f"{place}[{at}]", depth + 1) for at, one in enumerate(rows)]
        if isinstance(value, dict):
            items = [*value.items()][:_MOST_KEYS]
            self._miss(place, len(value) - len(items))
            start = f"{place}." if place else ""
            return {
                self.text(key, f"{start}{clip(visible(key), 40)}"): self.value(
                    one, f"{start}{clip(visible(key), 40)}", depth + 1
                )
                for key, one in items
            }
        return value

    def text(self, text: str, place: str) -> str:
        """Return a text that is safe to show, and mark it if something was done to it."""
        shown = visible(text)
        odd = ["control characters"] if shown != text else []
        odd += ["markup"] if _MARKUP.search(shown) else []
        odd += ["clipped"] if len(shown) > _TEXT else []
        if odd and len(self.marked) < _MOST_MARKS:
            self.marked[place] = ", ".join(odd)
        return clip(shown, _TEXT, keep="middle")

    def _miss(self, place: str, number: int) -> None:
        if number:
            self.left_out[place] = number


def _slowest_first(rows: list[JSON]) -> list[JSON]:
    times = [row.get("time_ms") for row in rows if isinstance(row, dict)]
    if len(times) < len(rows) or not any(isinstance(time, float) for time in times):
        return rows

    def time(row: Any) -> float:
        return row["time_ms"] if isinstance(row.get("time_ms"), (int, float)) else -1.0

    return sorted(rows, key=time, reverse=True)


def shortened(document: JSON) -> tuple[JSON, Short]:
    """Return a short form of a document, and what is missing or odd in it."""
    for rows in _FEWER:
        short = Short(rows)
        result = short.value(document)
        if len(json.dumps(result)) <= _LONGEST:
            break
    return result, short


class Resource(NamedTuple):
    """Something that an agent may read."""

    uri: str
    path: Path
    kind: str
    """A MIME type."""


class Resources:
    """The results of the last calls, as files.

    Args:
        folder: Where they are.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._calls: OrderedDict[int, list[Resource]] = OrderedDict()

    def __iter__(self) -> Iterator[Resource]:
        return (resource for call in self._calls.values() for resource in call)

    def add(self, call: int, tool: str, data: bytes | None, suffix: str, kind: str) -> Resource:
        """Keep the result of a call, and forget the oldest one with its files.

        Args:
            call: Its number, which its files begin with.
            tool: For the address.
            data: The content; None for a file that is there.
            suffix: Of the file.
            kind: A MIME type.
        """
        path = self.folder / f"{call}{suffix}"
        if data is not None:
            write_bytes(path, data)
        resource = Resource(f"dld://{tool}/{path.name}", path, kind)
        self._calls.setdefault(call, []).append(resource)
        while len(self._calls) > _MOST_CALLS:
            oldest, _ = self._calls.popitem(last=False)
            for file in self.folder.glob(f"{oldest}.*"):
                file.unlink(missing_ok=True)
        return resource

    def read(self, uri: str) -> tuple[Resource, str]:
        """Return a resource and its text.

        Raises:
            InputError: There is none at this address, or it is too large.
        """
        found = next((resource for resource in self if resource.uri == uri), None)
        if found is None:
            raise InputError("there is no such resource, or no more", where=uri)
        if (size := found.path.stat().st_size) > _READABLE:
            raise InputError(
                f"it has {fmt.size(size)}, more than the {fmt.size(_READABLE)} that can be read",
                where=uri,
                hint="Ask a tool for a part",
            )
        return found, found.path.read_text(encoding="utf-8", errors="replace")
