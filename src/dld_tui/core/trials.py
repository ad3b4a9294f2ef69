"""The search for the fewest things that suffice, by trials: which nodes or layers cause it?

The things are names; what suffices, only a trial tells, which runs a model or a program. One engine
serves ``dld tactics``, ``dld accuracy --search``, ``dld reduce`` and ``--repair`` of conversions:
:class:`Trials` asks their oracle, keeps each outcome in :class:`KnownOutcomes`, observes the
limits and tells the progress; its methods decide which set to try next.

The same outcomes lead to the same trials. So an interrupted search resumes by asking again: the
journal answers what was tried.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections import Counter
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import field
from enum import Enum
from pathlib import Path
from time import monotonic
from typing import Any, Generic, TypeAlias, TypeVar

from dld_tui.core import fmt
from dld_tui.core.codec import decode, encode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.events import Event, Log, Metric, Progress, events_of
from dld_tui.core.files.work_journal import WorkJournal
from dld_tui.core.notes import NoteKind
from dld_tui.core.process.paths import cache_dir
from dld_tui.core.types import JSON

Subset: TypeAlias = "frozenset[str]"
"""Some of the things."""


class Answer(Enum):
    """What a trial says of a set."""

    SUFFICIENT = "sufficient"
    INSUFFICIENT = "insufficient"
    UNKNOWN = "unknown"
    """The trial itself failed: a crash, a timeout, a model that cannot be loaded."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    answer: Answer
    problem: str = ""
    """Why the set is not sufficient, or why that is unknown. Untrusted text."""
    noise: float = math.inf
    """How far off the result is; ranks sets that are not sufficient."""
    seconds: float = 0.0

    @property
    def is_sufficient(self) -> bool:
        """Whether the set suffices, as far as is known."""
        return self.answer is Answer.SUFFICIENT


@dataclass(frozen=True)
class RepairOutcome(Outcome):
    """What came of a conversion that keeps some nodes as they were."""

    blamed: Mapping[str, str] = field(default_factory=dict)
    """Further ones that should stay, with the reasons. Untrusted text."""


Q = TypeVar("Q", bound=Hashable)
R = TypeVar("R", bound=Outcome)
Asking: TypeAlias = "Generator[Event, None, Outcome]"


_DIGEST = 24
_BEGUN = "begun"
_CRASHES = 3
"""A trial during which so many processes ended is not made again. Fewer may have been killed."""


def stamps(paths: Iterable[Path]) -> list[JSON]:
    """Return stamps that change when one of the files does; missing files count as well."""
    rows: list[JSON] = []
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            rows.append([str(path), None, None])
            continue
        rows.append([str(path), status.st_size, status.st_mtime_ns])
    return rows


def search_name(conditions: Mapping[str, JSON]) -> str:
    """Return the name of a search, which changes with everything that the search depends on."""
    return hashlib.sha256(json.dumps(conditions, sort_keys=True).encode()).hexdigest()[:32]


class KnownOutcomes(Generic[R]):
    """The outcomes of earlier trials of a search, in a journal with one line for each.

    Args:
        kind: What a trial returns.
        path: The file, which only this search uses; None keeps nothing.
        again: Discard the outcomes of earlier searches.
    """

    def __init__(self, kind: type[R], path: Path | None, *, again: bool = False) -> None:
        self._kind = kind
        self._journal = WorkJournal(path, signed=True)
        self.known: dict[str, R] = {}
        """Outcomes by the key of their question; the last one counts."""
        self._unended: Counter[str] = Counter()
        """How often a process ended during a trial, by its key."""
        if again:
            self._journal.clear()
        else:
            self._journal.read(self._take)

    @classmethod
    def of(
        cls, kind: type[R], command: str, conditions: Mapping[str, JSON], *, again: bool = False
    ) -> KnownOutcomes[R]:
        """Return those of a search on this machine."""
        path = cache_dir() / "trials" / f"{command}-{search_name(conditions)}.jsonl"
        return cls(kind, path, again=again)

    def _take(self, entry: dict[str, Any]) -> None:
        key = str(entry["trial"])
        if _BEGUN in entry:
            self._unended[key] += 1 if entry[_BEGUN] else -1
        else:
            self.known[key] = decode(self._kind, entry["outcome"])
            del self._unended[key]

    @property
    def path(self) -> Path | None:
        """The file; None once it is known that nothing can be kept."""
        return self._journal.path

    def claim(self) -> bool:
        """Keep other processes from this search; return False where one of them makes it.

        Then nothing of this one is kept.
        """
        return self._journal.claim()

    def add(self, key: str, outcome: R) -> None:
        """Keep an outcome."""
        self.known[key] = outcome
        self._journal.add({"trial": key, "outcome": encode(outcome)})

    @contextlib.contextmanager
    def running(self, key: str) -> Iterator[None]:
        """Note that a trial runs, so that one that ends this process is known to do so."""
        self._journal.add({"trial": key, _BEGUN: True})
        try:
            yield
        except BaseException:  # it has no outcome, and this process goes on
            self._journal.add({"trial": key, _BEGUN: False})
            raise

    def crashed(self, key: str) -> R | None:
        """Return the outcome of a trial that has ended several processes; None for others."""
        if self._unended[key] < _CRASHES:
            return None
        self.add(key, self._kind(Answer.UNKNOWN, f"it ended {_CRASHES} processes"))
        return self.known[key]

    def forget(self) -> None:
        """Remove the file: the search came to its end."""
        self._journal.forget()

    def close(self) -> None:
        """Let other processes go on with the search."""
        self._journal.close()


@dataclass(frozen=True)
class Limits:
    """When a search ends early. The next one resumes there."""

    seconds: float | None = None
    """No trial begins after so long."""
    trials: int | None = None
    least: int = 1
    """So many trials are made even if they take longer."""


class LimitReachedError(Exception):
    """No further trial may be made."""


@dataclass(frozen=True)
class Words:
    """How trials are told."""

    sufficient: str
    insufficient: str
    unknown: str = "unknown"
    is_quick: bool = False
    """Whether there are so many trials that only those are told that bring a search further."""

    def of(self, outcome: Outcome) -> str:
        """Return how a trial ended. Untrusted text."""
        word = {
            Answer.SUFFICIENT: self.sufficient,
            Answer.INSUFFICIENT: self.insufficient,
            Answer.UNKNOWN: self.unknown,
        }[outcome.answer]
        return f"{word}, {outcome.problem}" if outcome.problem else word


class Order(Enum):
    """What is known of things before they are tried."""

    LIKELY_FIRST = "likely first"
    """The first few are likely to be needed, the last ones are not."""
    NEIGHBOURS = "neighbours"
    """What is needed is somewhere close together, as in a chain of nodes; sets with gaps may be
    unknown."""


@dataclass(frozen=True)
class Found:
    """The result of a search."""

    things: tuple[str, ...] | None
    """The fewest that suffice, in the order given. None when not even all of them do; or, of a
    search that is not `is_whole`, when no set was found to suffice."""
    is_whole: bool
    """Whether the search came to its end; else a limit ended it."""
    tried: Mapping[Subset, Outcome] = field(default_factory=dict)

    def _without(self, thing: str) -> Outcome | None:
        return self.tried.get(frozenset(self.things or ()) - {thing})

    @property
    def untried(self) -> list[str]:
        """The things that may not be needed: there was no trial without one of these."""
        return [thing for thing in self.things or () if self._without(thing) is None]

    @property
    def unknown(self) -> list[str]:
        """The things of which the trial without them failed itself."""
        outcomes = {thing: self._without(thing) for thing in self.things or ()}
        return [
            thing
            for thing, outcome in outcomes.items()
            if outcome is not None and outcome.answer is Answer.UNKNOWN
        ]

    @property
    def sufficient(self) -> list[Subset]:
        """The sets that suffice, the smallest first."""
        return sorted((tried for tried, out in self.tried.items() if out.is_sufficient), key=len)


_TOLD = 0.8
"""A set is told that has at most this share of the things of the last one that was."""


class Trials(Generic[Q, R]):
    """Asks an oracle, and remembers what it said.

    Args:
        oracle: Makes a trial; yields events, and returns the outcome.
        key: Names a question, the same in each process.
        journal: The outcomes of earlier searches.
        limits: Of this search.
        describe: Says what a question tries.
        words: For outcomes.
    """

    def __init__(
        self,
        oracle: Callable[[Q], Generator[Event, None, R]],
        key: Callable[[Q], str],
        journal: KnownOutcomes[R],
        limits: Limits,
        describe: Callable[[Q], str],
        words: Words,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._oracle, self._key, self._journal = oracle, key, journal
        self._limits, self._describe, self._words = limits, describe, words
        self._clock, self._began = clock, clock()
        self._asked: set[str] = set()
        self._fewest: int | None = None
        self._told = math.inf
        self.made = 0
        """Trials of this search."""
        self.replayed = 0
        """Further ones that the journal answered."""
        self.seconds = 0.0
        """What the trials of this search took."""
        self.changed: list[str] = []
        """What had another outcome when it was repeated. Untrusted text."""

    def ask(self, question: Q) -> Generator[Event, None, R]:
        """Return the outcome of a trial, which is made unless it is known.

        Raises:
            LimitReachedError: It is unknown, and a limit is reached.
        """
        key = self._key(question)
        known = self._journal.known.get(key) or self._journal.crashed(key)
        if known is None:
            if self.is_over:
                raise LimitReachedError
            return (yield from self._make(question, key, self._oracle))
        if key not in self._asked:
            self._asked.add(key)
            self.replayed += 1
        return known

    def confirm(
        self, question: Q, oracle: Callable[[Q], Generator[Event, None, R]] | None = None
    ) -> Generator[Event, None, R]:
        """Make a trial again, whatever the limits are, and tell when the outcome is another one.

        The last outcome counts.

        Args:
            question: As for :meth:`ask`.
            oracle: Another one, which is closer to the result.
        """
        key = self._key(question)
        before = self._journal.known.get(key)
        outcome = yield from self._make(question, key, oracle or self._oracle)
        if before is not None and before.answer is not outcome.answer:
            words = self._words.of(before), self._words.of(outcome)
            self.changed.append(f"{self._describe(question)}: {words[0]}, then {words[1]}")
            yield Log(
                f"the outcome changed when it was repeated: {self.changed[-1]}", NoteKind.WARNING
            )
        return outcome

    def _make(
        self, question: Q, key: str, oracle: Callable[[Q], Generator[Event, None, R]]
    ) -> Generator[Event, None, R]:
        stage = f"Trial {self.made + 1}: {self._describe(question)}"
        if self._fewest is not None:
            stage += f"; fewest so far: {self._fewest:,}"

        def told(event: Event) -> Event:
            if not isinstance(event, Progress):
                return event
            step = f" ({event.stage})" if event.stage else ""
            return Progress(self.made, self._limits.trials, "trials", f"{stage}{step}")

        yield told(Progress(0))
        begin = self._clock()
        steps: Generator[Event, None, R] = events_of(oracle(question), told)
        with self._journal.running(key):
            outcome = yield from steps
        self.seconds += self._clock() - begin
        self.made += 1
        self._asked.add(key)
        self._journal.add(key, outcome)
        if not self._words.is_quick:
            yield self._log(question, outcome)
        return outcome

    def _log(self, question: Q, outcome: R) -> Log:
        return Log(f"Trial {self.made}: {self._describe(question)}: {self._words.of(outcome)}")

    @property
    def is_over(self) -> bool:
        """Whether a limit is reached."""
        limits = self._limits
        if limits.trials is not None and self.made >= limits.trials:
            return True
        if limits.seconds is None or self.made < limits.least:
            return False
        return self._clock() - self._began >= limits.seconds

    def affords(self, count: int) -> bool:
        """Return whether half of the remaining time is enough for so many trials."""
        if self._limits.seconds is None:
            return True
        seconds = [outcome.seconds for outcome in self._journal.known.values()]
        left = self._limits.seconds - (self._clock() - self._began)
        return count * sum(seconds) / max(1, len(seconds)) < left / 2

    def smallest(
        self,
        things: Sequence[str],
        question: Callable[[Subset], Q | None],
        order: Order = Order.LIKELY_FIRST,
        known: Mapping[Subset, Outcome] | None = None,
    ) -> Generator[Event, None, Found]:
        """Find a smallest set of things that suffices.

        It is 1-minimal whatever the rule is: there was a trial without each single thing of it, and
        none of these sets was found to suffice. It was tried itself.

        Args:
            things: In their order.
            question: What asks of a set; None where nothing can be asked, which does not suffice.
            order: What their order means.
            known: Outcomes that need no trial.
        """
        search = _Search(self._asking(question), {} if known is None else dict(known))
        return (yield from search.found(search.smallest([*dict.fromkeys(things)], order)))

    def guided(
        self, things: Sequence[str], question: Callable[[Subset], Q]
    ) -> Generator[Event, None, Found]:
        """Find a smallest set as :meth:`smallest` does, trying the most important things first.

        Things are ranked by the noise when only they are left out: first blocks of neighbours,
        about as many as there are things in each, then the single things of the blocks that are
        needed, or of all blocks if these are many. For trials that are cheap.

        Args:
            things: In execution order.
            question: What asks of a set.

        Returns:
            The set, the most important thing first.
        """
        search = _Search(self._asking(question), {})
        ordered = [*dict.fromkeys(things)]
        return (yield from search.found(search.guided(ordered, self.affords)))

    def grown(
        self,
        question: Callable[[Subset, int], Q],
        blamed: Callable[[R], Collection[str]],
        rounds: int,
    ) -> Generator[Event, None, Found]:
        """Add what the outcomes blame, ever more at a time, until a set suffices.

        Args:
            question: What asks of a set, and for how many things at most to blame.
            blamed: The things that an outcome blames.
            rounds: So often something is added.

        Returns:
            The last set that was tried as the only one in `tried` where none suffices.
        """
        kept: Subset = frozenset()
        tried: dict[Subset, Outcome] = {}
        for count in range(rounds + 1):
            try:
                outcome = yield from self.ask(question(kept, 1 << count))
            except LimitReachedError:
                return Found(None, is_whole=False, tried=tried)
            tried = {kept: outcome}
            if outcome.is_sufficient:
                return Found(tuple(sorted(kept)), is_whole=True, tried=tried)
            more = kept.union(blamed(outcome))
            if more == kept or count == rounds:
                break
            kept = more
        return Found(None, is_whole=True, tried=tried)

    def _asking(self, question: Callable[[Subset], Q | None]) -> Callable[[Subset], Asking]:
        def ask(subset: Subset) -> Asking:
            asked = question(subset)
            if asked is None:
                return Outcome(Answer.INSUFFICIENT)
            made_before = self.made
            outcome = yield from self.ask(asked)
            if self.made > made_before:
                yield Metric("kept", len(subset))
            if outcome.is_sufficient and len(subset) < (self._fewest or math.inf):
                self._fewest = len(subset)
                if self._words.is_quick and self.made > made_before and len(subset) <= self._told:
                    self._told = len(subset) * _TOLD
                    yield self._log(asked, outcome)
            return outcome

        return ask


def subset_key(subset: Iterable[str]) -> str:
    """Return the key of a set, whatever else there is and in whatever order."""
    data = "\0".join(sorted(subset)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(data).hexdigest()[:_DIGEST]


_FIRST = 8
"""The number of things that are likely to be needed; the order of later ones does not matter."""
_MANY = 4
"""If more than one block in this number is needed, things of the others may matter more than some
of these."""
_Parts: TypeAlias = "Sequence[Sequence[str]]"


class _Search:
    """The moves of a search for a smallest set.

    They are delta debugging (Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing
    Input*, 2002) for things of which the first ones are likely, or which are close together: by
    bisection it finds the shortest prefix that suffices, and then leaves out of it what it can. It
    takes about ``2 log2(n)`` trials for each thing found when few are needed, and two when many
    are; ``ddmin`` takes several times as many. A set whose outcome is unknown is never taken.
    """

    def __init__(self, ask: Callable[[Subset], Asking], tried: dict[Subset, Outcome]) -> None:
        self._ask = ask
        self._tried = tried
        self._ordered: Sequence[str] = ()

    def found(
        self, steps: Generator[Event, None, tuple[str, ...] | None]
    ) -> Generator[Event, None, Found]:
        """Run a search; a limit ends it with the best that it has."""
        try:
            things = yield from steps
        except LimitReachedError:
            best = Found(None, is_whole=False, tried=self._tried)
            if not best.sufficient:
                return best
            order = {thing: at for at, thing in enumerate(self._ordered)}
            things = tuple(sorted(best.sufficient[0], key=order.__getitem__))
            return Found(things, is_whole=False, tried=self._tried)
        return Found(things, is_whole=True, tried=self._tried)

    def _outcome(self, things: Iterable[str]) -> Asking:
        subset = frozenset(things)
        if subset not in self._tried:
            self._tried[subset] = yield from self._ask(subset)
        return self._tried[subset]

    def _suffices(self, things: Iterable[str]) -> Generator[Event, None, bool]:
        return (yield from self._outcome(things)).is_sufficient

    def smallest(
        self, things: Sequence[str], order: Order
    ) -> Generator[Event, None, tuple[str, ...] | None]:
        """Return the set in the order of the things; None when not all of them suffice."""
        self._ordered = things
        if (yield from self._suffices(())):
            return ()
        if not (yield from self._suffices(things)):
            return None
        kept = [*things]
        if order is Order.LIKELY_FIRST:
            end = yield from self._shortest_prefix([[thing] for thing in kept], _FIRST)
            kept = yield from self._with_less(kept[:end])
        else:
            end = yield from self._shortest_prefix([[thing] for thing in kept])
            backwards = kept[:end][::-1]
            end = yield from self._shortest_prefix([[thing] for thing in backwards])
            kept = yield from self._without_blocks(backwards[:end][::-1])
        return tuple((yield from self._without_any(kept)))

    def guided(
        self, things: Sequence[str], affords: Callable[[int], bool]
    ) -> Generator[Event, None, tuple[str, ...] | None]:
        """Return the set, the most important thing first; None when not all of them suffice."""
        self._ordered = things
        if (yield from self._suffices(())):
            return ()
        if not (yield from self._suffices(things)):
            return None
        size = math.isqrt(len(things))
        every = frozenset(things)
        blocks = [things[at : at + size] for at in range(0, len(things), size)]
        blocks = yield from self._ranked(every, blocks)
        end = yield from self._shortest_prefix(blocks, _FIRST)
        if end * _MANY > len(blocks):
            end = len(blocks)
        likely = [thing for block in blocks[:end] for thing in block]
        if size > 1 and affords(len(likely)):
            ranked = yield from self._ranked(every, [[thing] for thing in likely])
            likely = [thing for (thing,) in ranked]
        rest = [thing for block in blocks[end:] for thing in block]
        return (yield from self.smallest([*likely, *rest], Order.LIKELY_FIRST))

    def _ranked(self, every: Subset, parts: _Parts) -> Generator[Event, None, list[Sequence[str]]]:
        """Return parts by the noise without each of them, the largest first."""
        noises: list[float] = []
        for part in parts:
            noises.append((yield from self._outcome(every.difference(part))).noise)
        return [parts[at] for at in sorted(range(len(parts)), key=lambda at: -noises[at])]

    def _shortest_prefix(self, parts: _Parts, first: int = 0) -> Generator[Event, None, int]:
        """Return how many of some parts are needed, if not none and all together suffice.

        Args:
            parts: Sets of things.
            first: Try ever more of so many first.
        """

        def suffices(count: int) -> Generator[Event, None, bool]:
            return self._suffices(thing for part in parts[:count] for thing in part)

        low, high = 0, 1 if first else len(parts)
        while high < len(parts) and not (yield from suffices(high)):
            low, high = high, high * 2 if high < first else len(parts)
        high = min(high, len(parts))
        while high - low > 1:
            middle = (low + high) // 2
            if (yield from suffices(middle)):
                high = middle
            else:
                low = middle
        return high

    def _with_less(self, kept: list[str]) -> Generator[Event, None, list[str]]:
        """Return what remains when parts are left out, the last ones first.

        They double as long as what is left suffices.
        """
        at, step = len(kept), 1
        while at > 0:
            low = max(0, at - step)
            if (yield from self._suffices(kept[:low] + kept[at:])):
                kept, at, step = kept[:low] + kept[at:], low, step * 2
                continue
            while at - low > 1:  # one of these is needed: the last one of them
                middle = (low + at) // 2
                if (yield from self._suffices(kept[:middle] + kept[at:])):
                    kept, at = kept[:middle] + kept[at:], middle
                else:
                    low = middle
            at, step = low, 1
        return kept

    def _without_blocks(self, kept: list[str]) -> Generator[Event, None, list[str]]:
        """Return what remains when ever smaller parts are left out, the last ones first.

        Down to pairs, of which one alone may be unknown.
        """
        size = len(kept) // 2
        while size > 1:
            end = len(kept)
            while end > 0:
                start = max(0, end - size)
                if (yield from self._suffices(kept[:start] + kept[end:])):
                    kept = kept[:start] + kept[end:]
                end = start
            size = 2 if size == 3 else size // 2
        return kept

    def _without_any(self, kept: list[str]) -> Generator[Event, None, list[str]]:
        """Return what remains when no single thing can be left out any more."""
        at, needed = len(kept) - 1, 0
        while needed < len(kept):
            rest = kept[:at] + kept[at + 1 :]
            if (yield from self._suffices(rest)):
                kept, needed = rest, 0
            else:
                needed += 1
            at = at - 1 if at > 0 else len(kept) - 1
        return kept


def expected_trials(things: int, needed: int = 1) -> tuple[int, int]:
    """Return the approximate least and largest number of trials for a result of a given size.

    Args:
        things: How many there are; the likely ones first.
        needed: The expected number of things in the result.
    """
    if things < 1:
        return 1, 1
    needed = min(needed, things)
    return 2, 2 + needed * (2 * math.ceil(math.log2(things + 1)) + 2)


def ranking_trials(things: int) -> int:
    """Return how many trials :meth:`Trials.guided` makes to rank things, at most."""
    size = math.isqrt(things)
    return things + math.ceil(things / size) if size > 1 else things


def limit_notes(found: Found, thing: str) -> list[str]:
    """Return that a limit ended the search, if so.

    Args:
        found: The result.
        thing: What the things are, such as "node".
    """
    if found.is_whole or found.things is None:
        return []
    return [
        f"not minimal: {len(found.untried):,} of {fmt.plural(len(found.things), thing)} may not be"
        " needed. The limit ended the search; the same command resumes it"
    ]


def unknown_notes(found: Found, thing: str) -> list[str]:
    """Return how many things may not be needed, as the trial without them failed; see above."""
    if not found.unknown:
        return []
    return [
        f"{len(found.unknown):,} of {fmt.plural(len(found.things or ()), thing)} may not be needed:"
        " the trial without them failed itself"
    ]
