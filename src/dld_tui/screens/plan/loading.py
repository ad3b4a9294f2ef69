"""Reading an engine plan in a thread: everything that the screen shows first."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dld_tui.core.collector import collector_paused, freeze
from dld_tui.core.errors import DldError
from dld_tui.core.plan.graph import PlanGraph, drawn_plan
from dld_tui.core.plan.lint import PlanFinding, findings
from dld_tui.core.plan.mapping import LayerNodes, map_plan
from dld_tui.core.plan.model import EnginePlan
from dld_tui.core.plan.reader import open_plan
from dld_tui.core.plan.records import layer_records
from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.records import Group, Layer
from dld_tui.core.tables.table import Table
from dld_tui.widgets.hints import hint
from dld_tui.widgets.plan.graph import PlanGraphModel
from dld_tui.widgets.plan.tables import special_tables

_MODEL_SUFFIXES = (".onnx", "")


@dataclass(frozen=True)
class Loaded:
    """An engine with what takes time to find out."""

    plan: EnginePlan
    layers: Sequence[Layer]
    """Records of ``plan.layers``."""
    findings: Sequence[PlanFinding]
    """The worst first, then the costliest."""
    mapping: Mapping[int, LayerNodes]
    """ONNX nodes by the index of a layer."""
    drawn: PlanGraph
    graph: PlanGraphModel
    types: Sequence[Group]
    tables: Sequence[Table[Any]]
    """Those of one kind of layer each."""
    model: Path | None
    """The ONNX model that the nodes were looked up in."""
    model_problem: str
    """Why the nodes are but names; empty when the model was read."""


def load(path: Path, model: Path | None = None) -> Loaded:
    """Open an engine plan.

    Args:
        path: Layer information, or an archive with it.
        model: The ONNX model; by default the one that the plan names, or that lies beside it.

    Raises:
        InputError: The file cannot be read or is something else.
    """
    with collector_paused():
        plan = open_plan(path)
        found = model or find_model(plan)
        mapping, problem = _mapped(plan, found)
        paths = {index: nodes.nodes[0].name for index, nodes in mapping.items() if nodes.nodes}
        drawn = drawn_plan(plan, paths)
        graph = PlanGraphModel(plan, drawn)
        graph.prepare()
        wrong = findings(plan, mapping)
        layers = layer_records(plan, mapping, wrong)
        types = group_layers(layers, "type")
        tables = special_tables(plan)
        freeze()  # a walk over all layers would hold the screen, and find nothing
    known = found if not problem else None
    return Loaded(plan, layers, wrong, mapping, drawn, graph, types, tables, known, problem)


def find_model(plan: EnginePlan) -> Path | None:
    """Return the ONNX model that a plan names, or that lies beside it under its name."""
    folder = Path(plan.path).parent
    named = [Path(plan.model_path), folder / Path(plan.model_path).name] if plan.model_path else []
    stem = Path(plan.path).name
    while stem and not stem.endswith(".onnx"):
        shorter = stem.rpartition(".")[0]
        named += [folder / f"{shorter}{suffix}" for suffix in _MODEL_SUFFIXES if shorter]
        stem = shorter
    is_model = (path for path in named if path.name.endswith(".onnx") and os.path.isfile(path))
    return next(is_model, None)


def _mapped(plan: EnginePlan, path: Path | None) -> tuple[Mapping[int, LayerNodes], str]:
    """Return the nodes of the layers, and why they were not looked up in a model."""
    if path is None:
        return map_plan(plan), hint(
            "The ONNX model was not found, so nodes are but names: {plan.model} names it."
        )
    from dld_tui.core.document.document import Document  # lazy: most plans have no model

    try:
        document = Document.open(path)
    except DldError as error:
        return map_plan(plan), f"The ONNX model cannot be read, so nodes are but names: {error}"
    try:
        mapping = map_plan(plan, document)
    finally:
        document.close()
    return {index: _light(nodes) for index, nodes in mapping.items()}, ""


def _light(nodes: LayerNodes) -> LayerNodes:
    """Let go of the nodes themselves, which would keep the whole model in memory."""
    return replace(nodes, nodes=tuple(replace(node, node=None) for node in nodes.nodes))
