"""Verdicts of gates and of requirements in all their forms, with what is recorded beside."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dld_tui.core.compare.gate import (
    GateResult,
    Pair,
    RunFigures,
    changed_nodes,
    gate_bars,
    gate_result,
    gate_table,
    junit,
    markdown,
    more_nodes,
)
from dld_tui.core.compare.requirements import (
    LOOKS,
    QUANTITIES,
    Figures,
    RequirementsResult,
    is_decided,
    judge,
    parse_requirement,
    requirements_bars,
    requirements_junit,
    requirements_markdown,
    requirements_table,
)
from dld_tui.core.errors import UsageError
from dld_tui.core.tables.rendering import text_lines
from dld_tui.core.tables.table import Table
from tests.support.recorded import Recorded, settled

HOSTILE = "/a`b|\x1b[31m<i>"


def runs(
    factor: float,
    count: int = 8,
    spread: float = 0.002,
    base: Mapping[str, float] | None = None,
    new: Mapping[str, float] | None = None,
    waited: float | None = None,
) -> list[Pair]:
    """Return pairs whose ratios lie about a factor, and whose nodes take so long."""
    pairs = []
    for at in range(count):
        off = 1 + spread * (at % 5 - 2)
        before, after = (
            RunFigures(ms, {name: time * off for name, time in (nodes or {}).items()}, waited)
            for ms, nodes in ((10.0 + at / 10, base), ((10.0 + at / 10) * factor * off, new))
        )
        pairs.append(Pair(before, after, after.ms / before.ms))
    return pairs


NODES = {
    "/a/conv": 4.0,
    "/a/relu": 1.0,
    HOSTILE: 2.0,
    "/b/same": 0.5,
    "/b/gone": 1.0,
    "/tiny": 1e-4,
}
CHANGED = {
    "/a/conv": 6.0,
    "/a/relu": 0.5,
    HOSTILE: 1.0,
    "/b/same": 0.5,
    "/b/new": 0.7,
    "/small": 1e-4,
}
MANY = {f"/n{at}": 1.0 for at in range(24)}


def gates() -> dict[str, GateResult]:
    slower = {name: ms * (1.5 + at / 10) for at, (name, ms) in enumerate(MANY.items())}
    return {
        "slower": gate_result("base.onnx", HOSTILE, runs(1.1, base=NODES, new=CHANGED), 2.0),
        "faster": gate_result("a b", "`x", runs(0.9, base=NODES, new=NODES)),
        "many": gate_result("a", "b", runs(1.5, base=MANY, new=slower), 0.5, 1.0),
        "same": gate_result("a", "b", runs(1.0), 0.0, 5.0),
        "allowed": gate_result("a", "b", runs(1.03), 5.0),
        "wide": gate_result("a", "b", runs(1.02, 6, 0.1), 1.0),
        "not reached": gate_result("a", "b", runs(1.0, 8, 0.05), 1.0, 0.5),
        "stopped": gate_result("a", "b", runs(1.0, 8, 0.05), 1.0, 0.5, "7 of 9 pairs: <why>"),
        "few": gate_result("a", "b", runs(1.2, 3), 2.0),
        "none": gate_result("a", "b", [], 2.0, stopped=f"0 of 6 pairs: {HOSTILE}"),
        "lone": gate_result("a", "b", runs(1.0, base={"x": 3.0}, new={"y": 2.0})),
    }  # fmt: skip


def styled(table: Table[Any]) -> list[str]:
    """Return the rows of a table, with the styles of its cells."""
    lines = [table.title, *text_lines(table)]
    for row in table.rows:
        cells = [f"{column.key} {column.value(row)} {column.style_of(row)}"
                 for column in table.columns]  # fmt: skip
        lines.append("; ".join(cells))
    return lines


def test_whole_gates(recorded: Recorded) -> None:
    texts = {}
    for name, result in gates().items():
        lines = [result.line, str(result.outcome), str(result.so_far), more_nodes(result)]
        lines += [str((result.is_regression, result.is_undecided, len(changed_nodes(result))))]
        lines += [*styled(gate_table(result)), *styled(gate_bars(result))]
        lines += [markdown(result), junit(result).replace("><", ">\n<")]
        texts[name] = settled("\n".join(lines))
    recorded("whole_gates", texts)


SOME = tuple(30.0 + at for at in range(LOOKS[0]))
JUDGED: Sequence[tuple[str, Figures]] = [
    ("p95 <= 40 ms", Figures(SOME)), ("p95 <= 36 ms", Figures(SOME)),
    ("p95 < 36 ms", Figures(SOME)), ("median >= 30 ms", Figures(SOME)),
    ("median > 30 ms", Figures(SOME)), ("fps >= 33", Figures(SOME)),
    ("fps >= 300", Figures(SOME)), ("mean <= 0 ms", Figures(SOME)),
    ("max <= 35 ms", Figures(SOME[:5])), ("min <= 35 ms", Figures(SOME[:6])),
    ("size <= 1 kB", Figures((1000.0,))), ("size < 1 kB", Figures((1000.0,))),
    ("peak memory <= 1 MiB", Figures((2e6,))), ("nodes <= 3", Figures((1234.0,))),
    ("snr >= 30 dB", Figures((31.25,))), ("snr >= 30 dB", Figures((float("inf"),))),
    ("snr < 30", Figures((float("inf"),))), ("cosine > 0.999", Figures((0.9991234567,))),
    ("cosine > 0.5", Figures()), ("opset >= 17", Figures(problem=f"no {HOSTILE}")),
]  # fmt: skip


def test_whole_requirements(recorded: Recorded) -> None:
    judged = tuple(judge(parse_requirement(text), figures) for text, figures in JUDGED)
    texts = {"judged": settled("\n".join(str((one, one.of_limit)) for one in judged))}
    results = {
        "all": judged, "passed": judged[:1], "undecided": judged[-2:], "few": judged[8:9],
    }  # fmt: skip
    for name, some in results.items():
        result = RequirementsResult(f"{HOSTILE}.onnx", some)
        lines = [result.line, str(result.outcome), str(is_decided(some))]
        lines += [*styled(requirements_table(result)), *styled(requirements_bars(result))]
        lines += [requirements_markdown(result), requirements_junit(result)]
        texts[name] = settled("\n".join(lines)).replace("><", ">\n<")
    recorded("whole_requirements", texts)


def test_whole_texts_of_requirements(recorded: Recorded) -> None:
    """Each quantity in each unit, its synonyms, and what is no requirement."""
    written = [
        f"{'p95' if name == 'percentile' else name} <= 2 {unit}"
        for name, quantity in QUANTITIES.items() for unit in quantity.units
    ] + [
        " Latency<500us", "p50 >= 1e2 ms", "p99.9 < 1 S", "throughput > 30",
        "peak  Memory <= 1.5 GiB",
        "", "p95", "p95 = 3 ms", "p95 <= ms", "p95 <= 3", "p95 <= 3 MB", "size <= 3 ms", "< 3 ms",
        "p100 <= 1 ms", "speed <= 3 ms", "percentile <= 3 ms", "snr >= 1e dB", "p95 <= 3 ms ms",
        "1 <= p95 <= 3 ms", "nodes <= 3 ms", f"size <= 3 {HOSTILE}", "cosine > 1 dB",
    ]  # fmt: skip
    lines = []
    for text in written:
        try:
            found = parse_requirement(text)
        except UsageError as error:
            lines.append(f"{text!r}: {error}")
        else:
            lines.append(
                f"{text!r}: {found.text!r} {found.figure} {found.percent} {found.relation}"
                f" {found.limit} {found.quantity.text(found.limit)} {found.quantity.source.value}"
            )
    recorded("whole_texts_of_requirements", {"texts": "\n".join(lines)})
