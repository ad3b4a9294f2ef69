"""The graph in the workspace: marks, mouse, menu, colours, boxes that are moved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest
from textual.geometry import Offset

from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.metadata import position_of
from dld_tui.core.report.report import Report
from dld_tui.screens.home.palette import ContextMenu
from tests.support import models
from tests.support.graph_session import at, fold, named, to_graph
from tests.support.pages import TextPage
from tests.support.report_files import make_report
from tests.support.workspace import NARROW, SIZES, WIDE, Session, opened


@pytest.mark.broad
@SIZES
async def test_the_cursor_goes_onto_links_and_edits_them(
    chain: Path, size: tuple[int, int]
) -> None:
    async with opened(chain, size) as session:
        graph = session.screen.graph
        first = session.screen.document.main.nodes[0]
        await to_graph(session, first.name)
        await session.press("semicolon")
        link = session.screen.navigation.cursor.link
        assert link is not None
        assert link.value == first.outputs[0]
        assert re.search("[┃┏┓┗┛╋┻┳┣┫]", session.text)
        assert "link " in str(graph.border_subtitle)
        await session.press("right")
        other = session.screen.navigation.cursor.link
        assert other is not None
        assert other != link
        await session.press("left", "down")
        assert graph.links.link is None
        assert graph.node is link.node
        await session.press("left_square_bracket")
        assert graph.node is first
        await session.press("semicolon", "escape")
        assert graph.links.link is None
        assert graph.node is first
        # Insert on the link: only the one node takes the new value.
        await session.press("semicolon", "I")
        await session.type("Relu")
        await session.press("enter")
        taker = named(session, "second")
        await session.until(lambda: taker.inputs[link.index] != link.value)
        assert other.node is None or other.node.inputs[other.index] == other.value


@pytest.mark.broad
@SIZES
async def test_marks_are_the_explorers_in_every_view(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await to_graph(session, "second")
        await session.press("space")
        await session.until(lambda: session.screen.explorer.marked == [named(session, "second")])
        assert re.search("• *Add", session.text)
        assert "1 marked" in session.screen.graph.frame.keys
        await session.press("v", "space")
        await session.until(lambda: session.screen.explorer.marked == [])
        session.screen.selection.set_marks([named(session, "third"), named(session, "last")])
        await session.pilot.pause()
        assert "2 marked" in session.screen.graph.frame.keys
        await session.press("escape")
        await session.until(lambda: session.screen.explorer.marked == [])


@pytest.mark.broad
async def test_a_fold_is_marked_as_a_whole_and_deleted(layers: Path) -> None:
    async with opened(layers) as session:
        await to_graph(session)
        session.screen.graph.list.go_to_key(fold(session))
        await session.press("space")
        await session.until(lambda: len(session.screen.explorer.marked) == 12 * 5)
        assert "•60" in session.text
        await session.press("delete", "d")
        assert [node.name for node in session.screen.document.main.nodes] == ["/stem", "/head"]
        assert session.screen.graph.list.marks == set()


@pytest.mark.broad
@SIZES
async def test_a_click_on_a_box_and_the_menu(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await to_graph(session, "first")
        canvas = session.screen.graph.canvas
        assert canvas.drawing is not None
        box = canvas.drawing.box(canvas.drawing.graph.names.index("second"))
        where = Offset(box.x + 1, box.y + 1) + canvas.content_region.offset
        where += Offset(canvas._indent, 0) - canvas.scroll_offset
        await session.pilot.click(offset=where)
        await session.settle()
        assert at(session) == "second"
        await session.pilot.click(offset=where, button=3)
        await session.until(lambda: isinstance(session.app.screen, ContextMenu))
        assert "Add second" in session.text
        await session.press("r", "ctrl+u")
        await session.type("other")
        await session.press("enter")
        assert named(session, "other").op_type == "Add"


@pytest.mark.broad
@SIZES
async def test_the_menu_key_offers_what_the_explorer_does(
    layers: Path, size: tuple[int, int]
) -> None:
    async with opened(layers, size) as session:
        await to_graph(session, "/stem")
        await session.press("full_stop")
        await session.until(lambda: isinstance(session.app.screen, ContextMenu))
        assert "Neg /stem" in session.text


@pytest.mark.broad
async def test_inputs_and_outputs_of_the_graph_are_edited_on_it(chain: Path) -> None:
    async with opened(chain, NARROW, pane="") as session:
        main = session.screen.document.main
        assert session.screen.graph.has_focus_within
        await session.press("g")
        assert session.screen.model.cursor.place == ("boundary", "input x")
        await session.press("r", "ctrl+u", *"rays", "enter")
        assert main.inputs[0] == "rays"
        await session.press("e", "ctrl+u")
        await session.type("f32[7,N]")
        await session.press("enter")
        known = main.value_type("rays")
        assert known is not None
        assert known.dims == (7, "N")
        await session.press("right_square_bracket")
        assert session.screen.graph.node in [use.node for use in main.users("rays")]
        await session.press("g", "d")
        assert not main.inputs
        await session.press("u")
        assert [*main.inputs] == ["rays"]


@pytest.mark.broad
async def test_overlays_cycle_and_are_kept_through_an_edit(layers: Path) -> None:
    from dld_tui.core.model.edits import renaming

    async with opened(layers) as session:
        await to_graph(session, "/stem")
        await session.press("percent_sign")
        assert "overview · precision" in session.screen.graph.frame.title
        assert "· precision" in session.text
        await session.press("percent_sign")
        assert "· weights 192 B" in session.text
        session.screen.history.try_edit(renaming.rename_node(scope=[], node="/head", name="end"))
        await session.settle()
        assert "· weights 192 B" in session.text
        await session.press("percent_sign")
        assert "weights" not in session.screen.graph.frame.title


def says(session: Session, text: str) -> bool:
    return text in session.screen.graph.frame.title


class Profile(TextPage):
    """A tab that knows the time of each node."""

    knows_times = True

    def node_times(self, document: Document) -> tuple[Mapping[Node, float], str] | None:
        return {node: 0.25 for node in document.main.nodes}, self.tab_title


@pytest.mark.broad
async def test_the_newest_profile_is_the_heat_until_other_colours_are_chosen(layers: Path) -> None:
    async with opened(layers) as session:
        await to_graph(session, "/stem")
        assert "time" not in session.screen.graph.frame.title
        for name in ("first", "newest"):
            session.app.add_page(Profile(name))
            await session.pilot.pause()
            session.app.show_page(session.screen)
            said = f"in {name}"
            await session.until(partial(says, session, said))
        count = len(session.screen.document.main.nodes)
        assert f"· time {0.25 * count:.3f} ms in newest" in session.screen.graph.frame.title
        figures = session.screen.explorer.model.figures
        assert figures is not None
        assert (figures.title, set(figures.values.values())) == ("time", {0.25})
        assert "0.250 ms" in session.text
        while "time" in session.screen.graph.frame.title:
            await session.press("percent_sign")
        assert session.screen.explorer.model.figures is None
        shown = session.screen.graph.frame.title
        session.app.add_page(Profile("third"))
        await session.pilot.pause()
        session.app.show_page(session.screen)
        await session.pilot.pause()
        await session.settle()
        assert session.screen.graph.frame.title == shown


async def test_a_profile_beside_the_model_is_the_heat_of_a_graph_that_is_opened(
    layers: Path,
) -> None:
    report = make_report(layers.with_suffix(".dldprof"), 2, names=["/stem", "/head"], model=layers)
    with Report.open(report) as measured:
        times = [layer.time_ms or 0.0 for layer in measured.layers]
    async with opened(layers) as session:
        await session.until(partial(says, session, f"in {report.name}"))
        assert f"· time {sum(times):.3f} ms" in session.screen.graph.frame.title
        figures = session.screen.explorer.model.figures
        assert figures is not None
        shown = {node.name: value for node, value in figures.values.items()}
        assert shown == {"/stem": times[0], "/head": times[1]}


@pytest.mark.broad
async def test_findings_are_at_their_nodes(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[third] c = Mul(b, b)", "[third] c = Mul(b, nowhere)")
    async with opened(models.write(tmp_path, text)) as session:
        await session.until(lambda: session.screen.checks.is_checked)
        await to_graph(session, "third")
        assert "Mul✖" in session.text.replace(" ", "")


@pytest.mark.broad
@SIZES
async def test_a_box_is_moved_kept_and_arranged_again(
    branches: Path, size: tuple[int, int]
) -> None:
    async with opened(branches, size) as session:
        await to_graph(session, "pre")
        canvas = session.screen.graph.canvas
        node = named(session, "pre")
        await session.press("shift+right", "shift+right")
        await session.until(lambda: position_of(node) == (8, 0))
        assert at(session) == "pre"
        await session.press("shift+left", "shift+down", "shift+down", "shift+up")
        await session.until(lambda: position_of(node) == (4, 1))
        moved = canvas.drawing
        assert moved is not None
        session.screen.graph.action_arrange()
        await session.until(lambda: position_of(node) is None)
        await session.press("u")
        assert position_of(node) == (4, 1)
        assert canvas.drawing is not None
        assert canvas.drawing.layout.boxes == moved.layout.boxes


CONSTANTS = """
<ir_version: 8, opset_import: ["" : 17]>
table (float[2] x) => (float[2] y) <float[2] t = {1, 2}> {
  [half] h = Neg(t)
  [plus] y = Add(x, h)
}
"""


async def test_a_search_says_that_constants_are_not_shown(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, CONSTANTS)) as session:
        await to_graph(session, "plus")
        for shown, last in ((False, "Not found: half. C shows constants, too"), (True, "")):
            session.app.clear_notifications()
            await session.press("slash")
            await session.type("half")
            await session.press("enter")
            said = [notice.message for notice in session.app._notifications]
            assert said[-1:] == ([last] if last else []), shown
            await session.press("C")


@pytest.mark.broad
async def test_a_box_is_dragged_with_the_mouse_over_what_it_takes_from(branches: Path) -> None:
    async with opened(branches, WIDE) as session:
        await to_graph(session, "pre")
        canvas, node = session.screen.graph.canvas, named(session, "pre")
        before = canvas.drawing
        assert before is not None
        box = before.box(canvas.cursor)
        here = Offset(box.x + canvas._indent + 2, box.y) - canvas.scroll_offset
        there = here + Offset(-11, 3)
        await session.pilot.mouse_down(canvas, here)
        await session.pilot.hover(canvas, there)
        assert position_of(node) is None
        await session.pilot.mouse_up(canvas, there)
        await session.until(lambda: position_of(node) == (-11, 3))
        assert at(session) == "pre"
        await session.press("shift+up", "shift+up", "shift+up", "shift+up")
        await session.until(lambda: position_of(node) == (-11, -1))
        await session.press("u", "u", "u", "u", "u")
        assert position_of(node) is None
        assert canvas.drawing is not None
        assert canvas.drawing.layout.boxes == before.layout.boxes
