"""The search for wrong tactics over builds that are only told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from dld_tui.core.accuracy.tactics import (
    BAD,
    FAILED,
    FOUND,
    GOOD,
    NONE_BAD,
    NONE_GOOD,
    UNSTEADY,
    BadTactic,
    Build,
    BuildEstimate,
    Isolation,
    Plan,
    ShownTactic,
    TacticReport,
    avoiding_command,
    cost_text,
    expected_builds,
    isolate,
    suspects,
    verdict_text,
)
from dld_tui.core.accuracy.trial_journal import TrialJournal, search_name, stamps
from dld_tui.core.tensorrt.tactics import Tactic

LAYERS = [f"layer{number}" for number in range(40)]
OFFERS = {layer: (Tactic(1, ms=0.1), Tactic(2, ms=0.2), Tactic(3, ms=0.3)) for layer in LAYERS}
FIRST = {layer: Tactic(1) for layer in LAYERS}


def searched(
    judge: Callable[[Mapping[str, Tactic]], str], tries: int = 4, vary: bool = False
) -> tuple[Isolation, list[Plan]]:
    """Answer a search; a build that is left alone takes the first tactics."""
    steps, plans = isolate(tries, vary=vary), []
    try:
        plan = next(steps)
        while True:
            plans.append(plan)
            choices = FIRST if plan.choices is None else plan.choices
            plan = steps.send(Build(judge(choices), choices=choices, offers=OFFERS))
    except StopIteration as end:
        found: Isolation = end.value
        return found, plans


def wrong_with(*wrong: tuple[str, int]) -> Callable[[Mapping[str, Tactic]], str]:
    bad = {(layer, Tactic(number)) for layer, number in wrong}
    return lambda choices: BAD if bad & set(choices.items()) else GOOD


def test_wrong_tactics_are_isolated_with_few_builds() -> None:
    wrong = (("layer7", 1), ("layer31", 1))
    found, plans = searched(wrong_with(*wrong))
    assert found.verdict == FOUND
    assert {(one.layer, one.tactic.tactic) for one in found.culprits} == set(wrong)
    assert all(one.confirmed for one in found.culprits)
    assert {layer for layer, one in found.right.items() if one.tactic != 1} == {"layer7", "layer31"}
    assert len(plans) <= expected_builds(4, len(LAYERS))[1]
    assert set(found.suspects) >= {"layer7", "layer31"}


def test_tactics_that_are_wrong_only_together() -> None:
    def judge(choices: Mapping[str, Tactic]) -> str:
        together = choices["layer3"].tactic == choices["layer9"].tactic == 1
        return BAD if together else GOOD

    found, _ = searched(judge)
    assert found.verdict == FOUND
    assert len(found.culprits) == 1, "without one of the two it is right"
    assert found.culprits[0].layer in ("layer3", "layer9")


def test_the_other_ends() -> None:
    assert searched(lambda _: GOOD)[0].verdict == NONE_BAD
    found, plans = searched(lambda _: BAD, tries=3)
    assert found.verdict == NONE_GOOD
    assert len(plans) == 4, "one wrong build, and three with other tactics"
    assert len({frozenset(plan.choices.items()) for plan in plans[1:] if plan.choices}) == 3

    answers = iter([BAD, GOOD, GOOD])
    assert searched(lambda _: next(answers))[0].verdict == UNSTEADY


def test_what_cannot_be_built_confirms_nothing() -> None:
    def judge(choices: Mapping[str, Tactic]) -> str:
        changed = [layer for layer, one in choices.items() if one.tactic != 1]
        if choices["layer5"].tactic != 1:
            return GOOD
        return FAILED if changed else BAD

    built = 0

    def first_only(choices: Mapping[str, Tactic]) -> str:
        nonlocal built
        built += 1
        verdict = judge(choices)
        return FAILED if verdict == BAD and built > 1 else verdict

    found, _ = searched(first_only)
    assert [(one.layer, one.confirmed) for one in found.culprits] == [("layer5", False)]


def test_varying_takes_other_tactics_from_the_second_build_on() -> None:
    _, plans = searched(lambda _: GOOD, vary=True)
    assert plans[0].choices is None
    assert all(plan.choices not in (None, FIRST) for plan in plans[1:])
    assert [plan.choices for plan in plans] == [
        plan.choices for plan in searched(lambda _: GOOD, vary=True)[1]
    ]


def test_suspects_occur_in_wrong_builds_only() -> None:
    one, two = Tactic(1), Tactic(2)
    builds = [
        Build(GOOD, choices={"a": one, "b": one}),
        Build(BAD, choices={"a": two, "b": one}),
        Build(FAILED, choices={"b": two}),
    ]
    assert suspects(builds) == {"a": (two,)}


def test_a_journal_answers_until_the_search_asks_for_something_else(tmp_path: Path) -> None:
    path = tmp_path / "builds.jsonl"
    journal = TrialJournal(path)
    plans = [Plan(None, "first"), Plan({"a": Tactic(1, 7, name="k", ms=0.5)}, "second")]
    builds = [
        Build(GOOD, choices={"a": Tactic(2)}, offers=OFFERS, titles={"a": "A"}, seconds=1.5),
        Build(BAD, "y is off", wrong_runs=1, runs=2, missing=("b",)),
    ]
    for plan, build in zip(plans, builds, strict=True):
        assert journal.take(plan) is None
        journal.add(plan, build)
    again = TrialJournal(path)
    assert [again.take(plan) for plan in plans] == builds
    assert builds[1].changes_by_run

    other = TrialJournal(path)
    assert other.take(plans[0]) == builds[0]
    new = Plan({"a": Tactic(3)}, "another")
    assert other.take(new) is None
    other.add(new, builds[0])
    with path.open("a") as file:
        file.write('{"plan": "cut')
    last = TrialJournal(path)
    assert [last.take(plans[0]), last.take(new)] == [builds[0], builds[0]]


def test_another_file_or_setting_is_another_search(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    missing = stamps([file])
    file.write_bytes(b"1")
    assert stamps([file]) != missing
    assert search_name({"files": missing}) != search_name({"files": stamps([file])})


def test_words() -> None:
    tactic = ShownTactic(1, 0, "", "0x1")
    data = TacticReport(
        FOUND, "replay", "TensorRT", 9, 4, 5, 0, 1, 9.0, 1, "",
        [BadTactic("a", "a", tactic, tactic, True)], [], Path("a b.tactics"), None, "--fp16", [],
        None,
    )  # fmt: skip
    assert verdict_text(data) == "1 tactic makes the result wrong"
    command = avoiding_command(data, Path("m.onnx"))
    assert command == "dld build m.onnx --fp16 --tactic-replay 'a b.tactics'"
    command = avoiding_command(replace(data, options="", way="cache"), Path("m.onnx"))
    assert command == "dld build m.onnx --timing-cache 'a b.tactics' --editable-timing-cache"
    assert avoiding_command(replace(data, avoid=None), Path("m.onnx")) == ""
    none = replace(data, verdict=NONE_BAD, builds=3)
    assert verdict_text(none).endswith("all took the same tactics: --vary tries others")
    estimate = BuildEstimate(1, 2.0, (10, 30), (20.0, 60.0))
    assert cost_text(estimate).startswith("1 layer can have other tactics")
