"""How much of a gain that is known ``dld tune`` finds at the node where it was planted.

    python -m benchmarks.bench_gain [--repeats 20] [--percent 3] [--nodes 60]

Both models are a chain of products; the one "before" also has a node in the middle whose work is
so many percent of the chain. Both are profiled in turns as ``dld tune`` does it. Some of the
difference is at the first node, which finds its weight in no cache after the larger model.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmarks import harness
from dld_tui.activities.profile.onnxruntime import Request, plan_of
from dld_tui.backends.onnxruntime.profiling import ProfilingRun, profile_in_turns
from dld_tui.core.document.document import Document
from dld_tui.core.machine.environment import environment
from dld_tui.core.report.report import open_report
from dld_tui.core.tune.gain import gain_of

_SIDE, _ROWS, _SECONDS = 256, 64, 0.5
_PLANTED = "planted"


def main(argv: list[str]) -> int:
    """Print a row a pair; return 1 where the node is not first of all in nine of ten."""
    parser = harness.parser(__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--percent", type=float, default=3.0)
    parser.add_argument("--nodes", type=int, default=60)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(argv)
    shares = []
    print("| before | after | difference | at named nodes | at the node | of it | first of all"
          " | load |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|", flush=True)
    with harness.work_folder() as folder:
        columns = max(1, round(_SIDE * options.nodes * options.percent / 100))
        before = _chain(folder / "before.onnx", options.nodes, columns)
        after = _chain(folder / "after.onnx", options.nodes, 0)
        for _ in range(options.repeats):
            shares.append(_row(before, after, folder, options))
    first = sum(is_first for is_first, _ in shares)
    middle = statistics.median(share for _, share in shares)
    print(f"\nfirst of all: {first} of {len(shares)}; at the node {middle:.0%}, the median")
    return int(first < 0.9 * len(shares))


def _row(
    before: Path, after: Path, folder: Path, options: argparse.Namespace
) -> tuple[bool, float]:
    facts = environment(())
    with contextlib.ExitStack() as stack:
        runs = []
        for model in (before, after):
            path = folder / f"{model.stem}.dldprof"
            request = Request(model=model, output=path, warm_up=3, threads=options.threads)
            document = stack.enter_context(contextlib.closing(Document.open(model)))
            runs.append(ProfilingRun(plan_of(request), document, dict(facts)))
            stack.enter_context(runs[-1].kept_report())
        for _ in profile_in_turns(runs, _SECONDS):
            pass
        first, second = (stack.enter_context(open_report(run.report_path)) for run in runs)
        gain = gain_of(first, second)
    assert gain is not None
    at_node = next(row.delta_ms for row in gain.rows if _PLANTED in row.nodes)
    share, is_first = at_node / gain.whole_ms, _PLANTED in gain.rows[0].nodes
    print(f"| {gain.before_ms:.3f} ms | {gain.after_ms:.3f} ms |"
          f" {100 * gain.whole_ms / gain.before_ms:+.1f} % |"
          f" {gain.named_ms / gain.whole_ms:.0%} | {at_node:+.3f} ms | {share:.0%} |"
          f" {'yes' if is_first else 'no'} | {os.getloadavg()[0]:.1f} |",
          flush=True)  # fmt: skip
    return is_first, share


def _chain(path: Path, count: int, planted: int) -> Path:
    """Write a chain of products, and in the middle one beside it whose weight has such columns."""
    draw = np.random.default_rng(0)
    weight = (draw.standard_normal((_SIDE, _SIDE)) / 16).astype(np.float32)
    extra = draw.standard_normal((_SIDE, max(planted, 1))).astype(np.float32)
    weights = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(extra, "e")]
    nodes, last = [], "x"
    for at in range(count):
        nodes.append(helper.make_node("MatMul", [last, "w"], [f"v{at}"], f"product_{at}"))
        last = f"v{at}"
        if at == count // 2 and planted:
            nodes.append(helper.make_node("MatMul", [last, "e"], ["worked"], _PLANTED))
    outputs = [helper.make_tensor_value_info(last, TensorProto.FLOAT, [_ROWS, _SIDE])]
    if planted:
        outputs.append(helper.make_tensor_value_info("worked", TensorProto.FLOAT, None))
    graph = helper.make_graph(
        nodes, "chain", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [_ROWS, _SIDE])],
        outputs, weights,
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, path)
    return path


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
