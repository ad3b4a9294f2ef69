"""The panes of a model: shown, sized, arranged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.workspace import NARROW, SIZES, WIDE, opened


@pytest.mark.broad
@SIZES
async def test_panes_by_number_and_maximised(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        screen = session.screen
        await session.press("3")
        assert screen.panes.focused() == "parameters"
        await session.press("m")
        assert screen.parameters.display
        assert not screen.explorer.display
        assert screen.parameters.outer_size.width == size[0]
        await session.press("m")
        await session.press("1")
        assert screen.explorer.list.has_focus
        session.app.screen.set_focus(None)  # sizes may change while nothing has the keys
        screen.panes.lay_out()
        await session.pilot.pause()
        assert (session.app.focused, screen.panes.focused()) == (None, "explorer")
        assert screen.explorer.display


@pytest.mark.broad
@SIZES
async def test_sizes_change_by_key_and_are_remembered(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        before = session.screen.explorer.outer_size
        await session.press("greater_than_sign", "greater_than_sign")
        larger = session.screen.explorer.outer_size
        assert larger.area > before.area
    async with opened(chain, size) as session:
        assert session.screen.explorer.outer_size == larger
        session.screen.panes.reset_layout()
        await session.pilot.pause()
        assert session.screen.explorer.outer_size == before


@pytest.mark.broad
async def test_layouts_are_saved_and_chosen_by_name(chain: Path) -> None:
    async with opened(chain) as session:
        before = session.screen.explorer.outer_size
        session.screen.panes.save_layout()
        await session.pilot.pause()
        await session.type("mine")
        await session.press("enter")
        await session.press("less_than_sign")
        assert session.screen.explorer.outer_size != before
        session.screen.panes.choose_layout()
        await session.pilot.pause()
        await session.press("1")
        assert session.screen.explorer.outer_size == before


@pytest.mark.broad
@SIZES
async def test_panes_are_hidden_moved_and_remembered(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        screen = session.screen
        await session.press("underscore")
        assert not screen.explorer.display
        assert screen.graph.has_focus_within  # never on what is not seen
        await session.press("3", "ctrl+left")
        assert screen.panes.area.children[-1] is screen.findings
        places = [screen.parameters.region, screen.graph.region]
        assert places[0].offset < places[1].offset if size == WIDE else places[0].y < places[1].y
    async with opened(chain, size, pane="") as session:
        screen = session.screen
        assert not screen.explorer.display
        assert screen.graph.has_focus_within
        places = [screen.parameters.region, screen.graph.region]
        assert (places[0].y, places[0].x) < (places[1].y, places[1].x)
        assert "1×nodes" in session.text
        await session.press("1")
        assert screen.explorer.list.has_focus
        screen.panes.reset_layout()
        await session.pilot.pause()
        assert [pane.id for pane in screen.panes.area.children] == [
            "explorer", "graph", "parameters", "findings",
        ]  # fmt: skip


@pytest.mark.broad
async def test_the_last_pane_is_not_hidden(chain: Path) -> None:
    async with opened(chain) as session:
        await session.press("underscore", "underscore", "underscore")
        shown = [pane for pane in session.screen.panes.area.children if pane.display]
        assert shown == [session.screen.parameters, session.screen.findings]
        assert session.screen.parameters.has_focus_within
        session.screen.panes.show_all()
        await session.pilot.pause()
        assert session.screen.explorer.display
        assert session.screen.parameters.display


@pytest.mark.broad
async def test_without_a_focus_the_keys_are_the_explorers(chain: Path) -> None:
    async with opened(chain) as session:
        screen = session.screen
        screen.set_focus(None)
        before = screen.explorer.outer_size.area
        screen.panes.grow()
        await session.pilot.pause()
        assert screen.explorer.outer_size.area > before
        screen.panes.maximise()
        await session.pilot.pause()
        shown = [pane.id for pane in screen.panes.area.children if pane.display]
        assert shown == ["explorer"]


@pytest.mark.broad
async def test_the_border_between_panes_can_be_dragged(chain: Path) -> None:
    async with opened(chain) as session:
        border = session.screen.explorer.region.right - 1
        await session.pilot.mouse_down(session.screen.panes.area, offset=(border, 20))
        await session.pilot.hover(session.screen.panes.area, offset=(60, 20))
        await session.pilot.mouse_up(session.screen.panes.area, offset=(60, 20))
        assert abs(session.screen.explorer.region.right - 60) <= 1


@pytest.mark.broad
async def test_size_change_switches_between_stacked_and_side_by_side(chain: Path) -> None:
    async with opened(chain, WIDE) as session:
        explorer, parameters = session.screen.explorer, session.screen.parameters
        assert explorer.region.y == parameters.region.y
        await session.pilot.resize_terminal(*NARROW)
        await session.until(lambda: parameters.region.y > explorer.region.y)
        assert explorer.region.width == NARROW[0]


@pytest.mark.broad
@SIZES
async def test_tab_reaches_every_pane(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        panes = session.screen.panes
        seen = [panes.focused()]
        for _ in range(2):
            await session.press("tab")
            seen.append(panes.focused())
        assert sorted(seen) == ["explorer", "graph", "parameters"]
        await session.press("shift+tab")
        assert panes.focused() == seen[1]
        assert "1 Layers" in session.text or "2 Graph" in session.text
