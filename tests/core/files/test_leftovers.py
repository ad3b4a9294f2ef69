from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dld_tui.core.files.writer import PREFIX, hold_file, hold_folder, release, sweep

_OWNER = """
import sys, time
from pathlib import Path
from dld_tui.core.files.writer import hold_file, hold_folder
folder = Path(sys.argv[1])
made = hold_file(folder, ".onnx")
for name in (f"{made.name}.data", f"{made.stem}-out.onnx"):
    (folder / name).write_bytes(b"1")
(hold_folder(folder) / "model.onnx").write_bytes(b"1")
print("made", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def owner(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a process that holds a file with what belongs to it, and a folder."""
    command = [sys.executable, "-c", _OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "made\n"
        yield process
        process.kill()


def test_what_a_killed_process_held_is_removed(
    tmp_path: Path, owner: subprocess.Popen[str]
) -> None:
    others = [".dld-view-", ".dld-views", "dld-view-12345678", "m.onnx"]
    for name in others:
        (tmp_path / name).write_bytes(b"1")
    before = sorted(os.listdir(tmp_path))
    assert len(before) == len(others) + 4
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == before  # its owner lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    sweep(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_what_this_process_holds_stays_until_it_lets_go(tmp_path: Path) -> None:
    file, folder = hold_file(tmp_path, ".onnx"), hold_folder(tmp_path)
    sweep(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([file, folder])
    release(file)
    release(folder)
    release(folder)  # twice is no error
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_has_lost_its_owner_is_removed(tmp_path: Path) -> None:
    (tmp_path / f"{PREFIX}0123abcd.onnx.data").write_bytes(b"1")
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "m.onnx").write_bytes(b"1")
    swept = tmp_path / "swept"
    swept.mkdir()
    (swept / f"{PREFIX}0123abcd").symlink_to(tmp_path / "kept")
    (swept / f"{PREFIX}0123abce.onnx").symlink_to(tmp_path / "kept" / "m.onnx")
    sweep(swept)
    assert os.listdir(tmp_path / "kept") == ["m.onnx"]


def test_a_file_system_without_locks_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refused)
    file = hold_file(tmp_path, ".onnx")
    release(file)
    sweep(tmp_path)
    assert file.exists()


def test_one_that_is_swept_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def lock(descriptor: int, _: int) -> None:
        if len(taken) in (0, 2):  # the first file, the first folder
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            path.unlink() if path.is_file() else path.rmdir()
        taken.append(tmp_path)

    monkeypatch.setattr("fcntl.flock", lock)
    file, folder = hold_file(tmp_path, ".onnx"), hold_folder(tmp_path)
    assert len(taken) == 4
    assert file.is_file()
    assert folder.is_dir()
    release(file)
    release(folder)


def test_a_folder_that_is_not_there_or_not_readable_is_no_error(tmp_path: Path) -> None:
    sweep(tmp_path / "nothing")
