"""The panes of a model: shown, sized, arranged."""

from __future__ import annotations

from itertools import permutations

import pytest

from dld_tui.screens.workspace.layout import (
    DEFAULT_SHARES,
    EXPLORER,
    FINDINGS,
    GRAPH,
    PARAMETERS,
    WIDEST,
    Layout,
    arrange,
    border_at,
    drag,
    grow,
)
from dld_tui.screens.workspace.layout import (
    WIDE as SIDE_BY_SIDE,
)

ALL = (EXPLORER, GRAPH, PARAMETERS, FINDINGS)


def test_wide_panes_fill_the_width_and_findings_take_what_they_need() -> None:
    found = arrange(Layout(), 200, 48, ALL, findings=5)
    assert found.wide
    assert sum(found.columns.values()) == 200
    assert found.rows == {FINDINGS: 5}
    many = arrange(Layout(), 200, 48, ALL, findings=500)
    assert many.rows[FINDINGS] == round(48 * DEFAULT_SHARES["findings rows"])


def test_a_pane_with_nothing_to_show_takes_no_place_and_tiny_screens_do_not_break() -> None:
    found = arrange(Layout(lower=FINDINGS), 80, 22, (EXPLORER, PARAMETERS))
    assert set(found.rows) == {EXPLORER, PARAMETERS}
    for size in ((1, 1), (30, 5), (100, 6)):
        found = arrange(Layout(), *size, ALL, findings=3)
        assert all(cells >= 0 for cells in {**found.columns, **found.rows}.values()), size


def test_panes_stay_in_one_place_at_every_size() -> None:
    """What is seen is above, or left of, the same panes; bringing one forward moves no other."""
    for size in ((80, 22), (100, 28), (120, 33), (160, 43), (200, 48)):
        layout = Layout()
        for pane in (*ALL, *reversed(ALL)):
            before = arrange(layout, *size, ALL)
            layout.bring_forward(pane)
            after = arrange(layout, *size, ALL)
            assert (
                sum((after.columns if after.wide else after.rows).values()) == size[not after.wide]
            )
            for now, then in ((after.columns, before.columns), (after.rows, before.rows)):
                kept = now.keys() & then.keys()
                assert {name: now[name] for name in kept} == {name: then[name] for name in kept}
                assert list(now) == sorted(now, key=ALL.index)
        if size[0] >= SIDE_BY_SIDE:
            assert PARAMETERS in after.shown


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
    layout = Layout()
    layout.bring_forward(pane)
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


def test_three_panes_are_side_by_side_from_a_width_on() -> None:
    assert set(arrange(Layout(), WIDEST, 40, ALL).columns) == {EXPLORER, GRAPH, PARAMETERS}
    assert set(arrange(Layout(), WIDEST - 1, 40, ALL).columns) == {GRAPH, PARAMETERS}
    slid = Layout(upper=EXPLORER)
    assert set(arrange(slid, WIDEST - 1, 40, ALL).columns) == {EXPLORER, PARAMETERS}
    assert not arrange(Layout(), SIDE_BY_SIDE - 1, 40, ALL).wide


@pytest.mark.parametrize("width", [WIDEST, 147, 200, 301])
def test_three_panes_fill_the_width_however_they_are_grown(width: int) -> None:
    layout = Layout()
    for pane in (EXPLORER, GRAPH, PARAMETERS, GRAPH):
        for _ in range(30):
            grow(layout, pane, 7, width, 40)
            columns = arrange(layout, width, 40, ALL).columns
            assert sum(columns.values()) == width
            assert all(cells >= 20 for cells in columns.values())


@pytest.mark.parametrize("width", [SIDE_BY_SIDE, WIDEST, 200])
@pytest.mark.parametrize("hidden", [(), (EXPLORER,), (GRAPH,), (PARAMETERS,), (GRAPH, PARAMETERS)])
@pytest.mark.parametrize("order", list(permutations((EXPLORER, GRAPH, PARAMETERS))))
def test_panes_are_in_order_without_hidden_ones_and_their_borders_follow_the_mouse(
    order: tuple[str, ...], hidden: tuple[str, ...], width: int
) -> None:
    layout = Layout(order=list(order))
    assert all(layout.hide(pane) for pane in hidden)
    columns = arrange(layout, width, 40, ALL).columns
    assert list(columns) == [pane for pane in order if pane in columns]
    room_for_all = width >= WIDEST or hidden
    assert set(columns) == set(order) - set(hidden) - (set() if room_for_all else {EXPLORER})
    assert sum(columns.values()) == width
    edge = 0
    for at in range(len(columns) - 1):
        edge = sum(list(columns.values())[: at + 1])
        pane = border_at(columns, width, edge)
        assert pane == border_at(columns, width, edge - 1) != ""
        drag(layout, columns, width, pane, edge - 6)
        columns = arrange(layout, width, 40, ALL).columns
        assert sum(columns.values()) == width
        assert sum(list(columns.values())[: at + 1]) == edge - 6
    assert border_at(columns, width, 3) == border_at(columns, width, width - 3) == ""
    for pane in columns if len(columns) > 1 else ():
        before = columns[pane]
        grow(layout, pane, 4, width, 40, ALL)
        columns = arrange(layout, width, 40, ALL).columns
        assert columns[pane] == before + 4


def test_stacked_panes_without_hidden_ones_fill_the_height() -> None:
    layout = Layout()
    assert layout.hide(EXPLORER)
    assert set(arrange(layout, 80, 22, ALL).rows) == {GRAPH, PARAMETERS}
    assert layout.hide(PARAMETERS)
    assert arrange(layout, 80, 22, (EXPLORER, GRAPH, PARAMETERS)).rows == {GRAPH: 22}
    assert not layout.hide(GRAPH)
    assert layout.hide(FINDINGS)
    assert arrange(layout, 80, 22, ALL).rows == {GRAPH: 22}


def test_moving_a_pane_and_back_and_not_over_the_edge() -> None:
    layout = Layout()
    assert layout.move(PARAMETERS, -1, (EXPLORER, PARAMETERS))  # the graph is not seen
    assert layout.order == [PARAMETERS, GRAPH, EXPLORER]
    assert not layout.move(PARAMETERS, -1, (EXPLORER, PARAMETERS))
    assert not layout.move(FINDINGS, -1, ALL)
    assert layout.move(PARAMETERS, 1, ALL)
    assert layout.order == [GRAPH, PARAMETERS, EXPLORER]


def test_a_layout_is_remembered_and_nonsense_is_not() -> None:
    layout = Layout(order=[PARAMETERS, GRAPH, EXPLORER], hidden={GRAPH, FINDINGS})
    grow(layout, EXPLORER, 10, 200, 48)
    other = Layout()
    other.load(layout.to_json())
    other.load({"shares": {"left columns": 7.0, "x": 0.5, "upper rows": "a"}})
    other.load({"shares": None, "order": [GRAPH, GRAPH, EXPLORER]})
    assert (other.shares, other.order, other.hidden) == (
        layout.shares, layout.order, layout.hidden
    )  # fmt: skip
    other.load({"hidden": [EXPLORER, GRAPH, PARAMETERS, 3]})
    assert len(other.hidden) == 2, "one stays"
    other.reset()
    assert (other.shares, other.order, other.hidden) == (
        dict(DEFAULT_SHARES), [EXPLORER, GRAPH, PARAMETERS], set()
    )  # fmt: skip
