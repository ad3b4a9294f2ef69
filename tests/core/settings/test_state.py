from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dld_tui.core.settings.state import (
    HABITS,
    OF_MODELS,
    PRESETS,
    RecentFile,
    State,
    keep,
    recall,
)


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def test_recent_files_are_newest_first_and_so_many(state: State, tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx", "a.onnx"):
        state.opened(tmp_path / name, "ONNX")
    assert [Path(file.path).name for file in state.recent()] == ["a.onnx", "b.onnx"]
    assert state.recent()[0].kind == "ONNX"
    assert state.recent()[0].opened > 1e9
    for number in range(30):
        state.opened(f"/m/{number}.onnx", "ONNX", keep=5)
    assert len(state.recent()) == 5
    state.forget("/m/29.onnx")
    assert [Path(file.path).name for file in state.recent()] == [
        f"{n}.onnx" for n in (28, 27, 26, 25)
    ]


def test_values_by_section_and_key(state: State) -> None:
    state.put("layouts", "workspace", {"explorer": 40})
    state.put("layouts", "report", {"summary": 5})
    assert state.get("layouts", "workspace") == {"explorer": 40}
    assert State(state.folder).get("layouts", "report") == {"summary": 5}
    state.put("layouts", "workspace", {})
    assert state.get("layouts", "workspace") == {}


BROKEN = '{"files": [1, {}, {"path": "/m/b", "kind": "ONNX", "opened": "x"}'
WHOLE = RecentFile("/m/c", "ONNX", 2.0)


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        *((text, []) for text in ("", "[]", "{", "null", '{"files": 3}', BROKEN + "]}")),
        (BROKEN + ', {"path": "/m/c", "kind": "ONNX", "opened": 2}, null]}', [WHOLE]),
    ],
)
def test_of_a_broken_file_what_is_whole_is_left(
    state: State, text: str, whole: list[RecentFile]
) -> None:
    state.folder.mkdir()
    (state.folder / "recent.json").write_text(text)
    assert state.recent() == whole
    state.opened("/m/a.onnx", "ONNX")
    assert state.recent()[1:] == whole


def test_names_and_folders_of_any_kind(tmp_path: Path, state: State) -> None:
    (tmp_path / "file").write_text("")
    unwritable = State(tmp_path / "file")
    unwritable.opened("/m/a.onnx", "ONNX")
    assert unwritable.recent() == []
    state.opened("/m/\udcff.onnx", "ONNX")
    assert state.recent()[0].path == "/m/\udcff.onnx"


@pytest.mark.parametrize("section", [HABITS, OF_MODELS, PRESETS])
def test_what_an_activity_had_under_its_former_name_is_read(state: State, section: str) -> None:
    state.put(section, "refit_engine", {"engine": "old.engine"})
    assert state.get(section, "refit") == {"engine": "old.engine"}
    state.put(section, "refit", {"engine": "new.engine"})
    assert State(state.folder).get(section, "refit") == {"engine": "new.engine"}
    assert "refit_engine" not in (state.folder / f"{section}.json").read_text()


def test_a_form_is_filled_with_habits_and_with_what_belongs_to_the_model(
    state: State, tmp_path: Path
) -> None:
    one, two = (str(tmp_path / name) for name in ("one.onnx", "two.onnx"))
    Path(one).touch()
    Path(two).touch()
    settings: Any = [
        SimpleNamespace(name=name, of_model=name in ("model", "shapes"))
        for name in ("model", "shapes", "runs", "device")
    ]
    keep(state, "build", settings, {"model": one, "shapes": "x:1", "runs": 3, "lost": 1})
    keep(state, "build", settings, {"model": two, "shapes": "x:2", "runs": 4, "device": None})
    both = {"model": two, "shapes": "x:2", "runs": 4}
    assert recall(state, "build", settings) == both
    assert recall(state, "build", settings, one) == {"model": one, "shapes": "x:1", "runs": 4}
    assert recall(state, "build", settings, "gone.onnx") == {"model": "gone.onnx", "runs": 4}
    assert recall(state, "other", settings) == {}
    # What the form no longer has is left out, and what moved between habits and models, too.
    fewer: Any = [
        SimpleNamespace(name=name, of_model=name == "runs") for name in ("runs", "shapes")
    ]
    assert recall(state, "build", fewer) == {}
    assert state.get(OF_MODELS, "build") == {one: {"shapes": "x:1"}, two: {"shapes": "x:2"}}
    keep(state, "build", settings, {"model": "gone.onnx", "shapes": "x:9", "runs": 5})
    assert recall(state, "build", settings) == {"model": "gone.onnx", "runs": 5}
    keep(state, "build", settings, {"model": one, "shapes": "x:3"})
    assert [*state.get(OF_MODELS, "build")] == [two, one]
    keep(state, "build", settings, {"runs": 1})
    assert recall(state, "build", settings) == {"runs": 1}


def test_settings_of_so_many_models_are_remembered(state: State, tmp_path: Path) -> None:
    settings: Any = [SimpleNamespace(name="shapes", of_model=True)]
    for number in range(31):
        (tmp_path / f"{number}.onnx").touch()
        path = str(tmp_path / f"{number}.onnx")
        keep(state, "build", settings, {"model": path, "shapes": str(number)})
    kept: Any = state.get(OF_MODELS, "build")
    assert [one["shapes"] for one in kept.values()] == [str(number) for number in range(1, 31)]
