from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dld_tui.core.errors import FileChangedError
from dld_tui.core.files.blobs import Blob, ByteCount, stored_length, stream
from dld_tui.core.files.source import Source
from tests.support.payloads import NUMBERS


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "f").write_bytes(NUMBERS.bytes(3 << 20))
    return Source.open(tmp_path / "f")


def pieces_of(source: Source) -> list[bytes | Blob]:
    """Return pieces of all sizes: small ones are gathered, large ones copied in the kernel."""
    pieces: list[bytes | Blob] = [b"head", b"", Blob(source, 7, 10, "raw_data")]
    pieces += [Blob(source, index * 1000, 1000, "raw_data") for index in range(1500)]
    pieces += [b"x" * 100_000, Blob(source, 100, (3 << 20) - 100, "raw_data"), b"tail"]
    return [*pieces, Blob(source, 0, 0, "raw_data"), Blob(source, 5, 70_000, "raw_data")]


def expected(pieces: list[bytes | Blob]) -> bytes:
    return b"".join(piece if isinstance(piece, bytes) else piece.read() for piece in pieces)


def written(path: Path, pieces: list[bytes | Blob], count: ByteCount | None = None) -> bytes:
    with path.open("wb", buffering=0) as file:
        stream(file.fileno(), pieces, count or ByteCount(0))
    return path.read_bytes()


def test_holes_of_large_payloads_take_no_room(tmp_path: Path, source: Source) -> None:
    assert stored_length(pieces_of(source)) == len(expected(pieces_of(source)))
    path = tmp_path / "holes"
    with path.open("wb") as file:
        file.write(b"a" * 4096)
        file.truncate(1 << 20)
        file.seek(0, os.SEEK_END)
        file.write(b"z" * 4096)
        file.truncate(2 << 20)
    if path.stat().st_blocks * 512 >= 1 << 20:
        pytest.skip("this file system has no holes")
    pieces: list[bytes | Blob] = [b"head", Blob(Source.open(path), 0, 2 << 20, "raw_data")]
    assert 4 + 2 * 4096 <= stored_length(pieces) < 1 << 20
    assert written(tmp_path / "out", pieces) == expected(pieces)


@pytest.mark.parametrize("code", [0, errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP])
def test_copies_itself_where_the_kernel_cannot(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(code, os.strerror(code))

    if code:
        monkeypatch.setattr(os, "copy_file_range", refuse)
    else:
        monkeypatch.delattr(os, "copy_file_range")
    pieces = pieces_of(source)
    assert written(tmp_path / "out", pieces) == expected(pieces)


def test_goes_on_where_the_kernel_stopped(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.copy_file_range
    calls = 0

    def short(source: int, target: int, count: int, offset: int) -> int:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.EXDEV, "")
        return real(source, target, min(count, 100_001), offset)

    monkeypatch.setattr(os, "copy_file_range", short)
    pieces = pieces_of(source)
    assert written(tmp_path / "out", pieces) == expected(pieces)
    assert calls > 3


def test_other_errors_of_the_kernel_are_passed_on(
    tmp_path: Path, source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "copy_file_range", refuse)
    with pytest.raises(OSError, match="No space left"):
        written(tmp_path / "out", pieces_of(source))


def test_a_source_that_shrinks_is_reported(tmp_path: Path, source: Source) -> None:
    with source.path.open("r+b") as file:
        file.truncate(1 << 20)
    for blob in (Blob(source, 0, 3 << 20, "raw_data"), Blob(source, 2 << 20, 10, "raw_data")):
        with pytest.raises(FileChangedError):
            written(tmp_path / "out", [blob])
