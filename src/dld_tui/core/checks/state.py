"""What a check knows of a scope: names, types, places, the order of nodes, and which are live."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

from dld_tui.core.checks import repairs
from dld_tui.core.checks.findings import Finding, make_finding, name_of
from dld_tui.core.checks.signatures import Key, Root
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import text_of
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.tensors.value_types import (
    ValueType,
    tensor_type,
    type_of_proto,
    type_of_value,
)

_TYPED_LISTS = ("value_info", "output", "input")
Types = tuple[bytes, "ValueType | None", bool]
"""What value_info and inference say of a value, and whether it is a constant."""


class ScopeState:
    """What one check knows of a scope, and what it found in it."""

    def __init__(self, scope: Scope, root: Root, parent: ScopeState | None) -> None:
        self.scope = scope
        self.root = root
        self.inputs = Counter(scope.inputs)
        self.outputs = Counter(scope.outputs)
        self.quantization_parameters = scope.quantization_parameters
        self.parent = parent
        self.children: dict[Scope, ScopeState] = {}
        self.producers = scope.links.producers
        self.consumers = scope.links.consumers
        self.found: list[tuple[int, Finding]] = []
        """Findings with the place in the scope that they are sorted by."""
        self.late: set[Node] = set()
        """Nodes that come before one of their inputs."""
        self.cycle: list[Node] = []
        """A cycle, its first node repeated at the end; empty when there is none."""
        self.keys: dict[Node, Key] = {}
        """The operator that each node calls."""
        self.declared: set[str] = set()
        """Inputs and initializers."""
        self.others: set[str] = {*self.inputs, *self.outputs}
        """Names in the lists of the scope other than that of the initializers."""
        self.types: dict[str, str] = {}
        """The declared types of values."""
        self.fine_types: set[Types] = set()
        """Types of values of which there is nothing to say: most have one of a few."""
        self.inline: dict[str, int] = {}
        """Bytes of the initializers in the model's own file, by name, where it is not zero."""
        self.external: list[onnx.TensorProto] = []
        """Tensors in data files; one that equal nodes hold may be here once only."""
        self.captured: set[str] = set()
        """Outer values that this scope and those below it use."""
        self.captured_by: dict[str, dict[ScopeState, None]] = {}
        """Values that scopes right below this one capture."""
        self.repeated: set[str] = set()
        """Values that several nodes make."""
        self.constants = {name for node in scope.nodes_of_type("Constant") for name in node.outputs}
        """Values that Constant nodes make."""
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.positions = {node: at for at, node in enumerate(scope.nodes)}
        """The place of each node in the list."""

    def declare_all(self) -> Iterator[None]:
        """Take note of all names in the lists of the scope; yields now and then."""
        scope, records, types = self.scope, self.scope.records, self.types
        self.declared.update(self.inputs)
        for list_name in ("initializer", "sparse_initializer"):
            if records.get(list_name):
                self.declared.update(scope.named(list_name))
        for list_name in ("sparse_initializer", *_TYPED_LISTS):
            if records.get(list_name):
                self.others.update(scope.named(list_name))
        for list_name in _TYPED_LISTS:
            for count, record in enumerate(records.get(list_name, ())):
                name = text_of(record.name)
                # Readers go by the constant, whatever value_info declares.
                if name not in types and not (list_name == "value_info" and self.is_constant(name)):
                    known = type_of_proto(record.type)
                    if known is not None:
                        types[name] = known
                if not count % 512:
                    yield
        for count, tensor in enumerate(records.get("initializer", ())):
            known = tensor_type(tensor.data_type)
            if known is not None:
                types.setdefault(text_of(tensor.name), known)
            if not count % 512:
                yield

    def records_of(self, list_name: str, name: str) -> list[Any]:
        """Return the records of a list that are about a value, in the order of the file."""
        records = self.scope.named(list_name).all(name)
        if len(records) < 2:
            return records
        # Edits leave them in another order in the index.
        return [
            record
            for record in self.scope.records[list_name]
            if any(record is other for other in records)
        ]

    def record_names(self) -> dict[str, None]:
        """Return the names in the lists of the scope that are about values."""
        names: dict[str, None] = {}
        for list_name in ("initializer", "sparse_initializer", "input", "output", "value_info"):
            if self.scope.records.get(list_name):
                names.update(dict.fromkeys(self.scope.named(list_name)))
        names.update(dict.fromkeys(self.inputs))
        names.update(dict.fromkeys(self.outputs))
        return names

    def is_constant(self, name: str) -> bool:
        """Return whether a Constant node makes a value."""
        return name in self.constants

    def defines(self, name: str) -> bool:
        """Return whether this very scope defines a value."""
        return name in self.producers or name in self.declared

    def sees(self, name: str) -> bool:
        """Return whether a value is defined here or around."""
        state: ScopeState | None = self
        while state is not None:
            if name in state.producers or name in state.declared:
                return True
            state = state.parent
        return False

    def repeats(self, name: str) -> bool:
        """Return whether a value that is made here is defined around before the node of the scope.

        ONNX Runtime refuses that, and takes the name of a value that is made by this node or later.
        """
        state: ScopeState = self
        while (owner := state.scope.owner) is not None and state.parent is not None:
            state = state.parent
            before = state.positions[owner]
            producers = state.producers.get(name, ())
            if name in state.declared or any(state.positions[one] < before for one in producers):
                return True
        return False

    def uses(self, name: str) -> bool:
        """Return what :meth:`Scope.is_used` does, of what the check has found so far."""
        return (
            name in self.consumers
            or name in self.captured_by
            or name in self.outputs
            or name in self.quantization_parameters
        )

    def captures(self, name: str) -> bool:
        """Return whether this scope takes a value from outside, for itself or those below it."""
        return self.parent is not None and self.uses(name) and not self.defines(name)

    def taken_by(self, node: Node) -> dict[str, None]:
        """Return the names that a node uses, through its subgraphs too."""
        names = dict.fromkeys(filter(None, node.inputs))
        for scope in node.subgraphs() if node.children else ():
            child = self.children.get(scope)
            if child is not None:
                names.update(dict.fromkeys(sorted(child.captured)))
        return names

    def undefined(self) -> set[str]:
        """Return the values that nodes of this scope use and nothing defines."""
        unknown = self.consumers.keys() - self.producers.keys() - self.declared
        return {name for name in unknown if not self.sees(name)}

    def types_by_name(self) -> Callable[[str], str | None]:
        """Return a function that gives the type of a value, ``""`` for one that is left out.

        It works each one out once.
        """
        if not self.scope.inferred and self.parent is None:
            return {**self.types, "": ""}.get
        known = _TypesOfScope(self)
        known[""] = ""
        return known.__getitem__

    def type_of(self, name: str) -> str | None:
        """Return the type of a value: declared in the file, or else inferred."""
        state: ScopeState | None = self
        while state is not None:
            known = state.types.get(name)
            if known is not None:
                return known
            value = state.scope.inferred.get(name)
            if value is not None and not state.scope.is_stale(name):
                return type_of_value(value)
            if state.defines(name):
                break
            state = state.parent
        return None

    def first_producer(self, name: str) -> Node | None:
        """Return the producer of a value that comes first in the list."""
        producer = self.producers.get(name)
        if not producer:
            return None
        if len(producer) == 1:
            return producer[0]
        positions = self.positions
        return min(producer, key=lambda node: positions.get(node, -1))

    def report(self, findings: Iterable[Finding], place: int = -1) -> None:
        """Take in findings; those that are not about a node come before those that are."""
        self.found += ((place, finding) for finding in findings)


class _TypesOfScope(dict[str, "str | None"]):
    """Types of values, each worked out when it is first asked for."""

    def __init__(self, state: ScopeState) -> None:
        self._state = state

    def __missing__(self, name: str) -> str | None:
        known = self[name] = self._state.type_of(name)
        return known


_SLICE = 256
_MOST_SHOWN = 8


def check_order(state: ScopeState) -> Iterator[None]:
    """Find out whether late nodes mean a cycle or only a wrong order; yields now and then."""
    if not state.late:
        return
    state.cycle = cycle = yield from _find_cycle(state)
    if not cycle:
        state.report([_unsorted(state)], -2)
        return
    path = " -> ".join(name_of(node.ref) for node in cycle[:_MOST_SHOWN])
    if len(cycle) > _MOST_SHOWN:
        path += f" -> … ({len(cycle) - 1} nodes)"
    text = f"Graph has a cycle: {path}"
    state.report([make_finding("graph-cycle", text, state.scope, cycle[0])], -2)


def _unsorted(state: ScopeState) -> Finding:
    first = min(state.late, key=lambda node: state.positions[node])
    text = f"Nodes are not topologically sorted: {name_of(first.ref)} comes before its input"
    return make_finding("unsorted-nodes", text, state.scope, first, repair=repairs.SORT_NODES)


def _sources(state: ScopeState, node: Node) -> list[Node]:
    """Return the producers of a node's inputs, in their order."""
    names: Iterable[str] = state.taken_by(node) if node.children else node.inputs
    sources = []
    for name in names:
        source = state.first_producer(name) if name else None
        if source is not None:
            sources.append(source)
    return sources


def _span(state: ScopeState) -> tuple[int, int]:
    """Return the places between which a cycle must lie.

    Along all links but the late ones places only grow, so no cycle leaves this range.
    """
    positions = state.positions
    places = [positions[node] for node in state.late]
    ends = [positions[source] for node in state.late for source in _sources(state, node)]
    return min(places), max(ends)


def _find_cycle(state: ScopeState) -> Generator[None, None, list[Node]]:
    """Return a cycle in the direction of the data with its first node repeated, or nothing."""
    positions = state.positions
    low, high = _span(state)
    done: set[Node] = set()
    steps = 0
    for start in state.scope.nodes[low : high + 1]:
        if start in done:
            continue
        path: list[Node] = [start]
        on_path = {start: 0}
        stack = [iter(_sources(state, start))]
        while stack:
            steps += 1
            if not steps % _SLICE:
                yield
            source = next(
                (s for s in stack[-1] if s not in done and low <= positions[s] <= high), None
            )
            if source is None:
                stack.pop()
                node = path.pop()
                done.add(node)
                del on_path[node]
            elif source in on_path:
                return _from_first(path[on_path[source] :][::-1], positions)
            else:
                on_path[source] = len(path)
                path.append(source)
                stack.append(iter(_sources(state, source)))
    return []


def _from_first(loop: list[Node], positions: dict[Node, int]) -> list[Node]:
    first = min(range(len(loop)), key=lambda index: positions[loop[index]])
    loop = loop[first:] + loop[:first]
    return [*loop, loop[0]]


MOST_LISTED = 200
"""Unused nodes of a scope that are listed one by one; of more, one finding gives the number."""

_LIVENESS_SLICE = 512


def check_live(state: ScopeState) -> Iterator[None]:
    """Find the nodes that no output depends on; yields now and then."""
    dead = yield from _find_dead(state)
    positions = state.positions
    if len(dead) > MOST_LISTED:
        last = max(dead, key=lambda node: positions.get(node, 0))
        text = f"and {len(dead) - 1} other nodes are not on the way to any output"
        dead = {last}
    else:
        text = "is not on the way to any output"
    for node in dead:
        finding = make_finding("unused-node", text, state.scope, node, repair=repairs.REMOVE_NODES)
        state.report([finding], positions[node])


def _find_dead(state: ScopeState) -> Generator[None, None, set[Node]]:
    dead = None if state.cycle or state.repeated else (yield from _few_dead(state))
    if dead is None:
        live = yield from _search_live(state)
        dead = {node for node in state.scope.nodes if node not in live}
    return dead


def _few_dead(state: ScopeState) -> Generator[None, None, set[Node] | None]:
    """Return the nodes that no output depends on; None if there are many.

    Right for graphs without cycles only: there, each node's answer follows from its users'. It
    reads only nodes that may be unused, which are few in most models.
    """
    producers, consumers = state.producers, state.consumers
    waiting = [
        node
        for name, nodes in producers.items()
        if name not in consumers and not state.uses(name)
        for node in nodes
    ]
    waiting = list(dict.fromkeys(waiting))  # a node may have many outputs
    yield
    makers = {node for nodes in producers.values() for node in nodes}
    if len(makers) < len(state.scope.nodes):
        waiting += [node for node in state.scope.nodes if node not in makers]
    yield
    live = set(state.scope.nodes)
    dead: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node not in live or _is_used(state, node, live):
            continue
        live.discard(node)
        dead.add(node)
        if len(dead) > MOST_LISTED:
            return None
        for name in state.taken_by(node) if node.children else node.inputs:
            waiting += producers.get(name, ())
    return dead


def _search_live(state: ScopeState) -> Generator[None, None, set[Node]]:
    """Return the nodes that an output depends on, found from the outputs."""
    producers = state.producers
    waiting = [node for name in state.outputs for node in producers.get(name, ())]
    live: set[Node] = set()
    steps = 0
    while waiting:
        node = waiting.pop()
        if node in live:
            continue
        live.add(node)
        for name in state.taken_by(node) if node.children else node.inputs:
            sources = producers.get(name)
            if sources:
                waiting += sources
        steps += 1
        if not steps % _LIVENESS_SLICE:
            yield
    return live


def _is_used(state: ScopeState, node: Node, live: set[Node]) -> bool:
    consumers = state.consumers
    for name in node.outputs:
        if not name:
            continue
        if name in state.outputs:
            return True
        for user in consumers.get(name, ()):
            if user in live:
                return True
        for child in state.captured_by.get(name, ()):
            if child.scope.owner in live:
                return True
    return False
