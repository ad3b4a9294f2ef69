"""The page of a comparison, the page of a search, and what they do in the editor."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities.accuracy import job as accuracy
from dld_tui.activities.accuracy import search as search_precision
from dld_tui.core.accuracy.search import PrecisionReport, SearchEstimate
from dld_tui.core.accuracy.tactics import TacticReport
from dld_tui.core.codec import decode
from dld_tui.core.events import Finished
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.results.accuracy import AccuracyScreen, Filter, PrecisionScreen, TacticsScreen
from dld_tui.widgets.dialogs.dialogs import PromptDialog
from dld_tui.widgets.lists.table_view import ListTable
from tests.cli.test_tactics import FOUND
from tests.support import models
from tests.support.conversions import OTHER, OVERFLOWS
from tests.support.workspace import NARROW, WIDE, Session, opened

pytest.importorskip("onnxruntime")


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path / "cache"))


def result_of(activity: Any, request: Any) -> Any:
    *_, last = activity.run(request)
    assert isinstance(last, Finished)
    return last.result


async def compared(session: Session, path: Path) -> AccuracyScreen:
    other = models.write(path.parent, OTHER, "other.onnx")
    result = result_of(accuracy, accuracy.Request(path, other, tensors=True))
    page = AccuracyScreen.of_job(result, {"model": str(path)})
    assert isinstance(page, AccuracyScreen)
    session.app.add_page(page)
    await session.until(lambda: page.is_current and page.row is not None)
    return page


def names(page: AccuracyScreen) -> list[str]:
    table = page.view
    return [str(table.table.key(row)) for row in table.order]


@pytest.mark.parametrize("size", [NARROW, WIDE])
async def test_the_tensors_and_their_verdict(tmp_path: Path, size: tuple[int, int]) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, size) as session:
        page = await compared(session, path)
        assert "1 of 1 output not within tolerance" in session.text
        assert "y: 1 of 4 elements are outside of atol 1e-05" in session.text
        assert names(page) == ["c", "b", "y", "a"]

        await session.pilot.press("v")
        assert names(page) == ["a", "b", "c", "y"]
        await session.pilot.press("exclamation_mark")
        assert page.row is not None
        assert page.row.name == "b"
        await session.pilot.press("f")
        assert names(page) == ["b", "c", "y"], "still in order"
        await session.pilot.press("f")
        assert names(page) == ["y"]
        await session.pilot.press("exclamation_mark")
        assert page.row is not None
        assert (page.row.name, page.filter) == ("b", Filter.ALL)

        await session.pilot.press("enter")
        await session.until(lambda: session.app.page is session.screen)
        await session.until(lambda: session.screen.explorer.node is not None)
        assert session.screen.explorer.node is not None
        assert session.screen.explorer.node.name == "second"


async def test_the_errors_colour_the_graph_and_are_written(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path, WIDE) as session:
        assert "errors" not in [overlay.name for overlay in session.screen.graph.colours.overlays()]
        await compared(session, path)
        overlay = next(o for o in session.screen.graph.colours.overlays() if o.name == "errors")
        rows = range(len(session.screen.document.main.nodes) + 2)
        assert any(overlay.text(row, row + 1) for row in rows)
        assert overlay.legend.endswith("in accuracy of model.onnx")

        await session.pilot.press("w")
        await session.until(lambda: isinstance(session.app.screen, PromptDialog))
        await session.pilot.press("enter")
        target = tmp_path / "model.accuracy.csv"
        await session.until(target.is_file)
        await session.until(lambda: target.read_text().count("\n") == 5)
        assert [row["tensor"] for row in csv.DictReader(target.read_text().splitlines())] == [
            "a",
            "b",
            "c",
            "y",
        ]


@pytest.mark.broad
async def test_the_edited_model_is_compared_with_its_file(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import tensors

    path = models.write(tmp_path, models.CHAIN)
    async with opened(path) as session:
        session.screen.history.edit(
            tensors.set_elements(scope=[], tensor={"initializer": "w"}, start=0, values=[3])
        )
        session.screen.activities.compare_edits()
        await session.until(lambda: isinstance(session.app.screen, AccuracyScreen))
        page = session.app.screen
        assert isinstance(page, AccuracyScreen)
        assert page.errors.first is not None
        assert page.errors.first.name == "b"
        assert page.subject.path == path
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["model.onnx"]


@pytest.mark.broad
async def test_the_forms(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    async with opened(path) as session:
        session.screen.activities.search_precision()
        await session.until(lambda: isinstance(session.app.screen, ActivityScreen))
        form = session.app.screen
        assert isinstance(form, ActivityScreen)
        await session.until(lambda: form.query("ParamForm"))
        assert form.command_line == f"dld accuracy --search fp16 {path}"
        await session.pilot.press("escape")
        session.screen.activities.compare()
        await session.until(lambda: isinstance(session.app.screen, ActivityScreen))


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
        await session.pilot.press("e")
        nodes = session.screen.document.main.nodes
        await session.until(lambda: all(precision_of(node) for node in nodes))
        found = {node.name: precision_of(node) for node in nodes}
        kept = {node.node for node in result.kept}
        assert {name for name, precision in found.items() if precision == "fp32"} == kept

        await session.until(lambda: session.app.page is session.screen)
        session.screen.history.undo()
        await session.until(lambda: not any(map(precision_of, nodes)))


async def test_what_is_not_in_the_model_any_more_is_not_applied(tmp_path: Path) -> None:
    from dld_tui.core.model.edits import renaming

    path = models.write(tmp_path, OVERFLOWS)
    result = result_of(search_precision, search_precision.Request(path))
    async with opened(path, NARROW) as session:
        page = PrecisionScreen(result, path)
        session.screen.history.edit(renaming.rename_node(scope=[], node="bigger", name="other"))
        session.app.add_page(page)
        await session.until(lambda: page.is_current and page.query(ListTable))
        await session.pilot.press("e")
        await session.until(lambda: "are no longer in the model" in session.text)
        await session.pilot.press("escape")
        await session.pilot.press("w")
        await session.until(lambda: isinstance(session.app.screen, PromptDialog))
        await session.pilot.press("enter")
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
        await session.until(lambda: "three" in session.text)
        assert "1 tactic makes the result wrong" in session.text
        assert "kernel (0x66)" in session.text
        await session.pilot.press("y")
        await session.until(lambda: session.app.clipboard == page.command)
        assert "--editable-timing-cache" in page.command
