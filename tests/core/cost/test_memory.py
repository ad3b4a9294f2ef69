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
