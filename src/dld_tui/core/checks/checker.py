"""The checker: all findings of a document, scope by scope, in slices of time.

All work is done by one generator that yields every few milliseconds, so it can run on an event
loop. After an edit it begins again: until it ends, the findings are those of before the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from dld_tui.core.checks.findings import ORDER, Finding, Level
from dld_tui.core.checks.rules import (
    check_model,
    check_node,
    check_node_name,
    check_size,
    check_value,
    operator_of,
)
from dld_tui.core.checks.signatures import Root, called_operators, functions_of
from dld_tui.core.checks.state import ScopeState, check_live, check_order, is_late
from dld_tui.core.document import Document, Node, Scope
from dld_tui.core.settings.plugins import plugins
from dld_tui.core.text import visible


@dataclass(frozen=True)
class NodeCheck:
    """A rule that looks at one node at a time."""

    rule: str
    """Its id in findings, e.g. ``my-package:no-sigmoid``."""
    level: Level
    check: Callable[[Node], Iterable[str]]
    """Takes a node and returns a sentence for each thing that is wrong with it."""


class PluginChecks:
    """The checks of other packages, as they were found when a document was opened."""

    def __init__(self) -> None:
        loaded = plugins("checks", NodeCheck)
        self._checks = [plugin.value for plugin in loaded if plugin.value is not None]
        self.problems = [
            Finding(
                "info",
                "check-unavailable",
                visible(
                    f"the check {plugin.name} of {plugin.package} is unavailable: {plugin.problem}"
                ),
            )
            for plugin in loaded
            if plugin.problem
        ]
        """Findings on checks that cannot be imported."""

    def findings(self, node: Node) -> Iterator[Finding]:
        """Yield their findings on a node."""
        for check in self._checks:
            try:
                problems = [*check.check(node)]
                level = check.level
            # The seam to code of others, which may raise anything.
            except Exception as error:  # noqa: BLE001
                problems, level = [f"the check failed: {type(error).__name__}: {error}"], "info"
            for text in problems:
                yield Finding(level, check.rule, visible(text), node.scope, node)


_SLICE = 64
"""Nodes and values between two looks at the time."""


class Checker:
    """Checks a document, all of it, in slices of time; after an edit from the beginning.

    Args:
        document: The document; it is only looked at.
        operators: Compare nodes with their operators too, which loads the tables of all of them.
    """

    def __init__(self, document: Document, *, operators: bool = True) -> None:
        self.document = document
        self.operators = operators
        self._added = PluginChecks()
        self._findings: list[Finding] = []
        self._job: Iterator[None] | None = None
        self._done = False

    @property
    def done(self) -> bool:
        """Whether the findings are of the document as it is."""
        return self._done

    def restart(self) -> None:
        """Take note that the document has changed: the next steps check it again."""
        self._done = False
        self._job = None

    def steps(self) -> Iterator[None]:
        """Check, and yield every few milliseconds; goes on where an earlier call was left.

        Call :meth:`restart` after an edit.
        """
        while not self._done:
            job = self._job = self._job or self._check()
            if next(job, self) is self:
                self._job = None
                self._done = True
                return
            yield

    def run(self) -> list[Finding]:
        """Check all at once and return the findings."""
        for _ in self.steps():
            pass
        return self._findings

    def findings(self) -> list[Finding]:
        """Return the findings of the last check that ended: errors first, then by place."""
        return self._findings

    # --- work -----------------------------------------------------------------------------------

    def _check(self) -> Iterator[None]:
        document = self.document
        crowded: list[Finding] = []
        for finding in check_size(document):
            if finding is None:
                yield
            else:
                crowded.append(finding)
        if crowded:
            self._findings = crowded
            return
        functions = functions_of(document)
        called = called_operators(document) if functions else ()
        roots = [
            Root(scope, functions, called=called, operators=self.operators)
            for scope in (document.main, *document.functions)
        ]
        states: dict[Scope, ScopeState] = {}
        for root in roots:
            yield from self._enter(states, root.scope, root, None)
        for state in states.values():
            yield from self._check_scope(state)
        model = [*check_model(document, roots, states.values()), *self._added.problems]
        ranked = [(ORDER[finding.level], -1, 0, finding) for finding in model]
        for order, scope in enumerate(document.scopes()):
            if scope in states:
                found = states[scope].found
                ranked += ((ORDER[f.level], order, place, f) for place, f in found)
        ranked.sort(key=lambda item: item[:3])
        self._findings = [item[3] for item in ranked]

    def _enter(
        self,
        states: dict[Scope, ScopeState],
        scope: Scope,
        root: Root,
        parent: ScopeState | None,
    ) -> Iterator[None]:
        """Read the names of a scope and of those below it."""
        state = states[scope] = ScopeState(scope, root, parent)
        yield
        if parent is not None:
            parent.children[scope] = state
        for child in scope.children():
            yield from self._enter(states, child, root, state)
        yield from state.declare_all()
        if parent is not None:
            names = {*state.consumers, *state.captured_by, *state.outputs}
            state.captured.update(name for name in names if state.captures(name))
            for name in state.captured:
                parent.captured_by.setdefault(name, {})[state] = None
        yield

    def _check_scope(self, state: ScopeState) -> Iterator[None]:
        for at, node in enumerate(state.scope.nodes):
            self._check_node(state, node, at)
            if not at % _SLICE:
                yield
        for count, name in enumerate(self._names(state)):
            state.report(check_value(state, name))
            if not count % _SLICE:
                yield
        for name in state.scope.shared_names():
            check_node_name(state, name)
        yield from check_order(state)
        yield from check_live(state)

    @staticmethod
    def _names(state: ScopeState) -> dict[str, None]:
        """Return the values to look at: those in lists, and those whose names may be a fault."""
        names = state.record_names()
        for name, nodes in state.producers.items():
            if state.parent is not None or len(nodes) > 1 or not name.isprintable():
                names[name] = None
            if len(nodes) > 1:
                state.repeated.add(name)
        return names

    def _check_node(self, state: ScopeState, node: Node, at: int) -> None:
        key = state.keys[node] = operator_of(node)
        state.root.calls[key] += 1
        inputs = node.inputs
        state.report(check_node(state, node, inputs), at)
        state.report(self._added.findings(node), at)
        if is_late(state, node, inputs):
            state.late.add(node)
