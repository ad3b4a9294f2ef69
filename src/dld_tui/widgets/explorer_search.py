"""Finding rows in the explorer's model: the next match, a given node, what there is room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING

from dld_tui.widgets.explorer_items import Branch, Entry, Item, Rows, is_function
from dld_tui.widgets.explorer_model import ExplorerModel

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope


def next_match(model: ExplorerModel, rows: Rows, cursor: int, step: int, text: str) -> Node | None:
    """Return the next node whose type or name holds every word of `text`; folded ones count.

    Args:
        model: What is searched.
        rows: What its :meth:`~ExplorerModel.rows` returned last.
        cursor: The row to start from; the search wraps around.
        step: 1 for downwards, -1 for upwards.
        text: Words.
    """
    words = text.lower().split()
    if not words or not rows.items:
        return None
    first = 0 if step > 0 else 1  # what is folded in the cursor's row comes after it
    for offset in range(first, len(rows) + 1):
        item = rows.items[(cursor + step * offset) % len(rows)]
        found: list[Entry] = []
        if offset and isinstance(item, Entry) and item.holds(words):
            found.append(item)
        if model.can_unfold(item) and not model.is_unfolded(item):
            found += [entry for entry in below(model, item) if entry.holds(words)]
        if found:
            return found[0 if step > 0 else -1].node
    return None


def below(model: ExplorerModel, item: Item) -> Iterator[Entry]:
    """Yield every node below an item, in the order of the rows."""
    pending = [item]
    while pending:
        inner = pending.pop()
        if inner is not item and isinstance(inner, Entry):
            yield inner
        if model.can_unfold(inner):
            pending.extend(reversed(model.children(inner)[0]))


def reveal(model: ExplorerModel, node: Node) -> bool:
    """Unfold what hides a node; False when a filter, or another root, leaves it out."""
    tops = model.tops()
    holders = [node]
    while holders[-1].scope not in tops:
        owner = holders[-1].scope.owner
        if owner is None:
            return False
        holders.append(owner)
    if not model.passes(node):
        return False
    if model.nested:
        for inner in reversed(holders):
            _unfold_to(model, model.entry(inner), inner.scope)
    else:
        _unfold_to(model, model.entry(node), holders[-1].scope)
    return True


def _unfold_to(model: ExplorerModel, entry: Entry, scope: Scope) -> None:
    """Unfold a scope, its holder, and the folders or the type that an entry is in."""
    if scope.owner is not None:
        model.set_unfolded(model.entry(scope.owner), True)
    branch: Branch | None = model.branch_of(scope)
    while branch is not None:
        model.set_unfolded(branch, True)
        branches = (item for item in model.children(branch)[0] if isinstance(item, Branch))
        branch = next((b for b in branches if any(e is entry for e in b.members)), None)


def unfold_to_fill(model: ExplorerModel, room: int) -> bool:
    """Unfold branches, the outer ones first, while no more than `room` rows show.

    Returns:
        Whether there are other rows now.
    """
    rows = model.rows()
    used = before = len(rows)
    if used >= room:
        return False
    pending = deque(item for item in rows.items if not is_function(item))
    while pending and used < room:
        item = pending.popleft()
        if not model.can_unfold(item) or model.is_unfolded(item):
            continue
        items = model.children(item)[0]
        if used + len(items) <= room:
            model.set_unfolded(item, True)
            used += len(items)
            pending.extend(items)
    return used != before


def set_all_unfolded(model: ExplorerModel, unfolded: bool) -> None:
    """Unfold or fold every branch and body that is listed, those within folded ones, too."""
    pending = deque(model.rows().items)
    done: set[Hashable] = set()
    while pending:
        item = pending.popleft()
        if item.key in done or not model.can_unfold(item):
            continue
        done.add(item.key)
        model.set_unfolded(item, unfolded)
        pending.extend(model.children(item)[0])


def all_nodes(model: ExplorerModel) -> Iterator[Node]:
    """Yield every node of the document, in all scopes."""
    for scope in model.document.scopes():
        yield from scope.nodes


def matching_nodes(model: ExplorerModel) -> Iterator[Node]:
    """Yield the nodes at and below the root that the filters let through, folded ones too."""
    whole = model.root is model.document.main
    for scope in model.document.scopes() if whole else model.root.walk():
        for entry in model.entries(scope):
            if (not entry.constant or model.shows_constant(entry.node)) and model.is_match(entry):
                yield entry.node
