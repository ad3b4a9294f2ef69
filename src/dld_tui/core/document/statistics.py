"""Statistics of a tensor's values, computed in parts so that any size fits in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dld_tui.core.document.tensor import Tensor
from dld_tui.core.errors import CancelledError
from dld_tui.core.types import CancelCheck, ProgressCallback

PART_ELEMENTS = 1 << 20


@dataclass(frozen=True)
class TensorStatistics:
    """What the values of a tensor look like. Figures leave NaN and infinite values out."""

    count: int
    """All elements."""
    minimum: float | None
    """None when no value is finite."""
    maximum: float | None
    mean: float | None
    std: float | None
    """Population standard deviation."""
    zeros: int
    nans: int
    infinities: int


@dataclass
class _Moments:
    """Running count, mean and squared deviation (Chan, Golub, LeVeque 1979, merge formula)."""

    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def merge(self, values: np.ndarray[Any, Any]) -> None:
        added = len(values)
        if not added:
            return
        with np.errstate(over="ignore"):  # of numbers near the end of float64's range
            mean = float(values.mean())
            squares = float(((values - mean) ** 2).sum())
        total = self.count + added
        delta = mean - self.mean
        self.squares += squares + delta * delta * self.count * added / total
        self.mean += delta * added / total
        self.count = total


def tensor_statistics(
    tensor: Tensor,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> TensorStatistics | None:
    """Read a tensor once and describe its values; None for strings and complex numbers.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` said so.
    """
    if tensor.dtype in ("string", "complex64", "complex128"):
        return None
    moments = _Moments()
    low, high = math.inf, -math.inf
    zeros = nans = infinities = 0
    total = tensor.element_count
    for start in range(0, total, PART_ELEMENTS):
        if cancelled is not None and cancelled():
            raise CancelledError
        values = tensor.read(start, PART_ELEMENTS).astype(np.float64)
        finite = values[np.isfinite(values)]
        nans += int(np.isnan(values).sum())
        infinities += int(np.isinf(values).sum())
        zeros += int((values == 0).sum())
        moments.merge(finite)
        if len(finite):
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
        if progress is not None:
            progress(min(start + PART_ELEMENTS, total), total)
    known = moments.count > 0
    return TensorStatistics(
        count=total,
        minimum=low if known else None,
        maximum=high if known else None,
        mean=moments.mean if known else None,
        std=math.sqrt(moments.squares / moments.count) if known else None,
        zeros=zeros,
        nans=nans,
        infinities=infinities,
    )
