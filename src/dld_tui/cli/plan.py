"""``dld plan``: a TensorRT engine plan as text, tables, CSV or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dld_tui.cli.output import narrate, require_free, write_json
from dld_tui.cli.plan_text import (
    write_findings,
    write_plan_table,
    write_summary,
    write_tables_of_summary,
)
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.files.writer import write_text
from dld_tui.core.plan.export import plan_json
from dld_tui.core.plan.file_set import trex_paths, write_trex
from dld_tui.core.plan.filter import GROUPINGS
from dld_tui.core.plan.lint import findings as lint
from dld_tui.core.plan.mapping import map_plan, mapping_notes
from dld_tui.core.plan.reader import open_plan
from dld_tui.core.plan.tables import VIEWS, group_table, make_table
from dld_tui.core.tables.as_csv import csv_of

if TYPE_CHECKING:
    from dld_tui.core.document.document import Document
    from dld_tui.core.plan.model import EnginePlan
    from dld_tui.core.tables.table import Table

_PATH = click.Path(path_type=Path)


@click.command("plan")
@click.argument("plan", metavar="FILE", type=_PATH)
@click.option("--profile", metavar="P", type=_PATH, help="Layer times (--exportProfile).")
@click.option("--timing", metavar="T", type=_PATH, help="Inference times (--exportTimes).")
@click.option(
    "--metadata", metavar="M", type=_PATH, multiple=True,
    help="Metadata of TREx; may be given again.",
)  # fmt: skip
@click.option("--model", metavar="MODEL", type=_PATH, help="Find the layers' nodes in this model.")
@click.option("--alone", is_flag=True, help="Read no other files that lie beside FILE.")
@click.option(
    "--profile-index", metavar="N", type=click.IntRange(min=0),
    help="Show this optimization profile.",
)  # fmt: skip
@click.option(
    "--view", metavar="VIEW", type=click.Choice(["summary", *VIEWS]),
    help=f"What to show: summary, {', '.join(VIEWS)}.",
)  # fmt: skip
@click.option(
    "--by", metavar="KEY", type=click.Choice(GROUPINGS),
    help=f"Group the layers by {', '.join(GROUPINGS)}.",
)  # fmt: skip
@click.option(
    "--filter",
    "text",
    metavar="TEXT",
    help="Only these layers: words that all must match, type:conv, prec:int8, origin:qdq, ms>0.1.",
)
@click.option("--sort", metavar="KEY", help="Sort a table by this column, as CSV names it.")
@click.option("--csv", metavar="CSV", type=_PATH, help="Write the table there, too.")
@click.option("--html", metavar="PAGE", type=_PATH, help="Write one page to mail, too.")
@click.option(
    "--write-trex", "trex", metavar="DIR/NAME", type=_PATH, help="Write the files of TREx, too."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    plan: Path,
    profile: Path | None,
    timing: Path | None,
    metadata: tuple[Path, ...],
    model: Path | None,
    alone: bool,
    profile_index: int | None,
    view: str | None,
    by: str | None,
    text: str | None,
    sort: str | None,
    csv: Path | None,
    html: Path | None,
    trex: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print what is in a TensorRT engine: layers, times, memory, and what to look at.

    FILE is layer information (--exportLayerInfo, .trt.json, .graph.json), an archive of TREx
    (.tea), a log of trtexec, or an engine beside which one of these lies. Files of the same name
    for layer times, inference times and metadata are found. Needs no GPU and no TensorRT.
    """
    if view == "summary" and (by or sort or csv):
        raise UsageError("--by, --sort and --csv are of a table: leave --view summary out")
    if view and by and view != "summary":
        raise UsageError("--view and --by exclude each other")
    for path in (csv, html, *(trex_paths(trex).values() if trex else ())):
        if path is not None:
            require_free(path, force)
    opened = open_plan(
        plan, profile=profile, timing=timing, metadata=metadata, beside=not alone,
        profile_index=profile_index,
    )  # fmt: skip
    document = _document(model)
    table = _table(opened, view, by, text or "", sort, csv is not None)
    # A table needs neither nodes nor findings, and making them takes longer than the table.
    needed = table is None or as_json or html is not None
    mapping = map_plan(opened, document) if needed else {}
    found = lint(opened, mapping) if needed else []
    if csv is not None and table is not None:
        _say(csv, write_text(csv, csv_of(table), overwrite=force))
    if html is not None:
        from dld_tui.core.plan.html import write_page

        _say(html, write_page(opened, found, mapping, html, overwrite=force))
    if trex is not None:
        for path in write_trex(opened, trex, overwrite=force):
            narrate(f"wrote {path}")
    if as_json:
        write_json(plan_json(opened, found, mapping, table))
    elif table is not None:
        write_plan_table(table)
    else:
        write_summary(opened, mapping_notes(mapping) if document else [])
        write_findings(opened, found)
        write_tables_of_summary(opened, text or "", mapping)


def print_plan(path: Path) -> None:
    """Print an engine plan as text.

    Raises:
        InputError: It cannot be read.
    """
    opened = open_plan(path)
    mapping = map_plan(opened)
    write_summary(opened)
    write_findings(opened, lint(opened, mapping))
    write_tables_of_summary(opened, "", mapping)


def _say(path: Path, remarks: list[str]) -> None:
    for remark in remarks:
        narrate(remark)
    narrate(f"wrote {path}")


def _document(model: Path | None) -> Document | None:
    if model is None:
        return None
    from dld_tui.core.document.document import Document

    if recognise(model) is not FileKind.ONNX:
        raise InputError("is not an ONNX model", where=str(model))
    return Document.open(model)


def _table(
    plan: EnginePlan, view: str | None, by: str | None, text: str, sort: str | None, csv: bool
) -> Table[Any] | None:
    """Return the table that was asked for; None for the summary."""
    if by:
        table = group_table(plan, by, text)
    elif view and view != "summary":
        table = make_table(plan, view, text)
    elif sort or csv:
        table = make_table(plan, "layers", text)
    else:
        return None
    return table.sorted_by(sort) if sort else table
