from __future__ import annotations

import errno
import gc
import os
import socket
from pathlib import Path

import pytest

from dld_tui.core.errors import FileChangedError, InputError
from dld_tui.core.files import source as source_module
from dld_tui.core.files.source import Source, input_error, open_error


def message_of(path: Path | str) -> str:
    with pytest.raises(InputError) as raised:
        Source.open(path)
    assert raised.value.where == str(path)
    return raised.value.message


def test_ranges_are_read_and_links_followed_where_wanted(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(range(100)))
    source = Source.open(tmp_path / "f")
    assert source.size == 100
    assert source.read(10, 5) == bytes(range(10, 15))
    assert source.read(100, 0) == b""
    (tmp_path / "f").write_bytes(b"content")
    (tmp_path / "link").symlink_to("f")
    assert Source.open(tmp_path / "link").read(0, 7) == b"content"
    with pytest.raises(InputError):
        Source.open(tmp_path / "link", follow_link=False)


@pytest.mark.parametrize("huge", [1 << 30, 1])
def test_reads_a_whole_file(huge: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "_HUGE", huge)
    path = tmp_path / "m.bin"
    path.write_bytes(bytes(range(256)) * 100)
    source = Source.open(path)
    content = source.read_whole()
    assert content[:] == path.read_bytes()
    os.truncate(path, 1000)
    assert content[20_000:] == bytes(range(256))[32:] + bytes(range(256)) * 21
    with pytest.raises(FileChangedError):
        source.read_whole()
    source.close()


@pytest.mark.parametrize(("offset", "length"), [(99, 2), (101, 0), (0, 2**62), (-1, 1), (5, -1)])
def test_refuses_ranges_outside_without_allocating(
    tmp_path: Path, offset: int, length: int
) -> None:
    (tmp_path / "f").write_bytes(bytes(100))
    with pytest.raises(InputError, match="not in the file of 100 bytes"):
        Source.open(tmp_path / "f").read(offset, length)


def test_says_what_is_wrong_with_a_path(tmp_path: Path) -> None:
    assert message_of(tmp_path / "missing") == "File not found"
    assert message_of(tmp_path) == "Is a folder"
    assert message_of(tmp_path / "missing" / "deeper") == "File not found"
    (tmp_path / "file").touch()
    assert message_of(tmp_path / "file" / "deeper") == "Not a directory"
    assert message_of(tmp_path / ("n" * 300)) == "File name too long"
    assert "null" in message_of(f"{tmp_path}/a\0b")
    (tmp_path / "loop").symlink_to("loop")
    assert "symbolic links" in message_of(tmp_path / "loop")
    denied = open_error("p", PermissionError(errno.EACCES, "no"))
    assert str(denied) == "p: Permission denied"
    assert open_error("p", IsADirectoryError(errno.EISDIR, "no")).message == "Is a folder"


def test_says_where_a_device_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    (tmp_path / "f").write_bytes(bytes(100))
    source = Source.open(tmp_path / "f")
    monkeypatch.setattr(source_module, "_HUGE", 1)
    monkeypatch.setattr(os, "pread", fail)
    monkeypatch.setattr(os, "preadv", fail)
    for read, at in ((lambda: source.read(7, 5), 7), (source.read_whole, 0)):
        with pytest.raises(InputError) as raised:
            read()
        assert raised.value.message == f"cannot be read at byte {at}: Input/output error"


def test_permission_denied(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.touch(mode=0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert message_of(path) == "Permission denied"


def test_never_waits_for_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert message_of(tmp_path / "fifo") == "Not a regular file"
    assert message_of("/dev/zero") == "Not a regular file"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        assert message_of(tmp_path / "socket") == "Not a regular file"


def test_a_file_that_shrinks_is_an_error_not_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(bytes(8192))
    source = Source.open(path)
    with path.open("r+b") as file:
        file.truncate(4096)
    assert source.read(0, 4096) == bytes(4096)
    with pytest.raises(FileChangedError):
        source.read(4000, 1000)


def test_notices_changes_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "f"

    def opened() -> Source:
        path.write_bytes(b"one")
        os.utime(path, ns=(1, 1))
        return Source.open(path)

    assert not opened().changed_on_disk()
    source = opened()
    path.write_bytes(b"two")  # the same size in place
    assert source.changed_on_disk()
    source = opened()
    (tmp_path / "g").write_bytes(b"one")
    os.utime(tmp_path / "g", ns=(1, 1))
    os.replace(tmp_path / "g", path)  # another file with the same size and time
    assert source.changed_on_disk()
    assert source.read(0, 3) == b"one"
    source = opened()
    path.unlink()
    assert source.changed_on_disk()


def open_descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_descriptor_is_closed_with_the_source(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    gc.collect()
    before = open_descriptors()
    source = Source.open(tmp_path / "f")
    assert open_descriptors() == before + 1
    source.close()
    assert open_descriptors() == before
    with pytest.raises(ValueError, match="closed"):
        _ = source.descriptor
    source = Source.open(tmp_path / "f")
    del source
    gc.collect()
    assert open_descriptors() == before
    for _ in range(3):  # a refused path leaves none open
        message_of(tmp_path)
    assert open_descriptors() == before


def test_errors_that_come_from_outside_are_lines() -> None:
    def told(error: BaseException, *texts: str) -> tuple[str, str | None, str | None] | None:
        found = input_error(error, texts)
        return None if found is None else (found.message, found.where, found.hint)

    hint = "Give another path"
    assert [
        told(OSError(errno.ELOOP, "Loop", "a")), told(OSError(errno.ENOENT, "None", b"\xff")),
        told(OSError(errno.ELOOP, "Loop")), told(OSError(errno.EIO, "Broken", "a")),
        told(OverflowError()), told(ValueError("odd")), told(RecursionError()),
        told(TypeError("odd"), "a"), told(ValueError("odd"), "\udcff"),
    ] == [
        ("Loop", "a", hint), ("File not found", "\udcff", hint), None, None,
        ("a number is too large", None, "Give a smaller one"), None,
        ("it is nested too deeply", None, "Write it with fewer levels"), None, None,
    ]  # fmt: skip
    (found,) = {told(error("odd"), "a", "\udcff") for error in (UnicodeError, TypeError)}
    assert found is not None
    assert found[1] == "\udcff"
