"""Which files belong together."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from dld_tui.core.errors import InputError, SaveError
from dld_tui.core.files.recognise import FileKind, recognise
from dld_tui.core.tensorrt.plan.file_set import (
    FileName,
    archive_set,
    device_name,
    device_of,
    file_name,
    model_of,
    read_metadata,
    text_of_file,
    write_trex,
)
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.plans import write_layers, write_profile

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


def test_what_was_read_is_written_as_it_was(tmp_path: Path) -> None:
    path = write_layers(tmp_path / "net.graph.json", [{"Name": "a"}, {"Name": "b"}])
    profile = write_profile(tmp_path / "net.profile.json", [("a", 1.0), ("b", 2.0)])
    (tmp_path / "net.timing.json").write_text('[{"computeMs": 1.5}]')
    metadata = {"build_options": {"Precision": "FP16"}, "device_information": {"Name": "T4"}}
    (tmp_path / "net.metadata.json").write_text(json.dumps(metadata))
    plan = open_plan(path)
    written = write_trex(plan, tmp_path / "copy")
    assert [one.name for one in written] == [
        "copy.graph.json", "copy.profile.json", "copy.timing.json", "copy.build.metadata.json",
        "copy.profile.metadata.json",
    ]  # fmt: skip
    assert (tmp_path / "copy.graph.json").read_text() == path.read_text()
    assert (tmp_path / "copy.profile.json").read_text() == profile.read_text()
    again = open_plan(tmp_path / "copy.graph.json")
    assert again.layers == plan.layers
    assert (again.timing, again.device, again.metadata) == (
        plan.timing, plan.device, plan.metadata
    )  # fmt: skip
    with pytest.raises(SaveError, match="the file exists"):
        write_trex(plan, tmp_path / "copy")
    write_trex(plan, tmp_path / "copy", overwrite=True)
    write_trex(plan, tmp_path / "new" / "folder" / "copy")
    assert (tmp_path / "new" / "folder" / "copy.graph.json").exists()
    with pytest.raises(SaveError, match="cannot be written"):
        write_trex(plan, path / "copy")  # a file, no folder


def test_forms_that_trex_does_not_read(tmp_path: Path) -> None:
    path = tmp_path / "layers.txt"
    path.write_text(
        '--- Layer 0 ---\n{"Name": "a", "LayerType": "kgen", "Inputs": [{"Name": "x"}],'
        ' "Outputs": [{"Name": "y"}]}\n'
    )
    write_trex(open_plan(path), tmp_path / "net")
    document = json.loads((tmp_path / "net.graph.json").read_text())
    assert document["Layers"][0]["LayerType"] == "kgen"
    assert document["Bindings"] == ["x", "y"]
    assert not (tmp_path / "net.profile.json").exists()


def test_from_a_log(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(
        "&&&& RUNNING TensorRT.trtexec [TensorRT v101601] # trtexec --loadEngine=a\n"
        "[07/07/2026-02:11:43] [I] === Profile (4 iterations ) ===\n"
        "[07/07/2026-02:11:43] [I] Time(ms) Avg.(ms) Median(ms) Time(%) Layer\n"
        "[07/07/2026-02:11:43] [I] 4.0 1.0 0.9 100.0 conv 1\n"
    )
    write_trex(open_plan(path), tmp_path / "net")
    assert json.loads((tmp_path / "net.graph.json").read_text())["Layers"] == ["conv 1"]
    rows = json.loads((tmp_path / "net.profile.json").read_text())
    assert rows[0] == {"count": 4}
    assert rows[1]["medianMs"] == 0.9
