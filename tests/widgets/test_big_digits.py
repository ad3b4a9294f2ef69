from __future__ import annotations

import pytest

from dld_tui.widgets.shell.progress import big_digits


@pytest.mark.parametrize("text", ["0123456789", "1,234.5", "–"])
def test_lines_are_of_one_width(text: str) -> None:
    lines = big_digits(text)
    assert lines is not None
    assert len({len(line) for line in lines}) == 1


def test_every_digit_looks_different() -> None:
    assert len({big_digits(digit) for digit in "0123456789"}) == 10


@pytest.mark.parametrize("text", ["", "12 ms", "²"])
def test_what_has_no_large_form_is_refused(text: str) -> None:
    assert big_digits(text) is None
