"""The search for wrong tactics over builds that are only told."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dld_tui.core.accuracy.tactics import (
    FOUND,
    STOPPED,
    UNSTEADY,
    WORDS,
    Build,
    Isolation,
    TacticPlan,
    isolate,
)
from dld_tui.core.events import Event, result_of
from dld_tui.core.tensorrt.tactics import Tactic, TensorForm
from dld_tui.core.trials import Answer, KnownOutcomes, Limits, Trials
from tests.support.recorded import Recorded

LAYERS = [f"layer{number}" for number in range(40)]
OFFERS = {layer: (Tactic(1, ms=0.1), Tactic(2, ms=0.2), Tactic(3, ms=0.3)) for layer in LAYERS}
FIRST = {layer: Tactic(1) for layer in LAYERS}


GOOD, BAD, FAILED = Answer.SUFFICIENT, Answer.INSUFFICIENT, Answer.UNKNOWN
Judge = Callable[[Mapping[str, Tactic]], Answer]


def searched(
    judge: Judge,
    tries: int = 4,
    vary: bool = False,
    path: Path | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
    offers: Mapping[str, tuple[Tactic, ...]] = OFFERS,
) -> tuple[Isolation, list[TacticPlan]]:
    """Search; a build that is left alone takes the first tactics."""
    plans: list[TacticPlan] = []

    def build(plan: TacticPlan) -> Generator[Event, None, Build]:
        yield from ()
        plans.append(plan)
        first = {layer: replace(offered[0], ms=None) for layer, offered in offers.items()}
        choices = first if plan.choices is None else plan.choices
        return Build(judge(choices), choices=choices, offers=offers)

    journal = KnownOutcomes(Build, path)
    trials = Trials(build, lambda plan: plan.key, journal, limits, lambda plan: plan.why, WORDS)
    isolation = result_of(isolate(trials, tries, vary=vary))
    journal.close()
    return isolation, plans


def wrong_with(*wrong: tuple[str, int]) -> Judge:
    bad = {(layer, Tactic(number)) for layer, number in wrong}
    return lambda choices: BAD if bad & set(choices.items()) else GOOD


def test_varying_takes_other_tactics_from_the_second_build_on() -> None:
    _, plans = searched(lambda _: GOOD, vary=True)
    assert plans[0].choices is None
    assert all(plan.choices not in (None, FIRST) for plan in plans[1:])
    assert [plan.choices for plan in plans] == [
        plan.choices for plan in searched(lambda _: GOOD, vary=True)[1]
    ]


HALF: dict[str, Any] = dict.fromkeys(("inputs", "outputs"), (TensorForm("Half"),))
SMALL = {
    "a": (Tactic(1), Tactic(2), Tactic(3)), "b": (Tactic(1), Tactic(2, **HALF), Tactic(4)),
    "c": (Tactic(1, **HALF), Tactic(2)), "d": (Tactic(1),), "e": (Tactic(1), Tactic(2)),
}  # fmt: skip


def test_whole_searches(recorded: Recorded) -> None:
    """The builds of searches in order, by the tactics of each, and what they isolate."""
    first = {layer: offered[0] for layer, offered in SMALL.items()}

    def short(choices: Mapping[str, Tactic] | None) -> str:
        return "-" if choices is None else "".join(str(one.tactic) for one in choices.values())

    def together(choices: Mapping[str, Tactic]) -> Answer:
        return BAD if choices["a"].tactic == choices["e"].tactic == 1 else GOOD

    def broken(choices: Mapping[str, Tactic]) -> Answer:
        if choices["e"].tactic != 1:
            return GOOD
        return BAD if choices == first else FAILED

    def unsteady(answers: Iterator[Answer]) -> Judge:
        return lambda choices: next(answers, GOOD)

    cases: dict[str, tuple[Judge, dict[str, Any]]] = {
        "one": (wrong_with(("b", 1)), {}), "two": (wrong_with(("a", 1), ("c", 1)), {}),
        "together": (together, {}), "good": (lambda _: GOOD, {}), "varied": (lambda _: GOOD, {}),
        "bad": (lambda _: BAD, {"tries": 7}), "bad, once": (lambda _: BAD, {"tries": 1}),
        "no other tactics": (wrong_with(("d", 1)), {}), "not built": (broken, {}),
        "second wrong": (unsteady(iter([GOOD, BAD, GOOD, BAD])), {}),
        "a right one at last": (unsteady(iter([BAD, BAD, BAD, GOOD, BAD])), {}),
        "unsteady": (unsteady(iter([BAD])), {}), "failed": (lambda _: FAILED, {}),
        "varied, wrong": (wrong_with(("a", 2), ("a", 3)), {}),
        "a mixture is right": (
            lambda choices: BAD if len({one.tactic for one in choices.values()}) == 1 else GOOD,
            {"offers": {name: SMALL["e"] for name in "abc"}},
        ),
        "varied, the likely one is last": (wrong_with(("c", 2)), {}),
        "no time": (wrong_with(("a", 1)), {"limits": Limits(trials=0)}),
        "little time": (wrong_with(("a", 1), ("c", 1)), {"limits": Limits(trials=3)}),
    }  # fmt: skip
    texts = {}
    for name, (judge, more) in cases.items():
        is_varied = name.startswith("varied")
        found, plans = searched(judge, vary=is_varied, **{"offers": SMALL, **more})
        lines = [f"{short(plan.choices)}  {plan.why}" for plan in plans]
        lines += [f"{found.verdict}, whole {found.is_whole}, right {short(found.right)}"]
        lines += [f"{one.layer}: {one.tactic.tactic}, {one.instead.tactic} {one.confirmed}"
                  for one in found.culprits]  # fmt: skip
        left = {layer: short({str(at): one for at, one in enumerate(tactics)})
                for layer, tactics in found.suspects.items()}  # fmt: skip
        lines += [str(left), f"{len(found.builds)} builds", *found.notes]
        texts[name] = "\n".join(lines)
    runs = [(wrong, runs) for runs in (1, 3) for wrong in range(runs + 1)]
    texts["runs"] = str([(*one, Build(BAD, wrong_runs=one[0], runs=one[1]).changes_by_run)
                         for one in runs])  # fmt: skip
    recorded("whole_tactic_searches", texts)


def test_a_limit_ends_a_search_with_what_it_has() -> None:
    wrong = wrong_with(("layer7", 1), ("layer31", 1))
    found, plans = searched(wrong, limits=Limits(trials=2))
    assert (found.verdict, found.is_whole, len(plans)) == (STOPPED, False, 2)
    found, plans = searched(wrong, limits=Limits(trials=9))
    assert (found.verdict, found.is_whole, len(plans)) == (FOUND, False, 10)
    assert {"layer7", "layer31"} < {one.layer for one in found.culprits}
    assert not all(one.confirmed for one in found.culprits)
    assert "may not be needed" in found.notes[0]


def test_a_build_that_changes_is_told() -> None:
    answers = iter([BAD, GOOD])
    found, _ = searched(
        lambda choices: next(answers, BAD if choices["layer7"] == Tactic(1) else GOOD), tries=2
    )
    assert found.verdict == FOUND
    assert found.notes == ()
    made: list[object] = []

    def wrong_at_last(choices: Mapping[str, Tactic]) -> Answer:
        made.append(choices)
        return BAD if choices["layer7"] == Tactic(1) or made.count(choices) > 1 else GOOD

    found, _ = searched(wrong_at_last)
    assert found.verdict == UNSTEADY
    assert found.notes[0].endswith("right, then wrong")
