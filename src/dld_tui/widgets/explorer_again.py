"""The explorer's rows made again when another model has taken the place of the document's."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping

from dld_tui.core.document.document import Document
from dld_tui.core.document.node import Node
from dld_tui.core.document.scope import Scope
from dld_tui.widgets.explorer_model import ExplorerModel


def model_anew(old: ExplorerModel) -> ExplorerModel:
    """Return the rows of the same scope, listed, folded and filtered as before.

    No node is read yet. What is folded is told by names: scopes and nodes are others now.
    """
    new = ExplorerModel(old.document, old.root)
    new.view, new.sort, new.descending = old.view, old.sort, old.descending
    new.set_show_constants(old.show_constants)
    new.exceptions.update(_exceptions(old))
    new.set_text(old.text)
    new.set_condition(old.condition)
    new.unfolded.update(_folds(old))
    return new


def _exceptions(old: ExplorerModel) -> Iterator[Node]:
    """Yield the nodes that are there now for the constants that were shown or hidden alone."""
    main = old.document.main
    present = _present(old.document, main)
    for node in old.exceptions:
        known = _key_now(node, main, present)
        if isinstance(known, Node):
            yield known


def _present(document: Document, main: Scope) -> dict[tuple[Hashable, ...], Scope]:
    """Return the scopes by their places."""
    places = ((_place(scope, main), scope) for scope in document.scopes())
    return {place: scope for place, scope in places if place is not None}


def _folds(old: ExplorerModel) -> Iterator[tuple[Hashable, bool]]:
    """Yield what is folded and unfolded, by the keys of what is there now."""
    main = old.document.main
    present = _present(old.document, main)
    for key, unfolded in old.unfolded.items():
        known = _key_now(key, main, present)
        if known is not None:
            yield known, unfolded


def _key_now(
    key: Hashable, main: Scope, present: Mapping[tuple[Hashable, ...], Scope]
) -> Hashable | None:
    if isinstance(key, Node):
        place = _place(key.scope, main)
        scope = present.get(place) if place is not None else None
        same = scope.nodes_named(key.name) if scope is not None and key.name else []
        return same[0] if len(same) == 1 else None
    if isinstance(key, tuple) and len(key) > 1 and isinstance(key[1], Scope):
        place = _place(key[1], main)
        scope = present.get(place) if place is not None else None
        return None if scope is None else (key[0], scope, *key[2:])
    return key


def _place(scope: Scope, main: Scope) -> tuple[Hashable, ...] | None:
    """Return where a scope is, or was, by the names of nodes; None when one has no name."""
    if scope is main:
        return ()
    if scope.owner is None:
        return (scope.step,)
    outer = _place(scope.owner.scope, main)
    if outer is None or not scope.owner.name:
        return None
    return (*outer, (scope.owner.name, scope.attribute, scope.position))
