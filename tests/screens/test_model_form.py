"""The forms of comparisons and searches on an open model: they run what is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx.numpy_helper
import pytest

from dld_tui.core.accuracy.result import AccuracyReport
from dld_tui.core.codec import decode, encode
from dld_tui.core.events import Cancelled, Event, Failed, Finished, Log, Metric
from dld_tui.core.model import edits
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.types import JSON, NodePlace
from dld_tui.screens.activity.document_forms import BOTH, EDITED, SAVED, ModelForm
from dld_tui.screens.activity.jobs import JobScreen
from dld_tui.screens.results.accuracy import AccuracyScreen, TacticsScreen
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job, Target
from dld_tui.widgets.forms.param_form import ChoiceField, ParamForm
from tests.cli.test_results import FOUND
from tests.support import models
from tests.support.pages import ScriptedJob
from tests.support.workspace import NARROW, Session, opened

Answer = Callable[[dict[str, Any]], Sequence[Event]]


class FakeTarget(Target):
    """Keeps the requests and what their models are."""

    name = "local"

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.weights: list[list[float]] = []
        self.answer: Answer = lambda request: [Cancelled()]

    def start(self, activity_id: str, request: Any) -> Job:
        if activity_id == "tensorrt_libraries":
            facts = LibraryCapabilities("tensorrt", "tensorrt", "10.1.0", world="weak")
            return ScriptedJob([Finished({"libraries": [encode(facts)]})])
        self.requests.append((activity_id, dict(request)))
        snapshot = request["against"] if request.get("against") else request["model"]
        graph = onnx.load(snapshot).graph
        self.weights.append(onnx.numpy_helper.to_array(graph.initializer[0]).ravel().tolist())
        return ScriptedJob(self.answer(dict(request)))


@pytest.fixture(autouse=True)
def target(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    found = FakeTarget()
    monkeypatch.setattr(targets, "get", lambda name=None: found)
    return found


def compared(request: dict[str, Any]) -> Sequence[Event]:
    """Return the result of a comparison of one tensor."""
    other = request["against"] or request["model"]
    how = {"how": "CPU", "round": "none", "library": "", "provider": "", "optimization": ""}
    error: dict[str, JSON] = {
        "shape": [4], "count": 4, "max_abs": 1.0, "mean_abs": 1.0, "max_rel": 1.0, "mean_rel": 1.0,
        "cosine": 0.5, "snr_db": 1.0, "largest": 1.0, "nan_reference": 0, "nan_other": 0,
        "inf_reference": 0, "inf_other": 0, "special": 0, "outside": 4, "mismatch": "",
    }  # fmt: skip
    row: dict[str, JSON] = {
        "name": "b", "other": "b", "node": "second", "op_type": "Mul", "order": 1,
        "is_output": True, "tolerance": "atol 1", "problem": "off", "error": error,
    }  # fmt: skip
    return [
        Log(f"read {request['model']}"),
        Finished({
            "reference": {"model": request["model"], **how}, "other": {"model": other, **how},
            "tolerance": "atol 1", "tensors": [row], "remarks": [], "is_good": False,
            "inputs": [], "sets": 1, "guess": None, "first": "b", "unmatched": 0,
            "not_compared": {}, "kept_bytes": 0, "seconds": 1.0,
        }),
    ]  # fmt: skip


def weigh(session: Session, value: float) -> None:
    """Edit a weight."""
    session.edit(
        edits.tensors.set_elements(scope=[], tensor={"initializer": "w"}, start=0, values=[value])
    )


async def shown(session: Session, action: Callable[[], None]) -> ModelForm:
    action()
    form = await session.front(ModelForm)
    await session.until(lambda: form.is_mounted and form.focused is not None)
    return form


async def chosen(session: Session, form: ModelForm, state: str) -> None:
    form.query_one("#state ChoiceField", ChoiceField).value = state
    await session.until(lambda: form.chosen_state == state)
    await session.pilot.pause()


def reasons(form: ModelForm) -> dict[str, str]:
    rows = form.query_one(ParamForm).rows
    return {name: row.why_not for name, row in rows.items() if row.why_not is not None}


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


@pytest.mark.broad
async def test_the_file_against_the_edits(tmp_path: Path, target: FakeTarget) -> None:
    path = models.write(tmp_path, models.CHAIN)
    target.answer = compared
    async with opened(path, NARROW) as session:
        weigh(session, 3)
        form = await shown(session, session.screen.activities.compare)
        assert form.choices == (EDITED, SAVED, BOTH)
        assert "(•) as edited" in session.text
        assert reasons(form)["model"] == "", "it is not there"
        await session.press("f5")
        await session.shows("Nothing to compare with yet")
        await session.press("escape")

        await chosen(session, form, BOTH)
        assert reasons(form)["model"] == reasons(form)["against"] == ""
        await session.press("f5")
        await session.front(AccuracyScreen)
        ((_, request),) = target.requests
        assert request["model"] == str(path)
        assert target.weights[0][0] == 3
        page = session.in_front(AccuracyScreen)
        assert page.tab_title == "accuracy of model.onnx as edited"
        await session.shows("other      model.onnx as edited (CPU)")
        assert files(tmp_path) == ["model.onnx"]
        for model, is_own in ((path, True), (tmp_path / "another.onnx", False)):
            view: Any = form.result_view(page.result, {"model": str(model)})
            assert (view.subject.state is form.state) is is_own

        await session.press("enter")
        await session.until(lambda: session.app.page is session.screen)
        await session.until(lambda: session.screen.explorer.node is not None)
        assert session.at == "second"

        errors, legend = session.screen.activities.tensor_errors()
        assert [node.name for node in errors] == ["second"]
        assert legend == page.tab_title
        weigh(session, 5)
        assert session.screen.activities.tensor_errors()[1].endswith(
            "as edited, before the last edits"
        )
        session.app.show_page(page)
        await session.shows("edited since")
        session.screen.history.undo()
        assert not page.subject.is_outdated
        await session.press("f5")
        await session.front(ModelForm)
        assert session.app.page is session.screen


@pytest.mark.broad
async def test_what_is_named_after_the_model_and_what_is_said_of_it(
    tmp_path: Path, target: FakeTarget
) -> None:
    path = models.write(tmp_path, models.CHAIN)
    at: dict[str, Any] = {"scope": (), "node": "second"}

    def fail(request: dict[str, Any]) -> Sequence[Event]:
        model = request["model"]
        return [
            Metric("error", 3.25, "dB"),
            Failed(f"bad {model}", where=model, finding=NodePlace(model, **at)),
        ]

    target.answer = fail
    async with opened(path, NARROW) as session:
        weigh(session, 3)
        await shown(session, session.screen.activities.tactics)
        await session.press("f5")
        await session.shows("model.onnx as edited: bad model.onnx as")
        assert target.requests[0][1]["avoid"] == "model.tactics"
        assert isinstance(session.app.screen, JobScreen)
        assert "model.onnx, as edited" in session.text
        assert "3.25 dB" in session.text
        target.answer = lambda request: [Finished(FOUND)]
        await session.press("f5")
        await session.front(TacticsScreen)
        assert target.requests[0][1]["model"] == target.requests[1][1]["model"]
        assert files(tmp_path) == ["model.onnx"]


def test_the_nodes_of_an_engine_are_those_of_its_model() -> None:
    *_, last = compared({"model": "a.engine", "against": "m.onnx"})
    assert isinstance(last, Finished)
    assert AccuracyScreen(
        decode(AccuracyReport, last.result), Path("a.engine")
    ).subject.path == Path("m.onnx")
