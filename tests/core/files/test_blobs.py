from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.files.blobs import Blob, BlobTable, SpillFile
from dld_tui.core.files.source import Source


@pytest.fixture
def source(tmp_path: Path) -> Source:
    (tmp_path / "f").write_bytes(bytes(range(256)))
    return Source.open(tmp_path / "f")


def test_other_bytes_and_what_was_forgotten_are_no_sentinel(source: Source) -> None:
    blobs, other = BlobTable(), BlobTable()
    sentinel = blobs.add(Blob(source, 0, 1, "raw_data"))
    assert other.get(sentinel) is None
    assert other.get(other.nonce + sentinel[len(other.nonce) :]) is None  # no such number
    for wrong in (b"", sentinel[:-1], sentinel + b"0", bytes(32), sentinel[:-1] + b"x"):
        assert blobs.get(wrong) is None
    blobs = BlobTable()
    kept = blobs.add(Blob(source, 0, 1, "raw_data"))
    dropped = blobs.add(Blob(source, 1, 1, "raw_data"))
    blobs.forget_from(1)
    assert blobs.get(kept) is not None
    assert blobs.get(dropped) is None


def test_spill_file_keeps_payloads_without_a_name(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path)
    first = spill.append(b"one")
    second = spill.append((bytes([index]) * 3 for index in range(4)), "float_data")
    assert os.listdir(tmp_path) == []
    assert first.read() == b"one"
    assert second.field == "float_data"
    assert second.read() == b"\0\0\0\1\1\1\2\2\2\3\3\3"
    assert (first.offset, second.offset) == (0, 3)
    spill.close()
    with pytest.raises(ValueError, match="closed"):
        first.read()


def test_spill_file_that_does_not_fit_stays_as_it_was(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path)
    kept = spill.append(b"kept")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(SaveError, match="new data of an edit"):
            spill.append(bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert spill.append(b"next").offset == kept.length


def test_spill_file_in_a_missing_folder_says_where(tmp_path: Path) -> None:
    with pytest.raises(SaveError) as raised:
        SpillFile(tmp_path / "missing").append(b"x")
    assert str(tmp_path / "missing") in str(raised.value)
