"""Requirements of a model, such as ``p95 <= 35 ms``, and whether measurements meet them.

A latency is judged by several runs, each in a process of its own: between the ranks of
:func:`~dld_tui.core.statistics.median_ranks` lies the figure of the median run. A limit
within them is undecided. Sizes and counts are known exactly, and those of the model's file need no
run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from xml.etree import ElementTree

from dld_tui.core import fmt
from dld_tui.core.compare.gate import Outcome
from dld_tui.core.compare.requirement_files import VERDICT_STYLES, shown_requirement
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import UsageError
from dld_tui.core.statistics import median, median_ranks
from dld_tui.core.tables.rendering import markdown_of, markdown_plain
from dld_tui.core.tables.table import (
    COUNT,
    TEXT,
    Column,
    Estimate,
    IntervalUnit,
    Table,
    figure_text,
)
from dld_tui.core.text import visible
from dld_tui.core.types import TextEnum

LOOKS = (8, 12, 16, 24)
"""Counts of runs after which it is judged; more are made while something is undecided."""
_LEVEL = 1 - 0.05 / len(LOOKS)
"""Confidence of each look, so that all together are wrong in at most 5 % of the cases."""
_TIMES = {"us": 0.001, "µs": 0.001, "ms": 1.0, "s": 1000.0}
_BYTES = {
    "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9, "kib": 2.0**10, "mib": 2.0**20, "gib": 2.0**30,
}  # fmt: skip
_WRITTEN = {
    "b": "B", "kb": "kB", "mb": "MB", "gb": "GB", "kib": "KiB", "mib": "MiB", "gib": "GiB",
    "db": "dB", "m": "M",
}  # fmt: skip
"""Units as people write them, by their lower case."""
_RATES = {"": 1.0, "/s": 1.0, "fps": 1.0, "items/s": 1.0}
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9}


class Source(TextEnum):
    """What has to be measured for a figure."""

    RUNS = "runs"
    MODEL = "model"
    """Its files and its nodes: nothing runs."""
    MEMORY = "memory"
    ACCURACY = "accuracy"


@dataclass(frozen=True)
class Quantity:
    """What can be required."""

    name: str
    source: Source
    units: Mapping[str, float]
    """Factors to the base unit: milliseconds, bytes, items a second, dB, a count."""
    text: Callable[[float], str]


def _milliseconds(value: float) -> str:
    return f"{fmt.milliseconds(value)} ms"


def _per_second(value: float) -> str:
    return f"{figure_text(value)}/s"


QUANTITIES: dict[str, Quantity] = {
    **{
        name: Quantity(name, Source.RUNS, _TIMES, _milliseconds)
        for name in ("median", "mean", "min", "max", "percentile")
    },
    "fps": Quantity("fps", Source.RUNS, _RATES, _per_second),
    "size": Quantity("size", Source.MODEL, _BYTES, lambda value: fmt.size(round(value))),
    **{
        name: Quantity(name, Source.MODEL, _COUNTS, lambda value: fmt.count(round(value)))
        for name in ("parameters", "nodes", "operators", "opset")
    },
    "peak memory": Quantity(
        "peak memory", Source.MEMORY, _BYTES, lambda value: fmt.size(round(value))
    ),
    "snr": Quantity("snr", Source.ACCURACY, {"db": 1.0, "": 1.0}, lambda value: f"{value:.1f} dB"),
    "cosine": Quantity("cosine", Source.ACCURACY, {"": 1.0}, lambda value: f"{value:.6g}"),
}
_SYNONYMS = {"latency": "median", "p50": "median", "throughput": "fps", "memory": "peak memory"}
_RELATION = re.compile("<=|>=|<|>")
_LIMIT = re.compile(r"([0-9.eE+-]+)(.*)")
_HELD: dict[str, Callable[[float, float], bool]] = {
    "<=": float.__le__, ">=": float.__ge__, "<": float.__lt__, ">": float.__gt__,
}  # fmt: skip


@dataclass(frozen=True)
class Requirement:
    """One limit."""

    text: str
    """As it was written. Fit for a terminal."""
    quantity: Quantity
    percent: float | None
    """Of a percentile."""
    relation: str
    limit: float
    """In the base unit of the quantity."""

    @property
    def figure(self) -> str:
        """The name of the figure that it is about, as ``p95``."""
        return self.quantity.name if self.percent is None else f"p{self.percent:g}"


def parse_requirement(text: str) -> Requirement:
    """Return a requirement.

    Raises:
        UsageError: It is not of the form ``QUANTITY <= LIMIT UNIT``.
    """
    relations = _RELATION.findall(text)
    name, _, right = text.partition(relations[0] if relations else "<")
    match = _LIMIT.fullmatch(right.strip())
    name = " ".join(name.lower().split())
    if len(relations) != 1 or match is None or not name:
        raise UsageError(
            f"{visible(text)!r} is not a requirement", hint="Write 'p95 <= 35 ms' or 'fps >= 30'"
        )
    relation, number, unit = relations[0], match[1], match[2].strip()
    name, percent = _SYNONYMS.get(name, name), None
    if ranked := re.fullmatch(r"p(\d{1,2}(?:\.\d+)?)", name):
        name, percent = "percentile", float(ranked[1])
    quantity = QUANTITIES.get(name)
    if quantity is None or (name == "percentile") != (percent is not None):
        known = ", ".join(["p95", *(one for one in QUANTITIES if one != "percentile")])
        raise UsageError(f"{name!r} cannot be required", hint=f"There are {known}")
    factor = quantity.units.get(unit.lower())
    if factor is None:
        units = ", ".join(_WRITTEN.get(one, one) for one in filter(None, quantity.units))
        figure = name if percent is None else f"p{percent:g}"
        raise UsageError(f"{visible(text)!r}: the unit of {figure} is {units or 'left out'}")
    try:
        limit = float(number) * factor
    except ValueError:
        raise UsageError(f"{visible(text)!r}: {number} is not a number") from None
    return Requirement(shown_requirement(text), quantity, percent, relation, limit)


@dataclass(frozen=True)
class Figures:
    """What was measured of one figure: a value a run, or one value that is exact."""

    values: tuple[float, ...] = ()
    problem: str = ""
    """Why there is none. Fit for a terminal."""


@dataclass(frozen=True)
class Judged:
    """A requirement with its verdict."""

    requirement: str
    outcome: Outcome
    figure: str
    value: float | None = None
    """The median of the runs, in the base unit: ms, bytes, items a second, dB, a count."""
    low: float | None = None
    high: float | None = None
    runs: int = 0
    shown: str = ""
    """The value with its interval, for people."""
    problem: str = ""
    limit: float | None = None
    """In the unit of the value."""

    @property
    def of_limit(self) -> Estimate | None:
        """The value with its interval in percent of the limit."""
        if not self.limit or self.value is None or self.low is None or self.high is None:
            return None
        return Estimate(*(100 * value / self.limit for value in (self.value, self.low, self.high)))


def judge(requirement: Requirement, figures: Figures) -> Judged:
    """Return whether a requirement is met: by both ends of the interval, by none, or not known."""
    name, outcome = requirement.figure, Outcome.UNDECIDED
    count = len(figures.values)
    if not count:
        problem = figures.problem or "nothing was measured"
        return Judged(requirement.text, outcome, name, problem=problem)
    ordered, text = sorted(figures.values), requirement.quantity.text
    is_exact = requirement.quantity.source is not Source.RUNS
    low_at, high_at = median_ranks(count, _LEVEL)
    low, high = ordered[low_at], ordered[high_at]
    value = low if is_exact else median(ordered)
    holds = [_HELD[requirement.relation](float(end), requirement.limit) for end in (low, high)]
    if is_exact or count >= LOOKS[0]:
        outcome = Outcome.PASS if all(holds) else Outcome.UNDECIDED if any(holds) else Outcome.FAIL
    shown = text(value) if is_exact else f"{text(value)} ({text(low)} to {text(high)})"
    if math.isinf(value):  # outputs that are the same have no noise, and JSON has no infinity
        return Judged(requirement.text, outcome, name, runs=count, shown="the same outputs")
    return Judged(
        requirement.text, outcome, name, value, low, high, count, shown, limit=requirement.limit
    )


@dataclass(frozen=True)
class RequirementsResult:
    """The verdicts on a model. Fields may be added, never renamed."""

    model: str
    judged: tuple[Judged, ...]

    @property
    def outcome(self) -> Outcome:
        """FAIL where one fails, else UNDECIDED where one is."""
        outcomes = {one.outcome for one in self.judged}
        worst = (Outcome.FAIL, Outcome.UNDECIDED, Outcome.PASS)
        return next(one for one in worst if one in outcomes)

    @property
    def line(self) -> str:
        """The verdict in one line, fit for a terminal."""
        counts = [
            f"{sum(one.outcome is kind for one in self.judged)} {kind.value}"
            for kind in Outcome
            if any(one.outcome is kind for one in self.judged)
        ]
        return f"{self.outcome.value}: {visible(self.model)}, {', '.join(counts)}"


COLUMNS: tuple[Column[Judged], ...] = (
    Column("outcome", "verdict", lambda one: one.outcome.value, TEXT, 9),
    Column("requirement", "required", lambda one: one.requirement, TEXT, 24),
    Column("shown", "measured", lambda one: one.shown or one.problem, TEXT, least=24),
    Column("runs", "runs", lambda one: one.runs or None, COUNT, 5),
)


def requirements_table(result: RequirementsResult) -> Table[Judged]:
    """Return a row a requirement, in the order in which they were given."""
    return Table(COLUMNS, result.judged, name="requirements", title="Requirements")


OF_LIMIT = IntervalUnit(
    "interval", lambda one: f"{one.value:.0f} % ({one.low:.0f} to {one.high:.0f})",
    reference=100.0, mark=lambda value: f"{value:g} %",
)  # fmt: skip


def requirements_bars(result: RequirementsResult) -> Table[Judged]:
    """Return a row a requirement, what was measured as a bar in percent of the limit."""

    def style(one: Judged) -> str:
        return VERDICT_STYLES[one.outcome.value]

    outcome, required, shown, runs = COLUMNS
    columns = (
        replace(outcome, style=style), required,
        Column("of_limit", "of the limit", lambda one: one.of_limit, OF_LIMIT, least=16,
               style=style),
        replace(shown, least=20), replace(runs, priority=1),
    )  # fmt: skip
    title = f"{result.outcome}: the limit is 100 %"
    return Table(columns, result.judged, name="requirements", title=title)


def requirements_markdown(result: RequirementsResult) -> str:
    """Return the verdicts as Markdown, for the summary of a pipeline."""
    heading = f"### dld gate: {result.outcome.value}\n\n{markdown_plain(result.line)}\n\n"
    return heading + markdown_of(Table(COLUMNS, result.judged))


def requirements_junit(result: RequirementsResult) -> str:
    """Return the verdicts as JUnit XML: one case a requirement; an undecided one is an error."""
    counts = {kind: sum(one.outcome is kind for one in result.judged) for kind in Outcome}
    suite = ElementTree.Element(
        "testsuite", name="dld gate", tests=str(len(result.judged)),
        failures=str(counts[Outcome.FAIL]), errors=str(counts[Outcome.UNDECIDED]), skipped="0",
    )  # fmt: skip
    for one in result.judged:
        case = ElementTree.SubElement(
            suite, "testcase", classname=visible(result.model), name=one.requirement
        )
        text = one.shown or visible(one.problem)
        if one.outcome is not Outcome.PASS:
            kind = "failure" if one.outcome is Outcome.FAIL else "error"
            ElementTree.SubElement(case, kind, message=text, type=one.outcome.value)
        ElementTree.SubElement(case, "system-out").text = text
    document: bytes = ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"


def is_decided(judged: Sequence[Judged]) -> bool:
    """Return whether more runs would change nothing."""
    return all(one.outcome is not Outcome.UNDECIDED or one.problem for one in judged)
