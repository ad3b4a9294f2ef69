"""Rows of the list views: exactly as wide as asked for, with columns that say the right thing."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.checks import Finding
from dld_tui.core.text import cell_width
from dld_tui.widgets.graph import overlays
from dld_tui.widgets.graph.rows import GraphRows
from dld_tui.widgets.graph.state import GraphModel, GraphNotes, GraphView
from tests.support import models
from tests.support.graph_panes import graph_model, node_of, rows_of
from tests.support.sessions import document_of
from tests.support.tui import HOSTILE

WIDE_NAMES = models.CHAIN.replace("[second]", '["/算子/層"]').replace("[third]", f'["{HOSTILE}"]')


@pytest.fixture
def deep(tmp_path: Path) -> GraphModel:
    return graph_model(tmp_path, models.layered(12))


def line_of(rows: GraphRows, index: int, width: int = 100) -> str:
    return "".join(text for text, _ in rows.line(index, width))


def row_of(rows: GraphRows, name: str) -> int:
    return next(at for at in range(len(rows)) if rows.text(at).endswith(name))


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


def test_right_columns_end_at_the_same_cell(deep: GraphModel) -> None:
    deep.set_view(GraphView.RAIL)
    rows = rows_of(deep)
    nodes = [at for at, row in enumerate(deep.rows) if row.fold is None]
    assert {cell_width(line_of(rows, at)) for at in nodes} == {100}


def test_a_fold_sums_what_is_in_it(deep: GraphModel) -> None:
    # A fold says how much it weighs.
    rows = rows_of(deep)
    fold = next(at for at, row in enumerate(deep.rows) if row.fold is not None and not row.is_open)
    assert line_of(rows, fold).endswith(" 100 %    192 B")
    assert "×12" in line_of(rows, fold)
    # Marks inside a fold are counted.
    notes = GraphNotes(deep)
    notes.set_marks([node_of(deep, "/layers.3/gate"), node_of(deep, "/layers.9/gate")])
    assert "•2" in line_of(GraphRows(deep, notes, overlays.Overlay()), fold)
    # The worst finding of a fold is shown.
    nodes = [node_of(deep, f"/layers.{n}/gate") for n in (2, 3)]
    notes.set_findings([
        Finding("warning", "r", "m", deep.scope, nodes[0]),
        Finding("error", "r", "m", deep.scope, nodes[1]),
        Finding("info", "r", "m", deep.scope, node_of(deep, "/stem")),
    ])  # fmt: skip
    rows = GraphRows(deep, notes, overlays.FindingsOverlay(notes))
    assert "✖" in line_of(rows, fold)
    assert "✖" not in line_of(rows, row_of(rows, "/stem"))
    assert overlays.FindingsOverlay(notes).legend == "✖ 1  ▲ 1"


def test_a_finding_in_a_body_is_at_the_node_that_has_it(tmp_path: Path) -> None:
    model = graph_model(tmp_path, models.BRANCHES)
    choose = node_of(model, "choose")
    inner = choose.subgraphs()[0].nodes[0]
    notes = GraphNotes(model)
    notes.set_findings([Finding("error", "r", "m", inner.scope, inner)])
    vertex = model.drawn.vertex(choose)
    assert vertex is not None
    row = model.overview.rails.rows[vertex]
    assert notes.level(row, row + 1) == "error"


def test_precision_is_shown_where_a_layer_has_one(deep: GraphModel) -> None:
    node = node_of(deep, "/stem")
    document_of(deep.scope).apply("set_precision", nodes=[[[], "/stem"]], precision="fp16")
    notes = GraphNotes(deep)
    notes.has_precisions = True
    rows = GraphRows(deep, notes, overlays.Overlay())
    at = rows.index_of(node)
    assert at is not None
    assert ("fp16", "prec-fp16") in [(t.strip(), s) for t, s in rows.line(at, 79)]


def test_a_stale_type_is_marked(tmp_path: Path) -> None:
    model = graph_model(tmp_path, models.CHAIN)
    rows = rows_of(model)
    at = row_of(rows, "y")
    assert "~" not in line_of(rows, at)
    model.scope.stale.add("y")
    model.scope.document.shown_types.clear()  # as after an edit
    assert "~f32[N,4]" in line_of(rows, at)


def test_overlays_of_times_and_operations(deep: GraphModel, tmp_path: Path) -> None:
    # Overlays are those that have something to say.
    names = [overlay.name for overlay in overlays.overlays_of(deep, GraphNotes(deep), {}, "")]
    assert names == ["operators", "precision", "weights"]
    # A fold has the operations of what is in it.
    overlay = overlays.cost_overlay(deep, dict.fromkeys(deep.scope.nodes, 2.5e9), ", N taken as 1")
    assert overlay is not None
    fold = deep.overview.folds[0]
    assert overlay.text(fold.start, fold.end).endswith(" G")
    assert overlay.text(fold.start, fold.start + 1) == "2.5 G"
    assert overlay.legend.endswith("G FLOPs, N taken as 1")
    assert overlays.cost_overlay(deep, {}, "") is None
    # Times of a report are summed in folds.
    times = {node_of(deep, f"/layers.{n}/gate"): 0.5 for n in range(12)}
    timed = overlays.time_overlay(deep, times, "run")
    assert timed is not None
    row = next(row for row in deep.rows if row.fold is not None and not row.is_open)
    assert timed.text(row.start, row.end) == "6.000 ms"
    assert timed.legend == "6.000 ms in run"
    assert timed.shown(0.0) == "fused"
    assert overlays.time_overlay(deep, {}, "run") is None


def test_bars_are_as_long_as_the_figures_of_what_is_seen(deep: GraphModel) -> None:
    times = {node_of(deep, f"/layers.{n}/gate"): 0.5 for n in range(12)} | {
        node_of(deep, "/stem"): 3.0
    }
    rows = rows_of(deep, overlays.time_overlay(deep, times, "run"))
    fold = next(at for at, row in enumerate(deep.rows) if row.fold is not None and not row.is_open)
    assert line_of(rows, fold).count("█") == 8
    assert line_of(rows, row_of(rows, "/stem")).count("█") == 4
    assert "█" not in line_of(rows, fold, 50)


def test_a_type_takes_the_room_that_a_short_name_leaves(tmp_path: Path) -> None:
    chain = models.CHAIN.replace("[N, 4]", "[1024, 1024, 1024, 4]")
    short = graph_model(tmp_path, chain)
    short.set_view(GraphView.RAIL)
    rows = rows_of(short)
    last = row_of(rows, "last")
    kind = short.type_of(short.overview.rails.order[last])
    assert len(kind) > 48 // 3
    assert kind in line_of(rows, last, 56)
    long_name = "n" * 60
    long = graph_model(tmp_path, chain.replace("[last]", f"[{long_name}]"))
    long.set_view(GraphView.RAIL)
    line = line_of(rows_of(long), row_of(rows_of(long), long_name), 56)
    assert kind not in line
    assert "n" * 6 in line
