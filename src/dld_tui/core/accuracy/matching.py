"""Which values of two models belong together: those of one name, then outputs by their place."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def match_names(mine: Sequence[str], theirs: Sequence[str]) -> dict[str, str]:
    """Return the other name by each name that has one.

    Those that are called otherwise are matched by place: the first that is left to the first that
    is left, but only when equally many are left.
    """
    found = {name: name for name in mine if name in set(theirs)}
    left = [name for name in mine if name not in found]
    others = [name for name in theirs if name not in set(found.values())]
    if len(left) == len(others):
        found.update(zip(left, others, strict=True))
    return {name: found[name] for name in mine if name in found}


def carried_over(
    values: Mapping[str, T], mine: Sequence[str], theirs: Collection[str]
) -> tuple[dict[str, T], list[str]]:
    """Return values of one model's inputs by the names of another's, and those without a value."""
    names = {other: name for name, other in match_names(mine, list(theirs)).items()}
    given = {other: values[names[other]] for other in theirs if names.get(other) in values}
    return given, [name for name in theirs if name not in given]


def as_type(value: Any, dtype: Any) -> Any:
    """Return an array in another element type; lists of arrays one by one."""
    if isinstance(value, list):
        return [as_type(item, dtype) for item in value]
    return value if value.dtype == dtype else value.astype(dtype)
