"""The time of layers by a key: type, ONNX node, operator, name scope, provider, precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from dld_tui.core.report.records import Group, Layer, NodeLink

GROUPINGS = ("layer", "type", "node", "op", "scope", "provider", "precision")

NO_NODE = "(no ONNX node)"
"""The key of the time that no ONNX node is known for."""
NO_SCOPE = "(no name scope)"
UNKNOWN = "(unknown)"

_Part: TypeAlias = "tuple[str, float, bool]"
"""(key, share of the layer's time, whether the share is an estimate)."""


def group_layers(layers: Iterable[Layer], by: str) -> list[Group]:
    """Return the groups, largest first. `by` is one of `GROUPINGS`, or names a detail.

    By ``node``, ``op`` and ``scope`` the time of a layer is shared over its ONNX nodes as
    `NodeLink.share` says, and what had to be shared is marked an estimate.
    """
    times: dict[str, float] = {}
    counts: dict[str, int] = {}
    gpu: dict[str, float] = {}
    estimates: set[str] = set()
    for layer in layers:
        for key, share, estimated in parts(layer, by):
            times[key] = times.get(key, 0.0) + share * (layer.time_ms or 0.0)
            if layer.gpu_time_ms is not None:
                gpu[key] = gpu.get(key, 0.0) + share * layer.gpu_time_ms
            counts[key] = counts.get(key, 0) + 1
            if estimated:
                estimates.add(key)
    total = sum(times.values())
    groups = [
        Group(
            key=key,
            count=counts[key],
            time_ms=time_ms,
            percent=100 * time_ms / total if total > 0 else 0.0,
            estimate=key in estimates,
            gpu_time_ms=gpu.get(key),
        )
        for key, time_ms in times.items()
    ]
    return sorted(groups, key=lambda group: (-group.time_ms, group.key))


def parts(layer: Layer, by: str) -> Iterator[_Part]:
    """Yield the groups that a layer belongs to, and how much of it to each; the shares sum to 1."""
    if by in ("node", "op", "scope"):
        if not layer.nodes:
            yield NO_NODE, 1.0, False
        # Nodes of one layer in the same scope need no sharing between them.
        keys = [_node_key(link, by) for link in layer.nodes]
        for key in dict.fromkeys(keys):
            part = sum(
                link.share for link, other in zip(layer.nodes, keys, strict=True) if other == key
            )
            yield key, part, len(set(keys)) > 1
    elif by == "layer":
        yield layer.name, 1.0, False
    elif by == "type":
        yield layer.type, 1.0, False
    elif by == "provider":
        yield layer.provider or UNKNOWN, 1.0, False
    elif by == "precision":
        yield layer.precision or UNKNOWN, 1.0, False
    else:
        found = layer.details.get(by)
        yield found if isinstance(found, str) and found else UNKNOWN, 1.0, False


def _node_key(link: NodeLink, by: str) -> str:
    if by == "node":
        return link.label
    return link.op_type if by == "op" else name_scope(link)


def name_scope(link: NodeLink) -> str:
    """Return the scope that a node's name says, e.g. ``/layer1/layer1.0``, within its subgraph."""
    scope = link.name.rpartition("/")[0]
    parts = (*link.scope, scope) if scope else link.scope
    return " › ".join(parts) or NO_SCOPE
