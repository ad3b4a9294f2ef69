"""Files that are not models, or lie about their lengths."""

from __future__ import annotations

import random
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError

from dld_tui.core.errors import CancelledError, CorruptFileError
from dld_tui.core.files.blobs import BlobTable
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut, splice
from tests.support.payloads import cut_file, everything, joined, weights, write_model
from tests.support.work import steps_in


def refusal(path: Path, content: bytes) -> str:
    """Return the message that a file with this content is refused with."""
    path.write_bytes(content)
    with pytest.raises(CorruptFileError) as raised:
        cut_file(path)
    assert raised.value.where == str(path)
    return raised.value.message


def test_an_empty_file_is_no_model(tmp_path: Path) -> None:
    assert refusal(tmp_path / "m.onnx", b"") == "File is empty (0 bytes)"


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99, 1])
def test_a_truncated_file_says_where_it_ends(tmp_path: Path, part: float) -> None:
    content = weights(tmp_path / "whole.onnx", [1000] * 20).read_bytes()
    kept = min(int(len(content) * part), len(content) - 1)
    message = refusal(tmp_path / "m.onnx", content[:kept])
    assert message.startswith(f"Not a complete ONNX file: protobuf ends early at byte {kept} of")
    needed = int(message.rpartition(" ")[2])
    assert kept < needed <= len(content)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"PK\x03\x04 zip archive, in part", "field number 0"),
        (b"<!DOCTYPE html><html>", "the end of a group"),
        (b"version https://git-lfs", "wire type 6"),
        (b"\xff" * 100, "more than 5 bytes"),
        (b"\x00" * 100, "field number 0"),
        (
            b"\x08\x0a\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            "says 18446744073709551615 bytes",
        ),
        (b"\x08\x0a\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "says 9223372036854775808 bytes"),
        (b"\x08\x0a\x3a" + b"\x80" * 11 + b"\x01", "a number of more than 10 bytes at byte 2"),
        (b"\x08" + b"\x80" * 11, "a number of more than 10 bytes at byte 0"),
        (b"\x08\x0a\x0f", "wire type 7 at byte 2"),
        (b"\x08\x0a\x0c", "the end of a group that did not start at byte 2"),
        (b"\x08\x0a\x0b\x08\x01", "a group without an end"),
        (b"\x08\x0a\x0b\x0b" * 200, "nested deeper than 100 levels"),
        (
            b"\x08\x0a\x3a\x44\x2a\x7f" + b"\x01" * 66,
            "field 5 at byte 4 says 127 bytes but only 66 are left",
        ),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, content: bytes, words: str) -> None:
    message = refusal(tmp_path / "m.onnx", content)
    assert words in message
    assert "at byte" in message


@pytest.mark.parametrize("byte", [b"\x00", b"\xff", None])
def test_megabytes_of_rubbish_are_refused_at_once(tmp_path: Path, byte: bytes | None) -> None:
    size = 4 << 20
    content = byte * size if byte else random.Random(3).randbytes(size)
    path = tmp_path / "m.onnx"
    assert steps_in(refusal, path, content) < 5000
    assert "Not an ONNX protobuf" in refusal(path, content)


def test_a_claimed_length_is_not_allocated(tmp_path: Path) -> None:
    """Without the check, 2 to the power of 40 bytes end in a MemoryError."""
    message = refusal(tmp_path / "m.onnx", b"\x08\x0a\x3a\x80\x80\x80\x80\x80\x20")
    assert "Not a complete ONNX file" in message


def test_many_small_fields_can_be_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x0a" * (5 << 19))
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > 2

    with pytest.raises(CancelledError):
        cut(Source.open(path), BlobTable(), cancelled=cancelled)
    assert asked == 3


def mutate(content: bytes, dice: random.Random) -> bytes:
    """Return content with one or two random changes, as bit rot, bad copies and attackers do."""
    changed = bytearray(content)
    for _ in range(dice.randint(1, 2)):
        place = dice.randrange(len(changed))
        match dice.randrange(6):
            case 0:
                changed[place] ^= 1 << dice.randrange(8)
            case 1:
                changed[place] = dice.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2:
                del changed[place : place + dice.randint(1, 20)]
            case 3:
                changed[place:place] = dice.randbytes(dice.randint(1, 20))
            case 4:
                other = dice.randrange(len(changed))
                changed[place:place] = changed[other : other + dice.randint(1, 200)]
            case _:
                del changed[place:]
        if not changed:
            return b"\x08"
    return bytes(changed)


def seeds(folder: Path) -> list[bytes]:
    """Return small models of different make."""
    everywhere = everything()
    light = onnx.ModelProto()
    light.CopyFrom(everywhere)
    light.ClearField("training_info")
    light.ClearField("functions")
    return [
        weights(folder / "w.onnx", [40, 400, 36, 4000]).read_bytes(),
        write_model(folder / "l.onnx", light).read_bytes(),
        write_model(folder / "e.onnx", everywhere).read_bytes(),
    ]


@pytest.mark.parametrize("seed", range(10))
def test_mutated_models_mean_the_same_to_the_walk_and_to_protobuf(
    tmp_path: Path, seed: int
) -> None:
    """200 mutations each; the walk may only be more lenient inside a payload that it skips."""
    dice = random.Random(seed)
    originals = seeds(tmp_path)
    path = tmp_path / "m.onnx"
    same = refused = 0
    for _ in range(200):
        content = mutate(dice.choice(originals), dice)
        path.write_bytes(content)
        try:
            expected = onnx.ModelProto.FromString(content).SerializeToString()
        except DecodeError:
            expected = None
        try:
            skeleton, blobs = cut_file(path, dice.choice((33, 64, 256, 4096)))
            model = onnx.ModelProto.FromString(skeleton)
        except (CorruptFileError, DecodeError):
            # Whatever protobuf opens must open here, too.
            assert expected is None, content.hex()
            refused += 1
            continue
        saved = joined(splice(model.SerializeToString(), blobs))
        if expected is None:
            with pytest.raises(DecodeError):
                onnx.ModelProto.FromString(saved)
            continue
        # Varints that are wider than their type are kept as they are, where protobuf trims them.
        assert onnx.ModelProto.FromString(saved).SerializeToString() == expected
        same += 1
    assert same > 20
    assert refused > 20
