from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from textual.pilot import Pilot

import dld_tui
from dld_tui.widgets.tensors.grid import TensorGrid
from tests.support.tui import HostApp, rows_of

STYLES = Path(dld_tui.__file__).parent / "styles"


class Big:
    """A tensor of 2 ** 40 elements, each its own index modulo 1000."""

    def __init__(self) -> None:
        self.read_count = 0

    def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
        self.read_count += count or 0
        return np.arange(start, start + (count or 0)) % 1000


class GridApp(HostApp):
    CSS_PATH: ClassVar[Any] = [STYLES / "base.tcss", STYLES / "tensor.tcss"]


async def shown(pilot: Pilot[int], grid: TensorGrid, elements: Any, *shape: int) -> None:
    grid.show(elements, "int64", shape)
    grid.focus()
    await pilot.pause()


async def test_a_huge_tensor_is_read_where_it_is_seen() -> None:
    grid, big = TensorGrid(), Big()
    app = GridApp(grid)
    async with app.run_test(size=(60, 12)) as pilot:
        await shown(pilot, grid, big, 1 << 20, 1 << 20)
        await pilot.press("G")
        await pilot.pause()
        assert (grid.row, grid.column) == ((1 << 20) - 1, (1 << 20) - 1)
        last = ((1 << 40) - 1) % 1000
        assert any(row.rstrip(" █▁▂▃▄▅▆▇▔").endswith(str(last)) for row in rows_of(app))
        assert big.read_count < 3000
        await pilot.press("g")
        assert (grid.row, grid.column) == (0, 0)


async def test_headings_stay_and_moves_stay_within_the_tensor() -> None:
    grid = TensorGrid()
    app = GridApp(grid)
    async with app.run_test(size=(40, 8)) as pilot:
        # Headings stay and name rows and columns.
        await shown(pilot, grid, Big(), 50, 50)
        await pilot.press("pagedown", "pagedown", "end")
        await pilot.pause()
        rows = rows_of(app)
        assert "49" in rows[0]
        assert rows[1].split()[0] == str(grid.scroll_offset.y)
        # By whole columns: the last one is seen in full.
        value = (grid.row * 50 + 49) % 1000
        assert any(f" {value}" in row for row in rows)
        # Moves stay within the tensor.
        await shown(pilot, grid, Big(), 3, 2)
        await pilot.press("up", "left", "k", "h")
        assert (grid.row, grid.column) == (0, 0)
        await pilot.press("j", "l", "j", "l", "down", "right", "L", "pagedown")
        assert (grid.row, grid.column) == (2, 1)
        await pilot.press("home")
        assert (grid.row, grid.column) == (2, 0)


async def test_ranges_grow_with_shift_space_and_clicks() -> None:
    grid = TensorGrid()
    app = GridApp(grid)
    async with app.run_test(size=(60, 12)) as pilot:
        # A range grows with shift and with space.
        await shown(pilot, grid, Big(), 9, 9)
        await pilot.press("shift+down", "shift+right", "shift+right")
        assert grid.marked == (range(0, 2), range(0, 3))
        assert grid.clear_range()
        assert grid.marked == (range(1, 2), range(2, 3))
        await pilot.press("space", "down")
        assert grid.marked == (range(1, 3), range(2, 3))
        await pilot.press("space")
        assert grid.corner is None
        # Clicks move and shift marks.
        await shown(pilot, grid, Big(), 9, 9)
        x = grid.heading_cells + 2 * grid.cell_cells + 2
        await pilot.click(TensorGrid, offset=(x, 4))
        assert (grid.row, grid.column) == (3, 2)
        await pilot.click(TensorGrid, offset=(x, 6), shift=True)
        assert grid.marked == (range(3, 6), range(2, 3))


async def test_one_dimension_wraps_for_the_width_and_keeps_the_element() -> None:
    grid = TensorGrid()
    app = GridApp(grid)
    async with app.run_test(size=(80, 12)) as pilot:
        await shown(pilot, grid, Big(), 95)
        wide = grid.view.wrap
        await pilot.press("G")
        index = grid.view.flat(grid.row, grid.column)
        assert index == 94
        await pilot.resize_terminal(30, 12)
        await pilot.pause()
        assert grid.view.wrap < wide
        assert grid.view.flat(grid.row, grid.column) == 94
        await pilot.press("right")
        assert grid.view.flat(grid.row, grid.column) == 94


async def test_columns_grow_for_wider_texts() -> None:
    class Wide(Big):
        def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
            values = np.ones(count or 0, np.int64)
            values[0] = 10**15
            return values

    grid = TensorGrid()
    app = GridApp(grid)
    async with app.run_test(size=(60, 6)) as pilot:
        await shown(pilot, grid, Wide(), 4, 4)
        await pilot.pause()
        assert "1000000000000000" in rows_of(app)[1]


async def test_no_elements_and_problems_are_said() -> None:
    grid = TensorGrid()
    app = GridApp(grid)
    async with app.run_test(size=(60, 6)) as pilot:
        await shown(pilot, grid, Big(), 0, 3)
        assert "No elements: the shape is [0, 3]." in rows_of(app)[1]
        await pilot.press("down", "e", "space", "G")
        grid.show(Big(), "int64", (3, 3), problem="External data [x] gone")
        await pilot.pause()
        assert "External data [x] gone" in rows_of(app)[1]
