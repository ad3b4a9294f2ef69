"""How the type of a value is shown: in short, and marked while an edit may have made it wrong."""

from __future__ import annotations

from dld_tui.core.document import Scope
from dld_tui.core.text import visible
from dld_tui.widgets import glyphs


def shown_type(scope: Scope, name: str, unknown: str = "") -> str:
    """Return for example ``f32[N,3,224,224]``, or ``~f32[N,3]`` for a type that may be wrong.

    Args:
        scope: Where the value is seen.
        name: The value.
        unknown: The text when nothing is known of it.
    """
    value_type = scope.value_type(name)
    if value_type is None:
        return unknown
    return stale_mark(scope, name) + visible(value_type.short)


def stale_mark(scope: Scope, name: str) -> str:
    """Return the glyph before a type that may be wrong since an edit; else nothing."""
    return glyphs.current().stale if scope.is_stale(name) else ""
