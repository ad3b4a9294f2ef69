from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.codec import decode, encode, optional
from dld_tui.core.errors import ActivityError


@dataclass(frozen=True, slots=True)
class Inner:
    """A part of the whole."""

    shape: tuple[int, ...]
    error: float | None = None


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


finite = st.floats(allow_nan=False)
inner = st.builds(Inner, st.lists(st.integers()).map(tuple), st.none() | finite)
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
    ],
)
def test_another_form_is_refused_with_its_place(change: dict[str, Any], where: str) -> None:
    with pytest.raises(ActivityError, match=where):
        decode(Whole, VALUE | change)


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
