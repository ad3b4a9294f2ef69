"""All that results of comparisons, searches and scores say: accuracy_texts.txt."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from dld_tui.core.accuracy import search, tactics
from dld_tui.core.accuracy.result import (
    VIEWS,
    AccuracyRow,
    Result,
    RunSide,
    accuracy_table,
    in_order,
    listed,
    match_names,
    merged,
    rows_csv,
    side_text,
    verdict,
)
from dld_tui.core.accuracy.scores import (
    DatasetScores,
    Interval,
    Score,
    loss_text,
    score_lines,
    score_table,
)
from dld_tui.core.accuracy.search import (
    KeptNode,
    PrecisionReport,
    SearchEstimate,
    kept_table,
    not_minimal_text,
)
from dld_tui.core.accuracy.tactics import (
    BadTactic,
    BuildEstimate,
    ShownTactic,
    SuspectTactics,
    TacticReport,
    avoiding_command,
    counts_text,
    tactic_table,
    verdict_text,
)
from dld_tui.core.accuracy.tensor_errors import TensorError, Tolerance
from dld_tui.core.tensorrt.tactics import REPLAY
from tests.support.recorded import Recorded, table_text

ERROR = TensorError((2, 3), 6, 0.5, 0.125, 0.25, 0.0625, 0.9999, 40.0, 3.0, outside=2)
ERRORS = {
    "some": ERROR,
    "none": TensorError((4,), 4, 0.0, 0.0, 0.0, 0.0, 1.0, None, 2.0, outside=0),
    "nearly none": TensorError((4,), 4, 1e-7, 1e-8, 1e-7, 1e-8, 1 - 3e-8, 120.25, 2.0),
    "special": TensorError(
        (1000,), 1000, 1e-3, 1e-4, None, None, None, None, 0.0, 1, 2000, 0, 3, 2004, 5
    ),
    "reference special": TensorError((2,), 2, nan_reference=1, inf_reference=1, special=2),
    "another shape": TensorError((2, 2), 0, mismatch="shapes differ: 2x2, 3", lost="2 of 4"),
    "unknown": TensorError((), 1),
    "all noise": TensorError((2,), 2, 9.0, 9.0, snr_db=-20.0),
}
TOLERANCES = (
    Tolerance(0.1, 0.2), Tolerance(1.0, 0.0), Tolerance(0.1, 0.2, cosine=0.99995),
    Tolerance(0.1, 0.2, cosine=0.9), Tolerance(0.1, 0.2, snr_db=40.5), Tolerance(0, 0, snr_db=40.0),
)  # fmt: skip


def rows() -> list[AccuracyRow]:
    return [
        AccuracyRow(
            name, f"{name}_2", f"node {at}" if at else "", f"Op{at}", at, at % 3 == 2, "atol 1",
            "too far" if at in (0, 5) else "", error,
        )
        for at, (name, error) in enumerate(ERRORS.items())
    ]  # fmt: skip


def comparison() -> str:
    result = Result(tuple(rows()), ("a remark",))
    first, second = rows()[0], replace(rows()[6], name="some", node="some")
    lines = [
        repr((result.first, result.is_good, result.growth)),
        repr([row.name for row in result.outputs]), repr([row.name for row in result.worst()]),
        repr(Result(()).first), repr(listed(rows(), 2)[-1].name), repr(len(listed(rows(), 0))),
        repr([verdict(row) for row in rows()]), rows_csv(rows()),
        *(table_text(accuracy_table(rows(), view)) for view in VIEWS),
        table_text(accuracy_table([first, second], "screen")),
        repr([first.worse(one).error for one in rows()]),
        repr([one.worse(first).error for one in rows()]),
        repr([(row.name, row.order, row.problem) for row in merged(rows()[:4], [second])]),
        repr([(row.name, row.order) for row in in_order([*reversed(rows())])]),
        repr(match_names(["a", "b", "c"], ["c", "x", "a"])),
        repr(match_names(["a", "b"], ["x", "y"])), repr(match_names(["a"], ["x", "y"])),
        *(
            side_text(RunSide("ONNX Runtime", "CPU", "all", "ORT 1, CPU", "/m/a\x1b.onnx", to))
            for to in ("none", "float16")
        ),
        *(f"{one.text}: {[one.problem(error) for error in ERRORS.values()]}" for one in TOLERANCES),
    ]  # fmt: skip
    return "\n".join(lines)


def searches() -> str:
    estimate = SearchEstimate(12, "build", 2.0, (1, 40), 0, 5, (2.0, 80.0))
    kept = (KeptNode(("main", "body"), "conv", "Conv"), KeptNode((), "end", "Add"))
    report = PrecisionReport(
        "fp16", "TensorRT", 2, 12, kept, False, 1, None, (), 10, {"y": ERROR}, 7, 61.0, estimate
    )
    return "\n".join([
        search.cost_text(estimate), search.cost_text(replace(estimate, ranking_trials=1200)),
        not_minimal_text(report), not_minimal_text(replace(report, kept=None, untried=1000)),
        table_text(kept_table(kept)),
    ])  # fmt: skip


def tactic_texts() -> str:
    shown = [ShownTactic(at, 0, f"name{at}", f"kernel {at}") for at in range(3)]
    bad = BadTactic("conv", "Conv conv", shown[0], shown[1], True)
    report = TacticReport(
        tactics.FOUND, REPLAY, "TensorRT 10.9", 9, 3, 5, 1, 4, 62.0, 7, "y differs",
        [bad, replace(bad, layer="end", instead=None, confirmed=False)],
        [SuspectTactics("conv", "Conv conv", shown[:2]), SuspectTactics("e", "E", shown[2:])],
        Path("a b/avoid.json"), None, "--fp16", [], BuildEstimate(7, 2.0, (3, 20), (6.0, 40.0)),
    )  # fmt: skip
    lines = []
    for ending in (
        tactics.FOUND,
        tactics.NONE_BAD,
        tactics.NONE_GOOD,
        tactics.STOPPED,
        "else",
        None,
    ):
        for variants, builds, culprits in ((1, 1, [bad]), (4, 9, report.culprits)):
            one = replace(
                report, verdict=ending, variants=variants, builds=builds, culprits=culprits
            )
            lines += [f"{ending}: {verdict_text(one)}", counts_text(one)]
    cache = replace(report, way="cache", options="", avoid=Path("c"))
    commands = [
        avoiding_command(one, Path("my model.onnx"))
        for one in (report, cache, replace(report, avoid=None))
    ]
    assert verdict_text(replace(report, verdict=None, estimate=None)) == ""
    tables = [table_text(tactic_table(one)) for one in (report, replace(report, culprits=[]))]
    return "\n".join([*lines, *commands, *tables, repr(tactics.expected_builds(5, 20))])


def scores() -> str:
    first = Score("/m/a.onnx", Interval(81.25, 80.0, 82.5), "ONNX Runtime")
    base = DatasetScores(
        "/data/images", "top1", "accuracy", "%", True, 2000,
        (first, Score("/m/b.onnx", Interval(79.0, 78.0, 80.0))), Interval(-2.25, -3.0, -1.5),
        2.0, 40,
    )  # fmt: skip
    variants = {
        "worse, undecided": base,
        "allowed": replace(base, most_loss=3.0),
        "not allowed": replace(base, most_loss=1.4),
        "better": replace(base, difference=Interval(2.25, 1.5, 3.0)),
        "uncertain": replace(base, difference=Interval(-0.25, -1.0, 0.5)),
        "a gain that is uncertain": replace(base, difference=Interval(0.25, -0.5, 1.0)),
        "the same": replace(base, difference=Interval(0.0, 0.0, 0.0), changed=0, most_loss=0.0),
        "alone": replace(base, scores=(first,), difference=None, changed=None, samples=20),
        "an error": replace(base, is_better_higher=False, unit="m", title="error", samples=1),
        "an error that fell": replace(
            base, is_better_higher=False, unit="", difference=Interval(-2.0, -3.0, -1.0),
            most_loss=None,
        ),
    }  # fmt: skip
    return "\n".join(
        f"{name}: {one.loss} {one.outcome}\n{loss_text(one)}\n"
        + "\n".join([*score_lines(one), table_text(score_table(one))])
        for name, one in variants.items()
    )


def test_all_that_is_said(recorded: Recorded) -> None:
    made = (comparison, searches, tactic_texts, scores)
    recorded("accuracy_texts", {one.__name__: one() for one in made})
