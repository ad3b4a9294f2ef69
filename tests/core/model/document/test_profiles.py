"""Optimization profiles: their JSON, and what is wrong with one for a model."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from dld_tui.core.errors import InputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.metadata import (
    Range,
    declared_inputs,
    new_profile,
    parse_profiles,
    problem_of,
    profiles_json,
    profiles_of,
    validate,
)
from dld_tui.core.model.tensors.value_types import Dims
from dld_tui.core.types import JSON
from tests.support import models

TWO = """
<ir_version: 3, opset_import: ["" : 8]>
two (float[N, 3, H, H] image, int64[4] sizes, float[4] w) => (float[N, 3, H, H] y)
<float[4] w = {1, 2, 3, 4}>
{ y = Relu(image) }
"""
GOOD: JSON = [{"x": {"min": [1, 4], "opt": [2, 4], "max": [8, 4]}}]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({}, "must be a list"),
        ([[]], "profile 1 must be a table"),
        ([{"x": [1]}], "profile 1, x: min, opt and max are needed"),
        ([{"x": {"min": 1, "opt": [], "max": []}}], "x, min: a shape is a list"),
        ([{"x": {"min": ["N"], "opt": [], "max": []}}], "'N' is not a dimension"),
        ([{"x": {"min": [-1], "opt": [], "max": []}}], "-1 is not a dimension"),
        ([{"x": {"min": [True], "opt": [], "max": []}}], "True is not a dimension"),
        ([{"x": {"min": [2**31], "opt": [], "max": []}}], "is not a dimension"),
    ],
)
def test_other_json_is_refused(value: JSON, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        parse_profiles(value)


def test_json_round_trip() -> None:
    assert profiles_json(parse_profiles(GOOD)) == GOOD


@pytest.mark.parametrize(
    ("dims", "sizes", "problem"),
    [
        (("N", 3), ((1, 3), (2, 3), (4, 3)), None),
        (("N", 3), ((4, 3), (2, 3), (4, 3)), "dimension 0: 4 ≤ 2 ≤ 4 does not hold"),
        (("N", 3), ((1, 3), (5, 3), (4, 3)), "dimension 0: 1 ≤ 5 ≤ 4 does not hold"),
        (("N", 3), ((1, 3), (2, 3), (4, 4)), "dimension 1 is fixed to 3"),
        (("N", 3), ((1,), (2,), (4,)), "the input has 2 dimensions, not 1"),
        (("N", 3), ((1, 3), (2,), (4, 3)), "different numbers of dimensions"),
        (("N", "N"), ((1, 1), (1, 2), (2, 2)), "opt: N is both 1 and 2"),
        ((None, None), ((1, 1), (1, 2), (2, 2)), None),
        (None, ((1, 1), (1, 2), (2, 2)), None),
        ((), ((), (), ()), None),
    ],
)
def test_ranges_are_held_against_the_declared_shape(
    dims: Dims | None, sizes: tuple[tuple[int, ...], ...], problem: str | None
) -> None:
    found = problem_of(dims, Range(*sizes))
    assert (problem or "") in (found or "")
    assert (found is None) == (problem is None)


def test_only_inputs_that_are_fed_count(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, TWO))
    assert declared_inputs(document) == {"image": ("N", 3, "H", "H"), "sizes": (4,)}
    profile = new_profile(document)
    assert profile == {"image": Range((1, 3, 1, 1), (1, 3, 1, 1), (1, 3, 1, 1))}
    assert validate(document, [profile]) == []
    assert validate(document, [{}]) == ["profile 1: image has no range"]
    fixed = {**profile, "sizes": Range((4,), (4,), (4,)), "ghost": Range((), (), ())}
    assert validate(document, [profile, fixed]) == ["profile 2, ghost: the model has no such input"]


def test_what_exporters_write_for_a_free_dimension(tmp_path: Path) -> None:
    path = models.write(tmp_path, models.CHAIN)
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    path.write_bytes(model.SerializeToString())
    assert declared_inputs(Document.open(path)) == {"x": (None, 4)}


def test_a_damaged_entry_is_said(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    assert profiles_of(document) == []
    document.apply("set_metadata", key="dld.profiles", value="[")
    with pytest.raises(InputError, match="is not JSON"):
        profiles_of(document)
    document.apply("set_metadata", key="dld.profiles", value="[1]")
    with pytest.raises(InputError, match="must be a table"):
        profiles_of(document)
