"""``dld accuracy --dataset``: against own runs of the models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from click.testing import CliRunner
from onnx import numpy_helper

from dld_tui.activities.accuracy import score
from dld_tui.cli.jobs.accuracy import command
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.events import Progress
from tests.support.models import parse


def write_classifier(path: Path, weights: np.ndarray, batch: str | int = "n") -> Path:
    model = parse(
        f"""<ir_version: 8, opset_import: ["" : 17]>
        g (float[{batch}, 8] x) => (float[{batch}, 5] p) {{ p = MatMul (x, w) }}"""
    )
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)
    return path


@pytest.fixture
def models(tmp_path: Path) -> tuple[Path, Path, Path]:
    """A model, a worse one that takes 10 samples at once, and a dataset."""
    random = np.random.default_rng(0)
    weights = random.standard_normal((8, 5)).astype(np.float32)
    x = random.standard_normal((300, 8)).astype(np.float32)
    y = (x @ weights + random.standard_normal((300, 5))).argmax(1)
    np.savez(tmp_path / "data.npz", x=x, labels=y)
    noise = random.standard_normal(weights.shape).astype(np.float32)
    return (
        write_classifier(tmp_path / "a.onnx", weights),
        write_classifier(tmp_path / "b.onnx", weights + 2 * noise, 10),
        tmp_path / "data.npz",
    )


def share_of(model: Path, data: Path) -> float:
    """Return the share of right samples, one by one or ten by ten."""
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    given = np.load(data)
    step = session.get_inputs()[0].shape[0]
    step = step if isinstance(step, int) else 1
    right = 0
    for at in range(0, 300, step):
        (scores,) = session.run(None, {"x": given["x"][at : at + step]})
        right += int(np.sum(np.argmax(scores, 1) == given["labels"][at : at + step]))
    return right / 300


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(command, [str(word) for word in words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.return_value, done.stdout


def test_both_models_are_judged_on_the_same_samples(models: tuple[Path, Path, Path]) -> None:
    a, b, data = models
    status, text = run(a, "--against", b, "--dataset", data, "--json", "--most-loss", "1")
    result = json.loads(text)
    shares = [score["figure"]["value"] for score in result["scores"]]
    assert shares == [pytest.approx(100 * share_of(path, data)) for path in (a, b)]
    assert result["samples"] == 300
    assert result["difference"]["value"] == pytest.approx(shares[1] - shares[0])
    assert result["difference"]["high"] < -1
    assert status == 1
    status, text = run(a, "--against", b, "--dataset", data, "--most-loss", "90")
    assert (status, "PASS: a loss of 90.0 is allowed" in text) == (0, True)
    status, text = run(a, "--against", a, "--dataset", data, "--most-loss", "3")
    assert (status, "top-1: the same for every sample" in text) == (0, True)
    status, text = run(a, "--dataset", data, "--csv")
    assert (status, text.startswith("model,value,low,")) == (0, True)


def test_each_model_is_half_of_the_work(models: tuple[Path, Path, Path]) -> None:
    a, b, data = models
    events = score.run(score.Request(a, data, against=b))
    told = [(one.done, one.total, one.stage) for one in events if isinstance(one, Progress)]
    assert told == [
        (0, None, "Loading a.onnx"), *((at, 20, "Running a.onnx") for at in range(10)),
        (0, None, "Loading b.onnx"), *((at, 60, "Running b.onnx") for at in range(30, 60)),
    ]  # fmt: skip


def test_settings_that_do_not_go_together(models: tuple[Path, Path, Path]) -> None:
    a, b, data = models
    for words, said in (
        (["--dataset", data, "--tensors"], "--tensors cannot be used with --dataset"),
        (["--against", b, "--labels", data], "--labels is for --dataset"),
        (["--dataset", data, "--most-loss", "1"], "--most-loss needs --against"),
        (["--dataset", data, "--metric", "top2"], "no metric 'top2'"),
    ):
        with pytest.raises(UsageError, match=said):
            run(a, *words)
    with pytest.raises(InputError, match="a score for each class"):
        run(write_classifier(a.with_name("c.onnx"), np.ones((8, 1), np.float32)), "--dataset", data)
