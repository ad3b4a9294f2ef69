from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import pytest
from textual.events import MouseScrollDown, MouseScrollLeft, MouseScrollRight, MouseScrollUp

from dld_tui.core.tables.table import BAR, MS, Column, Table, Value
from dld_tui.widgets.lists.table_view import GAP, TableLines, TableView, windows
from dld_tui.widgets.results.layers import screen_table
from dld_tui.widgets.shell import glyphs
from tests.support.tui import HOSTILE, HostApp, rows_of

Layer = tuple[str, "float | None", str]
COLUMNS: tuple[Column[Layer], ...] = (
    Column("name", "Name", itemgetter(0), least=10, keep="end"),
    Column("ms", "ms", itemgetter(1), MS, 8, style="heat-5"),
    Column("type", "Type", itemgetter(2), width=10, priority=1),
    Column("extra", "Extra", lambda row: "x", width=20, priority=2),
)
LAYERS: list[Layer] = [
    ("conv1", 2.0, "Conv"), ("relu1", None, "Relu"), (HOSTILE, 30.5, "Conv"), ("漢字", 2.0, "Add"),
]  # fmt: skip


def table(rows: list[Layer], columns: Sequence[Column[Layer]] = COLUMNS) -> Table[Layer]:
    return Table(columns, rows, row_key=itemgetter(0))


def shown(size: tuple[int, int] = (80, 12)) -> tuple[HostApp, TableView]:
    view = TableView(table(LAYERS))
    return HostApp(view), view


def names(view: TableView) -> list[str]:
    return [LAYERS[row][0] for row in view.order]


async def test_columns_are_aligned_under_their_titles() -> None:
    app, _ = shown()
    async with app.run_test(size=(70, 8)) as pilot:
        rows = rows_of(app)
        end = rows[0].index("ms") + 2
        assert rows[1][:end].endswith("2.000")
        assert rows[3][:end].endswith("30.500")
        assert rows[3].lstrip().startswith(HOSTILE)
        assert rows[1].index("Conv") == rows[0].index("Type")
        # Two wide characters take four cells, so the row has two characters less.
        assert rows[4].index("Add") == rows[0].index("Type") - 2
        # Less important columns give way.
        for width, titles in ((80, "Name ms Type Extra"), (40, "Name ms Type ›"), (22, "Name ms›")):
            await pilot.resize_terminal(width, 8)
            assert rows_of(app)[0].split() == titles.split()


async def test_the_cursor_stays_on_its_row() -> None:
    app, view = shown()
    async with app.run_test(size=(80, 8), message_hook=app.note) as pilot:
        # Sorting keeps the cursor on its row and unknown last.
        await pilot.press("j", "j")  # the hostile name
        await pilot.press("o", "o")  # by name, then by ms: the largest first
        assert names(view) == [HOSTILE, "conv1", "漢字", "relu1"]
        assert view.key_at_cursor() == HOSTILE
        assert "ms▼" in rows_of(app)[0]
        await pilot.press("tilde")
        assert names(view) == ["conv1", "漢字", HOSTILE, "relu1"]
        assert view.key_at_cursor() == HOSTILE
        await pilot.press("o", "o", "o")
        assert view.sort_column is None
        assert names(view) == [layer[0] for layer in LAYERS]
        # Some rows of a table.
        view.sort_by("name")
        await pilot.press("G")
        chosen = view.key_at_cursor()
        view.set_table(table(LAYERS), [0, 1, 3])
        assert view.key_at_cursor() == chosen
        assert len(view.lines) == 3
        assert view.row_at_cursor() == view.order[view.cursor]
        view.set_table(table([]))
        assert view.row_at_cursor() is None


async def test_a_click_on_the_header_sorts() -> None:
    app, view = shown()
    async with app.run_test(size=(60, 8)) as pilot:
        at = rows_of(app)[0].index("ms")
        await pilot.click(view, offset=(at, 0))
        assert (view.sort_column, view.sort_descending) == ("ms", True)
        await pilot.click(view, offset=(at, 0))
        assert (view.sort_column, view.sort_descending) == ("ms", False)


async def test_the_header_stays_while_rows_scroll() -> None:
    rows: list[Layer] = [(f"n{number}", float(number), "Conv") for number in range(500)]
    view = TableView(table(rows))
    app = HostApp(view)
    async with app.run_test(size=(60, 10)) as pilot:
        await pilot.press("G")
        drawn = rows_of(app)
        assert "Name" in drawn[0]
        assert "n499" in drawn[-1]
        await pilot.press("g")
        assert "n0" in rows_of(app)[1]


async def test_columns_scroll_by_keys_by_the_mouse_and_to_what_is_sorted() -> None:
    app, view = shown()
    async with app.run_test(size=(40, 8)) as pilot:
        # The keys scroll by column and the name stays.
        first = rows_of(app)
        await pilot.press("right")
        drawn = rows_of(app)
        assert drawn[0].split() == ["‹Name", "Extra"]
        assert drawn[1].split() == ["▌conv1", "x"]
        await pilot.press("right")
        assert rows_of(app) == drawn
        await pilot.press("h")
        assert rows_of(app) == first
        await pilot.press("left")
        assert rows_of(app) == first
        assert view.cursor == 0
        # The mouse scrolls by column.
        first = rows_of(app)
        await pilot.click(view, offset=(39, 0))
        scrolled = rows_of(app)
        assert "Extra" in scrolled[0]
        await pilot.click(view, offset=(0, 0))
        assert rows_of(app) == first
        assert (view.sort_column, view.cursor) == (None, 0)
        for event, expected in (
            (MouseScrollDown(view, 1, 1, 0, 0, 0, True, False, False), scrolled),
            (MouseScrollUp(view, 1, 1, 0, 0, 0, True, False, False), first),
            (MouseScrollRight(view, 1, 1, 0, 0, 0, False, False, False), scrolled),
            (MouseScrollLeft(view, 1, 1, 0, 0, 0, False, False, False), first),
        ):
            view.post_message(event)
            await pilot.pause()
            assert rows_of(app) == expected
            assert view.cursor == 0
        # Sorting shows the column that it sorts by.
        await pilot.press("o", "o", "o", "o")
        assert view.sort_column == "extra"
        assert "Extra▲" in rows_of(app)[0]
        await pilot.press("o", "o", "o")
        assert rows_of(app)[0].split()[:2] == ["Name", "ms▼"]


async def test_the_signs_have_an_ascii_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glyphs, "_in_use", [glyphs.ASCII])
    app, _ = shown()
    async with app.run_test(size=(22, 8)) as pilot:
        assert rows_of(app)[0].split() == ["Name", "ms>"]
        await pilot.press("l")
        assert rows_of(app)[0].split() == ["<Name", "Type", ">"]


async def test_what_was_scrolled_to_stays() -> None:
    app, view = shown()
    async with app.run_test(size=(40, 8)) as pilot:
        await pilot.press("right")
        scrolled = rows_of(app)[0]
        view.set_table(table(LAYERS))
        assert rows_of(app)[0] == scrolled
        view.set_table(table(LAYERS, COLUMNS[1:] + COLUMNS[:1]))
        assert "Extra" in rows_of(app)[0]
        view.set_table(table(LAYERS, COLUMNS[:3]))
        assert rows_of(app)[0].split() == ["Name", "ms", "Type"]
        view.set_table(table(LAYERS))
        await pilot.resize_terminal(80, 8)
        assert rows_of(app)[0].split() == ["Name", "ms", "Type", "Extra"]


async def test_only_cells_that_are_seen_are_made() -> None:
    asked: list[str] = []

    def counted(column: Column[Layer]) -> Column[Layer]:
        def value(row: Layer) -> Value:
            asked.append(column.key)
            return column.value(row)

        return replace(column, value=value)

    rows: list[Layer] = [(f"n{number}", float(number), "Conv") for number in range(50_000)]
    view = TableView(table(rows, [*map(counted, COLUMNS)]))
    app = HostApp(view)
    async with app.run_test(size=(40, 8)) as pilot:
        assert "extra" not in asked
        asked.clear()
        await pilot.press("right")
        rows_of(app)
        assert "extra" in asked
        assert {"type", "ms"}.isdisjoint(asked)
        assert len(asked) <= 3 * 2 * 8


@pytest.mark.parametrize("width", [12, 20, 33, 40, 61, 78, 79, 100, 120, 198])
def test_every_column_can_be_reached_at_any_width(width: int) -> None:
    columns = screen_table((), engine=True).columns
    steps = windows(columns, width)
    assert {column for step in steps for column in step.columns} == set(columns)
    seen = {column.key for column in steps[0].columns}
    for step in steps[1:]:
        keys = {column.key for column in step.columns}
        assert keys - seen, "a step that shows nothing new"
        assert step.last in keys
        seen |= keys
    for number, step in enumerate(steps):
        assert "name" in {column.key for column in step.columns}
        assert (step.before, step.after) == (number > 0, number < len(steps) - 1)
        cells = sum(size for _, size in step.sizes) + GAP * (len(step.sizes) - 1)
        assert cells <= width - (1 if step.after else 0)


async def test_figures_show_how_much_they_stand_out_and_bars_are_of_the_largest() -> None:
    columns: tuple[Column[Layer], ...] = (
        COLUMNS[0],
        replace(COLUMNS[1], heat=True),
        Column("bar", "", itemgetter(1), BAR, 8, align="left", heat=True),
    )
    rows: list[Layer] = [("a", 8.0, ""), ("b", 4.0, ""), ("c", None, ""), ("d", 0.0, "")]
    view = TableView(table(rows, columns))
    lines = TableLines(view)
    bars = [lines.cell(row, columns[2], 8) for row in rows]
    assert [text for text, _ in bars] == ["████████", "████    ", " " * 8, " " * 8]
    heats = [lines.cell(row, columns[1], 8)[1] for row in rows]
    assert heats == ["heat-4", "heat-2", "heat-0", "heat-0"]
    assert [style for _, style in bars] == heats


async def test_fitted_columns_leave_the_room_to_names() -> None:
    class Fitted(TableView):
        FITTED = True

    view = Fitted(table(LAYERS))
    assert [column.width for column in view.columns] == [None, 6, 5, 6]
    assert [column.width for column in TableView(table(LAYERS)).columns] == [None, 8, 10, 20]


@pytest.mark.parametrize("seed", range(2))
async def test_the_cursor_stays_on_its_row_through_any_change(seed: int) -> None:
    draw = random.Random(seed)
    app, view = shown()
    async with app.run_test(size=(80, 12)) as pilot:
        rows: list[Layer] = []
        rows += [(f"row {at}", float(draw.randrange(5)), "Conv") for at in range(20)]
        view.set_table(table(rows), keep=False)
        for step in range(40):
            if draw.random() < 0.3:
                view.sort_by(draw.choice(["name", "ms", None]), draw.random() < 0.5)
            view.cursor = draw.randrange(len(view.order))
            shown_before = [row[0] for row in view.shown_rows()]
            at, name = view.cursor, view.key_at_cursor()
            gone = set(draw.sample(shown_before, draw.randrange(4)))
            rows = [row for row in rows if row[0] not in gone]
            come: list[Layer] = []
            come += [(f"new {step} {i}", float(draw.randrange(5)), "Add") for i in range(len(gone))]
            rows = [*rows, *come]
            draw.shuffle(rows)
            kept = None if draw.random() < 0.7 else [i for i in range(len(rows)) if i % 3]
            view.set_table(table(rows), kept)
            await pilot.pause()
            left = [row[0] for row in view.shown_rows()]
            if name in left:
                assert view.key_at_cursor() == name
            elif name in gone:
                next_ones = [name for name in shown_before[at:] if name in left]
                assert view.key_at_cursor() == (next_ones or left[-1:])[0]
            else:
                assert view.cursor == 0


def test_what_all_names_share_is_in_the_title_where_they_do_not_fit() -> None:
    rows: list[Layer] = [(f"/model/encoder/layers.{n}/MatMul", 1.0, "MatMul") for n in range(6)]
    view = TableView(table(rows, COLUMNS[:2]))

    def text(width: int) -> list[str]:
        lines = TableLines(view)
        parts = [view.header_line(width), *(lines.line(at, width) for at in range(len(rows)))]
        return ["".join(piece for piece, _ in found) for found in parts]

    wide, narrow = text(60), text(36)
    assert wide[1].startswith(rows[0][0])
    assert wide[0].split() == ["Name", "ms"]
    assert [line.split()[0] for line in narrow[1:]] == [f"{n}/MatMul" for n in range(6)]
    assert narrow[0].startswith("Name  /model/encoder/layer")
    assert TableLines(view).text(0).startswith(rows[0][0]), "search and copy have all of it"
