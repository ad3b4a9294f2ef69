"""Each library that simplifies models, given its options."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest

from dld_tui.backends.conversion import simplifiers
from dld_tui.core.codec import encode
from tests.support import models

OPTIONS = simplifiers.Options(
    by="", fold=True, threshold=1 << 20, passes=None, shapes=True, inference=True,
    partitioning="none", cleanup=True, toposort=True,
)  # fmt: skip
TEXT = """
<ir_version: 8, opset_import: ["" : 18]>
g (float[2] x) => (float[2] y) <float[2] one = {1, 1}, float[2] two = {2, 2}> {
  three = Add(one, two)
  a = Identity(x)
  y = Mul(a, three)
}"""


@pytest.mark.parametrize("by", simplifiers.NEEDED)
@pytest.mark.parametrize("fold", [True, False])
def test_constants_are_folded_where_that_is_asked_for(
    by: str, fold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if simplifiers.missing(by):
        pytest.skip(f"{by} is not installed")
    source, target = models.write(tmp_path, TEXT), tmp_path / "out.onnx"
    text = json.dumps(encode(replace(OPTIONS, by=by, fold=fold)))
    monkeypatch.setattr(sys, "argv", ["simplify", str(source), str(target), text])
    monkeypatch.chdir(tmp_path)
    simplifiers.main()
    made = [node.op_type for node in onnx.load(target).graph.node]
    assert {*made} - {"Identity"} == ({"Mul"} if fold else {"Add", "Mul"})
