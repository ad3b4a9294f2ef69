"""An engine plan as text: the summary, findings and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dld_tui.cli.output import terminal_cells, write, write_wrapped
from dld_tui.core import fmt
from dld_tui.core.plan.filter import matching
from dld_tui.core.plan.findings import FindingGroup, grouped
from dld_tui.core.plan.records import layer_records
from dld_tui.core.plan.roofline import peaks_of, unknown_device
from dld_tui.core.plan.summary import summary_lines
from dld_tui.core.plan.tables import group_table
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.tables.as_text import fitted_lines
from dld_tui.core.tables.table import Table
from dld_tui.core.text import clip, visible

if TYPE_CHECKING:
    from dld_tui.core.plan.findings import PlanFinding
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EnginePlan

_MOST_OF_RULE = 3
_MOST_HAZARDS = 3
_SAID = "names-only"
_MOST_MESSAGES = 8
_MOST_GROUPS = 8
_MOST_LAYERS = 25
_NAME_CELLS = 60


def write_summary(plan: EnginePlan, notes: Sequence[str] = ()) -> None:
    """Write the figures of a plan, what its log says, and what could not be read."""
    for line in summary_lines(plan):
        write(visible(line))
    if plan.log is not None and plan.log.command:
        write(f"reproduce    {visible(plan.log.command)}")
    if plan.log is not None:
        if plan.log.status:
            write(f"result       {visible(plan.log.status)}")
        _write_messages("error", plan.log.errors)
        _write_messages("warning", plan.log.warnings)
    roof = unknown_device(plan)
    told = [*plan.notes, *notes]
    if roof and plan.total_ms is not None and not plan.names_only:
        told.append(roof)
    for note in told:
        write_wrapped(f"! {visible(note)}", "  ")
    peaks = peaks_of(plan.device)
    if peaks is not None and plan.layers and not plan.names_only:
        ops = ", ".join(f"{name} {value:g}" for name, value in peaks.tflops.items())
        write_wrapped(f"peaks        {peaks.bandwidth_gbs:,.0f} GB/s; tera-operations: {ops}", "  ")


def _write_messages(word: str, messages: Sequence[str]) -> None:
    for message in messages[:_MOST_MESSAGES]:
        write_wrapped(f"{word:<12} {visible(message)}", " " * 13)
    if len(messages) > _MOST_MESSAGES:
        write(f"{word:<12} … and {len(messages) - _MOST_MESSAGES} more")


def write_findings(plan: EnginePlan, findings: Sequence[PlanFinding]) -> None:
    """Write what lint found, the worst first; that there are names only is said above."""
    groups = [group for group in grouped(plan, findings) if group.rule != _SAID]
    if groups:
        write()
    for group in groups:
        _write_group(group)


def _write_group(group: FindingGroup) -> None:
    """Write the findings of one rule: what is wrong, what to do, and in which layers."""
    about = [] if group.percent is None else [f"{fmt.percent(group.percent)} %"]
    if len(group.layers) > 1:
        about.append(fmt.plural(len(group.layers), "layer"))
    share = f" ({', '.join(about)})" if about else ""
    first, *others = group.hazards
    write_wrapped(f"{group.level} {group.rule}{share}: {visible(first)}", "    ")
    for hazard in others[: _MOST_HAZARDS - 1]:
        write_wrapped(f"    {visible(hazard)}", "    ")
    if len(others) >= _MOST_HAZARDS:
        write(f"    … {len(others) + 1 - _MOST_HAZARDS} more of the kind: --json has all")
    for mitigation in group.mitigations[:_MOST_HAZARDS]:
        write_wrapped(f"    {visible(mitigation)}", "    ")
    for layer in group.layers[:_MOST_OF_RULE]:
        part = f"  {fmt.percent(layer.percent)} %" if layer.percent is not None else ""
        write(f"      {clip(visible(layer.name), _NAME_CELLS, keep='middle')}{part}")
    if len(group.layers) > _MOST_OF_RULE:
        more = fmt.plural(len(group.layers) - _MOST_OF_RULE, "more layer")
        write(f"      … {more}: --json has all")


def write_tables_of_summary(plan: EnginePlan, text: str, mapping: Mapping[int, LayerNodes]) -> None:
    """Write the short tables of the summary: by type, by precision, and the slowest layers."""
    if text:
        plan = replace(plan, layers=tuple(matching(plan, text, mapping)))
    if not plan.layers:
        return
    for by in ("type",) if plan.names_only else ("type", "precision"):
        write()
        _write_groups(plan, by)
    write()
    _write_layers(plan, mapping)


def _write_groups(plan: EnginePlan, by: str) -> None:
    found = group_table(plan, by)
    shown = replace(found, rows=found.rows[:_MOST_GROUPS]).pick(found.keys[:-1])
    _write_telling(shown)
    if len(found) > _MOST_GROUPS:
        write(f"… {fmt.plural(len(found) - _MOST_GROUPS, 'more group')}: --by {by} shows all")


def _write_layers(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> None:
    table = layer_table(layer_records(plan, mapping), "engine text").sorted_by("time_ms")
    _write_telling(replace(table, rows=table.rows[:_MOST_LAYERS]))
    if len(table) > _MOST_LAYERS:
        more = fmt.plural(len(table) - _MOST_LAYERS, "more layer")
        write(f"… {more}: --view layers shows all, --filter TEXT some")


def write_plan_table(table: Table[Any]) -> None:
    """Write a table in full, cut to the width of a terminal."""
    write(f"{table.title}: {fmt.plural(len(table.rows), 'row')}")
    if table.rows:
        _write_telling(table)


def _write_telling(table: Table[Any]) -> None:
    lines, left_out = fitted_lines(table, terminal_cells())
    for line in lines:
        write(line)
    if left_out:
        write_wrapped(
            f"! no room for {', '.join(left_out)}: a pipe, --csv and --json have all columns", "  "
        )
