from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dld_tui
from dld_tui.core.files import temporary
from dld_tui.core.files.temporary import (
    discard,
    hold_file,
    hold_folder,
    is_made_here,
    release,
    staging_path,
    sweep,
    temporary_folder,
)

_OWNER = """
import os, sys
from pathlib import Path
from dld_tui.core.files import writer
from dld_tui.core.files.temporary import hold_file, hold_folder
folder = Path(sys.argv[1])
made = hold_file(folder)
for name in (f"{made.name}.data", f"{made.stem}-out.onnx"):
    (folder / name).write_bytes(b"1")
os.symlink(os.devnull, folder / f"{made.stem}.weights")
(hold_folder("view", folder) / "model.onnx").write_bytes(b"1")
(hold_folder("snapshot") / "inner").mkdir()
writer._HAS_UNNAMED = False
staged = writer.StagedFile(folder / "new.onnx", 1).__enter__()
print("made", flush=True)
sys.stdin.read()
"""

# What makes temporary files, with the part in the middle that reports and waits.
_KINDS = {
    "an optimised model": """
from dld_tui.backends.onnxruntime import session, session_options
session.Session = wait
session.save_optimized_model(here / "m.onnx", session_options.SessionSettings(), here / "o.onnx", 0)
""",
    "a report that is read": """
from dld_tui.core.report.report import temporary_report
temporary_report(here / "r.json", wait, network="", backend="")
""",
    "a profile of the library": """
from dld_tui.api import commands, requests
requests.written_files = wait
(here / "m.onnx").write_bytes(b"")
commands.profile(here / "m.onnx")
""",
    "a tool": """
from dld_tui.activities import tool
from dld_tui.core.settings.custom_tools import Tool
tool._run = wait
(here / "m.onnx").write_bytes(b"")
request = tool.Request(
    "t", "/bin/true", here / "m.onnx", ("$Output",), ".txt", here / "o.txt"
)
list(tool.run(request))
""",
    "a job": """
from dld_tui.targets import process
process.ProcessJob._open_selector = wait
process.ProcessJob(["/bin/true"], {}, process.Delays())
""",
    "a model in text form": """
import onnx
from dld_tui.core.files.model_set import binary_file
(here / "m.onnxtxt").write_text('<ir_version: 8, opset_import: ["" : 17]> g () => () {}')
with binary_file(here / "m.onnxtxt"):
    wait()
""",
}
_BEGIN = """
import sys
from pathlib import Path
here = Path(sys.argv[1])
def wait(*_, **__):
    print("made", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that is the one for temporary files, too, here and in children."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def _started(code: str, folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, str(folder)]
    process = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "made\n"
    return process


def _killed(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    with process:
        pass


@pytest.fixture
def owner(place: Path) -> Iterator[subprocess.Popen[str]]:
    """Return a process that holds one of each."""
    process = _started(_OWNER, place)
    yield process
    _killed(process)


def test_what_a_killed_process_held_is_removed(place: Path, owner: subprocess.Popen[str]) -> None:
    others = [".dld-view-", ".dld-views", ".dld-view-0123abcd.onnx", "dld-job-abcdefgh", "m.onnx"]
    for name in others:
        (place / name).write_bytes(b"1")
    folders = ["dld-snapshot-0123456-89abcdef", "dld-job-important", "dld-types-of-mine"]
    for name in folders:
        (place / name / "kept").mkdir(parents=True)
    snapshot = next(place.glob("dld-snapshot-*/inner")).parent.name
    folders.append(f"{snapshot}-copy")
    (place / folders[-1]).mkdir()
    before = sorted(os.listdir(place))
    assert len(before) == len(others) + len(folders) + 7
    sweep(place)
    assert sorted(os.listdir(place)) == before  # its owner lives
    _killed(owner)
    sweep(place)
    assert sorted(os.listdir(place)) == sorted([*others, *folders])


@pytest.mark.parametrize("kind", _KINDS)
def test_the_next_that_makes_something_removes_what_a_kill_left(kind: str, place: Path) -> None:
    process = _started(_BEGIN + _KINDS[kind], place)
    made = [name for name in os.listdir(place) if "dld-" in name]
    assert len(made) == 1
    assert is_made_here(made[0])
    with temporary_folder("next"):
        assert made[0] in os.listdir(place)
    _killed(process)
    with temporary_folder("next"):
        assert made[0] not in os.listdir(place)
    assert not any("dld-" in name for name in os.listdir(place))


def test_nothing_else_makes_temporary_files_with_a_name() -> None:
    source = Path(dld_tui.__file__).parent
    makers = re.compile(r"\b(mkdtemp|mkstemp|TemporaryDirectory|NamedTemporaryFile|mktemp)\b")
    found = [path for path in source.rglob("*.py") if makers.search(path.read_text("utf-8"))]
    assert found == []


def lowest_free_descriptor() -> int:
    descriptor = os.dup(0)
    os.close(descriptor)
    return descriptor


def test_what_this_process_holds_stays_until_it_lets_go(tmp_path: Path) -> None:
    file, folder = hold_file(tmp_path), hold_folder("test", tmp_path)
    before = lowest_free_descriptor()
    sweep(tmp_path)
    assert lowest_free_descriptor() == before
    assert sorted(tmp_path.iterdir()) == sorted([file, folder])
    release(file)
    release(folder)
    release(folder)  # twice is no error
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_folders_are_private_and_their_names_ours(place: Path) -> None:
    folder = hold_folder("test")
    assert folder.stat().st_mode & 0o777 == 0o700
    assert folder.parent == place
    assert is_made_here(folder.name)
    assert not is_made_here(folder.name[:-1] + ("0" if folder.name[-1] != "0" else "1"))
    discard(folder)
    assert list(place.iterdir()) == []


def test_what_has_lost_its_owner_is_removed(tmp_path: Path) -> None:
    file = hold_file(tmp_path)
    (tmp_path / f"{file.name}.data").write_bytes(b"1")
    file.unlink()
    release(file)
    sweep(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_belongs_to_another_user_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, file = hold_folder("test", tmp_path), hold_file(tmp_path)
    release(folder)
    release(file)
    monkeypatch.setattr("os.geteuid", lambda: folder.stat().st_uid + 1)
    before = lowest_free_descriptor()
    sweep(tmp_path)
    assert lowest_free_descriptor() == before
    assert folder.exists()
    assert file.exists()


def test_links_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "m.onnx").write_bytes(b"1")
    swept = tmp_path / "swept"
    swept.mkdir()
    staging_path(swept).with_suffix("").symlink_to(tmp_path / "kept")
    staging_path(swept).with_suffix(".onnx").symlink_to(tmp_path / "kept" / "m.onnx")
    (hold_folder("test", swept) / "link").symlink_to(tmp_path / "kept")
    for path in tuple(temporary._held):
        if path.parent == swept:
            release(path)
    sweep(swept)
    assert os.listdir(tmp_path / "kept") == ["m.onnx"]
    assert len(os.listdir(swept)) == 2


def test_a_file_system_without_locks_keeps_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr("fcntl.flock", refused)
    file = hold_file(tmp_path)
    release(file)
    sweep(tmp_path)
    assert file.exists()


def test_one_that_is_swept_before_it_is_held_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary, "sweep", lambda _: None)
    taken: list[Path] = []

    def lock(descriptor: int, _: int) -> None:
        if len(taken) in (0, 2):  # the first file, the first folder
            path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
            path.unlink() if path.is_file() else path.rmdir()
        taken.append(tmp_path)

    monkeypatch.setattr("fcntl.flock", lock)
    before = lowest_free_descriptor()
    file, folder = hold_file(tmp_path), hold_folder("test", tmp_path)
    assert len(taken) == 4
    assert file.is_file()
    assert folder.is_dir()
    release(file)
    release(folder)
    assert lowest_free_descriptor() == before


def test_caches_that_no_code_reads_any_more_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NV_DLD_CACHE_DIR", str(tmp_path))
    name = "0123456789abcdef" * 2
    for folder in ("reduce", "precision-search", "trials", "tune"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.jsonl").write_bytes(b"{}\n")
    (tmp_path / "precision-search" / "mine.txt").write_bytes(b"1")
    (tmp_path / "elsewhere" / name).mkdir(parents=True)
    (tmp_path / "tactic-search").symlink_to(tmp_path / "elsewhere")
    temporary._remove_old_caches.cache_clear()
    with temporary_folder("test"):
        pass
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if not path.is_dir()}
    kept = {f"{folder}/{name}.jsonl" for folder in ("trials", "tune")}
    assert left == {*kept, "precision-search/mine.txt"}
    assert (tmp_path / "elsewhere" / name).is_dir()
    assert not (tmp_path / "reduce").exists()
