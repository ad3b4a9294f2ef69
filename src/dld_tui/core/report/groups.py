"""The time of layers by a key: type, ONNX node, operator, name scope, provider, precision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from dld_tui.core.report.cost import costs_on_host
from dld_tui.core.report.records import Group, Layer, NodeLink

if TYPE_CHECKING:
    from dld_tui.core.report.pass_times import CostTimes, PassTimes

GROUPINGS = ("layer", "type", "node", "op", "scope", "provider", "precision")

_ADD_UP = ("layer", "node")
"""Whose percentages add up to 100, as those of the layers do."""
NO_NODE = "(no ONNX node)"
"""The key of the time that no ONNX node is known for."""
NO_SCOPE = "(no name scope)"
UNKNOWN = "(unknown)"

_Part: TypeAlias = "tuple[str, float, bool]"
"""(key, share of the layer's time, whether the share is an estimate)."""


@dataclass
class _Members:
    """The layers of a group, and how much of each."""

    layers: list[Layer] = field(default_factory=list)
    shares: list[float] = field(default_factory=list)
    estimate: bool = False


def group_layers(
    layers: Iterable[Layer],
    by: str,
    by_pass: PassTimes | CostTimes | None = None,
    gpu_by_pass: PassTimes | None = None,
) -> list[Group]:
    """Return the groups, the costliest first. `by` is one of `GROUPINGS`, or names a detail.

    As :func:`.cost.priced` says, the cost is the time on the GPU where kernels are known.
    By ``node``, ``op`` and ``scope`` the time of a layer is shared over its ONNX nodes as
    `NodeLink.share` says, and what had to be shared is marked an estimate.

    Percentages are of what all layers take together in a pass: where noise lengthens another layer
    in each pass, those of the groups add up to less than 100. By ``layer`` and ``node`` they are
    of the sum of all groups, as those of the layers are.

    Args:
        layers: What is grouped.
        by: The key.
        by_pass: The layers' times by pass, by `Layer.index`: the time of a group is then what its
            layers took together in a pass, the median over the passes. Without, their times are
            added up.
        gpu_by_pass: The same of their kernels on a GPU.
    """
    members: dict[str, _Members] = {}
    layers = list(layers)
    for layer in layers:
        for key, share, estimated in parts(layer, by):
            group = members.setdefault(key, _Members())
            group.layers.append(layer)
            group.shares.append(share)
            group.estimate = group.estimate or estimated
    times = {
        key: _together(by_pass, group, [layer.time_ms for layer in group.layers]) or 0.0
        for key, group in members.items()
    }
    kernels = {
        key: _together(gpu_by_pass, group, [layer.gpu_time_ms for layer in group.layers])
        for key, group in members.items()
    }
    costs = times
    if any(time is not None for time in kernels.values()):
        costs = {key: (kernels[key] or 0.0) + _on_host(by_pass, members[key]) for key in members}
    total = sum(costs.values())
    if by not in _ADD_UP:
        total = whole_ms(layers, by, by_pass, gpu_by_pass)
    groups = [
        Group(
            key=key,
            count=len(group.layers),
            time_ms=times[key],
            percent=100 * costs[key] / total if total > 0 else 0.0,
            estimate=group.estimate,
            gpu_time_ms=kernels[key],
            cost_ms=costs[key],
        )
        for key, group in members.items()
    ]
    return sorted(groups, key=lambda group: (-group.cost_ms, group.key))


def whole_ms(
    layers: Sequence[Layer],
    by: str,
    by_pass: PassTimes | CostTimes | None = None,
    gpu_by_pass: PassTimes | None = None,
) -> float:
    """Return what the percentages of groups of some layers are of, in milliseconds.

    The arguments are those of :func:`group_layers`.
    """
    if by in _ADD_UP:
        return sum(group.cost_ms for group in group_layers(layers, by, by_pass, gpu_by_pass))
    members = _Members(list(layers), [1.0] * len(layers))
    kernels = _together(gpu_by_pass, members, [layer.gpu_time_ms for layer in layers])
    if kernels is not None:
        return kernels + _on_host(by_pass, members)
    return _together(by_pass, members, [layer.time_ms for layer in layers]) or 0.0


def _on_host(by_pass: PassTimes | CostTimes | None, group: _Members) -> float:
    """Return what the layers of a group take that ran on the processor beside a GPU."""
    own = [layer.time_ms if costs_on_host(layer) else None for layer in group.layers]
    return _together(by_pass, group, own) or 0.0


def _together(
    by_pass: PassTimes | CostTimes | None, group: _Members, times: Sequence[float | None]
) -> float | None:
    """Return what the layers of a group take together; None when no time is known of any."""
    timed = [
        (layer.index, share, time)
        for layer, share, time in zip(group.layers, group.shares, times, strict=True)
        if time is not None
    ]
    if not timed:
        return None
    if by_pass is not None and len(timed) > 1:
        together = by_pass.together_ms([at for at, _, _ in timed], [share for _, share, _ in timed])
        if together is not None:
            return together
    return sum(share * time for _, share, time in timed)


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
