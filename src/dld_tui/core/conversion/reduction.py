"""The fewest nodes with which a check still fails (:mod:`dld_tui.core.trials`), and their model.

The outputs of removed nodes become inputs of the model, which bodies capture and calls pass on;
values that only removed nodes used become outputs. A body keeps its outputs: copies of such inputs.
"""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event
from dld_tui.core.files import protos as onnx
from dld_tui.core.files.proto_fields import operator_key, text_of, texts_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.local_functions import FunctionKey, call_of, key_of
from dld_tui.core.model.document.locations import bodies_of, names_used, nested_nodes
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.opset_imports import imports_of
from dld_tui.core.model.document.parts.extraction import (
    Extraction,
    extract_nodes,
    is_constant,
    typed_record,
)
from dld_tui.core.model.document.parts.fragment import defined_in, rename_links
from dld_tui.core.model.document.scope import Scope, unused_name
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.document.traversal import topological_order
from dld_tui.core.trials import Found, Order, Outcome, Subset, Trials
from dld_tui.core.types import SCAN_SINCE, plain_domain


@dataclass(frozen=True)
class Reduction:
    """The result of a search for a smaller model. Fields may be added, never renamed."""

    path: Path
    """The smallest model that was found."""
    nodes_before: int
    nodes_after: int
    nodes: list[str]
    """The remaining nodes, by their refs in the original model; refs of nodes in bodies and
    functions follow the steps to these. Untrusted text."""
    tried: int
    """Models that were checked."""
    known: int
    """Further models whose answer was known from an earlier search that was stopped."""
    seconds: float
    said: str
    """The end of what the check printed of the smallest model. Untrusted text."""
    minimal: bool = True
    """Whether no single node can be left out; else a limit ended the search."""
    unknown: int = 0
    """Nodes without which there is no model, or the check did not end."""


def main_nodes(document: Document) -> list[Node] | None:
    """Return the nodes of the main graph in topological order; None for a cycle.

    Constants are left out unless there is nothing else: they accompany the nodes that use them.
    """
    nodes = topological_order(document.main)
    return nodes and ([node for node in nodes if not is_constant(node)] or nodes)


def node_labels(document: Document, main: Sequence[Node]) -> dict[Node, str]:
    """Return the names of nodes, and of those in their bodies and functions."""
    return {node: " › ".join((*node.scope.path, node.ref)) for node in reached(document, main)}


def minimize_nodes(
    document: Document,
    main: Sequence[Node],
    labels: Mapping[Node, str],
    trials: Trials[Subset, Outcome],
) -> Generator[Event, None, tuple[list[Node], Found]]:
    """Find a minimal set of nodes of a model that still fails, also in bodies and local functions.

    The main graph comes first, with whole bodies; then all remaining nodes, each by itself.

    Args:
        document: The model, which fails.
        main: The result of :func:`main_nodes`.
        labels: The result of :func:`node_labels`.
        trials: Say of the labels of nodes, with those of the nodes whose bodies or functions they
            are in, whether they suffice to fail.

    Returns:
        The remaining nodes, and the result of the last search.
    """
    found = yield from _minimize_items(
        main, labels, lambda part: list(reached(document, part)), trials
    )
    fewest_main = _items(main, labels, found)
    items = list(reached(document, fewest_main))
    if len(items) == len(fewest_main) or not found.is_whole:
        return items, found

    def owned(nodes: Sequence[Node]) -> list[Node]:
        """Drop nodes of bodies whose owners are gone, and nodes of functions without a call."""
        main = [node for node in nodes if node.scope is document.main]
        return list(reached(document, main, set(nodes)))

    found = yield from _minimize_items(items, labels, owned, trials)
    return owned(_items(items, labels, found)), found


def _items(items: Sequence[Node], labels: Mapping[Node, str], found: Found) -> list[Node]:
    """Return the nodes that were found; all where a limit ended a search before any were."""
    if found.things is None:
        return [*items]
    kept = set(found.things)
    return [node for node in items if labels[node] in kept]


def _minimize_items(
    items: Sequence[Node],
    labels: Mapping[Node, str],
    closure: Callable[[list[Node]], list[Node]],
    trials: Trials[Subset, Outcome],
) -> Generator[Event, None, Found]:
    def question(kept: Subset) -> Subset | None:
        nodes = closure([node for node in items if labels[node] in kept])
        return frozenset(labels[node] for node in nodes) or None

    names = [labels[node] for node in items]
    return (yield from trials.smallest(names, question, Order.NEIGHBOURS))


def reached(
    document: Document, nodes: Iterable[Node], kept: Collection[Node] | None = None
) -> Iterator[Node]:
    """Yield nodes, those of their bodies, and those of the functions that they call, each once.

    Args:
        document: Their model.
        nodes: Nodes of it.
        kept: The only ones that are followed; None for all.
    """
    functions = {key_of(function): function for function in document.functions}
    waiting = list(nodes)[::-1]
    called: set[FunctionKey] = set()
    while waiting:
        node = waiting.pop()
        if kept is not None and node not in kept:
            continue
        yield node
        inner = [part for body in node.subgraphs() for part in body.nodes]
        key = call_of(node)
        if key in functions and key not in called:
            called.add(key)
            waiting[:0] = functions[key].nodes[::-1]
        waiting += inner[::-1]


def extract_kept(document: Document, kept: Collection[Node]) -> Extraction | None:
    """Return the nodes that are kept, in bodies and functions too, as a model.

    Args:
        document: The model, with inferred types; no function of it calls itself.
        kept: Nodes, at least one of the main graph; those of which the holder or the call is not
            kept go, too.

    Returns:
        None where the type of what a node made is not known, so that it cannot be an input.
    """
    main = [node for node in document.main.nodes if node in kept]
    whole = extract_nodes(document, main)
    if all(node in kept for node in reached(document, main)):
        return whole
    with contextlib.closing(whole.document) as source:
        model = onnx.ModelProto.FromString(skeleton_bytes(source))
        try:
            _Cut(document, model, kept).cut(main)
        except _UnknownTypeError:
            return None
        smaller = Document(
            model, path=None, blobs=source.blobs.reopened(), external=source.external.reopened()
        )
    with contextlib.closing(smaller):
        return extract_nodes(smaller, smaller.main.nodes[-len(main) :])


class _UnknownTypeError(Exception):
    """A value whose type is not known would have to be an input."""


_Function: TypeAlias = "onnx.FunctionProto | None"


@dataclass(frozen=True)
class _Body:
    """A graph or function of the new model."""

    proto: onnx.GraphProto | onnx.FunctionProto
    scope: Scope
    owner: onnx.NodeProto | None = None
    outer: _Body | None = None

    @property
    def function(self) -> _Function:
        """The function that it is, or is inside of."""
        body = self
        while body.outer is not None:
            body = body.outer
        return body.proto if isinstance(body.proto, onnx.FunctionProto) else None

    @property
    def outputs(self) -> list[str]:
        if isinstance(self.proto, onnx.FunctionProto):
            return list(texts_of(self.proto.output))
        return [text_of(info.name) for info in self.proto.output]


@dataclass(frozen=True)
class _Change:
    """An input or output that a function got, for its calls."""

    function: FunctionKey
    is_input: bool
    place: int
    info: onnx.ValueInfoProto


class _Cut:
    """One model that loses nodes."""

    def __init__(self, document: Document, model: onnx.ModelProto, kept: Collection[Node]) -> None:
        self._document = document
        self._model = model
        self._kept = kept
        self._bodies: list[_Body] = []
        self._changes: deque[_Change] = deque()
        self._copies: list[tuple[onnx.GraphProto | onnx.FunctionProto, str, str]] = []
        """Bodies, what they copy, and the name of the copy: nodes are counted until the end."""
        self._names = set(_names_of(model.graph.node)) | defined_in(model.graph)
        for function in model.functions:
            self._names |= {*_names_of(function.node), *function.input, *function.output}

    def cut(self, main: list[Node]) -> None:
        """Take the nodes away.

        Args:
            main: The nodes of the main graph, in its order; constants of the model come before.
        """
        graph = self._model.graph
        body = _Body(graph, self._document.main)
        self._bodies.append(body)
        for node, proto in zip(main, list(graph.node)[-len(main) :], strict=True):
            self._enter(node, proto, body)
            for info in (typed_record(node.scope, name) for name in node.outputs if name):
                if info.HasField("type"):
                    graph.value_info.append(info)
        called = {call_of(node) for node in self._kept}
        known = {key_of(scope): scope for scope in self._document.functions}
        for function in self._model.functions:
            if operator_key(function) in called:
                self._strip(_Body(function, known[operator_key(function)]))
        while self._changes:
            self._follow(self._changes.popleft())
        for copying, source, name in self._copies:
            # What they copy comes from outside, and nodes of the body may use what they make.
            copy = onnx.NodeProto(op_type="Identity", input=[source], output=[name])
            copying.node.insert(0, copy)
        imports = [self._model.opset_import, *(f.opset_import for f in self._model.functions)]
        for entries in imports if self._copies else ():
            if all(plain_domain(text_of(entry.domain)) for entry in entries):
                entries.add(version=self._document.opset_imports.get("", 1))
        for body in self._bodies[1:]:
            _tidy(body.proto)

    def _enter(self, node: Node, proto: onnx.NodeProto, home: _Body) -> None:
        for scope, graph in zip(node.subgraphs(), bodies_of(proto), strict=True):
            self._strip(_Body(graph, scope, proto, home))

    def _strip(self, body: _Body) -> None:
        self._bodies.append(body)
        nodes = body.scope.nodes
        protos = body.proto.node
        used_before = names_used(protos)
        lost = [name for node in nodes if node not in self._kept for name in node.outputs if name]
        for place in reversed(range(len(nodes))):
            if nodes[place] not in self._kept:
                del protos[place]
        kept_nodes = [node for node in nodes if node in self._kept]
        for node, proto in zip(kept_nodes, list(protos), strict=True):
            self._enter(node, proto, body)
        used, outputs = names_used(protos), set(body.outputs)
        renamed: dict[str, str] = {}
        for name in lost:
            if name in outputs:
                source = self._outside_value(body, typed_record(body.scope, name))
                self._copies.append((body.proto, source, name))
            elif name in used:
                renamed[name] = self._outside_value(body, typed_record(body.scope, name))
        for proto in list(protos):
            rename_links(proto, renamed)
        for node in kept_nodes:
            for name in node.outputs:
                if name in used_before and name not in used and name not in outputs:
                    self._make_output(body, typed_record(body.scope, name))

    def _outside_value(self, body: _Body, info: onnx.ValueInfoProto) -> str:
        """Return the name of a new value of such a type that comes from outside of the model."""
        tensor = info.type.tensor_type
        if not info.HasField("type") or (
            info.type.HasField("tensor_type") and not tensor.HasField("shape")
        ):
            raise _UnknownTypeError
        info_record = onnx.ValueInfoProto(name=self._fresh(text_of(info.name)), type=info.type)
        self._add_input(body.function, info_record)
        return info_record.name

    def _add_input(self, function: _Function, info: onnx.ValueInfoProto) -> None:
        if function is None:
            if all(known.name != info.name for known in self._model.graph.input):
                self._model.graph.input.append(info)
        elif info.name not in function.input:
            self._changes.append(_Change(operator_key(function), True, len(function.input), info))
            function.input.append(info.name)

    def _make_output(self, body: _Body, info: onnx.ValueInfoProto) -> None:
        """Make a value that nothing uses any more an output of the model, where that can be."""
        if not info.HasField("type"):
            return
        owner, outer, graph = body.owner, body.outer, body.proto
        if isinstance(graph, onnx.FunctionProto):
            self._changes.append(_Change(operator_key(graph), False, len(graph.output), info))
            graph.output.append(info.name)
        elif owner is None or outer is None:
            graph.value_info.append(info)
        elif not owner.domain and owner.op_type == "If":
            places = len(graph.output)
            graph.output.append(info)
            for other in bodies_of(owner):
                if len(other.output) == places:
                    name = self._fresh(text_of(info.name))
                    other.output.append(onnx.ValueInfoProto(name=name, type=info.type))
                    self._copies.append((other, self._outside_value(outer, info), name))
            self._append_output(owner, outer, places, info)
        elif not owner.domain and owner.op_type in ("Loop", "Scan"):
            tensor = info.type.tensor_type
            if not info.type.HasField("tensor_type") or not tensor.HasField("shape"):
                return
            is_scan = owner.op_type == "Scan"
            if is_scan and imports_of(body.scope).get("", 0) < SCAN_SINCE:
                return
            for attribute in owner.attribute:
                if attribute.name in ("scan_output_axes", "scan_output_directions"):
                    attribute.ints.append(0)
            place = len(graph.output) - (not is_scan)
            graph.output.append(info)
            stacked = onnx.ValueInfoProto(name=info.name)
            stacked.type.tensor_type.elem_type = tensor.elem_type
            stacked.type.tensor_type.shape.dim.add()
            stacked.type.tensor_type.shape.dim.extend(tensor.shape.dim)
            self._append_output(owner, outer, place, stacked)

    def _append_output(
        self, node: onnx.NodeProto, home: _Body, place: int, info: onnx.ValueInfoProto
    ) -> None:
        """Give a node another output, which nothing uses yet."""
        name = self._fresh(text_of(info.name))
        node.output.extend([""] * (place - len(node.output)))
        node.output.append(name)
        self._make_output(home, onnx.ValueInfoProto(name=name, type=info.type))

    def _follow(self, change: _Change) -> None:
        """Change the calls of a function as it was changed."""
        for body in list(self._bodies):
            for node in body.proto.node:
                if operator_key(node) != change.function:
                    continue
                if change.is_input:
                    node.input.extend([""] * (change.place - len(node.input)))
                    node.input.append(change.info.name)
                    self._add_input(body.function, change.info)
                else:
                    self._append_output(node, body, change.place, change.info)

    def _fresh(self, name: str) -> str:
        fresh = unused_name(name, self._names.__contains__)
        self._names.add(fresh)
        return fresh


def _names_of(nodes: Iterable[onnx.NodeProto]) -> Iterator[str]:
    for node in nested_nodes(nodes):
        yield from texts_of(node.input)
        yield from texts_of(node.output)
        for graph in bodies_of(node):
            yield from defined_in(graph)


def _tidy(body: onnx.GraphProto | onnx.FunctionProto) -> None:
    """Leave out what is declared of values that went, and weights that nothing uses."""
    if isinstance(body, onnx.FunctionProto):
        return
    defined = defined_in(body)
    for place in reversed(range(len(body.value_info))):
        if text_of(body.value_info[place].name) not in defined:
            del body.value_info[place]
    used = names_used(body.node) | {text_of(info.name) for info in body.output}
    for place in reversed(range(len(body.initializer))):
        if text_of(body.initializer[place].name) not in used:
            del body.initializer[place]
