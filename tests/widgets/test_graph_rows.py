"""Rows of the list views: exactly as wide as asked for, with columns that say the right thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.checks import Finding
from dld_tui.core.checks.findings import Level
from dld_tui.core.model.document import Document
from dld_tui.core.text import cell_width
from dld_tui.core.types import JSON
from dld_tui.widgets.graph import overlays
from dld_tui.widgets.graph.rows import GraphRows
from dld_tui.widgets.graph.state import GraphModel, GraphNotes, GraphView
from tests.support import models
from tests.support.graph_panes import RICH, graph_model
from tests.support.recorded import Recorded
from tests.support.tui import HOSTILE

WIDE_NAMES = models.CHAIN.replace("[second]", '["/算子/層"]').replace("[third]", f'["{HOSTILE}"]')


def line_of(rows: GraphRows, index: int, width: int = 100) -> str:
    return "".join(text for text, _ in rows.line(index, width))


@pytest.mark.parametrize(
    "text",
    [models.CHAIN, WIDE_NAMES, models.BRANCHES, models.layered(12)],
    ids=["chain", "wide names", "branches", "layered"],
)
@pytest.mark.parametrize("view", [GraphView.FOLDED, GraphView.RAIL])
def test_rows_are_never_wider_than_the_view(tmp_path: Path, text: str, view: GraphView) -> None:
    model = graph_model(tmp_path, text)
    model.set_view(view)
    notes = GraphNotes(model)
    notes.has_precisions = True
    notes.set_findings([Finding("error", "r", "m", model.scope, model.scope.nodes[0])])
    for overlay in overlays.overlays_of(model, notes, {model.scope.nodes[0]: 1.0}, "report"):
        rows = GraphRows(model, notes, overlay)
        for width in (30, 40, 58, 79, 90, 140):
            for at in range(len(rows)):
                assert cell_width(line_of(rows, at, width)) <= width


def told(rows: GraphRows, width: int) -> str:
    """Return rows: what stands there, then the styles of its pieces."""
    lines = []
    for at in range(len(rows)):
        pieces = [piece for piece in rows.line(at, width) if piece[0]]
        lines.append("".join(text for text, _ in pieces) + "|")
        lines.append("    " + " ".join(style or "-" for _, style in pieces))
    return "\n".join(lines)


def test_rows_of_every_overlay(tmp_path: Path, recorded: Recorded) -> None:
    document = Document.open(models.write(tmp_path, RICH))
    main = document.main
    gates: list[JSON] = [[[], f"/layers.{number}/gate"] for number in range(3)]
    document.apply("set_precision", nodes=gates, precision="fp16")
    document.apply("set_precision", nodes=[[[], "/stem"]], precision="int8")
    model = GraphModel(main)
    model.weigh()
    main.stale.add("y")
    document.shown_types.clear()  # as after an edit
    named = {node.name: node for scope in document.scopes() for node in scope.nodes}
    notes = GraphNotes(model)
    notes.has_precisions = True
    notes.set_marks([named["/layers.3/gate"], named["/layers.5/gate"], 0, 999])
    levels: dict[str, Level] = {
        "/layers.1/gate": "warning", "/layers.2/gate": "error", "inner": "error", "/stem": "info",
        "last": "warning",
    }  # fmt: skip
    notes.set_findings(Finding(level, "r", "m", main, named[at]) for at, level in levels.items())
    times = {named[f"/layers.{number}/gate"]: 0.5 for number in range(6)}
    times |= {named["/stem"]: 3.0, named["last"]: 120.0, named["inner"]: 0.25}
    errors = {named["/stem"]: 1e-6, named["/layers.2/gate"]: 0.25, named["last"]: 2.0}
    quantized = {named["/stem"]: 2.0, named["/layers.2/gate"]: 1.0}
    flops = dict.fromkeys(main.nodes, 2.5e9)
    texts = {}
    for view in ("folded", "unfolded", "rail"):
        if view == "unfolded":
            model.overview.reveal(model.drawn.vertex(named["/layers.3/gate"]) or 0)
        elif view == "rail":
            model.set_view(GraphView.RAIL)
        made = overlays.overlays_of(
            model, notes, times, HOSTILE, (errors, "run"), (quantized, " of a"), (flops, ", N = 1")
        )
        for overlay in made:
            rows = GraphRows(model, notes, overlay)
            title = f"{view}, {overlay.name}: {overlay.legend}"
            for width in (100, 58) if overlay.name in ("operators", "time") else (79,):
                texts[f"{title}, {width} cells"] = told(rows, width)
        texts[f"texts, {view}"] = "\n".join(map(rows.text, range(len(rows))))
        assert [rows.index_of(rows.key(at)) for at in range(len(rows))] == [*range(len(rows))]
    texts["without notes"] = told(GraphRows(model, GraphNotes(model), overlays.Overlay()), 30)
    bare = overlays.overlays_of(model, GraphNotes(model), {main.nodes[0]: 0.0}, "", ({}, ""))
    texts["without figures"] = " ".join(overlay.name for overlay in bare)
    model.set_view(GraphView.FOLDED)
    notes.set_marks(main.nodes)
    for width in (16, 18, 22):
        texts[f"narrow, {width} cells"] = told(GraphRows(model, notes, made[1]), width)
    recorded("rows_of_graphs", texts)
