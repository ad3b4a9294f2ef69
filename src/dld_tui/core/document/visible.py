"""The values that a node of a scope may use."""

from __future__ import annotations

from collections.abc import Iterator

from dld_tui.core.document.scope import Definition, Scope


def visible_values(scope: Scope) -> Iterator[tuple[str, Definition]]:
    """Yield each value that nodes of a scope can use, and where it is defined.

    The scope's own ones come first: inputs, what nodes make in the order of the file, initializers;
    then those of the scopes around it, without the ones whose names mean something else inside.
    """
    seen: set[str] = set()
    home: Scope | None = scope
    while home is not None:
        for name, definition in _own_values(home):
            if name not in seen:
                seen.add(name)
                yield name, definition
        home = home.parent


def _own_values(scope: Scope) -> Iterator[tuple[str, Definition]]:
    given = Definition(scope, "input")
    stored = Definition(scope, "initializer")
    for name in scope.inputs:
        # Old models list their initializers among the inputs too.
        is_stored = not scope.is_function and name in scope.named("initializer")
        if name and not is_stored:
            yield name, given
    for node in scope.nodes:
        for name in node.outputs:
            if name:
                yield name, Definition(scope, "node", node)
    if not scope.is_function:
        for list_name in ("initializer", "sparse_initializer"):
            for name in scope.named(list_name):
                if name:
                    yield name, stored
