from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.external import (
    ExternalDataError,
    ExternalFiles,
    in_huggingface_cache,
    resolve_external,
)
from dld_tui.core.files.source import Source


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a model's folder with data in it, below it and outside."""
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "m.onnx").touch()
    (home / "w.bin").write_bytes(bytes(range(200)))
    (home / "sub" / "w.bin").write_bytes(b"below")
    (tmp_path / "secret").write_bytes(b"secret")
    return home


@pytest.fixture
def never_outside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail when a call looks at anything outside the model's folder."""
    calls = {name: getattr(os, name) for name in ("open", "stat", "lstat", "readlink")}

    def guarded(name: str) -> object:
        def call(path: object, *rest: object, **options: object) -> object:
            if not isinstance(path, int):
                assert Path(os.fsdecode(path)).is_relative_to(folder), f"{name}({path!r})"  # type: ignore[arg-type]
            return calls[name](path, *rest, **options)

        return call

    # What resolves the model's own folder is not at issue.
    real = os.path.realpath(folder)
    monkeypatch.setattr(os.path, "realpath", lambda path: real if path == str(folder) else path)
    for name in calls:
        monkeypatch.setattr(os, name, guarded(name))


def refusal(folder: Path, location: str) -> str:
    with pytest.raises(ExternalDataError) as raised:
        resolve_external(folder / "m.onnx", location)
    assert raised.value.where == str(folder / "m.onnx")
    return raised.value.message


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("w.bin", "w.bin"),
        ("./w.bin", "w.bin"),
        ("sub/w.bin", "sub/w.bin"),
        ("sub//./w.bin", "sub/w.bin"),
        ("sub/../w.bin", "w.bin"),
        ("m.onnx", "m.onnx"),
    ],
)
def test_files_in_the_folder_and_below_are_found(
    folder: Path, location: str, expected: str
) -> None:
    assert resolve_external(folder / "m.onnx", location) == folder / expected


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    "location",
    [
        "../secret",
        "sub/../../secret",
        "sub/../..",
        "..",
        "/etc/passwd",
        "//etc/passwd",
        "..\\secret",
        "sub\\w.bin",
        "C:\\Windows\\win.ini",
        "C:w.bin",
        "\\\\server\\share\\w.bin",
    ],
)
def test_paths_out_of_the_folder_are_refused_untouched(folder: Path, location: str) -> None:
    assert refusal(folder, location).startswith("External data path leaves the model folder")


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("gone/../w.bin", "not found"),  # as the system and ONNX Runtime see it
        ("w.bin/../w.bin", "not found"),
        ("sub/w.bin/..", "not found"),
        ("sub/..", "not a regular file"),
    ],
)
def test_a_way_up_leads_through_folders_that_are_there(
    folder: Path, location: str, words: str
) -> None:
    assert words in refusal(folder, location)


@pytest.mark.usefixtures("never_outside")
@pytest.mark.parametrize(
    "target", ["../secret", "{outside}/secret", "sub/../../secret", "../home/../secret", "out2"]
)
def test_links_out_of_the_folder_are_refused_untouched(folder: Path, target: str) -> None:
    os.symlink(target.format(outside=folder.parent), folder / "out")
    os.symlink("../missing", folder / "out2")
    assert "leaves the model folder through a link" in refusal(folder, "out")


@pytest.mark.usefixtures("never_outside")
def test_linked_folders_out_of_the_folder_are_refused(folder: Path) -> None:
    os.symlink("..", folder / "up")
    os.symlink("/", folder / "root")
    assert "through a link" in refusal(folder, "up/secret")
    assert "through a link" in refusal(folder, "root/etc/passwd")


@pytest.mark.usefixtures("never_outside")
def test_links_inside_the_folder_are_followed(folder: Path) -> None:
    os.symlink("sub", folder / "folder-link")
    os.symlink("../w.bin", folder / "sub" / "up")
    os.symlink(folder / "w.bin", folder / "absolute")
    for location in ("folder-link/up", "sub/up", "absolute"):
        assert resolve_external(folder / "m.onnx", location) == folder / "w.bin"


@pytest.mark.usefixtures("never_outside")
def test_what_is_no_file_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "fifo")
    os.symlink("loop", folder / "loop")
    assert refusal(folder, "fifo") == "External data fifo is not a regular file"
    assert refusal(folder, "sub") == "External data sub is not a regular file"
    assert refusal(folder, ".") == "External data . is not a regular file"
    assert refusal(folder, "loop") == "External data loop is not a regular file"
    assert refusal(folder, "missing.bin") == "External data missing.bin not found"
    assert refusal(folder, "w.bin/deeper") == "External data w.bin/deeper not found"
    assert "invalid location" in refusal(folder, "")
    assert "invalid location" in refusal(folder, "a\0b")
    assert "File name too long" in refusal(folder, "n" * 300)


def test_messages_show_hostile_names_safely(folder: Path) -> None:
    message = refusal(folder, "\x1b]0;title\x07" + "n" * 100_000)
    assert "\x1b" not in message
    assert len(message) < 400


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """Return a model in the layout of a Hugging Face cache."""
    root = tmp_path / "models--org--name"
    snapshot = root / "snapshots" / "0123abcd"
    (root / "blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name, blob in (("model.onnx", "aa"), ("model.onnx_data", "bb")):
        (root / "blobs" / blob).write_bytes(name.encode())
        (snapshot / name).symlink_to(f"../../blobs/{blob}")
    return snapshot


def test_a_hugging_face_cache_is_read_when_links_are_allowed(cache: Path) -> None:
    model = cache / "model.onnx"
    with pytest.raises(ExternalDataError) as raised:
        resolve_external(model, "model.onnx_data")
    assert raised.value.link
    assert "Hugging Face cache" in (raised.value.hint or "")
    found = resolve_external(model, "model.onnx_data", allow_linked=True)
    assert found == cache.parents[1] / "blobs" / "bb"
    blob = ExternalFiles(model, allow_linked=True).blob({"location": "model.onnx_data"})
    assert blob.read() == b"model.onnx_data"
    assert in_huggingface_cache(model)
    assert not in_huggingface_cache(cache.parents[1] / "blobs" / "aa")


def test_allowing_links_allows_nothing_else(folder: Path) -> None:
    os.symlink("..", folder / "up")
    os.symlink("/dev/zero", folder / "zero")
    os.symlink("../gone", folder / "gone")
    model = folder / "m.onnx"
    assert resolve_external(model, "up/secret", allow_linked=True) == folder.parent / "secret"
    for location, words in (
        ("../secret", "leaves the model folder"),
        ("/etc/passwd", "leaves the model folder"),
        ("zero", "not a regular file"),
        ("gone", "not found"),
    ):
        with pytest.raises(ExternalDataError, match=words):
            resolve_external(model, location, allow_linked=True)


def test_payloads_are_ranges_of_one_shared_file(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    first = files.blob({"location": "w.bin", "offset": "10", "length": "5"})
    second = files.blob({"location": "w.bin", "offset": " 20 ", "length": "180", "evil": "x"})
    assert first.read() == bytes(range(10, 15))
    assert second.read(0, 1) == b"\x14"
    assert first.source is second.source


def test_entries_without_a_length_take_what_the_tensor_needs(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    assert files.blob({"location": "w.bin"}).length == 200
    assert files.blob({"location": "w.bin", "offset": "150"}).length == 50
    assert files.blob({"location": "w.bin", "offset": "150"}, expected=8).length == 8
    assert files.blob({"location": "w.bin", "length": "6"}, expected=8).length == 6
    with pytest.raises(ExternalDataError, match="Invalid offset/length"):
        files.blob({"location": "w.bin", "offset": "150"}, expected=51)


@pytest.mark.parametrize(
    ("offset", "length"),
    [
        ("-1", "4"),
        ("0", "-4"),
        ("201", "0"),
        ("0", "201"),
        ("199", "2"),
        ("9223372036854775808", "4"),
        ("9223372036854775807", "9223372036854775807"),
        ("9" * 100_000, "4"),
        ("0x10", "4"),
        ("1e2", "4"),
        ("", "4"),
        ("١", "4"),
    ],
)
def test_bad_offsets_and_lengths(folder: Path, offset: str, length: str) -> None:
    with pytest.raises(ExternalDataError, match="Invalid offset/length") as raised:
        ExternalFiles(folder / "m.onnx").blob(
            {"location": "w.bin", "offset": offset, "length": length}
        )
    assert len(str(raised.value)) < 1000


def test_data_of_a_linked_model_may_be_beside_the_real_file(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "short.onnx").symlink_to("home/m.onnx")
    files = ExternalFiles(tmp_path / "short.onnx")
    assert files.blob({"location": "w.bin", "length": "3"}).read() == b"\0\1\2"
    with pytest.raises(ExternalDataError, match="not found"):
        files.blob({"location": "missing"})
    with pytest.raises(ExternalDataError, match="leaves the model folder"):
        files.blob({"location": "../secret"})


def test_a_file_that_appears_later_is_found(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    with pytest.raises(ExternalDataError, match="not found"):
        files.blob({"location": "late"})
    (folder / "late").write_bytes(b"late")
    assert files.blob({"location": "late"}).read() == b"late"


def test_changes_on_disk_are_known(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    files.blob({"location": "w.bin"})
    files.blob({"location": "sub/w.bin"})
    assert files.changed_on_disk() == []
    (folder / "sub" / "w.bin").write_bytes(b"longer than before")
    assert files.changed_on_disk() == [folder / "sub" / "w.bin"]


def test_more_files_than_the_usual_limit(folder: Path) -> None:
    """Some exporters write a file for each weight."""
    for index in range(300):
        (folder / f"w{index}").write_bytes(b"x")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1024:
        pytest.skip("this system does not let a process open 1024 files")
    used = len(os.listdir("/proc/self/fd"))  # tests before this one may have left some open
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, used + 250), hard))
    try:
        files = ExternalFiles(folder / "m.onnx")
        blobs = [files.blob({"location": f"w{index}"}) for index in range(300)]
        assert b"".join(blob.read() for blob in blobs) == b"x" * 300
        files.close()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_written_data_file_takes_the_place_of_the_old_ones(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    entries = {"location": "w.bin", "offset": "10", "length": "20"}
    old = files.blob(entries)
    unsaved = files.blob({"location": "w.bin", "offset": "50", "length": "5"})
    pieces: list[bytes | Blob] = [b"pad", old]
    (folder / "new.data").write_bytes(b"pad" + old.read())
    new = Source.open(folder / "new.data")
    assert files.is_home(folder)
    files.adopt(pieces, new)
    assert not files.is_home(folder)
    assert files.is_data_file(new)
    assert files.blob(entries) == Blob(new, 3, 20, "raw_data")
    assert files.blob(entries).read() == old.read()
    assert files.blob({**entries, "length": "4"}).read() == old.read()[:4]
    assert files.blob({**entries, "length": "21"}).source is old.source
    assert files.blob({"location": "w.bin", "offset": "50", "length": "5"}) == unsaved
    # A second move: the copy is copied.
    (folder / "newer.data").write_bytes(old.read())
    newer = Source.open(folder / "newer.data")
    files.adopt([files.blob(entries)], newer)
    assert files.blob(entries) == Blob(newer, 0, 20, "raw_data")
    files.close()
    with pytest.raises(ValueError, match="closed"):
        _ = newer.descriptor


def test_messages_name_the_path_that_the_model_was_saved_to(folder: Path) -> None:
    files = ExternalFiles(folder / "m.onnx")
    files.moved_to(folder / "other" / "n.onnx")
    assert files.blob({"location": "w.bin"}).length == 200
    with pytest.raises(ExternalDataError) as raised:
        files.blob({"location": "w.bin", "offset": "x"})
    assert raised.value.where == str(folder / "other" / "n.onnx")
