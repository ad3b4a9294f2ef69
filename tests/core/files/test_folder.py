from __future__ import annotations

import os
from pathlib import Path

import pytest

from dld_tui.core.files import folder as folders
from dld_tui.core.files.folder import FolderScan, in_order


def scan(folder: Path, **limits: float) -> FolderScan:
    found = FolderScan(str(folder), **limits)
    for _ in found.steps():
        pass
    return found


def names(found: FolderScan, folder: Path) -> list[str]:
    return [os.path.relpath(file.path, folder) for file in in_order(found.files)]


def touch(path: Path, modified: float = 0.0, data: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (modified, modified))
    return path


def test_files_of_a_folder_and_of_those_below_are_found_newest_first(tmp_path: Path) -> None:
    touch(tmp_path / "b.onnx", 10)
    touch(tmp_path / "a.onnx", 10)
    touch(tmp_path / "deep/er/r.dldprof", 30)
    touch(tmp_path / "layers.json", 20, b'{"Layers": [], "Bindings": []}')
    touch(tmp_path / "other.json", 40, b'{"x": 1}')
    touch(tmp_path / ".git/hidden.onnx", 50)
    touch(tmp_path / "notes.txt", 50)
    found = scan(tmp_path)
    assert names(found, tmp_path) == ["deep/er/r.dldprof", "layers.json", "a.onnx", "b.onnx"]
    assert {file.kind for file in found.files} == {"ONNX", "REPORT", "ENGINE_LAYERS"}
    assert found.note == ""


def test_the_nearest_folder_comes_first(tmp_path: Path) -> None:
    touch(tmp_path / "near.onnx")
    touch(tmp_path / "z/far.onnx")
    steps = [len(files) for files in FolderScan(str(tmp_path)).steps()]
    assert steps == [1, 1]


def test_what_cannot_be_read_does_no_harm(tmp_path: Path) -> None:
    touch(tmp_path / "m.onnx")
    (tmp_path / "loop").symlink_to(tmp_path)
    (tmp_path / "gone.onnx").symlink_to(tmp_path / "nowhere")
    (tmp_path / "linked.onnx").symlink_to(tmp_path / "m.onnx")
    os.mkfifo(tmp_path / "pipe.onnx")
    (tmp_path / "folder.onnx").mkdir()
    assert sorted(names(scan(tmp_path), tmp_path)) == ["linked.onnx", "m.onnx"]
    assert scan(tmp_path / "nowhere").note == "1 folder cannot be read"


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("MOST_ENTRIES", 5, "the first 5 names were looked at"),
        ("MOST_FILES", 5, "the first 5 files are listed"),
        ("_MOST_READ", 5, ""),
    ],
)
def test_there_is_a_limit_to_names_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, said: str
) -> None:
    monkeypatch.setattr(folders, limit, value)
    suffix = ".json" if limit == "_MOST_READ" else ".onnx"
    for number in range(20):
        touch(tmp_path / f"{number}{suffix}", data=b'{"Layers": [], "Bindings": []}')
    found = scan(tmp_path)
    assert len(found.files) == 5
    assert found.note == said


def test_there_is_a_limit_to_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "_CHECK_EVERY", 1)
    for number in range(20):
        touch(tmp_path / f"{number}.onnx")
    found = scan(tmp_path, limit_s=-1.0)
    assert not found.files
    assert found.note == "stopped after -1 s, 1 names"
