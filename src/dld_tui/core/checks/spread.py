"""From what an edit touched to all that must be looked at again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dld_tui.core.checks.changes import Marks
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node

if TYPE_CHECKING:
    from dld_tui.core.checks.checker import Checker


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
