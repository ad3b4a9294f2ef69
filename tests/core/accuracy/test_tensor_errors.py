"""Figures agree with numpy's on whole arrays, and say what cannot be said."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dld_tui.core.accuracy import tensor_errors
from dld_tui.core.accuracy.tensor_errors import (
    Array,
    Tolerance,
    compare,
    lost_channels,
    parse_tolerances,
)
from dld_tui.core.codec import encode
from dld_tui.core.errors import UsageError


def test_figures_and_what_cannot_be_said() -> None:
    found = compare(np.array([1.0, -2.0, 4.0]), np.array([1.0, -2.5, 4.0]))
    assert found.max_abs == 0.5
    assert found.mean_abs == pytest.approx(0.5 / 3)
    assert found.max_rel == 0.25
    assert found.mean_rel == pytest.approx(0.25 / 3)
    assert found.cosine == pytest.approx(22 / math.sqrt(21 * 23.25))
    assert found.snr_db == pytest.approx(10 * math.log10(21 / 0.25))
    assert found.largest == 4.0
    assert (found.count, found.shape) == (3, (3,))
    found = compare(np.array([1.0, np.nan, np.inf]), np.array([1.0, np.nan, np.inf]))
    assert found.is_equal
    assert (found.max_abs, found.snr_db, found.special) == (0.0, None, 0)
    assert (found.nan_reference, found.inf_other) == (1, 1)
    found = compare(
        np.array([1.0, np.nan, np.inf, np.inf, 2.0]), np.array([1.0, 0.0, -np.inf, 3.0, np.nan])
    )
    assert found.special == 4
    assert (found.nan_reference, found.nan_other) == (1, 1)
    assert (found.inf_reference, found.inf_other) == (2, 1)
    assert found.max_abs == 0.0
    assert not found.is_equal
    nothing = compare(np.zeros((0, 3)), np.zeros((0, 3)))
    assert (nothing.max_abs, nothing.cosine, nothing.max_rel) == (None, None, None)
    zeros = compare(np.zeros(3), np.ones(3))
    assert (zeros.max_rel, zeros.cosine, zeros.snr_db, zeros.max_abs) == (None, None, None, 1.0)
    assert "shape is [3], not [2]" in compare(np.zeros(2), np.zeros(3)).mismatch
    words = np.array(["a", "b"], object)
    assert compare(words, np.array(["a", "c"], object)).mismatch == "1 of 2 strings differ"
    assert compare(words, words).is_equal
    assert "strings" in compare(words, np.zeros(2)).mismatch
    found = compare(np.array([1e308, -1e308]), np.array([-1e308, 1e308]))
    json.dumps(encode(found), allow_nan=False)


arrays = hnp.arrays(
    np.float32, st.integers(1, 40), elements=st.floats(-1e3, 1e3, width=32)
)  # fmt: skip


@given(arrays, st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_parts_add_up_to_the_whole(values: Array, seed: int, part: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 0.1, values.size)
    other: Array = values.astype(np.float64)
    other += noise
    tolerance = Tolerance(0.05, 1e-3)
    whole = compare(values, other, tolerance)
    kept, tensor_errors._PART = tensor_errors._PART, part
    try:
        parts = compare(values, other, tolerance)
    finally:
        tensor_errors._PART = kept
    for name in ("max_abs", "mean_abs", "max_rel", "mean_rel", "cosine", "snr_db"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-9)
    wide = values.astype(np.float64), other.astype(np.float64)
    close = np.isclose(wide[1], wide[0], rtol=1e-3, atol=0.05)
    assert parts.outside == whole.outside == int(np.count_nonzero(~close))


def problem(tolerance: Tolerance, reference: list[float], other: list[float]) -> str | None:
    return tolerance.problem(compare(np.array(reference), np.array(other), tolerance))


def test_specs_are_for_all_values_or_for_one() -> None:
    found = parse_tolerances(["rtol=0.5", "a:0:atol=1e-3,cosine=0.9"], absolute=2.0)
    assert found.of("other") == Tolerance(2.0, 0.5)
    assert found.of("a:0") == Tolerance(1e-3, 0.5, 0.9)
    assert parse_tolerances([], relative=0.0).every.relative == 0.0


@pytest.mark.parametrize(
    "spec", ["", "atol", "atol=", "atol=x", "atol=-1", "size=3", "NAME:", "atol=nan", "rtol=inf"]
)
def test_specs_that_make_no_sense(spec: str) -> None:
    with pytest.raises(UsageError):
        parse_tolerances([spec])


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
