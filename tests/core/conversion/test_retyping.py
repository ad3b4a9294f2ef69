"""Copies whose layers compute in, or round to, a lower precision but for some.

The casts for precisions that are set are in ``tests/core/model/transcripts/precisions.txt``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.conversion.retyping import (
    RetypedModel,
    assigned,
    in_lower_precision,
    switchable,
)
from dld_tui.core.model.document import Document, Node
from dld_tui.core.model.document.metadata import precision_of
from dld_tui.core.types import JSON
from tests.support import models
from tests.support.sessions import bytes_of, opened, run

X = np.linspace(-2, 3, 8, dtype=np.float32).reshape(2, 4)
CALLS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
calls (float[N, 4] x) => (float[N, 4] y)
<float[4] w = {1, 2, 3, 4}>
{
    [pre] a = Relu(x)
    [one] b = local.twice(a)
    [post] y = Add(b, w)
}
<domain: "local", opset_import: ["" : 18]>
twice (v) => (r) { [inside] s = Add(v, v) r = Sigmoid(s) }
"""
THEN = "choose:then_branch"


def set_all(document: Document, precision: str, *names: str, scope: str = "") -> Document:
    """Set the precision of nodes; return the document."""
    nodes: list[JSON] = [[[scope] if scope else [], name] for name in names]
    document.apply("set_precision", nodes=nodes, precision=precision)
    return document


def feeds_of(document: Document) -> dict[str, np.ndarray[Any, Any]]:
    every = {"x": X, "choice": np.array(True), "at": np.array([1], np.int64)}
    return {name: every[name] for name in document.main.inputs}


def checked(document: Document, found: RetypedModel) -> RetypedModel:
    """Return a copy that is valid and computes nearly the same, with the same types."""
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(found.document)), full_check=True)
    feeds = feeds_of(document)
    for mine, theirs in zip(run(found.document, **feeds), run(document, **feeds), strict=True):
        assert mine.dtype == theirs.dtype
        np.testing.assert_allclose(mine, theirs, rtol=2e-2, atol=2e-2)
    return found


def test_lowering_leaves_some_nodes_as_they_are(tmp_path: Path) -> None:
    document = opened(tmp_path, models.PLAIN_BRANCHES)
    kept = document.scope_at([THEN]).nodes[0]
    found = checked(document, in_lower_precision(document, "fp16", [kept]))
    assert not found.plan.refused
    inner = found.document.scope_at([THEN]).find("inner")
    assert inner is not None
    known = inner.scope.value_type(inner.inputs[0])
    assert known is not None
    assert known.dtype == "float32"
    assert found.plan.relinks
    document = opened(tmp_path, CALLS)
    kept = document.functions[0].nodes[0]
    found = checked(document, in_lower_precision(document, "fp16", [kept]))
    assert found.inlined == 1
    assert len(found.plan.relinks) == 3, "all but the one that is kept"


@pytest.mark.parametrize("text", [models.CHAIN, models.PLAIN_BRANCHES, CALLS])
def test_switches_compute_what_a_copy_for_each_choice_computes(tmp_path: Path, text: str) -> None:
    document = opened(tmp_path, text)
    switched = switchable(document, "fp16")
    nodes = [*switched.nodes]
    feeds = feeds_of(document) | {"x": X * 1e5 / 3}
    for kept in ([], nodes[:1], nodes[::2], nodes):
        lowered_ones = switched.on(kept)
        chosen = {switch: np.array(switch in lowered_ones) for switch in switched.names}
        mine = run(switched.document, **feeds, **chosen)
        theirs = run(in_lower_precision(document, "fp16", kept, rounded=True).document, **feeds)
        for one, two in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one, two)


def test_precisions_that_are_set_hold_and_those_of_a_copy_are_set_there_only(
    tmp_path: Path,
) -> None:
    document = opened(tmp_path, models.CHAIN)
    nodes: list[Node] = [*document.main.nodes]
    copy = assigned(document, "bf16", nodes[:3], nodes[1:2])
    assert [precision_of(node) for node in copy.main.nodes] == ["bf16", "fp32", "bf16", ""]
    assert not any(precision_of(node) for node in nodes)
    switched = switchable(set_all(document, "fp32", "second"), "fp16")
    assert [node.name for node in switched.nodes] == ["first", "third", "last"]
