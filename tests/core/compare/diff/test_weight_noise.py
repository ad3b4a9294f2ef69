"""Errors of weights in few bits, against plain numpy on what ONNX Runtime makes of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.activities.convert.quantize import Request, run
from dld_tui.core.compare.diff.tensors import WeightNoise, weight_noise
from dld_tui.core.errors import ActivityError, UnavailableError
from dld_tui.core.events import Finished
from dld_tui.core.model.document.document import Document
from tests.support import decoders


def quantized(path: Path, **settings: Any) -> Path:
    pytest.importorskip("onnx_ir")
    output = path.with_name("few.onnx")
    request = Request(path, output, weights_only=True, measure=False, values="never", **settings)
    *_, last = run(request)
    assert isinstance(last, Finished)
    return output


def noise(old: Path, new: Path) -> list[WeightNoise]:
    first, second = Document.open(old), Document.open(new)
    try:
        found = [*weight_noise(first, second)]
        assert not [one for one in found if isinstance(one, str)]
        return [one for one in found if isinstance(one, WeightNoise)]
    finally:
        first.close()
        second.close()


def weights_as_run(path: Path) -> dict[str, Any]:
    """Return what each product multiplies by, by its output, from runs with unit matrices."""
    runtime = pytest.importorskip("onnxruntime")
    model, found = onnx.load(path), {}
    stored = {one.name: one for one in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "MatMulNBits":
            continue
        rows = next(one.i for one in node.attribute if one.name == "K")
        kept = [one for one in node.attribute if one.name != "accuracy_level"]
        single = onnx.helper.make_node(
            "MatMulNBits", ["x", *node.input[1:]], ["y"], domain="com.microsoft"
        )
        single.attribute.extend(kept)
        graph = onnx.helper.make_graph(
            [single], "g",
            [onnx.helper.make_tensor_value_info("x", 1, [rows, rows])],
            [onnx.helper.make_tensor_value_info("y", 1, None)],
            [stored[name] for name in node.input[1:] if name],
        )  # fmt: skip
        one = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=10)
        session = runtime.InferenceSession(
            one.SerializeToString(), providers=["CPUExecutionProvider"]
        )
        found[node.output[0]] = session.run(None, {"x": np.eye(rows, dtype=np.float32)})[0]
    return found


@pytest.mark.broad
def test_errors_are_those_of_the_weights_as_run(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "float.onnx", int4=False)
    few = quantized(path, weights="uint4", block=32)
    floats = {one.name: numpy_helper.to_array(one) for one in onnx.load(path).graph.initializer}

    found = {one.weight: one for one in noise(path, few)}

    run_as = weights_as_run(few)
    assert len(found) == len(run_as) == 8
    for output, rounded in run_as.items():
        weight = floats[f"{output}.weight"].astype(np.float64)
        error = weight - rounded
        expected = 10 * np.log10((weight**2).sum() / (error**2).sum())
        one = found[f"{output}.weight"]
        assert one.snr_db == pytest.approx(expected, abs=0.01)
        assert one.max_abs == pytest.approx(np.abs(error).max(), rel=1e-3)
        assert one.format == "4 bits, blocks of 32, MatMulNBits"


@pytest.mark.broad
@pytest.mark.usefixtures("replaces_all")
def test_roundings_and_smaller_blocks(tmp_path: Path) -> None:
    path = decoders.grouped(tmp_path / "float.onnx", int4=False)

    def power(**settings: Any) -> float:
        errors = noise(path, quantized(path, weights="uint4", **settings))
        return sum(10 ** (-(one.snr_db or 0) / 10) for one in errors)

    nearest = power(block=32)
    # It weighs large weights more: about as much noise, in other places.
    weighed = power(block=32, rounding="k-quant")
    assert weighed == pytest.approx(nearest, rel=0.1)
    assert weighed != nearest
    assert power(block=16) < nearest
    with pytest.raises(ActivityError, match="an even number of blocks in each column"):
        quantized(path, weights="uint4", rounding="k-quant", block=64)


def test_what_the_runtime_imports_and_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = decoders.grouped(tmp_path / "float.onnx", int4=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx_ir" else 1)
    request = Request(path, tmp_path / "few.onnx", weights_only=True)
    with pytest.raises(UnavailableError, match="onnx_ir is not installed"):
        list(run(request))
