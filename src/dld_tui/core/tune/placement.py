"""The search for the places of QuantizeLinear and DequantizeLinear that give the lowest latency.

A placement gives each pattern of regions a scheme. The search changes one pattern at a time, then
two that are beside each other, as Q/DQ pairs between them cost less when both or none are
quantized; it goes from the model as it is and from the one that is quantized everywhere, as far as
no change helps. What is quantized has to be faster for sure; what is not only has to be as fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import field, replace
from itertools import product
from typing import TypeAlias

from dld_tui.core import fmt
from dld_tui.core.compare.gate import CHANGES, GateRow, Verdict
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event
from dld_tui.core.process.paths import relative_to_cwd
from dld_tui.core.tables.table import COUNT, MS, NOTE, PERCENT, TEXT, Column, Estimate, Table
from dld_tui.core.text import clip, visible
from dld_tui.core.trials import LimitReachedError, Outcome
from dld_tui.core.tune.regions import Pattern, Regions, Scheme
from dld_tui.core.tune.result import speedup_of, times_text

Placement: TypeAlias = "tuple[Scheme, ...]"
"""The scheme of each pattern."""


@dataclass(frozen=True)
class Comparison(Outcome):
    """What came of timing a placement against another."""

    row: GateRow | None = None
    """None where the new one cannot be run, or its outputs are not within the tolerance."""


Ask: TypeAlias = "Callable[[Placement, Placement], Generator[Event, None, Comparison]]"
"""Compares a new placement, the second one, with a base; raises
:class:`~dld_tui.core.trials.LimitReachedError` where there is no time."""


def floating(patterns: Sequence[Pattern], placement: Placement) -> list[str]:
    """Return the names of the nodes that stay in floating point."""
    pairs = zip(patterns, placement, strict=True)
    return [name for pattern, scheme in pairs for name in pattern.floating(scheme)]


def _turned(row: GateRow) -> GateRow:
    """Return the comparison with base and new exchanged."""

    def inverse(percent: float) -> float:
        return 100 * (100 / (100 + percent) - 1)

    verdicts = {Verdict.SLOWER: Verdict.FASTER, Verdict.FASTER: Verdict.SLOWER}
    return GateRow(
        row.key, row.new_ms, row.base_ms, inverse(row.change_percent), inverse(row.high_percent),
        inverse(row.low_percent), verdicts.get(row.verdict, row.verdict),
    )  # fmt: skip


class PlacementSearch:
    """One search.

    Args:
        regions: What there is to decide.
        ask: Compares two placements.
    """

    def __init__(self, regions: Regions, ask: Ask) -> None:
        self._patterns, self._beside = regions.patterns, sorted(regions.beside)
        self._ask = ask
        self._nothing: Placement = tuple(Scheme.FLOAT for _ in self._patterns)
        self._everything: Placement = tuple(Scheme.ALL for _ in self._patterns)
        self.best: Placement = self._nothing
        self._effects: dict[tuple[int, Scheme], Comparison] = {}
        """What quantizing a pattern by a scheme changes: float is the base."""
        self.everything: Comparison | None = None
        """The model quantized everywhere, against the original."""
        self.is_whole = False
        """Whether it came to its end; else a limit ended it."""

    def run(self) -> Generator[Event, None, None]:
        """Search. The best placement is known at any time."""
        if not self._patterns:
            self.is_whole = True
            return
        try:
            yield from self._run()
        except LimitReachedError:
            return
        self.is_whole = True

    def _run(self) -> Generator[Event, None, None]:
        self.everything = yield from self._ask(self._nothing, self._everything)
        starts = [self._nothing]
        if self.everything.row is not None:
            is_first = self._beats(self._nothing, self._everything, self.everything)
            starts.insert(0 if is_first else 1, self._everything)
        self.best = starts[0]
        placements = []
        for start in starts:
            placements.append((yield from self._descend(start, leads=start == starts[0])))
        for other in placements[1:]:
            if other != self.best and (yield from self._is_better(self.best, other)):
                self.best = other

    def _quantized(self, placement: Placement) -> int:
        every = sum(len(region) for pattern in self._patterns for region in pattern.regions)
        return every - len(floating(self._patterns, placement))

    def _beats(self, base: Placement, new: Placement, comparison: Comparison) -> bool:
        """Return whether the new placement is to be preferred."""
        row = comparison.row
        if row is None:
            return False
        if self._quantized(new) > self._quantized(base):
            return row.is_faster
        return row.change_percent <= 0

    def _is_better(self, base: Placement, new: Placement) -> Generator[Event, None, bool]:
        return self._beats(base, new, (yield from self._ask(base, new)))

    def _descend(self, state: Placement, *, leads: bool) -> Generator[Event, None, Placement]:
        """Return the placement from which no change is better.

        Args:
            state: Where to begin.
            leads: Whether what is found on the way is the best so far.
        """
        left = {state}
        places = range(len(self._patterns))  # those first that may gain most
        open_patterns = dict.fromkeys(sorted(places, key=lambda at: -self._patterns[at].share))
        while True:
            moved = yield from self._step(state, open_patterns, left)
            if moved is None:
                return state
            state = moved
            left.add(state)
            if leads:
                self.best = state

    def _step(
        self, state: Placement, open_patterns: dict[int, None], left: set[Placement]
    ) -> Generator[Event, None, Placement | None]:
        """Return the next placement, or None where there is none.

        Args:
            state: The present one.
            open_patterns: Patterns for which it is not known whether a change helps.
            left: Placements to which the search does not return: noise could lead it in circles.
        """
        while open_patterns:
            at = next(iter(open_patterns))
            for new in self._changed(state, (at,)):
                if new in left:
                    continue
                comparison = yield from self._ask(state, new)
                self._note(at, state, new, comparison)
                if self._beats(state, new, comparison):
                    open_patterns |= dict.fromkeys([at, *self._neighbours(at)])
                    return new
            del open_patterns[at]
        for pair in self._beside:
            for new in self._changed(state, pair):
                if new not in left and (yield from self._is_better(state, new)):
                    nearby = {one for at in pair for one in (at, *self._neighbours(at))}
                    open_patterns |= dict.fromkeys(sorted(nearby))
                    return new
        return None

    def _neighbours(self, at: int) -> list[int]:
        return sorted({one + other - at for one, other in self._beside if at in (one, other)})

    def _changed(self, state: Placement, places: Sequence[int]) -> Iterator[Placement]:
        """Return the placements in which all of some patterns have other schemes."""
        others = [
            [scheme for scheme in self._patterns[at].schemes if scheme is not state[at]]
            for at in places
        ]
        for schemes in product(*others):
            changed = dict(zip(places, schemes, strict=True))
            yield tuple(changed.get(at, scheme) for at, scheme in enumerate(state))

    def _note(self, at: int, base: Placement, new: Placement, comparison: Comparison) -> None:
        """Keep what quantizing a pattern changes, if the comparison tells."""
        if Scheme.FLOAT not in (base[at], new[at]):
            return
        row = comparison.row
        if new[at] is Scheme.FLOAT and row is not None:
            comparison = replace(comparison, row=_turned(row))
        scheme = new[at] if base[at] is Scheme.FLOAT else base[at]
        self._effects[at, scheme] = comparison

    def effect(self, at: int) -> Comparison | None:
        """Return what quantizing a pattern changes beside the other decisions, as last measured.

        Of one that stays in floating point it is the least that it costs.
        """
        scheme = self.best[at]
        if scheme is not Scheme.FLOAT:
            return self._effects.get((at, scheme))
        asked = [one for (pattern, _), one in self._effects.items() if pattern == at]

        def change(one: Comparison) -> float:
            return math.inf if one.row is None else one.row.change_percent

        return min(asked, key=change, default=None)


@dataclass(frozen=True)
class Decision:
    """What was decided of a pattern of regions. Fields may be added, never renamed."""

    operators: str
    """Of a region, fit for a terminal."""
    regions: int
    """How many there are that are alike."""
    nodes: tuple[str, ...]
    """The names of the nodes of the first one. Untrusted text."""
    scheme: Scheme
    share: float = 0.0
    """Of the multiply-accumulates of the model, of all these regions."""
    effect: GateRow | None = None
    """The latency of the whole model without (base) and with (new) these regions quantized, the
    others as they were decided then; None where it was not measured."""
    problem: str = ""
    """Why they cannot be quantized. Untrusted text."""


@dataclass(frozen=True)
class PlacementResult:
    """The result of the activity ``placement``. Fields may be added, never renamed."""

    model: str
    """Untrusted text, like all paths."""
    backend: str
    decisions: tuple[Decision, ...]
    kept: tuple[str, ...]
    """The names of the nodes that stay in floating point. Untrusted text."""
    everything: GateRow | None = None
    """The model quantized everywhere against the original; None where it cannot be run or its
    outputs are not within the tolerance."""
    everything_problem: str = ""
    """Why. Untrusted text."""
    confirmed: GateRow | None = None
    """The placement found against the original, measured again in separate runs; None where no
    placement seemed faster."""
    accuracy: str = ""
    """Of the placement found, for people."""
    tolerance: str = ""
    output: str | None = None
    """The model that was written; None where no placement is faster."""
    is_whole: bool = True
    """Whether the search came to its end; else a limit ended it."""
    trials: int = 0
    seconds: float = 0.0
    sets: int = 0
    """Of inputs that were compared."""
    notes: tuple[str, ...] = field(default=())
    """Untrusted text."""

    @property
    def is_faster(self) -> bool:
        """Whether the placement found is faster for sure."""
        return self.confirmed is not None and self.confirmed.is_faster

    @property
    def quantized(self) -> int:
        """The number of regions that are quantized, in whole or in part."""
        return sum(one.regions for one in self.decisions if one.scheme is not Scheme.FLOAT)


def decisions_of(search: PlacementSearch, regions: Regions) -> tuple[Decision, ...]:
    """Return what a search decided, a row a pattern."""
    rows = []
    for at, (pattern, scheme) in enumerate(zip(regions.patterns, search.best, strict=True)):
        effect = search.effect(at)
        rows.append(
            Decision(
                pattern.title, len(pattern.regions), pattern.regions[0], scheme, pattern.share,
                None if effect is None else effect.row,
                "" if effect is None or effect.row is not None else effect.problem,
            )
        )  # fmt: skip
    return tuple(rows)


def placement_lines(result: PlacementResult) -> list[str]:
    """Return the outcome first, then what is beside it. Fit for a terminal."""
    regions = sum(one.regions for one in result.decisions)
    share = f"{fmt.count(result.quantized)} of {fmt.plural(regions, 'region')} quantized"
    row = result.confirmed
    if result.is_faster and row is not None:
        speedup = speedup_of(row)
        lines = [f"{speedup.claim} faster ({speedup.interval}) with {share}{times_text(row)}."]
        if result.accuracy:
            lines.append(f"Outputs: {visible(result.accuracy)}; limit {visible(result.tolerance)}.")
        lines.append(f"Model: {visible(relative_to_cwd(result.output or ''))}")
    elif row is not None:
        said = speedup_of(row).text
        lines = [f"No faster: with {share} the confirmation says {said}. Nothing is written."]
    else:
        lines = [f"{_why_none(result, regions)}. Nothing is written."]
    if result.everything is not None:
        lines.append(f"Quantized everywhere: speedup {speedup_of(result.everything).text}.")
    elif result.everything_problem:
        lines.append(f"Quantized everywhere: {clip(visible(result.everything_problem), 160)}.")
    if not result.is_whole:
        lines.append("The limit ended the search; the same command resumes it.")
    lines += [f"Note: {visible(note)}" for note in result.notes]
    patterns = fmt.plural(len(result.decisions), "pattern")
    lines.append(
        f"{fmt.plural(regions, 'region')} of {patterns}, {fmt.plural(result.trials, 'trial')} in"
        f" {fmt.duration(result.seconds)}; {visible(result.backend)}"
    )
    return lines


def _why_none(result: PlacementResult, regions: int) -> str:
    """Return why no placement was found: no quantized region that was timed is faster, if any."""
    timed = sum(one.regions for one in result.decisions if one.effect)
    if timed:
        some = "no region" if timed == regions else f"none of {fmt.plural(timed, 'region')} timed"
        return f"No faster: {some} is faster quantized"
    refused = sum(one.regions for one in result.decisions if one.problem)
    return f"Nothing was timed: {refused:,} of {fmt.plural(regions, 'region')} cannot be quantized"


def _effect(row: Decision) -> Estimate | None:
    effect = row.effect
    if effect is None:
        return None
    return Estimate(effect.change_percent, effect.low_percent, effect.high_percent)


def _ms(figure: Callable[[GateRow], float]) -> Callable[[Decision], float | None]:
    return lambda row: None if row.effect is None else figure(row.effect)


def placement_table(result: PlacementResult) -> Table[Decision]:
    """Return a row a pattern: what was decided, and what quantizing it changes."""
    columns: tuple[Column[Decision], ...] = (
        Column("operators", "region", lambda row: row.operators, TEXT, least=16),
        Column("regions", "alike", lambda row: row.regions, COUNT, 6),
        Column("share", "MACs %", lambda row: 100 * row.share, PERCENT, 7),
        Column("scheme", "decision", lambda row: str(row.scheme), TEXT, 10),
        Column("float_ms", "model float ms", _ms(lambda effect: effect.base_ms), MS, 14,
               priority=1, help="Of the whole model, without these regions quantized."),
        Column("quantized_ms", "with these ms", _ms(lambda effect: effect.new_ms), MS, 13,
               priority=1, help="Of the whole model, with these regions quantized."),
        Column("change", "change", _effect, CHANGES, 24),
        Column("node", "first node", lambda row: row.nodes[0], TEXT, least=12, priority=2,
               keep="end"),
        Column("problem", "why not", lambda row: row.problem, NOTE, least=12),
    )  # fmt: skip
    hidden = set() if any(row.problem for row in result.decisions) else {"problem"}
    shown = tuple(column for column in columns if column.key not in hidden)
    return Table(shown, result.decisions, name="placement", title="Regions")
