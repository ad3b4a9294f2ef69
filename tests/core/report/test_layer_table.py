from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.reading.export import layers_csv, report_json, report_page, write_layers
from dld_tui.core.report import layer_table as layer_module
from dld_tui.core.report.layer_table import (
    SHAPES,
    VIEWS,
    are_named_by_nodes,
    group_table,
    groups_of,
    layer_columns,
    layer_names,
    layer_table,
    select,
    shapes_text,
    short_provider,
    summarise_selection,
)
from dld_tui.core.report.records import Cost, Layer, LayerInformation, NodeLink
from dld_tui.core.report.report import Report
from dld_tui.core.tables.rendering import csv_of, text_lines
from dld_tui.core.tables.table import Column, Table
from dld_tui.core.tables.writers import writers
from dld_tui.core.tensorrt.plan.export import plan_json
from dld_tui.core.tensorrt.plan.html import plan_page
from dld_tui.core.tensorrt.plan.layer_records import layer_records
from dld_tui.core.tensorrt.plan.tables import make_table
from dld_tui.widgets.results.layers import screen_table
from tests.support.known import known
from tests.support.plans import layer as plan_layer
from tests.support.plans import plan
from tests.support.recorded import Recorded, table_text
from tests.support.report_files import layer, make_report

EVERY = layer_columns()


def test_providers_lose_what_they_share() -> None:
    assert short_provider("CUDAExecutionProvider, CPUExecutionProvider") == "CUDA, CPU"
    assert short_provider(None) == "–"


def test_runs_and_shapes() -> None:
    runs = next(column for column in EVERY if column.key == "count")
    assert runs.shown_text(replace(layer(0), count=3.0)) == "3"
    assert runs.shown_text(replace(layer(0), count=2.5)) == "2.5"
    assert shapes_text(((1, "N", None), ())) == "1xNx?; scalar"
    assert SHAPES.shown(()) == "–"


def test_views_name_columns_that_there_are() -> None:
    known = {column.key for column in EVERY}
    for keys in VIEWS.values():
        assert set(keys.split()) <= known
        assert len(set(keys.split())) == len(keys.split())


TOY: Column[Layer] = Column("toy", "Toy", lambda layer: f"toy of {layer.name}")


def test_a_column_that_is_added_is_in_every_output(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    every = layer_columns
    monkeypatch.setattr(layer_module, "layer_columns", lambda *a, **k: (*every(*a, **k), TOY))
    made = plan([plan_layer(0, "conv")])
    report = Report.open(make_report(tmp_path / "r.dldprof", layers=2))
    first = f"toy of {report.layers[0].name}"
    outputs = {
        "csv": layers_csv(report.layers),
        "json": json.dumps(report_json(report)["layers"]),
        "html": report_page(report),
        "text": "\n".join(text_lines(layer_table(report.layers, "report text"))),
        "screen": screen_table(report.layers).text(0),
    }
    for kind, text in outputs.items():
        assert first in text, kind
    found = csv_of(make_table(made, "layers")), plan_page(made, [], {}), json.dumps(
        plan_json(made, [], {}, make_table(made, "layers"))["table"]
    ), screen_table(layer_records(made, {}), engine=True).text(0)  # fmt: skip
    for text in found:
        assert "toy of conv" in text
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    write_layers(writers()["parquet"], report, tmp_path / "r.parquet")
    assert parquet.read_table(tmp_path / "r.parquet")["toy"].to_pylist()[0] == first


def timed(index: int, name: str, type: str, time_ms: float | None, **more: object) -> Layer:
    return Layer(name, type, index=index, time_ms=time_ms, **more)  # type: ignore[arg-type]


LAYERS = (
    timed(0, "/stem/conv", "Conv", 2.0, provider="CUDAExecutionProvider", precision="float16",
          percent=50.0, count=1.0,
          nodes=(NodeLink((), "c", "/stem/conv", "Conv"),), confidence="name"),
    timed(1, "/head/relu", "Relu", 0.5, provider="CPUExecutionProvider", precision="float32",
          percent=12.5, count=3.0,
          nodes=(NodeLink(("If_0", "then_branch"), "r", "/head/relu", "Relu"),)),
    timed(2, "never", "Cast", None),
    timed(3, "/head/conv", "Conv", 1.5, percent=37.5, count=1.0, precision="float32"),
)  # fmt: skip


def test_one_group_is_a_filter() -> None:
    assert select(LAYERS, group=("type", "Conv")) == [0, 3]
    assert select(LAYERS, "head", ("type", "Conv")) == [3]
    assert select(LAYERS, group=("node", LAYERS[1].nodes[0].label)) == [1]


def test_selection_sums() -> None:
    found = known(summarise_selection([LAYERS[0], LAYERS[1], LAYERS[3]]))
    assert (found.count, found.total_ms, found.min_ms, found.max_ms) == (3, 4.0, 0.5, 2.0)
    assert found.mean_ms == pytest.approx(4 / 3)
    assert found.percent == 100.0
    assert dict(found.distinct)["type"] == (("Conv", 2), ("Relu", 1))
    assert summarise_selection([]) is None


def test_labels_say_where_a_node_is() -> None:
    assert NodeLink((), "n", "n", "Conv").label == "n"
    assert NodeLink((), ">out", "", "Conv").label == ">out"
    inner = NodeLink(("If_0:then_branch", "If_1:else_branch"), "/x", "/x", "Conv")
    assert inner.label == "If_0:then_branch › If_1:else_branch › /x"


def test_layers_can_be_keys() -> None:
    layer = Layer("a", "Conv", cost=Cost(1), other={"new": [3]})
    assert {layer: 1}[Layer("a", "Conv", cost=Cost(1), other={"new": [3]})] == 1


def test_whole_columns(recorded: Recorded) -> None:
    every = replace(LAYERS[0], min_ms=1.0, max_ms=3.0, mean_ms=2.5, passes=4, cost=Cost(10**9))
    bare = Layer("", "")
    engine = LayerInformation(
        engine_layer=7, findings=2, is_warned=True, output_precision="int8", footprint=3000,
        weights_bytes=1000, io_bytes=2000, unread_bytes=10, median_ms=2.25, tactic="xmma",
        layer_type="CaskConvolution", mapping_confidence="rule",
    )  # fmt: skip
    rows = {
        "timed": (every, bare, *LAYERS[2:]),
        "launches alone": LAYERS[:1],
        "a GPU": (replace(every, gpu_time_ms=2.0), LAYERS[1], bare),
        "an engine": (replace(every, engine=engine),
                      replace(bare, engine=LayerInformation(findings=1)),
                      replace(bare, engine=replace(engine, findings=1, output_precision="fp16"))),
    }  # fmt: skip
    texts = {}
    for name, layers in rows.items():
        is_engine = name == "an engine"
        texts[name] = table_text(Table(layer_columns(layers, engine=is_engine), layers))
        groups = groups_of(layers, "layer_type" if is_engine else "type")
        texts[f"groups of {name}"] = "\n".join(
            table_text(group_table(groups, "layer_type", view, layers))
            for view in ("csv", "text", "screen")
        )
        lines = []
        for view in VIEWS:
            if view.startswith("engine ") is is_engine:
                table = layer_table(layers, view)
                lines.append(f"{view}: {' '.join(column.key for column in table.columns)}")
                named = [column for column in table.columns if column.key in ("name", "nodes")]
                lines += [f"  {' | '.join(one.shown_text(row) for one in named)}" for row in layers]
        texts[f"views of {name}"] = "\n".join(lines)
    stem, head = NodeLink((), "stem", "stem", "Conv"), NodeLink((), "head", "head", "Relu")
    inserted = replace(engine, inserted=True, findings=0)
    fused = [
        Layer(title, "Conv", nodes=nodes, index=at, engine=about, time_ms=1.0)
        for at, (title, nodes, about) in enumerate((
            ("stem + head", (stem, head), engine), ("copy of stem", (stem,), inserted),
            ("first half", (head,), engine), ("second half", (head,), engine),
            ("nobody's", (), engine),
        ))
    ]  # fmt: skip
    texts["names of layers"] = "\n".join([
        str(layer_names(fused)), str(layer_names(fused[:1])), str(layer_names(fused[2:3], fused)),
        f"{are_named_by_nodes(fused)} {are_named_by_nodes(fused[4:])}",
    ])  # fmt: skip
    for view in ("engine text", "engine html", "engine csv"):
        table = layer_table(fused, view)
        chosen = [one for one in table.columns if one.key in ("name", "nodes", "type")]
        texts[f"named by nodes, {view}"] = table_text(replace(table, columns=chosen))
    recorded("whole_columns", texts)
