"""Outputs of a set-up are those of the way in which it is timed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dld_tui.backends.onnxruntime.contest import Contestant, first_item, repeated
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from tests.support import models

pytest.importorskip("onnxruntime")

DOUBLED = """
<ir_version: 8, opset_import: ["" : 17]>
doubled (float[2] x, float[2] y) => (float[2] sum, float[2] difference) {
  sum = Add(x, y)
  difference = Sub(x, y)
}
"""


@pytest.mark.parametrize("graph", [False, True], ids=["binding", "graph"])
def test_bound_outputs_are_those_of_each_set(
    graph: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a CUDA graph, all sets share the memory of the first one."""
    monkeypatch.setattr(SessionSettings, "cuda_graph", property(lambda self: graph))
    model = models.write(tmp_path, DOUBLED)
    sets = [
        {"x": np.array([k, 1], np.float32), "y": np.array([2, k], np.float32)} for k in range(3)
    ]
    contestant = Contestant(model, SessionSettings(), sets, io_binding=True)
    assert [
        {name: value.tolist() for name, value in found.items()} for found in contestant.outputs()
    ] == [{"sum": [k + 2, k + 1], "difference": [k - 2, 1 - k]} for k in range(3)]
    assert 0 < contestant.opening_s < 60


def test_the_first_of_several_items_is_the_item() -> None:
    item = {"a": np.array([[1, 2]]), "b": np.array([[3], [4]]), "c": np.array(5)}
    grown = {"a": (3, 2), "b": (2, 3)}
    many = repeated(item, grown, 3)
    assert {name: value.tolist() for name, value in many.items()} == {
        "a": [[1, 2], [1, 2], [1, 2]], "b": [[3, 3, 3], [4, 4, 4]], "c": 5,
    }  # fmt: skip
    cut = first_item(many, item)
    assert {name: value.tolist() for name, value in cut.items()} == {
        name: value.tolist() for name, value in item.items()
    }
