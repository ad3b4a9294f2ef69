"""Where a graph or node is in a model, by position: for child processes that have no document.

A place is JSON data: ``[]`` is the main graph; ``[3, "body", 0]`` is the first graph of the
attribute ``body`` of node 3 of it; steps of three follow each other to any depth. Places of local
functions begin with ``"function", NUMBER``. They hold for as long as the document is not edited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias, cast

import onnx

from dld_tui.core.document.wiretext import text_of
from dld_tui.core.types import JSON

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

Place: TypeAlias = "list[JSON]"
Body: TypeAlias = "onnx.GraphProto | onnx.FunctionProto"
_FUNCTION = "function"


def bodies(model: onnx.ModelProto) -> Iterator[tuple[Place, Body]]:
    """Yield every graph of a model with its place: the main one, those below it, functions."""
    yield from _below([], model.graph)
    for number, function in enumerate(model.functions):
        yield from _below([_FUNCTION, number], function)


def _below(place: Place, body: Body) -> Iterator[tuple[Place, Body]]:
    waiting = [(place, body)]
    while waiting:
        place, body = waiting.pop()
        yield place, body
        for index, node in enumerate(body.node):
            for attribute in node.attribute:
                name = text_of(attribute.name)
                if attribute.HasField("g"):
                    waiting.append(([*place, index, name, 0], attribute.g))
                for number, graph in enumerate(attribute.graphs):
                    waiting.append(([*place, index, name, number], graph))


def scope_at(document: Document, place: Sequence[JSON]) -> Scope | None:
    """Return the scope at a place, None when there is none (any more)."""
    steps = list(place)
    try:
        if steps[:1] == [_FUNCTION]:
            scope = document.functions[cast("int", steps[1])]
            del steps[:2]
        else:
            scope = document.main
        for at in range(0, len(steps), 3):
            index, attribute, number = steps[at : at + 3]
            node = scope.nodes[cast("int", index)]
            scope = node.children[cast("str", attribute)][cast("int", number)]
    except (IndexError, KeyError, TypeError, ValueError):
        return None
    return scope


def node_at(document: Document, place: Sequence[JSON], index: JSON) -> Node | None:
    """Return a node by the place of its scope and its position there, None when it is gone."""
    scope = scope_at(document, place)
    if scope is None or not isinstance(index, int) or not 0 <= index < len(scope.nodes):
        return None
    return scope.nodes[index]
