"""Channels that a figure over a whole tensor hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.accuracy import statistics
from dld_tui.core.accuracy.statistics import Tolerance, compare, lost_channels


def values(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape).astype(np.float32)


@pytest.mark.parametrize("axis", [1, 2])
def test_dead_scores_beside_living_boxes_are_named(axis: int) -> None:
    reference = values(1, 84, 100)
    reference[:, :4] *= 640
    other = reference.copy()
    other[:, 4:] = 0
    if axis == 2:
        reference, other = reference.transpose(0, 2, 1), other.transpose(0, 2, 1)
    text = lost_channels(reference, other)
    of_axis, unit = (
        ("channels of axis 1", "channels") if axis == 1 else ("slices along axis 2", "slices")
    )
    assert text.startswith(f"80 of 84 {of_axis} are constant ({unit} 4 to 83)")
    error = compare(reference, other)
    assert error.cosine is not None
    assert error.cosine > 0.9999, "the whole hides it"


def test_a_lost_channel_is_a_problem_under_any_tolerance() -> None:
    from dataclasses import replace

    error = replace(compare(values(2), values(2)), lost="one channel")
    assert Tolerance(1, 1).problem(error) == "one channel"
    assert Tolerance(snr_db=0).problem(error) == "one channel"


@pytest.mark.parametrize(
    ("reference", "other"),
    [
        (values(1, 8), values(1, 8) * 0),
        (values(1, 3, 2), values(1, 3, 2) * 0),
        (np.zeros((1, 4, 9), np.float32), values(1, 4, 9)),
        (values(1, 4, 9) * 1e-4, values(1, 4, 9) * 0),
        (values(1, 4, 9) * 0.01 + 2, values(1, 4, 9) * 0 + 2),
        (values(1, 4, 9) > 0.5, values(1, 4, 9) > 2),
        (np.full((1, 4, 9), "a"), np.full((1, 4, 9), "b")),
        (values(0, 4, 9), values(0, 4, 9)),
    ],
)
def test_what_says_nothing_about_channels(reference: np.ndarray, other: np.ndarray) -> None:
    assert lost_channels(reference, other) == ""


@given(st.lists(st.booleans(), min_size=2, max_size=12))
def test_as_a_plain_loop_counts_them(dead: list[bool]) -> None:
    reference = values(1, len(dead), 8, 8)
    other = reference.copy()
    for index, is_dead in enumerate(dead):
        if is_dead:
            other[0, index] = 0.25
    count = 0
    for index in range(len(dead)):
        varies = {float(value) for value in other[0, index].ravel()}
        count += len(varies) == 1
    text = lost_channels(reference, other)
    if 0 < count < len(dead):
        assert text.startswith(f"{count} of {len(dead)} channels of axis 1")
    else:
        assert text == ""


@pytest.mark.parametrize(
    ("numbers", "text"),
    [([0], "0"), ([0, 1], "0 to 1"), ([0, 2], "0, 2"), ([0, 4, 5, 6], "0, 4 to 6"),
     ([0, 2, 4], "0, 2, 4"), ([0, 2, 4, 6, 7], "0, 2, 4, …")],
)  # fmt: skip
def test_channels_in_a_row_are_one_range(numbers: list[int], text: str) -> None:
    assert statistics._ranges(numbers) == text
