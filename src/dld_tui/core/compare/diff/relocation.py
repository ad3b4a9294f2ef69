"""Locating the nodes and values that an edit script names in another model.

The script's own model (the base) gets the same edits as the model that it is applied to (the
target). The names in a line are looked up in the base, and matched with the target as in a diff.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from dld_tui.core.compare.diff.matching import match_scopes
from dld_tui.core.compare.diff.side import DiffSide
from dld_tui.core.compare.diff.tensors import Meter, digest
from dld_tui.core.errors import DldError, EditError, InputError
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.scripting.arguments import Entry
from dld_tui.core.model.document.scripting.scripts import Relocated
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.process.interpreter import collector_paused
from dld_tui.core.text import quoted
from dld_tui.core.types import JSON

_VALUE_ARGUMENTS = {
    **dict.fromkeys(
        (
            "disconnect_value", "insert_node", "rename_shadowing", "rename_value", "set_input",
            "set_value_type",
        ),
        ("value",),
    ),
    "add_node": ("inputs",),
    "add_operator": ("inputs", "behind"),
    "add_output": ("name",),
    "append_processing": ("output", "scores"),
    "merge_models": ("links",),
    "move_terminal": ("name",),
    "remove_input": ("name",),
    "remove_output": ("name",),
    "replace_output": ("name", "by"),
    "replace_uses": ("value", "by"),
    "own_outputs": ("values",),
    "prepend_processing": ("input",),
    "replace_nodes": ("inputs", "outputs"),
    "remove_value_info": ("values",),
    "paste_nodes": ("connect",),
    "delete_initializers": ("names",),
    "remove_repeated_initializers": ("names",),
    "remove_unused": ("names",),
    "set_external": ("names",),
    "set_external_entries": ("name",),
    "set_inline": ("names",),
    "set_sparse": ("name",),
    "to_dense": ("names",),
    "to_sparse": ("names",),
}  # fmt: skip
"""The arguments of each edit that name values of its scope which are there already."""
_VALUE_KEYS = {
    "convert_terminals": ("types", "layouts"),
    "cut_off": ("outputs",),
    "extract": ("inputs", "outputs"),
    "merge_models": ("keep",),
    "replace_nodes": ("types",),
}
"""The arguments that are objects by such names, or lists of them."""
_NODE_ARGUMENTS = ("node", "nodes", "users", "positions", "tensor")
_SCOPE_ARGUMENTS = ("scope", "source")


class Relocation:
    """Follows a script on the model it was made on, and says what its lines mean in another one.

    Args:
        base: The model that the script was made on; it is edited.
        target: The model that the script is replayed on.
    """

    def __init__(self, base: Document, target: Document) -> None:
        self._base = base
        self._target = target
        self._meter = Meter()
        self._nodes: dict[Node, Node] = {}
        self._uncertain: set[Node] = set()
        self._scopes: dict[Scope, Scope] = {}
        self._sides: dict[Scope, DiffSide] = {}
        self._is_fresh = False
        """Whether the matches are those of the present states."""
        self._twins: dict[int, Transaction] = {}
        """Edits of the target that the base has as well, by their ids."""
        self._digests: dict[int, tuple[Any, str | None]] = {}

    def located(self, entry: Entry) -> tuple[Entry, list[Relocated]]:
        """Return a line of the script for the target, and the names that differ there.

        Raises:
            EditError: Several nodes of the target match.
        """
        edit = entry.get("edit")
        if not isinstance(edit, str):
            return entry, []
        line = _Line(self, edit)
        return {**line.arguments(entry), "edit": edit}, line.relocated

    def followed(self, entry: Entry, transaction: Transaction | None) -> None:
        """Repeat in the base what a line has done in the target.

        Args:
            entry: The line of the script.
            transaction: Its edits, redone or undone.
        """
        if transaction is None or not transaction.primitives:
            return
        self._is_fresh = False
        if entry.get("undo"):
            if id(transaction) in self._twins:
                self._base.undo()
        elif entry.get("redo"):
            if id(transaction) in self._twins:
                self._base.redo()
        else:
            arguments = {key: value for key, value in entry.items() if key != "edit"}
            try:
                twin = self._base.apply(transaction.edit, **arguments)
            except DldError:
                return  # what the line made is found by name only
            if twin.primitives:
                self._twins[id(transaction)] = transaction

    def scope(self, path: Sequence[str]) -> tuple[Scope, Scope] | None:
        """Return a scope of the base by its path and its partner, or None."""
        try:
            scope = self._base.scope_at(path)
        except EditError:
            return None
        if scope not in self._scopes:
            self._match()
        other = self._scopes.get(scope)
        return None if other is None else (scope, other)

    def node(self, scope: Scope, ref: str) -> Node | None:
        """Return the partner of a node of the base, None where it has none.

        Raises:
            EditError: Several nodes may be meant, and none of them has this ref.
        """
        node = scope.find(ref)
        if node is None:
            return None
        if node not in self._nodes:
            self._match()
        partner = self._nodes.get(node)
        if partner is not None and node in self._uncertain:
            if ref[0] not in "#" and partner.scope.find(ref) is not None:
                return None  # the name decides
            if partner.ref != ref:
                raise EditError(
                    f"node {quoted(ref)} does not exist, and several nodes are like it",
                    hint=f"One of them is {quoted(partner.ref)}",
                )
        return partner

    def value(self, scope: Scope, other: Scope, name: str) -> str | None:
        """Return the name of a value of the base in the target, None where it has no partner."""
        definition = scope.resolve(name)
        if definition is None:
            return None
        node = definition.node
        if node is not None:
            partner = self.node(node.scope, node.ref)
            number = node.outputs.index(name)
            if partner is None or number >= len(partner.outputs):
                return None
            return partner.outputs[number] or None
        if other.resolve(name) is not None:
            return name
        self._match()
        side = self._sides.get(definition.scope)
        return None if side is None else side.values.get(name)

    def _match(self) -> None:
        if self._is_fresh:
            return
        self._is_fresh = True
        with collector_paused():
            self._match_scopes(self._base.main, self._target.main, None, None)
            functions = {scope.step: scope for scope in self._target.functions}
            for scope in self._base.functions:
                other = functions.get(scope.step)
                if other is not None:
                    self._match_scopes(scope, other, None, None)

    def _match_scopes(
        self, old: Scope, new: Scope, old_parent: DiffSide | None, new_parent: DiffSide | None
    ) -> None:
        sides = DiffSide(old, old_parent), DiffSide(new, new_parent)
        matches, _ = match_scopes(*sides, self._digest)
        self._scopes[old], self._sides[old] = new, sides[0]
        for index, partner in enumerate(sides[0].partners):
            if partner < 0:
                continue
            node, other = sides[0].nodes[index], sides[1].nodes[partner]
            if node in self._nodes and self._nodes[node] is not other:
                continue  # they were matched before they were edited
            self._nodes[node] = other
            if index in matches.guessed:
                self._uncertain.add(node)
            for attribute, scopes in node.children.items():
                others = other.children.get(attribute, [])
                if len(scopes) == len(others):
                    for inner, counterpart in zip(scopes, others, strict=True):
                        self._match_scopes(inner, counterpart, *sides)

    def _digest(self, side: DiffSide, name: str) -> str | None:
        tensor = side.tensor(name)
        if tensor is None:
            return None
        known = self._digests.get(id(tensor.proto))
        if known is None:
            try:
                content = digest(tensor, self._meter)
            except InputError:
                content = None
            known = self._digests[id(tensor.proto)] = (tensor.proto, content)
        return known[1]


class _Line:
    """The names in one line of a script."""

    def __init__(self, relocation: Relocation, edit: str) -> None:
        self._relocation = relocation
        self._edit = edit
        self.relocated: list[Relocated] = []

    def arguments(self, arguments: Mapping[str, JSON]) -> Entry:
        """Return the arguments of the edit for the target; unmatched names stay."""
        entry = dict(arguments)
        if self._edit == "repair":
            entry["steps"] = self._steps(entry.get("steps"))
            return entry
        scope = entry.get("scope", [])
        for key in _SCOPE_ARGUMENTS:
            path = entry.get(key)
            if _is_path(path):
                entry[key] = self._path(path)
        changes = entry.get("changes")
        if self._edit == "set_attributes" and isinstance(changes, list):
            entry["changes"] = [
                {**change, "nodes": self._nodes(scope, change.get("nodes"))}
                if isinstance(change, dict)
                else change
                for change in changes
            ]
        for key in _NODE_ARGUMENTS:
            if key in entry:
                entry[key] = self._nodes(scope, entry[key])
        for key in _VALUE_ARGUMENTS.get(self._edit, ()):
            if key in entry:
                entry[key] = self._each(entry[key], lambda name: self._value(scope, name))
        for key in _VALUE_KEYS.get(self._edit, ()):
            by_name = entry.get(key)
            if isinstance(by_name, list):
                entry[key] = self._each(by_name, lambda name: self._value(scope, name))
            if isinstance(by_name, dict):
                entry[key] = {self._value(scope, name): item for name, item in by_name.items()}
        tensor = entry.get("tensor")
        if isinstance(tensor, dict) and isinstance(tensor.get("initializer"), str):
            name = self._value(scope, str(tensor["initializer"]))
            entry["tensor"] = {**tensor, "initializer": name}
        return entry

    def _steps(self, steps: JSON) -> JSON:
        if not isinstance(steps, list):
            return steps
        relocated: list[JSON] = []
        for step in steps:
            if isinstance(step, list) and len(step) == 2 and isinstance(step[1], dict):
                line = _Line(self._relocation, str(step[0]))
                relocated.append([step[0], line.arguments(step[1])])
                self.relocated += line.relocated
            else:
                relocated.append(step)
        return relocated

    def _path(self, path: list[str]) -> list[JSON]:
        pair = self._relocation.scope(path)
        return [*path] if pair is None else [*pair[1].path]

    def _nodes(self, scope: JSON, nodes: JSON) -> JSON:
        """Relocate what names nodes: a ref, refs, ``[scope, ref]`` or ``[ref, input]``."""
        if isinstance(nodes, str):
            return self._node(scope, nodes)
        if isinstance(nodes, dict):
            if isinstance(nodes.get("node"), str):  # the tensor of an attribute
                return {**nodes, "node": self._node(scope, str(nodes["node"]))}
            if "initializer" in nodes:
                return nodes
            return {self._node(scope, ref): place for ref, place in nodes.items()}
        if not isinstance(nodes, list):
            return nodes
        relocated: list[JSON] = []
        for item in nodes:
            if isinstance(item, list) and len(item) == 2:
                first, second = item
                if _is_path(first) and isinstance(second, str):
                    relocated.append([self._path(first), self._node([*first], second)])
                    continue
                if isinstance(first, str):
                    relocated.append([self._node(scope, first), second])
                    continue
            relocated.append(self._node(scope, item) if isinstance(item, str) else item)
        return relocated

    def _node(self, scope: JSON, ref: str) -> str:
        pair = self._relocation.scope(scope) if _is_path(scope) else None
        partner = self._relocation.node(pair[0], ref) if pair is not None and ref else None
        if partner is None or (pair is not None and pair[1].find(ref) is partner):
            return ref
        self._note("node", ref, partner.ref)
        return partner.ref

    def _value(self, scope: JSON, name: str) -> str:
        pair = self._relocation.scope(scope) if _is_path(scope) else None
        other = self._relocation.value(*pair, name) if pair is not None and name else None
        if other is None or other == name:
            return name
        self._note("value", name, other)
        return other

    def _note(self, kind: str, name: str, place: str) -> None:
        relocated = Relocated(kind, name, place)
        if relocated not in self.relocated:
            self.relocated.append(relocated)

    def _each(self, value: JSON, change: Callable[[str], str]) -> JSON:
        if isinstance(value, str):
            return change(value)
        if isinstance(value, list):
            return [change(item) if isinstance(item, str) else item for item in value]
        if isinstance(value, dict):
            return {
                key: change(item) if isinstance(item, str) else item for key, item in value.items()
            }
        return value


def _is_path(value: JSON) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(step, str) for step in value)
