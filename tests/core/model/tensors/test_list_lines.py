"""Lists as lines of text."""

from __future__ import annotations

import math

import pytest

from dld_tui.core.errors import UsageError
from dld_tui.core.model.tensors.literals import (
    LiteralValue,
    lines_literal,
    list_lines,
    parse_literal,
)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("ints", [1, -7, 2**63 - 1, -(2**63)]),
        ("ints", []),
        ("floats", [0.5, -0.0, math.inf, 2.0**-30]),
        ("strings", [b"", b"it's", b"a, b", b"  two\n lines", b"\xff\x1b", "'\u00e4".encode()]),
    ],
)
def test_what_is_written_is_read_back(kind: str, value: LiteralValue) -> None:
    text = list_lines(value, kind)
    assert isinstance(value, list)
    assert len(text.splitlines()) == len(value)
    assert parse_literal(lines_literal(text, kind), kind) == value


@pytest.mark.parametrize(
    ("kind", "text", "literal"),
    [
        ("ints", "[1, 2,\n 3]\n\n4 5;6,", "[1, 2, 3, 4, 5, 6]"),
        ("ints", "", "[]"),
        ("floats", "1\t2.5\n-inf", "[1.0, 2.5, -inf]"),
        ("strings", "one\ntwo, more\n''\n'x',\n\n", "['one', 'two, more', '', 'x']"),
        ("strings", "C:\\temp", "['C:\\\\temp']"),
    ],
)  # fmt: skip
def test_what_other_programs_print_is_read(kind: str, text: str, literal: str) -> None:
    assert lines_literal(text, kind) == literal


@pytest.mark.parametrize(
    ("kind", "text"), [("ints", "1\n2.5"), ("floats", "1\nx"), ("strings", "a\n'b")]
)
def test_a_wrong_line_is_named(kind: str, text: str) -> None:
    with pytest.raises(UsageError, match=r"^line 2: "):
        lines_literal(text, kind)
