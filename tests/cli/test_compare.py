"""``dld compare``: reports, engine plans, its JSON and pages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import Dld, process
from tests.support.plans import write_layers
from tests.support.report_files import make_report
from tests.support.transcript_files import fast_engine, slow_engine


@pytest.mark.slow
def test_the_built_in_model_at_two_optimisation_levels(dld: Dld, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from dld_tui.core.model.document.samples import write_demo_models

    model = write_demo_models(tmp_path)[0]
    reports = []
    for level in ("disabled", "all"):
        reports.append(tmp_path / f"{level}.dldprof")
        arguments = ("--iterations", 20, "--optimization-level", level, "-o", reports[-1])
        assert process("profile", "onnxruntime", model, *arguments).returncode == 0
    document = dld("compare", *reports, "--json").json
    assert document["differences"][0]["name"] == "optimization_level"
    text = "\n".join(document["explanation"])
    assert "Fused in B, not in A" in text
    assert "Conv + BatchNormalization + Relu" in text
    assert all(row["match"] in ("node", "") for row in document["rows"])


def test_the_page_is_written_beside_the_text(dld: Dld, tmp_path: Path) -> None:
    first, second = (make_report(tmp_path / f"{n}.dldprof", seed=n) for n in (1, 2))
    page = tmp_path / "c.html"
    outcome = dld("compare", first, second, "--html", page)
    assert (outcome.status, outcome.err) == (0, f"wrote {page}\n")
    assert "Comparison of 1.dldprof and 2.dldprof" in page.read_text()
    assert "--force" in dld.fails(2, "compare", first, second, "--html", page)
    assert dld("compare", first, second, "--html", page, "--force").status == 0


@pytest.fixture
def engines(tmp_path: Path) -> tuple[Path, Path]:
    return slow_engine(tmp_path / "slow.graph.json"), fast_engine(tmp_path / "fast.graph.json")


def test_page_of_engines(dld: Dld, engines: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert dld("compare", *engines, "--html", page).status == 0
    assert "Other precisions and tactics" in page.read_text()


def test_hostile_names_are_shown_as_text(dld: Dld, tmp_path: Path) -> None:
    for name, tactic in (("x", "\x1b[31mred"), ("y", "other")):
        write_layers(tmp_path / f"{name}.json", [{"Name": "a\x1b[2J", "TacticName": tactic}])
    result = dld("compare", tmp_path / "x.json", tmp_path / "y.json")
    assert (result.status, result.err) == (0, "")
    assert "\x1b" not in result.out


@pytest.mark.parametrize(
    ("folder", "speed_ups"),
    [("tensorflow/resnet/RTX-3090", (3.03, 5.54)), ("pytorch/resnet/A100", (2.31, 2.25))],
)
def test_engines_of_trex(
    dld: Dld, real_files: Path, folder: str, speed_ups: tuple[float, float]
) -> None:
    examples = real_files / "engines" / "trex" / "examples"
    names = ("fp32/resnet.onnx", "fp16/resnet.onnx", "qat/resnet-qat.onnx")
    paths = [examples / folder / f"{name}.engine.graph.json" for name in names]
    document: Any = json.loads(dld("compare", *paths, "--json").out)
    assert document["speed_ups"][1:] == pytest.approx(speed_ups, abs=0.01)
    matched = [row for row in document["rows"] if all(row["layers"])]
    assert len(matched) > 0.5 * len(document["rows"])
    assert document["mismatches"]
