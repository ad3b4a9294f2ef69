"""Rewriting a model in a test, and running it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from dld_tui.core.model.document.document import Document
from tests.support.sessions import bytes_of


def saved(document: Document) -> onnx.ModelProto:
    """Return a document as another program reads it."""
    return onnx.ModelProto.FromString(bytes_of(document))


def rewritten(model: onnx.ModelProto, rules: str) -> onnx.ModelProto:
    """Return a model after rules; undo must bring back the very same."""
    document = Document(copy_of(model))
    before = saved(Document(copy_of(model)))
    document.apply("rewrite", rules=rules)
    after = saved(document)
    document.undo()
    assert saved(document) == before
    return after


def copy_of(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def operators(model: onnx.ModelProto) -> list[str]:
    """Return the operators of the main graph."""
    return [node.op_type for node in model.graph.node]


def session_of(model: onnx.ModelProto, *, optimized: bool = False) -> Any:
    """Return a session of ONNX Runtime, without optimizations or with those of default options."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def values(model: onnx.ModelProto, seed: int = 0) -> list[Any]:
    """Return the outputs of a model for drawn inputs, by ONNX Runtime without optimizations."""
    session = session_of(model)
    return list(session.run(None, drawn(session, seed)))


def drawn(session: Any, seed: int = 0) -> dict[str, Any]:
    """Return inputs that a session takes; unknown sizes are 2."""
    dice = np.random.default_rng(seed)
    feeds: dict[str, Any] = {}
    for given in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 2 for dim in given.shape]
        if given.type == "tensor(int64)":
            feeds[given.name] = dice.integers(1, 4, shape)
        elif given.type == "tensor(bool)":
            feeds[given.name] = np.array(dice.random() < 0.5).reshape(shape)
        else:
            kind = {"tensor(float16)": np.float16, "tensor(double)": np.float64}.get(given.type)
            feeds[given.name] = np.asarray(dice.normal(size=shape)).astype(kind or np.float32)
    return feeds
