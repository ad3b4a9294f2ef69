from __future__ import annotations

import json

import pytest

from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.model.inputs.shapes import (
    InputSpec,
    check_dimensions,
    check_given,
    is_extended,
    numpy_dtype,
    parse_shapes,
)
from dld_tui.core.model.tensors.value_types import ValueType
from tests.support.recorded import Answered

NAMES = ["x", "a", "b", "input:0", "gpu_0/data_0", "odd,name", "c"]


def spec(name: str, *dims: int | str | None) -> InputSpec:
    return InputSpec(name, "float32", dims)


def test_shapes_are_read_and_refused_as_the_record_says(answered: Answered) -> None:
    answered("shapes", _told)


def _told(question: str) -> str:
    try:
        return str(parse_shapes(json.loads(question), NAMES))
    except UsageError as error:
        return f"! {error.message}. {error.hint}"


@pytest.mark.parametrize("shape", [(1,), (1, 4, 1), (1, 3, 1, 1)])
def test_a_shape_that_does_not_fit_is_refused_by_name(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"does not fit input x float32\[N, 3, \?\]"):
        check_given([spec("x", "N", 3, None)], {"x": shape})


def test_two_sizes_for_one_dimension_are_refused() -> None:
    specs = [spec("x", "N", 3), spec("y", "N")]

    with pytest.raises(UsageError, match=r"input y: --shape gives dimension 'N' as 2 and as 3"):
        check_given(specs, {"x": (2, 3), "y": (3,)})


def test_an_unknown_input_is_answered_in_a_line_however_many_there_are() -> None:
    """Models before IR version 4 list every weight as an input."""
    with pytest.raises(UsageError) as raised:
        parse_shapes(["data:1x3"], [f"w{at}" for at in range(300)])
    hint = raised.value.hint or ""
    assert hint.startswith("Its inputs: w0, w1, ")
    assert hint.endswith(" and 290 more")
    assert len(hint) < 100


def test_sizes_need_a_free_dimension() -> None:
    types = [ValueType("float32", ("N", 3, None)), None, ValueType("int64", None)]

    check_dimensions({"N": 1}, types)
    with pytest.raises(UsageError, match="'M', which is not a dynamic dimension") as caught:
        check_dimensions({"M": 1}, types)
    assert caught.value.hint == "Dynamic dimensions: N"
    with pytest.raises(UsageError) as caught:
        check_dimensions({"M": 1}, [])
    assert caught.value.hint == "Dynamic dimensions: none"


@pytest.mark.parametrize(
    ("dtype", "size"), [("float32", 4), ("bool", 1), ("bfloat16", 2), ("float8e5m2fnuz", 1)]
)
def test_sizes(dtype: str, size: int) -> None:
    assert numpy_dtype(dtype).itemsize == size


def test_which_types_numpy_lacks() -> None:
    assert is_extended("bfloat16")
    assert not is_extended("float16")
    with pytest.raises(ActivityError, match="int4"):
        numpy_dtype("int4")
