"""What a run needs, counted by hand; benchmarks/bench_memory.py has ONNX Runtime's own figures."""

from __future__ import annotations

import pytest

from dld_tui.core.cost.memory import (
    MemoryPlan,
    execution_order,
    memory_lines,
    memory_plan,
    memory_table,
)
from dld_tui.core.cost.nodes import ModelCosts
from dld_tui.core.document.document import Document
from dld_tui.core.tables.table import json_of
from tests.support.models import parse

HEAD = '<ir_version: 10, opset_import: ["" : 18]>\n'
ONES = ", ".join(["1"] * 64)
CHAIN = f"""{HEAD}
chain (float[1, 64] x) => (float[1, 64] y)
<float[64] w = {{{ONES}}}, float[1, 64] a, float[1, 64] b, float[1, 64] c, float[1, 64] d,
 float[64] e>
{{
    [first] a = Relu(x)
    [view] b = Flatten(a)
    [fold] e = Add(w, w)
    [other] c = Mul(x, e)
    [sum] d = Add(b, c)
    [last] y = Sigmoid(d)
}}
"""


def planned(text: str) -> MemoryPlan:
    return memory_plan(ModelCosts(Document(parse(text))))


def test_tensors_live_from_their_node_to_their_last_reader() -> None:
    plan = planned(CHAIN)
    # 256 bytes each; the view is the memory of what it looks at, and e is folded. Of the sources
    # of the sum, that with the higher number runs first.
    assert [(step.node, step.bytes) for step in plan.steps] == [
        ("other", 256), ("first", 512), ("view", 512), ("sum", 768), ("last", 512),
    ]  # fmt: skip
    assert (plan.peak, plan.at) == (768, "sum")
    alive = {one.name: (one.bytes, one.producer, one.last_consumer) for one in plan.alive}
    assert alive == {
        "b": (256, "view", "sum"), "c": (256, "other", "sum"), "d": (256, "sum", "last"),
    }  # fmt: skip
    assert (plan.weights, plan.inputs) == (512, 256)  # w and e


def test_nodes_run_as_onnx_runtime_runs_them() -> None:
    document = Document(parse(HEAD + """
two (float[4] x) => (float[4] y)
{
    [a] a = Relu(x)
    [b] b = Relu(x)
    [c] c = Abs(b)
    [d] d = Abs(a)
    [y] y = Add(c, d)
    [unread] z = Abs(x)
}
"""))  # fmt: skip
    # Depth first from the last node; of the sources of Add that with the higher number first.
    order = [node.ref for node in execution_order(document.main.nodes)]
    assert order == ["unread", "a", "d", "b", "c", "y"]


def test_a_body_is_beside_what_is_alive_outside() -> None:
    plan = planned(
        HEAD
        + """
outer (float[1, 64] x, bool p) => (float[1, 64] y)
<float[1, 64] a, float[1, 64] r>
{
    [a] a = Relu(x)
    [if] r = If (p) <
        then_branch = yes () => (float[1, 64] t) <float[1, 64] u> { u = Abs(a)  t = Abs(u) },
        else_branch = no () => (float[1, 64] t) { t = Abs(a) }
    >
    [y] y = Add(r, a)
}
"""
    )
    by_node = {step.node: step.bytes for step in plan.steps}
    assert by_node == {"a": 256, "if": 256 + 256 + 256, "y": 768}
    assert plan.inside == 256  # the outputs of a branch are those of its If
    assert (plan.peak, plan.at) == (768, "if")


def test_the_peak_is_told_in_lines_and_a_table() -> None:
    plan = planned(CHAIN)
    lines = memory_lines(plan)
    assert lines[1] == "activations  768 B at the peak, while sum runs"
    assert "33 % of the peak" in lines[4]
    rows = json_of(memory_table(plan))
    assert [row["producer"] for row in rows] == [one.producer for one in plan.alive]


@pytest.mark.parametrize("dims", ["N, 64", "1, 64"])
def test_sizes_that_are_not_known_are_taken_as_one_or_told(dims: str) -> None:
    plan = planned(HEAD + f"m (float[{dims}] x) => (float[{dims}] y) {{ y = Relu(x) }}")
    assert plan.peak == 256
    unknown = planned(HEAD + "m (float x) => (float y) { [n] z = Relu(x) y = Abs(z) }")
    assert unknown.unknown == ("n",)


LOOP = (
    HEAD
    + """
m (float[1, 64] x) => (float[1, 64] y)
<int64 trips = {TRIPS}, bool on = {1}, float[1, 64] f, float[TRIPS, 1, 64] l>
{
    [loop] f, l = Loop (trips, on, x) <body = b
        (int64 i, bool c, float[1, 64] s) => (bool o, float[1, 64] t, float[1, 64] r)
        <float[1, 64] w, float[1, 64] u>
        { o = Identity(c)  u = Exp(s)  t = Add(u, w)  r = Cos(t) }
    >
    [y] y = Mul(f, f)
}
"""
)


@pytest.mark.parametrize("trips", [2, 6])
def test_a_loop_holds_what_it_carries_and_copies_what_it_collects(trips: int) -> None:
    model = parse(LOOP.replace("TRIPS", str(trips)))
    body = model.graph.node[0].attribute[0].g
    body.initializer.add(name="w", data_type=1, dims=[1, 64], raw_data=bytes(256))
    del body.value_info[0]
    plan = memory_plan(ModelCosts(Document(model)))
    by_node = {step.node: step.bytes for step in plan.steps}
    # ONNX Runtime 1.31.1 has 15 tensors in use for six trips: what the last trip was given and what
    # it handed on, all that was collected, both outputs, its condition and the number of the trip.
    assert by_node["loop"] == plan.peak == 256 * (2 + trips + trips + 1) + 2 * 256
    assert plan.weights == 8 + 1 + 256  # that of the body, too
    assert sum(one.bytes for one in plan.alive) + plan.inside == plan.peak


def test_what_a_size_is_only_in_a_run_is_told() -> None:
    plan = planned(
        HEAD
        + """
m (float[8] x) => (float s)
{
    [find] n = NonZero(x)
    [cast] c = Cast<to = 1>(n)
    [sum] s = ReduceSum<keepdims = 0>(c)
}
"""
    )
    assert {"find", "cast"} <= set(plan.unknown)
    assert memory_lines(plan)[1].startswith("activations  at least ")


def test_memory_that_waits_for_another_tensor_says_so() -> None:
    plan = planned(
        HEAD
        + """
m (float[1, 64] x) => (float[1, 64] y)
<float[1, 64] a, float b, float[1, 128] c, float[1, 128] d, float e, float f, float[1, 64] g>
{
    [c] c = Concat<axis = 1>(x, x)
    [d] d = Exp(c)
    [e] e = ReduceSum<keepdims = 0>(d)
    [a] a = Exp(x)
    [b] b = ReduceSum<keepdims = 0>(a)
    [f] f = Add(e, b)
    [g] g = Mul(x, f)
    [y] y = Add(g, f)
}
"""
    )
    assert plan.at == "d"
    (one,) = [one for one in plan.alive if one.kept_for]
    assert (one.name, one.last_consumer, one.kept_for) == ("a", "b", "g")
    assert "b, kept for g" in str(json_of(memory_table(plan)))
