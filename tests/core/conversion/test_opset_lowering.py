"""Older versions of the operators: what is written in another way computes the same."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.opset import convert_opset
from tests.support import models

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def lowered(model: onnx.ModelProto, version: int) -> onnx.ModelProto:
    found = onnx.ModelProto()
    found.CopyFrom(model)
    convert_opset(found, version)
    return found


def computed(model: onnx.ModelProto) -> npt.NDArray[np.generic]:
    feeds = {"x": X, "t": np.array([2, 12])} if len(model.graph.input) > 1 else {"x": X}
    with np.errstate(invalid="ignore"):  # of no numbers
        (first, *_) = ReferenceEvaluator(model).run(None, feeds)
    return np.asarray(first)


SCALED = """<ir_version: 8, opset_import: ["" : 13, "f" : 1]>
    g (float[2, 3, 4] x) => (y) {{ y = {call} }}
    <domain: "f", opset_import: ["" : 13]> Scale <by: float = 0.5> (a) => (c)
    {{ b = Constant<value_float: float = @by>() c = Mul(a, b) }}"""


def cases(title: str) -> dict[str, tuple[str, int]]:
    """Return models of opset_models.txt and the version that they go to, by their names."""
    text = Path(__file__).with_name("opset_models.txt").read_text("utf-8")
    found = re.findall(rf"== {title} for (\d+): (.*)\n((?:(?!==).*\n)+)", f"{text}\n")
    return {name: (model, int(version)) for version, name, model in found}


WRITTEN = cases("written")
REFUSED = cases("refused")
"""What is said of them is in opset_steps.txt."""


@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_in_another_way_computes_the_same(name: str) -> None:
    text, version = WRITTEN[name]
    model = models.parse(text)
    found = lowered(model, version)
    versions = {entry.domain: entry.version for entry in found.opset_import}
    assert versions[""] == version
    onnx.shape_inference.infer_shapes(found, strict_mode=True)
    assert np.allclose(computed(model), computed(found), atol=1e-5)


def test_a_default_of_a_function_is_its_value() -> None:
    """Neither onnx's inliner nor its reference evaluator knows it."""
    found = lowered(models.parse(SCALED.format(call="f.Scale(x)")), 11)
    assert (computed(found) == X * 0.5).all()
