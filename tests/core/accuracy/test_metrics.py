"""Metrics on labelled samples against plain loops, and intervals against drawn truths."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper

from dld_tui.core.accuracy import metrics
from dld_tui.core.accuracy.datasets import read_dataset
from dld_tui.core.accuracy.metrics import (
    METRICS,
    Judged,
    Metric,
    dataset_scores,
    difference,
    find_metric,
    interval,
)
from dld_tui.core.accuracy.scores import DatasetScores, Interval, Score, score_lines
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.process.plugins import Plugin

X = [InputSpec("x", "float32", ("n", 2))]


def figure(name: str, outputs: Sequence[Any], labels: Sequence[Any]) -> float:
    metric = METRICS[name]
    rows = [
        metric.sample([np.asarray(out)], label) for out, label in zip(outputs, labels, strict=True)
    ]
    return metric.total(np.asarray(rows, np.float64))


def test_hits_among_the_best() -> None:
    random = np.random.default_rng(1)
    scores = random.integers(0, 6, (200, 9)).astype(np.float32)  # many are equal
    labels = random.integers(0, 9, 200)
    for name, most in (("top1", 1), ("top5", 5)):
        hits = 0
        for row, label in zip(scores.tolist(), labels.tolist(), strict=True):
            order = sorted(range(9), key=[(-score, at) for at, score in enumerate(row)].__getitem__)
            hits += label in order[:most]
        assert figure(name, list(scores), list(labels)) == hits / 200
    one_hot = np.eye(9)[labels]
    assert figure("top1", list(scores), list(one_hot)) == figure("top1", [*scores], [*labels])
    assert METRICS["top1"].sample([np.array([0.1, math.nan])], 1) == [0.0]


def test_macro_f1() -> None:
    random = np.random.default_rng(2)
    scores, labels = random.standard_normal((150, 5)), random.integers(0, 4, 150)
    found = [max(range(5), key=row.__getitem__) for row in scores.tolist()]
    figures = []
    for kind in {*found, *labels.tolist()}:
        pairs = Counter((f == kind, w == kind) for f, w in zip(found, labels.tolist(), strict=True))
        hits, extra, missed = pairs[True, True], pairs[True, False], pairs[False, True]
        precision = hits / (hits + extra) if hits + extra else 0.0
        recall = hits / (hits + missed) if hits + missed else 0.0
        both = precision + recall
        figures.append(2 * precision * recall / both if both else 0.0)
    assert figure("f1", list(scores), list(labels)) == pytest.approx(np.mean(figures))


def test_mean_average_precision() -> None:
    random = np.random.default_rng(3)
    scores = random.permutation(60 * 4).reshape(60, 4).astype(float)  # no two are equal
    marks = random.random((60, 4)) < 0.3
    figures = []
    for kind in range(4):
        hits, precisions = 0, []
        order = sorted(range(60), key=(-scores[:, kind]).__getitem__)
        for rank, at in enumerate(order, 1):
            if marks[at][kind]:
                hits += 1
                precisions.append(hits / rank)
        figures.append(sum(precisions) / len(precisions))
    assert figure("map", list(scores), [*marks.astype(int)]) == pytest.approx(np.mean(figures))
    lists = [np.flatnonzero(row) if row.sum() > 1 else row.astype(int) for row in marks]
    assert figure("map", list(scores), lists) == pytest.approx(np.mean(figures))


def test_word_errors() -> None:
    def distance(a: list[int], b: list[int]) -> int:
        if not a or not b:
            return len(a) + len(b)
        return min(
            distance(a[1:], b) + 1, distance(a, b[1:]) + 1, distance(a[1:], b[1:]) + (a[0] != b[0])
        )

    random = np.random.default_rng(4)
    found = [random.integers(0, 4, random.integers(0, 6)) for _ in range(30)]
    wanted = [random.integers(0, 4, random.integers(1, 6)) for _ in range(30)]
    errors = sum(distance(a.tolist(), b.tolist()) for a, b in zip(found, wanted, strict=True))
    words = sum(map(len, wanted))
    assert figure("wer", list(found), list(wanted)) == errors / words
    scores = [np.eye(4)[ids] for ids in found if len(ids)]
    some = [label for ids, label in zip(found, wanted, strict=True) if len(ids)]
    ids = [ids for ids in found if len(ids)]
    assert figure("wer", scores, some) == figure("wer", ids, some)


def test_distances_to_the_label() -> None:
    random = np.random.default_rng(5)
    a, b = random.standard_normal((2, 20, 7))
    cosines = [sum(x * y) / math.sqrt(sum(x * x) * sum(y * y)) for x, y in zip(a, b, strict=True)]
    assert figure("cosine", list(a), list(b)) == pytest.approx(np.mean(cosines))
    squares = [sum((x - y) ** 2) / 7 for x, y in zip(a, b, strict=True)]
    assert figure("rmse", list(a), list(b)) == pytest.approx(math.sqrt(np.mean(squares)))
    with pytest.raises(InputError, match="the label has 3 values, the output 7"):
        METRICS["rmse"].sample([a[0]], [1, 2, 3])


@pytest.mark.parametrize("share", [0.02, 0.3, 0.7, 0.97])
@pytest.mark.parametrize("count", [20, 100])
def test_intervals_of_shares_hold_the_truth(share: float, count: int) -> None:
    random, top1 = np.random.default_rng(6), METRICS["top1"]
    held = held_pair = 0
    for _ in range(400):
        base = (random.random(count) < share).astype(float)
        flips = random.random(count) < 0.1
        other = np.where(flips, 1 - base, base)
        truth = 0.1 * (1 - share) - 0.1 * share
        found = interval(top1, base[:, None])
        held += found.low <= 100 * share <= found.high
        found = difference(top1, base[:, None], other[:, None])
        held_pair += found.low <= 100 * truth <= found.high
    assert held / 400 > 0.925
    assert held_pair / 400 > 0.925


def test_intervals_by_drawing_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_DRAWS", 400)
    random, rmse = np.random.default_rng(7), METRICS["rmse"]
    held = 0
    for _ in range(25):
        found = interval(rmse, random.chisquare(3, (120, 1)))
        held += found.low <= math.sqrt(3) <= found.high
    assert held >= 21
    for at in (0, 4):  # each sample may be drawn
        assert interval(rmse, np.eye(5)[:, at : at + 1]).high > 0
    rows = random.random((50, 1))
    assert interval(rmse, rows) == interval(rmse, rows)
    same = difference(rmse, rows, rows)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_unknown_metrics_and_wrong_labels_are_named() -> None:
    with pytest.raises(UsageError, match=r"no metric 'top2'\. There are top1, top5"):
        find_metric("top2")
    for label, said in ((12, "12 is not one of 3 classes"), (0.5, "is not one class")):
        with pytest.raises(InputError, match=said):
            METRICS["top1"].sample([np.zeros(3)], label)
    with pytest.raises(InputError, match="a score for each class"):
        METRICS["top1"].sample([np.zeros(1)], 0)


def test_metrics_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Metric("mine", "mine", lambda outputs, label: [1.0], lambda rows: float(rows.sum()))
    given = (Plugin("mine", "toy", mine),)
    monkeypatch.setattr(metrics, "plugins", lambda group, kind: given)
    assert find_metric("mine") is mine


@pytest.mark.parametrize("form", ["folder", "archive", "sets"])
@pytest.mark.parametrize("labels", ["own", "npy", "txt"])
def test_each_form_of_a_dataset_gives_the_same(form: str, labels: str, tmp_path: Path) -> None:
    random = np.random.default_rng(8)
    x, y = random.random((70, 2), np.float32), random.integers(0, 3, 70)
    place = tmp_path / ("d.npz" if form == "archive" else "d")
    if form == "archive":
        np.savez(place, x=x, labels=y)
    elif form == "folder":
        place.mkdir()
        np.save(place / "x.npy", x)
        np.save(place / "labels.npy", y)
    else:
        for at, (start, end) in enumerate(pairwise([0, 1, 30, 70])):
            folder = place / f"test_data_set_{at}"
            folder.mkdir(parents=True)
            for name, values in (("input_0", x[start:end]), ("output_0", y[start:end])):
                data = numpy_helper.from_array(values).SerializeToString()
                (folder / f"{name}.pb").write_bytes(data)
    file = None
    if labels == "npy":
        file = tmp_path / "y.npy"
        np.save(file, y)
    elif labels == "txt":
        file = tmp_path / "y.txt"
        file.write_text("\n".join(map(str, y)) + "\n\n")
    batches = read_dataset(place, file, X)
    found = [float(np.asarray(label).reshape(-1)[0]) for b in batches for label in b.labels]
    assert found == y.tolist()
    np.testing.assert_array_equal(np.concatenate([b.values["x"] for b in batches]), x)
    assert max(len(b.labels) for b in batches) <= 40


def test_a_set_whose_inputs_have_other_first_sizes_is_one_sample(tmp_path: Path) -> None:
    specs = [*X, InputSpec("z", "float32", ("k",))]
    for at in range(2):
        folder = tmp_path / "d" / f"test_data_set_{at}"
        folder.mkdir(parents=True)
        for name, shape in (("input_0", (3, 2)), ("input_1", (5,)), ("output_0", (3,))):
            data = numpy_helper.from_array(np.full(shape, at, np.float32)).SerializeToString()
            (folder / f"{name}.pb").write_bytes(data)
    batches = read_dataset(tmp_path / "d", None, specs)
    assert [[np.shape(label) for label in one.labels] for one in batches] == [[(3,)], [(3,)]]
    file = tmp_path / "y.txt"
    file.write_text("1\n2\n")
    assert [len(one.labels) for one in read_dataset(tmp_path / "d", file, specs)] == [1, 1]


def test_datasets_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    x = np.zeros((10, 2), np.float32)
    folder = tmp_path / "d"
    folder.mkdir()
    np.save(folder / "x.npy", x)
    cases = [
        (None, X, "there are no labels"),
        ("1\n2\n", X, "2 labels for 10 samples"),
        ("1\ncat\n", X, "line 2 is not numbers"),
        ("1\n" * 10, [InputSpec("y", "float32", ("n", 2))], "no array for input y"),
        ("1\n" * 10, [InputSpec("x", "float64", ("n", 2))], "x is float32, the input is x float64"),
        ("1\n" * 10, [InputSpec("x", "float32", (4, 2))], "takes 4 samples at once, and 10 are no"),
    ]
    for text, specs, said in cases:
        file = None
        if text is not None:
            file = tmp_path / "labels.txt"
            file.write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            read_dataset(folder, file, specs)
        assert f"{'labels.txt' if 'labels for' in said or 'line' in said else folder}: " in str(
            caught.value
        )
    (folder / "x.npy").write_bytes(b"\x93NUMPY broken")
    with pytest.raises(InputError, match="cannot be read"):
        read_dataset(folder, None, X)


@pytest.mark.parametrize(
    ("ends", "higher", "outcome", "said"),
    [
        ((-5.0, -2.0), True, Outcome.FAIL, "worse by 3.5 points (2.0 to 5.0 points)"),
        ((-5.0, -0.5), True, Outcome.UNDECIDED, "worse by 2.8 points (0.5 to 5.0 points)"),
        ((-0.9, 0.5), True, Outcome.PASS, "no certain difference: loss 0.2 points"),
        (
            (0.0, 1.0),
            False,
            Outcome.PASS,
            "no certain difference: loss 0.5 points (0.0 to 1.0 points)",
        ),
        (
            (-1.0, 0.0),
            False,
            Outcome.PASS,
            "no certain difference: loss -0.5 points (-1.0 to 0.0 points)",
        ),
        ((1.0, 2.0), False, Outcome.UNDECIDED, "worse by 1.5 points (1.0 to 2.0 points)"),
        ((0.5, 1.5), True, Outcome.PASS, "better by 1.0 points (0.5 to 1.5 points)"),
        ((0.5, 0.9), False, Outcome.PASS, "worse by 0.7 points (0.5 to 0.9 points)"),
        ((-2.0, -1.0), False, Outcome.PASS, "better by 1.5 points (1.0 to 2.0 points)"),
    ],
)
def test_verdicts(ends: tuple[float, float], higher: bool, outcome: Outcome, said: str) -> None:
    given = Interval(sum(ends) / 2, *ends)
    scores = (Score("a.onnx", Interval(70, 65, 75)), Score("b.onnx", Interval(70, 65, 75)))
    result = DatasetScores("d", "top1", "top-1", "%", higher, 30, scores, given, 1.0, 8)
    assert result.outcome is outcome
    verdict, *rest = score_lines(result)
    assert verdict.startswith(f"top-1: {said}")
    assert rest == [
        f"{outcome}: a loss of 1.0 is allowed", "30 samples of d", "8 samples judged differently",
    ]  # fmt: skip
    few = score_lines(replace(result, samples=29, changed=0, most_loss=None))
    assert few[1:] == ["29 samples of d; few, so the intervals are rough"]


def test_samples_that_differ_are_counted_of_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_DRAWS", 20)
    rows = np.array([[0.0, 1], [1, 1], [2, 0], [3, 3]])
    other = rows + np.array([[0, 0], [0, 1], [1, 1], [0, 0]])
    pair = [Judged(name, "", one) for name, one in (("a", rows), ("b", other))]
    assert dataset_scores(METRICS["f1"], Path("d"), pair, 1.0).changed == 2
    alone = dataset_scores(METRICS["f1"], Path("d"), pair[:1], 1.0)
    assert (alone.changed, alone.difference) == (None, None)
    assert score_lines(alone) == ["4 samples of d; few, so the intervals are rough"]
    same = dataset_scores(METRICS["f1"], Path("d"), [pair[0], pair[0]], None)
    assert score_lines(same)[0] == f"{METRICS['f1'].title}: the same for every sample"
