"""``dld inspect --cost``: what the nodes of a model cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dld_tui.cli.models.inference import infer
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core.cost.nodes import ModelCosts
from dld_tui.core.cost.shapes import declare_inputs, follow_shapes
from dld_tui.core.cost.table import cost_lines, cost_table, total_json
from dld_tui.core.document.document import Document
from dld_tui.core.files.writer import write_text
from dld_tui.core.inputs.shapes import parse_shapes
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import json_of


def write_costs(
    document: Document, path: Path, shapes: Sequence[str], csv: Path | None, *, as_json: bool
) -> None:
    """Print what the nodes of a model cost; the document is changed, and nobody may save it.

    Args:
        document: The model.
        path: Its file.
        shapes: Of its inputs, as ``x:1x3x224x224``.
        csv: Where to write the table, too; None for nowhere.
        as_json: Print one JSON document.

    Raises:
        UsageError: A shape is none, or does not fit.
    """
    given = parse_shapes(shapes, document.main.inputs)
    sizes = declare_inputs(document, given)
    infer(document, path)
    if given:
        sizes = follow_shapes(document, given) | sizes
    costs = ModelCosts(document, sizes)
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
