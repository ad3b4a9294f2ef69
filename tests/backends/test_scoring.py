"""Models that are run on labelled samples: outputs are taken apart as their batch is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.accuracy import scoring
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.accuracy.datasets import Batch
from dld_tui.core.accuracy.metrics import Metric
from dld_tui.core.errors import InputError
from dld_tui.core.events import events_of, result_of

METRIC = Metric(
    "m", "M", lambda parts, label: (label, *(np.asarray(one).sum() for one in parts)), np.mean
)


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        ([np.arange(6).reshape(3, 2), np.array([7, 8, 9])], [[5, 1, 7], [6, 5, 8], [7, 9, 9]]),
        ([np.arange(6).reshape(2, 3)], "an output of 3 samples has shape [2, 3]"),
        ([np.array([7, 8, 9]), np.float32(3)], "an output of 3 samples has shape []"),
        ([np.array([[1, 2]])], [[5, 3]]),  # of one sample
        ([np.array([1, 2]), np.float32(3)], [[5, 3, 3]]),
    ],
)
def test_a_sample_gets_its_part_of_each_output(
    monkeypatch: pytest.MonkeyPatch, outputs: Sequence[Any], expected: Any
) -> None:
    seen, told = list[Any](), list[tuple[int, int]]()
    count = 1 if len(expected) == 1 else 3
    batch = Batch({"x": np.arange(count)}, [*range(5, 5 + count)])

    def session(*given: Any) -> object:
        seen.append(given)
        return SimpleNamespace(inputs="specs", feed=dict, run=lambda _: outputs)

    def read(*given: Any) -> list[Batch]:
        seen.append(given)
        return [batch, batch]

    monkeypatch.setattr(scoring, "Session", session)
    monkeypatch.setattr(scoring, "read_dataset", read)
    paths = Path("model"), Path("data"), Path("labels")
    steps = scoring.model_rows(paths[0], SessionSettings(), *paths[1:], METRIC)
    if isinstance(expected, str):
        with pytest.raises(InputError) as caught:
            list(steps)
        assert caught.value.message == expected
        return
    assert result_of(events_of(steps, told.append)).tolist() == [*expected, *expected]
    assert told == [(0, 2), (1, 2)]
    assert seen == [
        (paths[0], SessionSettings(quiet=True)), (paths[1], paths[2], "specs")
    ]  # fmt: skip
