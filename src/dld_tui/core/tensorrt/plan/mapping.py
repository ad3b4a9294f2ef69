"""The ONNX nodes that the layers of an engine compute, and the time of the layers by node.

The time of a layer with several nodes cannot be measured by node: it is distributed by their cost
(:mod:`dld_tui.core.report.sharing`) or by another stated rule, and labelled an estimate. Nodes that
work on weights only run when the engine is built, and get nothing.

::

    mapping = map_plan(plan, document)      # document may be None: names only, as text
    mapping[layer.index].nodes              # tuple[NodeRef]
    share_times(plan, mapping, "macs")      # list[NodeTime], longest first

The ``Metadata`` of a layer names its nodes exactly. Without it, the layer's name is parsed; the
content of a range ``{ForeignNode[FIRST...LAST]}`` is found in the graph, which needs the
document.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.local_functions import call_of, enclosing_function, key_of
from dld_tui.core.model.document.traversal import is_ordered, sources, topological_order
from dld_tui.core.report.groups import layer_type, main_node
from dld_tui.core.report.sharing import cost_shares, counts_macs
from dld_tui.core.tensorrt.plan.layer_names import (
    Piece,
    bare_name,
    ends_of,
    is_helper,
    is_myelin,
    listed_names,
    looks_like_tensor,
    looks_like_weights,
    may_be_split,
    original_names,
    ranges_of,
    split_name,
)
from dld_tui.core.tensorrt.plan.node_metadata import Frame, MetadataNode, read_metadata

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.report.records import SharedBy
    from dld_tui.core.tensorrt.plan.engine_plan import EngineLayer, EnginePlan


NODE_OF = "node_of_"
"""What the parser calls a node without a name, followed by its first output."""


@dataclass(frozen=True)
class NodeRef:
    """An ONNX node that a layer computes. Untrusted text."""

    name: str
    """`Node.name`; for a node without one, ``node_of_`` and its first output."""
    scope: tuple[str, ...] = ()
    """`Scope.path` of the graph, subgraph or function body that holds it."""
    op_type: str = ""
    """Empty when the model is not known."""
    ref: str = ""
    """`Node.ref` in its scope; the name when the model is not known."""
    calls: tuple[str, ...] = ()
    """The nodes that call the local functions it is in, the outermost first."""
    node: Node | None = field(default=None, compare=False, repr=False)
    """The node itself, when the model is known."""

    @property
    def label(self) -> str:
        """The name after its calls or scope."""
        return " › ".join((*(self.calls or self.scope), self.name))


MatchMethod: TypeAlias = Literal["metadata", "name", "range", "join", "myelin", "none"]
"""How the nodes of a layer were found: by its metadata; by its name, that of one node; by a range
or a join in its name; not at all, as the compiler of fused parts made up the name."""

MatchConfidence: TypeAlias = Literal["exact", "likely", "guess", "none"]
"""``exact``: named so. ``likely``: found by a rule, or some names are not in the model. ``guess``:
several nodes go by the name, or a range without a path. ``none``: no node is known."""


@dataclass(frozen=True)
class LayerNodes:
    """The ONNX nodes of one engine layer."""

    nodes: tuple[NodeRef, ...] = ()
    how: MatchMethod = "none"
    confidence: MatchConfidence = "none"
    inserted: bool = False
    """TensorRT put this layer in for the nodes: a copy to another format, type or device."""
    truncated: bool = False
    """The metadata was cut, so there may be more nodes."""
    missing: tuple[str, ...] = ()
    """Names that the model does not have. Untrusted text."""


@dataclass(frozen=True)
class NameMatch:
    """The match of a part of a layer's name."""

    nodes: tuple[NodeRef, ...] = ()
    is_exact: bool = True
    """The name is exactly that of the node, and of no other."""
    is_beside: bool = False
    """Whether it is a layer that TensorRT put next to the node."""
    is_explained: bool = True
    """False when nothing is known of this text."""


HELPER = NameMatch()
UNKNOWN = NameMatch(is_explained=False)


class TextNames:
    """Names without a model: each is taken for a node unless it is known to be none."""

    longest = 0
    document: Document | None = None

    def known(self, text: str) -> bool:
        """Return False: without a model, no name is known."""
        return False

    def find(self, text: str) -> NameMatch:
        """Return the match of a part of a layer's name."""
        if is_helper(text) or looks_like_weights(text) or looks_like_tensor(text):
            return HELPER
        for name, is_beside in original_names(text)[:1]:
            if is_beside:
                return (
                    HELPER
                    if is_helper(name)
                    else NameMatch((NodeRef(name, ref=name),), False, True)
                )
            if text[len(name) :].startswith(("_myl", "_OutputLayer", "_clone_")):
                return NameMatch((NodeRef(name, ref=name),), False)
        return NameMatch((NodeRef(text, ref=text),), False)

    def from_metadata(self, entry: MetadataNode) -> NameMatch:
        """Return the node that metadata names."""
        calls = tuple(frame.call for frame in reversed(entry.frames) if frame.call)
        return NameMatch((NodeRef(entry.name, ref=entry.name, calls=calls),))

    def binding(self, name: str) -> NameMatch:
        """Return the nodes at an input or output of the network: unknown."""
        return HELPER

    def between(self, first: str, last: str) -> tuple[tuple[NodeRef, ...], bool]:
        """Return the two ends of a range, as the nodes between them are unknown."""
        ends = (self.find(first), self.find(last))
        return tuple(dict.fromkeys(ref for end in ends for ref in end.nodes)), False


def names_of(document: Document | None) -> TextNames | ModelNames:
    """Return the names to resolve the parts of layers with."""
    if document is None:
        return TextNames()

    return ModelNames(document)


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
        self._found: dict[str, NameMatch] = {}
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
        """Return whether a text is the name of a node."""
        return text in self._names

    def find(self, text: str) -> NameMatch:
        """Return the match of a part of a layer's name."""
        match = self._found.get(text)
        if match is None:
            match = self._found[text] = self._search(text)
        return match

    def _search(self, text: str) -> NameMatch:
        if text in self._names:
            return self._chosen(self._names[text])
        if text in self._weights or is_helper(text):
            return HELPER
        if text in self._makers:  # constants go by what they make
            return self._chosen(self._makers[text])
        if looks_like_tensor(text):
            return HELPER
        for name, is_beside in original_names(text):
            if name in self._names:
                nodes = self._chosen(self._names[name]).nodes
                return NameMatch(nodes, is_exact=False, is_beside=is_beside)
            if is_beside:
                return HELPER
        return UNKNOWN

    def _chosen(self, nodes: Sequence[Node]) -> NameMatch:
        """Return the nodes of a name: that of the main graph when it has just one."""
        outer = [node for node in nodes if node.scope is self._main]
        chosen = outer if len(outer) == 1 else list(nodes)
        is_exact = len(nodes) == 1
        return NameMatch(tuple(self.ref(node) for node in chosen[:_MOST_TWINS]), is_exact)

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

    def from_metadata(self, entry: MetadataNode) -> NameMatch:
        """Return the node that metadata names, in the body of its function."""
        for name in (entry.name, entry.whole):
            if name in self._names:
                break
        else:
            return self.find(entry.name)
        nodes = self._names[name]
        if not entry.frames or name == entry.whole:
            outer = [node for node in nodes if node.scope is self._main]
            if len(outer) == 1:  # for functions and branches, the metadata would list the calls
                return NameMatch((self.ref(outer[0]),))
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
            return NameMatch(self._chosen(nodes).nodes, is_exact=False)
        return NameMatch(
            tuple(self.ref(node, calls) for node in inside[:_MOST_TWINS]), is_exact=len(inside) == 1
        )

    def _place_of(self, frames: Sequence[Frame]) -> tuple[Scope, tuple[str, ...]] | None:
        """Follow calls and subgraphs from the main graph; None where they lead nowhere.

        Returns:
            The body of the innermost frame, and the function calls on the way.
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
            inner = [node for node in nodes if _function_name(node.scope) == frame.function]
            if inner:
                return inner
        return []

    def _outermost_first(self, frames: tuple[Frame, ...]) -> tuple[Frame, ...]:
        """Return the calls from the main graph inwards, which is not how they are listed."""
        calls_main = [
            any(node.scope is self._main for node in self._names.get(frame.call, ()))
            for frame in frames
        ]
        listed_outwards = calls_main[-1] or not calls_main[0]
        return frames[::-1] if listed_outwards else frames

    def binding(self, name: str) -> NameMatch:
        """Return the nodes that make an output of the network, or read an input of it."""
        if name in self._makers:
            return self._chosen(self._makers[name])
        readers = list(dict.fromkeys(self._main.consumers(name)))
        return (
            NameMatch(tuple(map(self.ref, readers[:_MOST_TWINS])), is_exact=False)
            if readers
            else HELPER
        )

    def between(self, first: str, last: str) -> tuple[tuple[NodeRef, ...], bool]:
        """Return the nodes of a part of the graph, in execution order.

        Returns:
            The nodes on the paths from `first` to `last`, both included; without a path, all nodes
            between them in the order of the graph. And whether there was a path.
        """
        starts, ends = self._anchors(first), self._anchors(last)
        scopes = {node.scope for node in starts} & {node.scope for node in ends}
        scope = self._main if self._main in scopes else next(iter(scopes), None)
        if scope is None:
            return tuple(self.ref(node) for node in dict.fromkeys((*starts, *ends))), False
        starts = [node for node in starts if node.scope is scope]
        ends = [node for node in ends if node.scope is scope]
        nodes = self._on_paths(scope, starts, ends)
        if nodes:
            return tuple(map(self.ref, nodes)), True
        return tuple(map(self.ref, self._in_order(scope, starts, ends))), False

    def _anchors(self, text: str) -> list[Node]:
        """Return the nodes at an end of a range: the named one, or those that read the weights."""
        parts = [text] if self.known(text) else text.split(" + ")
        for part in parts:
            anchors = [ref.node for ref in self.find(part).nodes if ref.node is not None]
            if anchors:
                return anchors
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
        """Return what is reachable from a start and reaches an end."""
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


_DEEPEST = 32


def shares_of(
    nodes: Sequence[NodeRef], elements: int | None = None
) -> tuple[dict[NodeRef, float], SharedBy]:
    """Return the share of each node in its layer by cost, and what that is of.

    Nodes of weights alone, which the builder computed, have none.

    Args:
        nodes: Of the layer.
        elements: How many the layer makes, for nodes whose shapes are not known.
    """
    at_run = [ref for ref in nodes if not _is_folded(ref)] or list(nodes)
    shares, used = cost_shares([(ref.node, operator_of(ref)) for ref in at_run], elements)
    return dict(zip(at_run, shares, strict=True)), used


def operator_of(ref: NodeRef) -> str:
    """Return the operator of a node; without a model, what its name says of it."""
    return ref.op_type or layer_type(ref.name)


def elements_of(layer: EngineLayer) -> int | None:
    """Return how many elements a layer makes; None when its shapes are not known."""
    dims = layer.outputs[0].dims if layer.outputs else None
    known = dims is not None and all(dim >= 0 for dim in dims)
    return math.prod(dims) if dims is not None and known else None


def _is_folded(ref: NodeRef) -> bool:
    return ref.node is not None and _is_constant(ref.node, _DEEPEST)


def _is_constant(node: Node, depth: int) -> bool:
    """Return whether a node depends on weights and constants only."""
    if node.children or depth == 0 or counts_macs(node):
        return False
    for name in node.inputs:
        definition = node.scope.resolve(name) if name else None
        if not name or (definition is not None and definition.kind == "initializer"):
            continue
        if definition is None or definition.node is None:
            return False
        if not _is_constant(definition.node, depth - 1):
            return False
    return True


NOTHING = LayerNodes()


def map_plan(plan: EnginePlan, document: Document | None = None) -> dict[int, LayerNodes]:
    """Return the nodes of every layer of a plan, folded ones included, by `EngineLayer.index`.

    Args:
        document: The model that it was built from; without it, names are only text.
    """
    names = names_of(document)
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    mapping: dict[int, LayerNodes] = {}
    ranges: list[EngineLayer] = []
    for index, layer in layers.items():
        by_metadata = _by_metadata(layer, names)
        if by_metadata is not None:
            mapping[index] = by_metadata
        elif "{ForeignNode[" in layer.name:
            ranges.append(layer)
            mapping[index] = NOTHING  # keeps the order
        else:
            mapping[index] = _by_name(layer.name, names)
    claimed = {
        ref
        for nodes in mapping.values()
        if nodes.confidence == "exact" and not nodes.inserted
        for ref in nodes.nodes
    }
    for layer in ranges:
        mapping[layer.index] = _by_range(layer.name, names, claimed)
    return mapping


def _by_metadata(layer: EngineLayer, names: TextNames | ModelNames) -> LayerNodes | None:
    metadata = read_metadata(layer.metadata)
    if not metadata.entries:
        return None
    matches = [(entry.name, names.from_metadata(entry)) for entry in metadata.entries]
    missing = tuple(name for name, match in matches if not match.is_explained)
    nodes = _together(match for _, match in matches)
    is_exact = (
        all(match.is_exact for _, match in matches) and not metadata.truncated and not missing
    )
    confidence: MatchConfidence = "exact" if is_exact else "likely"
    inserted = layer.type == "Reformat" and bare_name(layer.name, names.known).inserted
    return LayerNodes(
        nodes, "metadata", confidence if nodes else "none", inserted, metadata.truncated, missing
    )


def _by_name(name: str, names: TextNames | ModelNames) -> LayerNodes:
    bare = bare_name(name, names.known)
    if bare.of_binding:
        nodes = names.binding(bare.text).nodes
        return LayerNodes(nodes, "name", "likely" if nodes else "none", inserted=True)
    known = names.known if names.document is not None else None
    listed = listed_names(bare.text, known)
    if listed is not None:
        pieces = [Piece(name, names.known(name)) for name in listed]
    else:
        pieces = split_name(bare.text, known, names.longest)
    matches = [(piece, names.find(piece.text)) for piece in pieces]
    parts = [match for _, match in matches]
    nodes = _together(parts)
    missing = tuple(piece.text for piece, match in matches if not match.is_explained)
    inserted = bare.inserted or (
        bool(nodes) and all(part.is_beside for part in parts if part.nodes)
    )
    if not nodes:
        how: MatchMethod = "myelin" if is_myelin(bare.text) else "none"
        return LayerNodes((), how, "none", inserted, missing=missing)
    how = "name" if len(pieces) == 1 else "join"
    doubtful = any(piece.doubtful for piece in pieces)
    confidence = _confidence(parts, names, doubtful or bool(missing))
    return LayerNodes(nodes, how, confidence, inserted, missing=missing)


def _confidence(
    parts: list[NameMatch], names: TextNames | ModelNames, doubtful: bool
) -> MatchConfidence:
    if names.document is None:
        return "likely" if len(parts) == 1 else "guess"
    if any(len(part.nodes) > 1 and not part.is_exact for part in parts):
        return "guess"
    return "exact" if all(part.is_exact for part in parts) and not doubtful else "likely"


def _by_range(name: str, names: TextNames | ModelNames, claimed: set[NodeRef]) -> LayerNodes:
    """Return the nodes of the ranges in a name, without those that other layers are named after."""
    bare = bare_name(name, names.known)
    ranges, rest = ranges_of(bare.text)
    others = _by_name(rest, names)
    nodes: dict[NodeRef, None] = dict.fromkeys(others.nodes)
    missing: list[str] = []
    on_path = True
    for inner in ranges:
        part, is_path = _of_range(inner, names)
        on_path &= is_path
        free = [ref for ref in part if ref not in claimed]
        nodes.update(dict.fromkeys(free or part))
        if not part:
            missing.append(inner)
    confidence: MatchConfidence = "none"
    if nodes:
        confidence = "likely" if on_path and not missing else "guess"
    return LayerNodes(tuple(nodes), "range", confidence, bare.inserted, missing=tuple(missing))


def _of_range(inner: str, names: TextNames | ModelNames) -> tuple[tuple[NodeRef, ...], bool]:
    if names.known(inner):
        return names.find(inner).nodes, True
    ends = ends_of(inner)
    if not ends:  # one layer is a range of its own
        alone = _by_name(inner, names)
        return alone.nodes, alone.confidence in ("exact", "likely")
    # A name may contain dots: the split whose ends are in the model counts.
    ways = [(first, last) for first, last in ends if names.known(first) and names.known(last)]
    return names.between(*(ways or ends)[0])


def _together(matches: Iterable[NameMatch]) -> tuple[NodeRef, ...]:
    nodes: dict[NodeRef, None] = {}
    for match in matches:
        nodes.update(dict.fromkeys(match.nodes))
    return tuple(nodes)


def node_paths(mapping: Mapping[int, LayerNodes]) -> dict[int, str]:
    """Return the name of the main node of each layer that has nodes, by `EngineLayer.index`."""
    return {index: main_node(of.nodes).name for index, of in mapping.items() if of.nodes}


def mapping_notes(mapping: Mapping[int, LayerNodes]) -> list[str]:
    """Return notes about a mapping as a whole, one sentence each."""
    kinds = list(mapping.values())
    notes = []
    cut = sum(nodes.truncated for nodes in kinds)
    if cut:
        notes.append(
            f"The metadata of {fmt.plural(cut, 'layer')} was cut at 4,000 bytes: nodes are missing"
        )
    absent = sum(bool(nodes.missing) for nodes in kinds)
    if absent:
        verb = "names" if absent == 1 else "name"
        notes.append(f"{fmt.plural(absent, 'layer')} {verb} nodes that the model does not have")
    guessed = sum(nodes.confidence == "guess" for nodes in kinds)
    if guessed:
        notes.append(f"The nodes of {fmt.plural(guessed, 'layer')} are guessed from names")
    none = sum(not nodes.nodes for nodes in kinds)
    if none:
        notes.append(f"No ONNX node is known for {fmt.plural(none, 'layer')}")
    return notes


__all__ = ["LayerNodes", "NodeRef", "map_plan", "mapping_notes", "node_paths"]
