"""What is shown of a tensor: size and place, first values, statistics. Read on a thread."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.document.literal_printer import format_string
from dld_tui.core.document.statistics import TensorStatistics, tensor_statistics
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets import glyphs
from dld_tui.widgets.parameter_rows import ParameterRow

if TYPE_CHECKING:
    from dld_tui.core.document.tensor import Tensor

_FIRST = 24
"""Values that are shown."""
_MAX_STRING = 60


@dataclass
class TensorPreview:
    """How far the reading of one tensor is, and what came of it."""

    tensor: Tensor
    state: str = "new"
    """``new``, ``ask`` (large: read on Enter), ``reading``, ``done`` or ``failed``."""
    values: list[str] = field(default_factory=list)
    """The first values as text."""
    statistics: TensorStatistics | None = None
    problem: str = ""
    fraction: float = 0.0
    """How much has been read, from 0 to 1."""

    def read(self, cancelled: CancelCheck, progress: ProgressCallback) -> None:
        """Read the tensor. Takes as long as it takes: call it on a thread."""
        self.state = "reading"
        try:
            self.values = first_values(self.tensor)
            self.statistics = tensor_statistics(self.tensor, progress=progress, cancelled=cancelled)
        except CancelledError:
            self.state = "ask"
        except DldError as error:
            self.state, self.problem = "failed", error.message
        else:
            self.state = "done"


def first_values(tensor: Tensor) -> list[str]:
    """Return the first values of a tensor as text.

    Raises:
        InputError: They cannot be read.
    """
    return [value_text(value) for value in tensor.read(0, _FIRST).tolist()]


def value_text(value: Any) -> str:
    """Return one value in a few cells."""
    if isinstance(value, bytes | str):
        more = "…" if len(value) > _MAX_STRING else ""
        return visible(format_string(value[:_MAX_STRING])) + more
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, complex):
        return f"{value:.4g}"
    return number(float(value))


def number(value: float | None) -> str:
    """Return a figure in four digits."""
    return fmt.UNKNOWN if value is None else f"{np.float64(value):.4g}"


def preview_rows(key: Hashable, preview: TensorPreview) -> Iterator[ParameterRow]:
    """Yield the rows below an unfolded tensor."""
    tensor = preview.tensor
    dot = f" {glyphs.current().dot} "
    parts = (
        tensor.dtype,
        fmt.size(tensor.nbytes),
        f"{tensor.element_count:,} values",
        _place(tensor),
    )
    yield _row(key, "tensor", dot.join(parts), tensor)
    if preview.values:
        more = ", …" if tensor.element_count > len(preview.values) else ""
        row = _row(key, "values", ", ".join(preview.values) + more, tensor)
        row.value_style = "number"
        yield row
    yield from _state_rows(key, preview)


def _state_rows(key: Hashable, preview: TensorPreview) -> Iterator[ParameterRow]:
    tensor, shown = preview.tensor, glyphs.current()
    if preview.state == "failed":
        row = _row(key, "values", visible(preview.problem), tensor)
        row.glyph, row.value_style = shown.error, "bad"
        yield row
    elif preview.state == "ask":
        row = _row(key, "statistics", f"Enter reads {fmt.size(tensor.nbytes)}", tensor)
        row.value_style = "link"
        yield row
    elif preview.state in ("new", "reading"):
        percent = f" {preview.fraction:.0%}" if preview.fraction else ""
        yield _row(key, "statistics", f"reading …{percent}  Esc stops", tensor)
    elif preview.statistics is not None:
        yield from _statistics_rows(key, preview.statistics, tensor)


def _statistics_rows(
    key: Hashable, found: TensorStatistics, tensor: Tensor
) -> Iterator[ParameterRow]:
    if not found.count:
        return
    dot = f" {glyphs.current().dot} "
    limits = f"min {number(found.minimum)}{dot}max {number(found.maximum)}"
    yield _row(key, "range", limits, tensor)
    centre = f"mean {number(found.mean)}{dot}std {number(found.std)}"
    yield _row(key, "mean", centre, tensor)
    share = f" ({found.zeros / found.count:.0%})" if found.zeros else ""
    counts = f"zeros {found.zeros:,}{share}{dot}NaN {found.nans:,}{dot}Inf {found.infinities:,}"
    row = _row(key, "counts", counts, tensor)
    if found.nans or found.infinities:
        row.glyph, row.value_style = glyphs.current().warning, "warn"
    yield row


def _place(tensor: Tensor) -> str:
    if tensor.is_external:
        return f"in {visible(tensor.external_entries.get('location', ''))}"
    return "in the model" if tensor.location == "inline" else "no data"


def _row(key: Hashable, label: str, value: str, tensor: Tensor) -> ParameterRow:
    return ParameterRow(
        ("preview", key, label), label, value, indent=1, keep="start", tensor=tensor, copied=value
    )
