from __future__ import annotations

from dataclasses import replace

import pytest

from dld_tui.core.report.records import Layer
from dld_tui.core.text import cell_width
from dld_tui.widgets.layers.columns import (
    COLUMNS,
    node_names,
    precision_style,
    runs,
    shapes,
    short_precision,
    short_provider,
    telling_keys,
)
from dld_tui.widgets.layers.sources import GroupSource, LayerSource
from tests.support.report_files import HOSTILE, layer


def test_every_column_of_an_unknown_layer_is_text_that_says_so() -> None:
    bare = Layer("", "")
    for column in COLUMNS:
        assert isinstance(column.text(bare), str)
        assert column.value(bare) is None or column.value(bare) in ("", -1, 0, "–")
    assert {column.key for column in COLUMNS if column.text(bare) == "–"} >= {
        "time", "percent", "min", "max", "mean", "provider", "precision", "nodes", "count",
    }  # fmt: skip


def test_no_column_lets_foreign_text_through() -> None:
    nasty = replace(layer(0, HOSTILE), type=HOSTILE, provider=HOSTILE, precision=HOSTILE)
    for column in COLUMNS:
        assert "\x1b" not in column.text(nasty)
        assert "\u202e" not in column.text(nasty)


@pytest.mark.parametrize(
    ("precision", "short", "style"),
    [
        ("float32", "fp32", "prec-fp32"),
        ("float16", "fp16", "prec-fp16"),
        ("int8", "int8", "prec-int8"),
        ("int64", "int64", "prec-other"),
        (None, "–", "prec-other"),
    ],
)
def test_precisions(precision: str | None, short: str, style: str) -> None:
    assert short_precision(precision) == short
    assert precision_style(precision) == style


def test_providers_lose_what_they_share() -> None:
    assert short_provider("CUDAExecutionProvider, CPUExecutionProvider") == "CUDA, CPU"
    assert short_provider(None) == "–"


def test_nodes_found_by_a_rule_are_marked_and_counted() -> None:
    one = layer(0, "a")
    assert node_names(one) == "a"
    assert node_names(replace(one, confidence="rule", nodes=one.nodes * 3)) == "~a  +2"
    assert node_names(replace(one, nodes=())) == "–"


def test_runs_and_shapes() -> None:
    assert runs(replace(layer(0), count=3.0)) == "3"
    assert runs(replace(layer(0), count=2.5)) == "2.5"
    assert shapes(((1, "N", None), ())) == "1xNx?  scalar"
    assert shapes(()) == "–"


def test_columns_that_say_the_same_of_all_layers_are_left_out() -> None:
    same = [layer(0), layer(1)]
    assert {"provider", "count"} & set(telling_keys(same)) == set()
    other = [layer(0), replace(layer(1), provider="CUDAExecutionProvider", count=4.0)]
    assert {"provider", "count", "nodes"} <= set(telling_keys(other))
    assert "nodes" not in telling_keys([replace(one, nodes=()) for one in same])


def test_the_heat_of_a_row_is_its_share_of_the_costliest() -> None:
    source = LayerSource(
        [replace(layer(n), index=n, time_ms=time) for n, time in enumerate((8.0, 4.0, None, 0.0))]
    )
    bars = [source.cell(row, "heat", 8) for row in range(4)]
    assert [bar[0] for bar in bars] == ["████████", "████    ", " " * 8, " " * 8]
    assert all(cell_width(str(bar[0])) == 8 for bar in bars)
    assert source.cell(0, "time", 9)[1] == source.heat_style(8.0) != source.heat_style(0.0)


def test_sources_have_stable_keys_and_text() -> None:
    source = LayerSource([replace(layer(0, "a"), index=7, time_ms=1.0)])
    assert source.key(0) == 7
    assert "Conv\ta\t1.000" in source.text(0)
    assert len(GroupSource(())) == 0
