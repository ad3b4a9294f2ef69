"""What the ``Metadata`` of an engine layer says: the ONNX nodes that the layer was made from.

The parser gives each layer that it adds a text ``[ONNX Layer: NODE | ...]``; a fused layer has
those of all its parts, between the control characters U+001E and U+001F (a log loses these). After
the bar follow what the node is in, the innermost first: calls of local functions, ``CALL
(FUNCTION)``, and branches, ``GRAPH (then_branch) | NODE (If)``; bodies of loops are not told. In
older versions that is ``Local Function: FUNCTION``, and lines of the node's documentation.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """The node that calls, or the graph's name; empty when only the function is told."""
    function: str
    """The function; or the operator of the node; or the attribute that the graph is in."""


@dataclass(frozen=True)
class Entry:
    """One ONNX node of a metadata text. Foreign text."""

    name: str
    frames: tuple[Frame, ...] = ()
    """The calls around it, as they are listed."""
    whole: str = ""
    """All between the brackets: a name may contain a bar, too."""


@dataclass(frozen=True)
class Told:
    """What a metadata text says."""

    entries: tuple[Entry, ...]
    truncated: bool
    """The text was cut, so there may be more nodes."""


def read_metadata(text: str) -> Told:
    """Return the ONNX nodes that a metadata text names, each once, in its order."""
    if _OPENING not in text:
        return Told((), False)
    truncated = len(text.encode("utf-8", "surrogatepass")) >= LIMIT_BYTES
    found: dict[Entry, None] = {}
    for piece in _pieces(text, truncated):
        if not piece.startswith(_OPENING):
            continue
        if not piece.endswith("]"):
            truncated = True
            continue
        found[_entry(piece[len(_OPENING) : -1])] = None
    return Told(tuple(found), truncated)


def _pieces(text: str, long: bool) -> list[str]:
    # A text that was cut in its middle has dots there, at half of the limit.
    middle = text.find(_CUT, LIMIT_BYTES // 4) if long else -1
    parts = [text] if middle < 0 else [text[:middle], text[middle + len(_CUT) :]]
    return [piece for part in parts for piece in _SEPARATORS.split(part)]


def _entry(inner: str) -> Entry:
    name, *rest = inner.split(" | ")
    frames = []
    for part in rest:
        if part.startswith(_FUNCTION):
            frames.append(Frame("", part[len(_FUNCTION) :]))
        elif (found := _CALL.match(part)) is not None:
            frames.append(Frame(found["call"], found["function"]))
    return Entry(name, tuple(frames), inner)
