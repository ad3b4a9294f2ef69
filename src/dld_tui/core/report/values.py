"""Checking the values of a report's columns: SQLite lets any column hold any type."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import NoReturn

from dld_tui.core.types import JSON


class WrongValue(Exception):
    """A value of a report is not of the type that its column says."""


def text_of(value: object, what: str) -> str:
    """Return a text value."""
    if isinstance(value, str):
        return value
    raise WrongValue(f"{what} is not text")


def optional_text(value: object, what: str) -> str | None:
    """Return a text value or None."""
    return None if value is None else text_of(value, what)


def number_of(value: object, what: str) -> float:
    """Return a finite number."""
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    raise WrongValue(f"{what} is not a number")


def optional_number(value: object, what: str) -> float | None:
    """Return a finite number or None."""
    return None if value is None else number_of(value, what)


def optional_time(value: object, what: str) -> float | None:
    """Return a finite number, or None: what is negative is no time, and as good as unknown."""
    number = optional_number(value, what)
    return None if number is None or number < 0 else number


def number_or_nan(value: object, what: str) -> float:
    """Return a finite number, or NaN, which SQLite stores as NULL."""
    return math.nan if value is None else number_of(value, what)


def whole_of(value: object, what: str) -> int:
    """Return an integer."""
    if isinstance(value, int):
        return value
    raise WrongValue(f"{what} is not an integer")


def json_of(value: object, what: str) -> JSON:
    """Return the data of a JSON value."""
    try:
        data: JSON = json.loads(text_of(value, what), parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise WrongValue(f"{what} is not JSON") from error
    return data


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def texts_of(value: object, what: str) -> tuple[str, ...]:
    """Return a JSON list of strings."""
    data = json_of(value, what)
    if not isinstance(data, list):
        raise WrongValue(f"{what} is not a list")
    return tuple(text_of(item, what) for item in data)


def shapes_of(value: object, what: str) -> tuple[tuple[int | str | None, ...] | None, ...]:
    """Return a JSON list of shapes."""
    data = json_of(value, what)
    if not isinstance(data, list):
        raise WrongValue(f"{what} is not a list")
    return tuple(None if dims is None else _shape(dims, what) for dims in data)


def _shape(dims: JSON, what: str) -> tuple[int | str | None, ...]:
    if not isinstance(dims, list):
        raise WrongValue(f"{what} is not a list of shapes")
    found: list[int | str | None] = []
    for dim in dims:
        if isinstance(dim, bool) or not (dim is None or isinstance(dim, (int, str))):
            raise WrongValue(f"{what} has a wrong dimension")
        found.append(dim)
    return tuple(found)


def one_of(value: object, choices: Sequence[str], default: str) -> str:
    """Return a text value that is one of `choices`, else `default` (a later version's word)."""
    return value if isinstance(value, str) and value in choices else default
