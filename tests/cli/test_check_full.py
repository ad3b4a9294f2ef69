"""``dld check --full``: the checks of others."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.activities.check.full import Result
from dld_tui.cli.models.check import full_findings
from dld_tui.core.checks.findings import ToolFinding
from dld_tui.core.errors import EditError, UnavailableError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.locations import LocatedMessage
from dld_tui.core.model.document.transactions import Edit
from dld_tui.core.model.edits import repairs
from tests.support import decoders, models
from tests.support.cli import Dld
from tests.support.conversions import UNSORTED


def test_findings_lead_to_the_nodes_of_the_document(tmp_path: Path) -> None:
    path = models.write(tmp_path, UNSORTED)
    document = Document.open(path)
    (finding,) = full_findings(document, path)
    document.close()

    assert finding.node is not None
    assert finding.node.name == "late"
    assert finding.scope is finding.node.scope
    assert (finding.level, finding.rule) == ("error", "onnx:checker")


def test_what_is_repaired_is_checked_as_it_is_written(dld: Dld, tmp_path: Path) -> None:
    path, out = models.write(tmp_path, UNSORTED), tmp_path / "out.onnx"
    outcome = dld("check", path, "--full", "--fix", "-o", out)
    assert "onnx:" not in outcome.out


def test_a_fix_that_is_refused_is_told_once(
    dld: Dld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(edits: object) -> Edit:
        raise EditError("it does not fit")

    monkeypatch.setattr(repairs, "repair_of", refuse)
    path, out = models.write(tmp_path, UNSORTED), tmp_path / "out.onnx"
    outcome = dld("check", path, "--fix", "-o", out)
    assert outcome.status == 1
    assert outcome.err.count("not fixed: it does not fit") == 1
    assert "0 fixes applied" in outcome.err


def test_polygraphy_that_is_asked_for_and_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = "polygraphy not installed: pip install 'dld-tui[polygraphy]'"
    told = ToolFinding("info", "polygraphy:missing", LocatedMessage(message))
    monkeypatch.setattr("dld_tui.cli.jobs.activity.run_activity", lambda *_: Result([told]))
    path = models.write(tmp_path, models.CHAIN)
    document = Document.open(path)
    with pytest.raises(UnavailableError) as caught:
        full_findings(document, path, polygraphy=True)
    document.close()
    assert caught.value.hint == "pip install 'dld-tui[polygraphy]'"


def test_a_folder_is_one_model_to_every_command(dld: Dld, tmp_path: Path) -> None:
    folder = decoders.folder(tmp_path / "llm")
    decoders.grouped(folder / "embedding.onnx", layers=1)

    found = dld("inspect", folder, "--json").json
    assert found["folder"]["models"] == ["embedding.onnx", "model.onnx"]
    assert found["op_types"] == dld("inspect", folder / "model.onnx", "--json").json["op_types"]
    out = tmp_path / "opset.onnx"
    dld("convert", "external", folder, "-o", out)
    assert len(onnx.load(out).graph.node) == len(onnx.load(folder / "model.onnx").graph.node)
    (folder / "genai_config.json").unlink()
    (folder / "model.onnx").rename(folder / "other.onnx")
    assert "has 2 models" in dld.fails(3, "inspect", folder)


def test_json_counts_findings_by_level(dld: Dld, tmp_path: Path) -> None:
    data = dld("check", models.write(tmp_path, models.SHADY), "--json").json
    levels = [finding["level"] for finding in data["findings"]]
    counts = [levels.count(level) for level in ("error", "warning")]
    assert [data["errors"], data["warnings"]] == counts
    assert counts[0] != counts[1] != len(levels) - counts[1], "else one stands for the other"
