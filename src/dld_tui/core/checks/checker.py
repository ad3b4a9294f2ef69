"""The checker: all findings of a document, scope by scope, in slices of time.

All work is done by one generator that yields every few milliseconds, so it can run on an event
loop. After an edit it begins again: until it ends, the findings are those of before the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from dld_tui.core.checks.findings import ORDER, Finding, Level
from dld_tui.core.checks.rules import check_model, check_node, check_node_name, check_size
from dld_tui.core.checks.signatures import Root, called_operators, functions_of
from dld_tui.core.checks.state import ScopeState, check_live, check_order
from dld_tui.core.checks.value_rules import check_value
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document import Document, Node, Scope
from dld_tui.core.model.document.node import columns_of
from dld_tui.core.process.plugins import plugins, skip
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
        self._checks = [*plugins("checks", NodeCheck)]

    @property
    def any(self) -> bool:
        """Whether there are any."""
        return bool(self._checks)

    def findings(self, node: Node) -> Iterator[Finding]:
        """Yield their findings on a node. A check that fails is left out from then on."""
        for plugin in [*self._checks]:
            check = plugin.value
            try:
                problems = [*map(visible, check.check(node))]
            # The seam to code of others, which may raise anything.
            except Exception as error:  # noqa: BLE001
                skip("checks", plugin, error)
                self._checks.remove(plugin)
                continue
            for text in problems:
                yield Finding(check.level, check.rule, text, node.scope, node)


_SLICE = 64
"""Nodes and values between two looks at the time."""
_LONG_ATTRIBUTES = 500
"""Bytes of attributes that two nodes rarely share, such as the tensors of constants."""


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
        model = check_model(document, roots, states.values())
        ranked = [(ORDER[finding.level], -1, 0, finding) for finding in model]
        for order, scope in enumerate(document.scopes()):
            if scope in states:
                findings = states[scope].found
                ranked += ((ORDER[f.level], order, place, f) for place, f in findings)
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
            names.update(state.quantization_parameters)
            state.captured.update(name for name in names if state.captures(name))
            for name in state.captured:
                parent.captured_by.setdefault(name, {})[state] = None
        yield

    def _check_scope(self, state: ScopeState) -> Iterator[None]:
        yield from self._check_nodes(state)
        for count, name in enumerate(self._names(state)):
            if findings := check_value(state, name):
                state.report(findings)
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
        producers, outer = state.producers, state.parent
        state.repeated.update(name for name, nodes in producers.items() if len(nodes) > 1)
        if state.repeated or outer is not None or not "".join(producers).isprintable():
            for name in producers:
                is_outer = outer is not None and outer.sees(name)
                if is_outer or name in state.repeated or not name.isprintable():
                    names[name] = None
        return names

    def _check_nodes(self, state: ScopeState) -> Iterator[None]:
        """Check all nodes; calls that differ in names only are compared with the operator once."""
        at = 0
        fine, has_bodies = state.root.fine, state.scope.control_flow
        undefined, type_of = state.undefined(), state.types_by_name()
        added = self._added if self._added.any else None
        waiting = set(state.producers)
        """Values that no node before makes."""
        for columns in columns_of(state.scope.nodes):
            kinds = columns.kinds
            is_printable = "".join(columns.names).isprintable()
            state.keys.update(zip(columns.nodes, kinds, strict=True))
            state.root.calls.update(kinds)
            for node, name, key, inputs, outputs, attributes in zip(
                columns.nodes,
                columns.names,
                kinds,
                columns.inputs,
                columns.outputs,
                columns.attributes,
                strict=True,
            ):
                form = (
                    key,
                    tuple(attributes),
                    tuple(map(type_of, inputs)),
                    tuple(map(type_of, outputs)),
                )
                if (
                    form not in fine
                    or node in has_bodies
                    or not (is_printable or name.isprintable())
                    or not undefined.isdisjoint(inputs)
                    or (len(outputs) > 1 and not all(map(state.uses, outputs)))
                ):
                    if findings := check_node(state, node, inputs):
                        state.report(findings, at)
                    elif sum(map(len, attributes)) < _LONG_ATTRIBUTES:
                        fine.add(form)
                if added is not None:
                    state.report(added.findings(node), at)
                taken = state.taken_by(node) if node in has_bodies else inputs
                if not waiting.isdisjoint(taken):
                    state.late.add(node)
                waiting.difference_update(outputs)
                if not at % _SLICE:
                    yield
                at += 1
