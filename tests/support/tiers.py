"""Which examples of a test every run takes, and which `make test-all` alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def first(count: int, values: Iterable[Any]) -> list[Any]:
    """Return the values of a parameter; those after the first ``count`` are marked exhaustive."""
    return [
        value if number < count else pytest.param(value, marks=pytest.mark.exhaustive)
        for number, value in enumerate(values)
    ]
