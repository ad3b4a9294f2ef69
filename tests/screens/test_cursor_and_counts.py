"""In every list of a model the cursor stays on its object, the title counts right, keys go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from textual.pilot import Pilot

from dld_tui.app import DldApp
from dld_tui.core.errors import UsageError
from dld_tui.core.model import edits
from dld_tui.core.settings import custom_tools as tools
from dld_tui.core.settings import saved_targets as targets
from dld_tui.core.settings.custom_tools import Tool
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.screens import targets as target_jobs
from dld_tui.screens.base_pages import AboutRow, ListPage
from dld_tui.screens.settings import ToolsScreen
from dld_tui.screens.targets import TargetJobsScreen, TargetsScreen
from dld_tui.targets.ssh.results import JobsStore, StoredJob
from dld_tui.widgets.parameters.descriptions import DOCUMENTATION
from tests.support import models
from tests.support.tui import until
from tests.support.workspace import NARROW, opened

COUNT = 6


def model(folder: Path) -> Path:
    """Write a model with six of everything: nodes, initializers and functions nobody needs."""
    text = models.CHAIN
    path = models.write(folder, text)
    found = onnx.load(path)
    found.opset_import.append(onnx.helper.make_opsetid("local", 1))
    opset = [onnx.helper.make_opsetid("", 18)]
    for at in range(COUNT):
        spare = onnx.helper.make_node("Relu", ["x"], [f"spare{at}"], f"spare {at}")
        found.graph.node.append(spare)
        found.graph.initializer.append(
            onnx.numpy_helper.from_array(np.ones(2, np.float32), f"weight {at}")
        )
        body = [onnx.helper.make_node("Relu", ["v"], ["r"])]
        made = onnx.helper.make_function("local", f"Spare{at}", ["v"], ["r"], body, opset)
        found.functions.append(made)
        onnx.helper.set_model_props(found, {f"key {at}": "text" for at in range(COUNT)})
    onnx.save(found, path)
    return path


@pytest.mark.broad
async def test_the_parameters_stay_where_they_are(tmp_path: Path) -> None:
    async with opened(model(tmp_path), NARROW) as session:
        await session.go("first")
        view = session.screen.panes.parameters.list
        await session.press("3", "D")
        place = view.cursor - view.scroll_offset.y
        for alpha in (1.0, 2.0):
            for name in ("one", "two", "three"):
                session.edit(
                    edits.attributes.set_attribute(
                        scope=[], node="first", attribute=name, kind="float", value=alpha
                    )
                )
        await session.settle()
        for keys in ("", "uuu", "uuu"):
            await session.press(*keys)
            assert view.key_at_cursor() == DOCUMENTATION, keys
            assert view.cursor - view.scroll_offset.y == place, keys


async def _in_order(pilot: Pilot[Any], page: ListPage[Any], rename: Callable[[], None]) -> None:
    """Sort, remove from, rename in and read again a list of five; the cursor is on the third."""
    pilot.app.push_screen(page)
    await pilot.pause()
    view, about = page.view, page.query_one(AboutRow)
    view.sort_by("name", descending=True)
    assert view.go_to_key("c3")
    view.sort_by("name")
    page.show_rows()
    assert view.key_at_cursor() == "c3"
    await pilot.press("d", "r")  # the question has the answer "remove"
    await until(pilot, lambda: pilot.app.screen is page and len(view.order) == COUNT - 2)
    assert view.key_at_cursor() == "d4"
    assert about.frame.title.endswith("d4")
    rename()
    page.show_rows("z4")
    view.action_sort_reverse()
    assert (view.cursor, view.key_at_cursor()) == (0, "z4")
    assert about.frame.title.endswith("z4")
    await pilot.press("escape")


@pytest.mark.broad
async def test_lists_of_the_program() -> None:
    for name in ("e5", "b2", "c3", "a1", "d4"):
        tools.save(Tool(name, "true"))
        targets.save(Connection(name, "localhost"))
    async with DldApp().run_test(size=NARROW) as pilot:
        page = ToolsScreen()

        def rename_tool() -> None:
            tools.save(Tool("z4", "true"), instead_of="d4")
            page._tools = tools.load()

        await _in_order(pilot, page, rename_tool)
        listed = TargetsScreen()

        def rename_target() -> None:
            targets.save(Connection("z4", "localhost"))
            targets.remove("d4")
            listed._connections = targets.load()

        await _in_order(pilot, listed, rename_target)


@pytest.mark.broad
async def test_jobs_on_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(name: str) -> None:
        raise UsageError("not there")

    monkeypatch.setattr(target_jobs, "_target", unreachable)
    store = JobsStore()
    for number in range(5):
        store.put(StoredJob(f"20260101-00000{number}-00000000", "box", "fake", number))
    async with DldApp().run_test(size=NARROW) as pilot:
        page = TargetJobsScreen()
        pilot.app.push_screen(page)
        await until(pilot, lambda: page.is_mounted and len(page.view.order) == 5)
        jobs = [job.id for job in page.view.shown_rows()]
        page.view.go_to_key(jobs[2])
        page.view.sort_by("state", descending=True)
        store.forget(jobs[0])  # it was fetched
        page.action_again()
        await until(pilot, lambda: "not there" in page.view.lines.text(0))
        assert page.view.key_at_cursor() == jobs[2]
        for gone in jobs[1:3]:
            store.forget(gone)
        page.action_again()
        assert page.view.key_at_cursor() == jobs[3]
        assert pilot.app.focused is page.view
