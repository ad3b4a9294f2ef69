"""Another open model beside the one of a tab."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from dld_tui.app import DldApp
from dld_tui.core.compare.diff.compare import diff_documents
from dld_tui.core.compare.diff.model_diff import node_pairs
from dld_tui.core.conversion.reduction import Reduction
from dld_tui.core.model.document import Document
from dld_tui.screens.results.views import of_reduction, show_view
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.screens.workspace.split_view import SplitViewPane
from tests.support import models
from tests.support.tui import until
from tests.support.workspace import WIDE, Session

OTHER = models.CHAIN.replace("[first]", "[begin]").replace("[second]", "[sum]")
OTHER = OTHER.replace(
    "    [last] y = Sigmoid(c)", "    [last] y = Sigmoid(c)\n    [extra] z = Neg(b)"
)


@dataclass
class Two(Session):
    """A model in its tab, and another one that is open."""

    other: WorkspaceScreen

    @property
    def pane(self) -> SplitViewPane:
        """The pane of the other model."""
        assert self.screen.split_view.pane is not None
        return self.screen.split_view.pane

    async def show(self) -> None:
        """Show the other model beside."""
        await self.pilot.press("|")
        await self.until(lambda: self.screen.split_view.pane and self.pane.explorer.list.has_focus)

    @property
    def both(self) -> tuple[str, str]:
        """The names of the nodes that the two cursors are on."""
        nodes = self.screen.explorer.node, self.pane.explorer.node
        return nodes[0].name if nodes[0] else "", nodes[1].name if nodes[1] else ""


@asynccontextmanager
async def two(folder: Path, size: tuple[int, int] = WIDE, more: int = 0) -> AsyncIterator[Two]:
    """Open two models or more; the tab of the first is seen."""
    paths = [models.write(folder, models.CHAIN, "here.onnx")]
    paths += [models.write(folder, OTHER, f"there{at}.onnx") for at in range(1 + more)]
    app = DldApp(paths)
    async with app.run_test(size=size) as pilot:
        await until(pilot, lambda: len(app.pages) == len(paths))
        screens = [page for page in app.pages if isinstance(page, WorkspaceScreen)]
        for screen in screens:
            app.show_page(screen)
            await until(pilot, partial(getattr, screen, "is_open"))
        app.show_page(screens[0])
        await until(pilot, lambda: app.screen is screens[0] and app.keys.at_rest)
        yield Two(app, pilot, screens[0], screens[1])


async def test_it_goes_by_esc_and_with_its_tab(tmp_path: Path) -> None:
    async with two(tmp_path) as session:
        await session.show()
        await session.press("escape")
        await session.until(lambda: session.screen.split_view.pane is None)
        await session.until(lambda: session.screen.graph.has_focus_within)
        await session.show()
        session.app.close_page(session.other)
        await session.until(lambda: session.screen.split_view.pane is None)
        assert not session.screen.query(SplitViewPane)
        await session.press("|")
        assert session.screen.split_view.pane is None


def test_pairs_are_those_of_the_comparison(tmp_path: Path) -> None:
    old, new = (
        Document.open(models.write(tmp_path, text, name))
        for text, name in ((models.CHAIN, "old.onnx"), (OTHER, "new.onnx"))
    )
    pairs = node_pairs(diff_documents(old, new, weights=False))
    assert [(first.name, second.name) for first, second in pairs] == [
        ("first", "begin"), ("second", "sum"), ("third", "third"), ("last", "last"),
    ]  # fmt: skip


@pytest.mark.broad
async def test_what_was_reduced_opens_beside_the_model_that_it_is_part_of(tmp_path: Path) -> None:
    async with two(tmp_path) as session:
        small = models.write(tmp_path, OTHER, "small.onnx")
        result = Reduction(small, 3, 1, ["last"], 2, 0, 0.1, "")
        show_view(session.app, of_reduction(result, {"model": str(session.screen.path)}))
        await session.until(lambda: session.screen.split_view.pane)
        assert session.app.screen is session.screen
        assert session.pane.other.page.path == small
