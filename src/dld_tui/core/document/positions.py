"""Where somebody has moved a node on the canvas, kept in its ``metadata_props``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from dld_tui.core.document.wiretext import text_of

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node

KEY = "dld.position"
"""The entry of ``metadata_props``: ``x,y`` in cells from where it would be arranged."""
MOST = 9_999
"""Cells that a node can be moved."""
_PATTERN = re.compile(r"(-?[0-9]{1,4}),(-?[0-9]{1,4})")


def position_of(node: Node) -> tuple[int, int] | None:
    """Return how many cells a node was moved to the right and down; None when it was not."""
    for entry in reversed(node.proto.metadata_props):
        if entry.key == KEY:
            found = _PATTERN.fullmatch(text_of(entry.value))
            return (int(found[1]), int(found[2])) if found is not None else None
    return None
