from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from onnx import numpy_helper

import dld_tui
from dld_tui.core.model.tensors.tensor import Tensor, tensor_statistics
from dld_tui.widgets.tensors.side import (
    SideState,
    TensorSide,
    chart_lines,
    figure_lines,
    merged,
    read_histogram,
)
from tests.support.tui import HostApp, screen_text

STYLES = Path(dld_tui.__file__).parent / "styles"


def described(array: np.ndarray[Any, Any]) -> SideState:
    tensor = Tensor(numpy_helper.from_array(array, "t"), None)
    found = tensor_statistics(tensor)
    assert found is not None
    return SideState("done", 1.0, found, read_histogram(tensor, found))


@pytest.mark.parametrize(
    ("values", "counts"),
    [
        ([-2, -2, 0, 1], (2, 0, 1, 1)),
        ([9_000, 9_000, 9_003], (2, 0, 0, 1)),
        ([-9_000, 9_000], None),
    ],
)
def test_integers_that_are_near_have_a_bin_each(
    values: list[int], counts: tuple[int, ...] | None
) -> None:
    found = described(np.array(values, np.int16)).histogram
    spread = described(np.array(values, np.float32)).histogram
    assert found is not None
    assert spread is not None
    assert found.counts == counts or (counts is None and len(found.counts) == len(spread.counts))


def test_every_finite_value_is_in_the_chart() -> None:
    values = np.linspace(-1, 1, 5001, dtype=np.float32)
    values[:2] = np.nan, np.inf
    state = described(values)
    assert state.histogram is not None
    assert sum(state.histogram.counts) == 4999
    lines = ["".join(text for text, _ in line) for line in chart_lines(state.histogram, 40, 5)]
    assert len(lines) == 7
    assert all(len(line) <= 40 for line in lines)
    assert lines[-1].startswith("-0.99")
    assert lines[-1].endswith("1")


def test_bins_are_brought_together_evenly() -> None:
    assert merged(range(10), 5) == [1, 5, 9, 13, 17]
    assert merged(range(10), 4) == [3, 12, 21, 9]
    assert merged(range(10), 99) == list(range(10))
    assert merged(range(10), 0) == []


def test_nan_and_infinities_stand_out() -> None:
    state = described(np.array([1, np.nan, np.inf, 0], np.float32))
    assert state.statistics is not None
    lines = {line[0][0].strip(): line[1] for line in figure_lines(state.statistics)}
    assert lines["NaN"] == ("1", "warn")
    assert lines["Inf"] == ("1", "warn")
    assert lines["zeros"][0] == "1 (25.0 %)"


class SideApp(HostApp):
    CSS_PATH: ClassVar[Any] = [STYLES / "base.tcss", STYLES / "tensor.tcss"]


async def test_what_is_going_on_is_said() -> None:
    side = TensorSide()
    side.styles.height = 20
    app = SideApp(side)
    async with app.run_test(size=(40, 20)) as pilot:
        for state, text in (
            (SideState("reading", 0.5), "50 %"),
            (SideState("ask", size=500_000_000), "reads 500 MB"),
            (SideState("failed", problem="[x] gone"), "[x] gone"),
            (SideState("done"), "No statistics"),
            (described(np.arange(50, dtype=np.float32)), "a bar"),
            (described(np.ones(5, np.float32)), "count"),
        ):
            side.show(state)
            await pilot.pause()
            assert text in screen_text(app)
        assert "a bar" not in screen_text(app)
