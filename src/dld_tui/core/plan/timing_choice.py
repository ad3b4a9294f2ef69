"""Which times of whole inferences are those of an engine, where several lie side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from dld_tui.core import fmt
from dld_tui.core.errors import InputError
from dld_tui.core.plan.archive import text_of_file
from dld_tui.core.plan.file_set import file_name
from dld_tui.core.plan.model import TimingSummary
from dld_tui.core.plan.parts import Parts, note_choice
from dld_tui.core.plan.profile_file import rows_of_file
from dld_tui.core.plan.timing_file import (
    agree,
    timing_of_rows,
    timing_of_summary,
    warm_up_ms,
    with_summary,
)
from dld_tui.core.types import JSON

_TOO_FAR = 10.0
"""An inference and the sum of its layers do not differ by more, though launching takes time."""
_CLEARLY = 1.1
"""By what factor times have to differ before their order tells engines apart."""
_MOST_RANKED = 8


def timing_of(parts: Parts, total_ms: float | None) -> TimingSummary | None:
    """Return the times of whole inferences, of the files that are of this engine."""
    summary = _own_summary(parts)
    log = parts.log
    told: TimingSummary | None
    if log is not None and summary == log.sections.get("performance_summary"):
        told = timing_of_summary(summary, log.percentiles, "log")
    else:
        told = timing_of_summary(summary)
    path = _timing_file(parts)
    if path is None:
        return told
    listed = rows_of_file(text_of_file(path), str(path))
    parts.notes += listed.notes("timing file")
    found, notes = timing_of_rows(listed.rows, warm_up_ms(parts.metadata))
    parts.notes += notes
    if found is None:
        return told
    parts.files["timing"] = str(path)
    compute = found.compute.median if found.compute is not None else 0.0
    if total_ms and compute and not 1 / _TOO_FAR < compute / total_ms < _TOO_FAR:
        parts.notes.append(
            f"an inference takes {fmt.milliseconds(compute)} ms and the layers"
            f" {fmt.milliseconds(total_ms)} ms: {path.name} is probably of another engine"
        )
    return with_summary(found, told) if told is not None else found


def _own_summary(parts: Parts) -> JSON:
    """Return the performance summary of the metadata, where it is of this engine alone."""
    summary = parts.metadata.get("performance_summary")
    of = parts.files.get("profile.metadata")
    if summary is None or of is None or len(parts.roles.get("graph", [])) < 2:
        return summary
    own, other = file_name(parts.graph.name), file_name(Path(of).name)
    if own is not None and other is not None and own.infix == other.infix:
        return summary
    # It is kept where a timing file that was paired with the engine says the same.
    path = _timing_file(parts, quiet=True)
    if path is not None:
        found, _ = timing_of_rows(
            rows_of_file(text_of_file(path), str(path)).rows, warm_up_ms(parts.metadata)
        )
        told = timing_of_summary(summary)
        if found is not None and told is not None and agree(found, told):
            return summary
    parts.notes.append(
        f"{Path(of).name} may be of another engine that lies beside: its times are left out"
    )
    return None


def _timing_file(parts: Parts, *, quiet: bool = False) -> Path | None:
    """Return the timing file of this engine, which several engines may lie beside.

    With as many profiles as timing files, the slower engine has the slower inferences: that pairs
    them where both differ clearly. Else only a name or the user can tell.
    """
    candidates = parts.roles.get("timing", [])
    if not candidates:
        return None
    rivals = len(parts.roles.get("graph", []))
    if parts.timing_given or (len(candidates) == 1 and rivals < 2):
        return candidates[0]
    own = file_name(parts.graph.name)
    names = [file_name(path.name) for path in candidates]
    same = [
        path
        for path, name in zip(candidates, names, strict=True)
        if own is not None and name is not None and name.infix == own.infix
    ]
    if len(same) == 1 and (own is None or own.infix or rivals < 2):
        if not quiet:
            note_choice(parts, "timing", same[0], candidates)
        return same[0]
    taken = _by_rank(parts, candidates)
    if quiet:
        return taken
    count = fmt.plural(len(candidates), "timing file")
    if taken is None:
        lie = "lies" if len(candidates) == 1 else "lie"
        parts.notes.append(
            f"{count} {lie} beside {fmt.plural(max(rivals, 1), 'engine')}, and nothing tells which"
            " belong together: --timing takes one"
        )
    else:
        parts.notes.append(
            f"{count} lie beside it: {taken.name} was taken, as its inferences rank like the"
            " layers' times; --timing takes another"
        )
    return taken


def _by_rank(parts: Parts, candidates: Sequence[Path]) -> Path | None:
    """Return the timing whose place among the timings is that of the profile among the profiles."""
    own = parts.files.get("profile")
    medians: dict[Path, float] = {}
    for path in candidates[:_MOST_RANKED]:
        try:
            rows = rows_of_file(text_of_file(path), str(path)).rows
        except InputError:
            return None
        found, _ = timing_of_rows(rows, warm_up_ms(parts.metadata))
        if found is None or found.compute is None:
            return None
        medians[path] = found.compute.median
    if own is None or len(medians) != len(parts.sums) or len(medians) != len(candidates):
        return None
    for values in (sorted(medians.values()), sorted(parts.sums.values())):
        if any(high < low * _CLEARLY for low, high in pairwise(values)):
            return None
    place = sorted(parts.sums, key=lambda path: parts.sums[path]).index(Path(own))
    return sorted(medians, key=lambda path: medians[path])[place]
