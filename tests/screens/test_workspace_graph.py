"""The graph in the workspace: in step with the explorer, drawn again after edits."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from dld_tui.core.model.document import Node
from dld_tui.core.model.graph.pictures.content import Content
from dld_tui.core.report.report import Report
from dld_tui.screens.model.graph_picture import shown_in
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog, ErrorDialog, FieldsDialog, OpenPathDialog
from dld_tui.widgets.graph import row_list
from dld_tui.widgets.graph.boxes import AT_ONCE
from dld_tui.widgets.graph.state import GraphModel, GraphView
from tests.support import models
from tests.support.report_files import make_report
from tests.support.workspace import NARROW, Session, opened

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


def shown(session: Session) -> GraphModel:
    """Return the graph that is drawn."""
    model = session.screen.graph.model
    assert isinstance(model, GraphModel)
    return model


def named(session: Session, name: str) -> Node:
    """Return a node of any scope by its name."""
    scopes = session.screen.document.scopes()
    return next(node for scope in scopes for node in scope.nodes if node.name == name)


def at(session: Session) -> str:
    """Return the name of the node under the graph's cursor."""
    node = session.screen.graph.node
    return node.name if node is not None else ""


async def to_graph(session: Session, name: str = "") -> None:
    """Go to a node in the explorer, and then to the graph."""
    if name:
        await session.go(name)
    await session.press("2")
    assert session.screen.graph.has_focus_within


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


def says(session: Session, text: str) -> bool:
    return text in session.screen.graph.frame.title


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


async def save_as(session: Session, path: Path) -> None:
    session.screen.graphs.save_picture()
    await session.front(OpenPathDialog)
    await session.retype(str(path), "enter")


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
