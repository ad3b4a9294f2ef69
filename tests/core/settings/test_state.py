from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.core.params import FORMER_IDS
from dld_tui.core.settings.state import (
    HABITS,
    PRESETS,
    RecentFile,
    State,
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


def test_values_are_kept_by_section_and_key_until_they_are_empty(state: State) -> None:
    state.put("layouts", "a", {"x": 1})
    state.put("layouts", "b", {"y": [None, "é"]})
    state.put("targets", "a", {"z": {}})
    state.put("layouts", "a", {"w": 2})
    again = State(state.folder)
    assert [again.get("layouts", key) for key in "abc"] == [{"w": 2}, {"y": [None, "é"]}, {}]
    assert again.get("targets", "a") == {"z": {}}
    again.put("layouts", "a", {})
    again.put("layouts", "never", {})
    assert json.loads((state.folder / "layouts.json").read_bytes()) == {"b": {"y": [None, "é"]}}
    (state.folder / "layouts.json").write_text('{"a": 3, "b": {}}')
    assert [state.get("layouts", key) for key in "ab"] == [{}, {}]


def test_activities_keep_what_was_remembered_under_their_former_names(state: State) -> None:
    former, now = next(iter(FORMER_IDS.items()))
    state.put(HABITS, former, {"x": 1})
    assert state.get(HABITS, now) == {"x": 1}
    state.put(PRESETS, now, {"y": 2})
    state.put("layouts", former, {"z": 3})
    assert (state.get(PRESETS, now), state.get("layouts", now)) == ({"y": 2}, {})
    (state.folder / f"{HABITS}.json").write_text(
        json.dumps({former: {"x": 1}, now: {"x": 4}, "other": {"v": 5}})
    )
    assert [state.get(HABITS, key) for key in (now, former, "other")] == [{"x": 4}, {}, {"v": 5}]
