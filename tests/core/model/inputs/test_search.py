"""Guesses for small models that demand something are in the transcripts; here they run."""

from __future__ import annotations

from contextlib import closing

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import candidate_guesses, guess_inputs, input_specs
from dld_tui.core.model.inputs.shapes import InputSpec
from tests.support import models
from tests.support.model_transcripts import models_of
from tests.support.runtime import needs_onnxruntime

ort = pytest.importorskip("onnxruntime")


@pytest.mark.broad
@pytest.mark.parametrize(
    "name",
    [
        "guesses",
        "guesses_by_search",
        pytest.param("fed_in_place", marks=needs_onnxruntime(31)),
    ],
)
def test_the_first_guess_runs(name: str) -> None:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    for model in models_of(name):
        data = model.SerializeToString()
        with closing(Document(model)) as document:
            guess = guess_inputs(input_specs(document), document)
        if any(one.fill.kind == "none" for one in guess.inputs):
            continue
        session = ort.InferenceSession(data, options, providers=["CPUExecutionProvider"])
        outputs = session.run(None, guess.values(0))
        assert all(np.isfinite(one).all() for one in outputs if one.dtype.kind == "f")


def test_an_engine_has_inputs_alone() -> None:
    fixed = [InputSpec("x", "float32", (2, 3))]
    assert [one.shapes for one in candidate_guesses(fixed)] == [{"x": (2, 3)}]


def test_a_malformed_model_demands_nothing() -> None:
    text = """<ir_version: 10, opset_import: ["" : 20]>
    g (float[N, 1, H, W] x) => (float[n, m] y) <float[6, 1, 5, 5] k, float[864, 10] m> {
        a = Conv (x, k) b = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (a)
        c = Flatten (b) y = Gemm (c, m) }"""
    model = models.weighted(models.parse(text))
    for node in model.graph.node:
        del node.input[1:]
        node.attribute.add(name="axis", i=99, type=onnx.AttributeProto.INT)
    with closing(Document(model)) as document:
        guess = guess_inputs(input_specs(document), document)
    assert guess.shapes == {"x": (1, 1, 224, 224)}
