"""A large model while it is opened: what is read and arranged, and how often."""

from __future__ import annotations

from pathlib import Path
from threading import Thread, current_thread, main_thread
from typing import Any

import pytest
from textual.geometry import Size
from textual.screen import ModalScreen, Screen

from dld_tui.app import DldApp
from dld_tui.core.model import edits
from dld_tui.core.model.document import Node, Scope
from dld_tui.core.model.document.node import NodeTexts
from dld_tui.core.model.graph import build
from dld_tui.core.model.graph.build import ScopeGraph
from dld_tui.core.model.graph.folding import Arrangement
from dld_tui.core.model.graph.graph import Graph
from dld_tui.core.model.graph.layout_process import LayoutProcess
from dld_tui.core.types import CancelCheck
from dld_tui.screens.workspace import opening, page
from dld_tui.screens.workspace.checks import Checks
from dld_tui.screens.workspace.opening import AT_ONCE
from dld_tui.screens.workspace.panes import Panes
from dld_tui.widgets.graph.pane import GraphPane
from tests.support.workspace import NARROW, WIDE, opened, write_long

COUNT = AT_ONCE + 100


async def test_the_first_picture_has_its_places_and_nothing_else_begins_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rooms: list[Size] = []
    pictures: list[bool] = []
    pictures_before_checks: list[list[bool]] = []
    lay_out, display, check = Panes.lay_out, DldApp._display, Checks.check

    def noted_room(panes: Panes) -> None:
        rooms.append(panes.area.region.size)
        if len(rooms) == 1:
            panes.page.app.delay_update(0.1)  # as where another page was seen before
        lay_out(panes)

    def noted_picture(app: DldApp, screen: Screen[Any], renderable: Any) -> None:
        graphs = screen.query(GraphPane)
        pictures.append(bool(graphs) and graphs.first().canvas.size.area > 0)
        display(app, screen, renderable)

    def noted_check(checks: Checks) -> None:
        pictures_before_checks.append([*pictures])
        check(checks)

    monkeypatch.setattr(Panes, "lay_out", noted_room)
    monkeypatch.setattr(DldApp, "_display", noted_picture)
    monkeypatch.setattr(Checks, "check", noted_check)
    monkeypatch.setattr(page, "_PAINTED_S", 0.0)
    async with opened(write_long(tmp_path, 10, "/layer/Relu_{}"), NARROW) as session:
        await session.until(lambda: bool(pictures_before_checks))
        width, height = NARROW
        assert set(rooms) == {Size(width, height - 2)}  # without the tabs and the keys
        assert any(pictures_before_checks[0])
        session.screen.refresh()
        assert session.screen.awaits_paint
        await session.app.push_screen(ModalScreen())
        session.screen.refresh()
        assert not session.screen.awaits_paint  # but under a dialog nothing waits for it


@pytest.mark.broad
@pytest.mark.parametrize("in_child", [False, True])
async def test_the_graph_is_arranged_once_from_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_child: bool
) -> None:
    path = write_long(tmp_path, COUNT, "/layer/Relu_{}")
    if in_child:
        monkeypatch.setattr(opening, "CHILD_FROM", AT_ONCE)
    answers: list[Arrangement | None] = []

    def noted(self: LayoutProcess, graph: Graph, cancelled: CancelCheck) -> Arrangement | None:
        answers.append(arrange(self, graph, cancelled))
        return answers[-1]

    arrange = LayoutProcess.arrange
    monkeypatch.setattr(LayoutProcess, "arrange", noted)
    made: list[NodeTexts | None] = []

    def counted(scope: Scope, *, texts: NodeTexts | None, **options: Any) -> ScopeGraph:
        made.append(texts)
        return build.graph_of(scope, texts=texts, **options)

    monkeypatch.setattr(opening, "graph_of", counted)
    async with opened(path, WIDE) as session:
        screen = session.screen
        await session.until(
            lambda: screen.graph.model is not None and not screen.model.is_arranging
        )
        model = screen.graph.model
        assert model is not None
        assert model.count == COUNT
        assert model.weights is not None  # what is not in the first picture came, too
        assert len(made) == 1
        assert made[0] is not None
        assert len(made[0]) == COUNT
        # What the colours say may take long to find out.
        asked_on: list[Thread] = []

        def times() -> tuple[dict[Node, float], str]:
            asked_on.append(current_thread())
            return {}, ""

        screen.graph.colours.ask_times = times
        screen.graph.colours.next()
        await session.until(lambda: "precision" in screen.graph.frame.title)
        assert len(asked_on) == 1
        assert asked_on[0] is not main_thread()
        # After an edit the model itself is read.
        screen.history.edit(
            edits.renaming.rename_node(scope=[], node="/layer/Relu_0", name="/layer/stem")
        )
        await session.until(lambda: len(made) == 2 and not screen.model.is_arranging)
        assert made[1] is None
        shown = screen.graph.model
        assert shown is not None
        assert "/layer/stem" in shown.graph.names
    assert len(answers) == 2 * in_child
    assert None not in answers  # the child has answered
