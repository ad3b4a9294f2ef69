"""Other versions of the operators: what is said of nodes and payloads that are cut out stay.

What is converted, refused and told is in ``tests/core/model/transcripts/opset.txt``.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.core.conversion.opset import (
    ConversionError,
    convert_opset,
    known_versions,
)
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from tests.support import models
from tests.support.conversions import OLD


def old() -> onnx.ModelProto:
    model = models.parse(OLD)
    for node in model.graph.node:
        node.doc_string = f"about {node.name}"
        node.metadata_props.add(key="kept", value=node.name)
    model.graph.metadata_props.add(key="graph", value="g")
    model.graph.quantization_annotation.add(tensor_name="q")
    return model


def by_name(model: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(node for node in model.graph.node if node.name == name)


def test_what_is_said_of_nodes_and_graphs_is_kept() -> None:
    model, before = old(), old()
    convert_opset(model, 18)
    reduce = by_name(model, "reduce")
    assert reduce.doc_string == "about reduce"
    assert reduce.metadata_props[0].value == "reduce"
    for name in ("custom", "add"):
        assert by_name(model, name) == by_name(before, name)
    for part in ("metadata_props", "quantization_annotation"):
        assert getattr(model.graph, part) == getattr(before.graph, part)
    onnx.checker.check_model(model, full_check=True)


def test_payloads_that_are_cut_out(tmp_path: Path) -> None:
    model = old()
    values = np.arange(20_000, dtype=np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, "big"))
    plain = onnx.helper.make_tensor("floats", onnx.TensorProto.FLOAT, [5000], values[:5000])
    model.graph.initializer.append(plain)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    with closing(Document.open(path)) as document:
        skeleton = onnx.ModelProto.FromString(skeleton_bytes(document))
    kept = [tensor.SerializeToString() for tensor in skeleton.graph.initializer]
    convert_opset(skeleton, 18)
    assert [tensor.SerializeToString() for tensor in skeleton.graph.initializer] == kept


def test_versions_that_are_not_known_are_refused() -> None:
    last = known_versions()[-1]
    assert last >= 18
    with pytest.raises(ConversionError, match=f"opset {last + 1} is not known: choose 1 to {last}"):
        convert_opset(old(), last + 1)
