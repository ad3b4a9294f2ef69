from __future__ import annotations

import numpy as np
import pytest

from dld_tui.widgets.tensors.grid_layout import GridLayout, layout_of, parse_index, unravel

SHAPE = (2, 3, 4, 5)
FLAT = np.arange(120).reshape(SHAPE)


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((3, 4), (0, 1)),
        (SHAPE, (2, 3)),
        ((64, 32, 1, 1), (0, 1)),
        ((64, 1, 3, 3), (2, 3)),
        ((1, 7, 1), (1, 2)),
        ((1, 1), (0, 1)),
    ],
)
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


def test_one_dimension_is_wrapped() -> None:
    view = layout_of((23,)).wrapped_for(9)
    assert (view.rows, view.columns) == (3, 8)
    assert view.flat(2, 6) == 22
    assert view.flat(2, 7) is None
    assert (view.row_label(2), view.column_label(3)) == ("16", "+3")
    assert view.indexes(1, 1) == (9,)
    assert view.at((22,)) == (view, 2, 6)


def test_a_scalar_is_one_cell_and_no_element_is_none() -> None:
    view = layout_of(())
    assert (view.rows, view.columns, view.flat(0, 0), view.indexes(0, 0)) == (1, 1, 0, ())
    empty = layout_of((0, 4))
    assert (empty.rows, empty.columns) == (0, 0)


def test_axes_that_are_in_use_are_exchanged() -> None:
    view = layout_of(SHAPE)
    turned = view.with_axis(rows=3)
    assert (turned.row_axis, turned.column_axis) == (3, 2)
    other = view.with_axis(columns=0)
    assert (other.row_axis, other.column_axis, other.free_axes) == (2, 0, (1, 3))
    assert view.turned() == turned


def test_stepping_goes_round() -> None:
    view = layout_of(SHAPE)
    assert view.stepped(1, -1).fixed == (0, 2, 0, 0)
    assert view.stepped(1, -1).stepped(1, 1) == view


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


def test_unravel() -> None:
    assert unravel(119, SHAPE) == (1, 2, 3, 4)
    assert unravel(0, ()) == ()
