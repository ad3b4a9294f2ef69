"""The search finds what is needed, nothing else, and tries no set twice."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.accuracy.search import (
    Kept,
    as_record,
    expected_trials,
    from_record,
    minimal_set,
)

NODES = [f"n{number}" for number in range(64)]


def run(
    suspects: list[str], is_good: Callable[[Kept], bool], known: dict[Kept, bool] | None = None
) -> tuple[tuple[str, ...] | None, list[Kept]]:
    search = minimal_set(suspects, known)
    trials: list[Kept] = []
    try:
        kept = next(search)
        while True:
            trials.append(kept)
            kept = search.send(is_good(kept))
    except StopIteration as end:
        return end.value, trials


def needs(*names: str) -> Callable[[Kept], bool]:
    return lambda kept: kept >= set(names)


@pytest.mark.parametrize(
    "needed", [(), ("n0",), ("n63",), ("n3", "n40"), ("n1", "n2", "n3", "n60"), tuple(NODES[:20])]
)
def test_what_is_needed_is_found(needed: tuple[str, ...]) -> None:
    found, trials = run(NODES, needs(*needed))
    assert found == needed
    assert len(trials) == len(set(trials)), "no set is tried twice"


def test_the_worst_suspects_are_tried_first() -> None:
    _, few = run(NODES, needs("n0", "n1"))
    _, many = run(NODES[::-1], needs("n0", "n1"))
    assert len(few) <= 8
    assert len(few) < len(many)


def test_when_all_are_not_enough() -> None:
    found, trials = run(NODES, lambda kept: False)
    assert found is None
    assert len(trials) == 2


def test_either_of_two_is_enough() -> None:
    found, _ = run(NODES, lambda kept: bool(kept & {"n5", "n9"}))
    assert found == ("n5",)


def test_trials_can_be_taken_up_again() -> None:
    is_good = needs("n7", "n30")
    known: dict[Kept, bool] = {}
    search = minimal_set(NODES, known)
    kept = next(search)
    for _ in range(6):
        kept = search.send(is_good(kept))
    search.close()
    assert len(known) == 6
    again = from_record(json.loads(json.dumps(as_record(known))))
    assert again == known
    found, trials = run(NODES, is_good, again)
    assert found == ("n7", "n30")
    whole = run(NODES, is_good)[1]
    assert len(trials) == len(whole) - 6


def test_damaged_records_are_left_out() -> None:
    assert from_record([["a"], True, "b", False, ["c"], "x", ["d"]]) == {frozenset("a"): True}


@given(
    st.lists(st.sets(st.sampled_from(NODES[:12]), max_size=4), max_size=4),
    st.permutations(NODES[:12]),
)
def test_nothing_can_be_taken_away(good: list[set[str]], order: list[str]) -> None:
    """Any monotone rule: a set is good when it holds one of some sets."""

    def is_good(kept: Kept) -> bool:
        return any(kept >= one for one in good)

    found, trials = run(order, is_good)
    if not good:
        assert found is None
        return
    assert found is not None
    assert is_good(frozenset(found))
    assert frozenset(found) in trials
    assert not any(is_good(frozenset(found) - {name}) for name in found)


@given(st.dictionaries(st.frozensets(st.sampled_from("abcde")), st.booleans()))
def test_it_ends_for_any_rule(rule: dict[Kept, bool]) -> None:
    found, _ = run(list("abcde"), lambda kept: rule.get(kept, False))
    if found is not None:
        assert rule.get(frozenset(found), False)


@pytest.mark.parametrize("suspects", [1, 10, 300, 2000])
@pytest.mark.parametrize("needed", [0, 1, 3])
def test_the_expected_number_of_trials_holds(suspects: int, needed: int) -> None:
    names = [str(number) for number in range(suspects)]
    step = max(1, suspects // 4)
    wanted = names[::step][:needed]
    _, trials = run(names, needs(*wanted))
    most = expected_trials(suspects, max(1, len(wanted)))[1]
    assert len(trials) <= most
