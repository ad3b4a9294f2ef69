"""What the benchmark of tensor errors measures, each run in a process of its own."""

from __future__ import annotations

import resource
import time
from pathlib import Path


def residual_model(path: str, blocks: str, change: str) -> dict[str, float]:
    """Write a network of residual blocks of four nodes, each of which makes half a megabyte.

    Args:
        path: The file.
        blocks: How many.
        change: What the weights are multiplied by, so that two such models differ.
    """
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value, channels, size = "x", 32, 64
    for block in range(int(blocks)):
        p = f"block{block}/"
        weight = random.standard_normal((channels, channels, 3, 3)) * (0.05 * float(change))
        weights.append(numpy_helper.from_array(weight.astype(np.float32), p + "w"))
        bias = (random.standard_normal((1, channels, 1, 1)) * 0.1).astype(np.float32)
        weights.append(numpy_helper.from_array(bias, p + "b"))
        made = helper.make_node
        nodes += [
            made("Conv", [value, p + "w"], [p + "conv"], p + "conv", pads=[1, 1, 1, 1]),
            made("Add", [p + "conv", p + "b"], [p + "bias"], p + "bias"),
            made("Tanh", [p + "bias"], [p + "tanh"], p + "tanh"),
            made("Add", [p + "tanh", value], [p + "sum"], p + "sum"),
        ]
        value = p + "sum"
    shape = [1, channels, size, size]
    graph = helper.make_graph(
        nodes,
        "residual",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, shape)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    Path(path).write_bytes(model.SerializeToString())
    return {"nodes": len(nodes), "megabytes": len(nodes) * channels * size * size * 4 / 1e6}


def tensor_errors(path: str, other: str, budget: str) -> dict[str, float]:
    """Compare all tensors of two models as ``dld accuracy --tensors`` does."""
    from dld_tui.activities.accuracy.job import Request, run
    from dld_tui.backends.onnxruntime import runtime
    from dld_tui.core.events import Finished

    runtime.load()
    begin = time.perf_counter()
    request = Request(Path(path), Path(other), tensors=True, memory_budget=float(budget))
    *_, last = run(request)
    seconds = time.perf_counter() - begin
    assert isinstance(last, Finished)
    kept = last.result["kept_bytes"]
    tensors = last.result["tensors"]
    assert isinstance(kept, int)
    assert isinstance(tensors, list)
    return {"s": seconds, "kept_mb": kept / 1e6, "tensors": len(tensors), **_peak()}


def plain_runs(path: str, other: str) -> dict[str, float]:
    """Load and run two models with ONNX Runtime, one after the other, for their outputs."""
    import numpy as np
    import onnxruntime

    feed = np.random.default_rng(0).random((1, 32, 64, 64), dtype=np.float32)
    begin = time.perf_counter()
    for model in (path, other):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
        session.run(None, {"x": feed})
    return {"s": time.perf_counter() - begin, **_peak()}


def _peak() -> dict[str, float]:
    return {"peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6}
