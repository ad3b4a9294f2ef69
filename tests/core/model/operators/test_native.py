"""Limits of what onnx may take, and models that stand for more than it can go through."""

from __future__ import annotations

import pytest

from dld_tui.core.model.operators import native
from tests.support import models
from tests.support.recorded import Recorded

CALLS = """
<ir_version: 10, opset_import: ["" : 18, "f" : 1]>
g (bool c, float[2] x) => (float[2] y) { y = f.both (c, x) }
<domain: "f", opset_import: ["" : 18]> two (x) => (y) { a = Neg (x)  y = Abs (a) }
<domain: "f", opset_import: ["" : 18, "f" : 1]> both (c, x) => (y) {
    a = f.two (x)
    y = If (c) <then_branch = t () => (p) { q = f.two (a)  p = Neg (q) },
                else_branch = e () => (r) { r = f.last (a) }>
}
<domain: "f", opset_import: ["" : 18, "f" : 1]> ring (x) => (y) { a = f.ring (x)  y = f.last (a) }
<domain: "f", opset_import: ["" : 18, "f" : 1]> last (x) => (y) {
    a = f.two (x)  b = f.two (a)  y = f.none (b)
}
"""


def test_limits_grow_with_the_model_the_setting_and_what_is_free(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {}
    for free, factor in ((64 << 30, 1.0), (64 << 30, 20.0), (4 << 30, 0.5), (None, 2.0)):
        monkeypatch.setattr(native, "free_memory", lambda free=free: free)
        monkeypatch.setattr(native, "_factor", lambda factor=factor: factor)
        lines = [f"{size} B: {native.limits_for(size)}" for size in (1_000, 10_000_000)]
        for size, weights, inputs in ((10**6, 0, 0), (10**6, 10**9, 10**7), (10**7, 10**10, 0)):
            limits = native.trial_limits(size, weights, inputs)
            lines.append(f"{size} B, weights {weights} B, inputs {inputs} B: {limits}")
        told[f"{free} B free, times {factor}"] = "\n".join(lines)
    recorded("limits", told)


def test_a_call_stands_for_all_nodes_below_it() -> None:
    model = models.parse(CALLS)
    counts = native.expansion(model)
    assert {name: count for (_, name, _), count in counts.items()} == {
        "two": 2, "both": 11, "ring": 1, "last": 5,
    }  # fmt: skip
    assert [native.call_size(node, counts) for node in model.graph.node] == [11]
    assert native.too_wide(model) == ""


@pytest.mark.parametrize("kind", ["graph", "graphs", "function"])
def test_a_node_of_too_many_parts_is_named_wherever_it_is(kind: str) -> None:
    model = models.parse(CALLS)
    attribute = model.functions[1].node[1].attribute[1]
    inner = attribute.graphs.add() if kind == "graphs" else attribute.g
    node = model.functions[2].node[0] if kind == "function" else inner.node.add(op_type="Sum")
    node.input.extend(["x"] * 100_001)
    assert "100,00" in native.too_wide(model)
