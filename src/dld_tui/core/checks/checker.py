"""The checker: all findings of a document, kept up to date edit by edit, in slices of time.

Findings are kept by what they are about: a node, a value of a scope, the name of nodes, the order
of a scope, the model. An edit marks what it touches and what depends on that (see
:mod:`.invalidation`), and only that is looked at again. All work is done by one generator that
yields every few milliseconds, so it can run on an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter

from dld_tui.core.checks.calls import Root, functions_of
from dld_tui.core.checks.findings import ORDER, Finding, Level
from dld_tui.core.checks.invalidation import EverythingError, Spread, marks_of
from dld_tui.core.checks.model_rules import check_model, check_node_name
from dld_tui.core.checks.node_rules import check_node, operator_of
from dld_tui.core.checks.ordering import (
    find_live,
    is_late,
    say_order,
    say_unused,
    search_order,
    update_live,
)
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.checks.value_rules import check_value
from dld_tui.core.document import Change, Document, Node, Scope
from dld_tui.core.plugins import plugins
from dld_tui.core.text import visible


@dataclass(frozen=True)
class NodeCheck:
    """A rule that looks at one node at a time, so that an edit checks again what it touches."""

    rule: str
    """Its id in findings, e.g. ``my-package:no-sigmoid``."""
    level: Level
    check: Callable[[Node], Iterable[str]]
    """Takes a node and returns a sentence for each thing that is wrong with it."""


class AddedChecks:
    """The checks of other packages, as they were found when a document was opened."""

    def __init__(self) -> None:
        found = plugins("checks", NodeCheck)
        self._checks = [one.value for one in found if one.value is not None]
        self.problems = [
            Finding(
                "info",
                "check-unavailable",
                visible(f"the check {one.name} of {one.package} is unavailable: {one.problem}"),
            )
            for one in found
            if one.problem
        ]
        """What is to be said of those that cannot be imported."""

    def findings(self, node: Node) -> Iterator[Finding]:
        """Yield what they say of a node."""
        for one in self._checks:
            try:
                said = [*one.check(node)]
                level = one.level
            # The seam to code of others, which may raise anything.
            except Exception as error:  # noqa: BLE001
                said, level = [f"the check failed: {type(error).__name__}: {error}"], "info"
            for text in said:
                yield Finding(level, one.rule, visible(text), node.scope, node)


UPDATE_S = 0.012
"""Seconds that an update takes at most; what is left is done by :meth:`Checker.steps`."""
_SLICE = 64


class Checker:
    """Finds what is wrong with a document, and again after each edit.

    Args:
        document: The document; it is only looked at.
        operators: Compare nodes with their operators too, which loads the tables of all of them.
    """

    def __init__(self, document: Document, *, operators: bool = True) -> None:
        self.document = document
        self.operators = operators
        self.states: dict[Scope, ScopeState] = {}
        self.roots: list[Root] = []
        self._added = AddedChecks()
        self._model: list[Finding] = []
        self._model_due = True
        self._due: dict[ScopeState, None] = {}
        self._job: Iterator[None] | None = None
        self._is_built = False
        self._done = False

    # --- what users call ------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether the findings are of the document as it is now."""
        return self._done

    def restart(self) -> None:
        """Forget everything: the next steps check all of the document."""
        self._is_built = self._done = False
        self._job = None

    def steps(self) -> Iterator[None]:
        """Check what is to be checked, all of it at first; yields every few milliseconds.

        Stop and make another one after an edit.
        """
        while not self._done:
            job = self._job = self._job or self._work()
            if next(job, self) is self:
                if self._job is job:
                    self._job = None
                continue
            yield

    def note(self, change: Change) -> None:
        """Take note of what an edit, undo or redo may have changed; :meth:`steps` checks it."""
        self._job = None
        self._done = False
        if change.transaction is None or not self._is_built:
            self._is_built = False
            return
        try:
            marks = marks_of(change.transaction)
        except EverythingError:
            self._is_built = False
            return
        if Spread(self, marks).run():
            self._model_due = True

    def types_changed(self) -> None:
        """Take note that shape inference has found types; :meth:`steps` compares them."""
        self._job = None
        self._done = False
        for state in self.states.values():
            if state.scope.inferred or state.inferred_nodes or state.inferred_values:
                state.due.nodes = dict.fromkeys(reversed(state.scope.nodes))
                state.due.values.update(state.record_names())
                self.mark(state)

    def update(self, change: Change) -> list[Finding]:
        """Check again what an edit, undo or redo may have changed, and return all findings.

        Where that is much, or the first check is not yet done, :attr:`done` is False afterwards and
        :meth:`steps` does the rest.
        """
        self.note(change)
        if self._is_built:
            end = perf_counter() + UPDATE_S
            for _ in self.steps():
                if perf_counter() > end:
                    break
        return self.findings()

    def run(self) -> list[Finding]:
        """Check all that is to be checked at once and return all findings."""
        for _ in self.steps():
            pass
        return self.findings()

    def findings(self) -> list[Finding]:
        """Return what was found: errors first, then by place."""
        ranked: list[tuple[int, int, int, Finding]] = []
        ranked += ((ORDER[f.level], -1, 0, f) for f in self._model)
        places = {scope: index for index, scope in enumerate(self.document.scopes())}
        for scope, state in self.states.items():
            order = places.get(scope)
            if order is not None:
                placed = (*state.findings(), *say_unused(state))
                ranked += ((ORDER[f.level], order, place, f) for place, f in placed)
        ranked.sort(key=lambda item: item[:3])
        return [item[3] for item in ranked]

    # --- for spreading --------------------------------------------------------------------------

    def add_scope(self, scope: Scope, root: Root, parent: ScopeState | None) -> Iterator[None]:
        """Begin to check a scope and those below it, which are new."""
        state = self.states[scope] = ScopeState(scope, root, parent)
        if parent is not None:
            parent.children[scope] = state
        for child in scope.children():
            yield from self.add_scope(child, root, state)
        yield from state.declare_all()
        names = {*state.consumers, *state.captured_by, *state.outputs} if parent else ()
        for name in names:
            if state.captures(name):
                state.captured.add(name)
        if parent is not None:
            for name in state.captured:
                parent.captured_by.setdefault(name, {})[state] = None
        yield
        # They are taken from the end.
        state.due.nodes = dict.fromkeys(reversed(scope.nodes))
        yield
        state.due.values = state.record_names()
        yield
        for index, node in enumerate(scope.nodes):
            state.due.names[node.name] = None
            if not index % 4096:
                yield
        for index, (name, nodes) in enumerate(list(state.producers.items())):
            if parent is not None or len(nodes) > 1 or not name.isprintable():
                state.due.values[name] = None
            if not index % 4096:
                yield
        state.due.order = state.due.all_live = True
        self.mark(state)
        yield

    def drop_scope(self, state: ScopeState) -> None:
        """Forget a scope that is no longer part of the document, and those below it."""
        for child in list(state.children.values()):
            self.drop_scope(child)
        for key in state.keys.values():
            self._uncount(state.root, key)
        self.states.pop(state.scope, None)
        self._due.pop(state, None)
        if state.parent is not None:
            state.parent.children.pop(state.scope, None)
        self._model_due = True

    def mark(self, state: ScopeState) -> None:
        """Take note that something is due in a scope."""
        self._due[state] = None

    # --- work -----------------------------------------------------------------------------------

    def _work(self) -> Iterator[None]:
        if not self._is_built:
            yield from self._build()
        while self._due:
            state = next(iter(self._due))
            yield from self._work_on(state)
            self._due.pop(state, None)
        self._look_at_inferred()
        for state in self.states.values():
            if state.order_findings:
                say_order(state)
        if self._model_due:
            self._model = list(check_model(self.document, self.roots, self.states.values()))
            self._model += self._added.problems
            self._model_due = False
        self._done = True

    def _build(self) -> Iterator[None]:
        document = self.document
        self.states, self._due, self._model_due = {}, {}, True
        functions = functions_of(document)
        scopes = (document.main, *document.functions)
        self.roots = [Root(scope, functions, operators=self.operators) for scope in scopes]
        for root in self.roots:
            yield from self.add_scope(root.scope, root, None)
        self._is_built = True

    def _work_on(self, state: ScopeState) -> Iterator[None]:
        """Do what is due in a scope. What is done is taken off at once: it may be interrupted."""
        due = state.due
        yield from self._work_on_nodes(state)
        count = 0
        while due.values:
            name, _ = due.values.popitem()
            self._look_at_value(state, name)
            count += 1
            if not count % _SLICE:
                yield
        while due.names:
            name, _ = due.names.popitem()
            check_node_name(state, name)
            count += 1
            if not count % 1024:
                yield
        if due.order:
            yield from search_order(state)
            due.order = False
        if state.cycle or state.repeated:
            due.all_live = due.all_live or bool(due.live)
        if due.all_live:
            yield from find_live(state)
            due.all_live = False
        elif due.live:
            yield from update_live(state)
        due.live = {}

    def _work_on_nodes(self, state: ScopeState) -> Iterator[None]:
        waiting, count = state.due.nodes, 0
        while waiting:
            node, _ = waiting.popitem()
            if node in state.positions:
                self._look_at_node(state, node)
            else:
                self._forget_node(state, node)
            count += 1
            if not count % _SLICE:
                yield

    def _forget_node(self, state: ScopeState, node: Node) -> None:
        """Forget a node that is no longer in its scope."""
        key = state.keys.pop(node, None)
        if key is not None:
            self._uncount(state.root, key)
            self._model_due = True
        state.node_findings.pop(node, None)
        state.dead.discard(node)
        state.due.live.pop(node, None)
        state.live.discard(node)
        state.late.discard(node)
        state.inferred_nodes.discard(node)

    def _look_at_node(self, state: ScopeState, node: Node) -> None:
        key = operator_of(node)
        old = state.keys.get(node)
        if key != old:
            if old is not None:
                self._uncount(state.root, old)
            state.root.calls[key] += 1
            state.keys[node] = key
            self._model_due = True
        state.inferred_nodes.discard(node)
        inputs = node.inputs
        findings = [*check_node(state, node, inputs), *self._added.findings(node)]
        if findings:
            state.node_findings[node] = findings
        elif old is not None:
            state.node_findings.pop(node, None)
        if is_late(state, node, inputs):
            state.late.add(node)
        else:
            state.late.discard(node)

    def _look_at_value(self, state: ScopeState, name: str) -> None:
        state.inferred_values.discard(name)
        findings = check_value(state, name)
        if findings:
            state.value_findings[name] = findings
        else:
            state.value_findings.pop(name, None)
        repeated = len(state.producers.get(name, ())) > 1
        (state.repeated.add if repeated else state.repeated.discard)(name)

    def _look_at_inferred(self) -> None:
        """Look again at what inferred types led to: an edit may have made them stale."""
        for state in self.states.values():
            for node in list(state.inferred_nodes):
                self._look_at_node(state, node)
            for name in list(state.inferred_values):
                self._look_at_value(state, name)

    @staticmethod
    def _uncount(root: Root, key: tuple[str, str]) -> None:
        root.calls[key] -= 1
        if root.calls[key] <= 0:
            del root.calls[key]
