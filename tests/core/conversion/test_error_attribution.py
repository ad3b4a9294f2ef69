"""Which nodes are to blame for wrong values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dld_tui.core.accuracy.result import AccuracyRow
from dld_tui.core.accuracy.statistics import compare
from dld_tui.core.conversion.accuracy_criteria import FLOAT16, FP16
from dld_tui.core.conversion.error_attribution import (
    MeasuredErrors,
    failing_nodes,
    first_failing_node,
    nodes_to_keep,
)
from dld_tui.core.conversion.result import ComparedValues, NotCompared, OutputError, values_lines
from dld_tui.core.model.document import Document
from tests.support import models

GOOD = np.array([1.0, 2.0])
INFINITE = np.array([1.0, np.inf])
FAR = np.array([5.0, -9.0])


@pytest.fixture
def document(tmp_path: Path) -> Iterator[Document]:
    with closing(Document.open(models.write(tmp_path, models.CHAIN))) as opened:
        yield opened


def row(name: str, other: Any, reference: Any = GOOD) -> AccuracyRow:
    error = compare(reference, other, FLOAT16.tolerance)
    return AccuracyRow(
        name, name, "", "", 0, name == "y", "", FLOAT16.tolerance.problem(error) or "", error
    )


def findings(
    document: Document,
    values: Mapping[str, Any],
    ranges: Mapping[str, float] | None = None,
    clipped: Mapping[str, float] | None = None,
) -> MeasuredErrors:
    rows = [row(name, other) for name, other in values.items()]
    return MeasuredErrors(document, rows, ranges or {}, clipped or {}, FP16)


def names(found: MeasuredErrors, kept: tuple[str, ...] = (), most: int = 1) -> list[str]:
    nodes = [found.document.main.find(name) for name in kept]
    chosen = nodes_to_keep(found, [node for node in nodes if node is not None], most)
    return [node.name for node in chosen]


def test_what_overflows_is_named_with_its_range_and_kept_with_its_neighbours(
    document: Document,
) -> None:
    found = findings(
        document, {"a": GOOD, "b": GOOD, "c": INFINITE, "y": INFINITE}, {"c": 123_456.0}
    )
    first = first_failing_node(found)
    assert first is not None
    assert (first.node, first.op_type) == ("third", "Mul")
    assert first.reason == "'c' becomes infinite or NaN, in the original it is up to 1.235e+05"
    assert names(found) == ["third", "last", "second"]
    assert names(found, ("third", "last", "second")) == [], "what was Inf on its way adds nothing"


def test_a_weight_out_of_range_is_blamed_on_the_node_that_takes_it(document: Document) -> None:
    values = {"a": GOOD, "b": FAR, "c": FAR, "y": FAR}
    found = findings(document, values, clipped={"w": 1e6})
    first = first_failing_node(found)
    assert first is not None
    assert first.node == "second"
    assert first.reason == "its weight 'w' reaches 1e+06, and float16 ends at 65,504"
    assert names(found) == ["second"]


def test_else_the_noisiest_nodes_are_kept_and_then_what_they_take(document: Document) -> None:
    found = findings(document, {"a": GOOD, "b": GOOD * 1.001, "c": FAR, "y": FAR})
    assert names(found) == ["third"]
    assert names(found, ("third",)) == ["second"]
    assert [one.node for one in failing_nodes(nodes_to_keep(found, (), 5))] == [
        "third", "second"
    ]  # fmt: skip


def test_where_no_tensor_is_wrong_alone_the_noisiest_node_is_named(document: Document) -> None:
    first = first_failing_node(findings(document, {"a": GOOD, "b": GOOD * 1.0001, "c": GOOD}))
    assert first is not None
    assert (first.node, first.reason) == ("second", "'b' is less exact (signal to noise 80 dB)")
    assert first_failing_node(findings(document, {})) is None


def test_single_elements_are_no_problem_when_there_is_little_noise() -> None:
    many = np.full(10_000, 100.0)
    one_off = many.copy()
    one_off[7] = 90.0
    assert row("y", one_off, many).problem
    assert FLOAT16.judged(row("y", one_off, many)).problem == ""
    assert FLOAT16.judged(row("y", FAR)).problem
    assert FLOAT16.judged(row("y", INFINITE)).problem


def test_outputs_that_are_nearly_all_noise_are_wrong_however_small() -> None:
    small = np.array([2e-5, -1e-5])
    for name, other, reference, is_wrong_there in (
        ("y", small + 3e-5, small, True),
        ("y", small * 1.1, small, False),
        ("b", small + 3e-5, small, False),  # no output
        ("y", np.full(2, 1e-5), np.array([1e-8, -1e-8]), False),  # rounding errors of float32
    ):
        one = row(name, other, reference)
        assert not one.problem, "the tolerance of elements allows it"
        assert bool(FLOAT16.judged(one).problem) is is_wrong_there


def values(document: Document, other: Any) -> ComparedValues:
    found = findings(document, {"a": GOOD, "b": other, "y": other})
    last = found.rows[-1]
    is_good = not last.problem
    return ComparedValues(
        {last.name: OutputError.of(last.error, last.problem)},
        is_good,
        None if is_good else first_failing_node(found),
    )


def test_the_report_names_the_output_the_node_and_the_ways_out(document: Document) -> None:
    good = values(document, GOOD)
    assert values_lines(good) == [
        "all outputs are within the tolerance on random inputs; largest error: y differs by at"
        " most 0, exact"
    ]
    assert not good.is_wrong
    noisy = values_lines(values(document, GOOD * 1.4))
    assert noisy[0].startswith("WRONG"), "float16 is held to more"
    noisy = values_lines(replace(values(document, GOOD * 1.4), is_good=True))
    assert "outside of the tolerance on random inputs, with noise of 40%" in noisy[0]
    bad = values(document, INFINITE)
    assert bad.is_wrong
    lines = values_lines(bad)
    assert lines[0].startswith("WRONG VALUES: output y differs by at most 0")
    assert lines[1] == "  first at Add second: 'b' becomes infinite or NaN"
    assert len(lines) == 2
    assert values_lines(replace(bad, advice="do that\x1b"))[2] == "  do that\\x1b"
    assert bad.first is not None
    repaired = values_lines(replace(values(document, GOOD), repaired=[bad.first] * 14))
    assert repaired[1] == "14 nodes kept in the old type for accuracy:"
    assert repaired[14] == "  and 2 more"
    skipped = NotCompared("it is large")
    assert values_lines(skipped) == ["values were not compared: it is large"]
    assert not skipped.is_wrong
