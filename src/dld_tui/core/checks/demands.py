"""What operators demand of the sizes of their inputs, and do not get, whatever the inputs are."""

from __future__ import annotations

from dld_tui.core.checks.findings import OPERANDS, ToolFinding, name_of
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.locations import LocatedMessage, place_of
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.inputs.guess import input_specs
from dld_tui.core.model.shapes.evaluation import Evaluation
from dld_tui.core.model.shapes.size import size_of, sizes_text
from dld_tui.core.model.shapes.value import Value


def broken_demands(document: Document) -> list[ToolFinding]:
    """Return the nodes whose inputs do not fit each other; unknown sizes fit everything."""
    inputs = {
        spec.name: Value(None if spec.dims is None else tuple(map(size_of, spec.dims)))
        for spec in input_specs(document)
        if not spec.container
    }
    first: dict[Node, ToolFinding] = {}
    for demand in Evaluation(document, inputs, named=True).demands.failed:
        node = demand.node
        if node is None or node in first:
            continue
        sizes = f", but the sizes are {sizes_text(demand.sizes)}" if demand.sizes else ""
        text = f"{name_of(node.op_type)}: {demand.reason}{name_of(sizes)}"
        place, index = place_of(node.scope), node.scope.nodes.index(node)
        first[node] = ToolFinding("error", OPERANDS, LocatedMessage(text, place, index))
    return [*first.values()]
