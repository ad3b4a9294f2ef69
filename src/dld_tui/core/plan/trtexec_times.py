"""What trtexec measured: layers (``--exportProfile``) and inferences (``--exportTimes``, logs)."""

from __future__ import annotations

import copy
import math
import re
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError
from dld_tui.core.plan.json_text import lists_of, number_of, objects_of, parsed, time_of
from dld_tui.core.plan.model import EngineLayer, TimeStatistics, TimingSummary
from dld_tui.core.report.statistics import summarise, trtexec_percentile
from dld_tui.core.report.trtexec_rows import InferenceRows, LayerRow, LayerRows
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_PROFILE_MARK = re.compile(r" \[profile \d+\]")
_NAMED = 3
"""How many names a note gives."""


@dataclass
class LayerProfile:
    """The rows of a profile."""

    passes: int | None = None
    rows: list[LayerRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def sum_ms(self) -> float:
        """The mean times of all rows together."""
        return math.fsum(row.mean_ms or 0.0 for row in self.rows)


@dataclass
class Joined:
    """Layers with their times."""

    layers: tuple[EngineLayer, ...]
    total_ms: float | None
    matched: int
    """How many layers have a row."""
    left: int
    """How many rows fit no layer."""
    notes: list[str]


def profile_of_rows(
    raw_rows: Iterable[Mapping[str, JSON]], notes: Sequence[str] = ()
) -> LayerProfile:
    """Return a profile from its rows, which may be damaged.

    A count in the middle of them begins another run: the last run counts.
    """
    read = LayerRows()
    for raw in raw_rows:
        read.add(raw)
    found = LayerProfile(read.passes, read.rows)
    if read.unsound:
        rows = fmt.plural(read.unsound, "row")
        found.notes.append(f"{rows} of the profile without a sound time: shown as unknown")
    if read.contradictory:
        rows = fmt.plural(read.contradictory, "row")
        found.notes.append(
            f"{rows} of the profile whose mean and total contradict each other: shown as unknown"
        )
    found.notes += read.repeated_note()
    if read.runs > 1:
        found.notes.append(f"the profile is of {read.runs} runs: the last is shown")
    found.notes += notes
    if found.passes == 0:
        found.notes.append("the profile says that it is of 0 passes")
    return found


def join_profile(layers: Sequence[EngineLayer], profile: LayerProfile) -> Joined:
    """Return the layers with the times of a profile.

    Names repeat, so the second layer of a name gets the second row of that name. A mark
    ``[profile N]`` may be on one side only.
    """
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for place, row in enumerate(profile.rows):
        waiting[row.name].append(place)
    rows: dict[int, int] = {}
    for place, layer in enumerate(layers):
        if waiting.get(layer.name):
            rows[place] = waiting[layer.name].popleft()
    _join_unmarked(layers, profile, waiting, rows)
    means = [mean for row in rows.values() if (mean := profile.rows[row].mean_ms) is not None]
    total = math.fsum(means) if means else None
    joined = tuple(
        _timed(layer, profile.rows[rows[place]], total) if place in rows else layer
        for place, layer in enumerate(layers)
    )
    notes = profile.notes + _mismatches(layers, profile, set(rows), set(rows.values()))
    return Joined(joined, total, len(rows), len(profile.rows) - len(rows), notes)


def _join_unmarked(
    layers: Sequence[EngineLayer],
    profile: LayerProfile,
    waiting: dict[str, deque[int]],
    rows: dict[int, int],
) -> None:
    plain: dict[str, deque[int]] = defaultdict(deque)
    for name, places in waiting.items():
        plain[_PROFILE_MARK.sub("", name)].extend(places)
    if not any(plain.values()):
        return
    for place, layer in enumerate(layers):
        name = _PROFILE_MARK.sub("", layer.name)
        marked = name != layer.name
        if place in rows or not plain.get(name):
            continue
        # Two different marks are two different profiles.
        if marked and profile.rows[plain[name][0]].name != name:
            continue
        rows[place] = plain[name].popleft()


def _timed(layer: EngineLayer, row: LayerRow, total: float | None) -> EngineLayer:
    percent = None
    if row.mean_ms is not None and total:
        percent = 100 * row.mean_ms / total
    # dataclasses.replace would set each of the twenty fields anew, which takes ten times as long.
    timed = copy.copy(layer)
    vars(timed).update(time_ms=row.mean_ms, median_ms=row.median_ms, percent=percent)
    return timed


def _mismatches(
    layers: Sequence[EngineLayer],
    profile: LayerProfile,
    placed: set[int],
    used: set[int],
) -> list[str]:
    if not profile.rows:
        return ["the profile has no layer"]
    if layers and not placed:
        return ["the profile names none of the layers: it is of another engine"]
    notes = []
    missing = [
        layer.name
        for place, layer in enumerate(layers)
        if place not in placed and "Constant" not in (layer.type, layer.subtype)
    ]  # a constant is never run
    if missing:
        notes.append(
            f"{fmt.plural(len(missing), 'layer')} without a row in the profile: {_names(missing)}"
        )
    left = [row for place, row in enumerate(profile.rows) if place not in used]
    if left:
        lost = sum(row.mean_ms or 0.0 for row in left)
        notes.append(
            f"{fmt.plural(len(left), 'row')} of the profile, {fmt.milliseconds(lost)} ms,"
            f" fit no layer: {_names([row.name for row in left])}"
        )
    return notes


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(clip(visible(name), 60, keep="middle") for name in names[:_NAMED])
    return shown + (", …" if len(names) > _NAMED else "")


@dataclass(frozen=True)
class RowFile:
    """The objects of a list in a file: rows of a profile, or of a timing file."""

    rows: list[dict[str, JSON]]
    ends_early: bool = False
    """The file was cut, or the writer killed."""
    runs: int = 1
    """How many lists stood one after another, as several runs into one file leave them; the rows
    are those of the last whole one."""

    def notes(self, what: str) -> list[str]:
        """Return what is to be said of it, one sentence each."""
        found = []
        if self.ends_early and self.runs == 1:
            found.append(f"the {what} ends early: it was cut")
        if self.runs > 1:
            last = "the last whole one" if self.ends_early else "the last"
            found.append(f"the {what} is of {self.runs} runs: {last} is shown")
        return found


def rows_of_file(text: str, where: str) -> RowFile:
    """Return the objects of a list, or of the last of several lists.

    Raises:
        CorruptFileError: It is not a list of objects.
    """
    try:
        value = parsed(text, where)
    except CorruptFileError as error:
        if not text.lstrip().startswith("["):
            raise
        lists, ends_early = lists_of(text)
        runs = [rows for rows in map(objects_of, lists) if rows]
        if len(runs) + ends_early > 1 and runs:
            return RowFile(runs[-1], ends_early, len(runs) + ends_early)
        # trtexec writes a row a line, so a killed run leaves whole ones.
        rows = runs[0] if runs else _whole_rows(text, where)
        if not rows:
            raise error
        return RowFile(rows, not runs)
    rows = objects_of(value)
    if not isinstance(value, list) or (value and not rows):
        raise CorruptFileError("is not a list of times", where=where)
    return RowFile(rows)


def _whole_rows(text: str, where: str) -> list[dict[str, JSON]]:
    rows: list[JSON] = []
    for line in text.splitlines():
        piece = line.strip().lstrip("[,").rstrip("],").strip()
        if piece.startswith("{"):
            try:
                rows.append(parsed(piece, where))
            except CorruptFileError:
                continue
    return objects_of(rows)


_NAMES = {
    "latency": "Latency",
    "compute": "GPU Compute Time",
    "h2d": "H2D Latency",
    "d2h": "D2H Latency",
    "enqueue": "Enqueue Time",
}
"""Our names of the times, and those of the performance summary."""
_PERCENTILES: Mapping[int, tuple[float, ...]] = {5: (99,), 6: (95, 99), 7: (90, 95, 99)}
"""Which percentiles follow min, max, mean and median, by the length of the list."""

_SAME = 1e-3


def timing_of_rows(
    rows: Sequence[Mapping[str, JSON]], warm_up: float | None = None
) -> tuple[TimingSummary | None, list[str]]:
    """Return the times of a timing file's rows, None without a sound one, and notes.

    Args:
        rows: One an inference.
        warm_up: Inferences that start to compute before this many milliseconds are left out, as
            in trtexec's own summary; None where nothing tells.
    """
    read = InferenceRows(warm_up)
    taken = [found for row in rows if (found := read.take(row)) is not None] or read.warm
    notes = [*read.warm_up_notes(), *read.doubts()]
    if not taken:
        return None, [*notes, "the timing file has no inference"]
    h2d, compute, d2h = zip(*((took for _, took in found.phases) for found in taken), strict=True)
    copied = [all(copies) for copies in zip(*(found.copies for found in taken), strict=True)]
    series: dict[str, Sequence[float]] = {
        "latency": [found.latency_ms for found in taken],
        "compute": compute,
        "h2d": h2d if copied[0] else (),
        "d2h": d2h if copied[1] else (),
        "enqueue": [found.enqueue_ms for found in taken if found.enqueue_ms is not None],
    }
    starts = [found.start_ms for found in taken if found.start_ms is not None]
    span = max(found.end_ms for found in taken) - min(starts) if starts else 0.0
    whole = span > 0 and len(starts) == len(taken) and not read.bad
    summary = _summary(
        {name: _statistics(values) for name, values in series.items()},
        # Of what was left out nobody knows whether it was one inference or many.
        1000 * len(taken) / span if whole else None,
        "timing file",
    )
    known = {name: tuple(values) for name, values in series.items() if values}
    return replace(summary, series=known), notes


def _summary(
    found: Mapping[str, TimeStatistics | None], throughput: float | None, source: str
) -> TimingSummary:
    return TimingSummary(
        latency=found["latency"], compute=found["compute"], h2d=found["h2d"], d2h=found["d2h"],
        enqueue=found["enqueue"], throughput=throughput, source=source,
    )  # fmt: skip


def _statistics(values: Sequence[float]) -> TimeStatistics | None:
    found = summarise(values)
    if found is None:
        return None
    ordered = sorted(values)
    p90, p95, p99 = (trtexec_percentile(ordered, percent) for percent in (90, 95, 99))
    return TimeStatistics(
        min=found.min, max=found.max, mean=found.mean, median=found.median, p90=p90, p95=p95,
        p99=p99, count=found.count, cov_percent=found.cov_percent,
    )  # fmt: skip


def timing_of_summary(
    summary: JSON, percentiles: tuple[float, ...] = (), source: str = "metadata"
) -> TimingSummary | None:
    """Return the times of a performance summary as TREx keeps it; None when it has none.

    Args:
        summary: Lists of min, max, mean, median and percentiles by name.
        percentiles: Which these are; by the length of the list when empty.
        source: See :class:`TimingSummary`.
    """
    if not isinstance(summary, dict):
        return None
    found = {name: _listed(summary.get(title), percentiles) for name, title in _NAMES.items()}
    if not any(found.values()):
        return None
    return _summary(found, _rate(summary.get("Throughput")), source)


def summary_doubts(summary: JSON, percentiles: tuple[float, ...] = ()) -> list[str]:
    """Return which figures of a performance summary are left out, because they cannot be true."""
    if not isinstance(summary, dict):
        return []
    bad = [
        title
        for title in _NAMES.values()
        if title in summary and _listed(summary[title], percentiles) is None
    ]
    if "Throughput" in summary and _rate(summary["Throughput"]) is None:
        bad.append("Throughput")
    if not bad:
        return []
    return [f"no sound figures in the performance summary: {', '.join(bad)}"]


def _rate(value: JSON) -> float | None:
    found = number_of(value)
    return found if found is not None and found > 0 else None


def agree(found: TimingSummary, told: TimingSummary) -> bool:
    """Tell whether a timing file and a summary are of the same run."""
    here, there = found.compute, told.compute
    if here is None or there is None:
        return False
    return all(
        math.isclose(one, other, rel_tol=_SAME)
        for one, other in ((here.median, there.median), (here.mean, there.mean))
    )


def with_summary(found: TimingSummary, told: TimingSummary) -> TimingSummary:
    """Return a timing file's times with what trtexec's own summary of the same run says better.

    Its throughput is by the wall clock. Its times to enqueue are exact, while the file has but
    their begin and end, in six digits.
    """
    if not agree(found, told):
        return found
    return replace(
        found,
        throughput=told.throughput or found.throughput,
        enqueue=told.enqueue or found.enqueue,
    )


def _listed(value: JSON, percentiles: tuple[float, ...]) -> TimeStatistics | None:
    if not isinstance(value, list) or len(value) < 4:
        return None
    numbers = [time_of(item) for item in value]
    least, greatest, mean, median = numbers[:4]
    if least is None or greatest is None or mean is None or median is None:
        return None
    known = [number for number in numbers if number is not None]
    if not all(least <= number <= greatest for number in known):
        return None
    names = percentiles or _PERCENTILES.get(len(numbers), ())
    named = dict(zip(names, numbers[4:], strict=False))
    at: Callable[[float], float | None] = named.get
    return TimeStatistics(least, greatest, mean, median, p90=at(90), p95=at(95), p99=at(99))
