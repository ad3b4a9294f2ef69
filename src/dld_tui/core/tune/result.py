"""The result of tuning: the fastest candidate, how certain that is, why, and how to use it."""

from __future__ import annotations

import json
import math
import shlex
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from dld_tui.core import fmt
from dld_tui.core.codec import decode, encode
from dld_tui.core.compare.gate import GateRow
from dld_tui.core.dataclass import dataclass
from dld_tui.core.errors import ActivityError, InputError
from dld_tui.core.process.paths import relative_to_cwd
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.statistics import is_valid_time
from dld_tui.core.tables.table import COUNT, MS, Column, Estimate, IntervalUnit, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.tune.changes import Setup, reasons_of
from dld_tui.core.tune.gain import GainRow
from dld_tui.core.tune.race import Race
from dld_tui.core.types import JSON, TextEnum


class CandidateState(TextEnum):
    """What became of a candidate, as tables and JSON say it."""

    UNKNOWN = ""
    IN_RACE = "compared"
    """Until its end."""
    SLOWER = "slower"
    """Stopped early: slower than the original model, as far as it was measured."""
    BEHIND = "behind"
    """Stopped early, faster than the original model: another one was faster still."""
    BEST = "best"
    FASTER = "faster"
    """Confirmed, too, but not the fastest."""
    NOT_CONFIRMED = "unconfirmed"
    """It seemed faster at first, and lost its confirmation or never had one."""
    FAILED = "failed"
    NOT_TRIED = "not tried"
    """There was no time for it."""
    NO_CHANGE = "no change"
    """The conversion changes nothing."""


@dataclass(frozen=True)
class Exclusion:
    """Why a candidate does not count."""

    state: CandidateState
    text: str
    """Safe for a terminal."""


def no_time(until: str) -> Exclusion:
    """Return that there was too little time."""
    return Exclusion(CandidateState.NOT_TRIED, f"the time was up {until}")


_MOST_SPREAD = 2.0
"""The most that the ends of an interval may differ by for its median to be claimed. On a busy
machine few pairs of runs can leave 1.2 to 260 with a median of 12."""


@dataclass(frozen=True)
class Speedup:
    """A confirmed speedup: the one figure of a candidate, in texts, tables and JSON."""

    factor: float
    """The median."""
    low: float
    """The ends of its interval (95 %)."""
    high: float

    @property
    def claim(self) -> str:
        """The figure alone: the median, or where that says nothing, the least that it may be."""
        return self._least if self.is_vague else f"{self.factor:.2f}×"

    @property
    def is_vague(self) -> bool:
        """Whether it is faster, with an interval too wide for its median to say anything."""
        return self.low > 1 and self.high > _MOST_SPREAD * self.low

    @property
    def _least(self) -> str:
        return f"at least {self.low:.2f}×"

    @property
    def title(self) -> str:
        """The figure for a title: ``1.25× (at least 1.20×)``, or only the least."""
        return self._least if self.is_vague else f"{self.claim} ({self._least})"

    @property
    def interval(self) -> str:
        """The interval as ``1.20 to 1.31``."""
        return f"{self.low:.2f} to {self.high:.2f}"

    @property
    def text(self) -> str:
        """The figure with its interval, as ``1.25× (1.20 to 1.31)``.

        Only the interval where that holds both faster and slower.
        """
        if self.low <= 1 <= self.high and self.low < self.high:
            return f"{self.interval}×"
        return f"{self.claim} ({self.interval})"


def speedup_of(row: GateRow) -> Speedup:
    """Return a confirmation as a speedup."""
    percents = (row.change_percent, row.high_percent, row.low_percent)
    return Speedup(*(100 / (100 + percent) for percent in percents))


def times_text(row: GateRow) -> str:
    """Return both times behind a colon; empty where their ratio says nothing of the speedup."""
    if speedup_of(row).is_vague:
        return ""
    return f": {fmt.milliseconds(row.base_ms)} → {fmt.milliseconds(row.new_ms)} ms"


@dataclass(frozen=True)
class Closeness:
    """How close outputs are to those of the original model."""

    text: str = ""
    identical: bool = False


NOTHING = Exclusion(CandidateState.NO_CHANGE, "there is nothing to change")


@dataclass(frozen=True)
class Candidate:
    """A setup that was measured, or why it was not."""

    key: str
    """The ids of its changes, joined by ``+``."""
    title: str
    """Its changes in words."""
    ms: float | None = None
    """Latency of one item: the baseline's times `ratio`; None where that is None."""
    ratio: float | None = None
    """Its latency divided by that of the original model, as confirmed; None without confirmation.
    """
    first_ratio: float | None = None
    """The same by the first comparison, which favours whoever wins it; None if it did not run."""
    rounds: int = 0
    state: CandidateState = CandidateState.UNKNOWN
    problem: str = ""
    """Why it was excluded. Safe for a terminal."""
    accuracy: str = ""
    """How close its outputs are to those of the original model."""
    identical: bool = False
    """Its outputs are those of the original model."""
    interval: tuple[float, float] | None = None
    """The ends of the interval of its speedup; None if it was not to be confirmed."""

    @property
    def speedup(self) -> Speedup | None:
        """Its speedup by its confirmation, faster or not; None if it had none."""
        if self.interval is None or not self.ratio:
            return None
        return Speedup(1 / self.ratio, *self.interval)

    @property
    def claim(self) -> str | None:
        """The speedup that holds: of the original model and of what is faster for sure."""
        speedup = self.speedup
        if speedup is None:
            return "1.00×" if self.ratio == 1 else None
        is_faster = self.state in (CandidateState.BEST, CandidateState.FASTER)
        return speedup.claim if is_faster or speedup.high < 1 else None


def ratios_of(races: Sequence[Race]) -> dict[str, float]:
    """Return the latencies of all set-ups divided by that of the first race's reference.

    Args:
        races: In order; the reference of each but the first ran in an earlier one.
    """
    ratios: dict[str, float] = {}
    for race in races:
        reference = race.names[0]
        to_base = ratios.setdefault(reference, 1.0)
        leader = race.best
        leading = race.ratio(leader, reference) or 1.0
        for name in race.names[1:]:
            # Who is out is as much slower than the leader as in the rounds that both ran: the
            # reference may have been slower in those than it was in the later ones.
            out = name not in race.running
            ratio = race.ratio(name, leader if out else reference)
            if ratio is not None:
                ratios[name] = ratio * (leading if out else 1.0) * to_base
    return ratios


def candidates(
    setups: Mapping[str, Setup],
    races: Sequence[Race],
    problems: Mapping[str, Exclusion],
    closeness: Mapping[str, Closeness],
    best: str,
    confirmations: Mapping[str, GateRow] | None = None,
) -> tuple[Candidate, ...]:
    """Return all candidates, with ratios to the original model also for later races.

    What is claimed of any has one base, the confirmations: races favour those that win them.

    Args:
        setups: By key, the original model first.
        races: In order; the reference of each but the first ran in an earlier one.
        problems: Why setups are excluded, by key.
        closeness: Of outputs, by key.
        best: The key of the winner.
        confirmations: Those that won their races against the original model, by key, in order.
    """
    confirmations = confirmations or {}
    first_ratios, original = ratios_of(races), next(iter(setups), "")
    base_ms = _base_ms(races, best, confirmations)
    found = []
    for key, setup in setups.items():
        own = [race for race in races if race.figures.get(key)]
        row, first, excluded = confirmations.get(key), first_ratios.get(key), problems.get(key)
        ratio = None if row is None else 1 + row.change_percent / 100
        if key == original and first is not None:
            ratio = 1.0
        if excluded is not None:
            state = excluded.state
        elif key == best:
            state = CandidateState.BEST
        elif row is not None:
            state = CandidateState.FASTER if row.is_faster else CandidateState.NOT_CONFIRMED
        elif own:
            is_faster = first is not None and first < 1
            state = CandidateState.BEHIND if is_faster else CandidateState.SLOWER
            if key in own[-1].running:
                state = CandidateState.NOT_CONFIRMED if is_faster else CandidateState.IN_RACE
        else:
            state = CandidateState.UNKNOWN
        speedup, close = None if row is None else speedup_of(row), closeness.get(key, Closeness())
        found.append(
            Candidate(
                key, setup.title,
                ms=None if base_ms is None or ratio is None else base_ms * ratio,
                ratio=ratio, first_ratio=first,
                interval=None if speedup is None else (speedup.low, speedup.high),
                rounds=sum(len(race.figures[key]) for race in own), state=state,
                problem="" if excluded is None else excluded.text,
                accuracy=close.text, identical=close.identical,
            )
        )  # fmt: skip
    return tuple(found)


def _base_ms(
    races: Sequence[Race], best: str, confirmations: Mapping[str, GateRow]
) -> float | None:
    """Return the baseline's latency: of the winner's confirmation, else the last, else a race."""
    if confirmations:
        return (confirmations.get(best) or [*confirmations.values()][-1]).base_ms
    first = races[0].figures[races[0].names[0]] if races else []
    return statistics.median(first) if first else None


@dataclass(frozen=True)
class Code:
    """The settings as code."""

    python: str
    cpp: str
    command: str


_TITLE_CELLS = 30
"""Of the changes in a headline: its figure is never cut."""


@dataclass(frozen=True)
class TuneResult:
    """The result of the activity ``tune``."""

    report: str
    """The file that holds this result."""
    source: str
    """The model that was tuned: untrusted text, like all paths."""
    best: str
    """Key of the fastest candidate; ``as it is`` if none is measurably faster."""
    title: str
    confirmed: GateRow | None
    """The winner of the races against the original model, in new processes; None if nothing won."""
    model: str | None
    """The converted model to run; None if the original file is best."""
    candidates: tuple[Candidate, ...]
    why: tuple[str, ...]
    """Where the gain comes from, by node. Safe for a terminal."""
    code: Code
    reports: tuple[str, ...]
    """Profiles of the original model and of the best candidate."""
    tolerance: str
    inputs: str
    """What the inputs were. Safe for a terminal."""
    seconds: Mapping[str, float]
    """Where the time went: ``measuring``, ``waiting`` for the threads of another session to sleep,
    ``converting``, ``loading``, ``checking``, ``all``."""
    is_whole: bool
    """False if the time was up before all candidates were measured and all races decided."""
    budget: float = 0.0
    """Seconds that the user gave; 0 if unknown."""
    asked: tuple[str, ...] = ()
    """The ids of the changes that the user asked for; empty for all."""
    explained_percent: float | None = None
    """Percentage of the confirmed gain that is attributed to named nodes, while they ran and before
    they could start, and to copying inputs and outputs."""
    nodes: tuple[GainRow, ...] = ()
    """The gain by node, the largest first."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Session options of the best candidate, named as in ``dld profile onnxruntime``."""
    other_busy_threads: float | None = None
    """Hardware threads that other programs kept busy meanwhile; None if unknown."""

    @property
    def is_faster(self) -> bool:
        """Whether a candidate is measurably faster."""
        return self.confirmed is not None and self.confirmed.is_faster

    @property
    def winner(self) -> Candidate | None:
        """The best candidate."""
        return next((one for one in self.candidates if one.key == self.best), None)

    @property
    def speedup(self) -> Speedup | None:
        """The confirmed speedup of the best candidate; None if none is measurably faster."""
        row = self.confirmed
        return None if row is None or not row.is_faster else speedup_of(row)

    @property
    def headline(self) -> str:
        """The outcome in a few words; the title is untrusted text."""
        speedup, title = self.speedup, clip(visible(self.title), _TITLE_CELLS)
        if speedup is None:
            return "No candidate is measurably faster"
        return f"{title[:1].upper()}{title[1:]} is faster: {speedup.title}"

    @property
    def verdict(self) -> str:
        """The outcome in a sentence."""
        tried = sum(1 for one in self.candidates if one.rounds) - 1
        count = f"{fmt.plural(max(0, tried), 'candidate')} measured"
        row, speedup = self.confirmed, self.speedup
        if row is None or speedup is None:
            rejected = f"{self.title} rejected: " if self.asked and row is not None else ""
            return f"{rejected}no candidate is measurably faster; {count}"
        return f"speedup {speedup.text} with {self.title}{times_text(row)}; {count}"


def _ms(one: Candidate) -> float | None:
    """Return the latency where its speedup is claimed as a figure."""
    is_vague = one.speedup is not None and one.speedup.is_vague
    return None if one.claim is None or is_vague else one.ms


def _interval(one: Candidate) -> str | None:
    return None if one.speedup is None else one.speedup.interval


def _first(one: Candidate) -> str | None:
    return None if not one.first_ratio else f"{1 / one.first_ratio:.2f}×"


COLUMNS: tuple[Column[Candidate], ...] = (
    Column("key", "candidate", lambda one: one.title, least=29, keep="middle"),
    Column("ms", "ms", _ms, MS, 9),
    Column(
        "speed", "speedup", lambda one: one.claim, width=7, align="right",
        help="Confirmed by pairs of runs in new processes.",
    ),
    Column(
        "interval", "95 %", _interval,
        width=12, align="right", priority=1, help="Interval of the speedup in the confirmation.",
    ),
    Column("state", "", lambda one: one.state, width=11),
    Column(
        "first", "at first", _first, width=8, align="right", priority=1,
        help="Speedup in the first comparison, which favours those that win it: no claim.",
    ),
    Column("accuracy", "accuracy", lambda one: one.problem or one.accuracy, least=14),
    Column("rounds", "runs", lambda one: one.rounds, COUNT, 6, priority=1),
)  # fmt: skip


_ORDER = (CandidateState.BEST, CandidateState.FASTER)


def tune_table(result: TuneResult) -> Table[Candidate]:
    """Return the candidates in one order.

    Those that are faster for sure come first, then the original model, then those that lost their
    confirmation, then the others by the first comparison, and last those that did not run.
    """

    def place(one: Candidate) -> tuple[int, float, str]:
        if one.problem:
            return len(_ORDER) + 3, one.first_ratio or math.inf, one.key
        if one.state in _ORDER:
            return _ORDER.index(one.state), one.ratio or 1.0, one.key
        if one.ratio is not None:
            return len(_ORDER) + (one.speedup is not None), one.ratio, one.key
        return len(_ORDER) + 2, one.first_ratio or math.inf, one.key

    rows = sorted(result.candidates, key=place)
    return Table(COLUMNS, rows, name="tune", title="Candidates")


SPEEDUPS = IntervalUnit(
    "interval", lambda one: Speedup(*one).text, reference=1.0, mark=lambda value: f"{value:g}×"
)


def _style(one: Candidate) -> str:
    """Return how sure it is that a candidate is faster or slower."""
    speedup = one.speedup
    if speedup is None:
        return "dim"
    return "good" if speedup.low > 1 else "bad" if speedup.high < 1 else ""


def _estimate(one: Candidate) -> Estimate | None:
    """Return a confirmed speedup, or 1 of the original model; others have no place on the axis."""
    speedup = one.speedup
    if speedup is None and one.claim is not None:
        return Estimate(1.0, 1.0, 1.0)
    return None if speedup is None else Estimate(speedup.factor, speedup.low, speedup.high)


def tune_bars(result: TuneResult) -> Table[Candidate]:
    """Return the candidates with their speedups as one figure with its interval, for screens."""
    table = tune_table(result)
    by_key = {column.key: column for column in COLUMNS}
    original = result.candidates[0].key if result.candidates else ""

    def state(one: Candidate) -> str:
        is_original = one.key == original and one.ms is not None
        return f"{fmt.three_digits(one.ms)} ms" if is_original else one.state

    return replace(table, columns=(
        by_key["key"],
        Column("speed", "speedup", _estimate, SPEEDUPS, least=24, style=_style),
        replace(by_key["state"], text=state, width=12, style=_style),
        replace(by_key["first"], style="dim"),
        replace(by_key["accuracy"], priority=1),
    ))  # fmt: skip


_WHY_CELLS = 100
"""Of each of the two lines that say why."""


def _why(result: TuneResult) -> str:
    """Return why the winner is faster, as far as two lines hold it."""
    reasons = ""
    for reason in reasons_of(result.best.split("+")):
        longer = f"{reasons}; {reason}" if reasons else f"{reason[0].upper()}{reason[1:]}"
        if reasons and len(longer) >= _WHY_CELLS:
            break
        reasons = longer
    because = [f"{reasons}."] if reasons else []
    return " ".join([*because, *(clip(line, _WHY_CELLS) for line in result.why[:1])])


def _nearest(result: TuneResult) -> Candidate | None:
    """Return the fastest candidate besides the original model; None if none seemed faster."""
    others = [one for one in result.candidates if one.first_ratio and not one.problem]
    nearest = min(others, key=lambda one: one.first_ratio or 1.0, default=None)
    return None if nearest is None or (nearest.first_ratio or 1.0) >= 1.0 else nearest


def why_parts(result: TuneResult) -> list[tuple[str, str]]:
    """Return (label, text) of why the best candidate is faster, or of the one that is closest."""
    if result.is_faster:
        return [("Why", _why(result))]
    nearest = None if _lost(result) else _nearest(result)
    if nearest is None:
        return []
    return [("Closest", f"{nearest.title}, {_first(nearest)} at first: may be noise")]


def doubt_parts(result: TuneResult) -> list[tuple[str, str]]:
    """Return (label, text) of what speaks against the outcome."""
    parts = []
    for one, speedup in _lost(result):
        text = f"{one.title} was faster at first, not in the confirmation: {speedup.text}"
        parts.append(("Lost", text))
    if busy := busy_text({"other_busy_threads": result.other_busy_threads}):
        may = "on an idle machine the gain may differ, above all that of thread settings"
        parts.append(("Note", f"{busy}: {may}"))
    if not result.is_whole:
        parts.append(("Note", _unfinished(result)))
    return parts


def _lost(result: TuneResult) -> list[tuple[Candidate, Speedup]]:
    """Return those that had a confirmation in vain, with what it said."""
    lost = [one for one in result.candidates if one.state is CandidateState.NOT_CONFIRMED]
    return [(one, one.speedup) for one in lost if one.speedup is not None]


def result_parts(result: TuneResult) -> list[tuple[str, str]]:
    """Return (label, text) paragraphs: the outcome, why, and how to use it. Safe for a terminal."""
    parts = [("", result.verdict), *why_parts(result)]
    if result.is_faster:
        winner = result.winner
        if winner is not None and winner.accuracy:
            outputs = "identical to" if winner.identical else f"{visible(winner.accuracy)} against"
            parts.append(("Results", f"{outputs} the outputs of the original model"))
        if result.model is not None:
            parts.append(("Model", visible(relative_to_cwd(result.model))))
        else:
            parts.append(("Model", "the original file: only session options change"))
        parts.append(("Run it", visible(result.code.command)))
    parts += doubt_parts(result)
    parts.append(("Limit", visible(result.tolerance)))
    parts.append(("Inputs", result.inputs))
    waiting = {"waiting": "waiting for threads to sleep"}
    spent = {name: took for name, took in result.seconds.items() if name != "all"}
    whole = result.seconds.get("all", 0.0)
    spent |= {"other": whole - sum(spent.values()), "all": whole}
    seconds = [
        f"{waiting.get(name, name)} {took:.0f} s" for name, took in spent.items() if took >= 0.5
    ]
    parts.append(("Time", ", ".join(seconds)))
    parts.append(("Result", relative_to_cwd(result.report)))
    return [(label, visible(text)) for label, text in parts]  # a file may hold anything


def _unfinished(result: TuneResult) -> str:
    """Return what the time did not suffice for."""
    took, untried = (
        result.seconds.get("all", 0.0),
        [one for one in result.candidates if one.state is CandidateState.NOT_TRIED],
    )
    time = f"{took:.0f} of {result.budget:.0f} s" if result.budget else f"{took:.0f} s"
    what = (
        f"{fmt.plural(len(untried), 'candidate')} not measured"
        if untried
        else "comparisons not finished"
    )
    return f"stopped after {time}, {what}: a longer --budget may find more"


def result_lines(result: TuneResult) -> list[str]:
    """Return the paragraphs as lines."""
    return [f"{name}: {text}" if name else text for name, text in result_parts(result)]


def tune_document(result: TuneResult) -> JSON:
    """Return what ``dld tune --json`` prints: the result with the best candidate in full."""
    data = encode(result)
    assert isinstance(data, dict)
    row, speedup = result.confirmed, result.speedup
    best = result.winner
    chosen: dict[str, JSON] = {
        "key": result.best,
        "title": result.title if best is None else best.title,
        "settings": dict(result.settings),
        "latency_ms": None if row is None else row.new_ms if result.is_faster else row.base_ms,
        "speedup": 1.0 if speedup is None else speedup.factor,
        "speedup_interval": None if speedup is None else [speedup.low, speedup.high],
        "accuracy": "" if best is None else best.accuracy,
    }
    return {**data, "best": chosen, "trials": data["candidates"]}


def load_result(path: Path) -> TuneResult:
    """Read a result file; files that were moved with it are found beside it.

    Raises:
        InputError: The file cannot be read, or is no result of tuning.
    """
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise InputError("not a result of dld tune: the file is too large", where=str(path))
        result: TuneResult = decode(TuneResult, json.loads(path.read_text(encoding="utf-8")))
        _require_plausible(result)
    except (OSError, ValueError, RecursionError, ActivityError) as error:
        raise InputError(f"not a result of dld tune: {error}", where=str(path)) from error
    source = _found(result.source, path)
    model = None if result.model is None else _found(result.model, path)
    return replace(
        result, candidates=tuple(_on_one_base(one, result) for one in result.candidates),
        report=str(path.absolute()), source=source, model=model,
        code=_moved(result.code, result.model or result.source, model or source),
        reports=tuple(_found(report, path) for report in result.reports),
    )  # fmt: skip


def _on_one_base(one: Candidate, result: TuneResult) -> Candidate:
    """Return a candidate of an older file, where a ratio without interval is of the races."""
    if one.interval is not None or one.first_ratio is not None:
        return one
    if one.key == result.candidates[0].key:
        return replace(one, first_ratio=one.ratio)
    return replace(one, ms=None, ratio=None, first_ratio=one.ratio)


_MOST_BYTES = 64 << 20
"""A result of 500 nodes has 100 kB."""
_MOST_RATIO = 1e9


def _require_plausible(result: TuneResult) -> None:
    """Refuse figures that no measurement has, with which nothing can be computed or shown.

    Raises:
        ValueError: Says which.
    """
    row = result.confirmed
    times = [
        *result.seconds.values(), result.other_busy_threads or 0.0,
        *(one.ms or 0.0 for one in result.candidates),
        *(time for node in result.nodes for time in (node.before_ms, node.after_ms)),
        *(() if row is None else (row.base_ms, row.new_ms)),
    ]  # fmt: skip
    ratios = [
        ratio
        for one in result.candidates
        for ratio in (one.ratio, one.first_ratio, *(one.interval or ()))
        if ratio is not None
    ]
    if row is not None:
        ends = (row.low_percent, row.change_percent, row.high_percent)
        ratios += [1 + percent / 100 for percent in ends]
    if not all(map(is_valid_time, times)):
        raise ValueError("a time is out of range")
    if not all(1 / _MOST_RATIO < ratio < _MOST_RATIO for ratio in ratios):
        raise ValueError("a ratio of times is out of range")


def _found(name: str, result: Path) -> str:
    beside = result.absolute().with_name(Path(name).name)
    return str(beside) if beside.is_file() and not Path(name).is_file() else name


def _moved(code: Code, before: str, after: str) -> Code:
    """Return the code with another path of the model."""
    return Code(
        code.python.replace(_python_text(before), _python_text(after)),
        code.cpp.replace(_cpp_text(before), _cpp_text(after)),
        code.command.replace(shlex.quote(before), shlex.quote(after)),
    )


_LEVELS = {
    "disabled": "ORT_DISABLE_ALL", "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED", "layout": "ORT_ENABLE_LAYOUT", "all": "ORT_ENABLE_ALL",
}  # fmt: skip
_PROVIDERS = (
    "CPU", "CUDA", "Tensorrt", "NvTensorRTRTX", "OpenVINO", "Dml", "ROCM", "MIGraphX", "CoreML",
    "XNNPACK", "QNN", "CANN", "Dnnl", "ACL", "ArmNN", "WebGpu", "VitisAI", "Azure",
)  # fmt: skip
"""As ONNX Runtime spells them, which ``dld`` takes in any case."""
_SUFFIX = "ExecutionProvider"
_WITH_DEVICE_ID = ("CUDA", "Tensorrt", "NvTensorRTRTX", "ROCM", "MIGraphX", "Dml", "CANN")


def _pairs(session: Mapping[str, JSON], name: str) -> list[tuple[str, str]]:
    listed = session.get(name, [])
    texts = [str(one) for one in listed] if isinstance(listed, list) else []
    return [(key, value) for key, _, value in (text.partition("=") for text in texts)]


def _providers(session: Mapping[str, JSON]) -> dict[str, dict[str, str]]:
    """Return the options of each provider by its short name, in order of preference."""
    spelled = {name.lower(): name for name in _PROVIDERS}
    short = [
        name.strip().removesuffix(_SUFFIX) for name in str(session.get("provider", "")).split(",")
    ]
    names = [spelled.get(name.lower(), name) for name in short if name] or ["CPU"]
    device = session.get("device_id")
    options: dict[str, dict[str, str]] = {
        name: {"device_id": str(device)} if device and name in _WITH_DEVICE_ID else {}
        for name in names
    }
    for key, value in _pairs(session, "provider_option"):
        prefix, dot, rest = key.partition(".")  # NAME.KEY, or KEY of the first provider
        owner = spelled.get(prefix.removesuffix(_SUFFIX).lower(), prefix)
        name, option = (owner, rest) if dot and owner in options else (names[0], key)
        options[name][option] = value
    return options


def python_code(model: str, session: Mapping[str, JSON]) -> str:
    """Return a script that creates the session with ONNX Runtime's Python API."""
    lines = ["import onnxruntime as ort", "", "options = ort.SessionOptions()"]
    if threads := session.get("threads"):
        lines.append(f"options.intra_op_num_threads = {threads}")
    if inter := session.get("inter_threads"):
        lines.append(f"options.inter_op_num_threads = {inter}")
        lines.append("options.execution_mode = ort.ExecutionMode.ORT_PARALLEL")
    if level := session.get("optimization_level"):
        name = f"ort.GraphOptimizationLevel.{_LEVELS[str(level)]}"
        lines.append(f"options.graph_optimization_level = {name}")
    for key, value in _pairs(session, "dim"):
        size = int(value)
        lines.append(f"options.add_free_dimension_override_by_name({_python_text(key)}, {size})")
    for key, value in _pairs(session, "session_config"):
        entry = f"{_python_text(key)}, {_python_text(value)}"
        lines.append(f"options.add_session_config_entry({entry})")
    listed = []
    for name, options in _providers(session).items():
        full = _python_text(name + _SUFFIX)
        own = ", ".join(f"{_python_text(k)}: {_python_text(v)}" for k, v in options.items())
        listed.append(f"({full}, {{{own}}})" if own else full)
    lines.append(
        f"session = ort.InferenceSession({_python_text(model)}, options,"
        f" providers=[{', '.join(listed)}])"
    )
    if session.get("io_binding"):
        lines.append("# Keep inputs and outputs on the device: session.io_binding()")
    return "\n".join(lines) + "\n"


def cpp_code(model: str, session: Mapping[str, JSON]) -> str:
    """Return a program that creates the session with ONNX Runtime's C++ API."""
    lines = ["Ort::Env env;", "Ort::SessionOptions options;"]
    if threads := session.get("threads"):
        lines.append(f"options.SetIntraOpNumThreads({threads});")
    if inter := session.get("inter_threads"):
        lines.append(f"options.SetInterOpNumThreads({inter});")
        lines.append("options.SetExecutionMode(ORT_PARALLEL);")
    if level := session.get("optimization_level"):
        lines.append(f"options.SetGraphOptimizationLevel({_LEVELS[str(level)]});")
    for key, value in _pairs(session, "dim"):
        lines.append(
            "Ort::ThrowOnError(Ort::GetApi().AddFreeDimensionOverrideByName("
            f"options, {_cpp_text(key)}, {int(value)}));"
        )
    for key, value in _pairs(session, "session_config"):
        lines.append(f"options.AddConfigEntry({_cpp_text(key)}, {_cpp_text(value)});")
    for name, options in _providers(session).items():
        if name != "CPU":
            lines += _cpp_provider(name, options)
    lines.append(f"Ort::Session session(env, {_cpp_text(model)}, options);")
    if session.get("io_binding"):
        lines.append("// Keep inputs and outputs on the device: Ort::IoBinding binding(session);")
    body = "\n".join(f"  {line}" for line in lines)
    return f"#include <onnxruntime_cxx_api.h>\n\nint main() {{\n{body}\n}}\n"


_CPP_KINDS = {"CUDA": "CUDA", "Tensorrt": "TensorRT"}
"""Providers with functions of their own."""
_CPP_NAMES = {"NvTensorRTRTX": "NvTensorRtRtx", "Dml": "DML", "WebGpu": "WebGPU"}


def _cpp_provider(name: str, options: Mapping[str, str]) -> list[str]:
    kind = _CPP_KINDS.get(name)
    if kind is None:
        entries = ", ".join(f"{{{_cpp_text(k)}, {_cpp_text(v)}}}" for k, v in options.items())
        named = _cpp_text(_CPP_NAMES.get(name, name))
        return [f"options.AppendExecutionProvider({named}, {{{entries}}});"]
    variable = kind.lower()
    lines = [
        f"Ort{kind}ProviderOptionsV2* {variable} = nullptr;",
        f"Ort::ThrowOnError(Ort::GetApi().Create{kind}ProviderOptions(&{variable}));",
    ]
    if options:
        keys, values = (
            ", ".join(map(_cpp_text, texts)) for texts in (options.keys(), options.values())
        )
        lines += [
            f"const char* {variable}_keys[] = {{{keys}}};",
            f"const char* {variable}_values[] = {{{values}}};",
            f"Ort::ThrowOnError(Ort::GetApi().Update{kind}ProviderOptions(",
            f"    {variable}, {variable}_keys, {variable}_values, {len(options)}));",
        ]
    return [
        *lines,
        f"options.AppendExecutionProvider_{kind}_V2(*{variable});",
        f"Ort::GetApi().Release{kind}ProviderOptions({variable});",
    ]


def _python_text(value: str) -> str:
    """Return a string literal; of unsafe characters it has escapes that Python reads."""
    return json.dumps(value, ensure_ascii=False) if visible(value) == value else ascii(value)


def _cpp_text(value: str) -> str:
    """Return a string literal; of unsafe characters it has the bytes of UTF-8 or of the path."""
    parts = []
    for char in value:
        if char in '\\"':
            parts.append(f"\\{char}")
        elif visible(char) == char:
            parts.append(char)
        else:  # octal escapes end after three digits, hexadecimal ones do not
            parts += [f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape")]
    return f'"{"".join(parts)}"'
