"""The rows and the text of a comparison."""

from __future__ import annotations

import pytest

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.compare.export import compare_table
from dld_tui.core.text import cell_width
from dld_tui.widgets.lists.table_view import TableLines, TableView
from dld_tui.widgets.results.report_compare import about_lines
from tests.support.compared import noisy, subject, timed


def compared(*factors: float) -> Comparison:
    subjects = [
        subject(
            timed("slow", noisy(2.0 * factor, number), ["s"]),
            timed("same", noisy(1.0, 10 + number), ["t"], "Add"),
            *([timed("gone", noisy(0.5, 20))] if number == 0 else []),
            title=f"{number}.dldprof",
            settings={"threads": number},
        )
        for number, factor in enumerate(factors)
    ]
    return Comparison(subjects)


def test_what_is_faster_slower_gone_and_noise() -> None:
    comparison = compared(1.0, 2.0)
    table = compare_table(comparison, "layer", comparison.rows(), "screen")
    rows = table.rows
    assert [row.key for row in rows] == ["slow", "gone", "same"]
    assert [table.key(index) for index in range(3)] == [(0, 0), (0, 2), (0, 1)]
    assert [table.column("delta_ms_B").style_of(row) for row in rows] == ["bad", "good", "dim"]
    assert [table.column("remark").shown_text(row) for row in rows] == ["", "only A", "noise"]
    bar = TableLines(TableView(table)).cell(rows[0], table.column("interval"), 22)[0]
    assert bar.index("│") < bar.index("●")
    gone = TableLines(TableView(table)).cell(rows[1], table.column("interval"), 22)[0]
    assert gone.index("●") < gone.index("│")
    assert table.column("time_ms_B").shown_text(rows[1]) == "–"
    assert table.column("time_ms_B").order_of(rows[1]) is None
    assert table.text(0).startswith("s\t")  # its ONNX node


def test_the_times_of_reports_between_give_way_first() -> None:
    comparison = compared(1.0, 2.0, 3.0)
    table = compare_table(comparison, "layer", comparison.rows(), "screen")
    view = TableView(table)
    narrow = [column.key for column, _ in view.layout_columns(78)]
    assert narrow[:4] == ["key", "time_ms_A", "delta_ms_C", "interval"]
    wide = [column.key for column, _ in view.layout_columns(190)]
    assert wide[:4] == ["key", "time_ms_A", "time_ms_B", "time_ms_C"]
    assert table.columns[4].title == "C-A ms"


def test_the_text_fits_its_width_and_begins_with_the_times_and_how_fair_they_are() -> None:
    for width in (40, 76, 190):
        lines = about_lines(compared(1.0, 2.0), width)
        texts = ["".join(text for text, _ in line) for line in lines]
        assert texts[2].startswith("end to end")
        warning = next(i for i, text in enumerate(texts) if "Whether the model" in text)
        assert 2 < warning < texts.index("threads  0 / 1")
        assert max(cell_width(text) for text in texts if "ms" not in text) <= width


@pytest.mark.parametrize(("factor", "style"), [(2.0, "bad"), (0.5, "good"), (1.25, "dim")])
def test_only_a_sure_difference_of_the_sums_has_a_colour(factor: float, style: str) -> None:
    comparison = compared(1.0, factor)
    key = comparison.layer_sum.key
    (line,) = [line for line in about_lines(comparison, 190) if line and line[0][0].startswith(key)]
    assert line[-1][1] == style


def test_the_end_of_a_long_path_is_shown_with_what_made_the_report() -> None:
    folder = "/" + "/".join(["a_long_folder"] * 9)
    subjects = [subject(timed("x", noisy(1.0, 1)), title=f"{folder}/{kind}/net") for kind in "pq"]
    lines = about_lines(Comparison(subjects), 60)
    texts = ["".join(text for text, _ in line) for line in lines[:2]]
    assert "/p/net" in texts[0]
    assert "/q/net" in texts[1]


def test_the_first_token_of_decoders_is_told_beside_the_layers() -> None:
    both = [
        subject(timed("a", noisy(1.0, 1)), latencies=noisy(2.0, 2), first_tokens_ms=noisy(ms, 3))
        for ms in (8.0, 4.0)
    ]
    lines = ["".join(text for text, _ in line) for line in about_lines(Comparison(both), 100)]
    [told] = [line for line in lines if line.startswith("first token")]
    assert "A 7.900 ms  B 3.950 ms 0.50× (-3.950" in told
