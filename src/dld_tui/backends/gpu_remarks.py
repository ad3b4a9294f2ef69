"""What a run says of a GPU in its report: facts, the state during the passes, and remarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dld_tui.core import fmt
from dld_tui.core.gpu.activity import ActivityLog
from dld_tui.core.gpu.attribution import Attributed
from dld_tui.core.gpu.positions import Joined
from dld_tui.core.report.records import Note
from dld_tui.core.report.statistics import median
from dld_tui.core.types import JSON

_WHOLE_PERCENT = 99.5


def during_passes(states: Sequence[Mapping[str, JSON]]) -> dict[str, JSON]:
    """Return clocks, power and temperature in the time of the passes.

    Numbers are medians; of clocks that moved the lowest and the highest are told, too.
    """
    made: dict[str, JSON] = {}
    for name in dict.fromkeys(name for state in states for name in state):
        values = [state[name] for state in states if name in state]
        numbers = [
            float(value)
            for value in values
            if isinstance(value, (int, float)) and not isinstance(value, bool)
        ]
        if len(numbers) < len(values):
            texts = dict.fromkeys(str(value) for value in values)
            made[name] = ", ".join(text for text in texts if text != "none") or "none"
            continue
        made[name] = median(numbers)
        if name.endswith("_mhz") and min(numbers) < max(numbers):
            made |= {f"{name}_lowest": min(numbers), f"{name}_highest": max(numbers)}
    return made


def timeline_fact(joined: Joined, log: ActivityLog) -> dict[str, JSON]:
    """Return how the passes at true speed were joined to layers."""
    return {
        "passes": joined.passes,
        "joined_passes": joined.joined,
        "kernels": joined.kernels,
        "attributed": joined.attributed,
        "outside": joined.outside,
        "dropped_records": log.dropped,
        "problem": joined.problem or None,
    }


def attribution_fact(found: Attributed, log: ActivityLog) -> dict[str, JSON]:
    """Return the sums that the timeline can be checked by, in microseconds."""
    return {
        "kernels": found.kernels.count,
        "kernel_us": found.kernels.time_us,
        "attributed": found.given.count,
        "attributed_us": found.given.time_us,
        "unattributed": found.unclaimed.count,
        "unattributed_us": found.unclaimed.time_us,
        "outside": found.outside.count,
        "outside_us": found.outside.time_us,
        "missing_us": found.missing_us,
        "dropped_records": log.dropped,
    }


def attribution_notes(found: Attributed, log: ActivityLog, by_layer: bool) -> list[Note]:
    """Return what is to be said of kernels that were recorded with the calls that launch them.

    Args:
        found: The work of the passes.
        log: What was recorded.
        by_layer: Whether the passes have layers.
    """
    if not found.kernels.count:
        return [Note("The GPU ran no kernel in the passes that were recorded.", "warning")]
    notes = []
    share = found.given_percent
    if not by_layer:
        notes.append(Note("Kernels are shown by stream: which layer launched them is not told."))
    elif share is not None and share < _WHOLE_PERCENT:
        between = f"{fmt.percent(100 - share)} % of the GPU's kernel time was launched between the"
        notes.append(Note(f"{between} layers and belongs to none."))
    if abs(found.missing_us) > 1:
        text = f"The kernels' times do not add up: {found.missing_us:.1f} us are missing."
        notes.append(Note(text, "warning"))
    if log.dropped:
        text = f"{log.dropped:,} records of the GPU were lost or unreadable."
        notes.append(Note(text, "warning"))
    return notes


def join_notes(joined: Joined, profiled: bool) -> list[Note]:
    """Return what is to be said of passes with kernels alone that have no layers.

    Args:
        joined: The work of these passes.
        profiled: Whether there was a profiled run with the calls recorded.
    """
    if not joined.passes:
        return [Note("The GPU ran no kernel in the passes without profiling.", "warning")]
    if joined.joined == joined.passes:
        return []
    which = f"{joined.passes - joined.joined:,} of {joined.passes:,} passes without profiling"
    more = " Their kernels are shown without layers." if joined.joined else ""
    if profiled and not joined.joined:
        more = (
            " Times of layers on the GPU are of the profiled run, in which kernels take as long and"
            " only the gaps are longer."
        )
    text = f"In {which}, kernels cannot be joined to layers: {joined.problem}.{more}"
    return [Note(text, "warning" if profiled else "info")]
