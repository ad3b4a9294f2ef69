"""An engine plan as text: the summary, findings and tables."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dld_tui.cli.output import GAP, Column, is_terminal, write, write_table
from dld_tui.core import fmt
from dld_tui.core.plan.filter import matching
from dld_tui.core.plan.groups import groups
from dld_tui.core.plan.lint_groups import FindingGroup, grouped
from dld_tui.core.plan.roofline import peaks_of, unknown_device
from dld_tui.core.plan.summary import summary_lines
from dld_tui.core.plan.table_values import TEXT, Table
from dld_tui.core.plan.tables import cell_text
from dld_tui.core.text import cell_width, clip, visible

if TYPE_CHECKING:
    from dld_tui.core.plan.lint_model import PlanFinding
    from dld_tui.core.plan.mapping import LayerNodes
    from dld_tui.core.plan.model import EngineLayer, EnginePlan

_MOST_OF_RULE = 3
_MOST_HAZARDS = 3
_SAID = "names-only"
_MOST_MESSAGES = 8
_MOST_GROUPS = 8
_MOST_LAYERS = 25
_NAME_CELLS = 60
_LONGEST_CELL = 200
_TERMINAL_CELLS = 32
_LEAST_CELLS = 20
"""The room that a name is given before columns are left out."""


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
        _wrapped(f"! {visible(note)}", "  ")
    peaks = peaks_of(plan.device)
    if peaks is not None and plan.layers and not plan.names_only:
        ops = ", ".join(f"{name} {value:g}" for name, value in peaks.tflops.items())
        _wrapped(f"peaks        {peaks.bandwidth_gbs:,.0f} GB/s; tera-operations: {ops}", "  ")


def _write_messages(word: str, messages: Sequence[str]) -> None:
    for message in messages[:_MOST_MESSAGES]:
        _wrapped(f"{word:<12} {visible(message)}", " " * 13)
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
    _wrapped(f"{group.level} {group.rule}{share}: {visible(first)}", "    ")
    for hazard in others[: _MOST_HAZARDS - 1]:
        _wrapped(f"    {visible(hazard)}", "    ")
    if len(others) >= _MOST_HAZARDS:
        write(f"    … {len(others) + 1 - _MOST_HAZARDS} more of the kind: --json has all")
    for mitigation in group.mitigations[:_MOST_HAZARDS]:
        _wrapped(f"    {visible(mitigation)}", "    ")
    for layer in group.layers[:_MOST_OF_RULE]:
        part = f"  {fmt.percent(layer.percent)} %" if layer.percent is not None else ""
        write(f"      {clip(visible(layer.name), _NAME_CELLS, keep='middle')}{part}")
    if len(group.layers) > _MOST_OF_RULE:
        more = fmt.plural(len(group.layers) - _MOST_OF_RULE, "more layer")
        write(f"      … {more}: --json has all")


def _wrapped(text: str, indent: str) -> None:
    if not is_terminal(sys.stdout):
        write(text)
        return
    room = max(40, shutil.get_terminal_size().columns)
    start = text[: len(text) - len(text.lstrip())]
    for line in textwrap.wrap(
        text.lstrip(), room, initial_indent=start, subsequent_indent=start + indent
    ):
        write(line)


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
    columns = [
        Column(by, flexible=True), Column("count", right=True), Column("time ms", right=True),
        Column("%", right=True), Column("bytes", right=True),
    ]  # fmt: skip
    found = groups(plan, by)
    rows = [
        [
            visible(group.key), fmt.count(group.count), fmt.milliseconds(group.time_ms, digits=4),
            fmt.percent(group.percent), fmt.size(group.bytes or None),
        ]
        for group in found[:_MOST_GROUPS]
    ]  # fmt: skip
    write_table(*_telling(columns, rows))
    if len(found) > _MOST_GROUPS:
        write(f"… {fmt.plural(len(found) - _MOST_GROUPS, 'more group')}: --by {by} shows all")


def _write_layers(plan: EnginePlan, mapping: Mapping[int, LayerNodes]) -> None:
    layers = sorted(plan.layers, key=lambda layer: -(layer.time_ms or 0.0))
    columns = [
        Column("layer", flexible=True), Column("type", flexible=True), Column("precision"),
        Column("time ms", right=True), Column("%", right=True), Column("memory", right=True),
        Column("ONNX node", flexible=True),
    ]  # fmt: skip
    rows = [_layer(layer, mapping) for layer in layers[:_MOST_LAYERS]]
    write_table(*_telling(columns, rows))
    if len(layers) > _MOST_LAYERS:
        more = fmt.plural(len(layers) - _MOST_LAYERS, "more layer")
        write(f"… {more}: --view layers shows all, --filter TEXT some")


def _layer(layer: EngineLayer, mapping: Mapping[int, LayerNodes]) -> list[str]:
    nodes = mapping.get(layer.index)
    names = ", ".join(node.name for node in nodes.nodes) if nodes else ""
    return [
        clip(visible(layer.name), _LONGEST_CELL, keep="middle"),
        visible(layer.kind) or fmt.UNKNOWN,
        _types(layer),
        fmt.milliseconds(layer.time_ms, digits=4),
        fmt.percent(layer.percent),
        fmt.size(layer.footprint),
        clip(visible(names), _others_cells(), keep="middle") or fmt.UNKNOWN,
    ]


def _others_cells() -> int:
    """Return how long names in columns other than the first are shown."""
    return _TERMINAL_CELLS if is_terminal(sys.stdout) else _LONGEST_CELL


def _types(layer: EngineLayer) -> str:
    if layer.output_precision in ("", layer.precision):
        return layer.precision or fmt.UNKNOWN
    return f"{layer.precision or '?'}>{layer.output_precision}"


def write_plan_table(table: Table) -> None:
    """Write a table in full, cut to the width of a terminal."""
    write(f"{table.title}: {fmt.plural(len(table.rows), 'row')}")
    if not table.rows:
        return
    columns = [
        Column(column.title, right=column.kind != TEXT, flexible=column.flexible)
        for column in table.columns
    ]
    # The first column is the one to read: the others leave it room on a terminal.
    longest = [_LONGEST_CELL, *[_others_cells()] * (len(columns) - 1)]
    rows = [
        [
            clip(visible(cell_text(value, column.kind)), cells, keep="middle")
            for value, column, cells in zip(row, table.columns, longest, strict=True)
        ]
        for row in table.rows
    ]
    columns, rows = _telling(columns, rows)
    shown = _fitting(columns, rows)
    write_table(columns[:shown], [row[:shown] for row in rows])
    if shown < len(columns):
        _wrapped(
            f"! no room for {', '.join(column.title for column in columns[shown:])}:"
            " a pipe, --csv and --json have all columns",
            "  ",
        )


def _telling(columns: list[Column], rows: list[list[str]]) -> tuple[list[Column], list[list[str]]]:
    """Return a table without the columns that say nothing, whose room a terminal's names need."""
    if not is_terminal(sys.stdout):
        return columns, rows
    kept = [
        at
        for at, _ in enumerate(columns)
        if at == 0 or any(row[at] not in ("", fmt.UNKNOWN) for row in rows)
    ]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _fitting(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> int:
    """Return how many columns a terminal has room for; all of them in a pipe."""
    if not is_terminal(sys.stdout):
        return len(columns)
    room = shutil.get_terminal_size().columns
    used = 0
    for index, column in enumerate(columns):
        width = max(cell_width(text) for text in (column.title, *(row[index] for row in rows)))
        used += (min(width, _LEAST_CELLS) if column.flexible else width) + len(GAP) * bool(index)
        if used > room:
            return max(index, 1)
    return len(columns)
