"""The TensorRT precision of a layer, kept in its node's ``metadata_props``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.document.wiretext import text_of

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node

KEY = "dld.precision"
"""The entry of ``metadata_props``."""
PRECISIONS = (
    "fp32", "fp16", "bf16", "fp8", "int64", "int32", "int8", "int4", "uint8", "bool",
)  # fmt: skip
"""What a layer can be set to, as TensorRT's layer information names it, in lower case."""


def precision_of(node: Node) -> str:
    """Return the precision that a layer is set to; empty when none is. Foreign text."""
    entries = node.proto.metadata_props
    if not entries:
        return ""
    for entry in reversed(entries):
        if entry.key == KEY:
            return text_of(entry.value)
    return ""
