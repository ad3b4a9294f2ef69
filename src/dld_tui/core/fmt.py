"""Numbers and shapes for display. Unknown is None and shows as an en dash."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import TypeVar

UNKNOWN = "–"
T = TypeVar("T")


def count(value: int | None) -> str:
    """Return a count with thousands separators, e.g. ``10,565``."""
    return UNKNOWN if value is None else f"{value:,}"


def plural(value: int, word: str, many: str | None = None) -> str:
    """Return a count with its noun, e.g. ``1 node``, ``1,746 nodes``; `many` is no mere ``s``."""
    return f"{value:,} {word}" if value == 1 else f"{value:,} {many or f'{word}s'}"


def listed(items: Collection[T], most: int, shown: Callable[[T], str] = str) -> str:
    """Return a list as text: of many items the first ones and a count, ``a, b and 7 more``."""
    more = f" and {len(items) - most:,} more" if len(items) > most else ""
    return ", ".join(map(shown, islice(items, most))) + more


def number(value: float, places: int = 2) -> str:
    """Return a number for a file: with no more decimals than it has, and never ``-0``."""
    digits = f"{value:.{places}f}".rstrip("0").rstrip(".")
    return "0" if digits == "-0" else digits


def short_count(value: float | None) -> str:
    """Return a count in three significant digits, e.g. ``25.6 M``."""
    if value is None:
        return UNKNOWN
    for limit, suffix in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= limit:
            return (
                f"{value / limit:.3g}{suffix}"
                if abs(value) < 999.5 * limit
                else f"{value / limit:.0f}{suffix}"
            )
    return f"{value:g}"


def short_plural(value: int, word: str) -> str:
    """Return a short count with its noun, e.g. ``1 parameter``, ``25.6 M parameters``."""
    return f"{short_count(value)} {word if value == 1 else f'{word}s'}"


def size(value: int | None) -> str:
    """Return bytes in decimal units, e.g. ``1.81 GB``; exact below 1000."""
    if value is None:
        return UNKNOWN
    if abs(value) < 1000:
        return f"{value} B"
    scaled = float(value)
    for unit in ("kB", "MB", "GB", "TB", "PB", "EB"):
        scaled /= 1000
        if abs(scaled) < 999.5:
            return f"{scaled:.3g} {unit}"
    return f"{value:.3g} B"


def milliseconds(value: float | None, *, digits: int = 3) -> str:
    """Return a time in milliseconds without its unit, with `digits` decimals."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def three_digits(value: float | None) -> str:
    """Return a figure in three significant digits, e.g. ``0.0123``, ``4.56``, ``1,235``."""
    if value is None:
        return UNKNOWN
    if not value or abs(value) >= 99.95:
        return f"{value:,.0f}"
    return f"{value:.{max(2 - math.floor(math.log10(abs(value) * 1.0005)), 0)}f}"


def joules(value: float | None) -> str:
    """Return an energy for people, e.g. ``2.5 J`` or ``31.4 mJ``."""
    if value is None:
        return UNKNOWN
    return f"{1000 * value:,.4g} mJ" if value < 1 else f"{value:,.4g} J"


def duration(seconds: float | None) -> str:
    """Return a time span for people, e.g. ``1.2 s``, ``3 min 5 s``, ``2 h 4 min``."""
    if seconds is None:
        return UNKNOWN
    if 0 < seconds < 0.0005:
        return f"{three_digits(seconds * 1000)} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds + 0.5), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def percent(value: float | None) -> str:
    """Return a percentage without its sign; of 100 and more without a decimal."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.1f}"


def whole_percent(value: float) -> str:
    """Return a percentage without decimals and sign, ``below 1`` for what would be 0."""
    text = f"{value:.0f}"
    return "below 1" if value > 0 and text == "0" else text


def progress(done: float, total: float) -> str:
    """Return how much is done with its sign, e.g. ``40 %``; rounded down: 100 is the end."""
    return f"{min(100, int(100 * done / total))} %"


def printed_difference(whole_ms: float, part_ms: float) -> float:
    """Return what is left of a whole beside a part, as :func:`milliseconds` prints both.

    5.479 of 5.663 ms left 0.183 ms: a reader computes 0.184.
    """
    return round(whole_ms, 3) - round(part_ms, 3)


def whole_percents(parts: Sequence[float], whole: float) -> list[str]:
    """Return parts of a whole as :func:`whole_percent` does, by the largest remainders.

    With the rest, if the parts do not cover the whole, they sum to 100.
    """
    shares = [100 * part / whole for part in (*parts, max(0.0, whole - sum(parts)))]
    rounded = [int(share) for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda at: rounded[at] - shares[at])
    for at in by_remainder[: max(0, 100 - sum(rounded))]:
        rounded[at] += 1
    return [
        "below 1" if not percent and part > 0 else str(percent)
        for percent, part in zip(rounded, parts, strict=False)
    ]


def shape(dims: Sequence[int | str | None] | None) -> str:
    """Return dimensions, e.g. ``[N, 3, 224, ?]``; None for an unknown rank."""
    if dims is None:
        return "[…]"
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"
