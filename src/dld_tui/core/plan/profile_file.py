"""What ``trtexec --exportProfile`` writes, joined to the layers by name and occurrence."""

from __future__ import annotations

import copy
import math
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError
from dld_tui.core.plan.json_text import lists_of, objects_of, parsed
from dld_tui.core.plan.model import EngineLayer
from dld_tui.core.report.trtexec_rows import LayerRow, LayerRows
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
