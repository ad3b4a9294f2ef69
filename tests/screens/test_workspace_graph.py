"""The graph in the workspace: in step with the explorer, drawn again after edits."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.screens.model.graph_picture import shown_in
from dld_tui.widgets.graph import row_list
from dld_tui.widgets.graph.boxes import AT_ONCE
from dld_tui.widgets.graph.canvas import GraphCanvas
from dld_tui.widgets.graph.state import GraphModel, GraphView
from tests.support import models
from tests.support.graph_session import at, fold, named, to_graph, view
from tests.support.workspace import NARROW, SIZES, WIDE, Session, opened


async def reset(session: Session) -> None:
    """Take back what a check did; show the overview."""
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
        model = session.screen.graph.model
        assert isinstance(model, GraphModel)
        assert {"one", "two"}.isdisjoint(model.graph.names)
        assert "2 of 4 nodes" in session.text
        assert session.text.count("2 of 4") == 2  # in Layers, too
        await session.go("first")
        session.screen.node_list.toggle_constant()
        await session.settle()
        assert session.screen.model.cursor.node is named(session, "first")
        assert "one" in "".join(session.rows)
        model = session.screen.graph.model
        assert isinstance(model, GraphModel)
        assert "3 of 4 nodes" in session.text
        assert "one" in model.graph.names
        assert "two" not in model.graph.names
        await to_graph(session, "one")
        session.screen.node_list.toggle_constant()
        await session.settle()  # the constant that the cursor is on
        model = session.screen.graph.model
        assert isinstance(model, GraphModel)
        assert {"one", "two"}.isdisjoint(model.graph.names)
        assert session.screen.graph.has_focus_within
        assert at(session) == "first"


async def views_cycle_and_keep_the_cursor(session: Session) -> None:
    await to_graph(session, "/layers.3/gate")
    views = []
    for _ in range(3):
        assert at(session) == "/layers.3/gate"
        await session.press("v")
        views.append(view(session))
        choices = session.screen.graph.frame.choices
        assert choices is not None
        assert choices.names[choices.chosen] == view(session).value
        assert "v overview rail canvas focus" in session.text
    assert views == [GraphView.RAIL, GraphView.CANVAS, GraphView.FOLDED]


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


async def test_a_narrow_pane_names_only_the_view_that_is_seen(layers: Path) -> None:
    async with opened(layers, (40, 15)) as session:
        await to_graph(session, "/layers.3/gate")
        assert "Graph · overview" in session.text
        assert "rail canvas" not in session.text


@SIZES
async def test_every_zoom_draws_boxes(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await to_graph(session, "second")
        assert view(session) is GraphView.CANVAS
        assert "┏" in session.text
        await session.press("minus", "minus")
        assert "▐Add▌" in session.text
        await session.press("0", "plus")
        assert "second" in session.text
        assert at(session) == "second"


@pytest.mark.broad
async def test_the_grid_is_shown_and_remembered(chain: Path) -> None:
    async with opened(chain) as session:
        await to_graph(session, "second")
        before = session.text
        await session.press("number_sign")
        assert session.text.count("·") > before.count("·") + 20
    async with opened(chain) as session:
        await to_graph(session, "second")
        assert session.text.count("·") > before.count("·") + 20
        await session.press("number_sign")
        assert session.text.count("·") == before.count("·")


async def the_focus_view_and_the_way_back(session: Session) -> None:
    await to_graph(session, "/layers.3/gate")
    await session.press("t")
    assert view(session) is GraphView.FOCUS
    assert "v overview rail canvas focus 2" in session.text
    await session.press("right_parenthesis")
    assert "v overview rail canvas focus 3" in session.text
    await session.press("left_parenthesis", "left_parenthesis")
    assert "v overview rail canvas focus 1" in session.text
    await session.press("escape")
    assert view(session) is GraphView.FOLDED
    assert at(session) == "/layers.3/gate"


async def ways_between_the_marked_node_and_the_cursor(session: Session) -> None:
    await to_graph(session, "/layers.3/norm")
    session.screen.graph.action_show_path()
    await session.settle()
    assert view(session) is GraphView.FOLDED
    assert "Mark one or two nodes" in list(session.app._notifications)[-1].message
    await session.press("space")
    await session.go("/layers.3/join")
    await session.press("2")
    session.screen.graph.action_show_path()
    await session.settle()
    assert view(session) is GraphView.FOCUS
    boxes = session.screen.graph.canvas.drawing
    assert boxes is not None
    names = {name.rpartition("/")[2] for name in boxes.graph.names}
    assert names == {"norm", "scale", "gate", "join"}


async def ways_between_two_marked_nodes(session: Session) -> None:
    await to_graph(session)
    session.screen.selection.set_marks(named(session, f"/layers.3/{n}") for n in ("norm", "gate"))
    await session.pilot.pause()
    session.screen.graph.action_show_path()
    await session.settle()
    assert "focus ways" in session.text
    assert session.screen.graph.canvas.drawing is not None
    assert len(session.screen.graph.canvas.drawing.graph) == 2


async def the_graph_follows_the_explorer(session: Session) -> None:
    for name in ("/layers.5/join", "/stem", "/layers.11/skip"):
        await session.go(name)
        assert at(session) == name


async def the_explorer_follows_the_graph(session: Session) -> None:
    await to_graph(session, "/layers.5/norm")
    for _ in range(3):
        await session.press("down")
        assert session.screen.explorer.node is session.screen.graph.node
        assert session.screen.model.cursor.subject is session.screen.graph.node
    assert at(session) != "/layers.5/norm"


async def commands_act_on_the_graphs_node_when_a_filter_hides_it(session: Session) -> None:
    await session.press("slash")
    await session.type("Tanh")
    await session.press("enter")
    await to_graph(session)
    await session.press("g")
    while at(session) != "/stem":
        await session.press("down")
    await session.press("r", "ctrl+u")
    await session.type("renamed")
    await session.press("enter")
    assert named(session, "renamed").op_type == "Neg"


async def no_node_is_acted_on_at_a_fold(session: Session) -> None:
    await to_graph(session, "/stem")
    session.screen.graph.list.go_to_key(fold(session))
    await session.settle()
    assert session.screen.model.cursor.node is None
    await session.press("delete")
    assert not session.screen.document.dirty


async def folds_open_and_close_at_the_cursor(session: Session) -> None:
    await to_graph(session)
    pane = session.screen.graph
    pane.list.go_to_key(fold(session))
    await session.press("z")
    assert pane.model is not None
    assert pane.model.overview.is_open(fold(session))
    assert pane.fold is fold(session)
    await session.press("down", "enter", "down")
    assert at(session) == "/layers.0/norm"
    await session.press("z")
    assert pane.fold is not None
    assert pane.fold.count == 1
    assert not pane.model.overview.is_open(pane.fold)


async def the_cursor_comes_back_to_the_fold_it_was_on(session: Session) -> None:
    await to_graph(session)
    pane = session.screen.graph
    assert pane.model is not None
    folds = [row.fold for row in pane.model.rows if row.fold is not None]
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


@pytest.mark.broad
@SIZES
@pytest.mark.usefixtures("folded")
async def test_views_cursors_and_folds(layers: Path, size: tuple[int, int]) -> None:
    async with opened(layers, size) as session:
        for check in (
            folds_open_and_close_at_the_cursor,
            the_cursor_comes_back_to_the_fold_it_was_on,
            views_cycle_and_keep_the_cursor,
            a_click_on_the_name_of_a_view_switches_to_it,
            the_focus_view_and_the_way_back,
            the_graph_follows_the_explorer,
            the_explorer_follows_the_graph,
        ):
            await check(session)
            await reset(session)


@pytest.mark.usefixtures("folded")
async def test_a_picture_holds_what_its_view_shows(layers: Path) -> None:
    async with opened(layers) as session:
        pane = session.screen.graph
        assert pane.model is not None
        boxes = {}
        for view in GraphView:
            pane.model.set_view(view)
            content = shown_in(pane, "title", as_rows=False)
            assert isinstance(content, Content)
            boxes[view] = len(content.graph)
        whole = len(pane.model.graph)
        assert boxes[GraphView.RAIL] == whole
        assert boxes[GraphView.FOLDED] == boxes[GraphView.CANVAS] < whole
        assert boxes[GraphView.FOCUS] < whole


async def a_fold_opens_on_the_canvas_and_closes_round_a_node(session: Session) -> None:
    await to_graph(session)
    pane = session.screen.graph
    pane.list.go_to_key(fold(session))
    await session.press("v", "v")
    assert view(session) is GraphView.CANVAS
    before = len(pane.boxes.items)
    await session.press("z")
    assert len(pane.boxes.items) > before


@SIZES
async def test_edits_and_undo_draw_the_graph_again(chain: Path, size: tuple[int, int]) -> None:
    async with opened(chain, size) as session:
        await to_graph(session, "second")
        session.screen.editing.delete_nodes([named(session, "third")], reconnect=True)
        await session.settle()
        assert "Mul" not in session.text.split("┏")[1]
        assert at(session) == "second"
        await session.press("u")
        model = session.screen.graph.model
        assert isinstance(model, GraphModel)
        assert model.drawn.vertex(named(session, "third")) is not None


async def test_a_deleted_cursor_goes_to_what_used_it(chain: Path) -> None:
    async with opened(chain) as session:
        await to_graph(session, "second")
        session.screen.editing.delete_nodes([named(session, "second")], reconnect=False)
        await session.settle()
        assert session.screen.graph.model is not None
        assert session.screen.graph.node in session.screen.document.main.nodes


async def test_a_box_of_the_drawing_before_an_edit_is_not_looked_up_in_the_next(
    chain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(chain) as session:
        await to_graph(session, "third")
        pane = session.screen.graph
        former = pane.canvas.drawing
        assert former is not None
        session.screen.editing.delete_nodes([named(session, "first")], reconnect=True)
        await session.settle()
        said: list[object] = []
        monkeypatch.setattr(pane, "say_selected", said.append)
        # As from a key before the edit: this is the number of another box now.
        number = former.graph.names.index("third")
        pane.box_reached(GraphCanvas.CursorMoved(former, number))
        assert said == [named(session, "third")]


async def an_edit_keeps_folds_and_the_cursor_on_a_fold(session: Session) -> None:
    from dld_tui.core.model.edits import renaming

    await to_graph(session, "/layers.3/gate")
    pane = session.screen.graph
    pane.list.go_to_key(fold(session))
    await session.settle()
    session.screen.history.try_edit(renaming.rename_node(scope=[], node="/head", name="end"))
    await session.settle()
    assert pane.fold is fold(session)
    assert pane.model is not None
    assert pane.model.overview.is_open(fold(session))


@pytest.mark.broad
@pytest.mark.usefixtures("folded")
async def test_marks_and_folds(layers: Path) -> None:
    async with opened(layers) as session:
        for check in (
            no_node_is_acted_on_at_a_fold,
            an_edit_keeps_folds_and_the_cursor_on_a_fold,
            ways_between_the_marked_node_and_the_cursor,
            ways_between_two_marked_nodes,
            commands_act_on_the_graphs_node_when_a_filter_hides_it,
            a_fold_opens_on_the_canvas_and_closes_round_a_node,
        ):
            await check(session)
            await reset(session)


async def bodies_are_drawn_when_they_are_entered(session: Session) -> None:
    await session.go("inner")
    model = session.screen.graph.model
    assert isinstance(model, GraphModel)
    assert model.scope is named(session, "inner").scope
    assert "then_branch" in session.screen.graph.frame.title
    assert at(session) == "inner"


async def a_deleted_body_gives_way_to_the_main_graph(session: Session) -> None:
    await session.go("inner")
    session.screen.editing.delete_nodes([named(session, "choose")], reconnect=False)
    await session.settle()
    model = session.screen.graph.model
    assert isinstance(model, GraphModel)
    assert model.scope is session.screen.document.main


@pytest.mark.broad
async def test_bodies(branches: Path) -> None:
    async with opened(branches) as session:
        for check in (
            bodies_are_drawn_when_they_are_entered,
            a_deleted_body_gives_way_to_the_main_graph,
        ):
            await check(session)
            await reset(session)


async def test_functions_are_drawn_when_they_are_opened(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.FUNCTIONS)) as session:
        await session.go("call")
        await session.press("s")
        model = session.screen.graph.model
        assert isinstance(model, GraphModel)
        assert model.scope.kind == "function"


@pytest.mark.parametrize(
    ("size", "shown"),
    [((80, 24), {"graph", "parameters"}), ((120, 40), {"graph", "parameters"}),
     ((140, 40), {"explorer", "graph", "parameters"}), (WIDE, {"explorer", "graph", "parameters"})],
)  # fmt: skip
async def test_a_model_opens_on_its_graph_with_the_parameters_and_nodes_where_there_is_room(
    chain: Path, size: tuple[int, int], shown: set[str]
) -> None:
    async with opened(chain, size, pane="") as session:
        panes = {name for name in ("explorer", "graph", "parameters")
                 if session.screen.panes.pane(name).display}  # fmt: skip
        assert panes == shown
        assert session.screen.graph.has_focus_within
        await session.press("down")
        assert session.details[0].split()[:2] == ["Relu", at(session)]
        await session.press("up")  # an input: what is known of no node
        assert not at(session)
        assert session.details[0].split()[0] == "main"
        await session.press("slash")
        await session.type("first")
        await session.press("enter")
        assert session.details[0].split()[:2] == ["Relu", "first"]
        await session.press("1")
        assert session.screen.explorer.has_focus_within
        await session.pilot.resize_terminal(80, 24)
        assert session.screen.explorer.display
        assert session.screen.explorer.has_focus_within


async def test_a_large_canvas_is_drawn_beside_the_work(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.layered(70))
    async with opened(path, NARROW) as session:
        await to_graph(session, "/layers.60/gate")
        graph = session.screen.graph
        assert graph.model is not None
        vertex = graph.cursor_vertex
        graph.model.overview.open_all()
        graph.model.set_view(GraphView.CANVAS)
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


async def test_a_search_finds_what_is_folded_and_unfolds_it(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.layered(12))) as session:
        await to_graph(session, "/stem")
        rows = len(session.screen.graph.list.lines)
        await session.press("slash")
        await session.type("layers.7/gate")
        await session.press("enter")
        await session.until(lambda: at(session) == "/layers.7/gate")
        assert len(session.screen.graph.list.lines) > rows
        await session.until(lambda: session.screen.explorer.node is named(session, at(session)))
        shown = len(session.screen.graph.list.lines)
        assert not session.screen.graph.reveal_match("zzzz")
        await session.press("slash")
        await session.type("zzzz")
        await session.press("enter")
        await session.pilot.pause()
        assert at(session) == "/layers.7/gate"
        assert len(session.screen.graph.list.lines) == shown
