"""Rules about the subgraphs of If, Loop and Scan: what they take and give."""

from __future__ import annotations

from dld_tui.core.checks.findings import Finding, found, name_of
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node, Scope


def check_bodies(state: ScopeState, node: Node) -> list[Finding]:
    """Return where the inputs or outputs of subgraphs do not fit the node that runs them."""
    domain, op_type = state.keys[node]
    if domain:
        return []
    if op_type == "If":
        return [
            finding
            for scope in node.subgraphs()
            for finding in _compare(node, scope, 0, len(node.outputs))
        ]
    bodies = node.children.get("body", ())
    if op_type == "Loop" and bodies:
        carried = max(len(node.inputs) - 2, 0)
        return _compare(node, bodies[0], carried + 2, len(node.outputs) + 1)
    if op_type == "Scan" and bodies and state.root.imports.get("", 0) >= 9:
        return _compare(node, bodies[0], len(node.inputs), len(node.outputs))
    return []


def _compare(node: Node, scope: Scope, inputs: int, outputs: int) -> list[Finding]:
    findings = []
    for what, names, wanted in (
        ("input", scope.inputs, inputs),
        ("output", scope.outputs, outputs),
    ):
        if len(names) != wanted:
            plural = "" if len(names) == 1 else "s"
            message = (
                f"Subgraph {name_of(scope.title)} has {len(names)} {what}{plural}, the node needs"
                f" {wanted}"
            )
            findings.append(found("subgraph-signature", message, node.scope, node))
    return findings
