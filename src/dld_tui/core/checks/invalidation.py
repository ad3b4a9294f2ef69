"""What an edit touches, and all that must be looked at again because of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node, Scope
from dld_tui.core.document.history import Transaction
from dld_tui.core.document.index import record_name
from dld_tui.core.document.primitives import (
    Primitive,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
)

if TYPE_CHECKING:
    from dld_tui.core.checks.checker import Checker

MOST_NODES = 4000
"""Nodes of a change after which checking everything is no slower."""

_FUNCTION_FIELDS = frozenset({"name", "domain", "overload"})
_PLAIN_LISTS = frozenset({"metadata_props", "device_configurations"})
_UNCHECKED = frozenset({"quantization_annotation"})


class EverythingError(Exception):
    """The change is such that everything must be checked again."""


@dataclass
class Marks:
    """What an edit may have changed."""

    nodes: dict[Node, None] = field(default_factory=dict)
    """Nodes that changed, came or went."""
    linked: dict[Node, None] = field(default_factory=dict)
    """Those whose links did."""
    defined: dict[Scope, dict[str, None]] = field(default_factory=dict)
    """Values whose definition or type changed."""
    used: dict[Scope, dict[str, None]] = field(default_factory=dict)
    """Values whose uses changed."""
    names: dict[Scope, dict[str, None]] = field(default_factory=dict)
    """Names of nodes that were given or taken."""
    moved: set[Scope] = field(default_factory=set)
    """Scopes with nodes that came, went or changed places."""
    bodies: set[Scope] = field(default_factory=set)
    """Scopes with nodes whose subgraphs came or went."""
    terminals: set[Scope] = field(default_factory=set)
    """Scopes whose inputs or outputs changed."""
    model: bool = False
    """Whether the model's own fields changed."""

    def scopes(self) -> set[Scope]:
        """Return all scopes that something changed in."""
        return {*self.defined, *self.used, *self.names, *self.moved, *self.bodies, *self.terminals}

    def define(self, scope: Scope, names: Iterable[str]) -> None:
        """Mark values as defined anew, or not any more."""
        table = self.defined.setdefault(scope, {})
        table.update(dict.fromkeys(filter(None, names)))

    def use(self, scope: Scope, names: Iterable[str]) -> None:
        """Mark values as used more or less."""
        table = self.used.setdefault(scope, {})
        table.update(dict.fromkeys(filter(None, names)))


def marks_of(transaction: Transaction) -> Marks:
    """Return what a transaction may have changed when it was done or undone.

    Raises:
        EverythingError: It changed what everything depends on.
    """
    marks = Marks()
    for primitive in transaction.primitives:
        _mark(marks, primitive)
    if len(marks.nodes) > MOST_NODES:
        raise EverythingError
    return marks


def _mark(marks: Marks, primitive: Primitive) -> None:
    if isinstance(primitive, Splice):
        _mark_splice(marks, primitive)
    elif isinstance(primitive, SetLinks):
        _mark_links(marks, primitive)
    elif isinstance(primitive, SetAttribute):
        marks.nodes[primitive.node] = None
        for proto in (primitive.old, primitive.new):
            if proto is not None and (proto.HasField("g") or len(proto.graphs)):
                marks.bodies.add(primitive.scope)
                marks.linked[primitive.node] = None
    elif isinstance(primitive, SetText):
        _mark_text(marks, primitive)
    elif isinstance(primitive, SetList):
        _mark_list(marks, primitive)
    else:
        raise EverythingError


def _mark_links(marks: Marks, primitive: SetLinks) -> None:
    node, scope = primitive.node, primitive.scope
    names = (*primitive.old, *primitive.new)
    if node is None:
        raise EverythingError  # the calls of the function depend on it
    marks.nodes[node] = marks.linked[node] = None
    marks.use(scope, names)
    if primitive.side == "output":
        marks.define(scope, names)


def _mark_splice(marks: Marks, primitive: Splice) -> None:
    scope, list_name = primitive.scope, primitive.list_name
    records = (*primitive.removed, *primitive.inserted)
    if list_name == "function" or len(records) > MOST_NODES:
        raise EverythingError
    if list_name != "node":
        for record in records:
            _mark_record(marks, scope, list_name, [record_name(list_name, record)])
        return
    marks.moved.add(scope)
    names = marks.names.setdefault(scope, {})
    for node in records:
        marks.nodes[node] = marks.linked[node] = None
        names[node.name] = None
        marks.define(scope, node.outputs)
        marks.use(scope, (*node.inputs, *node.outputs))
        if node.children:
            marks.bodies.add(scope)


def _mark_record(marks: Marks, scope: Scope, list_name: str, names: list[str]) -> None:
    if list_name in _UNCHECKED:
        return
    table = marks.defined.setdefault(scope, {})
    table.update(dict.fromkeys(names))  # the empty name too: it is a finding
    marks.use(scope, names)
    if list_name in ("input", "output"):
        marks.terminals.add(scope)
        if scope.owner is not None:
            marks.nodes[scope.owner] = None
    marks.model = True


def _mark_text(marks: Marks, primitive: SetText) -> None:
    scope, name = primitive.scope, primitive.field_name
    old_and_new = [str(text or "") for text in (primitive.old, primitive.new)]
    if primitive.list_name == "node":
        node = primitive.node
        assert node is not None
        marks.nodes[node] = None
        if primitive.message is node.proto and name == "name":
            marks.names.setdefault(scope, {}).update(dict.fromkeys(old_and_new))
        if name in ("op_type", "domain", "overload"):
            marks.linked[node] = None
    elif primitive.list_name in scope.records and primitive.record is not None:
        if primitive.list_name == "function":
            raise EverythingError
        if primitive.list_name in _UNCHECKED:
            return
        present = record_name(primitive.list_name, primitive.record)
        renames = name == "name"
        _mark_record(
            marks, scope, primitive.list_name, [present, *(old_and_new if renames else ())]
        )
    else:
        if scope.is_function and name in _FUNCTION_FIELDS:
            raise EverythingError
        marks.model = True


def _mark_list(marks: Marks, primitive: SetList) -> None:
    if primitive.field_name in _PLAIN_LISTS:
        return
    if primitive.field_name == "opset_import" or primitive.list_name in ("", "model", "function"):
        raise EverythingError
    if primitive.node is not None:
        marks.nodes[primitive.node] = None
    elif primitive.record is not None and primitive.list_name not in _UNCHECKED:
        name = record_name(primitive.list_name, primitive.record)
        _mark_record(marks, primitive.scope, primitive.list_name, [name])


class Spread:
    """Marks as due what depends on an edit."""

    def __init__(self, checker: Checker, marks: Marks) -> None:
        self._checker = checker
        self._marks = marks

    def run(self) -> bool:
        """Mark everything; True when what holds for the model as a whole may have changed."""
        marks, states = self._marks, self._checker.states
        new = self._reconcile()
        touched = [states[scope] for scope in marks.scopes() if scope in states]
        for state in touched:
            if state.scope in marks.moved:
                state.moved()
            if state.scope in marks.terminals:
                state.read_terminals()
            for name in marks.defined.get(state.scope, ()):
                state.declare(name)
        self._spread_captures()
        for state in [states[scope] for scope in marks.scopes() if scope in states]:
            self._mark_values(state)
        self._mark_nodes()
        return marks.model or new

    # --- scopes ---------------------------------------------------------------------------------

    def _reconcile(self) -> bool:
        """Begin to check subgraphs that came, forget those that went."""
        checker, marks = self._checker, self._marks
        changed = False
        known = [checker.states[scope] for scope in marks.bodies if scope in checker.states]
        for state in sorted(known, key=lambda state: state.depth):
            if checker.states.get(state.scope) is not state:
                continue  # it went with the scope around it
            present = {child for node in state.scope.holders for child in node.subgraphs()}
            for child, child_state in list(state.children.items()):
                if child not in present:
                    self._let_go(state, child_state)
                    changed = True
            for child in present:
                if child not in state.children:
                    for _ in checker.add_scope(child, state.root, state):
                        pass
                    marks.use(state.scope, state.children[child].captured)
                    changed = True
        return changed

    def _let_go(self, parent: ScopeState, child: ScopeState) -> None:
        for name in child.captured:
            holders = parent.captured_by.get(name)
            if holders is not None:
                holders.pop(child, None)
                if not holders:
                    del parent.captured_by[name]
        self._marks.use(parent.scope, child.captured)
        self._checker.drop_scope(child)

    def _spread_captures(self) -> None:
        """Find out again which outer values scopes use, from the innermost scope outwards."""
        marks, states = self._marks, self._checker.states
        waiting = {states[s] for s in (*marks.used, *marks.defined) if s in states}
        while waiting:
            state = max(waiting, key=lambda state: state.depth)
            waiting.discard(state)
            parent, owner = state.parent, state.scope.owner
            if parent is None or owner is None:
                continue
            changed = []
            for name in {
                **marks.used.get(state.scope, {}),
                **marks.defined.get(state.scope, {}),
            }:
                if state.captures(name) != (name in state.captured):
                    self._flip(parent, state, name)
                    changed.append(name)
            if changed:
                marks.use(parent.scope, changed)
                marks.linked[owner] = None
                waiting.add(parent)

    @staticmethod
    def _flip(parent: ScopeState, state: ScopeState, name: str) -> None:
        if name in state.captured:
            state.captured.discard(name)
            holders = parent.captured_by[name]
            holders.pop(state, None)
            if not holders:
                del parent.captured_by[name]
        else:
            state.captured.add(name)
            parent.captured_by.setdefault(name, {})[state] = None

    # --- values ---------------------------------------------------------------------------------

    def _mark_values(self, state: ScopeState) -> None:
        marks, scope = self._marks, state.scope
        used, defined = marks.used.get(scope, {}), marks.defined.get(scope, {})
        due = state.due
        due.values.update({**used, **defined})
        due.names.update(marks.names.get(scope, {}))
        for name in used:
            for node in state.producers.get(name, ()):
                due.live[node] = None
                if len(node.proto.output) > 1:
                    due.nodes[node] = None
        for name in defined:
            self._mark_users(state, name)
        if defined and state.children:
            self._mark_shadows(state, defined)
        if used or defined:
            due.order = True
        self._checker.mark(state)

    def _mark_users(self, state: ScopeState, name: str) -> None:
        """Mark the nodes that make or use a value whose definition or type has changed."""
        due = state.due
        due.nodes.update(dict.fromkeys(state.producers.get(name, ())))
        due.nodes.update(dict.fromkeys(state.consumers.get(name, ())))
        due.live.update(dict.fromkeys(state.producers.get(name, ())))
        for child in state.captured_by.get(name, ()):
            if child.scope.owner is not None:
                due.nodes[child.scope.owner] = None
            self._mark_inner_users(child, name)

    def _mark_inner_users(self, state: ScopeState, name: str) -> None:
        state.due.nodes.update(dict.fromkeys(state.consumers.get(name, ())))
        if name in state.outputs:
            state.due.values[name] = None
        for child in state.captured_by.get(name, ()):
            self._mark_inner_users(child, name)
        self._checker.mark(state)

    def _mark_shadows(self, state: ScopeState, names: dict[str, None]) -> None:
        """Mark values of inner scopes that have, or had, the name of an outer one."""
        for child in state.children.values():
            for name in names:
                if child.defines(name):
                    child.due.values[name] = None
                    self._checker.mark(child)
            if child.children:
                self._mark_shadows(child, names)

    # --- nodes ----------------------------------------------------------------------------------

    def _mark_nodes(self) -> None:
        marks, checker = self._marks, self._checker
        for node in {**marks.nodes, **marks.linked}:
            state = checker.states.get(node.scope)
            if state is None:
                continue
            state.due.nodes[node] = None
            if node in marks.linked:
                self._mark_linked(state, node)
            checker.mark(state)

    @staticmethod
    def _mark_linked(state: ScopeState, node: Node) -> None:
        state.due.live[node] = None
        state.due.order = True
