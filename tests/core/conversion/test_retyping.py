"""Casts give layers their precision in a copy: few of them, and nearly the same results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dld_tui.core.conversion.retyping import (
    RetypedModel,
    assigned,
    in_lower_precision,
    losses,
    retyped,
    switchable,
)
from dld_tui.core.errors import UsageError
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
MIXED = """
<ir_version: 10, opset_import: ["" : 18]>
mixed (float[2, 4] x, int64[1] at) => (float[1, 4] y, float[2, 4] a)
{ [pre] a = Relu(x) [pick] g = Gather(a, at) [power] y = Pow(g, at) }
"""
THEN, TWICE = "choose:then_branch", "function local:twice"


def set_all(document: Document, precision: str, *names: str, scope: str = "") -> Document:
    """Set the precision of nodes; return the document."""
    nodes: list[JSON] = [[[scope] if scope else [], name] for name in names]
    document.apply("set_precision", nodes=nodes, precision=precision)
    return document


def operators(document: Document) -> Counter[str]:
    return Counter(node.op_type for scope in document.scopes() for node in scope.nodes)


def casts_of(found: RetypedModel) -> set[tuple[str, str]]:
    return {(cast.source, cast.dtype) for cast in found.plan.casts}


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


def test_neighbours_of_one_precision_share_a_border(tmp_path: Path) -> None:
    document = set_all(opened(tmp_path, models.CHAIN), "fp16", "second", "third")
    found = checked(document, retyped(document))
    assert casts_of(found) == {("a", "float16"), ("w", "float16"), ("c_float16", "float32")}
    assert (found.casts, found.stored_casts) == (2, 1)
    assert operators(document)["Cast"] == 0, "the original is never changed"
    assert operators(found.document)["Cast"] == 3
    again = retyped(found.document)
    assert (again.plan.relinks, again.plan.casts) == ([], []), "twice adds nothing"


def test_a_value_that_others_use_keeps_its_type_for_them(tmp_path: Path) -> None:
    document = set_all(opened(tmp_path, models.CHAIN), "fp16", "first", "third")
    main = checked(document, retyped(document)).document.main
    second, known = main.find("second"), main.value_type("y")
    assert second is not None
    assert known is not None
    assert (second.inputs[0], known.dtype) == ("a", "float32")


def test_patterns_set_all_but_the_nodes_that_specs_name(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN)
    found = checked(document, retyped(document, ["*:fp16"]))
    assert casts_of(found) == {("x", "float16"), ("w", "float16"), ("y_float16", "float32")}
    assert not found.plan.refused
    found = checked(document, retyped(document, ["third:fp32,*:fp16"]))
    third = found.document.main.find("third")
    assert third is not None
    assert {*third.inputs} == {"b"}


@pytest.mark.parametrize("spec", ["ghost:fp16", "first", "first:fp17", ":fp16", "gh*st:fp16"])
def test_specs_that_make_no_sense_are_refused(tmp_path: Path, spec: str) -> None:
    with pytest.raises(UsageError):
        retyped(opened(tmp_path, models.CHAIN), [spec])


def test_bodies_are_cast_inside_and_outer_values_keep_their_names(tmp_path: Path) -> None:
    document = set_all(opened(tmp_path, models.PLAIN_BRANCHES), "fp16", "inner", scope=THEN)
    found = checked(document, retyped(document)).document
    body = Counter(node.op_type for node in found.scope_at([THEN]).nodes)
    assert body == Counter(Neg=1, Add=1, Cast=2)
    assert not any(node.op_type == "Cast" for node in found.main.nodes)
    checked(set_all(document, "fp16", "pre"), retyped(document))


def test_functions_are_inlined_where_a_precision_is_in_them_or_on_a_call(tmp_path: Path) -> None:
    document = set_all(opened(tmp_path, CALLS), "fp16", "inside", scope=TWICE)
    found = checked(document, retyped(document))
    assert (found.inlined, operators(found.document)["twice"]) == (1, 0)
    assert ("a", "float16") in casts_of(found)
    assert len(found.plan.relinks) == 1
    document = set_all(opened(tmp_path, CALLS), "fp16", "one")
    found = checked(document, retyped(document))
    assert len(found.plan.relinks) == 2
    assert found.casts == 2, "in and out, none between the two nodes"
    found = retyped(set_all(opened(tmp_path, CALLS), "fp16", "pre"))
    assert (found.inlined, operators(found.document)["twice"]) == (0, 1)


def test_integers_go_with_integers_and_floats_with_floats(tmp_path: Path) -> None:
    document = set_all(opened(tmp_path, MIXED), "int32", "pick")
    found = checked(document, retyped(set_all(document, "fp16", "power")))
    assert casts_of(found) == {("at", "int32"), ("g", "float16"), ("y_float16", "float32")}


@pytest.mark.parametrize(
    ("precision", "reason"),
    [("int8", "needs a scale"), ("fp8", "needs a scale"), ("bool", "no cast"),
     ("int32", "no integer inputs")],
)  # fmt: skip
def test_what_casts_cannot_give_is_refused_with_the_reason(
    tmp_path: Path, precision: str, reason: str
) -> None:
    found = retyped(set_all(opened(tmp_path, models.CHAIN), precision, "first"))
    (refused,) = found.plan.refused
    assert (refused.node.name, refused.precision) == ("first", precision)
    assert reason in refused.reason
    assert operators(found.document)["Cast"] == 0
    assert any("first" in line for line in found.lines())


def test_an_older_opset_without_the_type_is_told(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace('"" : 18', '"" : 12'))
    found = retyped(set_all(document, "bf16", "second"))
    assert found.casts == 2
    assert "Add takes bfloat16 from opset" in found.plan.notes[0]


def test_the_cost_is_counted_where_shapes_are_known(tmp_path: Path) -> None:
    found = retyped(opened(tmp_path, models.CHAIN.replace("N, 4", "2, 4")), ["third:fp16"])
    # b in and c out: 8 elements of 4 and 2 bytes each
    assert (found.moved_bytes, found.unknown_sizes) == (2 * 8 * 6, 0)
    free = retyped(opened(tmp_path, models.CHAIN), ["third:fp16"])
    assert (free.moved_bytes, free.unknown_sizes) == (0, 2)


def test_weights_that_overflow_are_named(tmp_path: Path) -> None:
    text = models.CHAIN.replace("{1, 2, 3, 4}", "{1, 2, 70000, 0.00000001}")
    (loss,) = losses(retyped(opened(tmp_path, text), ["second:fp16"]))
    assert (loss.name, loss.dtype, loss.overflow, loss.underflow) == ("w", "float16", 1, 1)


def test_casts_get_names_that_no_node_has(tmp_path: Path) -> None:
    text = models.CHAIN.replace("[first]", "[a_float16_cast]").replace("[last]", "[c_cast]")
    found = retyped(opened(tmp_path, text), ["second:fp16,third:fp16"])
    names = [node.name for node in found.document.main.nodes]
    assert len(names) == len(set(names))


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


def test_rounding_keeps_types_and_loses_what_the_precision_loses(tmp_path: Path) -> None:
    document = opened(tmp_path, models.CHAIN.replace("{1, 2, 3, 4}", "{70000, 0.1, 3, 4}"))
    found = in_lower_precision(document, "fp16", rounded=True)
    assert operators(found.document)["Cast"] == 2 * (4 + 2), "what 4 nodes make, x and w"
    (mine,) = run(found.document, x=np.array([[0, 0.25, 1, 2]], np.float32))
    half = np.array([0, 0.25, 1, 2], np.float16) + np.array([0, 0.1, 3, 4], np.float16)
    expected = 1 / (1 + np.exp(-np.square(half).astype(np.float32)))
    assert mine.dtype == np.float32
    assert mine[0, 0] == 1.0  # the sigmoid of infinity
    np.testing.assert_array_equal(mine[0, 1:], expected[1:].astype(np.float16).astype(np.float32))
    kept = in_lower_precision(document, "fp16", document.main.nodes, rounded=True)
    assert not kept.plan.relinks


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
