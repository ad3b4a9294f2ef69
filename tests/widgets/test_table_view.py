from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

import pytest

from dld_tui.core.tables.table import MS, Column, Table, Value
from dld_tui.widgets.lists.table_view import GAP, TableView, windows
from dld_tui.widgets.results.layers import screen_table
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
