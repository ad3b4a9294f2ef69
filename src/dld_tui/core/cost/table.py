"""The costs of the nodes of a model as a table, and their sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from dld_tui.core import fmt
from dld_tui.core.cost.counts import Count, count_text, size_at, size_text
from dld_tui.core.cost.nodes import Cost, ModelCosts
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import COUNT, RATIO, Unit
from dld_tui.core.text import visible

if TYPE_CHECKING:
    from dld_tui.core.document.node import Node
    from dld_tui.core.types import JSON

_COUNTS = Unit("count", count_text, "int64")
_SIZES = Unit("B", size_text, "int64")
_TYPICAL = 64


class CostRow(NamedTuple):
    """A node and what it costs."""

    node: Node
    cost: Cost


def plain(count: Count | None) -> int | str | None:
    """Return a count for a file: a number, or the formula of a symbolic one as text."""
    return count if count is None or isinstance(count, int) else str(count)


def intensity(cost: Cost) -> float | None:
    """Return operations a byte moved; None where one of them is symbolic or unknown."""
    moved = cost.moved
    if not isinstance(cost.flops, int) or not isinstance(moved, int):
        return None
    return cost.flops / moved if moved else None


def _counted(key: str, title: str, unit: Unit, help: str) -> Column[CostRow]:
    def count(row: CostRow) -> Count | None:
        found: Count | None = getattr(row.cost, key)
        return found

    def order(row: CostRow) -> int | None:
        found = count(row)
        return None if found is None else size_at(found, _TYPICAL)

    return Column(
        key, title, lambda row: plain(count(row)), unit, 10, order=order, help=help,
        text=lambda row: unit.shown(count(row)),
    )  # fmt: skip


COLUMNS: tuple[Column[CostRow], ...] = (
    Column("node", "node", lambda row: _place(row.node), least=20, keep="end"),
    Column("operator", "operator", lambda row: _operator(row.node), width=18),
    _counted("macs", "MACs", _COUNTS, "Multiply-accumulates."),
    _counted("flops", "FLOPs", _COUNTS, "Operations; a multiply-accumulate is two."),
    _counted("read", "read", _SIZES, "Bytes of the inputs, each once."),
    _counted("written", "written", _SIZES, "Bytes of the outputs."),
    Column("parameters", "params", lambda row: row.cost.parameters, COUNT, 10,
           help="Elements of the initializers and constants that it reads."),
    Column("intensity", "FLOPs/B", lambda row: intensity(row.cost), RATIO, 8,
           help="Operations a byte read or written."),
)  # fmt: skip


def _place(node: Node) -> str:
    return "".join(f"{step} › " for step in node.scope.path) + node.ref


def _operator(node: Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def cost_table(costs: ModelCosts) -> Table[CostRow]:
    """Return a row for each node of all scopes, in the order of the file."""
    scopes = costs.document.scopes()
    rows = [CostRow(node, costs.nodes[node]) for scope in scopes for node in scope.nodes]
    return Table(COLUMNS, rows, name="cost", title="Cost", row_key=lambda row: id(row.node))


def cost_lines(costs: ModelCosts) -> list[str]:
    """Return what one run of a model costs, in lines for people."""
    known = costs.known
    lines: list[tuple[str, Callable[[], str]]] = [
        ("MACs", lambda: count_text(known.macs or 0)),
        ("FLOPs", lambda: count_text(known.flops or 0)),
        ("moved", lambda: size_text(known.moved or 0)),
    ]
    found = [f"{title:<11}{visible(text())}" for title, text in lines]
    if costs.unknown:
        operators = sorted({_operator(node) for node in costs.unknown})
        text = f"{fmt.plural(len(costs.unknown), 'node')}, not counted: {', '.join(operators)}"
        found.append(f"{'unknown':<11}{visible(text)}")
    return found


def total_json(costs: ModelCosts) -> dict[str, JSON]:
    """Return the sums over the main graph, without what is not known, and how much that is."""
    known = costs.known
    fields = {key: plain(value) for key, value in known._asdict().items() if key != "parameters"}
    return {**fields, "unknown_nodes": len(costs.unknown)}
