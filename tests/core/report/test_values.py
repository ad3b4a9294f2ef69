from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from dld_tui.core.report import schema


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (schema.text_of, b"bytes"),
        (schema.text_of, None),
        (schema.number_of, "1.5"),
        (schema.number_of, math.inf),
        (schema.number_of, None),
        (schema.whole_of, 1.5),
        (schema.json_of, "{"),
        (schema.json_of, "NaN"),
        (schema.json_of, "[" * 100_000),
        (schema.texts_of, '{"a": 1}'),
        (schema.texts_of, "[1]"),
        (schema.shapes_of, "[1]"),
        (schema.shapes_of, "[[true]]"),
        (schema.shapes_of, "[[1.5]]"),
        (schema.shapes_of, "{}"),
    ],
)
def test_wrong_types_are_refused(check: Callable[[object, str], object], value: object) -> None:
    with pytest.raises(schema.WrongValue, match="the column"):
        check(value, "the column")


def test_right_types() -> None:
    assert schema.number_of(2, "x") == 2.0
    assert schema.optional_number(None, "x") is None
    assert schema.optional_text(None, "x") is None
    assert schema.shapes_of('[[1, "N", null], null, []]', "x") == ((1, "N", None), None, ())
    assert schema.texts_of('["a"]', "x") == ("a",)
    assert schema.one_of("b", ("a", "b"), "a") == "b"
    assert schema.one_of("later", ("a", "b"), "a") == "a"
