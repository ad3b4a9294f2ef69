"""What the graph pane shows and tells after each key and click, in every view."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import textual

from dld_tui.core.checks import Finding
from dld_tui.core.model.document import Document
from dld_tui.core.types import JSON
from dld_tui.widgets.graph import boxes
from dld_tui.widgets.graph.pane import GraphPane
from dld_tui.widgets.graph.state import GraphModel, GraphView
from tests.support import models
from tests.support.graph_panes import RICH
from tests.support.recorded import Recorded
from tests.support.tui import HostApp
from tests.support.walks import Steps, walked


def model_of(document: Document) -> GraphModel:
    model = GraphModel(document.main)
    model.weigh()
    return model


def steps(pane: GraphPane, document: Document, limit: Callable[[str, int], None]) -> Steps:
    main = document.main
    named = {node.name: node for node in main.nodes}
    findings = [
        Finding("error", "r", "m", main, named["/layers.2/gate"]),
        Finding("warning", "r", "m", main, named["last"]),
    ]

    def edited() -> None:
        document.apply("delete_nodes", scope=[], nodes=["/layers.2/gate"], reconnect=True)
        pane.show(model_of(document))

    def moved() -> None:
        positions: dict[str, JSON] = {named["last"].ref: [9, 2]}
        document.apply("set_positions", scope=[], positions=positions)
        pane.show(model_of(document))

    return {
        "show ~": lambda: pane.show(model_of(document)), "focus": pane.focus_view,
        "down down z ~": None, "down down": None, "space": None, "z": None, "space ": None,
        "semicolon": None, "right": None, "left enter": None, "percent_sign ~": None,
        "findings": lambda: pane.set_findings(findings), "percent_sign": None,
        "percent_sign ": None,
        "shift+right": None, "number_sign": None, "slash g a t e": None, "enter": None, "n N": None,
        "slash z z z enter": None, "v ~": None, "home": None, "end": None, "z ": None, "v": None,
        "v ": None, "number_sign ~": None, "home ": None, "down": None, "enter ": None,
        "semicolon ~": None, "right ": None, "escape": None, "space  ": None, "plus": None,
        "minus minus": None, "0": None, "shift+left": None, "click:30,8": None, "double:30,8": None,
        "menu:30,8": None, "wheel:30,8": None, "drag:30,8-40,12": None, "v  ~": None,
        "right_parenthesis": None, "left_parenthesis left_parenthesis": None, "escape ": None,
        "marks": lambda: pane.set_marked([named["/stem"], named["last"]]),
        "a path ~": pane.action_show_path, "escape  ": None, "escape   ": None,
        "no path": pane.action_show_path,
        "boxes ~": lambda: pane.switch_view(GraphView.CANVAS), "home  ": None, "down down ": None,
        "right  ": None, "enter  ": None, "shift+left ": None, "shift+down": None,
        "drag:40,12-50,14": None, "pagedown": None, "G": None, "up left": None, "slash m u l": None,
        "enter   ": None, "space   ": None, "semicolon  ": None, "up": None, "number_sign  ~": None,
        "40x14": None, "150x50": None, "edited ~": edited,
        "moved": moved, "arrange": pane.action_arrange,
        "folded": lambda: pane.switch_view(GraphView.FOLDED), "80x24": None,
        "none": lambda: pane.set_findings([]), "click:40,1": None,
        "drawn on a thread": lambda: limit("AT_ONCE", 3),
        "boxes by a thread ~": lambda: pane.switch_view(GraphView.CANVAS), "down  ": None,
        "z  ": None, "rows": lambda: pane.switch_view(GraphView.FOLDED),
        "none are few enough": lambda: limit("CANVAS_BOXES", 5),
        "too many": lambda: pane.switch_view(GraphView.CANVAS), "v   ": None,
    }  # fmt: skip


@pytest.mark.broad
@pytest.mark.skipif(textual.__version__ != "8.2.8", reason="as Textual 8.2.8 draws")
async def test_a_walk_through_the_views(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = Document.open(models.write(tmp_path, RICH))
    pane = GraphPane()
    app = HostApp(pane)
    async with app.run_test(size=(80, 24), message_hook=app.note) as pilot:
        texts = await walked(app, pilot, steps(pane, document, partial(monkeypatch.setattr, boxes)))
    recorded("walk_of_graph", texts)
