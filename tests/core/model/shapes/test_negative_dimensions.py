"""A negative dimension is one that is not known, as onnx and ONNX Runtime take it; 0 is 0."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import onnx
import pytest

from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.parts.extraction import extract_nodes
from dld_tui.core.model.inputs.guess import guess_inputs, input_specs
from dld_tui.core.model.shapes.inference import infer, store_types
from dld_tui.core.model.tensors.value_types import ValueType, value_type_of
from tests.support import models

NEGATIVE = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[-1, 4] x, float[2, 4] z) => (float[-1, 4] y)
<float[-1, 4] m> { m = Relu (x) y = Concat <axis = 0> (m, z) }
"""
OF_ITS_SIZE = """
<ir_version: 8, opset_import: ["" : 13]>
g (float[-1, 3] x) => (float[a, 3] y)
<int64 i = {0}>
{ s = Shape (x) b = Gather (s, i) f = Cast <to = 1> (b) y = Mul (x, f) }
"""


def opened(folder: Path, text: str) -> Document:
    document = Document.open(models.write(folder, text))
    store_types(document, infer(onnx.load(folder / "model.onnx")).model)
    return document


@pytest.mark.parametrize("size", [-1, -2, -(2**63)])
def test_it_is_read_as_not_known(size: int) -> None:
    kind = onnx.helper.make_tensor_type_proto(1, [None, 0])
    kind.tensor_type.shape.dim[0].dim_value = size
    assert value_type_of(kind) == ValueType("float32", (None, 0))
    sequence = onnx.helper.make_sequence_type_proto(kind)
    assert value_type_of(sequence) == ValueType("float32", (None, 0), "sequence")


@pytest.mark.parametrize("size", [-1, -300])
def test_inference_goes_on_without_it(size: int) -> None:
    model = models.parse(NEGATIVE)
    for info in (*model.graph.input[:1], *model.graph.value_info):
        info.type.tensor_type.shape.dim[0].dim_value = size
    inference = infer(model)
    assert not inference.messages
    (y,) = inference.model.graph.output
    first, second = y.type.tensor_type.shape.dim
    assert not first.dim_value
    assert second.dim_value == 4


def test_what_is_made_with_it_can_become_an_output(tmp_path: Path) -> None:
    with closing(opened(tmp_path, NEGATIVE)) as document:
        document.apply("add_output", scope=[], name="m")
        known = document.main.value_type("m")
        assert known is not None
        assert known.dims == (None, 4)
        assert extract_nodes(document, document.main.nodes[:1]).document.main.outputs == ("m",)


def test_sizes_that_follow_from_it_are_not_folded(tmp_path: Path) -> None:
    with closing(opened(tmp_path, OF_ITS_SIZE)) as document:
        known = document.main.value_type("y")
        assert known is not None
        assert known.dims is not None
        assert not isinstance(known.dims[0], int)
        macs = next(iter(ModelCosts(document).nodes.values()))
        assert "-" not in str(macs)


def test_an_input_with_it_gets_a_size(tmp_path: Path) -> None:
    with closing(opened(tmp_path, NEGATIVE)) as document:
        guess = guess_inputs(input_specs(document), document)
        assert guess.shapes["x"][0] >= 1
