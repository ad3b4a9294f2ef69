"""Joining the kernels of a backend to the nodes of the ONNX file, with how sure that is.

Two sources: the tensors of the optimised model, where it was saved (confidence ``tensor``), and the
kernels' names (``name`` when a node has exactly this name and operator, ``rule`` when a naming rule
of the optimiser leads to it). What neither explains is ``none``; nothing is guessed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dld_tui.core.node_cost import SharedBy, cost_shares
from dld_tui.core.report.fusion import FusionTracer
from dld_tui.core.report.node_finder import NodeFinder
from dld_tui.core.report.ort_kernel import Kernel
from dld_tui.core.report.ort_names import Clue, clues
from dld_tui.core.report.records import Confidence, NodeLink

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.document.node import Node

_ACTIVATIONS = frozenset(
    {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "Elu", "Selu", "Softplus"}
)
_SUMS = frozenset({"Add", "Sum"})
_LONGEST_CHAIN = 8


class Attribution:
    """The nodes of one document, ready to be found."""

    def __init__(self, document: Document, optimised: Document | None = None) -> None:
        """Index a document.

        Args:
            document: The model as the user knows it.
            optimised: What the backend made of it and ran, when that was saved.
        """
        self._finder = NodeFinder(document)
        self._tracer: FusionTracer | None = None
        self._optimised: NodeFinder | None = None
        self._aligned: dict[Kernel, Node] = {}
        self._are_fused = True
        self.shared_by: SharedBy | None = None
        """How the time of the last kernel was shared; None when it had one node or none."""
        if optimised is not None:
            self._optimised = NodeFinder(optimised)
            self._tracer = FusionTracer(self._finder, optimised)

    def align(self, kernels: Sequence[Kernel]) -> bool:
        """Match the top-level kernels of a whole pass to the optimised main graph by their order.

        That also identifies kernels whose nodes have no name. Returns False, and changes nothing,
        when the orders differ.
        """
        if self._optimised is None:
            return False
        nodes = self._optimised.document.main.nodes
        same = len(nodes) == len(kernels) and all(
            node.op_type == kernel.op_type and node.name in ("", kernel.name)
            for node, kernel in zip(nodes, kernels, strict=True)
        )
        if same:
            self._aligned = dict(zip(kernels, nodes, strict=True))
        return same

    def links(self, kernel: Kernel) -> tuple[tuple[NodeLink, ...], Confidence]:
        """Return the nodes that a kernel stands for, sharing its time by cost, and how sure it is.

        What it was shared by is in :attr:`shared_by`. The first is the one that says most about the
        kernel: of its own name or operator.
        """
        self._are_fused = True
        self.shared_by = None
        nodes, confidence = self._by_tensors(kernel)
        if not nodes:
            nodes, confidence = self._by_name(kernel)
        if not nodes:
            return (), "none"
        ordered = sorted(
            nodes, key=lambda n: (n.name != kernel.name or not n.name, n.op_type != kernel.op_type)
        )
        shares = [1 / len(ordered)] * len(ordered)
        if len(ordered) > 1:
            self.shared_by = "equal"
            if self._are_fused:
                operators = [(node, node.op_type) for node in ordered]
                shares, self.shared_by = cost_shares(operators, _elements(kernel))
        links = zip(ordered, shares, strict=True)
        return tuple(self._link(node, confidence, share) for node, share in links), confidence

    def _by_tensors(self, kernel: Kernel) -> tuple[list[Node], Confidence]:
        node = self._optimised_node(kernel)
        if node is None or self._tracer is None:
            return [], "none"
        if self._tracer.moves_data(node):
            self._are_fused = False  # it works for them, and computes none
            return self._tracer.nodes_served(node), "rule"
        return self._tracer.nodes_of(node), "tensor"

    def _optimised_node(self, kernel: Kernel) -> Node | None:
        if kernel in self._aligned or self._optimised is None:
            return self._aligned.get(kernel)
        named = self._optimised.named(kernel.name)
        found = [node for node in named if node.op_type == kernel.op_type]
        return found[0] if len(found) == 1 else None

    def _by_name(self, kernel: Kernel) -> tuple[list[Node], Confidence]:
        within, name = self._finder.branch(kernel.name)
        for clue in clues(name, kernel.op_type):
            found = self._finder.find(clue, kernel.op_type, within)
            if not found:
                continue
            if len(found) > 1:
                self._are_fused = False  # it is one of them
                return found, "rule"
            if found[0].op_type == kernel.op_type and clue.exact:
                return found, "name"
            return self._with_fused(found[0], kernel, clue), "rule"
        return [], "none"

    def _with_fused(self, node: Node, kernel: Kernel, clue: Clue) -> list[Node]:
        if clue.kind == "tensor" and node.op_type != kernel.op_type:
            return _back_to(node, kernel.op_type)
        if kernel.op_type == f"Fused{node.op_type}":
            return _with_activation(node, adds=len(kernel.input_dims) > 3)
        return [node]

    def _link(self, node: Node, confidence: Confidence, share: float) -> NodeLink:
        path = self._finder.path_of(node.scope)
        return NodeLink(path, node.ref, node.name, node.op_type, confidence, share)


def _elements(kernel: Kernel) -> int | None:
    """Return how many elements a kernel made when it ran."""
    dims = kernel.output_dims[0] if kernel.output_dims else None
    numbers = [dim for dim in dims or () if isinstance(dim, int) and dim >= 0]
    return None if dims is None or len(numbers) < len(dims) else math.prod(numbers)


def _back_to(node: Node, op_type: str) -> list[Node]:
    """Return the chain of nodes from one of `op_type` to `node`, else only `node`."""
    chain = [node]
    for _ in range(_LONGEST_CHAIN):
        before = node.scope.producer(node.inputs[0]) if node.inputs else None
        if before is None or len(node.scope.consumers(node.inputs[0])) != 1:
            break
        chain.append(before)
        if before.op_type == op_type:
            return chain[::-1]
        node = before
    return chain[:1]


def _with_activation(node: Node, *, adds: bool) -> list[Node]:
    """Return a node with the activation that reads its result, and the sum before it if `adds`."""
    chain = [node]
    for wanted in (_SUMS, _ACTIVATIONS) if adds else (_ACTIVATIONS,):
        output = next(iter(chain[-1].outputs), "")
        readers = node.scope.consumers(output)
        if len(readers) != 1 or readers[0].op_type not in wanted:
            break
        chain.append(readers[0])
    return chain
