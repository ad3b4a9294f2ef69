"""What a comparison of two runs found: a row for each tensor, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dld_tui.core.accuracy.statistics import TensorError
from dld_tui.core.types import JSON


@dataclass(frozen=True)
class Row:
    """One tensor. All names are foreign text."""

    name: str
    other: str
    """Its name in the other model."""
    node: str
    """The node that makes it, in the main graph; empty for an input."""
    op_type: str
    order: int
    """Its place in the order of the computation."""
    is_output: bool
    tolerance: str
    """What was allowed, for people."""
    problem: str
    """What of that does not hold; empty when all does."""
    error: TensorError

    def to_json(self) -> dict[str, JSON]:
        """Return the row as JSON data."""
        data: dict[str, JSON] = {
            name: getattr(self, name)
            for name in ("name", "other", "node", "op_type", "order", "is_output", "tolerance",
                         "problem")
        }  # fmt: skip
        return {**data, "error": self.error.to_json()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        """Return what :meth:`to_json` gave."""
        return cls(**{**data, "error": TensorError.from_json(data["error"])})

    def worse(self, other: Row) -> Row:
        """Return the worse one of two comparisons of the same tensor."""
        mine, theirs = ((bool(row.problem), _size(row.error)) for row in (self, other))
        return other if theirs > mine else self


def _size(error: TensorError) -> tuple[float, float]:
    return error.noise, error.max_abs or 0.0


@dataclass(frozen=True)
class Result:
    """All rows in the order of the computation."""

    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()
    """Fit for a terminal."""

    @property
    def first(self) -> Row | None:
        """The first tensor, as the model computes, that is not within its tolerance."""
        return next((row for row in self.rows if row.problem), None)

    @property
    def outputs(self) -> list[Row]:
        """The rows of the model's outputs."""
        return [row for row in self.rows if row.is_output]

    @property
    def is_good(self) -> bool:
        """Whether all outputs are within their tolerances."""
        return not any(row.problem for row in self.outputs)

    def worst(self) -> list[Row]:
        """Return the rows, those with the largest errors first."""
        return sorted(self.rows, key=lambda row: (-row.error.noise, row.order))

    @property
    def growth(self) -> dict[str, float]:
        """By node, the largest error relative to the values, in parts of one; at most 1."""
        found: dict[str, float] = {}
        for row in self.rows:
            if row.node:
                noise = min(row.error.noise, 1.0)
                found[row.node] = max(found.get(row.node, 0.0), noise)
        return found

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result of the activity."""
        rows = tuple(Row.from_json(row) for row in data["tensors"])
        return cls(rows, tuple(data["remarks"]))


def merged(rows: Sequence[Row], more: Sequence[Row]) -> list[Row]:
    """Return for each tensor the worse of two rows; `rows` may be empty at first."""
    known = {row.name: row for row in rows}
    return [known[row.name].worse(row) if row.name in known else row for row in more]


def in_order(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return rows in the order of the computation."""
    ordered = sorted(rows, key=lambda row: row.order)
    return tuple(replace(row, order=at) for at, row in enumerate(ordered))
