"""Writing the file set of TREx."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dld_tui.core.errors import SaveError
from dld_tui.core.tensorrt.plan.file_set import write_trex
from dld_tui.core.tensorrt.plan.reader import open_plan
from tests.support.plans import write_layers, write_profile


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
