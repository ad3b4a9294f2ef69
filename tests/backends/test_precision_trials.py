"""Trials tell which nodes cannot be in float16, and a search over them finds these."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.accuracy import precision_trials
from dld_tui.backends.accuracy.precision_trials import SwitchedModel
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.backends.onnxruntime.tensors import TensorRunner, TensorSession
from dld_tui.core.accuracy.statistics import Tolerance, Tolerances
from dld_tui.core.conversion.retyping import in_lower_precision, switchable
from dld_tui.core.events import Event, result_of
from dld_tui.core.model.document import Document, Node
from dld_tui.core.trials import Journal, Limits, Outcome, Subset, Trials, Words, subset_key
from tests.support import models
from tests.support.conversions import OVERFLOWS
from tests.support.precision_models import WIDTH, write_attention

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy.precision_trials import PrecisionTrials

X = np.array([[0.5, 1, 2, 3]], np.float32)


def trials(folder: Path, text: str, tolerance: Tolerance, x: np.ndarray = X) -> PrecisionTrials:
    document = Document.open(models.write(folder, text))
    settings = SessionSettings(quiet=True)
    return PrecisionTrials(document, "fp16", [{"x": x}], Tolerances(tolerance), settings)


def search(made: PrecisionTrials) -> tuple[str, ...] | None:
    nodes: dict[str, Node] = {node.name: node for node in made.candidates()}

    def run(kept: Subset) -> Generator[Event, None, Outcome]:
        yield from ()
        return made.run([nodes[name] for name in kept]).outcome

    trials = Trials(
        run, subset_key, Journal(Outcome, None), Limits(), str, Words("good", "not good")
    )
    return result_of(trials.smallest(list(nodes), lambda kept: kept)).things


def test_what_overflows_is_the_first_suspect(tmp_path: Path) -> None:
    made = trials(tmp_path, OVERFLOWS, Tolerance(1e-2, 1e-2))
    assert next(node.name for node in made.ranked()) == "bigger"
    assert next(node.name for node in made.candidates()) == "first", "in the order of the model"
    found = made.run([])
    assert not found.is_good
    assert found.problem.startswith("y: ")
    assert found.errors["y"].special or found.errors["y"].max_abs


def test_nodes_without_names_are_candidates(tmp_path: Path) -> None:
    """Their outputs, which a copy renames, are all that they are known by."""
    made = trials(tmp_path, re.sub(r"\[\w+\] ", "", OVERFLOWS), Tolerance(1e-2, 1e-2))
    assert [node.outputs[0] for node in made.candidates()] == [*"abcdey"]
    assert made.ranked()[0].outputs == ("c",)


def test_a_search_finds_the_nodes_around_what_overflows(tmp_path: Path) -> None:
    made = trials(tmp_path, OVERFLOWS, Tolerance(1e-2, 1e-2))
    # The product is made by `bigger` and taken by `down`: both must hold it.
    assert set(search(made) or ()) == {"bigger", "down"}


def test_nothing_has_to_be_kept_where_it_is_good_enough(tmp_path: Path) -> None:
    made = trials(tmp_path, models.CHAIN, Tolerance(1e-2, 1e-2))
    assert search(made) == ()
    found = made.run([])
    assert (found.problem, found.lowered_nodes) == ("", 4)


def test_a_tolerance_that_nothing_meets(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[last] y = Sigmoid(c)", "[last] r = RandomNormalLike(c)")
    text = text.replace("RandomNormalLike(c)", "RandomNormalLike(c)\n    y = Add(c, r)")
    assert search(trials(tmp_path, text, Tolerance(0, 0))) is None


def test_bodies_and_functions_are_candidates_too(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.PLAIN_BRANCHES))
    feeds = [{"x": X, "choice": np.array(True)}]
    tolerances = Tolerances(Tolerance(1e-2, 1e-2))
    made = PrecisionTrials(document, "fp16", feeds, tolerances, SessionSettings(quiet=True))
    assert {node.name for node in made.candidates()} >= {"pre", "inner"}
    assert made.run([]).is_good


SETTINGS = SessionSettings(optimization_level="disabled", quiet=True)
GRID = np.linspace(0, 1, 4 * WIDTH, dtype=np.float32).reshape(4, WIDTH)


@pytest.fixture
def document(tmp_path: Path) -> Generator[Document, None, None]:
    write_attention(tmp_path / "model.onnx")
    with contextlib.closing(Document.open(tmp_path / "model.onnx")) as opened:
        yield opened


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The outputs of each session that is made."""
    made: list[list[str]] = []
    real = TensorRunner.session

    def session(self: TensorRunner, names: Any, given: Any = None) -> TensorSession:
        made.append([*names])
        return real(self, names, given)

    monkeypatch.setattr(TensorRunner, "session", session)
    return made


def switched(document: Document, precision: str) -> SwitchedModel:
    return SwitchedModel(switchable(document, precision), None, SETTINGS, ["y"], ["x"])


def check(document: Document, model: SwitchedModel) -> None:
    nodes = model.nodes
    for kept in ([], nodes[::2], nodes[3:4], nodes, nodes[1::2]):
        (found,) = model.each(set(kept), [{"x": GRID}])
        copy = in_lower_precision(document, "fp16", kept, rounded=True).document
        with contextlib.closing(copy), TensorRunner(copy, SETTINGS) as runner:
            np.testing.assert_array_equal(found["y"], runner.values(["y"], {"x": GRID})["y"])


def test_trials_need_no_more_sessions(document: Document, sessions: list[list[str]]) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        next(model.each((), [{"x": GRID}]))
        first = len(sessions)
        assert sessions[-1] == ["y"]
        assert sum(map(len, sessions[:-1])) == 8, "each weight once, the scale for each block"
        for kept in (model.nodes[::2], model.nodes[:5], model.nodes):
            next(model.each(kept, [{"x": GRID}]))
        assert len(sessions) == first


def test_it_computes_what_copies_compute(document: Document) -> None:
    with contextlib.closing(switched(document, "fp16")) as model:
        check(document, model)


def test_weights_that_are_not_kept_are_rounded_again(
    document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(precision_trials, "_KEPT_BYTES", 1)
    monkeypatch.setattr(precision_trials, "_TOGETHER", 3)
    with contextlib.closing(switched(document, "bf16")) as model:
        (exact,) = model.each(model.nodes, [{"x": GRID}])
        (rounded,) = model.each((), [{"x": GRID}])
        (again,) = model.each(model.nodes, [{"x": GRID}])
    np.testing.assert_array_equal(exact["y"], again["y"])
    assert exact["y"] is not None
    assert rounded["y"] is not None
    assert not np.array_equal(exact["y"], rounded["y"])
