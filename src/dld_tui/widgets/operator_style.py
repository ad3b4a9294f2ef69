"""The colour class of an operator: one style name of a line view for each kind of work."""

from __future__ import annotations

from dld_tui.core.operators.colours import colour_class
from dld_tui.core.plan.graph import colour_of_type


def operator_style(op_type: str, domain: str = "") -> str:
    """Return the style class, e.g. ``op-conv``, of an operator."""
    return f"op-{colour_class(op_type, domain)}"


def layer_style(kind: str) -> str:
    """Return the style class of a layer's type, which may be an operator's or TensorRT's own."""
    found = colour_class(kind)
    return f"op-{colour_of_type(kind) if found == 'other' else found}"
