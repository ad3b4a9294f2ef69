"""What the benchmark of engine builds measures, each build in a process of its own."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any


def encoder_model(path: str, layers: str) -> dict[str, float]:
    """Write a transformer encoder with weights, whose layers have seven widths."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []

    def weight(name: str, *shape: int) -> str:
        values = (random.standard_normal(shape) * 0.05).astype(np.float32)
        weights.append(numpy_helper.from_array(values, name))
        return name

    def op(kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        return name

    value = "x"
    for layer in range(int(layers)):
        width, p = 128 + 16 * (layer % 7), f"layer{layer}/"
        hidden = op("MatMul", p + "in", value, weight(p + "in.w", 64, width))
        query, key, given = (
            op("MatMul", p + name, hidden, weight(f"{p}{name}.w", width, width)) for name in "qkv"
        )
        turned = op("Transpose", p + "turned", key, perm=[0, 2, 1])
        scores = op("Softmax", p + "softmax", op("MatMul", p + "scores", query, turned), axis=-1)
        mixed = op("MatMul", p + "mixed", scores, given)
        wide = op("MatMul", p + "up", mixed, weight(p + "up.w", width, 4 * width))
        down = op(
            "MatMul", p + "down", op("Gelu", p + "gelu", wide), weight(p + "d", 4 * width, 64)
        )
        total = op("Add", p + "add", value, down)
        scale, bias = weight(p + "scale", 64), weight(p + "bias", 64)
        value = op("LayerNormalization", p + "norm", total, scale, bias, axis=-1)
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        nodes,
        "encoder",
        [helper.make_tensor_value_info("x", kind, [2, 48, 64])],
        [helper.make_tensor_value_info(value, kind, None)],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    Path(path).write_bytes(model.SerializeToString())
    return {"nodes": len(nodes)}


def our_build(path: str, engine: str) -> dict[str, float]:
    """Build as `dld build` does: record, log, progress and cancellation included."""
    import dld_tui.backends.tensorrt.builder
    import dld_tui.backends.tensorrt.runtime
    import dld_tui.core.document  # noqa: F401
    from dld_tui.activities.build import Request, run
    from dld_tui.backends.tensorrt.library import find_library
    from dld_tui.core.events import Finished

    find_library("tensorrt_rtx")
    request = Request(Path(path), Path(engine), "tensorrt_rtx", verbosity="layer_names")
    start, used = time.perf_counter(), time.process_time()
    result = {}
    for event in run(request):
        if isinstance(event, Finished):
            result = event.result
    whole, used = time.perf_counter() - start, time.process_time() - used
    built, seconds = result["bytes"], result["seconds"]
    assert isinstance(built, int)
    assert isinstance(seconds, float)
    return {"s": whole, "cpu_s": used, "library_s": seconds, "bytes": float(built)}


def plain_build(path: str, engine: str) -> dict[str, float]:
    """Build with a plain script through Polygraphy's loaders."""
    os.environ["POLYGRAPHY_USE_TENSORRT_RTX"] = "1"
    import tensorrt_rtx
    from polygraphy.backend.tensorrt_rtx import CreateConfigRTX
    from polygraphy.backend.trt import engine_bytes_from_network, network_from_onnx_path
    from polygraphy.logger import G_LOGGER

    assert tensorrt_rtx.__version__
    G_LOGGER.module_severity = G_LOGGER.ERROR
    start, used = time.perf_counter(), time.process_time()
    parsed = network_from_onnx_path(path)
    config = CreateConfigRTX(use_gpu=False)(parsed[0], parsed[1])
    made = bytes(engine_bytes_from_network(parsed, config))
    with open(engine, "wb") as file:
        file.write(made)
        file.flush()
        os.fsync(file.fileno())  # as safely as ours
    whole, used = time.perf_counter() - start, time.process_time() - used
    return {"s": whole, "cpu_s": used, "bytes": len(made)}
