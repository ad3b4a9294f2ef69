"""Types and shapes after edits: marked as doubtful at once, told anew by a child process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dld_tui.core.checks.findings import INFERENCE
from dld_tui.core.errors import ActivityError
from dld_tui.core.model import edits
from dld_tui.core.model.document import Document, DocumentChange
from dld_tui.core.model.tensors.value_types import ValueType
from dld_tui.core.types import JSON
from dld_tui.screens.workspace import inference
from dld_tui.screens.workspace.inference import Inference, InferredTypes, ScopeTypes
from dld_tui.widgets.graph.overlays import PrecisionOverlay
from tests.support import models
from tests.support.workspace import Session, opened, write_long

SHAPES = """
<ir_version: 10, opset_import: ["" : 18]>
shapes (float[N, 6] x) => (float[a, b] y)
{
    [turn] t = Transpose <perm = [1, 0]> (x)
    [aside] s = Relu(x)
    [join] j = Abs(t)
    [last] y = Neg(j)
}
"""


@pytest.fixture(autouse=True)
def at_once(type_inference: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Inference, "INFER_AFTER_S", (0.01, 0.01))


@asynccontextmanager
async def inferred(folder: Path, text: str = SHAPES) -> AsyncIterator[Session]:
    async with opened(models.write(folder, text)) as session:
        await session.until(lambda: session.screen.model.has_fresh_types)
        yield session


def external(session: Session) -> list[str]:
    return [f.message for f in session.screen.findings.findings if f.rule == INFERENCE]


def edit_attribute(session: Session, value: list[JSON]) -> None:
    """Give the transposition another order of dimensions."""
    session.edit(
        edits.attributes.set_attribute(
            scope=[], node="turn", attribute="perm", kind="ints", value=value
        )
    )


async def stale_at_once_and_refreshed_after_an_edit_undo_and_redo(session: Session) -> None:
    main, screen = session.screen.document.main, session.screen
    assert main.value_type("j") == ValueType("float32", (6, "N"))

    edit_attribute(session, [0, 1])
    assert [main.is_stale(name) for name in "tjs"] == [True, True, False]
    assert main.value_type("j") == ValueType("float32", (6, "N"))
    assert not screen.model.has_fresh_types
    await session.until(lambda: screen.model.has_fresh_types)
    assert not main.is_stale("j")
    assert main.value_type("j") == ValueType("float32", ("N", 6))

    for key, dims in (("u", (6, "N")), ("ctrl+y", ("N", 6))):
        await session.press(key)
        await session.until(lambda: screen.model.has_fresh_types)
        assert main.value_type("j") == ValueType("float32", dims)


@pytest.mark.broad
async def test_the_mark_is_seen_and_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with inferred(tmp_path) as session:
        await session.go("join")
        assert any("f32[6,N]" in row for row in session.details)
        monkeypatch.setattr(Inference, "INFER_AFTER_S", (60.0, 60.0))
        edit_attribute(session, [0, 1])
        await session.settle()
        assert any("~f32[6,N]" in row for row in session.details)
        await session.until(lambda: session.text.count("~") >= 5)  # three nodes, and the details

        session.screen.inference.infer()
        await session.until(lambda: session.screen.model.has_fresh_types)
        await session.until(lambda: any("f32[N,6]" in row for row in session.details))
        assert "~" not in session.text

        # Boxes have the marks in them: they are drawn again where types are as before, too.
        session.edit(
            edits.attributes.set_attribute(
                scope=[], node="join", attribute="extra", kind="float", value=1.0
            )
        )
        await session.settle()
        await session.until(lambda: session.text.count("~") >= 4)
        session.screen.inference.infer()
        await session.until(lambda: session.screen.model.has_fresh_types)
        await session.settle()
        assert "~" not in session.text


async def the_graph_shows_types_that_come_late(session: Session) -> None:
    await session.press("2", "v", "v")  # rows, and no boxes
    graph = session.screen.panes.graph
    assert graph.model is not None
    graph.colours.overlay = PrecisionOverlay(graph.model)
    row = next(
        at for at, one in enumerate(graph.model.rows) if "aside" in graph.list.lines.text(at)
    )
    assert graph.colours.overlay.text(row, row + 1) == "f32"
    found = InferredTypes()
    found.scopes["[]", None] = ScopeTypes({"s": ValueType("int8", (7,))})
    session.screen.inference._inferred(session.screen.model.version, found)
    assert graph.colours.overlay.text(row, row + 1) == "i8"
    await session.settle()
    assert "i8[7]" in session.text


@pytest.mark.broad
async def test_only_the_state_after_the_last_edit_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with inferred(tmp_path) as session:
        screen = session.screen
        older, newer = InferredTypes(), InferredTypes()
        older.scopes["[]", None] = ScopeTypes({"j": ValueType("int8", ())})
        newer.scopes["[]", None] = ScopeTypes({"j": ValueType("bool", ())})
        monkeypatch.setattr(Inference, "INFER_AFTER_S", (60.0, 60.0))
        screen.history.edit(edits.renaming.rename_node(scope=[], node="aside", name="one"))
        version = screen.model.version
        screen.history.edit(edits.renaming.rename_node(scope=[], node="one", name="two"))

        screen.inference._inferred(version, older)
        assert screen.document.main.value_type("j") == ValueType("float32", (6, "N"))
        screen.inference._inferred(version + 1, newer)
        assert screen.model.has_fresh_types
        assert screen.document.main.value_type("j") == ValueType("bool", ())


@pytest.mark.broad
async def test_a_job_for_an_older_state_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def waits(snapshot: Path, home: Path | None, cancelled: object) -> InferredTypes:
        assert callable(cancelled)
        asked.append(False)
        place = len(asked) - 1
        if place == 0:
            while not cancelled():
                time.sleep(0.001)
            asked[0] = True
        return InferredTypes()

    monkeypatch.setattr(inference, "infer_types", waits)
    async with opened(models.write(tmp_path, SHAPES)) as session:
        await session.until(lambda: asked)
        session.edit(edits.renaming.rename_node(scope=[], node="aside", name="one"))
        await session.until(lambda: session.screen.model.has_fresh_types)
        assert asked[0]


async def errors_of_inference_lead_to_the_node_and_go_when_mended(session: Session) -> None:
    assert external(session) == []
    edit_attribute(session, [0, 1, 2, 3])
    await session.until(lambda: session.screen.model.has_fresh_types)
    (finding,) = (f for f in session.screen.findings.findings if f.rule == INFERENCE)
    assert finding.level == "error"
    assert finding.node is session.screen.document.main.nodes[0]
    assert "Transpose" in finding.message

    await session.press("u")
    await session.until(lambda: session.screen.model.has_fresh_types)
    assert external(session) == []


@pytest.mark.broad
async def test_a_model_that_inference_refuses_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> InferredTypes:
        raise ActivityError("it is too odd")

    monkeypatch.setattr(inference, "infer_types", refuse)
    async with inferred(tmp_path) as session:
        assert external(session) == ["shapes are unknown: it is too odd"]


async def new_models_and_everything_changed(session: Session) -> None:
    screen = session.screen
    screen.model.tell_change(DocumentChange("reset", None))
    assert screen.document.main.is_stale("s")
    await session.until(lambda: screen.model.has_fresh_types)
    assert not screen.document.main.is_stale("s")


async def nothing_is_asked_while_a_thread_may_edit(session: Session) -> None:
    screen = session.screen
    screen.tasks._cancel = event = threading.Event()
    screen.model.has_fresh_types = False
    screen.inference.infer()
    await session.pilot.pause()
    assert not screen.model.has_fresh_types
    screen.tasks._cancel = None
    await session.until(lambda: screen.model.has_fresh_types)
    assert not event.is_set()


def test_the_runtime_is_asked_of_a_snapshot(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    with contextlib.closing(Document.open(path)) as document:
        answer, told = inference.ask_runtime(document, path, lambda: False)
    assert (answer.asked, answer.loaded, answer.reason) == (True, True, "")
    assert told == []


@pytest.mark.broad
async def test_types_after_edits(tmp_path: Path) -> None:
    async with inferred(tmp_path) as session:
        for check in (
            new_models_and_everything_changed,
            nothing_is_asked_while_a_thread_may_edit,
            errors_of_inference_lead_to_the_node_and_go_when_mended,
            stale_at_once_and_refreshed_after_an_edit_undo_and_redo,
            the_graph_shows_types_that_come_late,
        ):
            await check(session)


@pytest.mark.broad
async def test_many_nodes_are_marked_and_told_in_slices(tmp_path: Path) -> None:
    count = 4_000
    path = write_long(tmp_path, count)
    async with opened(path) as session:
        screen, main = session.screen, session.screen.document.main
        await session.until(lambda: screen.model.has_fresh_types)
        assert main.value_type("v3000") == ValueType("float32", (2,))
        screen.inference.INFER_AFTER_S = (60.0, 60.0)  # type: ignore[misc]
        screen.history.edit(
            edits.attributes.set_attribute(scope=[], node="n0", attribute="k", kind="int", value=1)
        )
        assert len(main.stale) < count  # not all of it in one go
        await session.until(lambda: len(main.stale) == count)
