"""Which examples of a test every run takes, and which a slower tier alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(
    count: int, values: Iterable[Any], mark: pytest.MarkDecorator = pytest.mark.exhaustive
) -> list[Any]:
    """Return the values of a parameter; those after the first ``count`` get a mark."""
    return [
        value if number < count else pytest.param(value, marks=mark)
        for number, value in enumerate(values)
    ]
