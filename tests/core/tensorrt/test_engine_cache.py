"""Engine caches of ONNX Runtime's TensorRT provider; the files are made to its format by hand."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from dld_tui.core.tensorrt.engine_cache import Range, cached_engine, profile_ranges
from tests.support.cli import Dld
from tests.support.known import known

HEAD = struct.pack("<4sI16x4B", b"ftrt", 0, 10, 16, 1, 11) + bytes(100)
STEM = "TensorrtExecutionProvider_TRTKernel_graph_torch-jit-export_2068723788287043730_1_1"
SIZES = (0, 1, 3, 200, 70_000, 1 << 40)
flexbuffers = pytest.importorskip("flatbuffers.flexbuffers", reason="a FlexBuffer is needed")


def profile(content: dict[str, list[int]]) -> bytes:
    """Return a profile as SerializeProfileV2 writes it: a map of typed vectors."""
    builder = flexbuffers.Builder()
    with builder.Map():
        for name, numbers in content.items():
            builder.Key(name)
            with builder.TypedVector():
                for number in numbers:
                    builder.Int(number)
    return bytes(builder.Finish())


def test_other_files_are_none(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08")
    assert cached_engine(tmp_path / "m.onnx") is None
    (tmp_path / "plain.engine").write_bytes(HEAD)
    plain = known(cached_engine(tmp_path / "plain.engine"))
    assert (plain.partition, plain.ranges) == (None, ())


def test_profiles_are_read_as_the_library_of_flatbuffers_reads_them() -> None:
    rng = random.Random(4)
    for _ in range(50):
        count = rng.randint(1, 5)
        content = {
            f"tensor{at}": [rng.choice(SIZES) for _ in range(4 * rng.randint(1, 4))]
            for at in range(count)
        }  # fmt: skip
        data = profile(content)
        assert flexbuffers.Loads(data) == content
        ranges = profile_ranges(data)
        assert len(ranges) == sum(len(numbers) // 4 for numbers in content.values())
        for name, numbers in content.items():
            found = [one for one in ranges if one.tensor == name]
            quads = sorted(tuple(numbers[at : at + 4]) for at in range(0, len(numbers), 4))
            assert sorted((one.axis, one.least, one.most, one.best) for one in found) == quads


def test_axes_that_repeat_are_profiles() -> None:
    data = profile({"ids": [0, 1, 8, 4, 1, 1, 512, 128, 0, 8, 64, 32, 1, 1, 512, 256]})
    assert profile_ranges(data) == [
        Range("ids", 0, 0, 1, 4, 8), Range("ids", 1, 0, 1, 128, 512),
        Range("ids", 0, 1, 8, 32, 64), Range("ids", 1, 1, 1, 256, 512),
    ]  # fmt: skip


def test_damaged_profiles_say_nothing(tmp_path: Path) -> None:
    data, rng = profile({"x": [0, 1, 8, 4], "length": [1, 16, 70_000, 64]}), random.Random(2)
    (tmp_path / f"{STEM}_sm90.engine").write_bytes(HEAD)
    for _ in range(500):
        damaged = bytearray(data[: rng.randint(0, len(data))] if rng.random() < 0.3 else data)
        for _ in range(rng.randint(1, 3)):
            if damaged:
                damaged[rng.randrange(len(damaged))] = rng.randrange(256)
        (tmp_path / f"{STEM}_sm90.profile").write_bytes(damaged)
        engine = known(cached_engine(tmp_path / f"{STEM}_sm90.engine"))
        assert all(isinstance(one.least, int) for one in engine.ranges)


def test_inspect_tells_of_an_engine_and_of_its_shapes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / f"{STEM}_fp16_sm86.stripped.engine"
    path.write_bytes(HEAD)
    (tmp_path / f"{STEM}_fp16_sm86.profile").write_bytes(profile({"x": [0, 1, 8, 4]}))
    dld = Dld(capsys)
    lines = dld("inspect", path).out.splitlines()
    assert lines[1:] == [
        "engine     TensorRT 10.16.1.11", "size       128 B",
        "partition  1 of graph torch-jit-export", "precision  fp16",
        "made for   compute capability 8.6",
        "weights    stripped: ONNX Runtime refits them from the model",
        "shapes     x axis 0: 1 to 8, best 4",
    ]  # fmt: skip
    data = dld("inspect", path, "--json").json
    assert data["ranges"] == [
        {"tensor": "x", "axis": 0, "profile": 0, "least": 1, "best": 4, "most": 8}
    ]
