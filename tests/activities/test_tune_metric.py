"""Tuning by a metric on labelled samples: against own runs, and ``dld accuracy --dataset``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from dld_tui.activities.accuracy import score
from dld_tui.activities.tune import Request
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.events import Finished
from dld_tui.core.tune.result import Candidate, TuneResult
from tests.activities import test_tune
from tests.activities.test_tune import fast

__all__ = ["fast"]
_SAMPLES, _SIZE, _CLASSES = 400, 32, 4


def classifier(folder: Path, spread: float) -> Path:
    """Return a model of one product whose weights span so many decades that 8 bits lose some."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((_SIZE, _CLASSES)).astype(np.float32)
    weights[0] *= 10.0**spread  # a large weight in each block: the others get few steps
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["p"])], "g",
        [helper.make_tensor_value_info("x", float32, ["n", _SIZE])],
        [helper.make_tensor_value_info("p", float32, ["n", _CLASSES])],
        [numpy_helper.from_array(weights, "w")],
    )  # fmt: skip
    path = folder / "model.onnx"
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 21)])
    onnx.save(model, path)
    x = random.standard_normal((_SAMPLES, _SIZE)).astype(np.float32)
    x[:, 0] = 0  # what the large weights are for does not occur
    np.savez(folder / "data.npz", x=x, labels=(x @ weights).argmax(1))
    return path


def right(model: Path, data: Path) -> np.ndarray:
    """Return for each sample whether a plain session of the model gets it right."""
    given = np.load(data)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {"x": given["x"]})
    return np.asarray(found.argmax(1) == given["labels"])


def tuned(path: Path, **settings: Any) -> TuneResult:
    for old in path.parent.glob(f"{path.stem}.tune*"):
        old.unlink()
    return test_tune.tuned(path, **settings)


def candidate(result: TuneResult, key: str) -> Candidate:
    return next(one for one in result.candidates if one.key == key)


@pytest.mark.broad
def test_what_the_metric_allows_counts_though_outputs_differ(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    """The large weights meet zeros in the samples; in random inputs their errors count."""
    fast |= {"weights-int8.onnx": 0.5, "model.tune.onnx": 0.5}
    path, data = classifier(tmp_path, 0.5), tmp_path / "data.npz"
    asked: dict[str, Any] = {"only": ("weights-int8",), "tolerance": ("atol=1e-7,rtol=1e-7",)}
    strict = tuned(path, **asked)
    assert candidate(strict, "weights-int8").state == "no change"  # the node had to stay
    result = tuned(path, only=asked["only"], dataset=data, most_loss=5.0, again=True)
    assert (result.best, result.is_faster) == ("weights-int8", True)
    assert result.tolerance == "top1 on data.npz at most 5 worse"
    assert result.model is not None
    lost = 100 * (1 - right(Path(result.model), data).mean())  # the labels are the original's own
    *_, last = score.run(
        score.Request(model=path, dataset=data, against=Path(result.model), most_loss=5.0)
    )
    assert isinstance(last, Finished)
    judged = last.result
    assert judged.loss.value == pytest.approx(lost)
    assert judged.outcome is Outcome.PASS
    said = candidate(result, "weights-int8").accuracy
    assert said.startswith("top-1: ")
    both = tuned(path, **asked, dataset=data, most_loss=5.0)
    assert candidate(both, "weights-int8").state == "failed"


@pytest.mark.broad
def test_what_loses_too_much_or_perhaps_does_not_count(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    fast |= {"weights-int8.onnx": 0.5, "model.tune.onnx": 0.5}
    path, data = classifier(tmp_path, 3.0), tmp_path / "data.npz"
    result = tuned(path, only=("weights-int8",), dataset=data, most_loss=1.0)
    found = candidate(result, "weights-int8")
    assert (result.is_faster, found.state) == (False, "failed")
    assert found.problem.startswith("FAIL: ")
    few = np.load(data)
    np.savez(tmp_path / "few.npz", x=few["x"][:12], labels=few["labels"][:12])
    path = classifier(tmp_path, 0.0)
    loose = {"tolerance": ("snr=1",)}  # holds as well, and does not replace the metric
    result = tuned(
        path, only=("weights-int8",), dataset=tmp_path / "few.npz", most_loss=0.5, **loose
    )
    assert candidate(result, "weights-int8").problem.startswith("UNDECIDED: ")
    assert not result.is_faster
    fast["threads 1"] = 0.5  # it computes the same, whatever so few samples say
    result = tuned(path, only=("threads-1",), dataset=tmp_path / "few.npz", most_loss=0.5)
    assert result.best == "threads-1"


@pytest.mark.broad
def test_nodes_are_kept_where_the_metric_needs_them(tmp_path: Path, fast: dict[str, float]) -> None:
    """Factors of the classes leave float16's range: without them, most samples would be wrong."""
    fast |= {"fp16.onnx": 0.5, "model.tune.onnx": 0.5}
    path, data = classifier(tmp_path, 0.0), tmp_path / "data.npz"
    model = onnx.load(path)
    model.graph.node[0].output[0] = "a"
    model.graph.node.extend(
        [helper.make_node("Mul", ["a", "up"], ["b"]), helper.make_node("Mul", ["b", "down"], ["p"])]
    )
    up = np.array([1e5, 4e5, 1.6e6, 6.4e6], np.float32)
    for name, factors in (("up", up), ("down", 1 / up)):
        model.graph.initializer.append(numpy_helper.from_array(factors, name))
    onnx.save(model, path)
    result = tuned(path, only=("fp16",), dataset=data, most_loss=1.0)
    assert result.best == "fp16"
    assert result.model is not None
    assert right(Path(result.model), data).mean() > 0.99
    halves = [one.name for one in onnx.load(result.model).graph.initializer if one.data_type == 10]
    assert "w" in halves
    assert "up" not in halves


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"dataset": Path("data.npz")}, "needs --most-loss"),
        ({"labels": Path("labels.txt")}, "need --dataset"),
        ({"metric": "f1"}, "need --dataset"),
        ({"most_loss": 1.0}, "need --dataset"),
    ],
)
def test_settings_that_do_not_go_together(tmp_path: Path, asked: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Request(model=tmp_path / "m.onnx", **asked).require()


def test_a_dataset_that_does_not_fit_is_said_before_the_races(
    tmp_path: Path, fast: dict[str, float]
) -> None:
    path = classifier(tmp_path, 0.0)
    np.savez(tmp_path / "other.npz", z=np.zeros((3, 2)), labels=[0, 1, 2])
    with pytest.raises(InputError, match="no array for input x"):
        tuned(path, dataset=tmp_path / "other.npz", most_loss=1.0)
    with pytest.raises(UsageError, match="no metric"):
        tuned(path, dataset=tmp_path / "data.npz", most_loss=1.0, metric="beauty")
