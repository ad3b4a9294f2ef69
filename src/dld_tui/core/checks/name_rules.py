"""Rules about names."""

from __future__ import annotations

import unicodedata

from dld_tui.core.checks.findings import Finding, Level, Repair, make_finding, name_of
from dld_tui.core.checks.state import ScopeState
from dld_tui.core.document import Node, Scope

_INVISIBLE = frozenset({"Cc", "Cf", "Zl", "Zp"})
_RENAME = Repair("rename_duplicate_nodes")


def odd_name(scope: Scope, name: str, node: Node | None = None) -> list[Finding]:
    """Return why a name is not printable."""
    subject = "Node" if node is not None else "Value"
    value = None if node is not None else name
    if any("\udc80" <= char <= "\udcff" for char in name):
        text = f"{subject} name {name_of(name)} is not UTF-8"
    elif any(unicodedata.category(char) in _INVISIBLE for char in name):
        text = f"{subject} name {name_of(name)} has control or invisible characters"
    else:
        return []
    return [make_finding("odd-name", text, scope, node, value=value)]


def check_node_name(state: ScopeState, name: str) -> None:
    """Find out whether several nodes have this name."""
    nodes = state.scope.nodes_named(name) if name else []
    if len(nodes) < 2:
        return
    second = sorted(nodes, key=lambda node: state.positions.get(node, 0))[1]
    message = f"{len(nodes)} nodes are called {name_of(name)}"
    # Readers make weights of constants: their names are then no nodes' any more.
    others = sum(node.op_type != "Constant" for node in nodes)
    level: Level = "error" if others > 1 else "warning"
    finding = make_finding(
        "duplicate-node-name", message, state.scope, second, repair=_RENAME, level=level
    )
    state.report([finding], state.positions[second])
