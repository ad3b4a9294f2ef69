"""The checker: all findings of a document, kept up to date edit by edit, in slices of time.

Findings are kept by their subject: a node, a value of a scope, the name of nodes, the order
of a scope, the model. An edit marks what it touches and what depends on that (see
:mod:`.staleness`), and only that is looked at again. All work is done by one generator that
yields every few milliseconds, so it can run on an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from time import perf_counter

from dld_tui.core.checks.findings import ORDER, Finding, Level
from dld_tui.core.checks.rules import (
    check_model,
    check_node,
    check_node_name,
    check_value,
    operator_of,
)
from dld_tui.core.checks.signatures import Root, called_operators, functions_of
from dld_tui.core.checks.state import (
    DueChecks,
    ScopeState,
    find_live,
    is_late,
    report_order,
    report_unused,
    search_order,
    update_live,
)
from dld_tui.core.document import Change, Document, Node, Scope
from dld_tui.core.document.index import record_name
from dld_tui.core.document.transactions import (
    Primitive,
    SetAttribute,
    SetLinks,
    SetList,
    SetText,
    Splice,
    Transaction,
)
from dld_tui.core.settings.plugins import plugins
from dld_tui.core.text import visible

MOST_NODES = 4000
"""Nodes of a change after which checking everything is no slower."""

_FUNCTION_FIELDS = frozenset({"name", "domain", "overload"})
_PLAIN_LISTS = frozenset({"metadata_props", "device_configurations"})
_UNCHECKED = frozenset({"quantization_annotation"})


class CheckAllError(Exception):
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
    interfaces: set[Scope] = field(default_factory=set)
    """Scopes whose inputs or outputs changed."""
    model: bool = False
    """Whether the model's own fields changed."""

    def scopes(self) -> set[Scope]:
        """Return all scopes that something changed in."""
        return {*self.defined, *self.used, *self.names, *self.moved, *self.bodies, *self.interfaces}

    def define(self, scope: Scope, names: Iterable[str]) -> None:
        """Mark values whose definition was added, changed or removed."""
        table = self.defined.setdefault(scope, {})
        table.update(dict.fromkeys(filter(None, names)))

    def use(self, scope: Scope, names: Iterable[str]) -> None:
        """Mark values as used more or less."""
        table = self.used.setdefault(scope, {})
        table.update(dict.fromkeys(filter(None, names)))


def marks_of(transaction: Transaction) -> Marks:
    """Return the marks of a transaction that was done or undone.

    Raises:
        EverythingError: It changed what everything depends on.
    """
    marks = Marks()
    for primitive in transaction.primitives:
        _mark(marks, primitive)
    if len(marks.nodes) > MOST_NODES:
        raise CheckAllError
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
        raise CheckAllError


def _mark_links(marks: Marks, primitive: SetLinks) -> None:
    node, scope = primitive.node, primitive.scope
    names = (*primitive.old, *primitive.new)
    if node is None:
        raise CheckAllError  # the calls of the function depend on it
    marks.nodes[node] = marks.linked[node] = None
    marks.use(scope, names)
    if primitive.side == "output":
        marks.define(scope, names)


def _mark_splice(marks: Marks, primitive: Splice) -> None:
    scope, list_name = primitive.scope, primitive.list_name
    records = (*primitive.removed, *primitive.inserted)
    if list_name == "function" or len(records) > MOST_NODES:
        raise CheckAllError
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
        marks.interfaces.add(scope)
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
            raise CheckAllError
        if primitive.list_name in _UNCHECKED:
            return
        present = record_name(primitive.list_name, primitive.record)
        renames = name == "name"
        _mark_record(
            marks, scope, primitive.list_name, [present, *(old_and_new if renames else ())]
        )
    else:
        if scope.is_function and name in _FUNCTION_FIELDS:
            raise CheckAllError
        marks.model = True


def _mark_list(marks: Marks, primitive: SetList) -> None:
    if primitive.field_name in _PLAIN_LISTS:
        return
    if primitive.field_name == "opset_import" or primitive.list_name in ("", "model", "function"):
        raise CheckAllError
    if primitive.node is not None:
        marks.nodes[primitive.node] = None
    elif primitive.record is not None and primitive.list_name not in _UNCHECKED:
        name = record_name(primitive.list_name, primitive.record)
        _mark_record(marks, primitive.scope, primitive.list_name, [name])


class Invalidation:
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
            if state.scope in marks.interfaces:
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
            present = {child for node in state.scope.control_flow for child in node.subgraphs()}
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
            capturing = parent.captured_by.get(name)
            if capturing is not None:
                capturing.pop(child, None)
                if not capturing:
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
            capturing = parent.captured_by[name]
            capturing.pop(state, None)
            if not capturing:
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


@dataclass(frozen=True)
class NodeCheck:
    """A rule that looks at one node at a time, so that an edit checks again what it touches."""

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


UPDATE_S = 0.012
"""The most seconds of an update; the rest is done by :meth:`Checker.steps`."""
_SLICE = 64


class Checker:
    """Checks a document, and again after each edit what the edit affects.

    Args:
        document: The document; it is only looked at.
        operators: Compare nodes with their operators too, which loads the tables of all of them.
    """

    def __init__(self, document: Document, *, operators: bool = True) -> None:
        self.document = document
        self.operators = operators
        self.states: dict[Scope, ScopeState] = {}
        self.roots: list[Root] = []
        self._added = PluginChecks()
        self._model: list[Finding] = []
        self._model_due = True
        self._due: dict[ScopeState, None] = {}
        self._job: Iterator[None] | None = None
        self._is_built = False
        self._done = False

    # --- what users call ------------------------------------------------------------------------

    @property
    def done(self) -> bool:
        """Whether the findings are up to date."""
        return self._done

    def restart(self) -> None:
        """Forget everything: the next steps check all of the document."""
        self._is_built = self._done = False
        self._job = None

    def steps(self) -> Iterator[None]:
        """Run the checks that are due, initially all; yields every few milliseconds.

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
        """Mark what an edit, undo or redo may have changed; :meth:`steps` checks it."""
        self._job = None
        self._done = False
        if change.transaction is None or not self._is_built:
            self._is_built = False
            return
        try:
            marks = marks_of(change.transaction)
        except CheckAllError:
            self._is_built = False
            return
        if Invalidation(self, marks).run():
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
        """Return the findings: errors first, then by place."""
        ranked: list[tuple[int, int, int, Finding]] = []
        ranked += ((ORDER[f.level], -1, 0, f) for f in self._model)
        places = {scope: index for index, scope in enumerate(self.document.scopes())}
        for scope, state in self.states.items():
            order = places.get(scope)
            if order is not None:
                placed = (*state.findings(), *report_unused(state))
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
        state.due.names = dict.fromkeys(scope.shared_names())
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
                report_order(state)
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
        called = called_operators(document) if functions else ()
        self.roots = [
            Root(scope, functions, called=called, operators=self.operators) for scope in scopes
        ]
        for root in self.roots:
            yield from self.add_scope(root.scope, root, None)
        self._is_built = True

    def _work_on(self, state: ScopeState) -> Iterator[None]:
        """Run the checks that are due in a scope, and unmark each: this may be interrupted."""
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
        if not due:
            state.due = DueChecks()  # a dict that was emptied item by item keeps its size

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
