"""Trials tell which nodes cannot be in float16, and a search over them finds these."""

from __future__ import annotations

import re
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest

from dld_tui.core.accuracy.statistics import Tolerance, Tolerances
from dld_tui.core.events import Event, result_of
from dld_tui.core.model.document import Document, Node
from dld_tui.core.trials import Journal, Limits, Outcome, Subset, Trials, Words, subset_key
from tests.support import models
from tests.support.conversions import OVERFLOWS

pytest.importorskip("onnxruntime")

from dld_tui.backends.accuracy.precision_trials import PrecisionTrials
from dld_tui.backends.onnxruntime.session_options import SessionSettings

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
