"""The colours of operators and layers, by their kind of work."""

from __future__ import annotations

from dld_tui.core.operators.categories import colour_class


def operator_style(op_type: str, domain: str = "") -> str:
    """Return the style class, e.g. ``op-conv``, of an operator."""
    return f"op-{colour_class(op_type, domain)}"


def layer_style(kind: str) -> str:
    """Return the style class of a layer's type, which may be an operator's or TensorRT's own."""
    from dld_tui.core.plan.graph import colour_of_type

    found = colour_class(kind)
    return f"op-{colour_of_type(kind) if found == 'other' else found}"
