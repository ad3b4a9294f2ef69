from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from dld_tui.core.errors import (
    CancelledError,
    CorruptFileError,
    FileChangedError,
    SaveError,
)
from dld_tui.core.files.blobs import Blob, SpillFile
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import splice, verify_model
from dld_tui.core.files.writer import Output, write_bytes, write_pieces, write_set, write_text
from tests.support.payloads import cut_file, weights


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["unnamed", "named"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with temporary files without a name, and as on a file system that has none."""
    if request.param == "named":
        monkeypatch.setattr("dld_tui.core.files.writer._HAS_UNNAMED", False)


pytestmark = pytest.mark.usefixtures("either_way", "replaces_all")


def test_writes_a_new_file(tmp_path: Path) -> None:
    assert write_bytes(tmp_path / "f", b"content") == []
    assert (tmp_path / "f").read_bytes() == b"content"
    write_text(tmp_path / "t", "text é \udcff")
    assert (tmp_path / "t").read_bytes() == b"text \xc3\xa9 \xff"
    write_bytes(tmp_path / "empty", b"")
    assert (tmp_path / "empty").stat().st_size == 0
    assert names(tmp_path) == ["empty", "f", "t"]


def test_a_new_file_has_the_mode_of_the_umask(tmp_path: Path) -> None:
    old = os.umask(0o027)
    try:
        write_bytes(tmp_path / "f", b"")
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == 0o640


def test_a_new_file_made_from_a_private_one_is_private(tmp_path: Path) -> None:
    for mode, expected in ((0o600, 0o600), (0o444, 0o644), (0o755, 0o644)):
        (tmp_path / "from").unlink(missing_ok=True)
        (tmp_path / "from").touch()
        (tmp_path / "from").chmod(mode)
        old = os.umask(0o022)
        try:
            write_pieces(tmp_path / f"to{mode:o}", [b""], like=Source.open(tmp_path / "from"))
        finally:
            os.umask(old)
        assert stat.S_IMODE((tmp_path / f"to{mode:o}").stat().st_mode) == expected


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f").chmod(mode)
    write_bytes(tmp_path / "f", b"new")
    assert stat.S_IMODE((tmp_path / "f").stat().st_mode) == mode
    assert (tmp_path / "f").read_bytes() == b"new"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    os.chown(tmp_path / "f", 12345, 23456)
    write_bytes(tmp_path / "f", b"new")
    status = (tmp_path / "f").stat()
    assert (status.st_uid, status.st_gid) == (12345, 23456)


def test_a_reader_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    with (tmp_path / "f").open("rb") as reader:
        write_bytes(tmp_path / "f", b"new content")
        assert reader.read() == b"old"


def test_a_file_can_be_written_over_itself(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [100_000] * 5)
    before = path.read_bytes()
    source = Source.open(path)
    skeleton, blobs = cut_file(path, 4096)
    write_pieces(path, splice(skeleton, blobs), like=source, verify=verify_model)
    assert path.read_bytes() == before
    assert path.stat().st_ino != source.identity.inode
    assert names(tmp_path) == ["m.onnx"]


def test_a_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "f").write_bytes(b"old")
    (tmp_path / "link").symlink_to("real/f")
    (tmp_path / "second").symlink_to(tmp_path / "link")
    write_bytes(tmp_path / "second", b"new")
    assert (tmp_path / "real" / "f").read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "second").is_symlink()
    (tmp_path / "dangling").symlink_to("real/new")
    write_bytes(tmp_path / "dangling", b"made")
    assert (tmp_path / "real" / "new").read_bytes() == b"made"


def test_hard_links_are_remarked_on(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    os.link(tmp_path / "f", tmp_path / "g")
    (remark,) = write_bytes(tmp_path / "f", b"new")
    assert "another hard link of it still has the old content" in remark
    assert (tmp_path / "g").read_bytes() == b"old"
    assert write_bytes(tmp_path / "f", b"again") == []


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "fifo")
    for name, words in (("folder", "is a directory"), ("fifo", "not a regular file")):
        with pytest.raises(SaveError, match=words):
            write_bytes(tmp_path / name, b"x")
    with pytest.raises(SaveError, match="not a regular file"):
        write_bytes("/dev/null", b"x")
    with pytest.raises(SaveError, match="does not exist"):
        write_bytes(tmp_path / "missing" / "f", b"x")
    with pytest.raises(SaveError, match="null"):
        write_bytes(f"{tmp_path}/a\0b", b"x")
    with pytest.raises(SaveError, match="too long"):
        write_bytes(tmp_path / ("n" * 300), b"x")
    assert names(tmp_path) == ["fifo", "folder"]


def test_a_name_of_full_length_is_fine(tmp_path: Path) -> None:
    write_bytes(tmp_path / ("n" * 255), b"x")
    assert (tmp_path / ("n" * 255)).read_bytes() == b"x"


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Make the kernel refuse to write more, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_fails_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    source = Source.open(weights(tmp_path / "from", [3 << 20]))
    (tmp_path / "f").write_bytes(b"old")
    pieces: list[bytes | Blob] = [b"head", Blob(source, 0, 3 << 20, "raw_data")]
    with files_of_at_most(1 << 20), pytest.raises(SaveError) as raised:
        write_pieces(tmp_path / "f", pieces)
    assert raised.value.where == str(tmp_path / "f")
    assert "File too large" in raised.value.message
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f", "from"]


@pytest.mark.parametrize("call", ["write", "fsync", "copy_file_range", "replace"])
def test_a_full_disk_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    source = Source.open(weights(tmp_path / "from", [1 << 20]))
    (tmp_path / "f").write_bytes(b"old")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(SaveError, match="the disk is full; what was there is untouched"):
        write_pieces(tmp_path / "f", [b"head", Blob(source, 0, 1 << 20, "raw_data")])
    monkeypatch.undo()
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f", "from"]


def test_too_little_space_is_known_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space = SimpleNamespace(f_bavail=2000, f_frsize=1000, f_blocks=10_000)
    monkeypatch.setattr(os, "statvfs", lambda _: space)
    progress: list[int] = []
    with pytest.raises(
        SaveError, match=r"1\.5 MB and a spare of 1\.05 MB are needed and only 2 MB"
    ):
        write_pieces(
            tmp_path / "f", [bytes(1_500_000)], progress=lambda done, _: progress.append(done)
        )
    assert progress == []
    with (
        closing(SpillFile(tmp_path)) as spill,
        pytest.raises(SaveError, match="only 2 MB"),
    ):
        spill.append(iter(()), length=1_500_000)
    write_bytes(tmp_path / "f", bytes(900_000))
    space.f_bavail = space.f_blocks = 0  # some network file systems do not say
    write_bytes(tmp_path / "g", bytes(900_000))


def test_a_folder_that_may_not_be_written_to(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user may write everywhere")
    try:
        with pytest.raises(SaveError, match="the folder is not writable"):
            write_bytes(tmp_path / "f", b"new")
    finally:
        tmp_path.chmod(0o755)
    assert (tmp_path / "f").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("code", "words"),
    [(errno.EROFS, "its disk is read-only"), (errno.EACCES, "the folder is not writable")],
)
def test_refusals_of_the_system_are_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(SaveError, match=words) as raised:
        write_bytes(tmp_path / "f", b"new")
    assert raised.value.hint == "Save to another folder"


def test_cancelling_leaves_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    answers = iter([False])
    with pytest.raises(CancelledError):
        write_pieces(tmp_path / "f", [bytes(100)], cancelled=lambda: next(answers, True))
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f"]


def test_what_cannot_be_read_back_is_not_put_in_place(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")

    def verify(path: Path) -> None:
        assert path.read_bytes() == b"new"
        raise CorruptFileError("protobuf ends early")

    with pytest.raises(SaveError, match="cannot be read back: protobuf ends early"):
        write_pieces(tmp_path / "f", [b"new"], verify=verify)
    assert (tmp_path / "f").read_bytes() == b"old"
    with pytest.raises(SaveError, match="cannot be read back"):
        write_pieces(tmp_path / "f", [b"no protobuf"], verify=verify_model)
    assert names(tmp_path) == ["f"]


SLOW_SAVE = """
import sys, time
from pathlib import Path
from dld_tui.core.files import writer
from dld_tui.core.files.writer import write_pieces
writer._HAS_UNNAMED = writer._HAS_UNNAMED and bool(sys.argv[2])
def verify(path):
    print("written", flush=True)
    time.sleep(60)
write_pieces(sys.argv[1], [bytes(5_000_000)], overwrite=True, verify=verify)
"""


def test_a_kill_while_saving_leaves_the_old_file(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    unnamed = request.node.callspec.params["either_way"] == "unnamed"
    (tmp_path / "f").write_bytes(b"old")
    command = [sys.executable, "-c", SLOW_SAVE, str(tmp_path / "f"), "1" if unnamed else ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGKILL)
    assert (tmp_path / "f").read_bytes() == b"old"
    if unnamed and makes_unnamed_files(tmp_path):
        assert names(tmp_path) == ["f"]


def makes_unnamed_files(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_RDWR | os.O_TMPFILE))
    except (AttributeError, OSError):
        return False
    return True


def test_a_file_that_somebody_changed_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"ours")
    source = Source.open(path)
    path.write_bytes(b"theirs")
    with pytest.raises(FileChangedError, match="changed by another program"):
        write_pieces(path, [b"new"], like=source)
    assert path.read_bytes() == b"theirs"
    write_bytes(path, b"new")  # on purpose
    assert path.read_bytes() == b"new"
    path.unlink()  # a file that is gone is not in the way
    write_pieces(path, [b"again"], like=source)
    write_pieces(tmp_path / "other", [b"x"], like=source)
    assert names(tmp_path) == ["f", "other"]


def test_a_change_while_writing_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"ours")
    source = Source.open(path)
    with pytest.raises(FileChangedError):
        write_pieces(
            path, [b"new"], like=source, verify=lambda _: void(path.write_bytes(b"theirs"))
        )
    assert path.read_bytes() == b"theirs"
    assert names(tmp_path) == ["f"]


def void(_: object) -> None:
    pass


def test_a_payload_file_that_shrank_leaves_the_target(tmp_path: Path) -> None:
    source = Source.open(weights(tmp_path / "from", [300_000]))
    os.truncate(tmp_path / "from", 1000)
    (tmp_path / "f").write_bytes(b"old")
    with pytest.raises(FileChangedError):
        write_pieces(tmp_path / "f", [Blob(source, 0, 300_000, "raw_data")])
    assert (tmp_path / "f").read_bytes() == b"old"
    assert names(tmp_path) == ["f", "from"]


def test_a_set_is_written_in_order_and_progress_is_of_all(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    outputs = [
        Output(tmp_path / "data", [bytes(100)], overwrite=False),
        Output(tmp_path / "m", [b"12"]),
    ]
    write_set(outputs, progress=lambda done, total: seen.append((done, total)))
    assert names(tmp_path) == ["data", "m"]
    assert seen[-1] == (102, 102)
