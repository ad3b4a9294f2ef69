"""Names of values: which are visible, which are free."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.document.edits.registry import quoted
from dld_tui.core.document.scope import Scope
from dld_tui.core.errors import EditError


def require_visible(scope: Scope, value: str) -> None:
    """Refuse a value that nothing defines in a scope or around it.

    Raises:
        EditError: There is no such value.
    """
    if scope.resolve(value) is None:
        raise EditError(
            f"there is no value {quoted(value)} here", where=" › ".join(scope.path) or "main"
        )


def require_free(scope: Scope, value: str) -> None:
    """Refuse a name that means something already, here, around, or in a subgraph below.

    Raises:
        EditError: The name is taken.
    """
    if not value:
        raise EditError("a value needs a name")
    taken = scope.resolve(value) is not None or value in scope.links.consumers
    if taken or any(below.definition(value) is not None for below in _below(scope)):
        raise EditError(f"there is already a value called {quoted(value)}", hint="Choose another")


def _below(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those inside it, in any order: keeping one would look at every node."""
    waiting = [scope]
    while waiting:
        inner = waiting.pop()
        yield inner
        waiting += (child for node in inner.holders for child in node.subgraphs())


def free_name(scope: Scope, wanted: str) -> str:
    """Return a value name that is free in a scope: `wanted`, or with a number behind it."""
    name, number = wanted or "value", 0
    while True:
        try:
            require_free(scope, name)
        except EditError:
            number += 1
            name = f"{wanted or 'value'}_{number}"
        else:
            return name
