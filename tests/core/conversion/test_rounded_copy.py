"""A float16 model computed in float32, rounded between its nodes."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from dld_tui.core.conversion.error_attribution import rounded_copy
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
from tests.support import models

HALVES = """
<ir_version: 10, opset_import: ["" : 18]>
halves (float16[2] x) => (float16[2] y, float16[2] z)
<float16 w = {23728}>
{
    [big] a = Mul(x, w)
    [down] y = Div(a, w)
    [same] z = Identity(a)
}
"""
"""The weight is 300: numbers of this type are given as their bits."""


def test_what_overflows_between_nodes_is_infinite_and_borders_keep_their_types(
    tmp_path: Path,
) -> None:
    with closing(Document.open(models.write(tmp_path, HALVES))) as document:
        with closing(rounded_copy(document)) as copy:
            model = onnx.ModelProto.FromString(skeleton_bytes(copy))
        assert len(document.main.nodes) == 3, "the original stays as it is"
    onnx.checker.check_model(model, full_check=True)
    x = np.array([2, 300], np.float16)
    with np.errstate(over="ignore"):
        y, z = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": x}))
    assert y.dtype == np.float16
    assert y.tolist() == [2, np.inf]
    assert z.tolist() == [600, np.inf]
    ops = [node.op_type for node in model.graph.node]
    assert ops.count("Cast") == 6, "of x, w and a, which two nodes take, and of each node's output"
