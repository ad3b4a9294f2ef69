from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.codec import decode, encode, finite, optional
from dld_tui.core.errors import ActivityError
from dld_tui.core.types import JSON, TextEnum


@dataclass(frozen=True, slots=True)
class Inner:
    """A part of the whole."""

    shape: tuple[int, ...]
    error: float | None = None


class State(TextEnum):
    YES = "yes"
    NO = "no"


@dataclass(frozen=True)
class Whole:
    """Something of every kind."""

    name: str
    path: Path
    parts: Mapping[str, Inner]
    pair: tuple[int, str]
    more: list[Inner | None] = field(default_factory=list)
    flags: frozenset[str] = frozenset()
    is_good: bool = False
    step: int | str = 0
    anything: Any = None
    out: Path | None = optional()
    left: str = optional("")
    colour: Literal["red", "green"] = "red"
    state: State = State.NO
    numbers: Sequence[int] = field(default_factory=list)
    names: set[str] = optional(factory=set)
    mixed: None | float | list[str] = None


numbers = st.floats(allow_nan=False)
inner = st.builds(Inner, st.lists(st.integers()).map(tuple), st.none() | numbers)
whole = st.builds(
    Whole,
    st.text(),
    st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1).map(Path),
    st.dictionaries(st.text(), inner),
    st.tuples(st.integers(), st.text()),
    st.lists(st.none() | inner),
    st.frozensets(st.text()),
    st.booleans(),
    st.integers() | st.text(),
    st.recursive(st.none() | st.booleans() | st.text(), st.lists),
    st.none() | st.just(Path("/a")),
    st.text(),
)


@settings(max_examples=30)
@given(whole)
def test_what_was_encoded_is_decoded_again(value: Whole) -> None:
    assert decode(Whole, json.loads(json.dumps(encode(value)))) == value


VALUE = {"name": "n", "path": "/p", "parts": {"a": {"shape": [1, 2]}}, "pair": [1, "x"]}


def test_defaults_are_taken_and_new_fields_passed_over() -> None:
    found = decode(Whole, {**VALUE, "added_later": 1})
    assert found == Whole("n", Path("/p"), {"a": Inner((1, 2))}, (1, "x"))
    assert not {"out", "left"} & set(encode(found))
    with pytest.raises(TypeError, match="object is not JSON data"):
        encode({"a": [object()]})


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"name": 1}, "at name: text is expected, not int"),
        ({"name": None}, "at name: text is expected, not NoneType"),
        ({"is_good": 1}, "at is_good: true or false is expected, not int"),
        ({"parts": {"a": {"shape": [1, True]}}}, r"at parts\.a\.shape\[1\]: a whole number"),
        ({"parts": {"a": {}}}, r"at parts\.a\.shape: a value is expected"),
        ({"parts": {"a": {"shape": [], "error": "x"}}}, r"at parts\.a\.error: a number"),
        ({"parts": []}, "at parts: an object"),
        ({"pair": [1]}, "at pair: a list of 2"),
        ({"more": [{"shape": 3}]}, r"at more\[0\]\.shape: a list is expected"),
        ({"path": 3}, "at path: a path"),
        ({"pair": [1, 2, 3]}, "at pair: a list of 2 is expected, not list"),
        ({"pair": "ab"}, "at pair: a list of 2 is expected, not str"),
        (
            {"parts": {"a": {"shape": [], "error": 10**400}}},
            "a number is expected, not int",
        ),
        ({"step": 0.5}, "at step: text is expected, not float"),
        ({"colour": "blue"}, "at colour: one of red, green is expected, not str"),
        ({"state": "off"}, "at state: one of yes, no is expected, not str"),
        ({"flags": {}}, "at flags: a list is expected, not dict"),
        ({"numbers": [1, None]}, r"at numbers\[1\]: a whole number is expected, not NoneType"),
    ],
)
def test_another_form_is_refused_with_its_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ActivityError, match=where):
        decode(Whole, VALUE | change)


def test_whole_data_of_every_kind() -> None:
    value = Whole(
        "n", Path("/p"), {"a": Inner((1, 2), 0.5)}, (1, "x"), [None, Inner(())], frozenset("ba"),
        True, "s", {"k": [1]}, Path("/o"), "some", "green", State.YES, [1, 2], {"b", "a"}, ["m"],
    )  # fmt: skip
    data = {
        "name": "n", "path": "/p", "parts": {"a": {"shape": [1, 2], "error": 0.5}},
        "pair": [1, "x"], "more": [None, {"shape": [], "error": None}], "flags": ["a", "b"],
        "is_good": True, "step": "s", "anything": {"k": [1]}, "out": "/o", "left": "some",
        "colour": "green", "state": "yes", "numbers": [1, 2], "names": ["a", "b"], "mixed": ["m"],
    }  # fmt: skip
    assert encode(value) == data
    assert decode(Whole, data) == value
    assert isinstance(decode(Whole, data | {"mixed": 2}).mixed, float)
    left_out: dict[str, Any] = {"out": None, "left": "", "names": set()}
    assert encode(replace(value, **left_out)) == {
        key: item for key, item in data.items() if key not in left_out
    }
    with pytest.raises(ActivityError, match="expected form: an object is expected, not list"):
        decode(Whole, [])
    with pytest.raises(TypeError, match="cannot be decoded as <class 'bytes'>"):
        decode(bytes, b"")


def test_numbers_that_json_cannot_hold_are_null() -> None:
    data: JSON = {"a": [1.5, float("nan"), {"b": float("inf")}], "c": "nan", "d": 1, "e": None}
    assert finite(data) == {"a": [1.5, None, {"b": None}], "c": "nan", "d": 1, "e": None}


@dataclass(frozen=True)
class Move:
    """Something whose JSON data have a word of Python as a name."""

    from_: int
    to: int


def test_a_word_of_python_is_a_name_in_the_data() -> None:
    assert encode(Move(1, 2)) == {"from": 1, "to": 2}
    assert decode(Move, {"from": 1, "to": 2}) == Move(1, 2)
    with pytest.raises(ActivityError, match=r"at from: a value is expected"):
        decode(Move, {"to": 2})
