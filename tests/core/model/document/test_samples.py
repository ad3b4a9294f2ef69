"""The demo models are valid, small, the same everywhere, and run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.model.document.samples import demo_classifier, demo_transformer
from tests.support.model_lines import lines_of
from tests.support.recorded import Recorded

Make = Callable[[], onnx.ModelProto]


@pytest.mark.parametrize("make", [demo_classifier, demo_transformer])
def test_a_demo_model_is_valid_small_and_the_same_each_time(make: Make) -> None:
    model = make()
    onnx.checker.check_model(model, full_check=True)
    data = model.SerializeToString(deterministic=True)
    assert data == make().SerializeToString(deterministic=True)
    assert len(data) < 2_000_000
    assert model.opset_import[0].version == 17


def test_the_demo_models_are_those_of_the_record(recorded: Recorded) -> None:
    made = {"classifier": demo_classifier(), "transformer": demo_transformer()}
    recorded("samples", {name: "\n".join(lines_of(model)) for name, model in made.items()})


def run(model: onnx.ModelProto, **inputs: Any) -> np.ndarray[Any, Any]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (result,) = session.run(None, inputs)
    assert isinstance(result, np.ndarray)
    return result


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
