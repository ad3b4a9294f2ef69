"""Which nodes are to blame for wrong values, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from dld_tui.core.accuracy.result import AccuracyRow
from dld_tui.core.accuracy.tensor_errors import compare
from dld_tui.core.conversion.accuracy_criteria import FLOAT16, FP16
from dld_tui.core.conversion.error_attribution import (
    MeasuredErrors,
    failing_nodes,
    first_failing_node,
    nodes_to_keep,
    rounded_copy,
)
from dld_tui.core.conversion.result import ComparedValues, OutputError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.serialise import skeleton_bytes
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


def blamed(found: MeasuredErrors) -> tuple[str, str, str] | None:
    first = first_failing_node(found)
    return None if first is None else (first.node, first.op_type, first.reason)


def kept(found: MeasuredErrors, already: tuple[str, ...] = (), most: int = 1) -> list[str]:
    nodes = [found.document.main.find(name) for name in already]
    chosen = nodes_to_keep(found, [node for node in nodes if node is not None], most)
    return [node.name for node in chosen]


def test_what_overflows_is_named_with_its_range_and_kept_with_its_neighbours(
    document: Document,
) -> None:
    values = {"a": GOOD, "b": GOOD, "c": INFINITE, "y": INFINITE}
    found = findings(document, values, {"c": 123_456.0})
    said = "'c' becomes infinite or NaN, in the original it is up to 1.235e+05"
    assert blamed(found) == ("third", "Mul", said)
    assert kept(found) == ["third", "last", "second"]
    assert kept(found, ("third", "last", "second")) == [], "what was Inf on its way adds nothing"


def test_a_weight_out_of_range_is_blamed_on_the_node_that_takes_it(document: Document) -> None:
    found = findings(document, {"a": GOOD, "b": FAR, "c": FAR, "y": FAR}, clipped={"w": 1e6})
    said = "its weight 'w' reaches 1e+06, and float16 ends at 65,504"
    assert blamed(found) == ("second", "Add", said)
    assert kept(found) == ["second"]


def test_else_the_noisiest_nodes_are_kept_and_then_what_they_take(document: Document) -> None:
    found = findings(document, {"a": GOOD, "b": GOOD * 1.001, "c": FAR, "y": FAR})
    assert kept(found) == ["third"]
    assert kept(found, ("third",)) == ["second"]
    both = [one.node for one in failing_nodes(nodes_to_keep(found, (), 5))]
    assert both == ["third", "second"]
    found = findings(document, {"a": GOOD, "b": GOOD * 1.0001, "c": GOOD})  # none is wrong alone
    assert blamed(found) == ("second", "Add", "'b' is less exact (signal to noise 80 dB)")
    assert blamed(findings(document, {})) is None


SMALL, MANY = np.array([2e-5, -1e-5]), np.full(10_000, 100.0)
ONE_OFF = np.where(np.arange(10_000) == 7, 90.0, MANY)


@pytest.mark.parametrize(
    ("name", "other", "reference", "by_element", "is_wrong"),
    [
        ("y", FAR, GOOD, True, True),
        ("y", INFINITE, GOOD, True, True),
        ("y", ONE_OFF, MANY, True, False),
        ("y", SMALL + 3e-5, SMALL, False, True),
        ("y", SMALL * 1.1, SMALL, False, False),
        ("b", SMALL + 3e-5, SMALL, False, False),
        ("y", np.full(2, 1e-5), np.array([1e-8, -1e-8]), False, False),
    ],
    ids=["far", "infinite", "one of many elements", "small, and nearly all noise", "little noise",
         "noise, but no output", "rounding errors of float32"],
)  # fmt: skip
def test_noise_is_judged_beside_the_tolerance_of_elements(
    name: str, other: Any, reference: Any, by_element: bool, is_wrong: bool
) -> None:
    one = row(name, other, reference)
    assert (bool(one.problem), bool(FLOAT16.judged(one).problem)) == (by_element, is_wrong)


def values(document: Document, other: Any) -> ComparedValues:
    found = findings(document, {"a": GOOD, "b": other, "y": other})
    last = found.rows[-1]
    is_good = not last.problem
    return ComparedValues(
        {last.name: OutputError.of(last.error, last.problem)},
        is_good,
        None if is_good else first_failing_node(found),
    )


HALVES = """<ir_version: 10, opset_import: ["" : 18]>
halves (float16[2] x) => (float16[2] y, float16[2] z) <float16 w = {23728}>
{ [big] a = Mul(x, w) [down] y = Div(a, w) [same] z = Identity(a) }"""
"""The weight is 300: numbers of this type are given as their bits."""


def test_a_rounded_copy_overflows_between_nodes_as_float16_does(tmp_path: Path) -> None:
    with closing(Document.open(models.write(tmp_path, HALVES))) as document:
        with closing(rounded_copy(document)) as copy:
            model = onnx.ModelProto.FromString(skeleton_bytes(copy))
        assert len(document.main.nodes) == 3, "the original stays as it is"
    onnx.checker.check_model(model, full_check=True)
    with np.errstate(over="ignore"):
        results = ReferenceEvaluator(model).run(None, {"x": np.array([2, 300], np.float16)})
    y, z = map(np.asarray, results)
    assert y.dtype == np.float16
    assert (y.tolist(), z.tolist()) == ([2, np.inf], [600, np.inf])
    ops = [node.op_type for node in model.graph.node]
    assert ops.count("Cast") == 6, "of x, w and a, which two nodes take, and of each node's output"
