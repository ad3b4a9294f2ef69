"""Repairs of what costs speed keep the results; what is found is in transcripts/speed.txt."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

from dld_tui.core.checks import Finding
from dld_tui.core.checks.findings import SPEED_RULES, repair_steps
from dld_tui.core.checks.speed import speed_findings
from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from dld_tui.core.model.edits.repairs import repair_of
from dld_tui.core.model.shapes.inference import infer_types, store_types
from tests.support import model_transcripts, models
from tests.support.known import known
from tests.support.sessions import bytes_of, run

HEAD = '<ir_version: 10, opset_import: ["" : 21]>\n'


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    inferred, _ = infer_types(onnx.ModelProto.FromString(skeleton_bytes(document)), None)
    store_types(document, inferred)
    return document


def found_in(folder: Path, text: str) -> list[Finding]:
    return speed_findings(opened(folder, text))


GELU = (
    HEAD
    + """g (float[4] x) => (float[4] y)
    <float r = {1.4142135}, float one = {1}, float half = {0.5}> {
    d = Div (x, r)
    e = Erf (d)
    o = Add (e, one)
    m = Mul (x, o)
    y = Mul (m, half)
}"""
)


def test_every_rule_has_a_case_and_is_documented() -> None:
    transcript = (model_transcripts.FOLDER / "speed.txt").read_text("utf-8")
    assert {*re.findall(r"^\w+ (speed:[\w-]+) at", transcript, re.MULTILINE)} == set(SPEED_RULES)
    text = (Path(__file__).parents[3] / "docs/reference/checks.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"### `(speed:[\w-]+)`\n\n\*(\w+)\*", text))
    assert told == SPEED_RULES


def test_a_rule_is_carried_out_where_it_is_asked_for_alone(tmp_path: Path) -> None:
    document = opened(tmp_path, GELU)
    (finding,) = found_in(tmp_path, GELU)
    assert finding.command == "dld rewrite MODEL gelu -o OUT"
    assert repair_steps([finding]) == []
    x = np.linspace(-3, 3, 4, dtype=np.float32)
    (before,) = run(document, x=x)
    assert finding.fix is not None
    document.apply(finding.fix)
    assert [node.op_type for node in document.main.nodes] == ["Gelu"]
    np.testing.assert_allclose(run(document, x=x)[0], before, atol=1e-6)
    assert speed_findings(document) == []


def test_repairs_of_transposes_keep_the_results(tmp_path: Path) -> None:
    document = opened(tmp_path, models.TRANSPOSES)
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    before = run(document, x=x)
    document.apply(repair_of(repair_steps(speed_findings(document))))
    assert [f for f in speed_findings(document) if f.repair is not None] == []
    for mine, theirs in zip(run(document, x=x), before, strict=True):
        np.testing.assert_array_equal(mine, theirs)
    second = known(document.main.find("second"))
    assert second.inputs == ("x",)


@pytest.mark.parametrize("node", ["first", "last"])
def test_only_a_transpose_behind_another_is_merged(tmp_path: Path, node: str) -> None:
    document = opened(tmp_path, models.TRANSPOSES)
    before = bytes_of(document)
    with pytest.raises(EditError, match="not a Transpose behind"):
        document.apply("merge_transposes", scope=[], node=node)
    assert bytes_of(document) == before
