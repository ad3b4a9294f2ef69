"""The forms of all activities: what they show at every size, and that their command is F5."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from dld_tui.activities import registry
from dld_tui.activities.registry import Activity
from dld_tui.cli.main import run
from dld_tui.core.codec import encode
from dld_tui.core.errors import ActivityError
from dld_tui.core.events import Finished
from dld_tui.core.params import settings_of
from dld_tui.core.settings.config import Config
from dld_tui.core.settings.saved_targets import ConnectionForm
from dld_tui.core.tensorrt.capabilities import LibraryCapabilities
from dld_tui.core.text import cell_width
from dld_tui.core.types import JSON
from dld_tui.screens.activity.form import ActivityScreen
from dld_tui.screens.tensors.create_initializer import NewTensor
from dld_tui.targets import registry as targets
from dld_tui.targets.base import Job, Target
from dld_tui.widgets.dialogs.dialogs import QuestionDialog
from dld_tui.widgets.forms.param_form import LABEL_CELLS, ChoiceField, FieldRow, ParamForm
from tests.support import models
from tests.support.pages import ScriptedJob
from tests.support.workspace import NARROW, Session, opened

FORMS = [
    about
    for about in registry.activities()
    if about.modification is not None or about.offered or about.page_command or about.of_report
]
FEW = ("convert_quantize", "profile_onnxruntime", "convert_fold", "accuracy")
"""Those of each kind that `make check` walks; `make test` walks the first."""
SIZES = ((80, 24), (40, 15))
GIVEN: dict[str, dict[str, JSON]] = {
    "accuracy": {"round": "fp16"},
    "convert_clean": {"remove_unused": True},
    "gate": {"new": "model.onnx"},
    "convert_fold": {"node": ["first"]},
    "convert_io": {"images": "nhwc"},
    "convert_merge": {"others": ["model.onnx"]},
    "convert_opset": {"to": 18},
    "convert_restore": {"weights": "model.onnx"},
    "convert_shape": {"dim": ["x:0=2"]},
    "path": {"report": "r.dldprof"},
    "tactics": {},
    "placement": {"calibration": "inputs"},
    "reduce": {"check": "false {model}", "output": "less.onnx"},
    "refit": {"engine": "e.engine"},
    "score": {"dataset": "model.onnx"},
}
"""What the form of a small model needs to be run."""
PROBED: dict[str, dict[str, JSON]] = {
    "convert_quantize": {"weights_only": True, "weights": "uint4", "rounding": "k-quant"},
    "convert_append": {"step": "top-k", "k": 3},
    "profile_onnxruntime": {"duration": 0.5, "shape": ["x:2"], "io_binding": True},
    "convert_clean": {"constants_to_initializers": True, "sort": True},
}
"""Other values whose command is compared, too: flags of a question, lists, numbers, switches."""


class Asked(ActivityError):
    """A job was asked for, which is all that is wanted."""


class Recorder(Target):
    """Keeps what it is asked to run, and runs nothing."""

    name = "local"

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []

    def start(self, activity_id: str, request: Any) -> Job:
        if activity_id == "tensorrt_libraries":
            facts = LibraryCapabilities("tensorrt", "tensorrt", "10.1.0", world="weak")
            return ScriptedJob([Finished({"libraries": [encode(facts)]})])
        self.requests.append((activity_id, json.loads(json.dumps(dict(request)))))
        raise Asked("it was asked for")


@pytest.fixture(autouse=True)
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    found = Recorder()
    monkeypatch.setattr(targets, "get", lambda name=None: found)
    return found


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    models.write(tmp_path, models.CHAIN)
    (tmp_path / "e.engine").write_bytes(b"")
    (tmp_path / "r.dldprof").write_bytes(b"")
    return tmp_path


def few(about: Activity) -> Any:
    """Return the parameter of a test that walks only some forms unless all are asked for."""
    marks = [pytest.mark.broad] if about.id in FEW[1:] else []
    return pytest.param(about, id=about.id, marks=marks if about.id in FEW else pytest.mark.slow)


async def shown(session: Session, about: Activity, values: dict[str, JSON]) -> ActivityScreen:
    """Show a form as the workspace does, and fill it in."""
    if about.modification is not None:
        session.screen.conversion.ask_settings(about.id, {})
    elif about.of_report or not session.screen.show_activity(about.id):  # r.dldprof is no report
        session.app.start_activity(about.id, {"model": str(session.screen.document.path)})
    await session.until(
        lambda: (
            isinstance(session.app.screen, ActivityScreen)
            and session.app.screen.focused is not None
        )
    )
    form = session.in_front(ActivityScreen)
    form.query_one(ParamForm).set_values(values)
    await session.pilot.pause()
    return form


def test_no_label_is_cut() -> None:
    requests = [registry.load(about.id).request for about in FORMS]
    for request in (*requests, Config, ConnectionForm, NewTensor):
        for setting in settings_of(request):
            question = setting.param.one_of
            label = question.label if question is not None else setting.param.label
            assert cell_width(label) <= LABEL_CELLS, f"{request.__module__}: {label}"


def shown_rows(form: ActivityScreen) -> list[FieldRow]:
    """Return the rows of the page of the form that is shown."""
    fields = form.query_one(ParamForm)
    return [
        row for row in fields.rows.values()
        if row.setting.param.page == fields.page and row.display and row.is_attached
    ]  # fmt: skip


def look(session: Session, form: ActivityScreen, size: tuple[int, int]) -> None:
    """Check what can be seen of a page of a form."""
    focused = form.focused
    assert focused is not None
    seen = form._compositor.visible_widgets
    assert focused in seen, "the field under the cursor is in sight"
    region, clip = seen[focused]
    assert region.intersection(clip).width >= 8, "and wide enough to read a value"
    assert region.intersection(clip).height == 1
    text = session.text
    lines = text.splitlines()
    assert any("▌" in line for line in lines) or not isinstance(focused.parent, FieldRow)
    assert "Esc" in lines[-1]
    assert "F5" in lines[-1] or form.missing or not form.query_one(ParamForm).valid
    rows = shown_rows(form)
    for row in rows:
        assert row.why_not != ""
        if size[0] >= 80 and row in seen:
            assert any(row.setting.param.label in line for line in lines), row.setting.name
        if size[0] >= 80 and isinstance(row.field, ChoiceField) and row.field in seen:
            assert row.field.value in text or row.field.value in ("on", "off")


@pytest.mark.broad
@pytest.mark.parametrize("about", map(few, FORMS))
async def test_a_form_at_every_size(about: Activity, folder: Path) -> None:
    async with opened(folder / "model.onnx", NARROW) as session:
        form = await shown(session, about, {})
        fields = form.query_one(ParamForm)
        for size in SIZES:
            await session.pilot.resize_terminal(*size)
            await session.pilot.pause()
            for page in fields.shown_pages:
                fields.show_page(page)
                await session.until(lambda: form.focused is not None)
                await session.pilot.pause()
                look(session, form, size)
                last = [row for row in shown_rows(form) if row.field.focusable]
                if last:
                    last[-1].field.focus()
                    await session.pilot.pause()
                    look(session, form, size)


@pytest.mark.broad
async def test_a_long_problem_leaves_room_for_the_value_in_a_narrow_form(folder: Path) -> None:
    about = next(about for about in FORMS if about.id == "placement")
    async with opened(folder / "model.onnx", SIZES[-1]) as session:
        form = await shown(session, about, {"limit": "as long as it takes"})
        row = form.query_one(ParamForm).rows["limit"]
        assert cell_width(row.problem or "") > 12
        row.field.focus()
        await session.pilot.pause()
        look(session, form, SIZES[-1])


CHANGES = ("model", "output", "against", "in_place", "keep_wrong")
"""Settings that stand for a snapshot or a result of an open model, about which a page asks."""


RUN_IN_PARTS = {"routes", "gate"}
"""Activities whose command runs other ones, a job each."""


@pytest.mark.broad
@pytest.mark.parametrize("about", [few(about) for about in FORMS if about.id not in RUN_IN_PARTS])
async def test_the_command_is_what_the_form_runs(
    about: Activity, folder: Path, recorder: Recorder
) -> None:
    lines: list[str] = []
    asked: list[dict[str, Any]] = []
    async with opened(folder / "model.onnx", NARROW) as session:
        for values in ({}, *([PROBED[about.id]] if about.id in PROBED else ())):
            form = await shown(session, about, {**GIVEN.get(about.id, {}), **values})
            assert not form.missing
            assert form.query_one(ParamForm).valid
            lines.append(form.command_line)
            await session.press("f5")
            if isinstance(session.app.screen, QuestionDialog):
                await session.press("l")
            await session.until(lambda: len(recorder.requests) > len(asked))
            asked.append(recorder.requests[-1][1])
            while session.app.screen is not session.screen:
                await session.press("escape")
    typed: list[dict[str, Any]] = []
    for line in lines:
        words = shlex.split(line, comments=True)
        assert words[0] == "dld"
        recorder.requests.clear()
        run(words[1:])
        assert recorder.requests, f"refused: {line}"
        typed.append(recorder.requests[-1][1])
    is_applied = about.modification is not None
    for form_values, shell_values in zip(asked, typed, strict=True):
        for values in (form_values, shell_values):
            for name in CHANGES if is_applied or about.of_open_model else ("trust",):
                values.pop(name, None)
        assert form_values == shell_values
