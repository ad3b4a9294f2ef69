"""``dld check``: findings as lines and as JSON, and the exit status scripts rely on."""

from __future__ import annotations

from pathlib import Path

from tests.support import models
from tests.support.cli import Dld

BROKEN = """
<ir_version: 10, opset_import: ["" : 18]>
broken (float[N] x) => (float[N] y)
{
    [bad] y = Reluu(ghost)
}
"""


def test_a_good_model_is_silent(dld: Dld, tmp_path: Path) -> None:
    outcome = dld("check", models.write(tmp_path, models.BRANCHES))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "")


def test_findings_are_lines_and_status_one(dld: Dld, tmp_path: Path) -> None:
    outcome = dld("check", models.write(tmp_path, BROKEN))
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert [line.split()[:3] for line in lines] == [
        ["error", "undefined-input", "bad:"],
        ["error", "unknown-operator", "bad:"],
    ]


def test_json_is_the_documented_document(dld: Dld, tmp_path: Path) -> None:
    outcome = dld("check", "--json", models.write(tmp_path, BROKEN))
    assert outcome.status == 1
    assert (outcome.json["errors"], outcome.json["warnings"]) == (2, 0)
    assert outcome.json["findings"][0] == {
        "level": "error",
        "rule": "undefined-input",
        "message": "Input ghost has no producer",
        "scope": [],
        "node": "bad",
    }


def test_what_is_no_model_is_refused(dld: Dld, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    assert "File is empty" in dld.fails(3, "check", tmp_path / "m.onnx")
