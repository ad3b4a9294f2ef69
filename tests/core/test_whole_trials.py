"""All trials and events of whole searches, compared with ``whole_trials.txt``."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any

from dld_tui.core.events import Event, Log, Metric, Progress, result_of
from dld_tui.core.trials import (
    Answer,
    Found,
    KnownOutcomes,
    Limits,
    Order,
    Outcome,
    Subset,
    Trials,
    Words,
    expected_trials,
    limit_notes,
    ranking_trials,
    subset_key,
    unknown_notes,
)
from tests.support.recorded import Recorded

LETTERS = "abcdefghijklmnop"
YES, NO, UNKNOWN = Answer.SUFFICIENT, Answer.INSUFFICIENT, Answer.UNKNOWN
Rule = Callable[[Subset], Answer]


def needs(names: str) -> Rule:
    return lambda kept: YES if kept >= set(names) else NO


def pairs(kept: Subset) -> Answer:
    """Know nothing of a set with one half of a pair."""
    if any((a in kept) != (b in kept) for a, b in zip(LETTERS[::2], LETTERS[1::2], strict=True)):
        return UNKNOWN
    return needs("g")(kept)


def shown(kept: Subset) -> str:
    return "".join(letter if letter in kept else "." for letter in LETTERS)


class Search:
    """Trials of a rule that take a second each, and all that is said of them."""

    def __init__(self, rule: Rule, limits: Limits, is_quick: bool, noise: dict[str, float]) -> None:
        self.now, self.lines = 0.0, list[str]()
        words = Words("good", "not good", is_quick=is_quick)
        journal = KnownOutcomes(Outcome, None)

        def oracle(kept: Subset) -> Generator[Event, None, Outcome]:
            yield Progress(1, 2, "B", "converting")
            self.now += 1.0
            answer = rule(kept)
            lost = sum(part for name, part in noise.items() if name not in kept)
            problem = "it <failed>" if answer is UNKNOWN else ""
            return Outcome(answer, problem, lost, 1.0)

        self.trials = Trials(
            oracle, subset_key, journal, limits, shown, words, clock=lambda: self.now
        )

    def run(self, steps: Generator[Event, None, Found]) -> list[str]:
        """Return a line for each event and for what was found."""
        while True:
            try:
                event = next(steps)
            except StopIteration as end:
                found: Found = end.value
                break
            if isinstance(event, Progress):
                self.lines.append(f"{event.done:g} of {event.total}: {event.stage}")
            elif isinstance(event, Metric):
                self.lines.append(f"{event.name} {event.value:g}")
            elif isinstance(event, Log):
                self.lines.append(f"{event.level.value}: {event.text}")
        # The same set is not tried twice: of two lines of a trial the second one is enough.
        lines = [line for line in self.lines if line.endswith("(converting)") or " of " not in line]
        lines.append(
            f"found {found.things} whole {found.is_whole} untried {found.untried} unknown"
            f" {found.unknown}; {[shown(kept) for kept in found.sufficient[:3]]}"
        )
        lines += limit_notes(found, "node") + unknown_notes(found, "node")
        trials = self.trials
        lines.append(f"{trials.made} made, {trials.replayed} known, {trials.seconds:g} s,"
                     f" over {trials.is_over}, {trials.changed}")  # fmt: skip
        return lines


def searched(
    rule: Rule,
    order: Order | None = Order.LIKELY_FIRST,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    noise: dict[str, float] | None = None,
    *,
    is_quick: bool = False,
    known: dict[Subset, Outcome] | None = None,
) -> str:
    """Search for the fewest letters; without an order by their noise."""
    search = Search(rule, limits, is_quick, noise or {})
    if order is None:
        return "\n".join(search.run(search.trials.guided(LETTERS, lambda kept: kept)))

    def question(kept: Subset) -> Subset | None:
        return None if kept == frozenset("ab") else kept

    return "\n".join(search.run(search.trials.smallest([*LETTERS, "a"], question, order, known)))


def test_whole_trials(recorded: Recorded) -> None:
    noise = dict.fromkeys(LETTERS, 0.001) | {"c": 3.0, "k": 2.0, "l": 1.0}

    def quiet(kept: Subset) -> Answer:
        return YES if sum(part for name, part in noise.items() if name not in kept) < 0.5 else NO

    def known(names: str, answer: Answer) -> dict[Subset, Outcome]:
        return {frozenset(names): Outcome(answer, noise=0.0)}

    texts = {
        "nothing": searched(needs("")), "never": searched(lambda kept: NO),
        "first": searched(needs("a")), "last": searched(needs("p")),
        "few": searched(needs("cjk")), "most": searched(needs("abcdefghijk")),
        "quick": searched(needs("cjk"), is_quick=True),
        "neighbours": searched(needs("gh"), Order.NEIGHBOURS),
        "apart": searched(needs("bgo"), Order.NEIGHBOURS),
        "pairs": searched(pairs, Order.NEIGHBOURS),
        "guided": searched(quiet, None, noise=noise),
        "guided, few seconds": searched(quiet, None, Limits(seconds=30), noise),
        "guided, many": searched(needs("abcdefghi"), None, noise=noise),
        "limit": searched(needs("cjk"), limits=Limits(trials=6)),
        "early limit": searched(needs("cjk"), limits=Limits(trials=1)),
        "seconds": searched(needs("cjk"), limits=Limits(seconds=4.0)),
        "at least": searched(needs("cjk"), limits=Limits(seconds=0.0, least=3)),
        "known": searched(needs("cjk"), known=known("", NO) | known(LETTERS, YES)),
    }  # fmt: skip
    recorded("whole_trials", texts)


@dataclass(frozen=True)
class Blaming(Outcome):
    blamed: tuple[str, ...] = ()


def grown(rule: Rule, rounds: int, limits: Limits = Limits()) -> str:  # noqa: B008
    """Grow a set by the first letters that it lacks, or by one that it has."""
    asked: list[str] = []

    def oracle(question: tuple[Subset, int]) -> Generator[Event, None, Blaming]:
        yield from ()
        kept, most = question
        asked.append(f"{shown(kept)} {most}")
        return Blaming(
            rule(kept), blamed=tuple([one for one in "abcdeff" if one not in kept][:most])
        )

    trials = Trials(
        oracle, lambda question: subset_key(question[0]), KnownOutcomes(Blaming, None), limits,
        lambda question: "", Words("good", "not good"),
    )  # fmt: skip
    steps = trials.grown(lambda kept, most: (kept, most), lambda out: out.blamed, rounds)
    found = result_of(steps)
    told = f"found {found.things} whole {found.is_whole} {[*map(shown, found.tried)]}"
    return "\n".join([*asked, told])


def test_whole_grown_sets(recorded: Recorded) -> None:
    recorded("whole_grown_sets", {
        "nothing": grown(needs(""), 9), "one": grown(needs("a"), 9), "three": grown(needs("c"), 9),
        "all": grown(needs("f"), 9), "never": grown(lambda kept: NO, 9),
        "two rounds": grown(lambda kept: NO, 2), "last round": grown(needs("c"), 2),
        "no round": grown(needs("a"), 0), "not known": grown(lambda kept: UNKNOWN, 3),
        "a limit": grown(lambda kept: NO, 9, Limits(trials=2)),
        "no trial": grown(lambda kept: NO, 9, Limits(trials=0)),
    })  # fmt: skip


def test_numbers_of_trials() -> None:
    found: list[Any] = [expected_trials(*about) for about in ((0,), (1,), (10, 3), (2, 5), (16, 2))]
    assert found == [(1, 1), (2, 6), (2, 32), (2, 14), (2, 26)]
    assert [ranking_trials(count) for count in (1, 3, 4, 9, 10, 17)] == [1, 3, 6, 12, 14, 22]


def test_outcomes_are_confirmed_and_what_changed_is_told() -> None:
    answers = iter([YES, YES, NO, UNKNOWN])
    search = Search(lambda kept: next(answers), Limits(trials=1), True, {})
    trials, kept = search.trials, frozenset("a")

    def told(steps: Generator[Event, None, Outcome]) -> list[str]:
        return [event.text for event in steps if isinstance(event, Log)]

    assert told(trials.ask(kept)) == told(trials.ask(kept)) == told(trials.confirm(kept)) == []
    changes = [f"{shown(kept)}: good, then not good",
               f"{shown(kept)}: not good, then unknown, it <failed>"]  # fmt: skip
    for change in changes:
        assert told(trials.confirm(kept)) == [f"the outcome changed when it was repeated: {change}"]
    assert (trials.changed, trials.made, trials.replayed) == (changes, 4, 0)
    assert trials.affords(10**6)
