"""The nodes of an ONNX model, found by what engine layers call them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.document.local_functions import call_of, enclosing_function, key_of
from dld_tui.core.document.traversal import is_ordered, sources, topological_order
from dld_tui.core.plan.mapping_names import (
    HELPER,
    NODE_OF,
    UNKNOWN,
    Entry,
    Found,
    Frame,
    NodeRef,
    is_helper,
    looks_like_tensor,
    may_be_split,
    softer,
)

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.document.scope import Scope

_MOST_TWINS = 8
_FOLDED = frozenset({"Constant"})


class ModelNames:
    """The names of one document, indexed once."""

    def __init__(self, document: Document) -> None:
        self.document: Document | None = document
        self.longest = 0
        self._main = document.main
        self._names: dict[str, list[Node]] = {}
        self._makers: dict[str, list[Node]] = {}
        self._weights: dict[str, Scope] = {}
        self._functions = {key_of(function): function for function in document.functions}
        self._refs: dict[Node, NodeRef] = {}
        self._paths: dict[Scope, tuple[str, ...]] = {}
        self._found: dict[str, Found] = {}
        self._orders: dict[Scope, tuple[Sequence[Node], dict[Node, int]]] = {}
        for scope in document.scopes():
            self._enter(scope)

    def _enter(self, scope: Scope) -> None:
        for node in scope.nodes:
            name, outputs = node.name, node.outputs
            if not name and outputs:
                name = NODE_OF + outputs[0]
            self._names.setdefault(name, []).append(node)
            if may_be_split(name):
                self.longest = max(self.longest, len(name))
            for output in outputs:
                if output:
                    self._makers.setdefault(output, []).append(node)
        for tensor in scope.initializers:
            self._weights.setdefault(tensor.name, scope)

    def known(self, text: str) -> bool:
        """Tell whether a text is the name of a node."""
        return text in self._names

    def find(self, text: str) -> Found:
        """Return what a part of a layer's name stands for."""
        found = self._found.get(text)
        if found is None:
            found = self._found[text] = self._search(text)
        return found

    def _search(self, text: str) -> Found:
        if text in self._names:
            return self._chosen(self._names[text])
        if text in self._weights or is_helper(text):
            return HELPER
        if text in self._makers:  # constants go by what they make
            return self._chosen(self._makers[text])
        if looks_like_tensor(text):
            return HELPER
        for name, aside in softer(text):
            if name in self._names:
                nodes = self._chosen(self._names[name]).nodes
                return Found(nodes, sure=False, aside=aside)
            if aside:
                return HELPER
        return UNKNOWN

    def _chosen(self, nodes: Sequence[Node]) -> Found:
        """Return the nodes of a name: that of the main graph when it has just one."""
        outer = [node for node in nodes if node.scope is self._main]
        chosen = outer if len(outer) == 1 else list(nodes)
        sure = len(nodes) == 1
        return Found(tuple(self.ref(node) for node in chosen[:_MOST_TWINS]), sure)

    def ref(self, node: Node, calls: tuple[str, ...] = ()) -> NodeRef:
        """Return a node as a mapping has it."""
        ref = self._refs.get(node)
        if ref is None:
            name = node.name or NODE_OF + next(iter(node.outputs), "")
            scope = node.scope
            if scope not in self._paths:
                self._paths[scope] = scope.path
            path = self._paths[scope]
            ref = self._refs[node] = NodeRef(name, path, node.op_type, node.ref, node=node)
        if not calls:
            return ref
        return NodeRef(ref.name, ref.scope, ref.op_type, ref.ref, calls, node)

    # --- metadata -------------------------------------------------------------------------------

    def told(self, entry: Entry) -> Found:
        """Return the node that metadata names, in the body of the function that it tells."""
        for name in (entry.name, entry.whole):
            if name in self._names:
                break
        else:
            return self.find(entry.name)
        nodes = self._names[name]
        if not entry.frames or name == entry.whole:
            outer = [node for node in nodes if node.scope is self._main]
            if len(outer) == 1:  # of functions and branches the calls would be told
                return Found((self.ref(outer[0]),))
            return self._chosen(nodes)
        frames = self._outermost_first(entry.frames)
        place = self._place_of(frames)
        if place is not None:
            scope, calls = place
            inside = [node for node in nodes if node.scope is scope]
        else:
            inside = self._inside(nodes, frames)
            calls = tuple(frame.call for frame in frames if frame.call)
        if not inside:
            return Found(self._chosen(nodes).nodes, sure=False)
        return Found(
            tuple(self.ref(node, calls) for node in inside[:_MOST_TWINS]), sure=len(inside) == 1
        )

    def _place_of(self, frames: Sequence[Frame]) -> tuple[Scope, tuple[str, ...]] | None:
        """Follow calls and subgraphs from the main graph; None where they lead nowhere.

        Returns:
            The body that the innermost frame is of, and the calls of functions on the way.
        """
        scope, calls = self._main, []
        owner: Node | None = None
        for frame in frames:
            if owner is not None:  # a frame of an If is followed by one of its branch
                branches = owner.children.get(frame.function, [])
                if len(branches) != 1:
                    return None
                scope, owner = branches[0], None
                continue
            named = self._names.get(frame.call, ())
            node = next((node for node in named if node.scope is scope), None)
            if node is None or node.op_type != frame.function:
                return None
            body = self._functions.get(call_of(node))
            if body is not None:
                scope = body
                calls.append(frame.call)
            elif node.children:
                owner = node
            else:
                return None
        return None if owner is not None else (scope, tuple(calls))

    @staticmethod
    def _inside(nodes: Iterable[Node], frames: Sequence[Frame]) -> list[Node]:
        """Return the nodes in the body of the innermost function that has one of them."""
        nodes = list(nodes)
        for frame in reversed(frames):
            found = [node for node in nodes if _function_name(node.scope) == frame.function]
            if found:
                return found
        return []

    def _outermost_first(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """Return the calls from the main graph inwards, which is not how they are listed."""
        calls_main = [
            any(node.scope is self._main for node in self._names.get(frame.call, ()))
            for frame in frames
        ]
        listed_outwards = calls_main[-1] or not calls_main[0]
        return frames[::-1] if listed_outwards else frames

    # --- parts of the graph ---------------------------------------------------------------------

    def binding(self, name: str) -> Found:
        """Return the nodes that make an output of the network, or read an input of it."""
        if name in self._makers:
            return self._chosen(self._makers[name])
        readers = list(dict.fromkeys(self._main.consumers(name)))
        return Found(tuple(map(self.ref, readers[:_MOST_TWINS])), sure=False) if readers else HELPER

    def between(self, first: str, last: str) -> tuple[tuple[NodeRef, ...], bool]:
        """Return the nodes of a part of the graph, in an order that runs.

        Returns:
            The nodes on the paths from `first` to `last`, both included. Where there is no path:
            all from the one to the other in the order of the graph. And whether there was one.
        """
        starts, ends = self._anchors(first), self._anchors(last)
        scopes = {node.scope for node in starts} & {node.scope for node in ends}
        scope = self._main if self._main in scopes else next(iter(scopes), None)
        if scope is None:
            return tuple(self.ref(node) for node in dict.fromkeys((*starts, *ends))), False
        starts = [node for node in starts if node.scope is scope]
        ends = [node for node in ends if node.scope is scope]
        found = self._on_paths(scope, starts, ends)
        if found:
            return tuple(map(self.ref, found)), True
        return tuple(map(self.ref, self._in_order(scope, starts, ends))), False

    def _anchors(self, text: str) -> list[Node]:
        """Return the nodes at an end of a range: the named one, or those that read the weights."""
        parts = [text] if self.known(text) else text.split(" + ")
        for part in parts:
            found = [ref.node for ref in self.find(part).nodes if ref.node is not None]
            if found:
                return found
        for part in parts:
            scope = self._weights.get(part)
            if scope is not None:
                return list(dict.fromkeys(scope.consumers(part)))
        return []

    def _window(self, scope: Scope, starts: list[Node], ends: list[Node]) -> Sequence[Node]:
        """Return the nodes from the first start to the last end, in an order that runs."""
        if scope not in self._orders:
            order: Sequence[Node]
            order = scope.nodes if is_ordered(scope) else topological_order(scope) or scope.nodes
            self._orders[scope] = order, {node: place for place, node in enumerate(order)}
        order, places = self._orders[scope]
        low = min(places[node] for node in starts)
        high = max(places[node] for node in ends)
        return order[low : high + 1]

    def _on_paths(self, scope: Scope, starts: list[Node], ends: list[Node]) -> list[Node]:
        """Return what is reached from a start and reaches an end."""
        window = self._window(scope, starts, ends)
        reached = set(starts)
        for node in window:
            if node not in reached and any(s in reached for s in sources(scope, node)):
                reached.add(node)
        wanted = {node for node in ends if node in reached}
        for node in reversed(window):
            if node in wanted:
                wanted.update(source for source in sources(scope, node) if source in reached)
        return [node for node in window if node in wanted]

    def _in_order(self, scope: Scope, starts: list[Node], ends: list[Node]) -> list[Node]:
        window = self._window(scope, starts, ends)
        ends_only = dict.fromkeys((*starts, *ends))
        return [n for n in window if n.op_type not in _FOLDED] or list(ends_only)


def _function_name(scope: Scope) -> str:
    function = enclosing_function(scope)
    if function is None:
        return ""
    return key_of(function)[1]
