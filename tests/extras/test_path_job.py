"""The critical path of a real profile, against all paths of its main graph."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dld_tui.activities.profile import onnxruntime as profile_onnxruntime
from dld_tui.core.events import Finished, Progress
from dld_tui.core.model.document.document import Document
from dld_tui.core.report.node_times import function_callers, node_times
from dld_tui.core.report.report import open_report
from dld_tui.extras.path import job
from dld_tui.extras.path.longest import CriticalPath
from tests.support import models

pytest.importorskip("onnxruntime")

NESTED = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
net (float[96, 96] x, bool c, int64 n) => (float[96, 96] y) <bool go = {1}>
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

    def longest(node: str) -> float:
        before = [longest(makers[name].ref) for name in reads[node] if name in makers]
        return times.get(node, 0.0) + max(before, default=0.0)

    assert found.path_ms == pytest.approx(max(map(longest, reads)))
