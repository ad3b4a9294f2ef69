"""The search finds what is needed, nothing else, and tries no set twice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dld_tui.core.accuracy.search import (
    Kept,
    Outcome,
    SearchEstimate,
    cost_text,
    expected_trials,
    guided_set,
    minimal_set,
    ranking_trials,
    unproven_nodes,
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
    found, trials = run(NODES, is_good, dict(known))
    assert found == ("n7", "n30")
    whole = run(NODES, is_good)[1]
    assert len(trials) == len(whole) - 6


def test_many_that_are_needed_take_about_two_trials_each() -> None:
    needed = NODES[:40]
    found, trials = run(NODES, needs(*needed))
    assert found == tuple(needed)
    assert len(trials) <= 2 * len(needed) + 2 * math.log2(len(NODES)) + 4


def test_what_was_not_tried_without_is_told() -> None:
    known = {frozenset("ab"): True, frozenset("a"): False, frozenset("b"): True}
    assert unproven_nodes(frozenset("ab"), known) == ["a"]
    assert sorted(unproven_nodes(frozenset("ab"), {frozenset("ab"): True})) == ["a", "b"]


def guided(
    parts: dict[str, float],
    most: float,
    known: dict[Kept, Outcome] | None = None,
    *,
    ranks: bool = True,
) -> tuple[tuple[str, ...] | None, list[Kept]]:
    """Search where each node that is lowered adds noise; return the result and the trials."""
    search = guided_set([*parts], known, lambda _: ranks)
    trials: list[Kept] = []
    try:
        kept = next(search)
        while True:
            trials.append(kept)
            noise = sum(part for node, part in parts.items() if node not in kept)
            kept = search.send(Outcome(noise <= most, noise))
    except StopIteration as end:
        return end.value, trials


def test_what_matters_most_is_found_wherever_it_is() -> None:
    parts = dict.fromkeys(NODES, 1e-3) | {"n17": 3.0, "n50": 2.0, "n51": 1.0}
    found, trials = guided(parts, 0.5)
    assert found == ("n17", "n50", "n51"), "the worst first"
    assert len(trials) == len(set(trials)), "no set is tried twice"
    assert len(trials) <= 45, "only the blocks that matter are looked into"


def test_the_fewest_are_kept_where_noise_adds_up() -> None:
    parts = {node: 1.0 + at % 7 for at, node in enumerate(NODES)}
    found, _ = guided(parts, 100.0)
    left, fewest = sum(parts.values()), 0
    for part in sorted(parts.values(), reverse=True):
        if left > 100:
            left, fewest = left - part, fewest + 1
    assert found is not None
    assert len(found) == fewest


def test_a_guided_search_is_taken_up_again_and_ends_early() -> None:
    parts = dict.fromkeys(NODES, 1e-3) | {"n17": 3.0}
    known: dict[Kept, Outcome] = {}
    whole, trials = guided(parts, 0.5, known)
    some = dict([*known.items()][:10])
    again, rest = guided(parts, 0.5, some)
    assert again == whole == ("n17",)
    assert len(rest) == len(trials) - 10
    assert guided(parts, 10.0) == ((), [frozenset()])
    assert guided(parts, -1.0) == (None, [frozenset(), frozenset(NODES)])


@given(st.lists(st.floats(0, 4), min_size=1, max_size=12), st.floats(0, 10))
def test_nothing_can_be_taken_from_a_guided_result(noise: list[float], most: float) -> None:
    parts = {f"n{at}": part for at, part in enumerate(noise)}

    def total(kept: set[str]) -> float:
        return sum(part for node, part in parts.items() if node not in kept)

    found, trials = guided(parts, most)
    assert found is not None, "with all kept there is no noise"
    assert total(set(found)) <= most
    assert frozenset(found) in trials
    assert all(total(set(found) - {node}) > most for node in found)
    assert len(trials) <= ranking_trials(len(parts)) + expected_trials(len(parts), len(parts))[1]


def test_the_cost_is_told_in_trials_and_time() -> None:
    estimate = SearchEstimate(300, "trial", 0.05, (1, 62), 0, 20, (0.05, 3.1))
    assert "about 20 more (1.0 s) for each node" in cost_text(estimate)
    text = cost_text(replace(estimate, ranking_trials=318, trial="build"))
    assert "A build takes 50 ms" in text
    assert "up to 318 to rank them (15.9 s)" in text


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


def test_without_time_to_rank_nodes_the_search_goes_on_in_the_order_of_blocks() -> None:
    parts = dict.fromkeys(NODES, 1e-3) | {"n17": 3.0, "n50": 2.0, "n51": 1.0}
    found, trials = guided(parts, 0.5, ranks=False)
    assert found is not None
    assert sorted(found) == ["n17", "n50", "n51"]
    assert not any(len(kept) == len(parts) - 1 for kept in trials), "no node alone was lowered"
