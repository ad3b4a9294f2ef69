"""The demo models are valid, small, the same everywhere, and run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document.samples import demo_classifier, demo_transformer, write_demo_models

Make = Callable[[], onnx.ModelProto]


def dims(info: onnx.ValueInfoProto) -> list[int | str]:
    return [dim.dim_param or dim.dim_value for dim in info.type.tensor_type.shape.dim]


@pytest.mark.parametrize("make", [demo_classifier, demo_transformer])
def test_a_demo_model_is_valid_small_and_the_same_each_time(make: Make) -> None:
    model = make()
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString(deterministic=True)
    assert data == make().SerializeToString(deterministic=True)
    assert len(data) < 2_000_000
    assert model.opset_import[0].version == 17
    known = {info.name: dims(info) for info in (*model.graph.value_info, *model.graph.output)}
    for node in model.graph.node:
        for output in node.output:
            unnamed = [dim for dim in known[output] if dim == 0 or str(dim).startswith("unk")]
            assert unnamed == [], (output, known[output])
    names = [node.name for node in model.graph.node]
    assert len(names) == len({*names})
    assert all(name.startswith("/") for name in names)
    assert max(name.count("/") for name in names) >= 4


def test_the_classifier_is_a_residual_network() -> None:
    model = demo_classifier()
    operators = [node.op_type for node in model.graph.node]
    assert 40 <= len(operators) <= 60
    assert operators.count("BatchNormalization") == 12
    assert operators.count("Add") == 4
    assert operators[-2:] == ["Gemm", "Softmax"]
    assert dims(model.graph.input[0]) == ["N", 3, 128, 128]


def test_the_transformer_has_attention_and_a_branch() -> None:
    model = demo_transformer()
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("Softmax") == 2
    assert operators.count("Erf") == 2
    branch = next(node for node in model.graph.node if node.op_type == "If")
    (captured,) = {
        attribute.g.node[0].input[0] for attribute in branch.attribute
    }  # both branches use the same value of the graph around them
    assert captured == "/norm/LayerNormalization_output_0"


def run(model: onnx.ModelProto, **inputs: Any) -> np.ndarray[Any, Any]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(None, inputs)
    assert isinstance(result, np.ndarray)
    return result


def test_the_classifier_gives_probabilities() -> None:
    images = np.random.RandomState(0).rand(3, 3, 128, 128).astype(np.float32)
    result = run(demo_classifier(), image=images)
    assert result.shape == (3, 10)
    np.testing.assert_allclose(result.sum(axis=1), 1, rtol=1e-5)
    assert 0.01 < result.max() < 0.99
    assert not np.allclose(result[0], result[1])


def test_the_transformer_takes_both_branches_and_any_integers() -> None:
    model = demo_transformer()
    ids = np.array([[1, 2, 3, 4], [250, 10**12, -5, 0]])
    mask = np.array([[1, 1, 1, 0], [7, 1, 1, 1]])
    several = run(model, token_ids=ids, attention_mask=mask)
    one = run(model, token_ids=ids[:, :1], attention_mask=mask[:, :1])
    assert several.shape == one.shape == (2, 10)
    assert np.isfinite(several).all()
    assert not np.allclose(several, one)


def test_the_transformer_takes_its_longest_sequence() -> None:
    ids = np.ones((1, 128), np.int64)
    assert run(demo_transformer(), token_ids=ids, attention_mask=ids).shape == (1, 10)


def test_both_models_are_written(tmp_path: Path) -> None:
    classifier, transformer = write_demo_models(tmp_path)
    assert onnx.load(classifier) == demo_classifier()
    assert onnx.load(transformer) == demo_transformer()
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "demo_classifier.onnx",
        "demo_transformer.onnx",
    ]
