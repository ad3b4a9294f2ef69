"""The longest path and the cut, counted by hand, and of a real profile."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.core.events import Finished, Progress
from dld_tui.core.model.cost.memory import execution_order
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.document.scope import Scope
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.report.node_times import function_callers, node_times
from dld_tui.core.report.records import Layer, NodeLink
from dld_tui.core.report.report import open_report
from dld_tui.core.tables.table import json_of
from dld_tui.extras.path import job
from dld_tui.extras.path.longest import CriticalPath, critical_path, path_lines, path_table
from tests.support import models
from tests.support.models import parse
from tests.support.recorded import Recorded, settled

TWO = """
<ir_version: 10, opset_import: ["" : 18]>
two (float[1, 64] x) => (float[1, 64] y)
<float[1, 64] a, float[1, 64] b, float[1, 2] s, float[1, 64] c, float[1, 2] w>
{
    [stem] a = Relu(x)
    [left] b = Abs(a)
    [right] c = Sigmoid(a)
    [join] d = Add(b, c)
    [small] s = Conv(d, w)
    [last] y = Mul(s, s)
}
"""
TIMES = {"stem": 2.0, "left": 5.0, "right": 3.0, "join": 1.0, "small": 1.0, "last": 4.0}


SIZES = {"a": 256, "b": 256, "c": 256, "d": 256, "s": 8}
CASES: dict[str, tuple[dict[str, float], dict[str, int], float]] = {
    "small": (TIMES, SIZES, 0.0),  # only `right` runs beside
    "printed times": ({**TIMES, "stem": 2.0004, "right": 3.0004}, dict.fromkeys(SIZES, 1), 0.0),
    "uneven": ({"stem": 9.0, "last": 1.0}, dict.fromkeys(SIZES, 1), 10.0),
    "a quarter": ({"stem": 49.75, "last": 149.25}, SIZES, 200.0),
    "less than a quarter": ({"stem": 49.75, "last": 149.5}, SIZES, 200.0),
    "a size that is not known": (TIMES, {n: 256 for n in "abcd"}, 16.1),
    "sizes that are not known": (TIMES, {"b": 3, "c": 9}, 0.0),
    "across both": ({"stem": 1.0, "left": 3.0, "last": 4.0}, {"b": 3, "c": 9, "a": 90}, 0.0),
    "no time": ({}, SIZES, 0.0), "all left out": ({}, SIZES, 2.0),
}  # fmt: skip


def test_the_longest_path_and_what_parallelism_saves(recorded: Recorded) -> None:
    texts = {}
    for name, (times, sizes, measured_ms) in CASES.items():
        document = Document(parse(TWO))

        def size(scope: Scope, name: str, sizes: dict[str, int] = sizes) -> int | None:
            return sizes.get(name)

        found = critical_path(document, times, size, measured_ms=measured_ms)
        texts[name] = "\n".join([
            f"{found.path_ms} of {found.work_ms} ms, {found.most} times as fast, {found.cut}",
            f"{found.unsized} not sized, {found.unplaced_ms} ms not placed", *path_lines(found),
            *map(str, json_of(path_table(found))),
        ])  # fmt: skip
    recorded("path_found", {name: settled(text) for name, text in texts.items()})


@pytest.mark.parametrize(
    ("made", "crossing"),
    [
        ("Neg(k)", {"a"}),
        ("Neg(d)", {"a", "r"}),
        *((f"{name}(k)", {"a", "r"}) for name in sorted(RANDOM_OPERATORS)),
        ("RandomNormal<shape = [2]>()", {"a", "r"}),
        ("local.plain(k)", {"a"}),
        ("local.drawn(k)", {"a", "r"}),
        ("local.outer(k)", {"a", "r"}),
    ],
)
def test_each_device_has_constants_of_its_own_and_nothing_else(
    made: str, crossing: set[str]
) -> None:
    """Random values, and what a caller may give, are sent."""
    document = Document(
        parse(f"""
        <ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        m (float[2] x, float[2] d = {{1, 2}}) => (float[2] y) <float[2] k = {{1, 2}}>
        {{
            [r] r = {made}
            [a] a = Abs(x)
            [b] b = Add(a, r)
            [c] y = Neg(b)
        }}
        <domain: "local", opset_import: ["" : 18]>
        plain (u) => (v) {{ v = Neg(u) }}
        <domain: "local", opset_import: ["" : 18]>
        drawn (u) => (v) {{ v = Bernoulli(u) }}
        <domain: "local", opset_import: ["" : 18, "local" : 1]>
        outer (u) => (v) {{ w = local.drawn(u)  v = Neg(w) }}
        """)
    )
    times = {"r": 1.0, "a": 1.0, "b": 6.0}  # before the sum is the only place for a cut
    found = critical_path(document, times, lambda scope, name: 8)
    assert found.cut is not None
    assert set(found.cut.tensors) == crossing


@pytest.mark.parametrize("seed", range(15))
def test_path_and_cut_of_drawn_graphs_are_those_of_a_slow_search(seed: int) -> None:
    """Against all paths, and every place of the order; what no input is in need not be sent."""
    draw = random.Random(seed)
    count = draw.randint(4, 9)
    lines, reads = [], dict[str, list[str]]()
    for at in range(count):
        if draw.random() < 0.2:
            reads[f"n{at}"] = []
            lines.append(f"[n{at}] n{at} = Constant <value = float[2] {{1.0, 2.0}}> ()")
            continue
        known = ["x", *reads]
        reads[f"n{at}"] = draw.sample(known, min(len(known), draw.randint(1, 3)))
        lines.append(f"[n{at}] n{at} = Sum ({', '.join(reads[f'n{at}'])})")
    used = {name for names in reads.values() for name in names}
    ends = [name for name in reads if name not in used]
    outputs = ", ".join(f"float[2] {name}" for name in ends)
    text = f"m (float[2] x) => ({outputs}) {{ {' '.join(lines)} }}"
    document = Document(parse(f'<ir_version: 10, opset_import: ["" : 18]>\n{text}'))
    times = {name: float(draw.randint(0, 9)) for name in reads}
    sizes = {name: draw.randint(1, 50) for name in reads}
    found = critical_path(document, times, lambda scope, name: sizes[name])

    def longest(name: str) -> float:
        return times[name] + max([longest(n) for n in reads[name] if n != "x"], default=0.0)

    assert found.path_ms == max(longest(name) for name in reads)
    assert sum(times[one.node] for one in found.path) == found.path_ms

    def is_fed(name: str) -> bool:
        return any(n == "x" or is_fed(n) for n in reads[name])

    order = [node.ref for node in execution_order(document.main.nodes)]
    whole, costs = sum(times.values()), list[int]()
    for at in range(1, count):
        first = set(order[:at])
        crossing = {
            name for name in first if is_fed(name)
            and (name in ends or any(name in reads[other] for other in order[at:]))
        }  # fmt: skip
        if crossing and 0.25 * whole <= sum(times[n] for n in first) <= 0.75 * whole:
            costs.append(sum(sizes[name] for name in crossing))
    expected = min(costs) if costs and whole else None
    assert (None if found.cut is None else found.cut.bytes) == expected


FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[2] x, bool c) => (float[2] y)
{
    [one] a = local.outer (x)
    [two] b = local.inner (a)
    [if] y = If (c) <then_branch = t () => (float[2] p) { [call] p = local.outer (b) },
                     else_branch = e () => (float[2] q) { q = Identity (b) }>
}
<domain: "local", opset_import: ["" : 18, "local" : 1]>
outer (u) => (v) { w = local.inner (u)  k = local.inner (w)  v = Neg (k) }
<domain: "local", opset_import: ["" : 18]>
inner (u) => (v) { [abs] v = Abs (u) }
"""


def test_the_time_of_a_function_is_that_of_its_calls_in_the_main_graph() -> None:
    """Inlined nodes do not tell which call they are of: each call gets an equal share."""
    document = Document(parse(FUNCTIONS))
    callers = function_callers(document)
    assert callers == {
        "function local:outer": {"one": 1.0},
        "function local:inner": {"one": pytest.approx(2 / 3), "two": pytest.approx(1 / 3)},
    }

    def layer(ms: float, *links: NodeLink, around: str = "") -> Layer:
        return Layer("l", "t", nodes=links, time_ms=ms, around=around)

    abs_link = NodeLink(("function local:inner",), "abs", "abs", "Abs")
    layers = [
        *[layer(2.0, abs_link) for _ in range(3)],
        layer(7.0, abs_link, around="if"),
        layer(1.0, around="if"),  # nothing else is known of it
        layer(4.0),
    ]
    times = node_times(layers, callers)
    assert times == {"one": pytest.approx(4.0), "two": pytest.approx(2.0), "if": 8.0}
    found = critical_path(document, times, lambda scope, name: 8, measured_ms=18.0)
    assert found.work_ms == pytest.approx(14.0)
    assert found.unplaced_ms == pytest.approx(4.0)
    assert "Left out: 4.000 ms (22.2 % of the time)" in path_lines(found)[1]


NESTED = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[N, 96] x, bool c, int64 n) => (float[96, 96] y) <bool go = {1}>
{
    ["odd:name › é [1]"] a = MatMul (x, x)
    ["if:then_branch"] b = If (c) <
        then_branch = t () => (float[96, 96] p)
            { ["odd:name › é [1]"] q = local.outer (a)  [inner] p = Relu (q) },
        else_branch = e () => (float[96, 96] r) { r = Sigmoid (a) }
    >
    s = Tanh (a)
    ["loop"] l = Loop (n, go, a) <
        body = lb (int64 i, bool g, float[96, 96] st) => (bool h, float[96, 96] z)
        { h = Identity (g)  ["odd:name › é [1]"] m = MatMul (st, x)  z = local.outer (m) }
    >
    ["call"] f = local.outer (s)
    u = Add (b, f)
    v = Add (u, l)
    y = Softmax (v)
}
<domain: "local", opset_import: ["" : 18, "local" : 1]>
outer (g) => (o) { h = MatMul (g, g)  k = local.inner (h)  o = Neg (k) }
<domain: "local", opset_import: ["" : 18]>
inner (g) => (o) { [call] h = MatMul (g, g)  o = Erf (h) }
"""


def test_all_time_counts_for_a_node_and_no_path_is_longer(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    model = models.write(tmp_path, NESTED)
    data = tmp_path / "inputs"
    data.mkdir()
    x = np.random.default_rng(0).standard_normal((96, 96)).astype(np.float32) / 96
    for name, value in (("x", x), ("c", np.array(True)), ("n", np.array(3))):
        np.save(data / f"{name}.npy", value)
    output = tmp_path / "r.dldprof"
    list(
        profile_onnxruntime.run(
            profile_onnxruntime.Request(
                model, inputs=data, iterations=5, layer_passes=5, threads=1, output=output
            )
        )
    )
    *stages, last = job.run(job.Request(output))
    assert [one.stage for one in stages if isinstance(one, Progress) and one.done == 0] == [
        "Reading the report", "Reading the model", "Finding the critical path"
    ]  # fmt: skip
    assert isinstance(last, Finished)
    found = last.result
    assert isinstance(found, CriticalPath)
    with open_report(output) as report:
        whole = sum(layer.time_ms or 0.0 for layer in report.layers)
        times = node_times(report.layers, function_callers(Document.open(model)))
    # Neither by a name that three scopes have, nor inlined functions, is any time lost.
    assert found.unplaced_ms <= 0.02 * whole
    assert found.work_ms + found.unplaced_ms == pytest.approx(whole)

    main = Document.open(model).main
    makers = {name: node for node in main.nodes for name in node.outputs}
    reads = {node.ref: {*node.inputs} for node in main.nodes}
    reads["if:then_branch"] |= {"a"}
    reads["loop"] |= {"x"}
    on_path = [node.node for node in found.path]
    assert on_path[0] == "odd:name › é [1]"
    assert on_path[-2:] == [">v", ">y"]
    for before, after in pairwise(on_path):
        assert before in {makers[name].ref for name in reads[after] if name in makers}
    assert found.path_ms == pytest.approx(sum(node.ms for node in found.path))
    assert not found.unsized, "all sizes are known"

    def longest(node: str) -> float:
        before = [longest(makers[name].ref) for name in reads[node] if name in makers]
        return times.get(node, 0.0) + max(before, default=0.0)

    assert found.path_ms == pytest.approx(max(map(longest, reads)))
