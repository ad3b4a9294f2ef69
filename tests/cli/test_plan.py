"""``dld plan``: engine plans as text, tables, CSV, JSON and files of TREx."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.cli import Dld
from tests.support.models import write
from tests.support.plans import write_layers, write_profile

MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[1,4] x) => (float[1,4] y) {
  [conv] t = Relu(x)
  [act] y = Relu(t)
}"""
HOSTILE = "odd\x1b[2J"


@pytest.fixture
def layers(tmp_path: Path) -> Path:
    path = write_layers(
        tmp_path / "net.graph.json",
        [
            {"Name": "conv", "of": "Int8", "to": "Float", "Metadata": "[ONNX Layer: conv]"},
            {"Name": HOSTILE, "LayerType": "Reformat", "ParameterType": "Reformat"},
        ],
    )
    write_profile(tmp_path / "net.profile.json", [("conv", 3.0), (HOSTILE, 1.0)])
    return path


def test_peaks_have_the_units_of_data_sheets(dld: Dld, layers: Path) -> None:
    about = {"device_information": {"name": "NVIDIA A30"}}
    layers.with_name("net.metadata.json").write_text(json.dumps(about))
    lines = dld("plan", layers).out.splitlines()
    [peaks] = [line for line in lines if line.startswith("peaks")]
    assert peaks.endswith(
        "933 GB/s; fp32 10.3 TFLOPS, tf32 82.5 TFLOPS, fp16 165 TFLOPS, bf16 165 TFLOPS,"
        " int8 330 TOPS"
    )


def test_json_of_layers_and_their_nodes(dld: Dld, layers: Path, tmp_path: Path) -> None:
    document = dld("plan", layers, "--json").json
    assert document["summary"]["layers"] == 2
    assert document["summary"]["total_ms"] == 4.0
    assert [layer["name"] for layer in document["layers"]] == ["conv", HOSTILE]
    finding = document["findings"][0]
    assert {"layer", "rule", "hazard", "mitigation"} <= set(finding)
    # Nodes of a model.
    model = write(tmp_path, MODEL)
    document = dld("plan", layers, "--model", model, "--json").json
    assert document["layers"][0]["nodes"] == ["conv"]
    assert document["layers"][0]["confidence"] == "exact"
    assert dld("plan", layers, "--model", layers).status == 3


def test_files_by_name(dld: Dld, layers: Path, tmp_path: Path) -> None:
    other = write_profile(tmp_path / "second.json", [("conv", 8.0)])
    outcome = dld("plan", layers, "--profile", other)
    assert "layer sum    8.000 ms" in outcome.out
    assert "! 1 layer without a row in the profile: odd\\x1b[2J" in outcome.out
    assert "layer sum" not in dld("plan", layers, "--alone").out


def test_files_of_trex(dld: Dld, layers: Path, tmp_path: Path) -> None:
    outcome = dld("plan", layers, "--write-trex", tmp_path / "copy")
    assert outcome.err.splitlines() == [
        f"wrote {tmp_path}/copy.graph.json", f"wrote {tmp_path}/copy.profile.json"
    ]  # fmt: skip
    assert dld("plan", tmp_path / "copy.graph.json", "--json").json["summary"]["total_ms"] == 4.0
    assert dld("plan", layers, "--write-trex", tmp_path / "copy").status == 2
    assert dld("plan", layers, "--write-trex", tmp_path / "new" / "copy").status == 0
    assert (tmp_path / "new" / "copy.graph.json").exists()


def test_a_page_to_mail(dld: Dld, layers: Path, tmp_path: Path) -> None:
    page = tmp_path / "net.html"
    outcome = dld("plan", layers, "--html", page)
    assert (outcome.status, outcome.err) == (0, f"wrote {page}\n")
    text = page.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "\x1b" not in text
    assert dld("plan", layers, "--html", page).status == 2
