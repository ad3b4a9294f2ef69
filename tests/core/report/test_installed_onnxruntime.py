"""The rules against what the installed ONNX Runtime really does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx.numpy_helper
import pytest

from dld_tui.core.model.document import Document
from dld_tui.core.report.formats.import_ort import add_ort_profile
from dld_tui.core.report.report import Report
from tests.support import models
from tests.support.profiles import start_report

NET = """
<ir_version: 10, opset_import: ["" : 18]>
net (float[1,16,8,8] x, bool choice) => (float[1,16,8,8] y)
<float[16,16,1,1] w, float[1,16,8,8] bias>
{
    [conv1] a = Conv (x, w)
    [relu1] b = Relu (a)
    [conv2] c = Conv (b, w)
    [sum] d = Add (c, b)
    [relu2] e = Relu (d)
    f = Sigmoid (e)
    [swish] g = Mul (e, f)
    [plus] h = Add (g, bias)
    [pick] i = If (choice) <
        then_branch = yes () => (float[1,16,8,8] t) { [neg] n = Neg (h) [exp] t = Exp (n) },
        else_branch = no () => (float[1,16,8,8] o) { [abs] o = Abs (h) }
    >
    [last] y = Softmax <axis = 1> (i)
}
"""

WORKING = {
    "conv1", "relu1", "conv2", "sum", "relu2", ">f", "swish", "plus", "pick", "neg", "exp", "last",
}  # fmt: skip


def profiled(
    text: str, feeds: Mapping[str, Any], folder: Path, passes: int, level: str = "ENABLE_ALL"
) -> Report:
    """Return a report of what ONNX Runtime did with a model whose weights are drawn."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = models.parse(text)
    rng = np.random.default_rng(0)
    for value in model.graph.value_info:
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        values = rng.random(shape, dtype=np.float32)
        model.graph.initializer.append(onnx.numpy_helper.from_array(values, value.name))
    path = folder / "net.onnx"
    path.write_bytes(model.SerializeToString())
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    options.optimized_model_filepath = str(folder / "optimised.onnx")
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for _ in range(passes):
        session.run(None, feeds)
    with start_report(folder / "r.dldprof") as writer:
        add_ort_profile(
            writer,
            session.end_profiling(),
            Document.open(path),
            Document.open(folder / "optimised.onnx"),
        )
    return Report.open(folder / "r.dldprof")


@pytest.mark.parametrize("level", ["DISABLE_ALL", "ENABLE_BASIC", "ENABLE_EXTENDED", "ENABLE_ALL"])
def test_all_time_is_joined_and_every_node_that_ran_is_found(tmp_path: Path, level: str) -> None:
    feeds = {"x": np.ones((1, 16, 8, 8), dtype=np.float32), "choice": np.array(True)}
    report = profiled(NET, feeds, tmp_path, 3, level)
    assert len(report.counted_passes) == 3
    assert report.joined_percent == pytest.approx(100)
    assert {link.node for layer in report.layers for link in layer.nodes} == WORKING
    owners = [
        link.node for layer in report.layers if layer.confidence != "rule" for link in layer.nodes
    ]
    assert len(owners) == len(set(owners))


UNNAMED = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1,3,4] x) => (float[1,3,4] y)
<float[4,4] v, float[4] p, float[4,4] w, float[4] q>
{
    a = MatMul (x, v)
    b = Add (a, p)
    c = Tanh (b)
    d = MatMul (c, w)
    y = Add (d, q)
}
"""


def test_a_product_between_inserted_reshapes_is_found_by_its_weights(tmp_path: Path) -> None:
    report = profiled(UNNAMED, {"x": np.ones((1, 3, 4), dtype=np.float32)}, tmp_path, 1)
    products = [
        [link.node for link in layer.nodes] for layer in report.layers if layer.type == "Gemm"
    ]
    assert products == [[">a", ">b"], [">d", ">y"]]
    assert report.joined_percent == pytest.approx(100)
