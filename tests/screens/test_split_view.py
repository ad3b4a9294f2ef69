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
from dld_tui.core.model import edits
from dld_tui.core.model.document import Document
from dld_tui.screens.results.views import of_reduction, show_view
from dld_tui.screens.workspace.page import WorkspaceScreen
from dld_tui.screens.workspace.split_view import SplitViewPane
from dld_tui.widgets.dialogs.dialogs import ChoiceDialog
from tests.support import models
from tests.support.tui import until
from tests.support.workspace import NARROW, WIDE, Session, opened

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


async def reset(session: Two) -> None:
    """Take back what a check did, in both models."""
    while session.other.document.history.done:
        session.other.document.undo()
    for screen in (session.screen, session.other):
        if screen.split_view.pane is not None:
            screen.split_view.close()
    session.app.show_page(session.screen)
    await session.until(lambda: session.app.screen is session.screen)
    await session.reset()


async def both_models_are_seen_and_tab_goes_round(session: Two) -> None:
    await session.show()
    assert "there0.onnx" in session.text
    for size in (WIDE, (80, 40), WIDE):
        await session.pilot.resize_terminal(*size)
        mine, theirs = session.screen.panes.area.region, session.pane.region
        assert not mine.overlaps(theirs)
        assert (mine.height == theirs.height) is (size == WIDE)
        await session.press("j", "j", "enter")
        await session.until(lambda: session.pane.parameters.list.has_focus)
        assert session.pane.explorer.node is not None
        assert session.pane.parameters.subject is session.pane.explorer.node
        await session.press("escape")
        await session.until(lambda: session.pane.explorer.list.has_focus)
        seen = set()
        for _ in range(6):
            await session.press("tab")
            assert session.app.focused is not None
            seen.add(session.app.focused)
        assert {session.screen.graph.canvas, session.pane.parameters.list} <= seen
        session.pane.explorer.list.focus()
        await session.press("home")


async def no_key_in_the_pane_changes_either_model(session: Two) -> None:
    await session.go("second")
    await session.show()
    told: list[str] = []
    session.pane.notify = lambda message, **_: told.append(message)  # type: ignore[method-assign]
    for key in (*"dreupaIcRO", "delete", "ctrl+s", "full_stop"):
        await session.press(key)
        assert session.app.screen is session.screen, key
        assert session.pane.has_focus_within, key
    assert len(told) >= 10
    assert told[0] == "This model is read-only here. | goes back to here.onnx"
    assert not session.screen.document.history.done
    assert not session.other.document.history.done
    await session.press("|", "d")
    await session.until(lambda: session.app.screen is not session.screen)  # now it asks
    await session.press("escape")


async def coupled_cursors_follow_each_other(session: Two) -> None:
    await session.show()
    await session.press("=")
    await session.until(lambda: session.pane.pairs is not None)
    assert "coupled" in session.text
    session.pane.explorer.list.cursor = 0
    for name in ("first", "second", "third", "last"):
        await session.go(name)
        await session.until(lambda: session.both[1] in ("begin", "sum", "third", "last"))
        assert session.both == (name, {"first": "begin", "second": "sum"}.get(name, name))
    session.pane.explorer.list.focus()
    extra, begin = (
        next(n for n in session.other.document.main.nodes if n.name == name)
        for name in ("extra", "begin")
    )
    session.pane.explorer.reveal(begin)
    await session.until(lambda: session.both == ("first", "begin"))
    session.pane.explorer.reveal(extra)
    await session.until(lambda: session.both[1] == "extra")
    await session.pilot.pause()
    assert session.both[0] == "first"  # nothing here belongs together with it
    await session.press("=")
    assert session.pane.pairs is None


async def nodes_are_copied_into_the_model_of_the_tab(session: Two) -> None:
    await session.show()
    extra = next(n for n in session.other.document.main.nodes if n.name == "extra")
    session.pane.explorer.reveal(extra)
    await session.press("y", "|")
    await session.until(lambda: session.screen.graph.has_focus_within)
    await session.press("p")
    await session.until(lambda: session.screen.document.history.done)
    assert session.screen.document.main.nodes[-1].op_type == "Neg"
    assert not session.other.document.history.done


async def edits_of_the_other_model_are_seen(session: Two) -> None:
    await session.show()
    node = session.other.document.main.nodes[0]
    session.pane.explorer.reveal(node)
    await session.until(lambda: session.pane.parameters.subject is node)
    session.other.history.edit(edits.renaming.rename_node(scope=[], node=node.ref, name="anew"))
    await session.pilot.pause()
    for shown in (session.pane.explorer.list.lines, session.pane.parameters.list.lines):
        assert any("anew" in shown.text(at) for at in range(len(shown)))


async def the_two_change_places(session: Two) -> None:
    await session.show()
    node = session.other.document.main.nodes[1]
    session.pane.explorer.reveal(node)
    await session.press("X")
    await session.until(lambda: session.other.split_view.pane is not None)
    await session.until(lambda: session.app.screen is session.other)
    assert session.other.split_view.pane is not None
    assert session.other.split_view.pane.other.page is session.screen
    assert session.screen.split_view.pane is None
    assert session.other.explorer.node is node


@pytest.mark.broad
async def test_a_model_beside(tmp_path: Path) -> None:
    async with two(tmp_path) as session:
        for check in (
            both_models_are_seen_and_tab_goes_round,
            no_key_in_the_pane_changes_either_model,
            coupled_cursors_follow_each_other,
            nodes_are_copied_into_the_model_of_the_tab,
            edits_of_the_other_model_are_seen,
            the_two_change_places,
        ):
            await check(session)
            await reset(session)


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


@pytest.mark.broad
async def test_which_of_several_is_asked(tmp_path: Path) -> None:
    async with two(tmp_path, more=1) as session:
        await session.press("|")
        await session.front(ChoiceDialog)
        assert "there0.onnx" in session.text
        await session.press("2")
        await session.until(lambda: session.screen.split_view.pane is not None)
        assert session.pane.document.title == "there1.onnx"


@pytest.mark.broad
async def test_without_room_one_line_says_so(tmp_path: Path) -> None:
    async with two(tmp_path, NARROW) as session:
        await session.press("|")
        assert session.screen.split_view.pane is None
        (toast,) = session.app._notifications
        assert toast.message == "Two models need 120 columns or 40 rows; this terminal has 80 x 24"
    async with two(tmp_path) as session:
        await session.show()
        await session.pilot.resize_terminal(*NARROW)
        await session.until(lambda: not session.pane.display)
        await session.until(lambda: session.screen.graph.has_focus_within)
        await session.pilot.resize_terminal(*WIDE)
        await session.until(lambda: session.pane.display)


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


@pytest.mark.broad
async def test_a_subgraph_beside_its_model(tmp_path: Path) -> None:
    async with opened(models.write(tmp_path, models.BRANCHES), WIDE) as session:
        await session.go("pre", "|")
        assert not session.screen.query(SplitViewPane)
        await session.go("choose", "|")
        assert isinstance(session.app.screen, ChoiceDialog)
        await session.press("2")
        await session.until(lambda: session.screen.split_view.pane)
        pane = session.screen.split_view.pane
        assert pane is not None
        await session.until(lambda: pane.explorer.list.has_focus)
        assert pane.explorer.model.root.path == ("choose:else_branch",)
        assert session.screen.model.listing.root is session.screen.document.main
        await session.press("end")
        assert pane.explorer.node is not None
        assert pane.explorer.node.op_type == "Mul"
        await session.press("X")
        await session.until(
            lambda: session.screen.model.listing.root.path == ("choose:else_branch",)
        )
        assert not session.screen.query(SplitViewPane)
