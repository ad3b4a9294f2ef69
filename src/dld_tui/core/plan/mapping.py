"""Which ONNX nodes the layers of an engine compute, and the time of the layers by node.

::

    mapping = map_plan(plan, document)      # document may be None: names only, as text
    mapping[layer.index].nodes              # tuple[NodeRef]
    share_times(plan, mapping, "macs")      # list[NodeTime], longest first

The ``Metadata`` of a layer names its nodes exactly. Without it the layer's name is taken apart;
what a range ``{ForeignNode[FIRST...LAST]}`` contains is found in the graph, which needs the
document.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.plan.mapping_metadata import read_metadata
from dld_tui.core.plan.mapping_names import (
    Piece,
    bare_name,
    ends_of,
    is_myelin,
    listed_names,
    ranges_of,
    split_name,
)
from dld_tui.core.plan.mapping_nodes import (
    Found,
    How,
    LayerNodes,
    NodeRef,
    Sureness,
    TextNames,
    names_of,
)
from dld_tui.core.plan.mapping_times import RULES, NodeTime, Rule, share_times

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node
    from dld_tui.core.plan.mapping_model import ModelNames
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

__all__ = [
    "RULES", "LayerNodes", "NodeRef", "NodeTime", "Rule", "map_plan", "mapping_notes",
    "node_times", "share_times",
]  # fmt: skip

NOTHING = LayerNodes()


def map_plan(plan: EnginePlan, document: Document | None = None) -> dict[int, LayerNodes]:
    """Return the nodes of every layer of a plan, folded ones included, by `EngineLayer.index`.

    Args:
        plan: The engine.
        document: The model that it was built from; without it names are but text.
    """
    names = names_of(document)
    layers = {layer.index: layer for layer in (*plan.all_layers, *plan.layers)}
    found: dict[int, LayerNodes] = {}
    ranges: list[EngineLayer] = []
    for index, layer in layers.items():
        told = _by_metadata(layer, names)
        if told is not None:
            found[index] = told
        elif "{ForeignNode[" in layer.name:
            ranges.append(layer)
            found[index] = NOTHING  # keeps the order
        else:
            found[index] = _by_name(layer.name, names)
    claimed = {
        ref
        for nodes in found.values()
        if nodes.confidence == "exact" and not nodes.inserted
        for ref in nodes.nodes
    }
    for layer in ranges:
        found[layer.index] = _by_range(layer.name, names, claimed)
    return found


def _by_metadata(layer: EngineLayer, names: TextNames | ModelNames) -> LayerNodes | None:
    told = read_metadata(layer.metadata)
    if not told.entries:
        return None
    found = [(entry.name, names.told(entry)) for entry in told.entries]
    missing = tuple(name for name, one in found if not one.explained)
    nodes = _together(one for _, one in found)
    sure = all(one.sure for _, one in found) and not told.truncated and not missing
    confidence: Sureness = "exact" if sure else "likely"
    inserted = layer.type == "Reformat" and bare_name(layer.name, names.known).inserted
    return LayerNodes(
        nodes, "metadata", confidence if nodes else "none", inserted, told.truncated, missing
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
    found = [(piece, names.find(piece.text)) for piece in pieces]
    parts = [one for _, one in found]
    nodes = _together(parts)
    missing = tuple(piece.text for piece, one in found if not one.explained)
    inserted = bare.inserted or (bool(nodes) and all(one.aside for one in parts if one.nodes))
    if not nodes:
        how: How = "myelin" if is_myelin(bare.text) else "none"
        return LayerNodes((), how, "none", inserted, missing=missing)
    how = "name" if len(pieces) == 1 else "join"
    doubtful = any(piece.doubtful for piece in pieces)
    confidence = _confidence(parts, names, doubtful or bool(missing))
    return LayerNodes(nodes, how, confidence, inserted, missing=missing)


def _confidence(parts: list[Found], names: TextNames | ModelNames, doubtful: bool) -> Sureness:
    if names.document is None:
        return "likely" if len(parts) == 1 else "guess"
    if any(len(one.nodes) > 1 and not one.sure for one in parts):
        return "guess"
    return "exact" if all(one.sure for one in parts) and not doubtful else "likely"


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
    confidence: Sureness = "none"
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
    # A name may contain dots, too: the split whose ends are in the model counts.
    ways = [(first, last) for first, last in ends if names.known(first) and names.known(last)]
    return names.between(*(ways or ends)[0])


def _together(found: Iterable[Found]) -> tuple[NodeRef, ...]:
    nodes: dict[NodeRef, None] = {}
    for one in found:
        nodes.update(dict.fromkeys(one.nodes))
    return tuple(nodes)


def mapping_notes(mapping: Mapping[int, LayerNodes]) -> list[str]:
    """Return what is to be said of a mapping as a whole, one sentence each."""
    kinds = list(mapping.values())
    said = []
    cut = sum(nodes.truncated for nodes in kinds)
    if cut:
        said.append(
            f"The metadata of {fmt.plural(cut, 'layer')} was cut at 4,000 bytes: nodes are missing"
        )
    absent = sum(bool(nodes.missing) for nodes in kinds)
    if absent:
        said.append(f"{fmt.plural(absent, 'layer')} name nodes that the model does not have")
    guessed = sum(nodes.confidence == "guess" for nodes in kinds)
    if guessed:
        said.append(f"The nodes of {fmt.plural(guessed, 'layer')} are guessed from names")
    none = sum(not nodes.nodes for nodes in kinds)
    if none:
        said.append(f"No ONNX node is known for {fmt.plural(none, 'layer')}")
    return said


def node_times(plan: EnginePlan, document: Document, rule: Rule = "cost") -> dict[Node, float]:
    """Return the milliseconds of the nodes of a model, for the overlay of its graph."""
    found: dict[Node, float] = {}
    for time in share_times(plan, map_plan(plan, document), rule):
        if time.node is not None and time.node.node is not None:
            node = time.node.node
            found[node] = found.get(node, 0.0) + time.time_ms
    return found
