"""What is shown of a tensor beside its grid: size, place, first values, statistics, histogram."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import field

from dld_tui.core import fmt
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import CancelledError, DldError
from dld_tui.core.model.tensors.inspection import Histogram, tensor_histogram
from dld_tui.core.model.tensors.tensor import Tensor, TensorStatistics, tensor_statistics
from dld_tui.core.statistics import share_percent
from dld_tui.core.text import visible
from dld_tui.core.types import CancelCheck, ProgressCallback
from dld_tui.widgets.charts.bars import ASCII_LEVELS, LEVELS, Line, block, columns, flow
from dld_tui.widgets.lists.styled import Rows
from dld_tui.widgets.parameters.descriptions import ParameterRow
from dld_tui.widgets.parameters.edit_bar import number, value_text
from dld_tui.widgets.shell import glyphs
from dld_tui.widgets.shell.command_dispatch import hint
from dld_tui.widgets.shell.frame import Framed

_FIRST = 24
"""Values that are shown."""


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
        row = _row(
            key, "statistics", f"{hint('{list.activate} reads')} {fmt.size(tensor.nbytes)}", tensor
        )
        row.value_style = "link"
        yield row
    elif preview.state in ("new", "reading"):
        percent = f" {fmt.progress(preview.fraction, 1)}" if preview.fraction else ""
        yield _row(key, "statistics", f"reading …{percent}  {hint('{work.stop} stops')}", tensor)
    elif preview.statistics is not None:
        yield from _statistics_rows(key, preview.statistics, tensor)


def _zeros_share(statistics: TensorStatistics) -> str:
    share = share_percent(statistics.zeros, statistics.count)
    return f" ({fmt.percent(share)} %)" if share else ""


def _statistics_rows(
    key: Hashable, statistics: TensorStatistics, tensor: Tensor
) -> Iterator[ParameterRow]:
    if not statistics.count:
        return
    dot = f" {glyphs.current().dot} "
    limits = f"min {number(statistics.minimum)}{dot}max {number(statistics.maximum)}"
    yield _row(key, "range", limits, tensor)
    centre = f"mean {number(statistics.mean)}{dot}std {number(statistics.std)}"
    yield _row(key, "mean", centre, tensor)
    share = _zeros_share(statistics)
    counts = (
        f"zeros {statistics.zeros:,}{share}{dot}NaN {statistics.nans:,}"
        f"{dot}Inf {statistics.infinities:,}"
    )
    row = _row(key, "counts", counts, tensor)
    if statistics.nans or statistics.infinities:
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


_BINS = 240
"""Bins of a histogram: many, so that charts of different widths can bring them together evenly."""
_MOST_INTEGERS = 1024
"""Integers in so small a range get a bin each."""
_LABEL = 8
_CHART_ROWS = 8
_LEAST_CHART_ROWS = 3


@dataclass
class SideState:
    """How far the reading of the statistics is, and what came of it."""

    state: str = "new"
    """``new``, ``ask`` (large: read on request), ``reading``, ``done`` or ``failed``."""
    fraction: float = 0.0
    statistics: TensorStatistics | None = None
    histogram: Histogram | None = None
    problem: str = ""
    size: int | None = None
    """Bytes that are to be read."""
    is_asked_for: bool = False
    """Whether the user asked to read it; Esc then stops reading instead of leaving."""


class TensorSide(Framed, Rows):
    """The pane."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.state = SideState()

    def on_mount(self) -> None:
        """Draw the frame."""
        self.frame.show("Statistics")

    def show(self, state: SideState) -> None:
        """Show how far it is, or the figures."""
        self.state = state
        self.refresh()

    def content(self, width: int) -> Sequence[Line]:
        state, shown = self.state, glyphs.current()
        if state.state == "failed":
            return [[(f"{shown.error} ", "bad"), (visible(state.problem), "bad")]]
        if state.state == "ask":
            return [
                [(hint("{tensor.statistics}"), "key"), (f" reads {fmt.size(state.size)}", "dim")]
            ]
        if state.state in ("new", "reading"):
            return [
                [(f"reading … {fmt.progress(state.fraction, 1)}", "dim")],
                [(hint("{work.stop} stops"), "faint")],
            ]
        if state.statistics is None:
            return [[("No statistics for this element type", "dim")]]
        figures = figure_lines(state.statistics)
        height = self.size.height
        beside = width >= 70
        rows = height - 3 if beside else height - len(figures) - 4
        is_flat = state.statistics.minimum == state.statistics.maximum
        if state.histogram is None or is_flat or rows < _LEAST_CHART_ROWS:
            return figures
        room = width - 30 if beside else width
        chart = chart_lines(state.histogram, room, min(_CHART_ROWS, rows))
        if beside:
            return flow([block(figures, 27), block(chart, room)], width)
        return [*figures, [], *chart]


def figure_lines(statistics: TensorStatistics) -> list[Line]:
    """Return the figures, one per line."""
    if not statistics.count:
        return [[("No elements", "dim")]]
    share = _zeros_share(statistics)
    rows: list[tuple[str, str, str]] = [
        ("min", number(statistics.minimum), ""),
        ("max", number(statistics.maximum), ""),
        ("mean", number(statistics.mean), ""),
        ("std", number(statistics.std), ""),
        ("zeros", f"{statistics.zeros:,}{share}", "" if statistics.zeros else "faint"),
        ("NaN", f"{statistics.nans:,}", "warn" if statistics.nans else "faint"),
        ("Inf", f"{statistics.infinities:,}", "warn" if statistics.infinities else "faint"),
        ("count", f"{statistics.count:,}", ""),
    ]
    return [[(label.ljust(_LABEL), "dim"), (text, style)] for label, text, style in rows]


def chart_lines(histogram: Histogram, width: int, rows: int) -> list[Line]:
    """Return the histogram, its axis and what its highest bar counts."""
    ramp = ASCII_LEVELS if glyphs.current().name == "ascii" else LEVELS
    counts = merged(histogram.counts, width)
    bars = columns([float(count) or None for count in counts], rows, ramp=ramp)
    low, high = number(histogram.statistics.minimum), number(histogram.statistics.maximum)
    gap = max(1, len(counts) - len(low) - len(high))
    top = max(counts, default=0)
    lines: list[Line] = [[(f"at most {fmt.short_count(top)} a bar", "faint")]]
    lines += [[(bar, "bar")] for bar in bars]
    lines.append([(low + " " * gap + high, "dim")])
    return lines


def merged(counts: Sequence[int], most: int) -> list[int]:
    """Return at most `most` counts, each of the same number of neighbouring bins."""
    if most <= 0:
        return []
    bins_per_bar = -(-len(counts) // most)
    return [sum(counts[at : at + bins_per_bar]) for at in range(0, len(counts), bins_per_bar)]


def read_histogram(
    tensor: Tensor,
    statistics: TensorStatistics,
    *,
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Histogram | None:
    """Count a tensor's values; integers in a small range get a bin each.

    Raises:
        InputError: The values cannot be read.
        CancelledError: `cancelled` returned True.
    """
    low, high = statistics.minimum, statistics.maximum
    is_whole = "float" not in tensor.dtype
    if low is None or high is None or not is_whole or high - low >= _MOST_INTEGERS:
        return tensor_histogram(
            tensor, _BINS, statistics=statistics, progress=progress, cancelled=cancelled
        )
    return tensor_histogram(
        tensor,
        int(high - low) + 1,
        low=low - 0.5,
        high=high + 0.5,
        statistics=statistics,
        progress=progress,
        cancelled=cancelled,
    )
