"""Which nodes of two scopes belong together: by name where names can be trusted, else by structure.

The stages, each for what the ones before left over:

1. nodes whose name, operator and links are the same, and those of their neighbours too;
2. nodes of the same name and operator, if that explains all that is left of one side;
3. nodes that are alike in all that is upstream and downstream of them;
4. nodes of the same name and operator, unless matched neighbours say that names have shifted;
5. nodes whose upstream, downstream or nearby structure is unique;
6. the only candidate beside a matched neighbour;
7. what the order of the file says, what remains of one name, or of one place.
"""

from __future__ import annotations

from collections.abc import Callable

from dld_tui.core.diff.by_name import (
    match_kept_names,
    match_leftover_names,
    match_names,
    match_unchanged,
)
from dld_tui.core.diff.by_neighbour import match_beside
from dld_tui.core.diff.by_order import match_order
from dld_tui.core.diff.by_structure import match_alike, match_nearby, match_structure
from dld_tui.core.diff.matches import Matches
from dld_tui.core.diff.side import Side
from dld_tui.core.diff.structure import Interner
from dld_tui.core.diff.terminals import Pairs, pair_initializers

_MOST_ROUNDS = 6
"""How often the stages are repeated while they find much."""
_MUCH = 0.05
"""The share of the open nodes that a round must match for another round."""


def match_scopes(
    old: Side, new: Side, digest: Callable[[Side, str], str | None]
) -> tuple[Matches, Pairs]:
    """Match inputs, outputs, initializers and nodes of two scopes.

    Args:
        old: The old side; its parents are matched.
        new: The new side.
        digest: Returns a hash of the values of an initializer, None when they are not to be read.

    Returns:
        The matches, and the pairs of initializers.
    """
    matches = Matches(old, new)
    for first, second in pair_initializers(old, new, digest):
        matches.link(first, second)
    match_unchanged(matches)
    if matches.unfinished:
        _match_rest(matches)
    _link_leftover_values(matches)
    initializers = [
        (name, old.values[name])
        for name in old.initializers
        if old.values.get(name) in new.initializers
    ]
    return matches, initializers


def _match_rest(matches: Matches) -> None:
    match_kept_names(matches)
    intern = Interner()
    for _ in range(_MOST_ROUNDS):
        before = matches.open_old
        match_structure(matches, intern, unique=False)
        match_names(matches)
        match_structure(matches, intern, unique=True)
        match_beside(matches)
        match_nearby(matches, intern)
        match_beside(matches)
        if not matches.unfinished or before - matches.open_old <= before * _MUCH:
            break
    match_order(matches, intern)
    match_beside(matches)
    match_leftover_names(matches)
    match_beside(matches, weak=True)
    match_alike(matches, intern)


def _link_leftover_values(matches: Matches) -> None:
    """Match values by name that were not matched with their makers, as when those changed."""
    old, new = matches.old, matches.new
    for name in (*old.initializers, *old.producers):
        if name not in old.values and new.defines(name) and name not in new.values:
            matches.link(name, name)
