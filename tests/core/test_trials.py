"""The search for the fewest things that suffice: any rule, any end, and the journal of trials."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dld_tui.core.events import Event, Progress
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
    ranking_trials,
    search_name,
    stamps,
    subset_key,
)

NODES = [f"n{number}" for number in range(64)]
FEW = list("abcdefgh")
YES, NO, UNKNOWN = Answer.SUFFICIENT, Answer.INSUFFICIENT, Answer.UNKNOWN
Rule = Callable[[Subset], Answer]
T = TypeVar("T")
ORDERS = pytest.mark.parametrize("order", [*Order])


class Oracle:
    """Answers by a rule, and remembers what it was asked."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.asked: list[Subset] = []

    def __call__(self, kept: Subset) -> Generator[Event, None, Outcome]:
        self.asked.append(kept)
        yield Progress(1, 2, "B", "converting")
        return Outcome(self.rule(kept), noise=0.0)


def trials_of(
    oracle: Callable[[Subset], Generator[Event, None, Outcome]],
    journal: KnownOutcomes[Outcome] | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    *,
    is_quick: bool = True,
) -> Trials[Subset, Outcome]:
    return Trials(
        oracle,
        subset_key,
        journal if journal is not None else KnownOutcomes(Outcome, None),
        limits,
        lambda kept: f"{len(kept)} kept",
        Words("good", "not good", is_quick=is_quick),
    )


def run(steps: Generator[Event, None, T]) -> tuple[T, list[Event]]:
    events: list[Event] = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return end.value, events


def smallest(
    things: Sequence[str], rule: Rule, order: Order = Order.LIKELY_FIRST
) -> tuple[Found, list[Subset]]:
    oracle = Oracle(rule)
    found, _ = run(trials_of(oracle).smallest(things, lambda kept: kept, order))
    return found, oracle.asked


def needs(*names: str) -> Rule:
    return lambda kept: YES if kept >= set(names) else NO


def every_subset(things: Sequence[str]) -> Iterator[Subset]:
    for count in range(len(things) + 1):
        yield from map(frozenset, itertools.combinations(things, count))


@ORDERS
@given(data=st.data())
def test_any_monotone_rule(order: Order, data: st.DataObject) -> None:
    """A set suffices when it holds one of some sets: the result is one of the minimal ones."""
    good = data.draw(st.lists(st.frozensets(st.sampled_from(FEW), max_size=4), max_size=4))
    things = data.draw(st.permutations(FEW))

    def rule(kept: Subset) -> Answer:
        return YES if any(kept >= one for one in good) else NO

    minimal = {
        one for one in every_subset(FEW)
        if rule(one) is YES and not any(rule(one - {thing}) is YES for thing in one)
    }  # fmt: skip
    found, asked = smallest(things, rule, order)
    assert len(asked) == len(set(asked)), "no set is tried twice"
    if not minimal:
        assert found.things is None
        return
    assert found.things is not None
    assert frozenset(found.things) in minimal
    assert list(found.things) == [thing for thing in things if thing in found.things]
    assert (found.is_whole, found.untried, found.unknown) == (True, [], [])


@ORDERS
@given(answers=st.lists(st.sampled_from(Answer), min_size=32, max_size=32))
def test_any_rule_at_all(order: Order, answers: list[Answer]) -> None:
    """Not monotone, and with trials that fail: the claims hold for the very outcomes."""
    table = dict(zip(every_subset(FEW[:5]), answers, strict=True))
    found, asked = smallest(FEW[:5], table.__getitem__, order)
    assert len(asked) == len(set(asked))
    if found.things is None:
        assert table[frozenset()] is not YES
        assert table[frozenset(FEW[:5])] is not YES
        return
    kept = frozenset(found.things)
    assert table[kept] is YES
    without = {thing: table[kept - {thing}] for thing in found.things}
    assert YES not in without.values()
    assert found.unknown == [thing for thing in found.things if without[thing] is UNKNOWN]
    assert found.untried == []


@ORDERS
@pytest.mark.parametrize(
    "needed", [(), ("n0",), ("n63",), ("n3", "n40"), ("n1", "n2", "n3", "n60"), tuple(NODES[:20])]
)
def test_exactly_what_is_needed_is_found(needed: tuple[str, ...], order: Order) -> None:
    assert smallest(NODES, needs(*needed), order)[0].things == needed


def test_the_likely_things_are_tried_first() -> None:
    _, few = smallest(NODES, needs("n0", "n1"))
    _, many = smallest(NODES[::-1], needs("n0", "n1"))
    assert len(few) <= 8
    assert len(few) < len(many)


def test_many_that_are_needed_take_about_two_trials_each() -> None:
    found, asked = smallest(NODES, needs(*NODES[:40]))
    assert found.things == tuple(NODES[:40])
    assert len(asked) <= 2 * 40 + 2 * math.log2(len(NODES)) + 4


def test_one_neighbour_of_many_takes_few_small_trials() -> None:
    names = [f"{number}" for number in range(4096)]
    found, asked = smallest(names, needs("1234"), Order.NEIGHBOURS)
    assert found.things == ("1234",)
    assert len(asked) < 30
    assert sum(map(len, asked)) < 6 * len(names), "halves, so that trials become cheap"


def guided(
    parts: dict[str, float],
    most: float,
    limits: Limits = Limits(),  # noqa: B008
) -> tuple[Found, list[Subset]]:
    """Search where each thing that is left out adds noise."""
    asked: list[Subset] = []

    def oracle(kept: Subset) -> Generator[Event, None, Outcome]:
        yield from ()
        asked.append(kept)
        noise = sum(part for node, part in parts.items() if node not in kept)
        return Outcome(YES if noise <= most else NO, noise=noise, seconds=1.0)

    trials = trials_of(oracle, limits=limits)
    return run(trials.guided([*parts], lambda kept: kept))[0], asked


def test_what_matters_most_is_found_wherever_it_is() -> None:
    parts = dict.fromkeys(NODES, 1e-3) | {"n17": 3.0, "n50": 2.0, "n51": 1.0}
    found, asked = guided(parts, 0.5)
    assert found.things == ("n17", "n50", "n51"), "the worst first"
    assert len(asked) == len(set(asked)), "no set is tried twice"
    assert len(asked) <= 45, "only the blocks that matter are looked into"
    for few in (["n1", "n2", "n3", "n4"], ["n1", "n2"], ["n2"]):  # blocks of two, and of one
        part = {"n1": 1.0, "n2": 3.0}
        worst = sorted({*few} & {*part}, key=part.__getitem__, reverse=True)
        assert guided({node: part.get(node, 0.0) for node in few}, 0.5)[0].things == (*worst,)
    assert guided(parts, 10.0)[0].things == ()
    assert guided(parts, -1.0)[0].things is None


@given(st.lists(st.floats(0, 4), min_size=1, max_size=12), st.floats(0, 10))
def test_nothing_can_be_taken_from_a_guided_result(noise: list[float], most: float) -> None:
    parts = {f"n{at}": part for at, part in enumerate(noise)}

    def total(kept: Subset) -> float:
        return sum(part for node, part in parts.items() if node not in kept)

    found, asked = guided(parts, most)
    assert found.things is not None, "with all kept there is no noise"
    kept = frozenset(found.things)
    assert total(kept) <= most
    assert kept in asked
    assert all(total(kept - {node}) > most for node in kept)
    assert len(asked) <= ranking_trials(len(parts)) + expected_trials(len(parts), len(parts))[1]


def search(path: Path, oracle: Oracle, order: Order = Order.LIKELY_FIRST) -> Found:
    journal = KnownOutcomes(Outcome, path)
    trials = trials_of(oracle, journal)
    found, _ = run(trials.smallest(FEW, lambda kept: kept, order))
    assert trials.made + trials.replayed == len(found.tried)
    journal.close()
    return found


@pytest.mark.broad
@ORDERS
def test_a_search_resumes_at_every_cut_of_its_journal(order: Order, tmp_path: Path) -> None:
    """As after a kill at any byte that was written: the same result, and no trial twice."""

    def rule(kept: Subset) -> Answer:
        return UNKNOWN if kept == frozenset("bc") else needs("c", "f")(kept)

    path = tmp_path / "s.jsonl"
    oracle = Oracle(rule)
    whole = search(path, oracle, order)
    data = path.read_bytes()
    ends = [at + near for at, byte in enumerate(data) if byte == 10 for near in (0, 1, 2)]
    for end in sorted({0, *ends[:-1], *range(1, len(data), 97)}):
        path.write_bytes(data[:end])
        known = sum(b'"outcome"' in line for line in data[:end].split(b"\n")[:-1])
        rest = Oracle(rule)
        found = search(path, rest, order)
        assert found == whole
        # A line whose end alone is missing counts.
        assert len(oracle.asked) - len(rest.asked) in (known, known + 1)
        assert search(path, last := Oracle(rule), order) == whole
        assert last.asked == [], "what was added behind a cut line is read again"


@settings(max_examples=60)
@given(place=st.floats(0, 0.999), bit=st.integers(0, 7))
def test_a_line_that_is_damaged_is_tried_again(
    tmp_path_factory: pytest.TempPathFactory, place: float, bit: int
) -> None:
    path = tmp_path_factory.mktemp("j") / "s.jsonl"
    oracle = Oracle(needs("c", "f"))
    whole = search(path, oracle)
    data = bytearray(path.read_bytes())
    data[int(place * len(data))] ^= 1 << bit
    path.write_bytes(bytes(data))
    rest = Oracle(needs("c", "f"))
    assert search(path, rest) == whole
    assert len(rest.asked) <= 2, "a changed end of a line costs two lines"


def test_a_trial_that_fails_by_an_error_or_is_cancelled_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    for _ in range(3):
        journal, oracle = KnownOutcomes(Outcome, path), Oracle(lambda kept: NO)
        steps = trials_of(oracle, journal).smallest(FEW, lambda kept: kept)
        while not oracle.asked:
            next(steps)
        steps.close()
        journal.close()
        assert oracle.asked == [frozenset()]
    assert KnownOutcomes(Outcome, path).crashed(subset_key(())) is None


def test_lines_of_other_searches_and_other_files_are_left_out(tmp_path: Path) -> None:
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.jsonl"
    search(other, Oracle(lambda kept: YES))
    mine.write_bytes(other.read_bytes() + b"\xff\xfe\x00\n{}\n[1, 2]\nnull\n" + b"x " * 9)
    rest = Oracle(needs("c"))
    assert search(mine, rest).things == ("c",)
    assert len(rest.asked) == len(set(rest.asked)) > 2
    assert search(mine, last := Oracle(needs("c"))).things == ("c",)
    assert last.asked == []


def test_a_journal_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert search(tmp_path / "file" / "s.jsonl", Oracle(needs("c"))).things == ("c",)


def test_the_name_of_a_search_follows_its_files(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    first = search_name({"files": stamps([file])})
    file.write_text("model")
    assert search_name({"files": stamps([file])}) != first
    assert search_name({"files": stamps([file])}) == search_name({"files": stamps([file])})
