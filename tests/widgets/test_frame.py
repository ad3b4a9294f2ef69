from __future__ import annotations

from dld_tui.widgets.lists.line_view import LineView
from dld_tui.widgets.shell.frame import Choices
from tests.support.tui import ESCAPE, HOSTILE, HostApp, rows_of


class Pane(LineView):
    pass


async def test_the_focus_shows_in_weight_and_colour() -> None:
    first, second = Pane(), Pane()
    first.frame.show("One")
    second.frame.show("Two")
    app = HostApp(first, second)
    async with app.run_test(size=(40, 12)) as pilot:
        assert rows_of(app)[0].startswith("┏━ One")
        assert rows_of(app)[6].startswith("┌─ Two")
        await pilot.press("tab")
        await pilot.pause()
        assert rows_of(app)[0].startswith("┌─ One")
        assert rows_of(app)[6].startswith("┏━ Two")


async def test_a_title_is_text_and_gives_way_to_what_one_can_choose_from() -> None:
    pane = Pane()
    pane.frame.show(HOSTILE + ESCAPE, "[b]keys[/b]")
    app = HostApp(pane)
    async with app.run_test(size=(60, 6)) as pilot:
        # A title is text.
        row = rows_of(app)[0]
        assert HOSTILE + "\\x1b]0;x\\x07" in row
        assert "[b]keys[/b]" in row
        # A long title gives way to what one can choose from.
        choices = Choices("Graph · time in a report with a long name", "v", ("rows", "boxes"), 1)
        pane.frame.show("Graph", "v view", choices)
        assert rows_of(app)[0].endswith(" v rows boxes ━┓")
        assert "Graph · time in a report" in rows_of(app)[0]
        await pilot.resize_terminal(30, 6)
        assert rows_of(app)[0].endswith(" v view ━┓")
