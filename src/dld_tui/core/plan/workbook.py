"""A plan as a workbook: its summary, its findings, and a sheet for each of its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dld_tui.core.plan.summary import NAMES, summary_lines
from dld_tui.core.plan.tables import VIEWS, group_table, make_table
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.units import PERCENT

if TYPE_CHECKING:
    from dld_tui.core.plan.lint import PlanFinding
    from dld_tui.core.plan.model import EnginePlan

_GROUPS = ("type", "precision")


def plan_sheets(
    plan: EnginePlan, findings: Sequence[PlanFinding]
) -> Iterator[tuple[str, Table[Any]]]:
    """Yield the sheets of a plan by name; tables without rows are left out."""
    lines = [(line[:NAMES].strip(), line[NAMES:]) for line in summary_lines(plan)]
    lines += [("note", note) for note in plan.notes]
    summary: tuple[Column[tuple[str, str]], ...] = (
        Column("name", "what", itemgetter(0)),
        Column("value", "value", itemgetter(1)),
    )
    yield "Summary", Table(summary, lines)
    names = {layer.index: layer.name for layer in (*plan.all_layers, *plan.layers)}
    columns: tuple[Column[PlanFinding], ...] = (
        Column("level", "level", lambda one: one.level),
        Column("rule", "rule", lambda one: one.rule),
        Column("layer", "layer", lambda one: _layers(one, names)),
        Column("percent", "%", lambda one: one.percent, PERCENT),
        Column("hazard", "what is wrong", lambda one: one.hazard),
        Column("mitigation", "what to do", lambda one: one.mitigation),
    )
    tables: list[tuple[str, Table[Any]]] = [("Findings", Table(columns, list(findings)))]
    tables += [(f"By {by}", group_table(plan, by)) for by in _GROUPS]
    tables += [(table.title, table) for table in (make_table(plan, view) for view in VIEWS)]
    yield from ((name, table) for name, table in tables if table.rows)


def _layers(finding: PlanFinding, names: dict[int, str]) -> str:
    indices = finding.layers if finding.layer is None else (finding.layer,)
    return "; ".join(names.get(index, "") for index in indices)
