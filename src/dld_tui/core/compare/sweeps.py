"""Two or more sweeps point by point, with the statistics of compared reports.

A sample is the medians of the turns of a point. The intervals are of what differs within each run:
what differs from process to process is not in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.codec import encode
from dld_tui.core.compare.conditions import differences
from dld_tui.core.compare.export import compare_table, difference_table
from dld_tui.core.compare.matching import METHOD
from dld_tui.core.compare.records import ComparisonRow, Difference, Subject, label
from dld_tui.core.compare.rows import column_cells, side_of
from dld_tui.core.errors import UsageError
from dld_tui.core.process.paths import distinct_names
from dld_tui.core.report.sweep import Sweep
from dld_tui.core.report.sweep_export import place_text
from dld_tui.core.tables.html_page import Section, page, paragraphs
from dld_tui.core.tables.rendering import html_of
from dld_tui.core.tables.table import Table
from dld_tui.core.text import visible
from dld_tui.core.types import JSON

_Place: TypeAlias = "tuple[tuple[str, int | str], ...]"
FIRST_TOKEN = "first token"


class SweepComparison:
    """Sweeps side by side.

    Attributes:
        sweeps: In order.
        base: The index of the one that the others are compared with.
    """

    def __init__(self, sweeps: Sequence[Sweep], base: int = 0) -> None:
        """Compare sweeps.

        Raises:
            UsageError: They have no point in common.
        """
        self.sweeps, self.base = sweeps, base
        self._axes = _common_axes(sweeps)
        if not any(all(place in places for places in self._times) for place in self._times[base]):
            raise UsageError("the sweeps have no point in common")

    @property
    def target(self) -> int:
        """The sweep that a single difference is of: the last one that is not the base."""
        last = len(self.sweeps) - 1
        return last if self.base != last else last - 1

    @cached_property
    def subjects(self) -> list[Subject]:
        """The sweeps as what is compared elsewhere."""
        titles = distinct_names(
            [Path(sweep.report).name for sweep in self.sweeps],
            [sweep.report for sweep in self.sweeps],
        )
        return [
            Subject(
                title, sweep.report, (),
                properties={"network": Path(sweep.model).name, "backend": sweep.backend},
                model={"sha256": sweep.digest} if sweep.digest else {}, settings=sweep.settings,
            )
            for title, sweep in zip(titles, self.sweeps, strict=True)
        ]  # fmt: skip

    @cached_property
    def differences(self) -> list[Difference]:
        """Settings that are not the same in all sweeps."""
        return differences(self.subjects)

    @cached_property
    def _times(self) -> list[dict[tuple[str, _Place], Sequence[float]]]:
        """The medians of the turns by what is timed and where; empty where it was not measured."""
        found = []
        for sweep in self.sweeps:
            times: dict[tuple[str, _Place], Sequence[float]] = {}
            for point in sweep.points:
                named = dict(zip((axis.name for axis in sweep.axes), point.at, strict=True))
                place = tuple((name, named[name]) for name in self._axes)
                if sweep.tokens:
                    times[FIRST_TOKEN, place] = point.first_rounds_ms
                times["token" if sweep.tokens else "", place] = point.rounds_ms
            found.append(times)
        return found

    @cached_property
    def rows(self) -> list[ComparisonRow]:
        """A row a point, of decoders one for the first token and one for others; in order."""
        keys = [*dict.fromkeys(key for times in self._times for key in times)]
        sides = [[side_of(times.get(key, ())) for key in keys] for times in self._times]
        columns = [
            column_cells(side, sides[self.base], at == self.base) for at, side in enumerate(sides)
        ]
        return [
            ComparisonRow(", ".join(filter(None, (what, place_text(place)))) or "all", tuple(cells))
            for (what, place), *cells in zip(keys, *columns, strict=True)
        ]

    def follows(self, row: ComparisonRow, index: int) -> bool | None:
        """Return None: points change by factors of their own."""
        return None

    def is_change(self, row: ComparisonRow, index: int) -> bool:
        """Return whether a point changed for certain."""
        return row.cells[index].noise is False

    @property
    def lines(self) -> list[str]:
        """How many points are faster or slower by more than noise, for each but the base."""
        found = []
        for index in range(len(self.sweeps)):
            if index == self.base:
                continue
            cells = [row.cells[index] for row in self.rows]
            both = [cell for cell in cells if cell.delta_ms is not None]
            certain = [cell.delta_ms or 0.0 for cell in both if cell.noise is False]
            faster, slower = (sum(sign * ms < 0 for ms in certain) for sign in (1, -1))
            alone = sum(
                (row.cells[index].time_ms is None) != (row.cells[self.base].time_ms is None)
                for row in self.rows
            )
            found.append(
                f"{label(index)} against {label(self.base)}: {fmt.plural(len(both), 'time')} in"
                f" both, {faster} faster and {slower} slower by more than the noise within the runs"
                + (f"; {alone} in one only" if alone else "")
            )
        if len({sweep.tokens for sweep in self.sweeps}) > 1:
            counts = " / ".join(str(sweep.tokens) for sweep in self.sweeps)
            found.append(f"Different numbers of tokens after each prompt: {counts}.")
        return found


def _common_axes(sweeps: Sequence[Sweep]) -> list[str]:
    """Return the axes that tell points apart: those of several values in one of the sweeps.

    Raises:
        UsageError: Not all sweeps have one of these.
    """
    values: dict[str, list[Sequence[int | str]]] = {}
    for sweep in sweeps:
        for axis in sweep.axes:
            values.setdefault(axis.name, []).append(axis.values)
    axes = [name for name, lists in values.items() if max(map(len, lists)) > 1]
    for name in axes:
        if len(values[name]) < len(sweeps):
            raise UsageError(f"not all of the sweeps have {visible(name)}, so that points differ")
    return axes


def point_table(
    compared: SweepComparison, rows: Sequence[ComparisonRow], view: str
) -> Table[ComparisonRow]:
    """Return points as :func:`compare_table` does: shares of a change are of parts of a whole."""
    table = compare_table(compared, "point", rows, view)
    parts = ("share_percent", "match", "estimate")
    return table.pick([key for key in table.keys if not key.startswith(parts)])


def sweeps_json(compared: SweepComparison, rows: Sequence[ComparisonRow]) -> JSON:
    """Return the comparison as a JSON document."""
    return {
        "sweeps": [subject.path for subject in compared.subjects],
        "base": compared.base,
        "lines": list(compared.lines),
        "differences": encode(compared.differences),
        "rows": encode([row_json(row) for row in rows]),
        "noise_method": METHOD,
    }


def row_json(row: ComparisonRow) -> Mapping[str, JSON]:
    """Return a point: times, and differences from the base with their intervals."""
    intervals = [cell.interval for cell in row.cells]
    return {
        "key": row.key,
        "time_ms": [cell.time_ms for cell in row.cells],
        "deltas_ms": [cell.delta_ms for cell in row.cells],
        "ratios": [cell.ratio for cell in row.cells],
        "intervals_ms": [None if one is None else [one.low_ms, one.high_ms] for one in intervals],
        "noises": [cell.noise for cell in row.cells],
    }


def sweeps_page(compared: SweepComparison) -> str:
    """Return the comparison as one HTML page. The same sweeps give the same bytes."""
    titles = [subject.title for subject in compared.subjects]
    subtitle = [f"{label(at)}: {subject.path}" for at, subject in enumerate(compared.subjects)]
    differing = compared.differences
    sections = [
        Section("answer", "In short", paragraphs([(line, "info") for line in compared.lines])),
        Section(
            "differs", "What differs between the runs",
            html_of("difference-table", difference_table(compared)) if differing
            else paragraphs([("No differences in settings.", "info")]),
        ),
        Section(
            "points", "Points",
            html_of("point-table", point_table(compared, compared.rows, "html")),
        ),
        Section("method", "Noise", paragraphs([(METHOD, "info")])),
    ]  # fmt: skip
    return page(f"Comparison of {' and '.join(titles)}", subtitle, "", sections)
