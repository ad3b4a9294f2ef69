"""Files that change while they are written, and sets of files."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from dld_tui.core.errors import (
    FileChangedError,
    InputError,
    SaveError,
)
from dld_tui.core.files.blobs import Blob
from dld_tui.core.files.source import Source
from dld_tui.core.files.writer import Output, write_bytes, write_pieces, write_set
from tests.support.payloads import weights


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


@pytest.fixture(params=["unnamed", "named"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with temporary files without a name, and as on a file system that has none."""
    if request.param == "named":
        monkeypatch.setattr("dld_tui.core.files.writer._HAS_UNNAMED", False)


pytestmark = pytest.mark.usefixtures("either_way", "replaces_all")


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


@pytest.mark.parametrize("when", ["writing", "verifying", "renaming"])
def test_a_set_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    model = tmp_path / "m"
    model.write_bytes(b"old")
    source = Source.open(model)

    def verify(_: Path) -> None:
        if when == "verifying":
            raise InputError("no")

    if when == "renaming":
        real = os.replace

        def replace(old: str, new: Path) -> None:
            if new == model:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            real(old, new)

        monkeypatch.setattr(os, "replace", replace)
    pieces: list[bytes | Blob] = [b"new"]
    if when == "writing":
        os.truncate(model, 0)
        pieces = [Blob(source, 0, 3, "raw_data")]
    before = model.read_bytes()
    outputs = [
        Output(tmp_path / "data", [b"data"], overwrite=False),
        Output(model, pieces, verify=verify),
    ]
    with pytest.raises((SaveError, FileChangedError)):
        write_set(outputs)
    assert names(tmp_path) == ["m"]
    assert model.read_bytes() == before
