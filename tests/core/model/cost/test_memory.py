"""What a run needs, counted by hand and by a slow, plain count."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dld_tui.core.model.cost.memory import (
    MeasuredMemory,
    MemoryPlan,
    execution_order,
    memory_lines,
    memory_plan,
    memory_table,
)
from dld_tui.core.model.cost.nodes import ModelCosts
from dld_tui.core.model.document.document import Document
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
        "a": (256, "first", "sum"), "c": (256, "other", "sum"), "d": (256, "sum", "last"),
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
    count = len(plan.unknown)
    assert f"unknown      {count} nodes with outputs of unknown size" in memory_lines(plan)
    assert not [line for line in memory_lines(planned(CHAIN)) if line.startswith("unknown")]


@pytest.mark.parametrize(
    ("without_reuse", "saves"), [(None, None), (1000, None), (1200, None), (985, None), (600, 400)]
)
def test_a_setting_that_lowers_the_peak_is_told_where_it_is_worth_it(
    without_reuse: int | None, saves: int | None
) -> None:
    measured = MeasuredMemory(800, "sum", 1000, 4000, without_reuse)
    lines = memory_lines(replace(planned(CHAIN), measured=measured))
    (told,) = (line for line in lines if line.startswith("measured"))
    assert told.startswith("measured     800 B of activations after sum; ")
    lower = f"lower        enable_mem_reuse = False saves {saves} B: no buffer is kept for"
    assert [line.startswith(lower) for line in lines if "enable_mem_reuse" in line] == (
        [True] if saves else []
    )


def test_why_a_run_was_not_measured_is_told() -> None:
    plan = replace(planned(CHAIN), not_measured="an operator is unknown")
    assert "measured     not: an operator is unknown" in memory_lines(plan)
    assert not [line for line in memory_lines(planned(CHAIN)) if line.startswith("measured")]


@pytest.mark.parametrize("seed", range(12))
def test_the_peak_is_that_of_a_plain_count(seed: int) -> None:
    """Drawn graphs of several inputs a node, with views, outputs and what nobody reads."""
    draw = random.Random(seed)
    sizes = {"x": 64}
    lines: list[str] = []
    owner = {"x": "x"}
    reads: list[tuple[str, list[str]]] = []
    for number in range(draw.randint(2, 25)):
        name = f"t{number}"
        first = draw.choice([*sizes])
        if draw.random() < 0.2:
            lines.append(f"[{name}] {name} = Identity({first})")
            sizes[name], owner[name], taken = sizes[first], owner[first], [first]
        elif draw.random() < 0.5:
            second = draw.choice([*sizes])
            lines.append(f"[{name}] {name} = Concat<axis = 0>({first}, {second})")
            sizes[name], owner[name] = sizes[first] + sizes[second], name
            taken = [first, second]
        else:
            lines.append(f"[{name}] {name} = Exp({first})")
            sizes[name], owner[name], taken = sizes[first], name, [first]
        reads.append((name, taken))
    outputs = sorted(name for name, _ in draw.sample(reads, min(3, len(reads))))
    declared = ", ".join(f"float[{sizes[name]}] {name}" for name in outputs)
    others = [f"float[{size}] {name}" for name, size in sizes.items() if name not in outputs][1:]
    kinds = f"<{', '.join(others)}>" if others else ""
    nodes = "\n".join(lines)
    document = Document(parse(f"{HEAD}m (float[64] x) => ({declared})\n{kinds}\n{{\n{nodes}\n}}"))
    order = [node.ref for node in execution_order(document.main.nodes)]
    inputs_of = dict(reads)
    highest = 0
    for step, running in enumerate(order):
        in_use = 0
        for made in order[: step + 1]:
            names = {name for name, whose in owner.items() if whose == made}
            readers = [name for name in order if names & {*inputs_of[name]}]
            is_read_later = any(order.index(name) >= step for name in readers)
            if made == running or is_read_later or not readers or names & {*outputs}:
                in_use += 4 * sizes[made] if names else 0
        highest = max(highest, in_use)
    assert memory_plan(ModelCosts(document)).peak == highest
