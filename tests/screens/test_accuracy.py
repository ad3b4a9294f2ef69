"""The page of a comparison, the page of a search, and what they do in the editor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.accuracy import search as search_precision
from dld_tui.core.accuracy.search import PrecisionReport, SearchEstimate
from dld_tui.core.accuracy.tactics import TacticReport
from dld_tui.core.codec import decode
from dld_tui.core.events import Finished
from dld_tui.core.model import edits
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.screens.results.accuracy import PrecisionScreen, TacticsScreen
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from dld_tui.widgets.lists.table_view import ListTable
from tests.cli.test_results import FOUND
from tests.support import models
from tests.support.conversions import OVERFLOWS
from tests.support.workspace import NARROW, WIDE, opened

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def result_of(activity: Any, request: Any) -> Any:
    *_, last = activity.run(request)
    assert isinstance(last, Finished)
    return last.result


async def test_precisions_are_applied_as_one_step(tmp_path: Path) -> None:
    path = models.write(tmp_path, OVERFLOWS)
    result = result_of(search_precision, search_precision.Request(path))
    async with opened(path, NARROW) as session:
        page = PrecisionScreen.of_job(result, {"model": str(path)})
        assert isinstance(page, PrecisionScreen)
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        assert "bigger" in session.text
        assert "in fp16" in session.text
        await session.press("e")
        nodes = session.screen.document.main.nodes
        await session.until(lambda: all(precision_of(node) for node in nodes))
        found = {node.name: precision_of(node) for node in nodes}
        kept = {node.node for node in result.kept}
        assert {name for name, precision in found.items() if precision == "fp32"} == kept

        await session.until(lambda: session.app.page is session.screen)
        session.screen.history.undo()
        await session.until(lambda: not any(map(precision_of, nodes)))


async def test_what_is_not_in_the_model_any_more_is_not_applied(tmp_path: Path) -> None:
    path = models.write(tmp_path, OVERFLOWS)
    result = result_of(search_precision, search_precision.Request(path))
    async with opened(path, NARROW) as session:
        page = PrecisionScreen(result, path)
        session.edit(edits.renaming.rename_node(scope=[], node="bigger", name="other"))
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        await session.press("e")
        await session.shows("are no longer in the model")
        await session.press("escape")
        await session.press("w")
        await session.front(PromptDialog)
        await session.press("enter")
        await session.until((tmp_path / "model.precisions.jsonl").is_file)


async def test_no_set_is_enough(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    estimate = SearchEstimate(2, "trial", 0.5, (1, 4), 0, 1, (0.5, 2.0))
    report = PrecisionReport(
        "fp16", "onnxruntime", 1, 2, None, True, 0, None, (), None, {}, 2, 1.0, estimate
    )
    async with opened(path, WIDE) as session:
        page = PrecisionScreen(report, path)
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        assert "No set of nodes is enough" in session.text
        assert "precisions" not in page.conditions()


async def test_tactics_are_shown_with_the_command_that_avoids_them(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, NARROW) as session:
        page = TacticsScreen.of_job(decode(TacticReport, FOUND), {"model": str(path)})
        assert isinstance(page, TacticsScreen)
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        await session.shows("three")
        assert "1 tactic makes the result wrong" in session.text
        assert "kernel (0x66)" in session.text
        await session.press("y")
        await session.until(lambda: session.app.clipboard == page.command)
        assert "--editable-timing-cache" in page.command
