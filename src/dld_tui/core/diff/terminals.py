"""Which inputs, outputs and initializers of two scopes belong together."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from dld_tui.core.diff.side import Side
from dld_tui.core.diff.structure import value_text

Pairs: TypeAlias = "list[tuple[str, str]]"
"""(name in the old scope, name in the new one)."""


def pair_terminals(old: Side, new: Side, before: list[str], after: list[str]) -> Pairs:
    """Pair the inputs or outputs of two scopes: by name, then by type, then by position."""
    theirs = set(after)
    pairs = [(name, name) for name in before if name in theirs]
    known = {name for name, _ in pairs}
    mine = [name for name in before if name not in known]
    rest = [name for name in after if name not in known]
    for name in list(mine):
        text = value_text(old, name)
        other = next((other for other in rest if value_text(new, other) == text), None)
        if text and other is not None:
            mine.remove(name)
            rest.remove(other)
            pairs.append((name, other))
    if len(mine) == len(rest):
        pairs += zip(mine, rest, strict=True)
    order = {name: number for number, name in enumerate(before)}
    return sorted(pairs, key=lambda pair: order[pair[0]])


def pair_initializers(old: Side, new: Side, digest: Callable[[Side, str], str | None]) -> Pairs:
    """Pair initializers of one name, type and shape; then those of other names by their values.

    Args:
        old: The old side.
        new: The new side.
        digest: Returns a hash of the values of an initializer, None when they are not to be read.
    """
    pairs: Pairs = []
    for name in old.initializers:
        if name in new.initializers and old.tensor_kind(name) == new.tensor_kind(name):
            pairs.append((name, name))
    mine = _candidates(old, {name for name, _ in pairs}, new)
    theirs = _candidates(new, {name for _, name in pairs}, old)
    for kind, names in mine.items():
        others = theirs.get(kind)
        if others:
            pairs += _by_values(old, new, names, others, digest)
    return pairs


def _candidates(side: Side, paired: set[str], other: Side) -> dict[tuple[int, ...], list[str]]:
    """Return the names of the dense initializers left, by type and shape.

    One whose name the other model has too, with another shape, is not one that was renamed.
    """
    found: dict[tuple[int, ...], list[str]] = {}
    for name in side.initializers:
        if name not in paired and name not in side.inputs and name not in other.initializers:
            kind = side.tensor_kind(name)
            if kind is not None:
                found.setdefault(kind, []).append(name)
    return found


def _by_values(
    old: Side,
    new: Side,
    names: list[str],
    others: list[str],
    digest: Callable[[Side, str], str | None],
) -> Pairs:
    groups: dict[str, list[str]] = {}
    for name in others:
        key = digest(new, name)
        if key is not None:
            groups.setdefault(key, []).append(name)
    mine: dict[str, list[str]] = {}
    for name in names:
        key = digest(old, name)
        if key in groups:
            mine.setdefault(key, []).append(name)
    # Where several are alike, their users tell which is which.
    return [
        (members[0], groups[key][0])
        for key, members in mine.items()
        if len(members) == len(groups[key]) == 1
    ]
