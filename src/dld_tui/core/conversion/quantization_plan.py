"""A plan of static quantization: which tensors get QuantizeLinear and DequantizeLinear, and why.

ONNX Runtime's quantizer goes through the nodes in order. Each node requests tensors to be
quantized, some only if their inputs already are; a tensor that no node requests stays in floating
point. The rules come from the quantizer itself, so that its result is known for any choice of nodes
without running it again (:mod:`dld_tui.backends.conversion.quantization`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeAlias

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.text import clip, shortened, visible
from dld_tui.core.text.names import UNNAMED

if TYPE_CHECKING:
    from dld_tui.core.model.document.node import Node
    from dld_tui.core.model.document.scope import Scope

Key: TypeAlias = str
"""Where the scale of a tensor comes from: ``range:TENSOR`` (calibrated values), ``unit`` (0 to 1),
``weight:TENSOR`` (its values); for a bias the keys of activation and weight, joined by ``*``."""

_KINDS = (("activation", "activations"), ("weight", "weights"), ("bias", "biases"))
_NAMED = 3
"""The most nodes that are named for a tensor."""
_QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")


@dataclass(frozen=True)
class TensorRequest:
    """A request of a node to quantize a tensor."""

    kind: str
    """``activation``, ``weight``, ``bias``, or ``same``: an activation with the scale of another
    tensor."""
    tensor: str
    """Untrusted text."""
    of: str = ""
    """Of ``same`` the tensor that gives the scale, of ``bias`` the activation."""
    weight: str = ""
    """Of ``bias`` the weight."""


@dataclass(frozen=True)
class Rule:
    """The requests of a node."""

    node: str
    """Its name. Untrusted text."""
    needs: tuple[str, ...]
    """Tensors that decide which requests apply."""
    when_quantized: tuple[TensorRequest, ...]
    """Its requests when all of these are quantized already."""
    otherwise: tuple[TensorRequest, ...]


@dataclass(frozen=True)
class QdqInsertion:
    """A tensor that gets QuantizeLinear and DequantizeLinear."""

    tensor: str
    """Untrusted text."""
    kind: str
    nodes: tuple[str, ...]
    """The names of the nodes that request it. Untrusted text."""


def point_lines(points: Sequence[QdqInsertion]) -> list[str]:
    """Return the tensors that are quantized, for people. Fit for a terminal."""
    counts = Counter(point.kind for point in points)
    counts_text = ", ".join(
        f"{fmt.count(counts[kind])} {text}" for kind, text in _KINDS if counts[kind]
    )
    nodes = len({node for point in points for node in point.nodes})
    tensors = fmt.plural(len(points), "tensor")
    lines = [f"{tensors} quantized for {fmt.plural(nodes, 'node')}: {counts_text}" if points else
             "no tensor would be quantized"]  # fmt: skip
    for point in points:
        users = [clip(visible(node), 40, keep="middle") for node in point.nodes]
        name = shortened(point.tensor)
        lines.append(f"  {point.kind:<10} {name}  for {fmt.listed(users, _NAMED)}")
    return lines


def quantized_nodes(scope: Scope, points: Sequence[QdqInsertion] = ()) -> dict[Node, float]:
    """Return how many quantized tensors nodes of a graph request, or have as inputs and outputs.

    Args:
        scope: The graph.
        points: The plan of a quantization; without one, the existing QuantizeLinear and
            DequantizeLinear nodes count.
    """
    node_counts: Counter[Node] = Counter()
    for point in points:
        for name in point.nodes:
            producer = (
                scope.producer(name.removeprefix(UNNAMED)) if name.startswith(UNNAMED) else None
            )
            for node in scope.nodes_named(name) or filter(None, [producer]):
                node_counts[node] += 1
    if not points:
        for node in scope.nodes_of_type("DequantizeLinear"):
            node_counts.update(user for name in node.outputs for user in scope.consumers(name))
        for node in scope.nodes_of_type("QuantizeLinear"):
            node_counts.update(filter(None, [scope.producer(name) for name in node.inputs[:1]]))
        for op_type in _QUANTIZERS:
            for node in scope.nodes_of_type(op_type):
                node_counts.pop(node, None)
    return {node: float(count) for node, count in node_counts.items()}


@dataclass(frozen=True)
class Scale:
    """The parameters of QuantizeLinear."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    dtype: str
    axis: int | None = None
    """None for one scale of the whole tensor."""


@dataclass(frozen=True)
class QuantizationPlan:
    """The rules, in the order of the nodes, and the scales."""

    rules: Sequence[Rule]
    scales: Mapping[Key, Scale] = field(default_factory=dict)
    """Empty where nothing was calibrated."""
    narrowed: Mapping[str, Sequence[tuple[str, Key]]] = field(default_factory=dict)
    """Tensors whose range a quantized node narrows (the input of a Relu needs no negative numbers),
    with the name of that node and the key of the narrower scale."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> QuantizationPlan:
        """Return the plan that the quantizer's process wrote."""
        rules = [
            Rule(
                entry["node"],
                tuple(entry["needs"]),
                tuple(TensorRequest(*request) for request in entry["when_quantized"]),
                tuple(TensorRequest(*request) for request in entry["otherwise"]),
            )
            for entry in data["rules"]
        ]
        scales = {
            key: Scale(
                tuple(entry["scale"]), tuple(entry["zero_point"]), entry["dtype"], entry["axis"]
            )
            for key, entry in data["scales"].items()
        }
        narrowed = defaultdict[str, "list[tuple[str, Key]]"](list)
        for tensor, node, key in data["narrowed"]:
            narrowed[tensor].append((node, key))
        return cls(rules, scales, narrowed)

    def scale(self, key: Key) -> Scale | None:
        """Return a scale; None where its values were not calibrated."""
        if "*" not in key or key in self.scales:
            return self.scales.get(key)
        activation_key, _, weight_name = key.partition("*weight:")
        activation, weight = (
            self.scales.get(activation_key),
            self.scales.get(f"weight:{weight_name}"),
        )
        if activation is None or weight is None:
            return None
        scales = tuple(activation.scale[0] * scale for scale in weight.scale)
        return Scale(scales, (0,), "int32", None if weight.axis is None else 0)

    def requests(self, kept: Collection[str] = ()) -> list[tuple[str, TensorRequest]]:
        """Return the requests, with their nodes, when some nodes stay in floating point."""
        quantized, requests = set[str](), list[tuple[str, TensorRequest]]()
        for rule in self.rules:
            if rule.node in kept:
                continue
            is_met = bool(rule.needs) and quantized.issuperset(rule.needs)
            own = rule.when_quantized if is_met else rule.otherwise
            requests += ((rule.node, request) for request in own)
            quantized.update(request.tensor for request in own)
        return requests

    def points(self) -> list[QdqInsertion]:
        """Return the tensors that are quantized."""
        nodes, kinds = defaultdict[str, "dict[str, None]"](dict), dict[str, str]()
        for node, request in self.requests(()):
            nodes[request.tensor][node] = None
            kind = "activation" if request.kind == "same" else request.kind
            kinds[request.tensor] = (
                kind if kinds.get(request.tensor, kind) == "activation" else "weight"
            )
            if request.kind == "bias":
                kinds[request.tensor] = "bias"
        return [QdqInsertion(tensor, kinds[tensor], tuple(nodes[tensor])) for tensor in nodes]

    def scale_keys(self, kept: Collection[str] = ()) -> dict[str, Key]:
        """Return the scale of each tensor that is quantized.

        A tensor without a calibrated range is left out, as by the quantizer.
        """
        marks: dict[str, TensorRequest] = {}
        for _, request in self.requests(kept):
            if request.kind in ("same", "weight"):
                marks[request.tensor] = request
            else:
                marks.setdefault(request.tensor, request)
        keys = {tensor: self._key(tensor, marks, kept, set()) for tensor in marks}
        return {tensor: key for tensor, key in keys.items() if self.scale(key) is not None}

    def _key(
        self, tensor: str, marks: Mapping[str, TensorRequest], kept: Collection[str], seen: set[str]
    ) -> Key:
        mark = marks.get(tensor)
        if mark is not None and mark.kind == "same" and tensor not in seen:
            return self._key(mark.of, marks, kept, seen | {tensor})
        if mark is not None and mark.kind == "bias":
            return f"{self._key(mark.of, marks, kept, seen)}*weight:{mark.weight}"
        if f"weight:{tensor}" in self.scales:
            return f"weight:{tensor}"
        for node, key in self.narrowed.get(tensor, ()):
            if node not in kept:
                return key
        return f"range:{tensor}"

    def possible_scale_keys(self) -> dict[str, list[Key]]:
        """Return the scales that each tensor can have, whichever nodes stay in floating point."""
        scale_sources = defaultdict[str, "dict[str, None]"](dict)
        tensors, biases = dict[str, None](), dict[str, TensorRequest]()
        for rule in self.rules:
            for request in (*rule.when_quantized, *rule.otherwise):
                tensors[request.tensor] = None
                if request.kind == "bias":
                    biases.setdefault(request.tensor, request)
                elif request.kind == "same":
                    scale_sources[request.tensor][request.of] = None

        def keys_of(tensor: str) -> dict[Key, None]:
            keys, waiting, seen = dict[Key, None](), [tensor], set[str]()
            while waiting:
                name = waiting.pop()
                if name not in seen:
                    seen.add(name)
                    waiting += scale_sources[name]
                    keys |= dict.fromkeys(self._own_keys(name))
            return keys

        possible: dict[str, list[Key]] = {}
        for tensor in tensors:
            bias = biases.get(tensor)
            keys = keys_of(tensor if bias is None else bias.of)
            if bias is not None:
                keys = {f"{key}*weight:{bias.weight}": None for key in keys}
            if known := [key for key in keys if self.scale(key) is not None]:
                possible[tensor] = known
        return possible

    def _own_keys(self, tensor: str) -> list[Key]:
        if f"weight:{tensor}" in self.scales:
            return [f"weight:{tensor}"]
        return [f"range:{tensor}", *(key for _, key in self.narrowed.get(tensor, ()))]
