"""Which files belong together."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.tensorrt.plan.file_set import (
    FileName,
    archive_set,
    device_name,
    device_of,
    file_name,
    find_set,
    model_of,
    read_metadata,
    text_of_file,
)
from dld_tui.core.tensorrt.plan.reader import open_plan

GRAPH = '{"Layers": [{"Name": "a", "LayerType": "kgen", "Inputs": [], "Outputs": []}]}'
PROFILE = '[{"count": 1}, {"name": "a", "averageMs": 2.0}]'


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("net.onnx.engine.graph.json", FileName("net.onnx.engine", "graph")),
        ("net.graph.6b63a31.json", FileName("net", "graph", "6b63a31")),
        ("net.profile.json", FileName("net", "profile")),
        ("net.profile.metadata.71d7d11.json", FileName("net", "profile.metadata", "71d7d11")),
        ("net.build.metadata.json", FileName("net", "build.metadata")),
        ("net.trt.json", FileName("net", "graph")),
        ("net.build.json", FileName("net", "build")),
        ("layer_info.json", FileName("", "graph")),
        ("profile.json", FileName("", "profile")),
        ("net-exportTimes.json", FileName("net", "timing")),
        ("net.profile.log", FileName("net", "profile.log")),
        ("net.onnx", None),
        ("notes.json", None),
    ],
)
def test_names(name: str, parts: FileName | None) -> None:
    assert file_name(name) == parts


def test_files_beside(tmp_path: Path) -> None:
    for name in (
        "net.engine.graph.json",
        "net.engine.profile.json",
        "other.graph.json",
        "net.onnx",
    ):
        (tmp_path / name).touch()
    found = find_set(tmp_path / "net.engine.graph.json")
    assert {role: [p.name for p in paths] for role, paths in found.roles.items()} == {
        "graph": ["net.engine.graph.json"],
        "profile": ["net.engine.profile.json"],
    }


def test_the_same_hash_comes_first(tmp_path: Path) -> None:
    for name in ("n.graph.aaaaaa.json", "n.profile.bbbbbb.json", "n.profile.aaaaaa.json"):
        (tmp_path / name).touch()
    found = find_set(tmp_path / "n.graph.aaaaaa.json")
    assert [path.name for path in found.of("profile")] == [
        "n.profile.aaaaaa.json", "n.profile.bbbbbb.json"
    ]  # fmt: skip


def archive(folder: Path) -> Path:
    path = folder / "net.tea"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        members.writestr("engine.graph.json", GRAPH)
        members.writestr("engine.profile.json", PROFILE)
        members.writestr("plan_cfg.json", '{"io_tensors": {"x": {"mode": "TensorIOMode.INPUT"}}}')
        members.writestr("engine.trt", b"ftrt")
    return path


def test_archives(tmp_path: Path) -> None:
    path = archive(tmp_path)
    assert recognise(path) is FileKind.ENGINE_ARCHIVE
    plan = open_plan(path)
    assert (plan.total_ms, plan.files["profile"]) == (2.0, f"{path}!engine.profile.json")
    assert [(tensor.name, tensor.mode) for tensor in plan.bindings] == [("x", "input")]


def test_archives_that_are_damaged_or_others(tmp_path: Path) -> None:
    path = archive(tmp_path)
    data = bytearray(path.read_bytes())
    start = data.find(b"engine.graph.json") + len("engine.graph.json")
    data[start : start + 8] = b"\xff" * 8
    path.write_bytes(data)
    with pytest.raises(InputError):
        open_plan(path)
    with pytest.raises(InputError, match="cannot be read from the archive"):
        text_of_file(Path(f"{path}!missing.json"))
    with zipfile.ZipFile(path, "w") as members:
        members.writestr("data.pkl", "x")
    with pytest.raises(InputError, match="no layer information"):
        archive_set(path)
    path.write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(InputError, match="not a complete ZIP archive"):
        open_plan(path)


def test_metadata_of_all_kinds() -> None:
    device = read_metadata('[{"Name": "NVIDIA TITAN RTX", "ComputeCapability": [7, 5]}]', "f")
    assert device_name(device_of(device)) == "NVIDIA TITAN RTX"
    build = read_metadata('{"model_options": {"Model": "a.onnx"}}', "f")
    assert (model_of(build), device_of(build)) == ("a.onnx", {})
    ours = read_metadata('{"settings": {"model": "b.onnx"}, "device": "X"}', "f", "build")
    assert (model_of(ours), device_name(device_of(ours))) == ("b.onnx", "X")
    with pytest.raises(InputError, match="is not the metadata"):
        read_metadata("[1]", "f")
