from __future__ import annotations

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

NAMES = ["x", "a", "b", "input:0", "gpu_0/data_0", "odd,name", "c"]


def spec(name: str, *dims: int | str | None) -> InputSpec:
    return InputSpec(name, "float32", dims)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("x:1x3x224x224", {"x": (1, 3, 224, 224)}),
        ("x:1X3", {"x": (1, 3)}),
        ("x:7", {"x": (7,)}),
        ("a:1x3,b:1x2", {"a": (1, 3), "b": (1, 2)}),
        ("x:[1,3,224,224]", {"x": (1, 3, 224, 224)}),
        ("a:[1, 3],b:[ 2 ]", {"a": (1, 3), "b": (2,)}),
        ("a:(1, 3),b:[1x3],c:(1 3)", {"a": (1, 3), "b": (1, 3), "c": (1, 3)}),
        ("a:[],b:,c:scalar", {"a": (), "b": (), "c": ()}),
        ("input:0:1x2", {"input:0": (1, 2)}),
        ("'input:0':1x2", {"input:0": (1, 2)}),
        ("gpu_0/data_0:1x2,input:0:[3]", {"gpu_0/data_0": (1, 2), "input:0": (3,)}),
        ("odd,name:1x2", {"odd,name": (1, 2)}),
        ("x:0x3", {"x": (0, 3)}),
        ("", {}),
    ],
)
def test_shapes_are_read_in_all_their_spellings(text: str, shapes: object) -> None:
    assert parse_shapes([text], NAMES) == shapes


def test_several_options_add_up() -> None:
    assert parse_shapes(["a:1", "b:2x3"], NAMES) == {"a": (1,), "b": (2, 3)}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("y:1x3", "'y', which is not an input of the model. Its inputs: x, a, b, input:0"),
        ("x", "'x' is not a shape"),
        ("x:1x-3", "is not a shape"),
        ("x:1xN", "is not a shape"),
        ("x:[1,N]", "'x:[1,N]' is not a shape. Write NAME:1x3"),
        ("x:1,x:2", "gives input 'x' twice"),
        ("\x1b[2J:1", "'\\x1b[2J', which"),
    ],
)
def test_what_is_wrong_with_a_shape_is_said(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shapes([text], NAMES)
    assert says in str(caught.value)


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
