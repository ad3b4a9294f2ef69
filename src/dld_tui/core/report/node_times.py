"""Measured times of layers as times of the nodes of the main graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dld_tui.core.model.document.local_functions import call_of, key_of

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.model.document.scope import Scope
    from dld_tui.core.report.records import Layer

_DEEPEST = 16
"""Functions that call each other."""


def node_times(
    layers: Sequence[Layer], callers: Mapping[str, Mapping[str, float]] | None = None
) -> dict[str, float]:
    """Return the milliseconds of nodes of the main graph; those of bodies count for their node.

    Args:
        layers: Of the report.
        callers: As :func:`function_callers` returns them; without, the time of a function whose
            call is not known counts for no node.
    """
    times: dict[str, float] = {}

    def add(node: str, ms: float) -> None:
        times[node] = times.get(node, 0.0) + ms

    for layer in layers:
        ms = layer.cost_ms or 0.0
        if layer.around:
            add(layer.around, ms)
            continue
        for link in layer.nodes:
            if link.calls:
                add(link.calls[0], ms * link.share)
            elif not link.scope:
                add(link.node, ms * link.share)
            elif callers is not None and link.scope[0] in callers:
                for node, share in callers[link.scope[0]].items():
                    add(node, ms * link.share * share)
            else:
                add(link.scope[0].rpartition(":")[0], ms * link.share)
    return times


def function_callers(document: Document) -> dict[str, dict[str, float]]:
    """Return the shares of the nodes of the main graph in the calls of each function.

    By the first element of `Scope.path`. Calls from subgraphs of the main graph do not count.
    """
    functions = {key_of(function): function for function in document.functions}
    counts: dict[str, dict[str, int]] = {}

    def visit(function: Scope, node: str, active: tuple[Scope, ...]) -> None:
        if function in active or len(active) > _DEEPEST:
            return
        calls = counts.setdefault(function.path[0], {})
        calls[node] = calls.get(node, 0) + 1
        for inner in called[function]:
            visit(inner, node, (*active, function))

    called = {
        function: [functions[key] for key in map(call_of, function.nodes) if key in functions]
        for function in functions.values()
    }
    for node in document.main.nodes:
        function = functions.get(call_of(node))
        if function is not None:
            visit(function, node.ref, ())
    return {
        path: {node: count / sum(calls.values()) for node, count in calls.items()}
        for path, calls in counts.items()
    }
