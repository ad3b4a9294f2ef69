"""Which guessed inputs are tried, and when trying ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from dld_tui.core.errors import ActivityError
from dld_tui.core.model.document import Document
from dld_tui.core.model.inputs.feeds import input_feeds
from dld_tui.core.model.inputs.guess import candidate_guesses, first_that_runs, input_specs
from tests.support import models
from tests.support.recorded import Recorded

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

    def run(values: Mapping[str, Any]) -> None:
        if values["n"] > most:
            raise ActivityError("it goes too far")

    fed = input_feeds(input_specs(document), None, [], [0, 1], document, run)
    assert [one["n"] for one in fed.sets] == [most, most]


def test_what_is_said_where_no_guess_runs(recorded: Recorded) -> None:
    models_of = {
        "sizes": _TEXT, "counts": _LOOP, "nothing to guess": _TEXT.replace("n,m,k", "2"),
        "no input": _TEXT.replace("float[n,m,k] x", "").replace("(x)", "()"),
        "few sizes": _TEXT.replace("n,m,k", "2,k"),
    }  # fmt: skip
    made = {}
    for name, text in models_of.items():
        error = ActivityError("it does not run", hint="Look" if name == "no input" else "")
        run = Mock(side_effect=error)
        with closing(Document(models.parse(text))) as document, pytest.raises(ActivityError):
            first_that_runs(candidate_guesses(input_specs(document), document), 0, run)
        made[name] = f"{error.message}\n{error.hint}\ntried {run.call_count}"
    recorded("refused", made)
