"""Patterns over graphs, queries over nodes, and rules that rewrite what a pattern finds."""

from __future__ import annotations

from collections.abc import Sequence


def command_of(rules: Sequence[str]) -> str:
    """Return the command that carries out rules, MODEL and OUT being files."""
    return f"dld rewrite MODEL {' '.join(rules)} -o OUT"
