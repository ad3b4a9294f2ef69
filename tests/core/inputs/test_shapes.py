from __future__ import annotations

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.inputs.shapes import (
    InputSpec,
    guessed_inputs,
    parse_shapes,
    resolve_shapes,
)

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
        ("x:[1,N]", "not a number"),
        ("x:1,x:2", "gives input 'x' twice"),
        ("\x1b[2J:1", "'\\x1b[2J', which"),
    ],
)
def test_what_is_wrong_with_a_shape_is_said(text: str, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shapes([text], NAMES)
    assert says in str(caught.value)


def test_free_dimensions_are_one_or_what_their_name_was_given_as() -> None:
    specs = [spec("x", "N", 3, None), spec("y", "N", "M"), spec("z"), spec("w", -1, "?")]

    assert resolve_shapes(specs, {}) == {"x": (1, 3, 1), "y": (1, 1), "z": (), "w": (1, 1)}
    assert resolve_shapes(specs, {"x": (8, 3, 5)})["y"] == (8, 1)


def test_nameless_dimensions_are_not_the_same_one() -> None:
    specs = [spec("x", "?", None), spec("y", "?", "")]

    assert resolve_shapes(specs, {"x": (4, 5)}) == {"x": (4, 5), "y": (1, 1)}


def test_an_input_of_unknown_rank_takes_any_shape() -> None:
    unknown = InputSpec("x", "float32", None)

    assert resolve_shapes([unknown], {"x": (2, 3)}) == {"x": (2, 3)}
    assert resolve_shapes([unknown], {}) == {"x": ()}
    assert guessed_inputs([unknown], {}) == [unknown]


@pytest.mark.parametrize("shape", [(1,), (1, 4, 1), (1, 3, 1, 1)])
def test_a_shape_that_does_not_fit_is_refused_by_name(shape: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match=r"does not fit input x float32\[N, 3, \?\]"):
        resolve_shapes([spec("x", "N", 3, None)], {"x": shape})


def test_two_sizes_for_one_dimension_are_refused() -> None:
    specs = [spec("x", "N", 3), spec("y", "N")]

    with pytest.raises(UsageError, match=r"input y: --shape gives dimension 'N' as 2 and as 3"):
        resolve_shapes(specs, {"x": (2, 3), "y": (3,)})


def test_guessed_inputs_are_those_with_a_dimension_that_nothing_tells() -> None:
    specs = [spec("x", "N", 3), spec("y", "N", 2), spec("z", "M"), spec("s", 2), spec("q", "?")]

    names = [found.name for found in guessed_inputs(specs, {"x": (1, 3)})]
    assert names == ["z", "q"]
    assert [found.name for found in guessed_inputs(specs, {})] == ["x", "y", "z", "q"]


def test_an_option_to_fill_in() -> None:
    assert spec("x", "batch", 3, None, -1).option == "x:<batch>x3x<?>x<?>"
    assert InputSpec("x\x1b", "float32", ()).option == "x\\x1b:"


def test_text_for_people() -> None:
    assert spec("a\nb", "N", 3).text == "a\\nb float32[N, 3]"
    assert InputSpec("s", "int64", (None,), "sequence").text == "s sequence(int64[?])"
