"""How differences are written, in a terminal and on the screen."""

from __future__ import annotations

from dld_tui.core import fmt
from dld_tui.core.compare.matching import LEVEL_PERCENT
from dld_tui.core.compare.model import Cell, Comparable, Row, label
from dld_tui.core.paths import near


def signed(value: float | None) -> str:
    """Return a difference in milliseconds with its sign, without the unit."""
    return fmt.UNKNOWN if value is None else f"{value:+,.3f}"


def ratio_text(cell: Cell) -> str:
    """Return a ratio, e.g. ``0.54x``; a dash when there is none."""
    return fmt.UNKNOWN if cell.ratio is None else f"{cell.ratio:,.2f}x"


def half_width(cell: Cell) -> float | None:
    """Return half the width of the interval of a difference, in milliseconds; None without."""
    bounds = cell.interval
    return None if bounds is None else (bounds.high_ms - bounds.low_ms) / 2


def margin(cell: Cell) -> str:
    """Return what :func:`half_width` does as text; empty without."""
    half = half_width(cell)
    return "" if half is None else fmt.milliseconds(half)


def verdict(cell: Cell) -> str:
    """Return a difference with its ratio, and whether it can be noise."""
    ratio = "" if cell.ratio is None else f" ({ratio_text(cell)})"
    text = f"{signed(cell.delta_ms)} ms{ratio}"
    bounds = cell.interval
    if bounds is None:
        return f"{text}, too few passes to tell whether that is noise"
    judged = "within noise" if cell.noise else "more than the noise within the runs"
    if cell.noise and not bounds.low_ms <= 0 <= bounds.high_ms:
        judged = "within noise by the rank test, though not by its interval"
    span = f"{signed(bounds.low_ms)} to {signed(bounds.high_ms)} ms"
    return f"{text}, {judged} ({LEVEL_PERCENT:.0f} % interval {span})"


def remark(row: Row, target: int, base: int, *, counted: bool = False) -> str:
    """Return what is to be said of a row in a few words.

    Args:
        row: The row.
        target: The report whose difference is shown.
        base: What it is compared with.
        counted: Say how many layers of each it is, where that is not one of each.
    """
    state = row.state(target, base)
    if state:
        return f"only {label(target if state == 'added' else base)}"
    words = []
    if row.cells[target].delta_ms is not None and row.cells[target].noise is not False:
        unknown = "shared" if row.estimate else "?"
        words.append("noise" if row.cells[target].noise else unknown)
    counts = [len(row.cells[index].layers) for index in (base, target)]
    if counted and counts != [1, 1]:
        words.append(f"{counts[0]}>{counts[1]}")
    return " ".join(words)


def described(subject: Comparable) -> str:
    """Return where a report is and what made it: foreign text."""
    path, maker = place_and_maker(subject)
    return f"{path} · {maker}" if maker else path


def place_and_maker(subject: Comparable) -> tuple[str, str]:
    """Return the path of a report, and what made it: foreign text."""
    facts = (subject.facts.get(name) for name in ("backend", "execution_provider", "device"))
    return near(subject.path), " · ".join(str(fact) for fact in facts if fact)
