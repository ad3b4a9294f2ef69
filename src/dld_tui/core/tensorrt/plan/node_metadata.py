"""The nodes that the metadata of an engine's layer names."""

from __future__ import annotations

import re

from dld_tui.core.dataclass import dataclass

LIMIT_BYTES = 4000
"""Longer texts are cut, at the end or in the middle."""
_OPENING = "[ONNX Layer: "
_SEPARATORS = re.compile(r"[\x1e\x1f]+|(?<=\])(?=\[ONNX Layer: )")
_CUT = " ... "
_CALL = re.compile(r"(?P<call>.*) \((?P<function>[^()]+)\)$", re.DOTALL)
_FUNCTION = "Local Function: "


@dataclass(frozen=True)
class Frame:
    """A call of a local function that a node is in, or a subgraph."""

    call: str
    """The calling node, or the graph's name; empty if only the function is known."""
    function: str
    """The function; or the operator of the node; or the attribute that the graph is in."""


@dataclass(frozen=True)
class MetadataNode:
    """One ONNX node of a metadata text. Untrusted text."""

    name: str
    frames: tuple[Frame, ...] = ()
    """The enclosing calls, as listed."""
    whole: str = ""
    """All between the brackets: a name may contain a bar as well."""


@dataclass(frozen=True)
class NodeMetadata:
    """The content of a metadata text."""

    entries: tuple[MetadataNode, ...]
    truncated: bool
    """The text was cut, so there may be more nodes."""


def read_metadata(text: str) -> NodeMetadata:
    """Return the ONNX nodes that a metadata text names, each once, in its order."""
    if _OPENING not in text:
        return NodeMetadata((), False)
    truncated = len(text.encode("utf-8", "surrogatepass")) >= LIMIT_BYTES
    entries: dict[MetadataNode, None] = {}
    for piece in _pieces(text, truncated):
        if not piece.startswith(_OPENING):
            continue
        if not piece.endswith("]"):
            truncated = True
            continue
        entries[_entry(piece[len(_OPENING) : -1])] = None
    return NodeMetadata(tuple(entries), truncated)


def _pieces(text: str, long: bool) -> list[str]:
    # A text that was cut in its middle has dots there, at half of the limit.
    middle = text.find(_CUT, LIMIT_BYTES // 4) if long else -1
    parts = [text] if middle < 0 else [text[:middle], text[middle + len(_CUT) :]]
    return [piece for part in parts for piece in _SEPARATORS.split(part)]


def _entry(inner: str) -> MetadataNode:
    name, *rest = inner.split(" | ")
    frames = []
    for part in rest:
        if part.startswith(_FUNCTION):
            frames.append(Frame("", part[len(_FUNCTION) :]))
        elif (match := _CALL.match(part)) is not None:
            frames.append(Frame(match["call"], match["function"]))
    return MetadataNode(name, tuple(frames), inner)
