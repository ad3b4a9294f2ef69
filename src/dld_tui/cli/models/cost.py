"""``dld inspect --cost``, ``--memory`` and ``--budget``."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from dld_tui.api.inference import infer
from dld_tui.cli.output import narrate, write, write_json, write_table
from dld_tui.core import fmt
from dld_tui.core.errors import ActivityError, InputError, UnavailableError
from dld_tui.core.files.writer import write_text
from dld_tui.core.llm.budget import (
    Budget,
    budget_of,
    device_of,
    fit_table,
    this_machine,
    time_table,
)
from dld_tui.core.llm.feeds import Decoder
from dld_tui.core.llm.folder import find_decoder, open_document
from dld_tui.core.model.cost.memory import (
    MemoryPlan,
    memory_lines,
    memory_plan,
    memory_table,
    plan_json,
)
from dld_tui.core.model.cost.nodes import ModelCosts, cost_json, cost_lines, cost_table
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.node import Node
from dld_tui.core.model.document.summary import ModelSummary
from dld_tui.core.model.edits.inputs_outputs import declare_inputs
from dld_tui.core.model.inputs.guess import input_specs
from dld_tui.core.model.inputs.shapes import parse_shapes
from dld_tui.core.model.shapes.noting import follow_shapes
from dld_tui.core.tables.rendering import csv_of
from dld_tui.core.tables.table import json_of
from dld_tui.core.types import JSON
from dld_tui.targets import registry


def counted(document: Document, path: Path, shapes: Sequence[str]) -> ModelCosts:
    """Return the cost of the nodes of a model; this changes the document, so do not save it.

    Args:
        path: Its file.
        shapes: Of its inputs, as ``x:1x3x224x224``.

    Raises:
        UsageError: A shape is invalid or does not fit.
    """
    known_shapes = parse_shapes(shapes, document.main.inputs)
    sizes = declare_inputs(document, known_shapes)
    infer(document, path, narrate)
    branches: dict[Node, str] = {}
    if known_shapes:
        sizes = follow_shapes(document, known_shapes, branches) | sizes
    return ModelCosts(document, sizes, branches)


def write_costs(
    costs: ModelCosts, summary: ModelSummary, csv: Path | None, *, as_json: bool
) -> None:
    """Print the cost of the nodes of a model.

    Args:
        costs: Of the model.
        summary: Of the model as it is in its file.
        csv: Where to write the table, too; None for nowhere.
        as_json: Print one JSON document.
    """
    table = cost_table(costs)
    if csv is not None:
        write_text(csv, csv_of(table))
        narrate(f"wrote {csv}")
    if as_json:
        write_json({**summary.to_json(), "cost": cost_json(costs, summary)})
        return
    for line in cost_lines(costs):
        write(line)
    write()
    write_table(table)


def write_memory(
    document: Document, path: Path, shapes: Sequence[str], csv: Path | None, *, as_json: bool
) -> None:
    """Print the memory of a run, with a table of the live tensors at the peak."""
    plan = _planned(document, path, shapes)
    if csv is not None:
        write_text(csv, csv_of(memory_table(plan)))
        narrate(f"wrote {csv}")
    if as_json:
        write_json({"path": str(path), **plan_json(plan)})
        return
    for line in memory_lines(plan):
        write(line)
    write()
    write_table(memory_table(plan))


def _planned(document: Document, path: Path, shapes: Sequence[str]) -> MemoryPlan:
    """Return the memory plan of ONNX Runtime's graph, else of the graph in the file."""
    parse_shapes(shapes, document.main.inputs)
    request: dict[str, JSON] = {
        "model": str(document.path or path), "shape": list(shapes), "measure": False
    }  # fmt: skip
    try:
        with registry.get().start("memory", request) as job:
            return job.result(kind=MemoryPlan)
    except (ActivityError, InputError, UnavailableError) as error:
        narrate(
            f"{path}: {error.message}; using the graph in the file, with dynamic dimensions as 1"
        )
        return memory_plan(counted(document, path, shapes))


_CONTEXT = 2048
"""Default context length in tokens."""


def write_budget(
    path: Path,
    batches: Sequence[int],
    contexts: Sequence[int],
    names: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Print the memory of a decoder by batch and context, and its minimum times on devices.

    Args:
        path: A model, or the folder of one.
        batches: How many sequences at once.
        contexts: How many tokens of each are seen.
        names: Devices of the table, or ``NAME=TFLOPS,GB/s,GB`` with numbers.
        as_json: Print one JSON document.

    Raises:
        InputError: The model cannot be read.
        UsageError: A device is unknown.
        ActivityError: The model is not a decoder.
    """
    devices = [device_of(name) for name in names] or [this_machine()]
    model, config = find_decoder(path)
    with contextlib.closing(open_document(model)) as document:
        if any(
            scope.value_type(name) is None
            for scope in document.scopes()
            for node in scope.nodes
            for name in node.outputs
            if name
        ):
            infer(document, model, narrate)
        decoder = Decoder(document, input_specs(document), config)
        usual = min(_CONTEXT, decoder.context_length or _CONTEXT)
        budget = budget_of(decoder, batches or [1], contexts or [usual])
    fits, times = fit_table(budget, devices), time_table(budget, devices)
    if as_json:
        about = {
            "path": str(model), "weight_bytes": budget.weight_bytes,
            "kv_token_bytes": budget.kv_token_bytes,
            "kv_fixed_bytes": budget.kv_fixed_bytes, "precision": budget.precision,
            "unknown_nodes": budget.unknown_nodes,
        }  # fmt: skip
        write_json({**about, "fits": json_of(fits), "times": json_of(times)})
        return
    for line in _lines(budget):
        write(line)
    write()
    write_table(fits)
    write()
    write_table(times)


def _cache_text(budget: Budget) -> str:
    fixed = f"{fmt.size(budget.kv_fixed_bytes)} a sequence, whatever its length"
    if not budget.kv_token_bytes:
        return fixed
    grown = f"{fmt.size(budget.kv_token_bytes)} a token of a sequence"
    return f"{grown}, and {fixed}" if budget.kv_fixed_bytes else grown


def _lines(budget: Budget) -> list[str]:
    lines = [
        f"{'weights':<11}{fmt.size(budget.weight_bytes)}",
        f"{'KV cache':<11}{_cache_text(budget)}",
    ]
    if budget.unknown_nodes:
        lines.append(f"{'unknown':<11}{fmt.plural(budget.unknown_nodes, 'node')}, not counted")
    return lines
