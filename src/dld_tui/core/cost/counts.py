"""Counts of bytes and operations, which may depend on dimensions without a number, as texts."""

from __future__ import annotations

from math import ceil

from dld_tui.core import fmt
from dld_tui.core.shapes.size import Count, Polynomial

_MOST_TERMS = 3
"""More are hard to read."""


def byte_count(elements: Count, bits: int) -> Count:
    """Return the bytes of elements with this many bits; symbolic counts are rounded up by term."""
    if isinstance(elements, Polynomial):
        return Polynomial({n: ceil(factor * bits / 8) for n, factor in elements.terms.items()})
    return (elements * bits + 7) // 8


def count_text(count: Count) -> str:
    """Return a count for people, in three digits. Untrusted text where it is symbolic."""
    if isinstance(count, Polynomial):
        return count.text(fmt.short_count, _MOST_TERMS)
    return fmt.short_count(count)


def size_text(count: Count) -> str:
    """Return bytes for people. Untrusted text where they are symbolic."""
    if isinstance(count, Polynomial):
        text = count.text(fmt.short_count, _MOST_TERMS)
        return f"({text}) B" if len(count.terms) > 1 else f"{text} B"
    return fmt.size(count)
