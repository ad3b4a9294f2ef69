"""The empty half of the parameters pane shows the boxes around the node; short graphs open."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.model.document import Node
from dld_tui.widgets.parameters.pane import Nearest
from tests.support import models
from tests.support.workspace import NARROW, WIDE, Session, opened


def boxes(session: Session) -> set[str]:
    shown = session.screen.query_one(Nearest)
    drawing = shown.drawing
    return set(drawing.graph.names) if shown.display and drawing is not None else set()


def node_named(session: Session, name: str) -> Node:
    return next(node for node in session.screen.document.main.nodes if node.name == name)


@pytest.mark.broad
async def test_the_boxes_around_the_node_fill_the_empty_half(chain: Path) -> None:
    async with opened(chain, WIDE) as session:
        document = session.screen.document
        for name in ("first", "second", "last"):
            node = await session.go(name)
            around = {other.name for n in node.outputs for other in node.scope.consumers(n)}
            around |= {
                made.name for n in node.inputs if (made := node.scope.producer(n)) is not None
            }
            assert {other.name for other in document.main.nodes} & boxes(session) == {name, *around}
        shown = session.screen.query_one(Nearest)
        await session.go("last")
        assert shown.drawing is not None
        other = shown.drawing.graph.names.index("third")
        box = shown.drawing.box(other)
        await session.pilot.click(shown, offset=(box.x + shown._indent + 2, box.y + 1))
        await session.until(lambda: session.screen.explorer.node is node_named(session, "third"))


async def test_there_are_none_where_there_is_no_room(chain: Path) -> None:
    async with opened(chain, NARROW) as session:
        await session.go("second")
        assert not boxes(session)


@pytest.mark.broad
async def test_a_short_graph_opens_its_blocks_until_the_pane_is_full(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.layered(12))
    rows = {}
    for size in (NARROW, WIDE):
        async with opened(path, size) as session:
            model = session.screen.graph.model
            assert model is not None
            rows[size] = len(model.rows)
            closed = [row.fold for row in model.rows if row.fold is not None and not row.is_open]
            room = session.screen.graph.list.size.height - rows[size]
            assert all(fold.rows_inside > room for fold in closed)
    assert rows[NARROW] < rows[WIDE]
