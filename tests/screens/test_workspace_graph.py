"""The graph in the workspace: in step with the explorer, drawn again after edits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from unittest import mock

import pytest
from textual.geometry import Offset
from textual.widgets import Input

from dld_tui.core.model import edits
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.metadata import position_of
from dld_tui.core.model.graph.pictures import style
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.report.report import Report
from dld_tui.screens.model.graph_picture import shown_in
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, FieldsDialog, OpenPathDialog
from dld_tui.widgets.graph import row_list
from dld_tui.widgets.graph.boxes import AT_ONCE
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.state import GraphView
from tests.support import models
from tests.support.graph_session import at, fold, named, shown, to_graph, view
from tests.support.pages import TextPage
from tests.support.report_files import make_report
from tests.support.workspace import NARROW, WIDE, Session, opened


async def walk(session: Session, *checks: Callable[[Session], Awaitable[None]]) -> None:
    """Make checks, each from the overview of a model just opened."""
    for check in checks:
        await check(session)
        await session.reset()
        session.screen.graph.switch_view(GraphView.FOLDED)
        await session.settle()


CONSTANTS = """
<ir_version: 10, opset_import: ["" : 18]>
constants (float[N] x) => (float[N] y)
{
    [one] c = Constant <value_float = 1.0> ()
    [two] d = Constant <value_float = 2.0> ()
    [first] s = Add(x, c)
    [out] y = Mul(s, d)
}
"""


async def test_the_constants_of_one_node_are_shown_in_list_and_graph(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, CONSTANTS)) as session:
        assert {"one", "two"}.isdisjoint(shown(session).graph.names)
        assert "2 of 4 nodes" in session.text
        assert session.text.count("2 of 4") == 2  # in Layers, too
        await session.go("first")
        session.screen.node_list.toggle_constant()
        await session.settle()
        assert session.screen.model.cursor.node is named(session, "first")
        assert "one" in "".join(session.rows)
        assert "3 of 4 nodes" in session.text
        assert "one" in shown(session).graph.names
        assert "two" not in shown(session).graph.names
        await to_graph(session, "one")
        session.screen.node_list.toggle_constant()
        await session.settle()  # the constant that the cursor is on
        assert {"one", "two"}.isdisjoint(shown(session).graph.names)
        assert session.screen.graph.has_focus_within
        assert at(session) == "first"
        for told in (["Not found: one. C shows constants, too"], []):
            session.app.clear_notifications()
            await session.press("/")
            await session.type("one", "enter")
            assert session.told[-1:] == told
            await session.press("C")


async def a_click_on_the_name_of_a_view_switches_to_it(session: Session) -> None:
    await to_graph(session, "/layers.3/gate")
    for clicked in (GraphView.CANVAS, GraphView.FOCUS, GraphView.RAIL, GraphView.FOLDED):
        lines = session.text.split("\n")
        row = next(at for at, line in enumerate(lines) if "v overview rail" in line)
        column = lines[row].index(clicked.value, lines[row].index("v overview rail"))
        await session.pilot.click(offset=(column + 1, row))
        await session.until(lambda: view(session) is clicked)  # noqa: B023
        assert session.screen.graph.has_focus_within
        assert at(session) == "/layers.3/gate"
        content = session.screen.graph._border_title
        assert content is not None
        chosen = [span for span in content.spans if getattr(span.style, "reverse", False)]
        shown = [content.plain[span.start : span.end] for span in chosen]
        assert [name.split()[0] for name in shown] == [clicked.value]


@pytest.mark.broad
async def test_the_grid_is_shown_and_remembered(chain: Path) -> None:
    async with opened(chain) as session:
        await to_graph(session, "second")
        before = session.text
        await session.press("#")
        assert session.text.count("·") > before.count("·") + 20
    async with opened(chain) as session:
        await to_graph(session, "second")
        assert session.text.count("·") > before.count("·") + 20
        await session.press("#")
        assert session.text.count("·") == before.count("·")


async def ways_between_marked_nodes_and_the_cursor(session: Session) -> None:
    await to_graph(session, "/layers.3/norm")
    session.screen.graph.action_show_path()
    await session.settle()
    assert view(session) is GraphView.FOLDED
    assert "Mark one or two nodes" in session.told[-1]
    await session.press("space")
    await session.go("/layers.3/join", "2")
    session.screen.graph.action_show_path()
    await session.settle()
    assert view(session) is GraphView.FOCUS
    boxes = session.screen.graph.canvas.drawing
    assert boxes is not None
    names = {name.rpartition("/")[2] for name in boxes.graph.names}
    assert names == {"norm", "scale", "gate", "join"}
    session.screen.selection.set_marks(named(session, f"/layers.3/{n}") for n in ("norm", "gate"))
    await session.pilot.pause()
    session.screen.graph.action_show_path()
    await session.settle()
    assert "focus ways" in session.text
    assert session.screen.graph.canvas.drawing is not None
    assert len(session.screen.graph.canvas.drawing.graph) == 2


async def commands_act_on_the_graphs_node_when_a_filter_hides_it(session: Session) -> None:
    await session.press("/")
    await session.type("Tanh", "enter")
    await to_graph(session)
    await session.press("g")
    while at(session) != "/stem":
        await session.press("down")
    await session.press("r", "ctrl+u")
    await session.type("renamed", "enter")
    assert named(session, "renamed").op_type == "Neg"


async def no_node_is_acted_on_at_a_fold(session: Session) -> None:
    await to_graph(session, "/stem")
    session.screen.graph.list.go_to_key(fold(session))
    await session.settle()
    assert session.screen.model.cursor.node is None
    await session.press("delete")
    assert not session.screen.document.dirty


async def the_cursor_comes_back_to_the_fold_it_was_on(session: Session) -> None:
    await to_graph(session)
    pane = session.screen.graph
    folds = [row.fold for row in shown(session).rows if row.fold is not None]
    assert folds
    for item in folds:
        pane.list.go_to_key(item)
        await session.pilot.pause()
        place = pane.place
        assert place is not None
        pane.list.cursor = 0 if pane.list.cursor else 1
        await session.pilot.pause()
        assert pane.fold is not item
        pane.return_to(place)
        await session.settle()
        assert pane.fold is item


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a graph open with its folds, however large the pane is."""
    monkeypatch.setattr(row_list, "_FILLED", 0)


@pytest.mark.usefixtures("folded")
async def test_a_picture_holds_what_its_view_shows(layers: Path) -> None:
    async with opened(layers) as session:
        pane = session.screen.graph
        boxes = {}
        for view in GraphView:
            shown(session).set_view(view)
            content = shown_in(pane, "title", as_rows=False)
            assert isinstance(content, Content)
            boxes[view] = len(content.graph)
        whole = len(shown(session).graph)
        assert boxes[GraphView.RAIL] == whole
        assert boxes[GraphView.FOLDED] == boxes[GraphView.CANVAS] < whole
        assert boxes[GraphView.FOCUS] < whole


async def an_edit_keeps_folds_and_the_cursor_on_a_fold(session: Session) -> None:
    await to_graph(session, "/layers.3/gate")
    pane = session.screen.graph
    pane.list.go_to_key(fold(session))
    await session.settle()
    session.screen.history.try_edit(edits.renaming.rename_node(scope=[], node="/head", name="end"))
    await session.settle()
    assert pane.fold is fold(session)
    assert shown(session).overview.is_open(fold(session))


async def graph_and_explorer_follow_each_other(session: Session) -> None:
    for name in ("/layers.5/join", "/stem", "/layers.11/skip"):
        await session.go(name)
        assert at(session) == name
    await to_graph(session, "/layers.5/norm")
    for _ in range(3):
        await session.press("down")
        assert session.screen.explorer.node is session.screen.graph.node
        assert session.screen.model.cursor.subject is session.screen.graph.node
    assert at(session) != "/layers.5/norm"


@pytest.mark.broad
@pytest.mark.usefixtures("folded")
async def test_views_folds_and_cursors_of_layers(layers: Path) -> None:
    async with opened(layers) as session:
        await walk(
            session,
            the_cursor_comes_back_to_the_fold_it_was_on,
            no_node_is_acted_on_at_a_fold,
            an_edit_keeps_folds_and_the_cursor_on_a_fold,
            a_click_on_the_name_of_a_view_switches_to_it,
            ways_between_marked_nodes_and_the_cursor,
            graph_and_explorer_follow_each_other,
            commands_act_on_the_graphs_node_when_a_filter_hides_it,
        )


async def edits_and_undo_draw_the_graph_again(session: Session) -> None:
    await to_graph(session, "second")
    third = named(session, "third")
    session.screen.editing.delete_nodes([third], reconnect=True)
    await session.settle()
    assert "Mul" not in session.text.split("┏")[1]
    assert at(session) == "second"
    await session.press("u")
    assert shown(session).drawn.vertex(third) is not None
    session.screen.editing.delete_nodes([named(session, "second")], reconnect=False)
    await session.settle()
    assert session.screen.graph.node in session.screen.document.main.nodes


async def a_box_of_the_drawing_before_an_edit_is_not_looked_up_in_the_next(
    session: Session,
) -> None:
    await to_graph(session, "third")
    pane, said = session.screen.graph, list[object]()
    former = pane.canvas.drawing
    assert former is not None
    session.screen.editing.delete_nodes([named(session, "first")], reconnect=True)
    await session.settle()
    # As from a key before the edit: this is the number of another box now.
    moved = GraphCanvas.CursorMoved(former, former.graph.names.index("third"))
    with mock.patch.object(pane, "say_selected", said.append):
        pane.box_reached(moved)
    assert said == [named(session, "third")]


async def inputs_get_their_names_when_the_schemas_are_read(session: Session) -> None:
    boxes = session.screen.graph.boxes
    drawing = mock.Mock()
    with mock.patch.multiple(boxes.canvas, drawing=drawing, refresh=mock.DEFAULT) as patched:
        boxes.name_ports()
    drawing.name_ports.assert_called_once_with()
    patched["refresh"].assert_called_once_with()


@pytest.mark.broad
async def test_subgraphs_and_functions_are_drawn_when_they_are_entered(
    branches: Path, tmp_path: Path
) -> None:
    async with opened(branches) as session:
        inner = await session.go("inner")
        assert shown(session).scope is inner.scope
        assert "then_branch" in session.screen.graph.frame.title
        assert at(session) == "inner"
        session.screen.editing.delete_nodes([named(session, "choose")], reconnect=False)
        await session.settle()
        assert shown(session).scope is session.screen.document.main
    async with opened(models.write(tmp_path, models.FUNCTIONS)) as session:
        await session.go("call")
        assert any(row.startswith("function") for row in session.details)
        await session.press("s")
        assert session.rows == ["twice", "Add  sum"]
        assert shown(session).scope.kind == "function"


@pytest.mark.broad
async def test_a_short_graph_opens_its_blocks_until_the_pane_is_full(layers: Path) -> None:
    rows = {}
    for size in (NARROW, WIDE):
        async with opened(layers, size) as session:
            rows[size] = len(shown(session).rows)
            folds = [row.fold for row in shown(session).rows if row.fold and not row.is_open]
            room = session.screen.graph.list.size.height - rows[size]
            assert all(fold.rows_inside > room for fold in folds)
    assert rows[NARROW] < rows[WIDE]


async def test_a_large_canvas_is_drawn_beside_the_work(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.layered(70))
    async with opened(path, NARROW) as session:
        await to_graph(session, "/layers.60/gate")
        graph = session.screen.graph
        vertex = graph.cursor_vertex
        shown(session).overview.open_all()
        shown(session).set_view(GraphView.CANVAS)
        graph.show_view(vertex)
        assert graph.list.display  # there are no boxes yet
        assert at(session) == "/layers.60/gate"
        graph.reveal(named(session, "/layers.20/gate"))
        await session.until(lambda: graph.canvas.display)
        assert len(graph.boxes.items) > AT_ONCE
        assert graph.canvas.has_focus
        assert at(session) == "/layers.20/gate"
        # What is asked for last is shown, with the cursor where it was.
        graph.boxes.zoom_in()
        graph.boxes.zoom_out()
        await session.press("v")  # it waits until the boxes are drawn
        await session.until(lambda: graph.list.display)
        assert at(session) == "/layers.20/gate"


async def a_fold_is_marked_as_a_whole_and_deleted(session: Session) -> None:
    await to_graph(session)
    session.screen.graph.list.go_to_key(fold(session))
    await session.press("space")
    await session.until(lambda: len(session.screen.explorer.marked) == 12 * 5)
    assert "•60" in session.text
    await session.press("delete", "d")
    assert [node.name for node in session.screen.document.main.nodes] == ["/stem", "/head"]
    assert session.screen.graph.list.marks == set()


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
        await session.type("f32[7,N]", "enter")
        known = main.value_type("rays")
        assert known is not None
        assert known.dims == (7, "N")
        await session.press("]")
        assert session.screen.graph.node in [use.node for use in main.users("rays")]
        await session.press("g", "d")
        assert not main.inputs
        await session.press("u")
        assert [*main.inputs] == ["rays"]


async def overlays_cycle_and_are_kept_through_an_edit(session: Session) -> None:
    await to_graph(session, "/stem")
    await session.press("%")
    assert "overview · precision" in session.screen.graph.frame.title
    assert "· precision" in session.text
    await session.press("%")
    assert "· weights 192 B" in session.text
    session.screen.history.try_edit(edits.renaming.rename_node(scope=[], node="/head", name="end"))
    await session.settle()
    assert "· weights 192 B" in session.text
    await session.press("%")
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
            await session.until(partial(says, session, f"in {name}"))
        count = len(session.screen.document.main.nodes)
        assert f"· time {0.25 * count:.3f} ms in newest" in session.screen.graph.frame.title
        figures = session.screen.explorer.model.figures
        assert figures is not None
        assert (figures.title, set(figures.values.values())) == ("time", {0.25})
        assert "0.250 ms" in session.text
        while "time" in session.screen.graph.frame.title:
            await session.press("%")
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


async def a_box_is_moved_kept_and_arranged_again(session: Session) -> None:
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


async def a_box_is_dragged_with_the_mouse_over_what_it_takes_from(session: Session) -> None:
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


@pytest.mark.broad
async def test_a_chain_in_the_graph(chain: Path) -> None:
    async with opened(chain) as session:
        await session.in_turn(
            edits_and_undo_draw_the_graph_again,
            a_box_of_the_drawing_before_an_edit_is_not_looked_up_in_the_next,
            inputs_get_their_names_when_the_schemas_are_read,
        )


@pytest.mark.broad
async def test_layers_in_the_graph(layers: Path) -> None:
    async with opened(layers) as session:
        await session.in_turn(
            a_fold_is_marked_as_a_whole_and_deleted,
            overlays_cycle_and_are_kept_through_an_edit,
        )


@pytest.mark.broad
async def test_boxes_that_are_moved(branches: Path) -> None:
    async with opened(branches) as session:
        await session.in_turn(
            a_box_is_moved_kept_and_arranged_again,
            a_box_is_dragged_with_the_mouse_over_what_it_takes_from,
        )


async def save_as(session: Session, path: Path) -> None:
    session.screen.graphs.save_picture()
    await session.front(OpenPathDialog)
    await session.retype(str(path), "enter")


async def test_the_picture_of_each_view_is_saved(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        session.screen.graphs.save_picture()
        target = Path((await session.front(OpenPathDialog)).query_one(Input).value)
        assert target == chain.with_suffix(".svg")
        await session.press("enter")
        await session.front(FieldsDialog)
        await session.press(
            *"none", "tab", "right", "tab", "right", "shift+tab", "shift+tab", "enter"
        )
        await session.until(lambda: target.exists() and target.stat().st_size)
        text = target.read_text(encoding="utf-8")
        for part in ("url(#grid)", ">Sigmoid</text>", "f32[N,4]", style.SCHEMES["light"].ink):
            assert part in text
        assert f'fill="{style.SCHEMES["light"].background}"' not in text
        found = {}
        for view in GraphView:
            shown(session).set_view(view)
            session.screen.graph.show_view(shown(session).overview.rails.order[2])
            target = chain.with_name(f"{view.value}.txt")
            await save_as(session, target)
            await session.until(lambda at=target: at.exists() and at.stat().st_size)  # type: ignore[misc]
            found[view] = target.read_text(encoding="utf-8")
        assert "│ Add │" in found[GraphView.CANVAS]
        assert "⋯" in found[GraphView.FOCUS] or "Add" in found[GraphView.FOCUS]
        assert "│" not in found[GraphView.RAIL]
        assert "second" in found[GraphView.RAIL]
        assert "second" in found[GraphView.FOLDED]


@pytest.mark.broad
async def test_a_picture_replaces_nothing_unasked_and_says_what_is_wrong(chain: Path) -> None:
    target = chain.with_suffix(".png")
    target.write_bytes(b"mine")
    async with opened(chain) as session:
        await save_as(session, target)
        await session.front(ChoiceDialog)
        await session.press("a")
        await session.front(OpenPathDialog)
        assert target.read_bytes() == b"mine"
        await session.press("enter")
        await session.front(ChoiceDialog)
        await session.press("o")
        await session.front(FieldsDialog)
        await session.press("enter")
        await session.until(lambda: session.told == [f"Wrote {target}"])
        assert target.read_bytes().startswith(b"\x89PNG")
        await save_as(session, chain.parent / "nowhere" / "a.svg")
        await session.front(FieldsDialog)
        await session.press("enter")
        await session.front(ErrorDialog)
        assert "Not written" in session.text
        await session.press("escape")
        await save_as(session, chain.with_suffix(".bmp"))
        await session.front(OpenPathDialog)
        assert not chain.with_suffix(".bmp").exists()
