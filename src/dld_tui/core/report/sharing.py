"""Distributing the time of a fused layer over its ONNX nodes, by their cost.

Fused nodes cannot be measured separately, so every share is an estimate. In a layer with
convolutions or matrix products, the computation counts: multiply-accumulates, and one operation per
element of everything else. In fused Conv, BatchNormalization and Relu, the convolution then has
nearly all of the time. In other layers, the bytes that each node reads and writes count. If nothing
is known of a node, all get the same share, and the report says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.model.cost.operators import PRODUCTS, operator, work
from dld_tui.core.model.shapes import size as sizes
from dld_tui.core.model.shapes.call import Call
from dld_tui.core.model.shapes.following import Following
from dld_tui.core.model.shapes.size import Count, size_at, symbol
from dld_tui.core.model.shapes.value import NOTHING, Value
from dld_tui.core.types import ELEMENT_BITS

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.report.records import Layer, SharedBy

_MOST_STEPS = 6
"""Producers of a value without a type that are followed, such as those of quantized models."""
_SIZES = 64, 96
"""Sizes of dynamic dimensions that a ratio must not depend on."""


def counts_macs(node: Node) -> bool:
    """Return whether a node's work is counted in multiply-accumulates."""
    return operator(node.domain, node.op_type).rule in PRODUCTS.values()


def node_macs(node: Node) -> int | None:
    """Return the multiply-accumulates of a convolution, matrix product or similar node.

    0 for operators without multiply-accumulates, None where shapes are unknown or dynamic.
    """
    if not counts_macs(node):
        return 0
    macs = _macs_and_elements(node)[0]
    return macs if isinstance(macs, int) else None


def macs_per_element(node: Node) -> float | None:
    """Return the multiply-accumulates per element of the output.

    For shapes that are unknown before a run, such as a dynamic batch size. None if it depends on
    these, and for operators without multiply-accumulates.
    """
    if not counts_macs(node):
        return None
    ratios = set()
    for size in _SIZES:
        macs, elements = (size_at(count, size) for count in _macs_and_elements(node))
        if macs is None or not elements:
            return None
        ratios.add(macs / elements)
    return ratios.pop() if len(ratios) == 1 else None


def _macs_and_elements(node: Node) -> tuple[Count | None, Count]:
    """Return a node's multiply-accumulates, and how many elements its first output has."""
    following = Following(unnamed=lambda name, axis: symbol(f"{name}[{axis}]"), steps=_MOST_STEPS)
    read = [following.value(node.scope, name) if name else NOTHING for name in node.inputs]
    written = [following.value(node.scope, name) for name in node.outputs if name]
    if not (written and written[0].is_known):
        written[:1] = [Value((symbol("elements"),))]
    call = Call(node.proto, read, owner=node.scope.document, results=written)
    return work(PRODUCTS[node.op_type], call)[0], sizes.product(written[0].dims or ())


def dims_of(scope: Scope, name: str) -> tuple[int, ...] | None:
    """Return the dimensions of a value when all are numbers, else None."""
    dims = Following(steps=_MOST_STEPS).value(scope, name).dims if name else None
    return dims if dims is not None and all(isinstance(size, int) for size in dims) else None


_DEFAULT_BITS = 32


def cost_shares(
    nodes: Sequence[tuple[Node | None, str]], elements: int | None = None
) -> tuple[list[float], SharedBy]:
    """Return the share of each node in the layer that computes them all, and the rule.

    Args:
        nodes: (node, operator); without a node if the model is unknown, and then the operator may
            be empty.
        elements: The number of elements that the layer produces, for nodes of unknown shapes.

    Returns:
        Shares that sum to 1; none without nodes.
    """
    if not nodes:
        return [], "equal"
    equal = [1 / len(nodes)] * len(nodes)
    if len(nodes) == 1:
        return equal, "equal"
    by_macs = _macs(nodes, elements)
    costs, rule = (by_macs, "macs") if by_macs is not None else (_bytes(nodes, elements), "bytes")
    total = math.fsum(costs) if costs is not None else 0.0
    if costs is None or not 0 < total < math.inf:
        return equal, "equal"
    return [cost / total for cost in costs], "macs" if rule == "macs" else "bytes"


def sharing_note(layers: Iterable[Layer]) -> str:
    """Return how the times of layers made of several nodes were distributed; empty without any."""
    counts: dict[str, int] = {}
    for layer in layers:
        if len(layer.nodes) > 1:
            rule = layer.shared_by or "equal"
            counts[rule] = counts.get(rule, 0) + 1
    if not counts:
        return ""
    words = {
        "macs": "by their multiply-accumulates",
        "bytes": "by the bytes they move",
        "equal": "equally, as nothing is known of their cost",
    }
    parts = ", ".join(f"{words[rule]} ({counts[rule]:,})" for rule in words if rule in counts)
    return f"the time of a layer made of several nodes is an estimate, shared {parts}"


def _macs(nodes: Sequence[tuple[Node | None, str]], elements: int | None) -> list[float] | None:
    """Return operations a node, as multiply-accumulates; None without a product."""
    products = [
        op_type in PRODUCTS and (node is None or counts_macs(node)) for node, op_type in nodes
    ]
    if not any(products):
        return None
    sizes = _sizes(nodes, elements)
    costs: list[float | None] = []
    for (node, _), size, product in zip(nodes, sizes, products, strict=True):
        if not product:
            costs.append(size)
            continue
        count = None if node is None else node_macs(node)
        if count is None and node is not None:
            per_element = macs_per_element(node)
            count = None if per_element is None else round(per_element * size)
        costs.append(None if count is None else float(count))
    if None not in costs:
        return [cost or 0.0 for cost in costs]
    # The work of a product is unknown: the products share all of the time.
    return [float(product) for product in products]


def _bytes(nodes: Sequence[tuple[Node | None, str]], elements: int | None) -> list[float] | None:
    """Return the bytes that each node reads and writes; None when no size is known of any."""
    if (
        all(node is None or _output_elements(node) is None for node, _ in nodes)
        and elements is None
    ):
        return None
    if any(node is None for node, _ in nodes):
        return None
    sizes = _sizes(nodes, elements)
    costs = []
    for (node, _), size in zip(nodes, sizes, strict=True):
        assert node is not None
        moved = 0.0
        for name in (*node.inputs, *node.outputs):
            if not name:
                continue
            known = node.scope.value_type(name)
            dims = dims_of(node.scope, name)
            dtype = known.dtype if known is not None else None
            count = size if dims is None else math.prod(dims)
            moved += count * ELEMENT_BITS.get(dtype or "", _DEFAULT_BITS) / 8
        costs.append(moved)
    return costs


def _sizes(nodes: Sequence[tuple[Node | None, str]], elements: int | None) -> list[float]:
    """Return how many elements each node makes.

    Where that is not known: what the layer makes, else as many as the largest of the others, else
    the same for all.
    """
    known = [None if node is None else _output_elements(node) for node, _ in nodes]
    rest = elements if elements is not None else max(filter(None, known), default=1)
    return [float(rest if size is None else size) for size in known]


def _output_elements(node: Node) -> int | None:
    dims = next((dims_of(node.scope, name) for name in node.outputs if name), None)
    return None if dims is None else math.prod(dims)
