"""One session with switches computes what the quantizer's own model computes, for any choice."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from dld_tui.core.events import result_of
from dld_tui.core.model.document import Document
from tests.support import models

pytest.importorskip("onnxruntime")

from onnxruntime.quantization import quantize_static

from dld_tui.backends.accuracy.precision_trials import SwitchedModel, plan_of
from dld_tui.backends.conversion.quantizer import Quantizer
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner
from dld_tui.core.conversion.quantization_switches import quantization_switches
from dld_tui.core.conversion.request import QuantizationSettings
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.document.node import Node

SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
MODEL = """
<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 4, 8, 8] x) => (float[1, 6] y, float[1, 6, 8, 8] z)
<int64[2] flat = {1, 6}>
{
    [stem] a = Conv<pads = [1, 1, 1, 1]>(x, w0, b0)
    [bent] b = Relu(a)
    [small] p = MaxPool<kernel_shape = [2, 2], pads = [0, 0, 1, 1]>(b)
    [side] z = Conv<pads = [1, 1, 1, 1]>(b, w1)
    [mean] m = GlobalAveragePool(z)
    [rows] r = Reshape(m, flat)
    [mixed] s = MatMul(r, w2)
    [shares] t = Softmax(s)
    [sum] y = Add(t, r)
    [unused] q = Transpose<perm = [0, 2, 3, 1]>(p)
}
"""


@pytest.fixture
def calibration(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    for number in range(3):
        folder = tmp_path / "sets" / f"test_data_set_{number}"
        folder.mkdir(parents=True)
        np.save(folder / "x.npy", rng.standard_normal((1, 4, 8, 8)).astype(np.float32))
    return tmp_path / "sets"


@pytest.fixture
def document(tmp_path: Path) -> Generator[Document, None, None]:
    model, rng = models.parse(MODEL), np.random.default_rng(0)
    shapes = {"w0": (4, 4, 3, 3), "b0": (4,), "w1": (6, 4, 3, 3), "w2": (6, 6)}
    for name, dims in shapes.items():
        values = rng.standard_normal(dims).astype(np.float32)
        values *= name != "b0"  # what a bias loses in 32 bits could change how a sum is rounded
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with contextlib.closing(Document.open(path)) as opened:
        yield opened


@pytest.mark.broad
@pytest.mark.parametrize("runtime", ["onnxruntime", "tensorrt"])
def test_switches_compute_what_the_quantizer_makes(
    document: Document, calibration: Path, runtime: str
) -> None:
    feeds = [{"x": np.load(one / "x.npy")} for one in sorted(calibration.iterdir())]
    settings = QuantizationSettings(calibration=calibration, runtime=runtime)
    with Quantizer(document, settings) as quantizer:
        list(quantizer.check_calibration())
        plan = plan_of(result_of(quantizer.quantize("minmax", ())))
        switched = quantization_switches(quantizer.prepared, plan)
        model = SwitchedModel(switched, None, SETTINGS, ["y", "z"], ["x"])
        nodes = model.nodes
        assert {"stem", "bent", "side", "mixed", "shares", "sum"} < {one.name for one in nodes}
        by_name = {node.name: node for node in nodes}
        choices: list[list[Node]] = [
            [], [by_name["stem"]], [by_name["bent"], by_name["mixed"]],
            [by_name["shares"], by_name["side"]], nodes[1::2],
        ]  # fmt: skip
        with contextlib.closing(model), TensorRunner(document, SETTINGS) as runner:
            plain = [*runner.each(["y", "z"], feeds)]
            noise = 0.0
            for kept in choices:
                copy = result_of(quantizer.quantize("minmax", (), kept))
                mine = [*model.each(set(kept), feeds)]
                with TensorRunner(copy.document, SETTINGS) as other:
                    theirs = [*other.each(["y", "z"], feeds)]
                for one, two, right in zip(mine, theirs, plain, strict=True):
                    for name in ("y", "z"):
                        a, b, c = (np.asarray(side[name], np.float32) for side in (one, two, right))
                        np.testing.assert_allclose(a, b, rtol=0, atol=1e-5)
                        noise = max(noise, float(np.abs(b - c).max()))
            assert noise > 1e-3, "quantization changes something"
            (exact,) = model.each(nodes, feeds[:1])
            np.testing.assert_array_equal(exact["y"], plain[0]["y"])
        with_all = {point.tensor for point in plan.points()}
        quantized = {
            node.inputs[0]
            for node in copy_nodes(result_of(quantizer.quantize("minmax", ())).document)
        }
        assert quantized <= with_all | {f"{name}_QuantizeLinear_Input" for name in with_all}


def copy_nodes(document: Document) -> list[Node]:
    return [*document.main.nodes_of_type("QuantizeLinear")]


def test_points_need_no_calibration(document: Document) -> None:
    with Quantizer(document, QuantizationSettings(exclude=("side",))) as quantizer:
        plan = result_of(quantizer.plan(()))
    points = {point.tensor: point for point in plan.points()}
    assert points["w0"].kind == "weight"
    assert points["b0"].kind == "bias"
    assert points["x"].nodes == ("stem",)
    assert "w1" not in points, "its node is excluded"
    assert points["b"].nodes == ("bent",)
    assert not plan.scales


def test_names_in_a_file_are_left_out_and_wrong_ones_are_refused(
    document: Document, tmp_path: Path
) -> None:
    names = tmp_path / "names.txt"
    names.write_text("stem\n\nmixed\n", encoding="utf-8")
    settings = QuantizationSettings(exclude=("side",), exclude_from=names)
    with Quantizer(document, settings) as quantizer:
        options = quantizer._options("minmax", (), ())
    assert options.exclude == ["side", "stem", "mixed"]
    names.write_text("absent\n", encoding="utf-8")
    with pytest.raises(UsageError, match="no node is named 'absent'"):
        Quantizer(document, settings)
    names.unlink()
    with pytest.raises(InputError, match="cannot be read"):
        Quantizer(document, settings)


@pytest.mark.skipif(
    "calibration_cache_path" not in inspect.signature(quantize_static).parameters,
    reason="this ONNX Runtime cannot keep ranges",
)
def test_the_inputs_are_calibrated_once(document: Document, calibration: Path) -> None:
    def scales(quantizer: Quantizer, method: str) -> dict[str, bytes]:
        made = result_of(quantizer.quantize(method, ())).document.main
        return {
            tensor.name: tensor.read().tobytes()
            for tensor in made.initializers
            if tensor.name.endswith("_scale")
        }

    settings = QuantizationSettings(calibration=calibration)
    with Quantizer(document, settings) as quantizer:
        list(quantizer.check_calibration())
        first = scales(quantizer, "minmax")
        for folder in calibration.iterdir():  # what is read again would have other ranges
            np.save(folder / "x.npy", 9 * np.load(folder / "x.npy"))
        assert scales(quantizer, "minmax") == first
        assert scales(quantizer, "percentile") != first
    with Quantizer(document, settings) as other:
        list(other.check_calibration())
        assert scales(other, "minmax") != first
