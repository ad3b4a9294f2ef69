"""Which guessed inputs are tried, and when trying ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.guess import candidate_guesses, first_that_runs, input_specs
from tests.support import models

_TEXT = """<ir_version: 9, opset_import: ["" : 17]>
g (float[n,m,k] x) => (float[] y) { y = ReduceSum (x) }"""


@pytest.mark.parametrize(
    ("message", "places", "tries"),
    [
        ("std::bad_alloc", ["a", "a", "a"], 2),
        ("std::bad_alloc", ["a", "b", "b"], 3),
        ("bad shape", ["a", "a", "a"], 3),
    ],
)
def test_the_same_node_lacks_memory_twice(
    tmp_path: Path, message: str, places: list[str], tries: int
) -> None:
    document = Document.open(models.write(tmp_path, _TEXT))
    guesses = [*candidate_guesses(input_specs(document), document, {})][:1] * 3
    left = iter(places)
    tried = 0

    def run(_: Mapping[str, Any]) -> None:
        nonlocal tried
        tried += 1
        raise ActivityError(message, where=next(left))

    with pytest.raises(ActivityError, match=message):
        first_that_runs(guesses, 0, run)
    assert tried == tries


_LOOP = """<ir_version: 9, opset_import: ["" : 17]>
g (float[2, 8] x, int64 n, bool c) => (float[k, 8] y) {
    y = Loop(n, c) <body = b (int64 i, bool d) => (bool e, float[8] r) {
        e = Identity(d)
        r = Gather(x, i)
    }>
}"""


@pytest.mark.parametrize("most", [4, 2, 0])
def test_counts_are_found_by_trial_down_to_0(tmp_path: Path, most: int) -> None:
    document = Document.open(models.write(tmp_path, _LOOP))

    def run(values: Mapping[str, Any]) -> int:
        if values["n"] > most:
            raise ActivityError("it goes too far")
        return int(values["n"])

    guess, count = first_that_runs(candidate_guesses(input_specs(document), document), 0, run)
    assert count == most
    assert [one.fill.low for one in guess.inputs if one.name == "n"] == [most]


def test_values_can_be_given_where_no_guess_runs(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, _LOOP))

    def run(_: Mapping[str, Any]) -> None:
        raise ActivityError("no")

    with pytest.raises(ActivityError) as caught:
        first_that_runs(candidate_guesses(input_specs(document), document), 0, run)
    assert "--inputs DIR" in str(caught.value.hint)


def test_options_fix_each_size_that_was_guessed_once(tmp_path: Path) -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]>
    g (float[n, m] x, float[n, m] y, float[n, k] z, float[2] w) => (float[] s) {
        a = ReduceSum (x) b = ReduceSum (y) c = ReduceSum (z) d = Add (a, b) s = Add (c, d) }"""
    document = Document.open(models.write(tmp_path, text))
    guess = next(iter(candidate_guesses(input_specs(document), document, {})))
    assert [one.partition(":")[0] for one in guess.options] == ["x", "z"]
