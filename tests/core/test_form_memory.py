from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.activities.registry import activities, load
from dld_tui.core.params import Setting, settings_of
from dld_tui.core.settings import state as form_memory
from dld_tui.core.settings.state import State
from dld_tui.core.types import JSON


def settings(activity: str) -> tuple[Setting, ...]:
    return settings_of(load(activity).request)


@pytest.fixture
def models(tmp_path: Path) -> tuple[str, str]:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).touch()
    return str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")


@pytest.mark.parametrize("activity", [info.id for info in activities()])
def test_no_file_list_or_shape_reaches_another_model(
    activity: str, models: tuple[str, str], tmp_path: Path
) -> None:
    """Whatever a form is filled with, the form of another model gets scalars alone."""
    first, second = models
    declared = settings(activity)
    filled: dict[str, JSON] = {s.name: _some(s) for s in declared} | {"model": first}
    state = State(tmp_path / "state")
    form_memory.keep(state, activity, declared, filled)
    again = form_memory.recall(state, activity, declared, second)
    paths = {s.name for s in declared if s.type is Path or s.param.kind}
    assert not paths & set(again) - {"model"}
    assert all(again[s.name] == filled[s.name] for s in declared if not s.of_model)
    if "model" in filled and any(s.name == "model" for s in declared):
        assert form_memory.recall(state, activity, declared, first) == filled
        assert again["model"] == second


def _some(setting: Setting) -> JSON:
    if setting.type in (int, float):
        return 3
    if setting.type is bool:
        return True
    return "text" if setting.type in (str, Path) else ["a", "b"]


def test_what_the_state_holds_need_not_make_sense(tmp_path: Path) -> None:
    state, declared = State(tmp_path / "state"), settings("convert_fp16")
    state.put("forms", "convert_fp16", {"model": 3, "no_such": 1, "node_block": ["x"]})
    state.put("model_forms", "convert_fp16", {"": ["x"], str(tmp_path): 7})
    assert form_memory.recall(state, "convert_fp16", declared, str(tmp_path)) == {
        "model": str(tmp_path)
    }
