"""What ``trtexec --exportProfile`` writes: one time a layer, over all iterations.

The first row is ``{"count": iterations}``. A layer has ``timeMs`` (the sum), ``averageMs``,
``percentage`` and, from TensorRT 8.2 on, ``medianMs``. Names repeat, so each row is a layer.
"""

from __future__ import annotations

import math
import os
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.report.json_stream import ArrayReader
from dld_tui.core.report.reader import Report
from dld_tui.core.report.records import Layer
from dld_tui.core.report.rows import LAYERS_ONLY
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.temporary import temporary_report
from dld_tui.core.report.trt_names import layer_type
from dld_tui.core.types import JSON, CancelCheck, ProgressCallback

_LONGEST_MS = 1e12
_MOST_LAYERS = 1_000_000


@dataclass(frozen=True)
class _Row:
    name: str
    total_ms: float | None
    average_ms: float
    median_ms: float | None
    percentage: float | None


@dataclass
class _Rows:
    count: int | None = None
    rows: list[_Row] = field(default_factory=list)
    bad: int = 0

    @property
    def by_median(self) -> bool:
        return all(row.median_ms is not None for row in self.rows)

    def time_ms(self, row: _Row) -> float:
        """Return the median when every row has one, so that all rows are of one kind."""
        return row.median_ms if self.by_median and row.median_ms is not None else row.average_ms


def report_from_trtexec_profile(
    path: str | os.PathLike[str],
    progress: ProgressCallback | None = None,
    cancelled: CancelCheck | None = None,
) -> Report:
    """Return a layer profile of trtexec as a report of one pass: the layers one after another.

    Raises:
        InputError: The file cannot be read, or has no layer with a sound time.
        CancelledError: `cancelled` said so.
        SaveError: There is no room in the folder for temporary files.
    """
    target = Path(path)
    reader = ArrayReader(target, progress, cancelled)
    found = _read(reader)
    if not found.rows:
        bad = found.bad + reader.damage.skipped
        reason = f": {fmt.plural(bad, 'row')} without a sound time" if bad else ""
        raise InputError(f"the layer profile has no layer{reason}", where=str(target))

    def fill(writer: ReportWriter) -> None:
        _fill(writer, found, reader)

    def amend(database: sqlite3.Connection) -> None:
        # The extremes of a layer are not in the file, and its mean may be.
        values = [(row.average_ms, index) for index, row in enumerate(found.rows)]
        database.executemany(
            "UPDATE layers SET min_ms = NULL, max_ms = NULL, mean_ms = ? WHERE id = ?", values
        )

    name = target.name.removesuffix(".json").removesuffix(".profile").removesuffix(".engine")
    return temporary_report(target, fill, network=name, backend="TensorRT", amend=amend)


def _read(reader: ArrayReader) -> _Rows:
    found = _Rows()
    for row in reader.objects():
        if "name" not in row:
            count = row.get("count")
            if isinstance(count, int) and not isinstance(count, bool):
                found.count = count
            else:
                found.bad += 1
            continue
        made = _row(row, found.count)
        if made is None or len(found.rows) >= _MOST_LAYERS:
            found.bad += 1
        else:
            found.rows.append(made)
    return found


def _row(row: dict[str, JSON], count: int | None) -> _Row | None:
    name, total = row.get("name"), _time(row.get("timeMs"))
    average = _time(row.get("averageMs"))
    if average is None and "averageMs" not in row and total is not None and (count or 0) > 0:
        average = total / (count or 1)
    # A negative or impossible time makes the whole row doubtful.
    odd = any(key in row and _time(row[key]) is None for key in ("timeMs", "averageMs", "medianMs"))
    if not isinstance(name, str) or average is None or odd:
        return None
    if total is not None and (count or 0) > 0 and _contradict(total / (count or 1), average):
        return None
    return _Row(name, total, average, _time(row.get("medianMs")), _time(row.get("percentage")))


def _contradict(mean: float, average: float) -> bool:
    """Tell whether the mean that the sum gives is not the one that is written."""
    return abs(mean - average) > 0.001 + 0.05 * max(mean, average)


def _time(value: JSON) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value <= _LONGEST_MS and math.isfinite(value) else None


def _fill(writer: ReportWriter, found: _Rows, reader: ArrayReader) -> None:
    start = 0.0
    samples: list[tuple[int, float, float, float, int | str]] = []
    for row in found.rows:
        details: dict[str, JSON] = {
            "total_ms": row.total_ms,
            "average_ms": row.average_ms,
            "median_ms": row.median_ms,
            "trtexec_percentage": row.percentage,
        }
        known = {name: value for name, value in details.items() if value is not None}
        # Without a provider: those of ONNX Runtime are timed where they are launched.
        layer = writer.add_layer(Layer(row.name, layer_type(row.name), details=known))
        length = found.time_ms(row) * 1000
        samples.append((layer, start, length, length, "sum of layers"))
        start += length
    writer.add_pass(0, 0.0, start)
    writer.add_samples(0, samples)
    writer.set_fact("execution_provider", "TensorRT")
    writer.set_fact(LAYERS_ONLY, True)
    if found.count is not None:
        writer.add_environment({"iterations": found.count})
    _remark(writer, found, reader)


def _remark(writer: ReportWriter, found: _Rows, reader: ArrayReader) -> None:
    figure = "median" if found.by_median else "average"
    over = f" over {fmt.plural(found.count, 'iteration')}" if found.count else ""
    writer.note(
        f"trtexec layer profile: times are each layer's {figure}{over}; single passes and the"
        " latency from end to end are not in the file, so the pass is the sum of its layers"
    )
    writer.note("types are told from the layers' names")
    if found.count == 0:
        writer.note("the profile says that it is of 0 iterations", "warning")
    if reader.damage.ends_early:
        writer.note("the profile ends early: it was cut", "warning")
    bad = found.bad + reader.damage.skipped
    if bad:
        writer.note(f"{fmt.plural(bad, 'row')} without a sound time left out", "warning")
