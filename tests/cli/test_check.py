"""``dld check``: findings as lines and as JSON, and the exit status scripts rely on."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import models
from tests.support.cli import Dld

BROKEN = """
<ir_version: 10, opset_import: ["" : 18]>
broken (float[N] x) => (float[N] y)
{
    [bad] y = Reluu(ghost)
}
"""


def test_a_good_model_has_no_findings(dld: Dld, tmp_path: Path) -> None:
    outcome = dld("check", models.write(tmp_path, models.FUNCTIONS))
    assert (outcome.status, outcome.out, outcome.err) == (0, "", "no findings\n")


def test_findings_are_lines_and_status_one(dld: Dld, tmp_path: Path) -> None:
    outcome = dld("check", models.write(tmp_path, BROKEN))
    assert outcome.status == 1
    lines = outcome.out.splitlines()
    assert outcome.err == "2 errors, 1 info\n"
    assert [line.split()[:3] for line in lines] == [
        ["error", "undefined-input", "bad:"],
        ["error", "unknown-operator", "bad:"],
        ["info", "unused-input", "Input"],
    ]


def test_what_is_declared_of_a_constant_does_not_count(dld: Dld, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
        g (float[N] x) => (float y) <int64 axes> {
        axes = Constant <value = int64[1] {0}> ()
        y = ReduceSum <keepdims = 0> (x, axes) }"""
    outcome = dld("check", models.write(tmp_path, text))
    assert outcome.status == 0
    assert outcome.out.split()[:2] == ["info", "shape-conflict"]


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
        "value": "ghost",
        "rewrite": None,
        "fix": None,
    }


def test_what_is_no_model_is_refused(dld: Dld, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"")
    assert "File is empty" in dld.fails(3, "check", tmp_path / "m.onnx")


def test_rules_and_levels_choose_findings(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.SHADY)
    outcome = dld("check", path, "--rule", "shadowed-value", "--rule", "unused-node")
    assert {line.split()[1] for line in outcome.out.splitlines()} == {
        "shadowed-value",
        "unused-node",
    }
    assert outcome.status == 1
    outcome = dld("check", path, "--level", "error")
    assert {line.split()[0] for line in outcome.out.splitlines()} == {"error"}
    outcome = dld("check", path, "--rule", "unused-value-info")
    assert (outcome.status, len(outcome.out.splitlines())) == (0, 1)


def test_fixes_are_written_and_what_is_left_is_printed(dld: Dld, tmp_path: Path) -> None:
    path, output = models.write(tmp_path, models.SHADY), tmp_path / "fixed.onnx"
    before = path.read_bytes()
    outcome = dld("check", path, "--fix", "-o", output)
    assert (outcome.status, outcome.out) == (0, "")
    assert "fixes applied" in outcome.err
    assert path.read_bytes() == before
    assert dld("check", output).out == ""
    onnx.checker.check_model(onnx.load(output), full_check=True)


def test_only_chosen_rules_are_fixed(dld: Dld, tmp_path: Path) -> None:
    path, output = models.write(tmp_path, models.SHADY), tmp_path / "fixed.onnx"
    outcome = dld("check", path, "--rule", "arity", "--fix", "-o", output, "--json")
    assert (outcome.json["repaired"], outcome.json["findings"]) == (1, [])
    left = {f["rule"] for f in dld("check", output, "--json").json["findings"]}
    assert "shadowed-value" in left
    assert "arity" not in left


def test_fix_needs_an_output_that_is_free(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.SHADY)
    assert "--fix needs -o OUT" in dld.fails(2, "check", path, "--fix")
    assert "--fix needs -o OUT" in dld.fails(2, "check", path, "-o", tmp_path / "o.onnx")
    (tmp_path / "o.onnx").write_bytes(b"")
    dld.fails(2, "check", path, "--fix", "-o", tmp_path / "o.onnx")


def test_json_says_how_to_fix(dld: Dld, tmp_path: Path) -> None:
    path = models.write(tmp_path, models.SHADY)
    (found,) = dld("check", path, "--rule", "arity", "--json").json["findings"]
    assert found["fix"] == {"edit": "trim_links", "arguments": {"scope": [], "node": "call"}}
