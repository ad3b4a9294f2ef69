"""Which rows of trtexec's exports count, and their times: one rule for reports, plans, comparisons.

A file may hold several runs, of which the last whole one counts; rows repeat; times are missing,
negative or contradict each other.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.plan.json_text import text_of, time_of, whole_of
from dld_tui.core.types import JSON

_ROUNDING_MS, _ROUNDING = 0.05, 0.02
"""How far apart times may be that say the same: trtexec writes single precision since its start."""
_ROW_ROUNDING_MS, _ROW_ROUNDING = 0.001, 0.05
"""The same of layers: logs give a mean with four digits behind the point, of microseconds."""
_BEGINS_WITH_RUN_MS = 100.0
"""Times that begin before this count from the start of the run, warm-up and all."""
_DEFAULT_WARM_UP_MS = 200.0
_WARM_UP = re.compile(r"\+ *([\d.]+) *ms warm up")
_LARGEST_METADATA = 16 << 20


@dataclass(frozen=True)
class LayerRow:
    """One layer's times over all passes of ``--exportProfile``, in milliseconds."""

    name: str
    mean_ms: float | None
    """None when it is not written, or another figure of the row contradicts it."""
    median_ms: float | None = None
    total_ms: float | None = None
    percentage: float | None = None


@dataclass
class LayerRows:
    """The rows of a layer profile; :meth:`add` them in the order of the file."""

    passes: int | None = None
    rows: list[LayerRow] = field(default_factory=list)
    unsound: int = 0
    """Rows without a name or a time that can be one."""
    contradictory: int = 0
    """Rows whose mean is not their total over the passes."""
    repeated: int = 0
    """Rows that are there twice, each figure the same, and count once."""
    runs: int = 1
    _seen: set[LayerRow] = field(default_factory=set)

    @property
    def doubtful(self) -> int:
        """Rows whose time is not known."""
        return self.unsound + self.contradictory

    def add(self, raw: Mapping[str, JSON]) -> None:
        """Take a row; a count in the middle of them begins another run, and the last counts."""
        if "name" not in raw:
            self._count(raw.get("count"))
            return
        name = text_of(raw["name"])
        if not name:
            self.unsound += 1
            return
        row = self._row(name, raw)
        if row.total_ms or row.mean_ms:  # layers of no time may well be alike
            if row in self._seen:
                self.repeated += 1
                return
            self._seen.add(row)
        self.rows.append(row)

    def repeated_note(self) -> list[str]:
        """Return what is to be said of rows that are there twice."""
        if not self.repeated:
            return []
        rows = fmt.plural(self.repeated, "row is", "rows are")
        return [f"{rows} in the profile twice and counted once"]

    def _count(self, value: JSON) -> None:
        count = whole_of(value)
        if count is None:
            self.unsound += 1
            return
        if self.rows:
            self.rows, self._seen = [], set()
            self.unsound = self.contradictory = self.repeated = 0
            self.runs += 1
        self.passes = count if count >= 0 else None

    def _row(self, name: str, raw: Mapping[str, JSON]) -> LayerRow:
        total, mean = time_of(raw.get("timeMs")), time_of(raw.get("averageMs"))
        median, percentage = time_of(raw.get("medianMs")), time_of(raw.get("percentage"))
        if mean is None and "averageMs" not in raw and total is not None and self.passes:
            mean = total / self.passes
        # A negative or impossible time makes the whole row doubtful.
        written = ("timeMs", "averageMs", "medianMs")
        if mean is None or any(key in raw and time_of(raw[key]) is None for key in written):
            self.unsound += 1
            return LayerRow(name, None)
        wrong = total is not None and self.passes and _row_contradicts(total / self.passes, mean)
        # Half of the passes took the median or longer, so it is at most twice the mean.
        if wrong or (median or 0.0) > 2 * mean * (1 + _ROW_ROUNDING) + _ROW_ROUNDING_MS:
            self.contradictory += 1
            return LayerRow(name, None)
        return LayerRow(name, mean, median, total, percentage)


def _row_contradicts(mean: float, written: float) -> bool:
    return abs(mean - written) > _ROW_ROUNDING_MS + _ROW_ROUNDING * max(mean, written)


@dataclass(frozen=True)
class Inference:
    """One row of ``--exportTimes``; times in milliseconds, from where the file counts."""

    start_ms: float | None
    """None where the file has durations only; the phases then count from 0."""
    latency_ms: float
    enqueue_ms: float | None
    phases: tuple[tuple[float, float], ...]
    """(start, duration) of the copy to the device, of computing, and of the copy back."""
    copies: tuple[bool, bool]
    """Whether the file has times of either copy."""

    @property
    def compute_ms(self) -> float:
        """The time that the GPU computed."""
        return self.phases[1][1]

    @property
    def end_ms(self) -> float:
        """When the last phase ended."""
        return max(start + took for start, took in self.phases)


@dataclass
class InferenceRows:
    """Tells which rows of a timing file count; :meth:`take` them in the order of the file.

    Args:
        warm_up_ms: Inferences that start to compute before this are left out, as in trtexec's own
            summary; None where nothing tells: its default then, when the file begins with the run.
    """

    warm_up_ms: float | None = None
    bad: int = 0
    repeated: int = 0
    warm: list[Inference] = field(default_factory=list)
    """Those of the warm-up. They are all there is of a run that ended before it."""
    kept: int = 0
    """How many inferences count, those of a warm-up that is all there is left out."""
    first_ms: float | None = None
    _assumed: bool = False
    _seen: set[tuple[float, float]] = field(default_factory=set)

    def take(self, raw: Mapping[str, JSON]) -> Inference | None:
        """Return a row's inference when it counts."""
        found = inference_of(raw)
        if found is None:
            self.bad += 1
            return None
        if found.start_ms is None:
            self.kept += 1
            return found
        key = (found.start_ms, found.latency_ms)
        if key in self._seen:  # no two inferences begin and end at once
            self.repeated += 1
            return None
        self._seen.add(key)
        if self.first_ms is None:
            self.first_ms = found.start_ms
            if self.warm_up_ms is None:
                with_run = found.start_ms < _BEGINS_WITH_RUN_MS
                self.warm_up_ms = _DEFAULT_WARM_UP_MS if with_run else 0.0
                self._assumed = with_run
        if found.phases[1][0] < (self.warm_up_ms or 0.0):
            self.warm.append(found)
            return None
        self.kept += 1
        return found

    def warm_up_notes(self) -> list[str]:
        """Return what is to be said of the warm-up."""
        if not self.warm:
            return []
        length = f"{self.warm_up_ms or 0.0:g} ms{', the default' if self._assumed else ''}"
        if not self.kept:
            return [f"all inferences are within the warm-up ({length}): they are shown"]
        count = fmt.plural(len(self.warm), "inference")
        return [f"{count} of the warm-up ({length}) left out, as in trtexec's own summary"]

    def doubts(self) -> list[str]:
        """Return what is to be said of rows that cannot be, or are there twice."""
        found = []
        if self.repeated:
            inferences = fmt.plural(self.repeated, "inference is", "inferences are")
            found.append(f"{inferences} in the file twice and counted once")
        if self.bad:
            found.append(f"{fmt.plural(self.bad, 'inference')} without sound times left out")
        return found


def inference_of(raw: Mapping[str, JSON]) -> Inference | None:
    """Return the times of a row; None where they are missing, impossible or contradictory."""
    # A time that is written and can be none makes the whole row doubtful.
    if any(key.endswith("Ms") and time_of(value) is None for key, value in raw.items()):
        return None
    phases: list[tuple[float | None, float]] = []
    copies = []
    for part, key in (("H2d", "h2dMs"), ("Compute", "computeMs"), ("D2h", "d2hMs")):
        start, end = time_of(raw.get(f"start{part}Ms")), time_of(raw.get(f"end{part}Ms"))
        took = time_of(raw.get(key))
        if start is not None and end is not None:
            if end < start or (took is not None and not _agree(took, end - start)):
                return None
            took = end - start if took is None else took
        if part != "Compute":
            copies.append(took is not None)
            took = took or 0.0  # versions that leave copies out
        if took is None:
            return None
        phases.append((start, took))
    compute_start = phases[1][0]
    if compute_start is None:
        phases = _one_after_another(took for _, took in phases)
    known = tuple(((compute_start or 0.0) if at is None else at, took) for at, took in phases)
    first, end = min(at for at, _ in known), max(at + took for at, took in known)
    latency, whole = time_of(raw.get("latencyMs")), sum(took for _, took in known)
    if latency is None:
        latency = end - first
    elif not _agree(latency, whole) and not _agree(latency, end - first):
        return None
    begin, done = time_of(raw.get("startEnqMs")), time_of(raw.get("endEnqMs"))
    enqueue = time_of(raw.get("enqMs"))
    if enqueue is None and begin is not None and done is not None and done >= begin:
        enqueue = done - begin
    start_ms = None if compute_start is None else first
    return Inference(start_ms, latency, enqueue, known, (copies[0], copies[1]))


def _one_after_another(durations: Iterable[float]) -> list[tuple[float | None, float]]:
    found: list[tuple[float | None, float]] = []
    at = 0.0
    for took in durations:
        found.append((at, took))
        at += took
    return found


def _agree(time: float, other: float) -> bool:
    """Tell whether two figures of one time are the same, but for how they were rounded."""
    return abs(time - other) <= _ROUNDING_MS + _ROUNDING * max(time, other)


def warm_up_ms(metadata: Mapping[str, JSON]) -> float | None:
    """Return how long a run warmed up, by ``Duration: 3s (+ 200ms warm up)``; None when unknown."""
    options = metadata.get("inference_options")
    text = options.get("Duration") if isinstance(options, dict) else None
    if not isinstance(text, str):
        return None
    found = _WARM_UP.search(text)
    if found is None:
        return 0.0 if text else None
    return float(found[1]) if found[1].count(".") < 2 else None


def warm_up_beside(timing: Path) -> float | None:
    """Return the warm-up by the metadata that TREx writes beside a timing file, or None."""
    if ".timing." not in timing.name:
        return None
    path = timing.with_name(timing.name.replace(".timing.", ".profile.metadata."))
    try:
        if path.stat().st_size > _LARGEST_METADATA:
            return None
        found = json.loads(path.read_bytes().decode("utf-8-sig", "replace"), strict=False)
    except (OSError, ValueError, RecursionError):
        return None
    return warm_up_ms(found) if isinstance(found, dict) else None
