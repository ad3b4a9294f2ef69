from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dld_tui.core.report import schema as v


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (v.text_of, b"bytes"),
        (v.text_of, None),
        (v.number_of, "1.5"),
        (v.number_of, math.inf),
        (v.number_of, None),
        (v.whole_of, 1.5),
        (v.json_of, "{"),
        (v.json_of, "NaN"),
        (v.json_of, "[" * 100_000),
        (v.texts_of, '{"a": 1}'),
        (v.texts_of, "[1]"),
        (v.shapes_of, "[1]"),
        (v.shapes_of, "[[true]]"),
        (v.shapes_of, "[[1.5]]"),
        (v.shapes_of, "{}"),
    ],
)
def test_wrong_types_are_refused(check: Callable[[object, str], object], value: object) -> None:
    with pytest.raises(v.WrongValue, match="the column"):
        check(value, "the column")


def test_right_types() -> None:
    assert v.number_of(2, "x") == 2.0
    assert v.optional_number(None, "x") is None
    assert v.optional_text(None, "x") is None
    assert v.shapes_of('[[1, "N", null], null, []]', "x") == ((1, "N", None), None, ())
    assert v.texts_of('["a"]', "x") == ("a",)
    assert v.one_of("b", ("a", "b"), "a") == "b"
    assert v.one_of("later", ("a", "b"), "a") == "a"
