"""The search for wrong tactics over builds that are only told."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from dld_tui.core.accuracy.tactics import (
    FOUND,
    NONE_BAD,
    NONE_GOOD,
    STOPPED,
    UNSTEADY,
    WORDS,
    BadTactic,
    Build,
    BuildEstimate,
    Isolation,
    ShownTactic,
    TacticPlan,
    TacticReport,
    avoiding_command,
    cost_text,
    expected_builds,
    isolate,
    suspects,
    tactic_table,
    verdict_text,
)
from dld_tui.core.events import Event, result_of
from dld_tui.core.tensorrt.tactics import Tactic
from dld_tui.core.trials import Answer, KnownOutcomes, Limits, Trials, expected_trials

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
) -> tuple[Isolation, list[TacticPlan]]:
    """Search; a build that is left alone takes the first tactics."""
    plans: list[TacticPlan] = []

    def build(plan: TacticPlan) -> Generator[Event, None, Build]:
        yield from ()
        plans.append(plan)
        choices = FIRST if plan.choices is None else plan.choices
        return Build(judge(choices), choices=choices, offers=OFFERS)

    journal = KnownOutcomes(Build, path)
    trials = Trials(build, lambda plan: plan.key, journal, limits, lambda plan: plan.why, WORDS)
    isolation = result_of(isolate(trials, tries, vary=vary))
    journal.close()
    return isolation, plans


def wrong_with(*wrong: tuple[str, int]) -> Judge:
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
    assert expected_builds(4, 9) == (4, 8 + expected_trials(9, 2)[1] + 1)
    assert set(found.suspects) >= {"layer7", "layer31"}


def test_tactics_that_are_wrong_only_together() -> None:
    def judge(choices: Mapping[str, Tactic]) -> Answer:
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
    def judge(choices: Mapping[str, Tactic]) -> Answer:
        changed = [layer for layer, one in choices.items() if one.tactic != 1]
        if choices["layer5"].tactic != 1:
            return GOOD
        return FAILED if changed else BAD

    built = 0

    def first_only(choices: Mapping[str, Tactic]) -> Answer:
        nonlocal built
        built += 1
        answer = judge(choices)
        return FAILED if answer is BAD and built > 1 else answer

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


@pytest.mark.broad
def test_a_search_resumes_at_every_line_of_its_journal(tmp_path: Path) -> None:
    wrong, path = wrong_with(("layer7", 1), ("layer31", 1)), tmp_path / "builds.jsonl"
    whole, plans = searched(wrong, vary=True, path=path)
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 2 * len(plans), "its begin and its outcome"
    for end in range(0, len(plans) + 1, 9):
        path.write_bytes(b"".join(lines[: 2 * end]))
        again, rest = searched(wrong, vary=True, path=path)
        assert again == whole
        assert len(rest) == max(1, len(plans) - end), "the last build is made again in any case"


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


def test_words() -> None:
    tactic = ShownTactic(1, 0, "", "0x1")
    data = TacticReport(
        FOUND, "replay", "TensorRT", 9, 4, 5, 0, 1, 9.0, 1, "",
        [BadTactic("a", "A", tactic, replace(tactic, shown="0x2"), True)], [],
        Path("a b.tactics"), None, "--fp16", [],
        None,
    )  # fmt: skip
    assert verdict_text(data) == "1 tactic makes the result wrong"
    command = avoiding_command(data, Path("m.onnx"))
    assert command == "dld build m.onnx --fp16 --tactic-replay 'a b.tactics'"
    command = avoiding_command(replace(data, options="", way="cache"), Path("m.onnx"))
    assert command == "dld build m.onnx --timing-cache 'a b.tactics' --editable-timing-cache"
    assert avoiding_command(replace(data, avoid=None), Path("m.onnx")) == ""
    unlike = [BadTactic("b", "B", tactic, None, False), BadTactic("c", "C", tactic, None, None)]
    table = tactic_table(replace(data, culprits=[*data.culprits, *unlike]))
    assert [[column.shown_text(row) for column in table.columns] for row in table.rows] == [
        ["A", "0x1", "0x2", "wrong"], ["B", "0x1", "", "not built"], ["C", "0x1", "", ""],
    ]  # fmt: skip
    none = replace(data, verdict=NONE_BAD, builds=3)
    assert verdict_text(none).endswith("all took the same tactics: --vary tries others")
    estimate = BuildEstimate(1, 2.0, (10, 30), (20.0, 60.0))
    assert cost_text(estimate).startswith("1 layer can have other tactics")
