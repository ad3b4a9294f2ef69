"""Finding nodes of a document by what an optimiser's names say of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dld_tui.core.report.ort_names import Clue, split_inlined_branch

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_MOST_CANDIDATES = 4


class NodeFinder:
    """Indexes the nodes of all scopes of a document once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self._by_name: dict[str, list[Node]] = {}
        self._by_output: dict[str, list[Node]] = {}
        self.functions: dict[tuple[str, str], Scope] = {}
        """Local functions by (domain, name)."""
        for function in document.functions:
            domain, _, name = function.step.removeprefix("function ").partition(":")
            self.functions.setdefault((domain, name), function)
        for scope in document.scopes():
            for node in scope.nodes:
                self._by_name.setdefault(node.name, []).append(node)
                for output in node.outputs:
                    if output:
                        self._by_output.setdefault(output, []).append(node)
        self._numbered = [node for node in document.main.nodes if node.op_type != "Constant"]
        self._paths: dict[Scope, tuple[str, ...]] = {}

    def named(self, name: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes of this name in all scopes, or in a scope and those below it."""
        return self._inside(self._by_name.get(name, []), within) if name else []

    def producers(self, tensor: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes of all scopes that make a tensor of this name."""
        return self._inside(self._by_output.get(tensor, []), within)

    def function_of(self, node: Node) -> Scope | None:
        """Return the body of the local function that a node calls, or None."""
        return self.functions.get((node.domain, node.op_type))

    def find(self, clue: Clue, op_type: str, within: Scope | None = None) -> list[Node]:
        """Return the nodes that a clue may mean, those of the same operator when there are any.

        Nothing when there are too many to be of use.
        """
        if clue.kind == "index":
            found = self._at_index(int(clue.text), op_type) if within is None else []
        elif clue.kind == "tensor":
            found = self.producers(clue.text, within)
        else:
            found = self.named(clue.text, within)
        same = [node for node in found if node.op_type == op_type]
        chosen = same or found
        return chosen if len(chosen) <= _MOST_CANDIDATES else []

    def branch(self, name: str) -> tuple[Scope | None, str]:
        """Take the inlined branches off the front of a name.

        Returns:
            The innermost branch that is found, None for the main graph, and the rest of the name.
        """
        scope: Scope | None = None
        while (parts := split_inlined_branch(name)) is not None:
            owner, attribute, rest = parts
            owners = self.named(owner, scope)
            if not owners:
                index = owner.rpartition("_")[2]
                owners = self._at_index(int(index), "If") if index.isdecimal() else []
            branches = [s for node in owners for s in node.children.get(attribute, ())]
            if len(branches) != 1:
                break
            scope, name = branches[0], rest
        return scope, name

    def path_of(self, scope: Scope) -> tuple[str, ...]:
        """Return `Scope.path`, which is costly for deep scopes, from memory."""
        if scope not in self._paths:
            self._paths[scope] = scope.path
        return self._paths[scope]

    def _at_index(self, index: int, op_type: str) -> list[Node]:
        if index >= len(self._numbered):
            return []
        node = self._numbered[index]
        return [node] if node.op_type == op_type and not node.name else []

    def _inside(self, nodes: list[Node], within: Scope | None) -> list[Node]:
        if within is None:
            return nodes
        return [node for node in nodes if within in outwards(node.scope)]


def outwards(scope: Scope) -> Iterator[Scope]:
    """Yield a scope and those around it."""
    found: Scope | None = scope
    while found is not None:
        yield found
        found = found.parent
