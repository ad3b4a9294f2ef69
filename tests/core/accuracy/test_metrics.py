"""Metrics on labelled samples against plain loops, and intervals against drawn truths."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
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
from dld_tui.core.accuracy.scores import score_lines
from dld_tui.core.errors import InputError, UsageError
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.process.plugins import Plugin
from tests.support.recorded import Recorded

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
    for label, said in (
        (12, "12 is not one of 3 classes"), (3, "3 is not one of 3"), (0.5, "is not one class")
    ):  # fmt: skip
        with pytest.raises(InputError, match=said):
            METRICS["top1"].sample([np.zeros(3)], label)
    with pytest.raises(InputError, match="a score for each class"):
        METRICS["top1"].sample([np.zeros(1)], 0)


def test_metrics_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Metric("mine", "mine", lambda outputs, label: [1.0], lambda rows: float(rows.sum()))
    given = (Plugin("mine", "toy", mine),)
    monkeypatch.setattr(metrics, "plugins", lambda group, kind: given)
    assert find_metric("mine") is mine


def test_whole_datasets(tmp_path: Path, recorded: Recorded) -> None:
    """What folders, archives and files of labels are read as, and why others are refused."""
    x, y = np.arange(20, dtype=np.float32).reshape(10, 2), np.arange(10)
    both = [*X, InputSpec("z", "float32", ("n",))]
    of_four, of_five = ([InputSpec("x", "float32", (size, 2))] for size in (4, 5))
    of_labels = [*X, InputSpec("labels", "int64", ("n",))]
    arrays: dict[str, dict[str, Any]] = {
        "x": {"x": x}, "labelled": {"x": x, "labels": y[:, None], "more": y}, "empty": {"x": x[:0]},
        "both": {"x": x, "z": x[:, 0]}, "unlike": {"x": x, "z": x[:3, 0]}, "none": {},
        "scalar": {"x": x, "z": np.float32(1)}, "doubles": {"x": x.astype(np.float64)},
        "objects": {"x": np.array([None, {}], dtype=object)}, "long": {"x": np.tile(x, (9, 1))},
        "scalars": {"x": np.float32(2)}, "input": {"x": x, "labels": y},
    }  # fmt: skip
    for name, stored in arrays.items():
        folder = tmp_path / name
        folder.mkdir()
        for key, array in stored.items():
            np.save(folder / f"{key}.npy", array)
        np.savez(tmp_path / f"{name}.npz", **stored)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "x.npy").write_bytes(b"\x93NUMPY broken")
    (tmp_path / "broken.npz").write_bytes(b"PK broken")
    (tmp_path / "nothing.npz").write_bytes(b"")
    for name, contents in (
        ("sets", [(3, 3), (2, 2)]), ("whole", [(3, 1)]), ("no labels", [(3, None)]),
        ("garbage", [(3, -1)]), ("other counts", [(3, 3), (1, 2)]),
    ):  # fmt: skip
        for at, (count, labels) in enumerate(contents):
            folder = tmp_path / name / f"test_data_set_{at}"
            folder.mkdir(parents=True)
            tensor = numpy_helper.from_array(x[:count])
            (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
            if labels is not None and labels < 0:
                (folder / "output_0.pb").write_bytes(b"\xff\xff")
            elif labels is not None:
                tensor = numpy_helper.from_array(np.arange(10 * at, 10 * at + labels))
                (folder / "output_0.pb").write_bytes(tensor.SerializeToString())
    files = {
        "ten": "\n".join(map(str, y)) + "\n\n", "two": "1\n2\n", "five": "1\n2\n\n3\n4\n5\n",
        "lists": "1, 2\n3\n" * 5, "words": "1\ncat\n", "blank": "\n \n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / f"{name}.txt").write_text(text)
    (tmp_path / "latin.txt").write_bytes(b"1\n\xff\n")
    np.save(tmp_path / "ten.npy", y)
    np.save(tmp_path / "objects.npy", np.array([None]))
    (tmp_path / "broken.npy").write_bytes(b"\x93NUMPY")

    def told(name: str, file: str | None, specs: Sequence[InputSpec]) -> str:
        try:
            batches = read_dataset(
                tmp_path / name, None if file is None else tmp_path / file, specs
            )
        except InputError as error:
            return str(error).replace(str(tmp_path), "FOLDER").partition("\n")[0]
        return "\n".join(
            f"{ {key: np.shape(value) for key, value in one.values.items()} }"
            f" {[np.asarray(label).tolist() for label in one.labels]}"
            for one in batches
        )

    texts = {}
    for name in arrays:
        in_folder, in_archive = (
            "\n".join(told(f"{name}{end}", file, specs)
                      for file, specs in ((None, X), ("ten.txt", X), ("ten.txt", both)))
            for end in ("", ".npz")
        )  # fmt: skip
        assert in_archive.replace(".npz:", ":") == in_folder
        texts[name] = re.sub("(read: ).*", r"\1…", in_folder)
    for name in ("broken", "broken.npz", "nothing.npz", "no such.npz"):
        texts[name] = re.sub("(read: ).*", r"\1…", told(name, "ten.txt", X))
    for name in ("sets", "whole", "no labels", "garbage", "other counts"):
        texts[name] = re.sub("(tensor: ).*", r"\1…", "\n".join(
            told(name, file, X) for file in (None, "five.txt", "two.txt")
        ))  # fmt: skip
    for file in (*(f"{name}.txt" for name in files), "latin.txt", "ten.npy", "objects.npy",
                 "broken.npy", "no such.txt"):  # fmt: skip
        texts[f"labels {file}"] = re.sub("(read: ).*", r"\1…", told("x", file, X))
    for name, specs in (("of four", of_four), ("of five", of_five), ("of labels", of_labels)):
        texts[name] = told("input", "ten.txt", specs)
    texts["no labels of labels"] = told("input", None, of_labels)
    recorded("whole_datasets", texts)


def test_whole_intervals(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures with their intervals, and differences, of every metric on a few samples."""
    monkeypatch.setattr(metrics, "_DRAWS", 60)
    random = np.random.default_rng(11)
    texts = {}
    for count in (1, 2, 9, 40):
        lines = []
        scores = random.integers(0, 9, (2, count, 6)) / 8
        labels = [int(one) for one in random.integers(0, 6, count)]
        ids = random.integers(0, 4, (2, count, 5))
        for name, metric in METRICS.items():
            given = ids if name == "wer" else scores
            wanted: list[Any] = labels
            if name in ("cosine", "rmse"):
                wanted = list(given[0] / 2 + given[1] / 3 + 0.25)
            elif name == "wer":
                wanted = [one[:3] for one in ids[1]]
            rows = [np.asarray([metric.sample([one], label)
                                for one, label in zip(outputs, wanted, strict=True)], np.float64)
                    for outputs in given]  # fmt: skip
            found = [*(interval(metric, one) for one in rows), difference(metric, *rows)]
            shown = (f"{one.value:.5g} ({one.low:.5g} to {one.high:.5g})" for one in found)
            lines.append(f"{name}: {', '.join(shown)}")
        texts[f"{count} samples"] = "\n".join(lines)
    top1 = METRICS["top1"]
    for lost, gained in ((0, 0), (0, 1), (3, 1), (1, 6), (10, 0), (0, 10)):
        base = np.zeros((10, 1))
        base[:lost] = 1
        other = np.zeros((10, 1))
        other[10 - gained :] = 1
        one = difference(top1, base, other)
        texts[f"{lost} lost, {gained} gained"] = f"{one.value:g} {one.low:.4f} {one.high:.4f}"
    recorded("whole_intervals", texts)


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
