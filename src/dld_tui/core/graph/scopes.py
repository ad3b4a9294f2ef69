"""Name scopes: the parts of names such as ``/model/layers.3/attn/MatMul`` before the last one."""

from __future__ import annotations

from collections.abc import Sequence

from dld_tui.core.graph.graph import Graph

Scope = tuple[str, ...]


def name_scopes(graph: Graph) -> list[Scope]:
    """Return the name scope of each vertex: ``()`` where its name, or path, has none."""
    known: dict[str, Scope] = {}
    found: list[Scope] = []
    for name in graph.paths or graph.names:
        cut = name.rfind("/")
        prefix = name[:cut] if cut > 0 else ""
        scope = known.get(prefix)
        if scope is None:
            scope = known[prefix] = tuple(part for part in prefix.split("/") if part)
        found.append(scope)
    return found


def common_scope(scopes: Sequence[Scope]) -> Scope:
    """Return the longest scope that holds all of the given ones that are not ``()``."""
    named = [scope for scope in scopes if scope]
    if not named:
        return ()
    # All common leading parts are common to the extremes.
    low, high = min(named), max(named)
    length = 0
    for mine, theirs in zip(low, high):  # noqa: B905 - the shorter one ends it
        if mine != theirs:
            break
        length += 1
    return low[:length]


def filled_gaps(scopes: Sequence[Scope]) -> list[Scope]:
    """Return the scopes of consecutive rows, a row without one taking that of its neighbours.

    Inputs and outputs have plain names; one in the middle of a scope belongs to it.
    """
    filled = list(scopes)
    before: Scope = ()
    start = 0
    for row, scope in enumerate([*scopes, ()]):
        if row < len(scopes) and not scope:
            continue
        if start < row:
            shared = common_scope([before, scope]) if before and scope else ()
            filled[start:row] = [shared] * (row - start)
        before, start = scope, row + 1
    return filled[: len(scopes)]
