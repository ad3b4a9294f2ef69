from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError, Message
from onnx import TensorProto

from dld_tui.core.errors import CancelledError, CorruptFileError, FileChangedError
from dld_tui.core.files import wire
from dld_tui.core.files.blobs import Blob, BlobTable
from dld_tui.core.files.proto_fields import tag_of, varint
from dld_tui.core.files.source import Source
from dld_tui.core.files.wire import cut, splice, verify_model
from tests.support import models
from tests.support.payloads import (
    cut_file,
    everything,
    joined,
    weights,
    write_model,
)
from tests.support.recorded import Recorded
from tests.support.tiers import first
from tests.support.work import steps_in


def field(number: int, content: bytes) -> bytes:
    """Return a length-delimited field."""
    return varint(tag_of(number)) + varint(len(content)) + content


def model_with(*tensor_fields: bytes) -> bytes:
    """Return a model with one initializer made of the given fields."""
    return b"\x08\x0a" + field(7, field(5, b"".join(tensor_fields)))


def round_trip(path: Path, threshold: int = 33) -> bytes:
    """Return what is saved after a file was opened: cut, parsed, serialised, joined."""
    skeleton, blobs = cut_file(path, threshold)
    return joined(splice(onnx.ModelProto.FromString(skeleton).SerializeToString(), blobs))


def read_at_once(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    """Read so many bytes at a time, so that each field is at an end of them somewhere."""
    for name in ("_FIRST_WINDOW", "_SMALL_WINDOW", "_LARGE_WINDOW"):
        monkeypatch.setattr(wire, name, size)


@pytest.mark.parametrize("window", [16, 17, 19, 64 << 10])
@pytest.mark.parametrize("threshold", [33, 256, 4096])
def test_every_encoding_in_every_place_comes_back(
    tmp_path: Path, threshold: int, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_at_once(monkeypatch, window)
    path = write_model(tmp_path / "m.onnx", everything())
    assert round_trip(path, threshold) == path.read_bytes()


def test_payloads_are_cut_out_of_every_place(tmp_path: Path) -> None:
    path = write_model(tmp_path / "m.onnx", everything())
    skeleton, blobs = cut_file(path)
    small = onnx.ModelProto.FromString(skeleton)
    left = [
        (name, value)
        for _, name, value in payloads(small)
        if len(value) > 32 or (len(value) == 32 and blobs.get(value) is None)
    ]
    assert left == []
    original = onnx.ModelProto.FromString(path.read_bytes())
    in_place = dict(enumerate(payloads(original)))
    for index, (kind, name, value) in enumerate(payloads(small)):
        blob = blobs.get(value)
        assert in_place[index] == (kind, name, blob.read() if blob is not None else value)


def payloads(message: Message) -> Iterator[tuple[str, str, bytes]]:
    """Yield (message, field, encoded bytes) of every payload field below a message, in order."""
    wanted = {
        "raw_data",
        "s",
        "float_data",
        "int32_data",
        "int64_data",
        "uint64_data",
        "double_data",
    }
    for descriptor, value in message.ListFields():
        if descriptor.name in wanted:
            alone = type(message)()
            if isinstance(value, bytes):
                setattr(alone, descriptor.name, value)
            else:
                getattr(alone, descriptor.name).extend(value)
            encoded = alone.SerializeToString()
            header = 1 + len(varint(len(encoded) - 2))
            yield type(message).__name__, descriptor.name, encoded[header:]
        elif descriptor.message_type is not None:
            for child in [value] if isinstance(value, Message) else value:
                yield from payloads(child)


def test_nothing_is_read_of_large_payloads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = weights(tmp_path / "m.onnx", [1 << 20] * 16)
    read: list[int] = []
    original = Source.read

    def counting(self: Source, offset: int, length: int) -> bytes:
        read.append(length)
        return original(self, offset, length)

    monkeypatch.setattr(Source, "read", counting)
    skeleton, blobs = cut_file(path, 4096)
    assert len(blobs) == 16
    assert len(skeleton) < 4000
    assert sum(read) < 300_000
    assert len(read) < 60


def test_a_large_skeleton_is_cut_again_with_a_lower_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dld_tui.core.files.wire._LARGE_SKELETON", 100_000)
    path = weights(tmp_path / "m.onnx", [2000] * 200)
    skeleton, blobs = cut_file(path, 4096)
    assert len(blobs) == 200
    assert len(skeleton) < 40_000
    assert round_trip(path, 4096) == path.read_bytes()


def test_payloads_below_the_threshold_stay(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [4092, 4096])
    _, blobs = cut_file(path, 4096)
    assert len(blobs) == 1


FLOATS = NUMBERS = b"\x00\x00\x80\x3f" * 20
INTS = b"\xac\x02" * 40


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(model_with(field(9, b"a" * 50), field(9, b"b" * 60)), id="raw_data twice"),
        pytest.param(model_with(field(4, FLOATS), field(4, FLOATS * 2)), id="two chunks of floats"),
        pytest.param(model_with(field(7, INTS), field(7, b"\x01\x02")), id="chunks, one too small"),
        pytest.param(
            model_with(field(7, INTS), varint(tag_of(7, 0)) + b"\x05", field(7, INTS)),
            id="packed and unpacked",
        ),
        pytest.param(
            model_with(field(4, FLOATS), varint(tag_of(4, 5)) + b"\0\0\0\0"), id="unpacked floats"
        ),
        pytest.param(
            b"\x08\x0a"
            + field(7, field(5, field(9, b"a" * 50)))
            + field(7, field(5, field(9, b"b" * 50)) + field(2, b"name")),
            id="graph twice",
        ),
        pytest.param(
            field(
                7,
                field(
                    1,
                    field(
                        5,
                        field(5, field(9, b"a" * 50)) + field(5, field(9, b"b" * 70) + b"\x10\x01"),
                    ),
                ),
            ),
            id="attribute tensor twice",
        ),
        pytest.param(
            field(7, field(5, b"\x08\x84\x80\x00" + field(9, b"a" * 50)) + field(1, b"\x0a\x01x")),
            id="overlong varint, initializers before nodes",
        ),
        pytest.param(
            b"\x08\x0a\xba\x80\x00"
            + varint(len(field(5, field(9, b"a" * 50))))
            + field(5, field(9, b"a" * 50)),
            id="overlong tag",
        ),
        pytest.param(
            model_with(field(9, b"a" * 50)) + field(1000, b"?" * 5000) + b"\xc5\x3e\0\0\0\0",
            id="unknown fields",
        ),
        pytest.param(model_with(b"\x48\x05", field(9, b"a" * 50)), id="raw_data as a number"),
        pytest.param(
            b"\x08\x0a\x0b\x10\x05\x0b\x0c\x1a\x02hi\x0c" + model_with(field(9, b"a" * 50)),
            id="groups",
        ),
        pytest.param(
            model_with(b"\x0b\x0c", field(9, b"a" * 50), b"\x93\x01\x94\x01"), id="groups in"
        ),
    ],
)
def test_odd_but_legal_bytes_mean_what_they_mean_to_protobuf(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(content)
    assert round_trip(path) == onnx.ModelProto.FromString(content).SerializeToString()


def test_nesting_is_limited_as_in_protobuf(tmp_path: Path) -> None:
    def nested(levels: int) -> bytes:
        content = field(9, b"x" * 50)
        content = field(5, content)  # initializer in the innermost graph
        for _ in range(levels):
            content = field(1, field(5, field(6, content)))
        return field(7, content)

    path = tmp_path / "m.onnx"
    for levels in (31, 32, 33, 34, 130):
        path.write_bytes(nested(levels))
        try:
            expected = onnx.ModelProto.FromString(path.read_bytes()).SerializeToString()
        except Exception:  # noqa: BLE001  (protobuf has no common error)
            with pytest.raises(CorruptFileError, match="nested deeper than 100 levels"):
                cut_file(path)
        else:
            assert round_trip(path) == expected


def test_progress_ends_with_everything(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [8 << 20] * 3)
    seen: list[tuple[int, int]] = []
    cut(Source.open(path), BlobTable(), progress=lambda done, total: seen.append((done, total)))
    size = path.stat().st_size
    assert seen[-1] == (size, size)
    assert len(seen) > 1
    assert all(a < b for a, b in itertools.pairwise(seen))


def test_cancelling_leaves_no_blobs(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [100_000] * 10)
    blobs = BlobTable()
    answers = iter([False] * 4)
    with pytest.raises(CancelledError):
        cut(Source.open(path), blobs, cancelled=lambda: next(answers, True))
    assert len(blobs) == 0


def test_a_file_that_shrinks_meanwhile_is_reported(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [100_000] * 10)
    source = Source.open(path)
    with path.open("r+b") as file:
        file.truncate(300_000)
    with pytest.raises(FileChangedError):
        cut(source, BlobTable())


def test_verify_accepts_what_opens_and_refuses_what_does_not(tmp_path: Path) -> None:
    path = weights(tmp_path / "m.onnx", [10_000])
    verify_model(path)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptFileError):
        verify_model(path)


def test_real_models_come_back_byte_for_byte(real_models: Path) -> None:
    models = sorted((real_models / "onnx").rglob("*.onnx"))
    assert len(models) > 60
    changed = []
    for path in models:
        canonical = onnx.ModelProto.FromString(path.read_bytes()).SerializeToString()
        if round_trip(path) != canonical or round_trip(path, 4096) != canonical:
            changed.append(path.name)
    assert changed == []


def test_a_model_beyond_two_gib_opens(tmp_path: Path) -> None:
    """Lengths of more than 31 bits; the payload is a hole in a sparse file."""
    length = 3 << 30
    tensor = TensorProto(name="w", data_type=TensorProto.UINT8, dims=[length])
    head = tensor.SerializeToString() + varint(tag_of(9)) + varint(length)
    graph_head = varint(tag_of(5)) + varint(len(head) + length) + head
    path = tmp_path / "huge.onnx"
    with path.open("wb") as file:
        file.write(b"\x08\x0a" + varint(tag_of(7)) + varint(len(graph_head) + length) + graph_head)
        end = file.tell() + length
        file.truncate(end)
        file.seek(end)
        file.write(field(8, b"\x10\x12"))  # opset_import
    skeleton, blobs = cut_file(path)
    model = onnx.ModelProto.FromString(skeleton)
    assert model.opset_import[0].version == 18
    blob = blobs.get(model.graph.initializer[0].raw_data)
    assert isinstance(blob, Blob)
    assert blob.length == length
    assert (
        sum(len(p) if isinstance(p, bytes) else p.length for p in splice(skeleton, blobs))
        == path.stat().st_size
    )


def refusal(path: Path, content: bytes) -> str:
    """Return the message that a file with this content is refused with."""
    path.write_bytes(content)
    with pytest.raises(CorruptFileError) as raised:
        cut_file(path)
    assert raised.value.where == str(path)
    return raised.value.message


REFUSED = [
    b"",
    b"PK\x03\x04 zip archive, in part",
    b"<!DOCTYPE html><html>",
    b"version https://git-lfs",
    b"\xff" * 100,
    b"\x00" * 100,
    b"\x08\x0a\x3a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    b"\x08\x0a\x3a\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01",
    b"\x08\x0a\x3a" + b"\x80" * 11 + b"\x01",
    b"\x08" + b"\x80" * 11,
    b"\x08\x0a\x0f",
    b"\x08\x0a\x0c",
    b"\x08\x0a\x0b\x08\x01",
    b"\x08\x0a\x0b\x0b" * 200,
    b"\x08\x0a\x3a\x44\x2a\x7f" + b"\x01" * 66,
    b"\x08\x0a\x3a\x43\x12\x40" + b"a" * 64 + b"\x08\x08\x0a",
    b"\x08\x0a\x3a\x80\x80\x80\x80\x80\x20",
    b"\x08\x0a\x3a\x80\x80\x80\x80\x80\x80\x40",
    b"\x08\x0a\x3a\x81\x80\x80\x80\x80\x80\x40",
    model_with(field(4, bytes(83))),
    model_with(field(10, bytes(163))),
]


def test_what_is_wrong_is_said_with_its_place(
    tmp_path: Path, recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However much is read at once; of a truncated file, too."""
    path = tmp_path / "m.onnx"
    whole = write_model(path, models.parse(models.CHAIN)).read_bytes()
    truncated = [whole[:length] for length in range(3, 60)]
    said = {
        f"{content[:40]!r}, {len(content)} bytes": refusal(path, content) for content in REFUSED
    }
    said["truncated"] = "\n".join(refusal(path, content) for content in truncated)
    recorded("whole_refusals", said)
    read_at_once(monkeypatch, 16)
    again = [*(refusal(path, content) for content in REFUSED)]
    again.append("\n".join(refusal(path, content) for content in truncated))
    assert again == [*said.values()]


@pytest.mark.parametrize("byte", [b"\x00", b"\xff", None])
def test_megabytes_of_rubbish_are_refused_at_once(tmp_path: Path, byte: bytes | None) -> None:
    size = 4 << 20
    content = byte * size if byte else random.Random(3).randbytes(size)
    path = tmp_path / "m.onnx"
    assert steps_in(refusal, path, content) < 5000
    assert "Not an ONNX protobuf" in refusal(path, content)


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


@pytest.mark.parametrize("seed", first(3, range(10)))
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
