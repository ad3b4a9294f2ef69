"""Inner tensors come out as ONNX Runtime computes them, of every type."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document import Document
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support import models

pytest.importorskip("onnxruntime")

from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, groups

X = np.array([[-1, 0, 1, 2]], np.float32)
PLAIN = SessionSettings(optimization_level="disabled", quiet=True)
BF16 = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[N] x) => (float[N] y)
{
    a = Cast <to = 16> (x)
    b = Identity (a)
    y = Cast <to = 1> (b)
    q = SequenceConstruct (x)
    n = SequenceLength (q)
}
"""


def test_types_without_a_numpy_type_and_sequences(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, BF16))
    with TensorRunner(document, PLAIN) as runner:
        found = runner.values(["b", "q"], {"x": np.array([1.0, 2.5], np.float32)})
        nothing = runner.values(["b"], {"x": np.zeros(0, np.float32)})
    assert found["q"] is None
    value = found["b"]
    assert value is not None
    assert value.dtype == ml_dtypes.bfloat16
    assert value.astype(np.float32).tolist() == [1.0, 2.5]
    assert nothing["b"] is not None
    assert nothing["b"].shape == (0,)


def test_an_error_names_the_users_file(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    with TensorRunner(Document.open(path), PLAIN) as runner:
        with pytest.raises(ActivityError) as caught:
            runner.values(["ghost"], {"x": X})
        assert caught.value.where == str(path)
        with pytest.raises(ActivityError):
            runner.values(["y"], {"x": np.zeros((2, 2, 2), np.float32)})


def test_what_is_known_is_not_computed_again(tmp_path: Path) -> None:
    text = models.CHAIN.replace("y = Sigmoid(c)", "y = Sum(c, a)")
    with TensorRunner(Document.open(models.write(tmp_path, text)), PLAIN) as runner:
        assert runner.still_needed(["y"], {"a", "b", "c"}) == {"a", "c"}
        assert runner.still_needed(["c"], {"a"}) == {"a"}
        known = {"c": np.full((1, 4), 7, np.float32), "a": np.full((1, 4), 1, np.float32)}
        (found,) = runner.each(["y"], [{"x": X, **known}])
        assert found["y"] is not None
        assert found["y"].tolist() == [[8, 8, 8, 8]]
        assert [spec.name for spec in runner.inputs] == ["x"], "those of the model itself"


@pytest.mark.parametrize(
    ("names", "budget", "expected"),
    [
        (["a", "b", "c", "half"], 100, [["a"], ["b", "c"], ["half"]]),
        (["a", "b"], 1, [["a"], ["b"]]),
        (["unknown", "a"], 100, [["unknown"], ["a"]]),
        ([], 100, []),
    ],
)
def test_groups_stay_within_the_budget(
    names: list[str], budget: int, expected: list[list[str]]
) -> None:
    types: dict[str, ValueType | None] = {
        "a": ValueType("float32", (10,)), "b": ValueType("float32", (20,)),
        "c": ValueType("float32", (5,)), "half": ValueType("float16", (8,)), "unknown": None,
    }  # fmt: skip
    assert list(groups(types, names, budget)) == expected


def test_only_the_nodes_that_are_needed_are_run(tmp_path: Path) -> None:
    text = models.CHAIN.replace("c = Mul(b, b)", "c = Reshape(b, w)")
    with TensorRunner(Document.open(models.write(tmp_path, text)), PLAIN) as runner:
        assert runner.values(["a"], {"x": X})["a"] is not None
        with pytest.raises(ActivityError):
            runner.values(["c"], {"x": X})


def test_strings_are_fed_and_read(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2]>
    texts (string[2] s) => (float[2] y, string[2] t) {
        y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_floats = [1.0, 2.0]> (s)
        t = Identity(s)
    }"""
    with TensorRunner(Document.open(models.write(tmp_path, text)), PLAIN) as runner:
        found = runner.values(runner.outputs, {"s": np.array(["b", "a"], dtype=object)})
    assert {name: np.asarray(value).tolist() for name, value in found.items()} == {
        "y": [2.0, 1.0], "t": ["b", "a"],
    }  # fmt: skip
