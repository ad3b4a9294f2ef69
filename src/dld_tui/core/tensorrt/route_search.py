"""What a search of build routes found, for people."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.compare.gate import GateRow
from dld_tui.core.tables.table import MS, RATIO, Column, Table
from dld_tui.core.tensorrt.routes import Knob
from dld_tui.core.text import visible


@dataclass(frozen=True)
class RouteTrial:
    """An engine that was built by a route. Texts are foreign."""

    route: str
    ms: float | None
    """Median of a pass on the GPU; None where the engine was not measured."""
    problem: str = ""
    """Why it does not count; empty where it does."""


@dataclass(frozen=True)
class RouteSearch:
    """What a search of build routes found. Texts are foreign."""

    library: str
    tuner: str
    """Version of the tuner: other versions may have other knobs and defaults."""
    search: str
    trials: tuple[RouteTrial, ...]
    """In the order in which they were made, the default route first; empty where knobs are only
    listed."""
    is_whole: bool
    """Whether all routes were tried."""
    confirmed: GateRow | None = None
    """The fastest one beside the default, by runs in turns; None where none was faster."""
    engine: Path | None = None
    """Where the engine of the fastest is kept."""
    command: str = ""
    """Which builds it again."""
    knobs: tuple[Knob, ...] = ()
    """All that there are, where no expression was given."""

    @property
    def best(self) -> RouteTrial | None:
        """The fastest trial whose results are right."""
        return fastest(self.trials)

    @property
    def is_faster(self) -> bool:
        """Whether a route is faster than the default for sure."""
        return self.confirmed is not None and self.confirmed.verdict == "faster"


def fastest(trials: Iterable[RouteTrial]) -> RouteTrial | None:
    """Return the fastest of the trials that count."""
    good = [trial for trial in trials if not trial.problem and trial.ms is not None]
    return min(good, key=lambda trial: trial.ms or 0.0, default=None)


def _changes(route: str, default: str) -> str:
    usual = default.split()
    return " ".join(part for part in route.split() if part not in usual) or "the default"


def trial_table(result: RouteSearch) -> Table[RouteTrial]:
    """Return the trials as a table, the fastest first."""
    default = result.trials[0] if result.trials else RouteTrial("", None)

    def ratio(trial: RouteTrial) -> float | None:
        both = default.ms and trial.ms
        return default.ms / trial.ms if both and default.ms and trial.ms else None

    columns: tuple[Column[RouteTrial], ...] = (
        Column("route", "route", lambda trial: _changes(trial.route, default.route)),
        Column("ms", "ms", lambda trial: trial.ms, MS),
        Column("speed_up", "speed-up", ratio, RATIO),
        Column("problem", "problem", lambda trial: trial.problem),
    )
    rows = sorted(result.trials, key=lambda trial: (bool(trial.problem), trial.ms or math.inf))
    return Table(columns, rows)


def search_lines(result: RouteSearch) -> list[str]:
    """Return what a search found, a sentence a line. Free of foreign text."""
    tuner = f"{result.library}, tuner {visible(result.tuner)}"
    if not result.trials:
        return [f"{tuner}: {len(result.knobs)} knobs; give some with --routes to search them"]
    counted = sum(not trial.problem for trial in result.trials)
    built = fmt.plural(len(result.trials), "route")
    lines = [f"{tuner}: {built} built, right results from {counted}"]
    if not result.is_whole:
        lines.append("The time was up before all routes were tried")
    best, row = result.best, result.confirmed
    if best is None:
        return [*lines, "No engine gives right results"]
    default = result.trials[0]
    change = visible(_changes(best.route, default.route))
    if default.problem:
        lines.append(f"The default route gives none: {visible(default.problem)}")
        return [*lines, f"The fastest that does is {change}; there is nothing to compare it with"]
    if row is None:
        return [*lines, "No route is faster than the default"]
    text = f"{row.base_ms:.4g} to {row.new_ms:.4g} ms, {row.text}"
    if not result.is_faster:
        return [*lines, f"{change} is not faster for sure: {text}"]
    lines.append(f"{change} is faster than the default: {text}")
    if result.engine is not None:
        lines.append(f"Its engine is {visible(str(result.engine))}: keep it, a build of the same"
                     " route need not give the same engine")  # fmt: skip
    return [*lines, f"Build it again: {visible(result.command)}"]


KNOBS: tuple[Column[Knob], ...] = (
    Column("knob", "knob", lambda knob: knob.name),
    Column("values", "values", lambda knob: " ".join(knob.values) or "any"),
    Column("default", "default", lambda knob: knob.default),
    Column("help", "what it does", lambda knob: knob.help),
)


def knob_table(knobs: Iterable[Knob]) -> Table[Knob]:
    """Return knobs as a table."""
    return Table(KNOBS, list(knobs))
