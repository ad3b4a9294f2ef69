"""The rows and the text of a comparison."""

from __future__ import annotations

from dld_tui.core.compare.comparison import Comparison
from dld_tui.core.text import cell_width
from dld_tui.widgets.lists.row_table import plain
from dld_tui.widgets.lists.table_view import TableView
from dld_tui.widgets.report.compare import CompareSource, about_lines, compare_columns
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


def source(comparison: Comparison) -> CompareSource:
    return CompareSource(comparison, comparison.rows(), "layer")


def test_what_is_faster_slower_gone_and_noise() -> None:
    rows = source(compared(1.0, 2.0))
    assert [rows.key(index) for index in range(3)] == ["slow", "gone", "same"]
    styles = [rows.cell(index, "delta", 9)[1] for index in range(3)]
    assert styles == ["bad", "good", "dim"]
    assert [plain(rows.cell(index, "remark", 11)) for index in range(3)] == ["", "only A", "noise"]
    assert plain(rows.cell(0, "bar", 12)) == "█" * 12
    assert plain(rows.cell(1, "time1", 9)) == "–"
    assert rows.sort_value(1, "time1") is None
    assert rows.text(0).startswith("slow\t")


def test_the_times_of_reports_between_give_way_first() -> None:
    comparison = compared(1.0, 2.0, 3.0)
    view = TableView(compare_columns(comparison, "layer"), source(comparison))
    narrow = [column.key for column, _ in view.layout_columns(78)]
    assert narrow[:3] == ["key", "time0", "time2"]
    assert "delta" in narrow
    wide = [column.key for column, _ in view.layout_columns(190)]
    assert wide[:4] == ["key", "time0", "time1", "time2"]
    assert compare_columns(comparison, "type")[4].title == "A>C ms"


def test_the_text_fits_its_width_and_begins_with_what_differs() -> None:
    for width in (40, 76, 190):
        lines = about_lines(compared(1.0, 2.0), width)
        texts = ["".join(text for text, _ in line) for line in lines]
        assert texts[2] == "threads  0 / 1"
        warning = next(i for i, text in enumerate(texts) if "Whether the model" in text)
        total = next(i for i, text in enumerate(texts) if text.startswith("end to end"))
        assert 2 < warning < total
        assert max(cell_width(text) for text in texts if "ms" not in text) <= width


def test_the_end_of_a_long_path_is_shown_with_what_made_the_report() -> None:
    folder = "/" + "/".join(["a_long_folder"] * 9)
    subjects = [subject(timed("x", noisy(1.0, 1)), title=f"{folder}/{kind}/net") for kind in "pq"]
    lines = about_lines(Comparison(subjects), 60)
    texts = ["".join(text for text, _ in line) for line in lines[:2]]
    assert "/p/net" in texts[0]
    assert "/q/net" in texts[1]
