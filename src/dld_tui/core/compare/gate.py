"""Whether a new version is slower than a base, by runs of both that take turns.

The unit is a run: a process of its own, whose passes make one figure. Passes of one run are not
independent, and what differs from run to run (memory layout, clocks, neighbours) is not in them.
Each run of the new version has one of the base beside it, so that what changes slowly on a busy
machine hits both: what is judged is the median of the ratios of such pairs. Its interval is that
of the sign test (Hollander and Wolfe, "Nonparametric Statistical Methods", 1999, section 3.5),
which holds for so few pairs whatever their distribution is: of versions that are alike, at most
2.5 % are called slower. The bootstrap of :mod:`.matching` is too narrow for fifteen. Of nodes, of
which there are many, only those are called changed that :func:`.matching.discoveries` keeps, too.
"""

from __future__ import annotations

import math
import shlex
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from xml.etree import ElementTree

import numpy as np

from dld_tui.core import fmt
from dld_tui.core.compare.matching import discoveries, p_value
from dld_tui.core.errors import ActivityError, UsageError
from dld_tui.core.report.groups import NO_NODE, group_layers
from dld_tui.core.report.records import Layer
from dld_tui.core.tables.table import MS, Column, Table
from dld_tui.core.text import visible

Verdict: TypeAlias = Literal["slower", "faster", "no difference"]
LEVEL_PERCENT = 95.0
_TAIL = (1 - LEVEL_PERCENT / 100) / 2
LEAST_RUNS = 6
"""With fewer even the whole range is no interval of this level."""
RUNS = 15
GATE_SETTINGS: Mapping[str, Any] = {"duration": 1.0, "layer_passes": 10}
"""What a run of a gate has in place of the defaults of a profile."""
_MOST_LISTED = 20


@dataclass(frozen=True)
class RunFigures:
    """What one run measured."""

    ms: float
    """Median of its passes, or what a command took."""
    nodes: Mapping[str, float]
    """Milliseconds by ONNX node; empty where they are not known."""


def figures_of(latencies_ms: Sequence[float], layers: Sequence[Layer]) -> RunFigures:
    """Return the figures of a report."""
    groups = group_layers(layers, "node")
    nodes = {group.key: group.cost_ms for group in groups if group.key != NO_NODE}
    return RunFigures(statistics.median(latencies_ms), nodes)


def time_command(line: str) -> RunFigures:
    """Run a command line and return how long it took.

    Raises:
        ActivityError: It cannot be run, or ends with another status than 0.
    """
    start = time.perf_counter()
    try:
        subprocess.run(
            shlex.split(line), check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace",
        )  # fmt: skip
    except (OSError, ValueError) as error:
        raise ActivityError(f"cannot be run: {error}", where=line) from None
    except subprocess.CalledProcessError as error:
        last = (error.stderr or "").strip().splitlines()[-1:]
        why = ": ".join([f"ended with status {error.returncode}", *last])
        raise ActivityError(why, where=line) from None
    return RunFigures(1000 * (time.perf_counter() - start), {})


def in_turns(
    base: Callable[[], RunFigures],
    new: Callable[[], RunFigures],
    runs: int,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> tuple[list[RunFigures], list[RunFigures]]:
    """Run both by turns; each is first as often as the other, as what is second may be warmer.

    Args:
        base: Makes one run.
        new: The same of the new version.
        runs: Of each.
        progress: Called with how many runs are done, and how many there will be.

    Returns:
        The runs of the base and those of the new version; those at the same place are a pair.
    """
    found: tuple[list[RunFigures], list[RunFigures]] = ([], [])
    for number in range(runs):
        for side in (0, 1) if number % 2 == 0 else (1, 0):
            found[side].append((base, new)[side]())
            progress(sum(map(len, found)), 2 * runs)
    return found


@dataclass(frozen=True)
class GateRow:
    """One comparison."""

    key: str
    """``end to end``, or a node: foreign text."""
    base_ms: float
    """Median of the runs."""
    new_ms: float
    change_percent: float
    """Median of the ratios of pairs, less 1."""
    low_percent: float
    high_percent: float
    """The interval of `change_percent`."""
    verdict: Verdict

    @property
    def text(self) -> str:
        """The change with its interval, as ``+3.1 % (+2.2 to +4.0)``."""
        return f"{self.change_percent:+.1f} % ({self.low_percent:+.1f} to {self.high_percent:+.1f})"


@dataclass(frozen=True)
class GateResult:
    """What a gate says. Fields may be added, never renamed."""

    base: str
    """Foreign text, as `new`."""
    new: str
    runs: int
    """Of each."""
    tolerance_percent: float
    """A new version may be slower by so much."""
    verdict: Verdict
    end_to_end: GateRow
    nodes: tuple[GateRow, ...]
    """Those that changed, the largest difference in milliseconds first."""
    nodes_compared: int
    base_runs_ms: tuple[float, ...]
    new_runs_ms: tuple[float, ...]

    @property
    def is_regression(self) -> bool:
        """Whether the new version is slower than it may be."""
        return self.verdict == "slower"

    @property
    def line(self) -> str:
        """The verdict in a line, fit to be shown."""
        row = self.end_to_end
        may = f", {self.tolerance_percent:g} % allowed" if self.tolerance_percent else ""
        return (
            f"{self.verdict}: {fmt.milliseconds(row.base_ms)} ms → {fmt.milliseconds(row.new_ms)}"
            f" ms, {row.text}; {LEVEL_PERCENT:.0f} % interval over {self.runs} runs of each{may}"
        )


def judge(
    key: str, base: Sequence[float], new: Sequence[float], tolerance_percent: float = 0.0
) -> GateRow:
    """Compare runs that were made in turns.

    Args:
        key: What they are of.
        base: One figure a run, in the order of the runs.
        new: As many.
        tolerance_percent: How much the new one may be slower, and faster without being called so.

    Raises:
        UsageError: There are too few, or not as many of both, or one took no time.
    """
    if len(base) != len(new) or len(base) < LEAST_RUNS:
        raise UsageError(f"a gate needs {LEAST_RUNS} or more runs of each")
    if min(*base, *new) <= 0:
        raise UsageError("a run took no time that can be measured")
    ratios = np.sort(np.log(np.asarray(new) / np.asarray(base)))
    left_out = _beyond(len(ratios))
    bounds = ratios[left_out], ratios[-1 - left_out]
    low, high = (100 * math.expm1(float(bound)) for bound in bounds)
    verdict: Verdict = "no difference"
    if low > tolerance_percent:
        verdict = "slower"
    elif high < -tolerance_percent:
        verdict = "faster"
    change = 100 * math.expm1(float(np.median(ratios)))
    before, after = (float(statistics.median(side)) for side in (base, new))
    return GateRow(key, before, after, change, low, high, verdict)


def _beyond(count: int) -> int:
    """Return how many of so many pairs are outside of the interval at each end."""
    below, left_out = 1, 0  # how many of 2^count outcomes have no more pairs below the median
    while below + math.comb(count, left_out + 1) <= _TAIL * 2**count:
        left_out += 1
        below += math.comb(count, left_out)
    return left_out


def gate_result(
    base: str,
    new: str,
    base_runs: Sequence[RunFigures],
    new_runs: Sequence[RunFigures],
    tolerance_percent: float = 0.0,
) -> GateResult:
    """Return the verdict, end to end and by node.

    Raises:
        UsageError: As :func:`judge`.
    """
    base_ms, new_ms = ([run.ms for run in runs] for runs in (base_runs, new_runs))
    whole = judge("end to end", base_ms, new_ms, tolerance_percent)
    every = [run.nodes.keys() for run in (*base_runs, *new_runs)]
    common = sorted(set.intersection(*map(set, every))) if every else []
    rows, p_values = [], []
    for key in common:
        before, after = ([run.nodes[key] for run in runs] for runs in (base_runs, new_runs))
        if min(*before, *after) > 0:
            rows.append(judge(key, before, after))
            p_values.append(p_value(np.sort(np.asarray(before)), np.sort(np.asarray(after))))
    changed = [
        row
        for row, holds in zip(rows, discoveries(p_values), strict=True)
        if holds and row.verdict != "no difference"
    ]
    changed.sort(key=lambda row: -abs(row.new_ms - row.base_ms))
    return GateResult(
        base, new, len(base_ms), tolerance_percent, whole.verdict, whole, tuple(changed),
        len(rows), tuple(base_ms), tuple(new_ms),
    )  # fmt: skip


COLUMNS: tuple[Column[GateRow], ...] = (
    Column("node", "node", lambda row: row.key, least=20, keep="end"),
    Column("base_ms", "base ms", lambda row: row.base_ms, MS, 10),
    Column("new_ms", "new ms", lambda row: row.new_ms, MS, 10),
    Column("change", "change", lambda row: row.text, width=24),
    Column("verdict", "", lambda row: row.verdict, width=13),
)


def gate_table(result: GateResult) -> Table[GateRow]:
    """Return the nodes that changed as a table."""
    return Table(COLUMNS, result.nodes, name="gate", title="Nodes that changed")


def markdown(result: GateResult) -> str:
    """Return the verdict as Markdown, for the summary of a pipeline."""
    names = f"`{_plain(result.base)}` → `{_plain(result.new)}`"
    lines = [f"### dld gate: {result.verdict}", "", names, "", result.line]
    if result.nodes:
        columns = COLUMNS
        lines += ["", "| " + " | ".join(column.title for column in columns) + " |"]
        lines.append("|" + "---|" * len(columns))
        for row in result.nodes[:_MOST_LISTED]:
            cells = (_plain(column.shown_text(row)) for column in columns)
            lines.append("| " + " | ".join(cells) + " |")
        rest = len(result.nodes) - _MOST_LISTED
        if rest > 0:
            lines += ["", f"and {fmt.plural(rest, 'more node')} that changed"]
    return "\n".join(lines) + "\n"


def _plain(text: str) -> str:
    """Return foreign text so that it is no markup in a cell or in code."""
    shown = visible(text)
    for sign in "\\`|<>*_[]":
        shown = shown.replace(sign, {"`": "'", "|": "¦"}.get(sign, sign))
    return shown.replace("<", "‹").replace(">", "›")


def junit(result: GateResult) -> str:
    """Return the verdict as JUnit XML: one case for the whole, one for each node that changed.

    Only the whole can fail; of a node it says in the output what changed.
    """
    failed = int(result.is_regression)
    cases = 1 + len(result.nodes)
    suite = ElementTree.Element(
        "testsuite", name="dld gate", tests=str(cases), failures=str(failed), errors="0"
    )
    name = f"{visible(result.base)} → {visible(result.new)}"
    whole = ElementTree.SubElement(suite, "testcase", classname="dld.gate", name=name)
    if failed:
        failure = ElementTree.SubElement(whole, "failure", message=result.line, type="slower")
        failure.text = "\n".join(f"{visible(row.key)}: {row.text}" for row in result.nodes)
    ElementTree.SubElement(whole, "system-out").text = result.line
    for row in result.nodes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="dld.gate.node", name=visible(row.key)
        )
        ElementTree.SubElement(case, "system-out").text = f"{row.verdict}: {row.text}"
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
