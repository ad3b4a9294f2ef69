"""Outputs of a set-up are those of the way in which it is timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.backends.onnxruntime.contest import Contestant, accuracy, first_item, repeated
from dld_tui.backends.onnxruntime.session_options import SessionSettings
from dld_tui.core.accuracy.tensor_errors import Tolerances, parse_tolerances
from dld_tui.core.conversion.accuracy_criteria import FLOAT16
from tests.support import models
from tests.support.recorded import Recorded

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
    maps, parts = [{1: 0.25}], [np.array([[1, 2]]), np.array(3)]
    both = first_item(
        {"m": [{1: 0.25}, {1: 0.5}], "s": [np.array([[1, 2], [3, 4]]), np.array(3)]},
        {"m": maps, "s": parts},
    )
    assert both["m"] == maps
    assert [one.tolist() for one in both["s"]] == [[[1, 2]], 3]


def floats(*numbers: float) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.array(numbers, np.float32)


PAIR, NEAR, FAR = floats(1, 2), floats(1, 2.0001), floats(1, 3)
WORDS = np.array(["a", "b"], object)
OUTPUTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the same": ({"x": FAR, "w": WORDS}, {"other": FAR, "w": WORDS}),
    "near": ({"x": PAIR, "y": PAIR}, {"x": NEAR, "y": PAIR}),
    "the worst of two": ({"x": PAIR, "y": PAIR}, {"x": NEAR, "y": floats(1, 2.001)}),
    "far": ({"x": PAIR, "y": PAIR}, {"x": NEAR, "y": FAR}),
    "off zero": ({"x": floats(0, 0)}, {"x": floats(0, 0.000001)}),
    "fewer": ({"x": FAR, "y": FAR}, {"x": FAR}),
    "another shape": ({"x": FAR}, {"x": floats(1)}),
    "not a number": ({"x": FAR}, {"x": floats(1, np.nan)}),
    "other words": ({"w": WORDS}, {"w": WORDS[::-1]}),
    "sequences": ({"s": [FAR, PAIR]}, {"s": [FAR, NEAR]}),
    "a longer sequence": ({"s": [FAR]}, {"s": [FAR, FAR]}),
    "a shorter sequence": ({"s": [FAR, FAR]}, {"s": [FAR]}),
    "maps": ({"m": [{1: 0.25, 2: 0.75}]}, {"m": [{1: 0.25, 2: 0.5}]}),
    "maps of other keys": ({"m": [{1: 0.25, 2: 0.75}]}, {"m": [{1: 0.25, 3: 0.75}]}),
    "nothing": ({"o": None}, {"o": None}),
    "something": ({"o": None}, {"o": FAR}),
}  # fmt: skip


def test_how_close_outputs_are(recorded: Recorded) -> None:
    told = {}
    for name, (expected, actual) in OUTPUTS.items():
        sets = [expected, expected], [expected, actual]
        lines = [accuracy(*sets, Tolerances(FLOAT16.tolerance), FLOAT16)]
        for text in ("atol=0.3", "y:atol=2"):
            lines.append(accuracy(*sets, parse_tolerances([text]), None))
        told[name] = "\n".join(f"{problem or 'good'} | {close}" for problem, close in lines)
    recorded("closeness", told)
