"""``dld plan``: a TensorRT engine plan as text, tables, CSV or JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dld_tui.cli.command import (
    also_written,
    asked_writers,
    command_for,
    force_flag,
    json_flag,
    with_writers,
)
from dld_tui.cli.output import (
    narrate,
    terminal_cells,
    write,
    write_json,
    write_wrapped,
)
from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.permission import require_free
from dld_tui.core.files.recognise import recognise
from dld_tui.core.files.writer import write_text
from dld_tui.core.params import param
from dld_tui.core.report.layer_table import layer_table
from dld_tui.core.tables.rendering import csv_of, fitted_lines
from dld_tui.core.tables.table import Table
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.file_set import trex_paths, write_trex
from dld_tui.core.tensorrt.plan.gains import gain_text
from dld_tui.core.tensorrt.plan.layer_records import layer_records, shown_names
from dld_tui.core.tensorrt.plan.layer_work import peaks_of, unknown_device
from dld_tui.core.tensorrt.plan.lint import FindingGroup, grouped
from dld_tui.core.tensorrt.plan.lint import findings as lint
from dld_tui.core.tensorrt.plan.mapping import map_plan, mapping_notes
from dld_tui.core.tensorrt.plan.reader import open_plan
from dld_tui.core.tensorrt.plan.summary import GROUPINGS, matching, summary_lines
from dld_tui.core.tensorrt.plan.tables import VIEWS, group_table, make_table
from dld_tui.core.text import visible
from dld_tui.core.text.names import cut_names

if TYPE_CHECKING:
    from dld_tui.core.model.document.document import Document
    from dld_tui.core.tensorrt.plan.engine_plan import EnginePlan
    from dld_tui.core.tensorrt.plan.lint import PlanFinding
    from dld_tui.core.tensorrt.plan.mapping import LayerNodes


@dataclass(frozen=True)
class Request:
    """The arguments and options of ``dld plan``."""

    plan: Path = param(label="Plan", help="The engine plan.", positional=True, metavar="FILE")
    profile: Path | None = param(
        None, label="Profile", metavar="P",
        help="Layer times (--exportProfile).",
    )  # fmt: skip
    timing: Path | None = param(
        None, label="Timing", metavar="T",
        help="Inference times (--exportTimes).",
    )  # fmt: skip
    metadata: tuple[Path, ...] = param(
        (), label="Metadata", metavar="M",
        help="TREx metadata; repeatable.",
    )  # fmt: skip
    model: Path | None = param(
        None, label="Model", metavar="MODEL",
        help="Map layers to the nodes of this model.",
    )  # fmt: skip
    alone: bool = param(False, label="Alone", help="Do not read other files beside FILE.")
    profile_index: int | None = param(
        None, label="Profile index", metavar="N", minimum=0,
        help="Optimization profile to show.",
    )  # fmt: skip
    view: str | None = param(
        None, label="View", metavar="VIEW", choices=("summary", *VIEWS),
        help=f"What to show: summary, {', '.join(VIEWS)}.",
    )  # fmt: skip
    by: str | None = param(
        None, label="By", metavar="KEY", choices=tuple(GROUPINGS),
        help=f"Group the layers by {', '.join(GROUPINGS)}.",
    )  # fmt: skip
    filter: str = param(
        "", label="Filter", metavar="TEXT",
        help="Only matching layers: words, type:conv, precision:int8, origin:qdq, ms>0.1, "
        "findings>0; all match.",
    )  # fmt: skip
    sort: str | None = param(
        None, label="Sort", metavar="KEY",
        help="Sort by this column of the CSV.",
    )  # fmt: skip
    csv: Path | None = also_written("--csv", "the table as CSV", "CSV")
    html: Path | None = also_written("--html", "one self-contained HTML page", "PAGE")
    onnx: Path | None = param(
        None, label="Onnx", metavar="FILE", kind="output",
        help="Also write the layers as an ONNX file, for other viewers.",
    )  # fmt: skip
    write_trex: Path | None = param(
        None, label="Write trex", metavar="DIR/NAME", kind="output",
        help="Also write the TREx files.",
    )  # fmt: skip
    force: bool = force_flag("Overwrite existing files.")
    as_json: bool = json_flag()


@command_for("plan", with_writers(Request, "all tables", several=True))
def command(asked: Request) -> None:
    """Print the engine plan of a TensorRT engine: layers, times, memory, findings.

    FILE is layer information (--exportLayerInfo, .trt.json, .graph.json), a TREx archive (.tea), a
    trtexec log, or an engine with one of these beside it. Layer times, inference times and metadata
    of the same name are read too. Needs no GPU and no TensorRT.
    """
    if asked.view == "summary" and (asked.by or asked.sort or asked.csv):
        raise UsageError("--by, --sort and --csv need a table: omit --view summary")
    if asked.view and asked.by and asked.view != "summary":
        raise UsageError("--view and --by exclude each other")
    written = asked_writers(asked)
    require_free((asked.csv, asked.html, asked.onnx, *written), asked.force)
    require_free(
        trex_paths(asked.write_trex).values() if asked.write_trex else (),
        asked.force,
        makes_folder=True,
    )
    opened = open_plan(
        asked.plan, profile=asked.profile, timing=asked.timing, metadata=asked.metadata,
        beside=not asked.alone, profile_index=asked.profile_index,
    )  # fmt: skip
    document = _document(asked.model)
    # A table needs neither nodes nor findings, and making them takes longer than the table.
    is_table = bool(asked.by or asked.sort or asked.csv or (asked.view or "summary") != "summary")
    needed = not is_table or asked.as_json or any((asked.filter, asked.html, asked.onnx, written))
    mapping = map_plan(opened, document) if needed else {}
    table = _table(opened, asked, mapping) if is_table else None
    findings = lint(opened, mapping) if needed else []
    if asked.csv is not None and table is not None:
        _say(asked.csv, write_text(asked.csv, csv_of(table)))
    if asked.html is not None:
        from dld_tui.core.tensorrt.plan.html import write_page

        _say(asked.html, write_page(opened, findings, mapping, asked.html))
    for path, writer in written.items():
        from dld_tui.core.tables.writers import write_tables
        from dld_tui.core.tensorrt.plan.export import plan_sheets

        _say(path, write_tables(writer, path, [*plan_sheets(opened, findings)]))
    if asked.onnx is not None:
        from dld_tui.core.tensorrt.plan.export import write_plan_model

        _say(asked.onnx, write_plan_model(opened, mapping, asked.onnx))
    if asked.write_trex is not None:
        for path in write_trex(opened, asked.write_trex):
            narrate(f"wrote {path}")
    if asked.as_json:
        write_json(plan_json(opened, findings, mapping, table))
    elif table is not None:
        write_plan_table(table)
    else:
        write_summary(opened, mapping_notes(mapping) if document else [])
        write_findings(opened, findings, mapping)
        write_tables_of_summary(opened, asked.filter, mapping)


def print_plan(path: Path) -> None:
    """Print an engine plan as text.

    Raises:
        InputError: It cannot be read.
    """
    opened = open_plan(path)
    mapping = map_plan(opened)
    write_summary(opened)
    write_findings(opened, lint(opened, mapping), mapping)
    write_tables_of_summary(opened, "", mapping)


def _say(path: Path, remarks: list[str]) -> None:
    for remark in remarks:
        narrate(remark)
    narrate(f"wrote {path}")


def _document(model: Path | None) -> Document | None:
    if model is None:
        return None
    from dld_tui.core.llm.folder import open_document

    if not recognise(model).is_model:
        raise InputError("is not an ONNX model", where=str(model))
    return open_document(model)


def _table(plan: EnginePlan, asked: Request, mapping: Mapping[int, LayerNodes]) -> Table[Any]:
    """Return the requested table."""
    make, name = (group_table, asked.by) if asked.by else (make_table, asked.view or "layers")
    table: Table[Any] = make(plan, name, asked.filter, mapping)
    return table.sorted_by(asked.sort) if asked.sort else table


_MOST_OF_RULE = 3
_MOST_HAZARDS = 3
_SAID = "names-only"
_MOST_MESSAGES = 8
_MOST_GROUPS = 8
_MOST_LAYERS = 25
_NAME_CELLS = 60


def write_summary(plan: EnginePlan, notes: Sequence[str] = ()) -> None:
    """Write the figures of a plan, its log, and notes on unreadable parts."""
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
    all_notes = [*plan.notes, *notes]
    if roof and plan.total_ms is not None and not plan.names_only:
        all_notes.append(roof)
    for note in all_notes:
        write_wrapped(f"! {visible(note)}", "  ")
    peaks = peaks_of(plan.device)
    if peaks is not None and plan.layers and not plan.names_only:
        ops = ", ".join(
            f"{name} {value / 1e12:g} {'TOPS' if name.startswith('int') else 'TFLOPS'}"
            for name, value in peaks.flops.items()
        )
        write_wrapped(f"peaks        {peaks.bandwidth / 1e9:,.0f} GB/s; {ops}", "  ")


def _write_messages(word: str, messages: Sequence[str]) -> None:
    for message in messages[:_MOST_MESSAGES]:
        write_wrapped(f"{word:<12} {visible(message)}", " " * 13)
    if len(messages) > _MOST_MESSAGES:
        write(f"{word:<12} … and {len(messages) - _MOST_MESSAGES} more")


def write_findings(
    plan: EnginePlan, findings: Sequence[PlanFinding], mapping: Mapping[int, LayerNodes]
) -> None:
    """Write the findings, worst first; the note on names only is written before."""
    names = shown_names(plan, layer_records(plan, mapping))
    groups = [group for group in grouped(plan, findings) if group.rule != _SAID]
    if groups:
        write()
    for group in groups:
        _write_group(group, names)


def _write_group(group: FindingGroup, names: Mapping[int, str]) -> None:
    """Write the findings of one rule: problem, remedy, layers."""
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
    if group.gain is not None:
        write_wrapped(f"    {gain_text(group.gain)}", "    ")
    listed = group.layers[:_MOST_OF_RULE]
    shown = cut_names([names[layer.index] for layer in listed], _NAME_CELLS)
    for layer, name in zip(listed, shown, strict=True):
        part = f"  {fmt.percent(layer.percent)} %" if layer.percent is not None else ""
        write(f"      {name}{part}")
    if len(group.layers) > _MOST_OF_RULE:
        more = fmt.plural(len(group.layers) - _MOST_OF_RULE, "more layer")
        write(f"      … {more}: --json has all")


def write_tables_of_summary(plan: EnginePlan, text: str, mapping: Mapping[int, LayerNodes]) -> None:
    """Write the short tables of the summary: by type, by precision, and the slowest layers."""
    if text.split():
        chosen = tuple(matching(plan, text, mapping))
        passes = "passes" if len(chosen) == 1 else "pass"
        write()
        layers = fmt.plural(len(plan.layers), "layer")
        base = ": shares are of all layers" if plan.total_ms else ""
        write(f"{len(chosen):,} of {layers} {passes} the filter{base}")
        plan = replace(plan, layers=chosen)
    if not plan.layers:
        return
    for by in ("type",) if plan.names_only else ("type", "precision"):
        write()
        _write_groups(plan, by)
    write()
    _write_layers(plan, mapping)


def _write_groups(plan: EnginePlan, by: str) -> None:
    groups = group_table(plan, by)
    shown = replace(groups, rows=groups.rows[:_MOST_GROUPS]).pick(groups.keys[:-1])
    _write_telling(shown)
    if len(groups) > _MOST_GROUPS:
        write(f"… {fmt.plural(len(groups) - _MOST_GROUPS, 'more group')}: --by {by} shows all")


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
