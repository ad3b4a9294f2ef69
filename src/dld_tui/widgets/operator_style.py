"""The colour class of an operator: one style name of a line view for each kind of work."""

from __future__ import annotations

from dld_tui.core.operators.colours import colour_class


def operator_style(op_type: str, domain: str = "") -> str:
    """Return the style class, e.g. ``op-conv``, of an operator."""
    return f"op-{colour_class(op_type, domain)}"
