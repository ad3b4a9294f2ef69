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


@pytest.mark.parametrize("version", [9, 10])
@pytest.mark.parametrize(
    ("mode", "way", "scales"),
    [
        ("linear", "asymmetric", "2, 1.5"), ("linear", "half_pixel", "1, 1"),
        ("nearest", "asymmetric\", nearest_mode = \"floor", "2, 1.5"),
        ("nearest", "half_pixel", "2, 3"),
        ("nearest", "asymmetric\", nearest_mode = \"floor", "8, 9 by their sizes"),
    ],
)  # fmt: skip
def test_samples_are_placed_as_they_were(mode: str, way: str, scales: str, version: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    given, _, are_sizes = scales.partition(" by their ")
    weights = f"float[4] f = {{1, 1, {given}}}"
    if are_sizes:
        weights = f"float[0] f = {{}}, int64[4] s = {{1, 1, {given}}}"
    model = models.parse(
        f"""<ir_version: 5, opset_import: ["" : 11]>
        g (float[1, 1, 4, 6] x) => (float[1, 1, a, b] y) <{weights}, float[0] r = {{}}> {{
            y = Resize<mode = "{mode}", coordinate_transformation_mode = "{way}">
                (x, r, f{", s" if are_sizes else ""}) }}"""
    )
    x = np.arange(24, dtype=np.float32).reshape(1, 1, 4, 6) ** 2
    before, after = (
        runtime.InferenceSession(one.SerializeToString()).run(None, {"x": x})[0]
        for one in (model, lowered(model, version))
    )
    np.testing.assert_allclose(before, after, rtol=1e-6)
