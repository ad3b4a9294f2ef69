"""``dld inspect --cost`` and ``--memory``: what the nodes of a model cost, and a run needs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dld_tui.cli.models.inference import infer
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core.cost.memory import memory_lines, memory_plan, memory_table, plan_json
from dld_tui.core.cost.nodes import ModelCosts
from dld_tui.core.cost.shapes import declare_inputs, follow_shapes
from dld_tui.core.cost.table import cost_lines, cost_table, total_json
from dld_tui.core.document.document import Document
from dld_tui.core.files.writer import write_text
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import json_of


def counted(document: Document, path: Path, shapes: Sequence[str]) -> ModelCosts:
    """Return what the nodes of a model cost; the document is changed, and nobody may save it.

    Args:
        document: The model.
        path: Its file.
        shapes: Of its inputs, as ``x:1x3x224x224``.

    Raises:
        UsageError: A shape is none, or does not fit.
    """
    given = parse_shapes(shapes, document.main.inputs)
    sizes = declare_inputs(document, given)
    infer(document, path)
    if given:
        sizes = follow_shapes(document, given) | sizes
    return ModelCosts(document, sizes)


def write_costs(costs: ModelCosts, path: Path, csv: Path | None, *, as_json: bool) -> None:
    """Print what the nodes of a model cost.

    Args:
        costs: Of the model.
        path: Its file.
        csv: Where to write the table, too; None for nowhere.
        as_json: Print one JSON document.
    """
    table = cost_table(costs)
    if csv is not None:
        write_text(csv, csv_of(table), overwrite=True)
        narrate(f"wrote {csv}")
    if as_json:
        write_json({"path": str(path), "total": total_json(costs), "nodes": json_of(table)})
        return
    for line in cost_lines(costs):
        write(line)
    write()
    write_table(table)


def write_memory(costs: ModelCosts, path: Path, csv: Path | None, *, as_json: bool) -> None:
    """Print what a run of a model needs; the table is of what is alive at the peak."""
    plan = memory_plan(costs)
    if csv is not None:
        write_text(csv, csv_of(memory_table(plan)), overwrite=True)
        narrate(f"wrote {csv}")
    if as_json:
        write_json({"path": str(path), **plan_json(plan)})
        return
    for line in memory_lines(plan):
        write(line)
    write()
    write_table(memory_table(plan))
