"""Regions of a graph in which quantization is decided together, and which of them are alike.

A region is a product (a convolution, a matrix product) with the nodes behind it, up to the next
product. Regions with the same operators, attributes, types and shapes, connected in the same way,
are of one pattern and share a decision, so that a network of equal blocks has few of them. NVIDIA
Model Optimizer's autotuner of Q/DQ placement shares decisions in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.document.traversal import topological_order
from dld_tui.core.model.operators.categories import main_rank
from dld_tui.core.text import visible
from dld_tui.core.types import TextEnum

_PRODUCT = 3
"""The rank of products among operators."""
_SMALL = 0.01
"""A product with a smaller share of the multiply-accumulates begins no region."""


class Scheme(TextEnum):
    """What of a region is quantized."""

    FLOAT = "float"
    PRODUCTS = "products"
    """The product; what follows it computes in floating point."""
    ALL = "quantized"


@dataclass(frozen=True)
class Pattern:
    """Regions that are alike."""

    operators: tuple[str, ...]
    """Of each region, in the order of execution. Untrusted text."""
    regions: tuple[tuple[str, ...], ...]
    """The names of the nodes of each. Untrusted text."""
    products: frozenset[str] = frozenset()
    """Those of them that are products."""
    share: float = 0.0
    """Of the multiply-accumulates of the model."""

    @property
    def schemes(self) -> tuple[Scheme, ...]:
        """The ways to quantize it, from the fewest quantized nodes to the most."""
        is_mixed = 0 < len(self.products) < sum(map(len, self.regions))
        return tuple(one for one in Scheme if one is not Scheme.PRODUCTS or is_mixed)

    def floating(self, scheme: Scheme) -> list[str]:
        """Return the names of the nodes that stay in floating point."""
        names = [name for region in self.regions for name in region]
        if scheme is Scheme.FLOAT:
            return names
        return [] if scheme is Scheme.ALL else [name for name in names if name not in self.products]

    @property
    def title(self) -> str:
        """The operators, as ``Conv, Relu, 2 Add``. Fit for a terminal."""
        counts: dict[str, int] = {}
        for op_type in self.operators:
            counts[op_type] = counts.get(op_type, 0) + 1
        return ", ".join(
            visible(op_type) if count == 1 else f"{fmt.count(count)} {visible(op_type)}"
            for op_type, count in counts.items()
        )


@dataclass(frozen=True)
class Regions:
    """The patterns of a graph, and which of them have regions beside each other."""

    patterns: tuple[Pattern, ...]
    """In the order of their first regions."""
    beside: frozenset[tuple[int, int]]
    """Pairs of positions, the lower one first: a tensor of one goes to the other."""


def regions_of(
    main: Scope,
    candidates: Collection[Node],
    types: Mapping[str, str] | None = None,
    shares: Mapping[str, float] | None = None,
) -> Regions:
    """Return the regions of a graph.

    Args:
        main: The graph; its nodes have unique names.
        candidates: The nodes that can be quantized; those of constants are in no region.
        types: The types of tensors with the shapes of a run, by name; others are as declared.
        shares: Of the multiply-accumulates of the model, by the name of the node; others may be
            large.
    """
    shares = shares or {}
    regions: list[list[Node]] = []
    origins: dict[str, int] = {}
    """The region that a tensor comes from."""
    touching: set[tuple[int, int]] = set()
    depending = {name for name in main.inputs if name not in main.named("initializer")}
    for node in topological_order(main) or main.nodes:
        if depending.isdisjoint(node.inputs):
            continue  # a constant, which is computed when the model is loaded
        depending.update(filter(None, node.outputs))
        before = [origins[name] for name in node.inputs if name in origins]
        region = max(before, default=None)
        if node in candidates:
            is_small = shares.get(node.name, 1.0) < _SMALL
            if region is None or (main_rank(node.op_type) == _PRODUCT and not is_small):
                region = len(regions)
                regions.append([])
            regions[region].append(node)
            touching.update((other, region) for other in before if other != region)
        if region is not None:
            origins |= dict.fromkeys(node.outputs, region)

    def type_of(name: str) -> str:
        known = main.value_type(name)
        return (types or {}).get(name) or (name if known is None else known.text)

    alike: dict[tuple[object, ...], list[int]] = {}
    for at, region_nodes in enumerate(regions):
        alike.setdefault(_form(main, region_nodes, type_of), []).append(at)
    patterns = tuple(_pattern([regions[at] for at in places], shares) for places in alike.values())
    pattern_of = {at: number for number, places in enumerate(alike.values()) for at in places}
    pairs = ((pattern_of[one], pattern_of[other]) for one, other in touching)
    beside = frozenset((min(pair), max(pair)) for pair in pairs if pair[0] != pair[1])
    return Regions(patterns, beside)


def _pattern(regions: Sequence[Sequence[Node]], shares: Mapping[str, float]) -> Pattern:
    return Pattern(
        tuple(node.op_type for node in regions[0]),
        tuple(tuple(node.name for node in region) for region in regions),
        frozenset(
            node.name for region in regions for node in region
            if main_rank(node.op_type) == _PRODUCT
        ),
        sum(shares.get(node.name, 0.0) for region in regions for node in region),
    )  # fmt: skip


def _form(main: Scope, region: Sequence[Node], type_of: Callable[[str], str]) -> tuple[object, ...]:
    """Return what regions that are alike have in common."""
    places: dict[str, tuple[int, int]] = {}
    form: list[object] = []
    for at, node in enumerate(region):
        attributes = sorted(
            proto.SerializeToString(deterministic=True) for proto in node.proto.attribute
        )
        inputs = [
            places.get(name) or (main.initializer(name) is not None, type_of(name)) if name else ""
            for name in node.inputs
        ]
        outputs = [type_of(name) if name else "" for name in node.outputs]
        form.append((node.domain, node.op_type, *attributes, *inputs, *outputs))
        places |= {name: (at, slot) for slot, name in enumerate(node.outputs) if name}
    return tuple(form)
