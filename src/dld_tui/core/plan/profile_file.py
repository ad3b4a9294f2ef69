"""What ``trtexec --exportProfile`` writes, joined to the layers by name and occurrence."""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dld_tui.core import fmt
from dld_tui.core.errors import CorruptFileError
from dld_tui.core.plan.json_text import parsed
from dld_tui.core.plan.model import EngineLayer
from dld_tui.core.plan.values import objects_of, text_of, time_of, whole_of
from dld_tui.core.text import clip, visible
from dld_tui.core.types import JSON

_PROFILE_MARK = re.compile(r" \[profile \d+\]")
_NAMED = 3
"""How many names a note gives."""


@dataclass(frozen=True)
class ProfileRow:
    """One layer's times over all passes, in milliseconds."""

    name: str
    mean_ms: float | None
    median_ms: float | None


@dataclass
class LayerProfile:
    """The rows of a profile."""

    passes: int | None = None
    rows: list[ProfileRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


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
    raw_rows: Iterable[Mapping[str, JSON]], ends_early: bool = False
) -> LayerProfile:
    """Return a profile from its rows, which may be damaged."""
    found = LayerProfile()
    unsound = 0
    for raw in raw_rows:
        if "name" not in raw:
            count = whole_of(raw.get("count"))
            if count is not None:
                found.passes = count
            continue
        mean = time_of(raw.get("averageMs"))
        total = time_of(raw.get("timeMs"))
        if mean is None and "averageMs" not in raw and total is not None and found.passes:
            mean = total / found.passes
        unsound += mean is None
        found.rows.append(ProfileRow(text_of(raw["name"]), mean, time_of(raw.get("medianMs"))))
    if unsound:
        rows = fmt.plural(unsound, "row")
        found.notes.append(f"{rows} of the profile without a sound time: shown as unknown")
    if ends_early:
        found.notes.append("the profile ends early: it was cut")
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


def _timed(layer: EngineLayer, row: ProfileRow, total: float | None) -> EngineLayer:
    percent = None
    if row.mean_ms is not None and total:
        percent = 100 * row.mean_ms / total
    # dataclasses.replace takes three times as long.
    times = {"time_ms": row.mean_ms, "median_ms": row.median_ms, "percent": percent}
    return EngineLayer(**(vars(layer) | times))


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
    missing = [layer.name for place, layer in enumerate(layers) if place not in placed]
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


def rows_of_file(text: str, where: str) -> tuple[list[dict[str, JSON]], bool]:
    """Return the objects of a list, the whole ones of one that was cut, and whether it was cut.

    Raises:
        CorruptFileError: It is not a list of objects.
    """
    try:
        value = parsed(text, where)
    except CorruptFileError as error:
        # trtexec writes a row a line, so a killed run leaves whole ones.
        if not text.lstrip().startswith("["):
            raise
        rows = _whole_rows(text, where)
        if not rows:
            raise error
        return rows, True
    rows = objects_of(value)
    if not isinstance(value, list) or (value and not rows):
        raise CorruptFileError("is not a list of times", where=where)
    return rows, False


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
