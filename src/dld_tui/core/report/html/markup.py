"""From foreign text and numbers to HTML. Everything that a page shows goes through here."""

from __future__ import annotations

import html

from dld_tui.core.text import visible


def text(value: object) -> str:
    """Return text for a page, or for an attribute in double quotes: never markup."""
    return html.escape(visible(str(value)), quote=True)


def number(value: float) -> str:
    """Return a number for an attribute: short, and the same everywhere."""
    found = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if found in ("-0", "") else found


def short(value: str, most: int) -> str:
    """Return text of at most `most` characters; names differ at their end, so the start goes."""
    shown = visible(value)
    return shown if len(shown) <= most else "…" + shown[-(most - 1) :]


def attributes(**values: object) -> str:
    """Return ``' name="value"'`` for each value that is not None; ``_`` in a name is ``-``."""
    return "".join(
        f' {name.rstrip("_").replace("_", "-")}="{text(value)}"'
        for name, value in values.items()
        if value is not None
    )
