"""Where the time of a report went against another: sentences.

Each sentence that tells a difference rests on an interval, or says that it is not certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from dld_tui.core import fmt
from dld_tui.core.compare.conditions import relevant_differences, same_model
from dld_tui.core.compare.engines import (
    CONVERTING,
    FEW_BITS,
    HEAVY,
    WORK,
    counts_text,
    kind_of_work,
)
from dld_tui.core.compare.matching import Match, is_conversion
from dld_tui.core.compare.records import Cell, ComparisonRow, label
from dld_tui.core.compare.rows import certainty, half_width, ratio_text, signed, verdict
from dld_tui.core.report.layer_table import short_precision
from dld_tui.core.report.measured_figures import busy_text
from dld_tui.core.report.records import Layer
from dld_tui.core.statistics import share_percent
from dld_tui.core.text import clip, visible
from dld_tui.core.text.names import cut_names

if TYPE_CHECKING:
    from dld_tui.core.compare.comparison import Comparison


def explain(comparison: Comparison, index: int) -> list[str]:
    """Return where the time of a report went against the base, in lines without colour."""
    return _Pair(comparison, index).lines()


_TOP = 5
_NAMED = 3
_NAME_CELLS = 44
_UNEXPLAINED_PERCENT = 20.0
_CPU = "CPUExecutionProvider"


class _Pair:
    """One report against the base."""

    def __init__(self, comparison: Comparison, index: int) -> None:
        self.comparison = comparison
        self.index, self.base = index, comparison.base
        self.here, self.there = label(index), label(comparison.base)
        self.rows = [
            row for row in comparison.rows("layer") if row.cells[index].delta_ms is not None
        ]
        self.factor = comparison.common_factor(index)
        self.apart = sum(
            comparison.follows(row, index) is False and not row.state(index, comparison.base)
            for row in self.rows
        )

    def lines(self) -> list[str]:
        """Return the explanation of all pairs."""
        return [
            *self._precision(),
            self._end_to_end(),
            *self._first_token(),
            *self._speed_up(),
            *self._alike(),
            *self._no_reason(),
            *self._layer_sum(),
            *self._top(),
            *self._fusions(),
            *self._only(self.index, self.base),
            *self._only(self.base, self.index),
            *self._moved("provider", lambda layer: layer.provider, "on"),
            *self._moved("precision", _precision_shown, "in"),
            *self._mismatches(),
            *self._inserted(),
        ]

    def _cell(self, row: ComparisonRow) -> Cell:
        return row.cells[self.index]

    def _end_to_end(self) -> str:
        row = self.comparison.end_to_end
        cell, before = self._cell(row), row.cells[self.base].time_ms
        if cell.time_ms is None or before is None or cell.delta_ms is None:
            return f"{self.here} against {self.there}: no latency was measured in both."
        return (
            f"{self.here} takes {fmt.milliseconds(cell.time_ms)} ms where {self.there} takes"
            f" {fmt.milliseconds(before)} ms: {verdict(cell)}{self._busy(cell)}."
        )

    def _first_token(self) -> Iterator[str]:
        """Yield what a decoder takes to its first token, which is not among the others."""
        row = self.comparison.first_token
        if row is not None:
            cell, before = self._cell(row), row.cells[self.base].time_ms
            yield (
                f"To the first token {self.here} takes {fmt.milliseconds(cell.time_ms)} ms where"
                f" {self.there} takes {fmt.milliseconds(before)} ms:"
                f" {verdict(cell)}{self._busy(cell)}."
            )

    def _busy(self, cell: Cell) -> str:
        """Return that a difference is not certain, as passes of one run cannot tell it."""
        busy = [
            label(at)
            for at in sorted((self.base, self.index))
            if busy_text(self.comparison.subjects[at].environment)
        ]
        if not busy or cell.noise is not False:
            return ""
        return (
            f"; not certain, since the machine was busy while {' and '.join(busy)}"
            f" {'was' if len(busy) == 1 else 'were'} measured"
        )

    def _precision(self) -> Iterator[str]:
        """Answer first what two engines are compared for: which precision pays."""
        if self.comparison.of_engines:
            yield from precision_lines(self.comparison, self.index)

    def _alike(self) -> Iterator[str]:
        """Say that all layers changed by one factor: once, not for each of them."""
        factor = self.factor
        if factor is None:
            return
        noun = "engine" if self.comparison.of_engines else "model"
        pair = [self.comparison.subjects[at] for at in (self.base, self.index)]
        names = [visible(found.name) for found in relevant_differences(pair)]
        causes = ["the machine (clocks, power, other programs)"]
        if names:
            causes.append(f"what differs ({fmt.listed(names, _NAMED)})")
        low, high = (f"{ratio:.3g}" for ratio in (factor.low, factor.high))
        times = f"{low}× to {high}×" if low != high else f"{low}×"
        but = f"but {self.apart:,} of " * bool(self.apart)
        yield (
            f"All {but}{fmt.plural(factor.rows, 'row')} take {times} the time of"
            f" {self.there} in {self.here}, {factor.ratio:.3g}× in the middle: such a common factor"
            f" is of {' or of '.join(causes)}, not of single layers of the {noun}."
        )

    def _speed_up(self) -> Iterator[str]:
        factor = self.comparison.speed_up(self.index)
        said = precision_answers(self.comparison, self.index)
        if factor is not None and self.comparison.of_engines and not said:
            text = speed_up_text(self.comparison, self.index)
            yield f"Speedup of {self.here} over {self.there}: {text}."

    def _no_reason(self) -> Iterator[str]:
        pair = [self.comparison.subjects[index] for index in (self.base, self.index)]
        moved = self._cell(self.comparison.end_to_end).noise is False
        if moved and same_model(pair) and not relevant_differences(pair):
            yield (
                "No setting and nothing recorded of the machine differs: the state of the machine"
                " does. Measure both again, one after the other."
            )

    def _layer_sum(self) -> Iterator[str]:
        cell = self._cell(self.comparison.layer_sum)
        latency = self._cell(self.comparison.end_to_end)
        whole = latency.delta_ms
        if cell.delta_ms is None:
            return
        line = f"Layers together: {signed(cell.delta_ms)} ms a pass{certainty(cell)}"
        if whole and False in (cell.noise, latency.noise):
            rest = whole - cell.delta_ms
            around = sum(half_width(one) or 0.0 for one in (cell, latency))
            if abs(rest) > max(_UNEXPLAINED_PERCENT / 100 * abs(whole), around):
                line += (
                    f", end to end {signed(whole)} ms: {signed(rest)} ms is not in the layers"
                    " (time between them, delays by other programs, or what profiling adds)"
                )
        yield f"{line}."

    def _top(self) -> Iterator[str]:
        if not self._timed():
            return
        sure = [row for row in self.rows if self.comparison.is_change(row, self.index)]
        alone = sum(1 for row in sure if row.state(self.index, self.base))
        following = sum(
            self.comparison.follows(row, self.index) is True and self._cell(row).noise is False
            for row in self.rows
        )
        unsure = sum(1 for row in self.rows if self._cell(row).noise)
        unknown = len(self.rows) - len(sure) - unsure - following
        rest = "".join(
            f", {number:,} {text}"
            for number, text in (
                (following, "by the common factor"),
                (alone, "in one only"),
                (unknown, "cannot be told"),
            )
            if number
        )
        beyond = " and otherwise than by the common factor" if self.factor is not None else ""
        yield (
            f"{len(sure) - alone:,} of {fmt.plural(len(self.rows), 'row')} changed by more than"
            f" noise{beyond}, {unsure:,} did not{rest}."
        )
        moved = [
            row for row in self.rows
            if not self._cell(row).noise
            and self._size(row)
            and self.comparison.follows(row, self.index) is not True
        ]  # fmt: skip
        top = sorted(moved, key=self._size, reverse=True)[:_TOP]
        if top:
            doubt = "" if all(map(self._is_sure, top)) else ", if that is no noise"
            if self.factor is not None:
                noun = "row that does" if len(top) == 1 else "rows that do"
                yield f"The largest {noun} not follow it{doubt}:"
            else:
                share = sum(self._cell(row).share_percent or 0.0 for row in top)
                noun = "That row makes" if len(top) == 1 else f"The {len(top)} largest rows make"
                yield f"{noun} {fmt.whole_percent(share)} % of all that moved{doubt}:"
        for row, name in zip(top, cut_names([row.title for row in top], _NAME_CELLS), strict=True):
            yield f"  {signed(self._cell(row).delta_ms):>9} ms  {self._what(row, name)}"

    def _size(self, row: ComparisonRow) -> float:
        return abs(self._cell(row).delta_ms or 0.0)

    def _is_sure(self, row: ComparisonRow) -> bool:
        return self._cell(row).noise is False or bool(row.state(self.index, self.base))

    def _what(self, row: ComparisonRow, name: str) -> str:
        state = row.state(self.index, self.base)
        if state:
            return f"{name}  only in {self.here if state == 'added' else self.there}"
        counts = [len(row.cells[i].layers) for i in (self.base, self.index)]
        text = f"{name}  {ratio_text(self._cell(row))}"
        if counts == [1, 1]:
            return text
        return f"{text}  {self.there} {fmt.plural(counts[0], 'layer')}, {self.here} {counts[1]:,}"

    # Fusions

    def _fusions(self) -> Iterator[str]:
        for more, fewer in ((self.index, self.base), (self.base, self.index)):
            splits = [m for m in self.comparison.matches if self._is_split(m, more, fewer)]
            if not splits:
                continue
            split = sum(len(match.members[more]) for match in splits)
            fused = sum(len(match.members[fewer]) for match in splits)
            cost = self._cost((match.members for match in splits), f" ms in {self.here}")
            yield (
                f"Fused in {label(fewer)}, not in {label(more)}: {fmt.plural(fused, 'layer')} of"
                f" {label(fewer)} {'does' if fused == 1 else 'do'} the work of {split:,} of"
                f" {label(more)}{cost}."
            )
            splits.sort(key=lambda match: -self._time(match, more))
            for match in splits[:_NAMED]:
                yield f"  {self._types(match, fewer)}  =  {self._types(match, more)}"
            if len(splits) > _NAMED:
                yield f"  and {len(splits) - _NAMED:,} more"

    def _cost(self, members: Iterable[Sequence[Sequence[int]]], unit: str = " ms") -> str:
        """Return how much more layers take together than those of the base, and how sure that is.

        Args:
            members: The layers of each row, by report.
            unit: What stands behind the figure.
        """
        if not self._timed():
            return ""
        chosen = list(members)
        cell = self.comparison.together(
            self.index, [[index for row in chosen for index in row[at]]
                         for at in (self.base, self.index)]
        )  # fmt: skip
        return "" if cell.delta_ms is None else f" ({signed(cell.delta_ms)}{unit}{certainty(cell)})"

    @staticmethod
    def _is_split(match: Match, more: int, fewer: int) -> bool:
        return match.how == "node" and len(match.members[more]) > len(match.members[fewer]) > 0

    def _time(self, match: Match, report: int) -> float:
        layer_ms = self.comparison.measured[report].layer_ms
        return sum(layer_ms[index] or 0.0 for index in match.members[report])

    def _types(self, match: Match, report: int) -> str:
        layers = [self.comparison.subjects[report].layers[i] for i in match.members[report]]
        shown = " + ".join(_counted(layer.type for layer in layers))
        first = clip(visible(layers[0].name), _NAME_CELLS, keep="end")
        return f"{shown} ({first})" if len(layers) == 1 else clip(shown, 60)

    # What only one of them has, and what runs elsewhere

    def _only(self, having: int, lacking: int) -> Iterator[str]:
        chosen = [
            self.comparison.subjects[having].layers[index]
            for match in self.comparison.matches
            if match.members[having] and not match.members[lacking]
            for index in match.members[having]
        ]
        if not chosen:
            return
        layer_ms = self.comparison.measured[having].layer_ms
        took = sum(layer_ms[layer.index] or 0.0 for layer in chosen)
        kinds = ", ".join(_counted((layer.type for layer in chosen), _NAMED + 1))
        purpose = (
            "; all convert a layout, type or device" if all(map(is_conversion, chosen)) else ""
        )
        cost = f", {fmt.milliseconds(took)} ms" if self.comparison.measured[having].timed else ""
        noun = fmt.plural(len(chosen), "layer")
        yield f"Only in {label(having)}: {noun}{cost} ({kinds}){purpose}."

    def _moved(
        self, subject: str, value: Callable[[Layer], str | None], word: str
    ) -> Iterator[str]:
        """Say which matched layers have another provider or precision."""
        by_change: dict[tuple[str, str], list[Match]] = {}
        for match in self.comparison.matches:
            before, after = (self._values(match, i, value) for i in (self.base, self.index))
            if before and after and before != after:
                pair = (_listed(before), _listed(after))
                by_change.setdefault(pair, []).append(match)
        for (before_text, after_text), matches in by_change.items():
            fallback = f"Fallback in {self.here}: " if after_text == _CPU else ""
            if not fallback and before_text == _CPU:
                fallback = f"Fallback in {self.there}: "
            noun = fmt.plural(len(matches), "row")
            cost = self._cost(match.members for match in matches)
            yield (
                f"{fallback}{noun} {'runs' if len(matches) == 1 else 'run'} {word} {after_text} in"
                f" {self.here}, {word} {before_text} in {self.there}{cost}."
            )

    # What only engines have

    def _timed(self) -> bool:
        return all(self.comparison.measured[index].timed for index in (self.index, self.base))

    def _mismatches(self) -> Iterator[str]:
        if not self.comparison.of_engines:
            return
        pairs = [
            (mismatch, mismatch.tactic[self.index], mismatch.tactic[self.base])
            for mismatch in self.comparison.mismatches
        ]
        other = [mismatch for mismatch, here, there in pairs if here and there and here != there]
        if other:
            noun = fmt.plural(len(other), "row")
            cost = self._cost([cell.layers for cell in mismatch.row.cells] for mismatch in other)
            yield f"{noun} with another tactic in {self.here} than in {self.there}{cost}."

    def _inserted(self) -> Iterator[str]:
        if not self.comparison.of_engines:
            return
        counts = []
        for index in (self.base, self.index):
            engine = self.comparison.precisions[index]
            cost = f", {fmt.milliseconds(engine.inserted_ms)} ms" if engine.timed else ""
            counts.append(f"{fmt.plural(engine.inserted, 'layer')}{cost} in {label(index)}")
        yield f"Inserted to change a format or type: {'; '.join(counts)}."

    def _values(
        self, match: Match, report: int, value: Callable[[Layer], str | None]
    ) -> tuple[str, ...]:
        layers = self.comparison.subjects[report].layers
        values = {value(layers[index]) for index in match.members[report]}
        return tuple(sorted(name for name in values if name))


def _precision_shown(layer: Layer) -> str | None:
    return short_precision(layer.precision) if layer.precision else None


def _counted(names: Iterable[str], most: int = 8) -> list[str]:
    """Return names with their numbers, the most frequent first."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    ordered: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda item: -item[1])
    shown = [f"{count} {visible(name)}" if count > 1 else visible(name) for name, count in ordered]
    return shown if len(shown) <= most else [*shown[:most], "…"]


def _listed(values: Sequence[str]) -> str:
    return visible(" and ".join(values))


def precision_answers(comparison: Comparison, index: int) -> list[str]:
    """Return which of an engine and the base is faster, by which precision, and what spoils it.

    Empty where no precision is known.
    """
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    if not comparison.of_engines or not there.main or not here.main:
        return []
    names = [label(comparison.base), label(index)]
    if comparison.speed_up(index) is None:
        lines = [f"{names[1]} computes mainly in {here.main}, {names[0]} in {there.main}."]
    else:
        both = (
            f"both mainly in {here.main}" if there.main == here.main
            else f"{names[1]} mainly in {here.main}, {names[0]} in {there.main}"
        )  # fmt: skip
        lines = [
            f"{here.main} against {there.main}: "
            * (there.main != here.main)
            + f"{names[1]} has a speedup of {speed_up_text(comparison, index)} over {names[0]},"
            f" {both}."
        ]
    if there.timed and here.timed:
        lines += _why(comparison, index, names)
    return lines


def precision_lines(comparison: Comparison, index: int) -> Iterator[str]:
    """Yield what an engine against the base says of their precisions: an answer, then its parts."""
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    lines = precision_answers(comparison, index)
    if not lines:
        return
    yield lines[0]
    names = [label(comparison.base), label(index)]
    counts = f"{names[0]} {counts_text(there)}; {names[1]} {counts_text(here)}"
    yield f"Layers by precision: {counts}."
    if there.timed and here.timed:
        parts = [
            f"{title} {signed(here.work_ms.get(work, 0.0) - there.work_ms.get(work, 0.0))} ms"
            f"{certainty(_work(comparison, index, work))}"
            for work, title in WORK.items()
        ]
        yield f"The layers of {names[1]} against those of {names[0]}: {', '.join(parts)}."
        yield from lines[1:]


def _work(comparison: Comparison, index: int, work: str) -> Cell:
    """Return the time of one kind of work together, against that of the base."""
    return comparison.together(
        index,
        [
            [layer.index for layer in comparison.subjects[at].layers if kind_of_work(layer) == work]
            for at in (comparison.base, index)
        ],
    )


def _why(comparison: Comparison, index: int, names: Sequence[str]) -> Iterator[str]:
    """Say what eats up the gain of few bits."""
    there, here = comparison.precisions[comparison.base], comparison.precisions[index]
    heavy, converting = (_work(comparison, index, work) for work in (HEAVY, CONVERTING))
    gain = there.work_ms.get(HEAVY, 0.0) - here.work_ms.get(HEAVY, 0.0)
    extra = here.work_ms.get(CONVERTING, 0.0) - there.work_ms.get(CONVERTING, 0.0)
    if here.main not in FEW_BITS or there.main in FEW_BITS:
        return
    if gain > 0 and extra > _NOTABLE * gain:
        doubt = certainty(heavy) or certainty(converting)
        share = fmt.percent(share_percent(extra, gain))
        yield (
            f"Converting and quantizing takes back {share} % of what"
            f" {here.main} gains in {names[1]}{doubt}."
        )
    elif gain <= 0:
        yield (
            f"Its convolutions and products are no faster in {here.main} than in"
            f" {there.main}{certainty(heavy)}."
        )


_NOTABLE = 0.1


def speed_up_text(comparison: Comparison, index: int) -> str:
    """Return the speedup of a report over the base, with its interval or why there is none."""
    factor, row = comparison.speed_up(index), comparison.speed_up_row
    if factor is None or row is None:
        return fmt.UNKNOWN
    bounds, text = comparison.speed_up_bounds(index), f"{factor:.2f}× ({row.key}"
    if bounds is None:
        return f"{text}; not certain: nothing tells noise from change)"
    low, high = bounds
    span = f"{low:.2f}× to {high:.2f}×" if math.isfinite(high) else f"at least {low:.2f}×"
    return f"{text}, {span}{'; within noise' if comparison.speed_up_cell(index).noise else ''})"
