"""Payloads with patches read, stream and save as if they had been written anew."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.files.blobs import (
    Blob,
    BlobTable,
    ByteCount,
    PatchedBlob,
    SpillFile,
    patched,
    stream,
)
from dld_tui.core.files.source import Source

SIZE = 300


def base(data: bytes) -> Blob:
    return SpillFile().append(data)


RUNS = st.lists(
    st.integers(0, SIZE - 1).flatmap(
        lambda start: st.tuples(
            st.just(start), st.binary(min_size=0, max_size=min(40, SIZE - start))
        )
    ),
    max_size=30,
)


@given(runs=RUNS, start=st.integers(0, SIZE), length=st.integers(0, SIZE))
def test_reads_and_segments_are_those_of_the_patched_bytes(
    runs: list[tuple[int, bytes]], start: int, length: int
) -> None:
    expected = bytearray(os.urandom(SIZE))
    blob: Blob = base(bytes(expected))
    for offset, part in runs:
        blob = patched(blob, [(offset, part)])
        expected[offset : offset + len(part)] = part
    assert blob.read() == expected
    assert blob.read(start, length) == expected[start : start + length]
    assert b"".join(blob.chunks(7)) == expected
    joined = b"".join(p if isinstance(p, bytes) else p.read() for p in blob.segments())
    assert joined == expected
    assert patched(base(bytes(SIZE)), runs).length == SIZE


def test_a_patch_leaves_the_payload_that_it_is_made_of_alone() -> None:
    first = base(b"0123456789")
    second = patched(first, [(2, b"ab")])
    third = patched(second, [(3, b"XY")])
    assert (first.read(), second.read(), third.read()) == (
        b"0123456789", b"01ab456789", b"01aXY56789"
    )  # fmt: skip
    assert [*patched(first, [(8, b"ab")]).segments()][1:] == [b"ab"]
    assert first.is_stored
    assert not third.is_stored
    assert second != patched(first, [(2, b"ab")]), "equal content is no identity"


def test_many_patches_stay_few_layers_and_share_them() -> None:
    blob: Blob = base(bytes(100_000))
    for place in range(2000):
        blob = patched(blob, [(place * 37, b"\1")])
    assert isinstance(blob, PatchedBlob)
    assert len(blob.layers) <= 12
    same: Blob = base(bytes(100))
    for value in range(500):
        same = patched(same, [(8, bytes([value % 250]))])
    assert isinstance(same, PatchedBlob)
    assert same.patch_size < 100


def test_a_run_outside_is_refused() -> None:
    with pytest.raises(ValueError, match="are not in"):
        patched(base(bytes(4)), [(3, b"ab")])


def test_streaming_copies_ranges_and_patches(tmp_path: Path) -> None:
    data = os.urandom(300_000)
    blob = patched(base(data), [(100_000, b"patch"), (0, b"first"), (299_999, b"z")])
    path = tmp_path / "out"
    with path.open("wb") as file:
        stream(file.fileno(), [b"head", blob, b"tail"], ByteCount(0))
    assert path.read_bytes() == b"head" + blob.read() + b"tail"
    table = BlobTable()
    sentinel = table.add(blob)
    source = Source.open(path)
    table.repoint([b"head", blob, b"tail"], source)
    moved = table.get(sentinel)
    assert moved == Blob(source, 4, 300_000, "raw_data")
