"""A search of build routes: which to try, and what was found.

The search methods are those of trtexec's Global Performance Tuner.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.compare.gate import GateRow
from dld_tui.core.dataclass import dataclass
from dld_tui.core.tables.table import MS, RATIO, Column, Table
from dld_tui.core.tensorrt.build_routes import Knob, Knobs, route_text
from dld_tui.core.text import visible

FAST, FULL, MIXED = "fast", "full", "mixed"
SEARCHES = (FAST, FULL, MIXED)
MOST_HELPFUL = 10
"""Knobs that a mixed search combines, at most, as in trtexec."""


def default_route(tried: Mapping[str, Sequence[str]], knobs: Knobs) -> dict[str, str]:
    """Return what the other routes are compared with: each knob that varies at its default."""
    return {
        name: values[0] if len(values) == 1 else knobs.knobs[name].default
        for name, values in tried.items()
    }


def fast_routes(tried: Mapping[str, Sequence[str]], knobs: Knobs) -> Iterator[dict[str, str]]:
    """Return the default route, then those in which one knob has another value, the last first."""
    default = default_route(tried, knobs)
    yield default
    for name, values in reversed([*tried.items()]):
        for value in values if len(values) > 1 else ():
            if value != default[name]:
                yield {**default, name: value}


def full_routes(tried: Mapping[str, Sequence[str]], knobs: Knobs) -> Iterator[dict[str, str]]:
    """Return the default route, then all combinations of the values."""
    default = default_route(tried, knobs)
    yield default
    for values in itertools.product(*tried.values()):
        route = dict(zip(tried, values, strict=True))
        if route != default:
            yield route


def combined_routes(
    ms: Mapping[str, float], tried: Mapping[str, Sequence[str]], knobs: Knobs
) -> list[dict[str, str]]:
    """Return the routes of a mixed search that follow the fast ones: what helped, combined.

    Args:
        ms: Times of the fast routes that gave right results, by text.
        tried: As the fast routes had it.
        knobs: Of the library.
    """
    default = default_route(tried, knobs)
    base = ms.get(route_text(default), math.inf)
    gains: dict[str, list[tuple[float, str]]] = {}
    for route in fast_routes(tried, knobs):
        changed = [name for name in route if route[name] != default[name]]
        time = ms.get(route_text(route), math.inf)
        if changed and time < base:
            gains.setdefault(changed[0], []).append((time, route[changed[0]]))
    best = sorted(gains, key=lambda name: min(gains[name]))[:MOST_HELPFUL]
    kept = {name: (default[name], *(value for _, value in gains[name])) for name in best}
    routes = (
        {**default, **dict(zip(kept, values, strict=True))}
        for values in itertools.product(*kept.values())
    )
    return [route for route in routes if route_text(route) not in ms] if len(kept) > 1 else []


def route_count(tried: Mapping[str, Sequence[str]], search: str, knobs: Knobs) -> int:
    """Return how many routes a search tries: of a mixed one those of its first part."""
    if search == FULL:
        default = default_route(tried, knobs)
        inside = all(default[name] in values for name, values in tried.items())
        return math.prod(map(len, tried.values())) + (not inside)
    return sum(1 for _ in fast_routes(tried, knobs))


@dataclass(frozen=True)
class RouteTrial:
    """An engine that was built by a route. Texts are foreign."""

    route: str
    ms: float | None
    """Median of a pass on the GPU; None if the engine was not measured."""
    problem: str = ""
    """Why it does not count; empty where it does."""


@dataclass(frozen=True)
class RouteSearch:
    """The result of a search of build routes. Texts are foreign."""

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
    """The fastest one besides the default, by runs in alternation; None if none was faster."""
    engine: Path | None = None
    """Where the engine of the fastest is kept."""
    command: str = ""
    """Which builds it again."""
    knobs: tuple[Knob, ...] = ()
    """All existing ones, if no expression was given."""

    @property
    def best(self) -> RouteTrial | None:
        """The fastest trial whose results are right."""
        return fastest(self.trials)

    @property
    def is_faster(self) -> bool:
        """Whether a route is certainly faster than the default."""
        return self.confirmed is not None and self.confirmed.is_faster


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
        return default.ms / trial.ms if default.ms and trial.ms else None

    columns: tuple[Column[RouteTrial], ...] = (
        Column("route", "route", lambda trial: _changes(trial.route, default.route)),
        Column("ms", "ms", lambda trial: trial.ms, MS),
        Column("speed_up", "speedup", ratio, RATIO),
        Column("problem", "problem", lambda trial: trial.problem),
    )
    rows = sorted(result.trials, key=lambda trial: (bool(trial.problem), trial.ms or math.inf))
    return Table(columns, rows)


def search_lines(result: RouteSearch) -> list[str]:
    """Return the result of a search, one sentence per line. Free of untrusted text."""
    tuner = f"{result.library}, tuner {visible(result.tuner)}"
    if not result.trials:
        return [f"{tuner}: {len(result.knobs)} knobs; give some with --routes to search them"]
    counted = sum(not trial.problem for trial in result.trials)
    built = fmt.plural(len(result.trials), "route")
    lines = [f"{tuner}: {built} built, right results from {counted}"]
    if not result.is_whole:
        lines.append("The time limit ended before all routes were tried")
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
        return [*lines, f"{change} is not certainly faster: {text}"]
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
