"""Which guessed inputs are tried, and when trying ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from dld_tui.core.document import Document
from dld_tui.core.errors import ActivityError
from dld_tui.core.inputs.guess import candidate_guesses, first_that_runs, input_specs
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
