"""Where panes are: arithmetic."""

from __future__ import annotations

import pytest

from dld_tui.screens.workspace_layout import (
    DEFAULT_SHARES,
    EXPLORER,
    FINDINGS,
    GRAPH,
    PARAMETERS,
    WIDE,
    WIDEST,
    Layout,
    arrange,
    grow,
)

ALL = (EXPLORER, GRAPH, PARAMETERS, FINDINGS)


def test_wide_panes_fill_the_width_and_findings_take_what_they_need() -> None:
    found = arrange(Layout(), 200, 48, ALL, findings=5)
    assert found.wide
    assert sum(found.columns.values()) == 200
    assert found.rows == {FINDINGS: 5}
    many = arrange(Layout(), 200, 48, ALL, findings=500)
    assert many.rows[FINDINGS] == round(48 * DEFAULT_SHARES["findings rows"])


def test_narrow_panes_fill_the_height() -> None:
    for main in ALL:
        found = arrange(Layout(main=main), 80, 22, ALL)
        assert sum(found.rows.values()) == 22
        assert main in found.rows
        assert len(found.rows) == 2


def test_a_pane_with_nothing_to_show_is_not_the_main_one() -> None:
    found = arrange(Layout(main=FINDINGS), 80, 22, (EXPLORER, PARAMETERS))
    assert set(found.rows) == {EXPLORER, PARAMETERS}


@pytest.mark.parametrize("size", [(80, 22), (200, 48)])
def test_a_maximised_pane_has_all_the_room(size: tuple[int, int]) -> None:
    found = arrange(Layout(maximised=PARAMETERS), *size, ALL)
    assert set(found.shown) == {PARAMETERS}
    assert found.rows[PARAMETERS] == size[1]


@pytest.mark.parametrize("pane", ALL)
@pytest.mark.parametrize("size", [(80, 22), (200, 48)])
def test_growing_is_undone_by_shrinking_and_stops_at_the_edges(
    pane: str, size: tuple[int, int]
) -> None:
    layout = Layout(main=pane)
    before = arrange(layout, *size, ALL)
    grow(layout, pane, 2, *size)
    grown = arrange(layout, *size, ALL)
    assert {**grown.columns, **grown.rows}[pane] == {**before.columns, **before.rows}[pane] + 2
    grow(layout, pane, -2, *size)
    assert arrange(layout, *size, ALL) == before
    for _ in range(200):
        grow(layout, pane, 5, *size)
    full = arrange(layout, *size, ALL)
    assert all(cells >= 4 for cells in {**full.columns, **full.rows}.values())


def test_remembered_sizes_come_back_and_nonsense_does_not() -> None:
    layout = Layout()
    grow(layout, EXPLORER, 10, 200, 48)
    other = Layout()
    other.load(layout.to_json())
    assert other.shares == layout.shares
    other.load({"shares": {"explorer columns": 7.0, "x": 0.5, "main rows": "a"}})
    assert other.shares == layout.shares
    other.load({"shares": None})
    other.reset()
    assert other.shares == dict(DEFAULT_SHARES)


@pytest.mark.parametrize("size", [(1, 1), (30, 5), (100, 6)])
def test_tiny_screens_do_not_break(size: tuple[int, int]) -> None:
    found = arrange(Layout(), *size, ALL, findings=3)
    assert all(cells >= 0 for cells in {**found.columns, **found.rows}.values())


def test_three_panes_are_side_by_side_from_a_width_on() -> None:
    assert set(arrange(Layout(), WIDEST, 40, ALL).columns) == {EXPLORER, GRAPH, PARAMETERS}
    assert set(arrange(Layout(), WIDEST - 1, 40, ALL).columns) == {EXPLORER, PARAMETERS}
    assert set(arrange(Layout(left=GRAPH), WIDEST - 1, 40, ALL).columns) == {GRAPH, PARAMETERS}
    assert not arrange(Layout(), WIDE - 1, 40, ALL).wide


@pytest.mark.parametrize("width", [WIDEST, 147, 200, 301])
def test_three_panes_fill_the_width_however_they_are_grown(width: int) -> None:
    layout = Layout()
    for pane in (EXPLORER, GRAPH, PARAMETERS, GRAPH):
        for _ in range(30):
            grow(layout, pane, 7, width, 40)
            columns = arrange(layout, width, 40, ALL).columns
            assert sum(columns.values()) == width
            assert all(cells >= 20 for cells in columns.values())


def test_the_graph_is_the_main_pane_of_a_narrow_screen_when_it_is_chosen() -> None:
    found = arrange(Layout(main=GRAPH), 80, 22, ALL)
    assert set(found.rows) == {GRAPH, PARAMETERS}
    assert found.rows[GRAPH] > found.rows[PARAMETERS]
