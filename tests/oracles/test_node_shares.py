"""The shares of fused layers among ONNX nodes, against costs counted by hand from the shapes."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.model.document.document import Document
from dld_tui.core.report.formats.import_ort import Attribution
from dld_tui.core.report.formats.ort_profile import Kernel
from dld_tui.core.report.groups import group_layers
from dld_tui.core.report.records import Layer
from dld_tui.core.report.sharing import cost_shares


def block(path: Path, batch: int | str, channels: int, out: int, kernel: int, size: int) -> Path:
    """Write Conv, BatchNormalization and Relu, without shapes between them."""
    ones = [numpy_helper.from_array(np.ones(out, np.float32), name) for name in "sbmv"]
    weights = np.ones((out, channels, kernel, kernel), np.float32)
    pad = kernel // 2
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], "conv", pads=[pad] * 4),
        helper.make_node("BatchNormalization", ["c", *"sbmv"], ["n"], "norm"),
        helper.make_node("Relu", ["n"], ["y"], "act"),
    ]
    shapes = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, depth, size, size])
        for name, depth in (("x", channels), ("y", out))
    ]
    graph = helper.make_graph(nodes, "g", shapes[:1], shapes[1:],
                              [numpy_helper.from_array(weights, "w"), *ones])  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return path


@pytest.mark.parametrize("batch", [1, 4, "N"])
@pytest.mark.parametrize("kernel", [1, 3, 7])
def test_a_fused_convolution(batch: int | str, kernel: int, tmp_path: Path) -> None:
    channels, out, size = 16, 32, 14
    path = block(tmp_path / "m.onnx", batch, channels, out, kernel, size)
    document = Document.open(path)
    nodes = [(node, node.op_type) for node in document.main.nodes]
    shares, rule = cost_shares(nodes, 4 * out * size * size if batch == "N" else None)
    # For one element: the products of the kernel; one operation for the others.
    costs = [channels * kernel * kernel, 1, 1]
    assert shares == pytest.approx([cost / sum(costs) for cost in costs])
    assert rule == "macs"
    assert math.fsum(shares) == pytest.approx(1)


def test_batch_normalization_is_not_a_third_of_a_fused_model(tmp_path: Path) -> None:
    document = Document.open(block(tmp_path / "m.onnx", 1, 64, 64, 3, 56))
    links, confidence = Attribution(document).links(
        Kernel("conv", "FusedConv", output_dims=((1, 64, 56, 56),))
    )
    layer = Layer("conv", "FusedConv", nodes=links, confidence=confidence, time_ms=3.0, index=0)
    by_op = {group.key: group.time_ms for group in group_layers([layer], "op")}
    assert by_op["Conv"] > 2.9
    assert sum(by_op.values()) == pytest.approx(3.0)


def test_without_products_the_bytes_count(tmp_path: Path) -> None:
    text = """
    <ir_version: 10, opset_import: ["" : 18]>
    net (float[2, 8] x, float[2, 8] z) => (float16[2, 8] y)
    <float[2, 8] r, float[2, 8] s>
    {
        [relu] r = Relu (x)
        [add] s = Add (r, z)
        [cast] y = Cast <to = 10> (s)
    }
    """
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    document = Document.open(tmp_path / "m.onnx")
    shares, rule = cost_shares([(node, node.op_type) for node in document.main.nodes])
    size = 2 * 8 * 4
    moved = [2 * size, 3 * size, size + size // 2]
    assert shares == pytest.approx([each / sum(moved) for each in moved])
    assert rule == "bytes"


def test_of_names_alone_the_product_has_the_time() -> None:
    shares, rule = cost_shares([(None, "Conv"), (None, "BatchNormalization"), (None, "Relu")])
    assert (shares, rule) == ([1.0, 0.0, 0.0], "macs")
    shares, rule = cost_shares([(None, ""), (None, ""), (None, "Relu")])
    assert shares == pytest.approx([1 / 3] * 3)
    assert rule == "equal"
    assert cost_shares([]) == ([], "equal")
