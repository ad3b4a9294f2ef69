"""Which element each cell of a grid shows, and how."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dld_tui.core.errors import InputError
from dld_tui.widgets.tensors import grid_layout
from dld_tui.widgets.tensors.grid_layout import (
    GridLayout,
    NumberFormat,
    layout_of,
    parse_index,
    unravel,
)
from tests.support.recorded import Recorded


class Counted:
    """Elements that are their own index; notes what is read."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.reads: list[tuple[int, int]] = []

    def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
        stop = min(start + (count or 0), self.count)
        self.reads.append((start, stop - start))
        return np.arange(start, stop, dtype=np.int64)


def texts(view: grid_layout.GridLayout, rows: range, columns: range) -> list[list[str]]:
    blocks = grid_layout.CellBlocks(Counted(view.count), "int64", view, grid_layout.NumberFormat())
    return [[blocks.cell(row, column)[0] for column in columns] for row in rows]


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (2, 0), (0, 2), (1, 2), (2, 1)])
def test_every_view_shows_the_elements(axes: tuple[int, int]) -> None:
    shape = (20, 30, 40)
    array = np.arange(24_000).reshape(shape)
    view = grid_layout.GridLayout(shape, *axes, (3, 4, 5))
    index: list[Any] = [3, 4, 5]
    index[axes[0]] = index[axes[1]] = slice(None)
    plane = array[tuple(index)]
    wanted = plane if axes[0] < axes[1] else plane.T
    found = texts(view, range(view.rows), range(view.columns))
    assert found == [[str(value) for value in row] for row in wanted.tolist()]


def test_elements_far_apart_are_read_one_by_one() -> None:
    view = grid_layout.GridLayout((3, 3, 1 << 20), 0, 1, (0, 0, 7))
    elements = Counted(view.count)
    blocks = grid_layout.CellBlocks(elements, "int64", view, grid_layout.NumberFormat())
    assert blocks.cell(1, 1)[0] == str(4 * (1 << 20) + 7)
    assert sum(count for _, count in elements.reads) == 9


def test_only_what_is_seen_is_read() -> None:
    view = grid_layout.layout_of((100_000, 100_000))
    elements = Counted(view.count)
    blocks = grid_layout.CellBlocks(elements, "int64", view, grid_layout.NumberFormat())
    blocks.load(range(50_000, 50_020), range(70_000, 70_010))
    assert sum(count for _, count in elements.reads) <= 48 * 16
    before = len(elements.reads)
    blocks.cell(50_001, 70_001)
    assert len(elements.reads) == before


def test_what_cannot_be_read_is_a_problem() -> None:
    class Broken(Counted):
        def read(self, start: int = 0, count: int | None = None) -> np.ndarray[Any, Any]:
            raise InputError("the file is gone")

    blocks = grid_layout.CellBlocks(
        Broken(4), "int64", grid_layout.layout_of((2, 2)), grid_layout.NumberFormat()
    )
    assert blocks.cell(0, 0) == ("", "")
    assert blocks.problem == "the file is gone"


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.123456789, "float32", "0.123"), (float("nan"), "float32", "nan"), (-3, "int4", "d"),
        (-1, "int8", "ff"), (255, "uint16", "00ff"), (True, "bool", "true"),
        (1 + 2j, "complex64", "1+2j"), (b"a\x1b[0m", "string", "'a\\x1b[0m'"),
    ],
)  # fmt: skip
def test_elements_as_text(value: Any, dtype: str, text: str) -> None:
    assert grid_layout.NumberFormat(3, hexadecimal=True).text(value, dtype) == text


def test_zeros_are_quiet_and_long_strings_cut() -> None:
    # Long strings are cut.
    assert len(grid_layout.NumberFormat().text(b"x" * 5000, "string")) == 24
    # Zeros are quiet and NaN stands out.
    assert [grid_layout.style_of(value) for value in (0, 0.0, 1.5, float("inf"), b"")] == [
        "faint", "faint", "number", "bad", "",
    ]  # fmt: skip


def test_what_is_edited_is_exact() -> None:
    assert grid_layout.exact_text(np.array([0.1], np.float32), "float32") == "0.1"
    assert grid_layout.exact_text(np.array([-7], np.int8), "int4") == "-7"
    assert grid_layout.exact_text(np.array([b"a'b"], object), "string") == r"'a\'b'"
    assert grid_layout.exact_text(np.array([1 / 3]), "float64") == repr(1 / 3)


SHAPE = (2, 3, 4, 5)
FLAT = np.arange(120).reshape(SHAPE)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 4), (0, 1)), (SHAPE, (2, 3)), ((64, 32, 1, 1), (0, 1)), ((64, 1, 3, 3), (2, 3)),
        ((1, 7, 1), (1, 2)), ((1, 1), (0, 1)),
    ],
)  # fmt: skip
def test_the_first_view_shows_the_axes_that_have_something(
    shape: tuple[int, ...], axes: tuple[int, int]
) -> None:
    view = layout_of(shape)
    assert (view.row_axis, view.column_axis) == axes


def test_every_cell_is_the_element_of_its_index() -> None:
    for rows in range(4):
        for columns in range(4):
            if rows == columns:
                continue
            view = GridLayout(SHAPE, rows, columns, (1, 2, 3, 4))
            for row in range(view.rows):
                for column in range(view.columns):
                    assert view.flat(row, column) == FLAT[view.indexes(row, column)]


def test_one_dimension_is_wrapped_and_a_scalar_is_one_cell() -> None:
    # One dimension is wrapped.
    view = layout_of((23,)).wrapped_for(9)
    assert (view.rows, view.columns) == (3, 8)
    assert view.flat(2, 6) == 22
    assert view.flat(2, 7) is None
    assert (view.row_label(2), view.column_label(3)) == ("16", "+3")
    assert view.indexes(1, 1) == (9,)
    assert view.at((22,)) == (view, 2, 6)
    # A scalar is one cell and no element is none.
    view = layout_of(())
    assert (view.rows, view.columns, view.flat(0, 0), view.indexes(0, 0)) == (1, 1, 0, ())
    empty = layout_of((0, 4))
    assert (empty.rows, empty.columns) == (0, 0)
    # The last row of a wrapped tensor is short.
    view = grid_layout.layout_of((23,)).wrapped_for(10)
    assert texts(view, range(2, 3), range(5)) == [["20", "21", "22", "", ""]]


def test_axes_are_exchanged_and_stepped() -> None:
    # Axes that are in use are exchanged.
    view = layout_of(SHAPE)
    turned = view.with_axis(rows=3)
    assert (turned.row_axis, turned.column_axis) == (3, 2)
    other = view.with_axis(columns=0)
    assert (other.row_axis, other.column_axis, other.free_axes) == (2, 0, (1, 3))
    assert view.turned() == turned
    # Stepping goes round.
    assert view.stepped(1, -1).fixed == (0, 2, 0, 0)
    assert view.stepped(1, -1).stepped(1, 1) == view
    # Unravel.
    assert unravel(119, SHAPE) == (1, 2, 3, 4)
    assert unravel(0, ()) == ()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("1, 2, 3, 4", (1, 2, 3, 4)),
        ("[1 2 3 -1]", (1, 2, 3, 4)),
        ("119", (1, 2, 3, 4)),
        ("-1", (1, 2, 3, 4)),
        ("0", (0, 0, 0, 0)),
        ("-120", (0, 0, 0, 0)),
        ("-121", "The flat index goes from 0 to 119"),
        ("0, -1, -3, 0", (0, 2, 1, 0)),
        ("0, -4, 0, 0", "Axis 1 goes from 0 to 2"),
        ("120", "The flat index goes from 0 to 119"),
        ("0, 3, 0, 0", "Axis 1 goes from 0 to 2"),
        ("1, 2", "4 numbers are needed, or one flat index"),
        ("a", "Write whole numbers, such as 3, 0, 17"),
    ],
)
def test_indexes_are_read(text: str, found: tuple[int, ...] | str) -> None:
    assert parse_index(text, SHAPE) == found


def _view_facts(view: GridLayout) -> str:
    corners = [(0, 0), (view.rows - 1, view.columns - 1)]
    told = [
        f"rows {view.row_axis} columns {view.column_axis} at {view.fixed} wrap {view.wrap}:"
        f" {view.rows} x {view.columns} of {view.count}",
        f"free {view.free_axes} strides {view.strides} from {view.origin}",
    ]
    if view.count:
        told += [
            f"{view.flat(*at)} {view.indexes(*at)} {view.row_label(at[0])!r}"
            f" {view.column_label(at[1])!r}"
            for at in corners
        ]
        _, *place = view.at(view.indexes(*corners[1]))
        told.append(f"found {place}")
    return "  ".join(told)


def test_whole_layouts(recorded: Recorded) -> None:
    """Views of shapes of each kind, each turned, stepped, exchanged, resized and wrapped."""
    texts = {}
    for shape in (
        (), (0,), (7,), (12345,), (3, 4), (1, 5), (5, 1), (1, 1), (2, 3, 4), (1, 3, 1, 4),
        (2, 0, 3), (2, 1, 1, 1),
    ):  # fmt: skip
        view = layout_of(shape)
        lines = [_view_facts(view)]
        for fitting in (0, 1, 3, 7, 9, 11, 99, 1000) if view.is_wrapped else ():
            lines.append(f"fitting {fitting}: {_view_facts(view.wrapped_for(fitting))}")
        if len(shape) > 1:
            lines.append(f"turned: {_view_facts(view.turned())}")
        for axis in range(len(shape) if len(shape) > 2 else 0):
            lines += [
                f"rows {axis}: {_view_facts(view.with_axis(rows=axis))}",
                f"columns {axis}: {_view_facts(view.with_axis(columns=axis))}",
            ]
        if all(shape):
            for axis in view.free_axes:
                stepped = [view.stepped(axis, step).fixed for step in (-1, 1, 2)]
                lines.append(f"along {axis}: {stepped}")
            last = replace(view, fixed=tuple(size - 1 for size in shape))
            less = tuple(max(1, size - 2) for size in shape)
            lines.append(f"resized to {less}: {_view_facts(last.resized(less))}")
        texts[str(shape)] = "\n".join(lines)
    lines = []
    for shape in ((), (7,), (3, 4), (2, 3, 4)):
        for text in ("", "0", "-1", "6", "7", "-7", "-8", "1, 2", "[1,-1]", "(1 2 3)", "1,3,0",
                     "24", "-24", "x", "1.5"):  # fmt: skip
            lines.append(f"{text!r} in {shape}: {parse_index(text, shape)}")
    texts["indexes"] = "\n".join(lines)
    lines = []
    for dtype, values in {
        "float32": (0.0, -0.0, 1.0, 1 / 3, 1e20, 123456.789, float("nan"), float("-inf")),
        "int64": (0, -1, 255), "int8": (-128, 5), "uint4": (9,), "int2": (-1,),
        "bool": (True, False),
        "complex64": (1 + 2j, 0j, complex("nan")), "string": (b"a\x1b", "é" * 40, b"", b'"'),
    }.items():  # fmt: skip
        for value in values:
            shown = [NumberFormat(*how).text(value, dtype) for how in ((5,), (17,), (2, True))]
            lines.append(f"{dtype} {value!r}: {shown} {grid_layout.style_of(value)}")
    texts["numbers"] = "\n".join(lines)
    recorded("layouts_of_grids", texts)
