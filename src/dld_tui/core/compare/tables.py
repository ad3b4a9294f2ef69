"""The tables of a comparison: its rows, and the layers with another precision or tactic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dld_tui.core import fmt
from dld_tui.core.compare.engines import WORK, PrecisionFigures, counts_text
from dld_tui.core.compare.matching import LEVEL_PERCENT
from dld_tui.core.compare.records import Cell, Comparable, Difference, Row, label
from dld_tui.core.report.layer_table import precision_style
from dld_tui.core.settings.paths import near
from dld_tui.core.tables.table import BAR, FLAG, MS, NOTE, PERCENT, RATIO, Column, Table, Unit

if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison
    from dld_tui.core.compare.engines import Mismatch


def signed(value: float | None) -> str:
    """Return a difference in milliseconds with its sign, without the unit."""
    return fmt.UNKNOWN if value is None else f"{value:+,.3f}"


def ratio_text(cell: Cell) -> str:
    """Return a ratio, e.g. ``0.54x``; a dash without one."""
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
    """Return a short remark about a row.

    Args:
        target: The report whose difference is shown.
        base: The report that it is compared with.
        counted: Include the numbers of layers unless it is one of each.
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


_DELTA = Unit("ms", signed)
_FIRST_OUT = 7
"""Priority of the columns between the base and the report whose difference is shown."""


def delta_style(cell: Cell) -> str:
    """Return the style class of a difference: ``good`` is faster."""
    if not cell.delta_ms:
        return "dim"
    return "good" if cell.delta_ms < 0 else "bad"


def compare_table(comparison: Comparison, by: str, rows: Sequence[Row], view: str) -> Table[Row]:
    """Return rows of a comparison as a table.

    Args:
        comparison: The reports.
        by: What the rows are.
        rows: The rows, in order.
        view: ``csv``, ``text``, ``html`` or ``screen``.
    """
    base, target = comparison.base, comparison.target
    letters = [label(index) for index in range(len(comparison.subjects))]
    others = [index for index in range(len(letters)) if index != base]

    def style(row: Row) -> str:
        cell = row.cells[target]
        is_sure = cell.noise is False or bool(row.state(target, base))
        return delta_style(cell) if is_sure else "dim"

    def time(at: int) -> Callable[[Row], str]:
        return lambda row: (
            ("≈" if row.estimate and row.cells[at].time_ms is not None else "")
            + fmt.milliseconds(row.cells[at].time_ms)
        )

    def bound(at: int, name: str) -> Callable[[Row], float | None]:
        return lambda row: getattr(row.cells[at].interval, name, None)

    def cell(at: int, name: str) -> Callable[[Row], Any]:
        return lambda row: getattr(row.cells[at], name)

    def difference(at: int) -> list[Column[Row]]:
        letter = letters[at]
        pair = f" {letters[base]}>{letter}" if len(letters) > 2 else ""
        return [
            Column(f"delta_ms_{letter}",
                   f"{letter}-{letters[base]} ms" if view == "screen" else f"delta{pair}",
                   cell(at, "delta_ms"), _DELTA, 10,
                   style=style),
            Column(f"ratio_{letter}", f"ratio{pair}", cell(at, "ratio"), RATIO, 7, priority=1,
                   text=lambda row: ratio_text(row.cells[at]), style=style),
            Column(f"low_ms_{letter}", f"low{pair}", bound(at, "low_ms"), _DELTA),
            Column(f"high_ms_{letter}", f"high{pair}", bound(at, "high_ms"), _DELTA),
            Column(f"within_noise_{letter}", f"noise{pair}", cell(at, "noise"), FLAG),
            Column(f"margin_{letter}", f"±{pair}", lambda row: half_width(row.cells[at]), MS, 6,
                   priority=3, sortable=False, style="dim",
                   text=lambda row: margin(row.cells[at])),
            Column(f"share_percent_{letter}", "% of change" if view == "html" else f"%{pair}",
                   cell(at, "share_percent"), PERCENT, 5, priority=2, style="dim"),
        ]  # fmt: skip

    columns: list[Column[Row]] = [
        Column("key", by, lambda row: row.key, least=16, keep="end",
               text=lambda row: row.title),
        *(
            Column(f"time_ms_{letter}", f"{letter} ms", cell(at, "time_ms"), MS, 9,
                   text=time(at), priority=0 if at in (base, target) else _FIRST_OUT)
            for at, letter in enumerate(letters)
        ),
        *(column for at in others for column in difference(at)),
        Column("bar", "", lambda row: abs(row.cells[target].delta_ms or 0.0), BAR, 12,
               align="left", priority=4, sortable=False, style=style),
        Column("remark", "", lambda row: remark(row, target, base, counted=by == "layer"), NOTE,
               11, sortable=False, style=style),
        Column("match", "match", lambda row: row.match, NOTE),
        Column("estimate", "estimate", lambda row: row.estimate, FLAG),
    ]  # fmt: skip
    times = [f"time_ms_{letter}" for letter in letters]
    target_letter = letters[target]
    keys = ["key", *times]
    if view == "csv":
        names = ["delta_ms", "ratio", "low_ms", "high_ms", "within_noise", "share_percent"]
        keys += [f"{name}_{letters[at]}" for at in others for name in names]
        keys += ["match", "estimate"]
    elif view == "html":
        names = ["delta_ms", "margin", "ratio"]
        keys += [f"{name}_{letters[at]}" for at in others for name in names]
        keys += [f"share_percent_{target_letter}", "remark"]
    elif view == "text":
        names = ["delta_ms", "margin", "ratio", *(["share_percent"] if by else [])]
        keys += [*(f"{name}_{target_letter}" for name in names), "remark"]
    else:
        keys += [f"delta_ms_{target_letter}", "bar"]
        keys += [
            *(f"{name}_{target_letter}" for name in ("ratio", "margin", "share_percent")),
            "remark",
        ]
    # A layer's row is named after the longest one of the base; a group keeps its name.
    return Table(
        columns, rows, name=by, row_key=lambda row: row.layer if by == "layer" else row.key
    ).pick(keys)


def mismatch_table(
    comparison: Comparison, mismatches: Sequence[Mismatch], view: str
) -> Table[Mismatch]:
    """Return layers with another precision or tactic as a table of a view, as above."""
    base, target = comparison.base, comparison.target
    letters = [label(index) for index in range(len(comparison.subjects))]

    def late(at: int, first: int) -> int:
        return first if at in (base, target) else 5

    def pair(letter: str) -> str:
        return f" {letters[base]}>{letter}" if len(letters) > 2 else ""

    def side(at: int, letter: str) -> list[Column[Mismatch]]:
        return [
            Column(f"precision_{letter}", letter, lambda item: item.precision[at], width=6,
                   priority=late(at, 0), style=lambda item: precision_style(item.precision[at])),
            Column(f"tactic_{letter}", f"{letter} tactic", lambda item: item.tactic[at], width=24,
                   priority=late(at, 2), keep="middle", style="dim"),
            Column(f"time_ms_{letter}", f"{letter} ms", lambda item: item.row.cells[at].time_ms,
                   MS, 9),
            Column(f"delta_ms_{letter}",
                   f"{letter}-{letters[base]} ms" if view == "screen" else f"delta{pair(letter)}",
                   lambda item: item.row.cells[at].delta_ms, _DELTA, 10,
                   style=lambda item: delta_style(item.row.cells[at])),
        ]  # fmt: skip

    columns: list[Column[Mismatch]] = [
        Column("node", "node" if view != "text" else "other precision or tactic",
               lambda item: item.node, least=16, keep="end"),
        Column("layer", "layer", lambda item: item.row.key, keep="end"),
        Column("what", "what", lambda item: item.what),
        Column("ratio", "ratio", lambda item: item.row.cells[target].ratio, RATIO, 7, priority=1,
               text=lambda item: ratio_text(item.row.cells[target])),
        Column("match", "match", lambda item: item.row.match, NOTE),
        *(column for at, letter in enumerate(letters) for column in side(at, letter)),
    ]  # fmt: skip
    precisions, tactics, times, deltas = (
        [f"{name}_{letter}" for letter in letters]
        for name in ("precision", "tactic", "time_ms", "delta_ms")
    )
    delta = deltas[target]
    keys = {
        "csv": ["node", "layer", "what", *precisions, *tactics, *times, *deltas, "match"],
        "text": ["node", *precisions, delta, *tactics],
        "html": ["node", *precisions, *tactics, *times, delta],
        "screen": ["node", *precisions, delta, "ratio", *tactics],
    }[view]
    return Table(columns, mismatches, name="mismatch", row_key=lambda item: item.row.layer).pick(
        keys
    )


def mismatches_of(comparison: Comparison, rows: Sequence[Row]) -> list[Mismatch]:
    """Return what some rows of ``mismatch`` stand for, in their order."""
    known = {id(mismatch.row): mismatch for mismatch in comparison.mismatches}
    return [known[id(row)] for row in rows]


def difference_table(comparison: Comparison) -> Table[Difference]:
    """Return the settings and facts that are not the same."""

    def value(at: int) -> Column[Difference]:
        return Column(label(at), label(at), lambda difference: difference.values[at])

    name: Column[Difference] = Column(
        "name", "what differs", lambda difference: difference.name, width=30
    )
    values = map(value, range(len(comparison.subjects)))
    return Table((name, *values), comparison.differences)


def precision_table(comparison: Comparison) -> Table[tuple[str, PrecisionFigures]]:
    """Return what each engine computes in, and how long what kind of work takes."""

    def work_ms(work: str, title: str) -> Column[tuple[str, PrecisionFigures]]:
        return Column(
            f"{work}_ms", f"{title}, ms",
            lambda row: row[1].work_ms.get(work, 0.0) if row[1].timed else None, MS,
        )  # fmt: skip

    columns: list[Column[tuple[str, PrecisionFigures]]] = [
        Column("engine", "engine", lambda row: row[0], width=6),
        Column("mainly", "mainly", lambda row: row[1].main, width=8),
        Column("counts", "layers by precision", lambda row: counts_text(row[1])),
        *(work_ms(work, title) for work, title in WORK.items()),
    ]
    rows = [(label(at), row) for at, row in enumerate(comparison.precisions)]
    return Table(columns, rows)
