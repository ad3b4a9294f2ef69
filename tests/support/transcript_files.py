"""The files that transcripts of commands name, by their names."""

from __future__ import annotations

import json
import os
import re
import tarfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from dld_tui.core.model.document import samples
from dld_tui.core.report.generation import GENERATION, GenerationFigures
from dld_tui.core.report.records import Cost, Layer, NodeLink
from dld_tui.core.report.store import ReportWriter
from dld_tui.core.report.sweep import BATCH, THREADS, Sweep, SweepAxis, SweepPoint, sweep_text
from dld_tui.core.settings import saved_targets
from dld_tui.core.settings.saved_targets import Connection
from dld_tui.core.types import JSON
from dld_tui.targets.ssh.results import JobsStore, StoredJob, StoredOutput
from tests.support import body_models, decoders, engine_files, models, traces, tuned_results
from tests.support.conversions import (
    CONVS,
    FIRST,
    FIXED,
    IMAGE,
    LANGUAGE,
    LOOPS,
    MIXED,
    OLD,
    OTHER,
    OVERFLOWS,
    PROJECTIONS,
    RICH,
    SECOND,
    model_file,
    with_weights,
)  # fmt: skip
from tests.support.gpu_reports import make_gpu_report
from tests.support.plans import write_layers, write_profile
from tests.support.profiles import kernel, run, start_report, write_report
from tests.support.profiles import write_profile as write_profile_events
from tests.support.report_files import make_nested_report, make_report
from tests.support.tensors import write_tensors

HOSTILE = "odd\x1b[2J"
BROKEN = """<ir_version: 10, opset_import: ["" : 18]>
broken (float[N] x) => (float[N] y) { [bad] y = Reluu(ghost) }"""
CONSTANT = """<ir_version: 10, opset_import: ["" : 18]>
g (float[2, 3] x) => (float[2, 4] y) {
    w = Constant<value = float[3, 4] {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>()
    y = MatMul(x, w)
}"""
REDECLARED = """<ir_version: 10, opset_import: ["" : 20]>
g (float[N] x) => (float y) <int64 axes> {
    axes = Constant <value = int64[1] {0}> ()
    y = ReduceSum <keepdims = 0> (x, axes)
}"""
ALIVE = """<ir_version: 10, opset_import: ["" : 18]>
m (float[N, 64] x) => (float[N, 64] y) { [a] a = Relu(x) [y] y = Add(a, x) }"""
CUSTOM = """<ir_version: 10, opset_import: ["" : 18, "custom" : 1]>
g (float[4] x) => (float[4] y) { [one] a = Relu(x) [two] b = custom.Thing(a) [three] y = Abs(b) }"""
GRID = """<ir_version: 10, opset_import: ["" : 18]>
new (float[1, 1, 4, 4] x, float[1, 4, 4, 2] grid) => (float[1, 1, 4, 4] y)
{ [only] y = GridSample(x, grid) }"""
"""Of an operator that came with opset 16 and can be written by no older ones."""
DEAD = f"""{OLD}<domain: "acme", opset_import: ["" : 12]>
Dead (v) => (o) {{ o = Einsum <equation = "ij->i"> (v) }}"""
TWICE = """<ir_version: 8, opset_import: ["" : 17]>
net (float[2] x) => (float[2] y) <float[2] v = {1, 2}, float[2] w = {1, 2}, float[1] gone = {0}> {
    k = Constant <value = float[2] {7, 8}> ()
    [s] s = Add (v, w)
    [a] a = Add (x, s)
    b = Mul (a, w)
    y = Sub (b, k)
}"""
COSTS = """<ir_version: 10, opset_import: ["" : 18]>
m (float[2, 4] x, bool c) => (float[2, 3] y)
<float[4, 3] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
{
    [dense] d = MatMul (x, w)
    [choose] y = If (c) <then_branch = a () => (float[2, 3] t) { [flip] t = Neg (d) },
                         else_branch = b () => (float[2, 3] e) { [keep] e = Identity (d) }>
}"""
PLAIN = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1, 4] x) => (float[1, 4] y) { [conv] t = Relu(x) [act] y = Relu(t) }"""
SUMS = """<ir_version: 10, opset_import: ["" : 18]>
sums (float[N, 4] x) => (float[N, 4] y, float[N, 4] z)
<float[4] w = {1, 2, 3, 4}, float[4] d = {1, 1, 1, 1}>
{
    [first] a = Relu(x) [second] b = Add(a, w) [third] c = Mul(b, b)
    [last] y = Sub(c, a) [over] z = Div(a, d)
}"""
"""Of operators that each machine computes alike."""
SEQUENCES = """<ir_version: 10, opset_import: ["" : 18]>
two (int64[batch, seq] ids, int64[batch, seq] mask, float[M, 4] a, float[K, 3] b, float[a, b] c)
=> (int64[batch, seq] y) { y = Add(ids, mask) }"""
CONVOLUTION = """<ir_version: 10, opset_import: ["" : 18]>
convolution (float[1, 4, 8, 8] x) => (int64[M] y) <float[8, 4, 3, 3] w> {
    [conv] a = Conv <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (x, w)
    [value] c = Constant <value = float[2] {1.5, 2.0}> ()
    [mode] b = Resize <mode = "linear"> (a, c, c)
    [out] y = Cast <to = 7> (b)
}"""
JOIN = """<ir_version: 10, opset_import: ["" : 18]>
join (float[N, 4] x, float[N, 4] z, int64[2] shape) => (float[N, 12] y, float[N, 4] part) {
    [left] part = Relu(x)
    [limit] low = Clip(z)
    [join] y = Concat<axis = 1>(part, x, z)
}"""
HEAD_OF_ATTRIBUTES = '<ir_version: 10, opset_import: ["" : 18, "custom" : 1]>\n'
ATTRIBUTES = """g (float[4] x) => (float[4] y)
<float[2, 2] same = {1, 2, 3, 4}, float[4] w = {1, 2, 3, 4}, int64[3] n = {1, 2, 3}>
{
    [many] a = custom.Thing <f = 1.5, i = 3, s = "one", fs = [1.0, 2.0], is = [1, 2, 3],
        ss = ["a", "b"], t = float[3] {1, 2, 3}, gone = 1> (x, w, n, same)
    [choose] y = custom.Choose <body = b () => (float[4] t) { [in] t = Neg(a) }> (a)
}"""
CHANGED = """g (float[4] x) => (float[4] y)
<float[2, 2] same = {1, 2, 3, 4}, float[4] w = {1, 2, 3, 5}, int64[2] n = {1, 2}>
{
    [many] a = custom.Thing <f = 2.5, i = 4, s = "two", fs = [1.0, 3.0], is = [1, 2],
        ss = ["a", "c"], t = float[3] {1, 2, 4}, more = 1> (x, w, n, same)
    [choose] y = custom.Choose <body = b () => (float[4] t) { [in] t = Abs(a) }> (a)
}"""
ROWS = """<ir_version: 10, opset_import: ["" : 18]>
g (float[N, 4] x) => (float[P, Q] y) <int64[2] least = {3, 3}, float one = {1}>
{ [shape] s = Shape (x) [rows] m = Max (s, least) [wide] e = Expand (one, m) [flip] y = Neg (e) }
"""
_MODELS = {
    "conv.onnx": CONVOLUTION,
    "join.onnx": JOIN,
    "calls.onnx": body_models.SHAPES,
    "attributes.onnx": HEAD_OF_ATTRIBUTES + ATTRIBUTES,
    "attributes2.onnx": HEAD_OF_ATTRIBUTES + CHANGED,
    "costs.onnx": COSTS,
    "seq.onnx": SEQUENCES,
    "plain.onnx": PLAIN,
    "renamed.onnx": models.CHAIN.replace("[first]", "[stem]"),
    "old.onnx": OLD,
    "dead.onnx": DEAD,
    "einsum.onnx": OLD.replace("[gemm]", 'dead = Einsum <equation = "ij->i"> (n) [gemm]'),
    "grid.onnx": GRID,
    "rows.onnx": ROWS,
    "equal.onnx": TWICE,
    "mixed.onnx": MIXED,
    "one.onnx": FIRST,
    "two.onnx": SECOND,
    "other.onnx": OTHER,
    "preprocessed.onnx": IMAGE.replace("OPSET", "18"),
    "opset6.onnx": IMAGE.replace("OPSET", "6"),
    "chain.onnx": models.CHAIN,
    "chain2.onnx": models.CHAIN.replace("Relu(x)", "Abs(x)").replace("[last]", "[end]"),
    "weights2.onnx": models.CHAIN.replace("3, 4}", "3, 6}"),
    "branches.onnx": models.PLAIN_BRANCHES,
    "shadowed.onnx": models.BRANCHES,
    "shadowed2.onnx": models.BRANCHES.replace("[inner] h = Neg(a)", "[inner] h = Abs(a)")
    .replace("[pre] a = Relu(x)", "[first] a = Relu(x)\n[extra] q = Tanh(a)")
    .replace("[shadow]", "[dark]"),
    "wander.onnx": models.BRANCHES.replace("[pre]", "[wander] q = Tanh(x)\n[pre]"),
    "wandered.onnx": models.BRANCHES.replace("[inner]", "[wander] q = Tanh(x)\n[inner]"),
    "ghost.onnx": models.BRANCHES.replace("Neg(a)", "Neg(ghost)"),
    "functions.onnx": models.FUNCTIONS,
    "transposes.onnx": models.TRANSPOSES,
    "shady.onnx": models.SHADY,
    "image.onnx": models.IMAGE,
    "broken.onnx": BROKEN,
    "constant.onnx": CONSTANT,
    "redeclared.onnx": REDECLARED,
    "alive.onnx": ALIVE,
    "layered.onnx": models.layered(3),
    "deep.onnx": models.layered(12),
    "tokens.onnx": models.TOKENS,
    "custom.onnx": CUSTOM,
    "sums.onnx": SUMS,
    "sums2.onnx": SUMS.replace("4}", "4.5}").replace("1, 1, 1, 1", "1, 1, 0, 1"),
    "hostile_sums.onnx": SUMS.replace("[second]", '["b]0;\\u202ex"]').replace("4}", "9}"),
}
_TEXTS = {
    "empty.onnx": "",
    "chain-box.dldprof": "",
    "zip.onnx": "PK\x03\x04 and so on",
    "page.onnx": "<!DOCTYPE html><html>",
    "cut.onnx": "\x08",
    "dld.toml": '[requirements]\n"chain.onnx" = ["size <= 1 B", "nodes <= 3"]\n"one.onnx" = 3\n',
    "layers.profile.json": '[{"count": 4}, {"name": "Conv_0 + Relu_1", "timeMs": 8, "averageMs": 2,'
    ' "medianMs": 1.5, "percentage": 80}, {"name": "odd\\u001b[2J", "timeMs": 2,'
    ' "averageMs": 0.5, "medianMs": 0.5, "percentage": 20}]',
    "times.json": '[{"startComputeMs": 1, "endComputeMs": 3.5, "computeMs": 2.5,'
    ' "latencyMs": 2.5}, {"startComputeMs": 4, "endComputeMs": 7, "computeMs": 3, "latencyMs": 3}]',
    "many.jsonl": '{"edit": "rename_node", "node": "first", "name": "start\\u001b[2J"}\n'
    '{"edit": "delete_nodes", "nodes": ["second"]}\n',
    "pattern.txt": "# a comment\n(x, w) => (y) {\n  h = Neg(x)\n  y = Add(h, w)\n}\n",
    "rename.jsonl": '# a remark\n{"edit": "rename_node", "node": "first", "name": "start"}\n',
    "half.jsonl": '{"edit": "rename_node", "node": "gone", "name": "a"}\n'
    '{"edit": "rename_node", "node": "first", "name": "start"}\n',
    "wrong.jsonl": '{"edit": "rename_node", "node": "first", "name": "start"}\n{',
    "text.dldprof": "SQLite format 3\0 and then nothing",
    "cut.json": '{"Layers": [{"Name": "a", "LayerType": "kg',
    "trtexec.log": engine_files.LOG,
    "errors.log": "&&&& RUNNING TensorRT.trtexec [TensorRT v8203] # trtexec --onnx=m.onnx\n"
    "[05/07/2022-06:13:09] [E] [TRT] 10: [optimizer.cpp::computeCosts::3728] Error Code 10:"
    " Internal Error (Could not find any implementation for node {ForeignNode[/a/Conv...]}.)\n"
    + "".join(f"[05/07/2022-06:13:09] [E] [TRT] error {number}\n" for number in range(2, 13))
    + "&&&& FAILED TensorRT.trtexec [TensorRT v8203] # trtexec --onnx=m.onnx\n",
    "run.log": "&&&& RUNNING TensorRT.trtexec [TensorRT v8203] # trtexec --onnx=m.onnx --fp16\n"
    "[05/07/2022-06:13:09] [E] [TRT] no tactic\n"
    "&&&& FAILED TensorRT.trtexec [TensorRT v8203] # trtexec --onnx=m.onnx --fp16\n",
}


def _model(text: str, path: Path) -> None:
    models.write(path.parent, text, path.name)


def _samples(path: Path, **sizes: tuple[int, ...]) -> None:
    dice = np.random.default_rng(3)
    path.mkdir()
    for name, dims in sizes.items():
        numbers = dice.integers(0, 8, dims)
        values = numbers if name == "ids" else (numbers / 4 - 1).astype(np.float32)
        np.save(path / f"{name}.npy", values)


def _text(text: str, path: Path) -> None:
    path.write_text(text)


def _hostile(path: Path) -> None:
    """Write a model whose first node has escapes and a bidirectional override in its name."""
    model = models.parse(models.CHAIN)
    model.graph.node[0].name = "a\x1b]52;c;x\x07\u202eb"
    onnx.save(model, path)


def _no_utf8(path: Path) -> None:
    data = models.parse(models.CHAIN).SerializeToString()
    path.write_bytes(data.replace(b"first", b"f\xff\xfest"))


def _plan(path: Path) -> None:
    """Write a plan of two layers, one of them with a hostile name, and their times."""
    write_layers(path, [
        {"Name": "conv", "of": "Int8", "to": "Float", "Metadata": "[ONNX Layer: conv]"},
        {"Name": HOSTILE, "LayerType": "Reformat", "ParameterType": "Reformat"},
    ])  # fmt: skip
    write_profile(path.with_name("net.profile.json"), [("conv", 3.0), (HOSTILE, 1.0)])


CONV = NodeLink((), "stem/Conv", "stem/Conv", "Conv", share=0.5)
RELU = NodeLink((), "stem/Relu", "stem/Relu", "Relu", share=0.5)
LAYERS = [
    Layer("fused", "FusedConv", provider="CPU", nodes=(CONV, RELU), confidence="rule"),
    Layer(HOSTILE, "Add", provider="CPU"),
]


def two_layers(path: Path, *, finished: bool = True) -> Path:
    """Write a report of two layers: 3 ms and 1 ms in each of three passes."""
    made = ReportWriter.create(
        path, network="net", backend="ONNX Runtime 1", execution_provider="CPU",
        device="a processor", model={}, settings={"iterations": 3}, environment={"os": "Linux"},
    )  # fmt: skip
    made.add_latencies([4.0, 4.5, 5.0])
    first, second = (made.add_layer(layer) for layer in LAYERS)
    for index in range(3):
        start = 10_000.0 * index
        made.add_pass(index, start, 4000.0)
        made.add_samples(
            index, [(first, start, 3000.0, 3000.0, 1), (second, start + 3000, 1000.0, 1000.0, 1)]
        )
    if finished:
        made.finish()
    else:
        made.abort()
    return path


def _decoder(path: Path) -> None:
    """Write the folder of a language model with a second model and a tokenizer."""
    decoders.folder(path)
    (path / "tokenizer.json").write_text("{}")
    decoders.grouped(path / "embedding.onnx", layers=1)


def _times(middle: float) -> list[float]:
    """Return the milliseconds of a layer in each pass: `middle` in the fastest."""
    return [middle * (1 + 0.002 * (number % 4)) for number in range(20)]


def _cpu(name: str, kind: str, *nodes: str) -> Layer:
    links = tuple(NodeLink((), node, node, kind, share=1 / len(nodes)) for node in nodes)
    return Layer(name, kind, provider="CPU", nodes=links, confidence="tensor")


def three_layers(path: Path) -> Path:
    write_report(path, [
        (_cpu("/stem/conv", "Conv", "/stem/conv"), _times(4.0)),
        (_cpu("/stem/relu", "Relu", "/stem/relu"), _times(2.0)),
        (_cpu("/head/add\x1b[2J", "Add", "/head/add"), _times(1.0)),
    ])  # fmt: skip
    return path


def two_fused(path: Path) -> Path:
    """Write a report in which two of the three layers are fused, and one is inserted."""
    write_report(path, [
        (_cpu("/stem/fused", "FusedConv", "/stem/conv", "/stem/relu"), _times(3.0)),
        (_cpu("/head/add\x1b[2J", "Add", "/head/add"), _times(1.0)),
        (_cpu("reorder", "ReorderOutput"), _times(0.5)),
    ])  # fmt: skip
    return path


def _sweep(ms: float, path: Path) -> None:
    points = [
        SweepPoint((batch,), tuple(ms * (batch + 0.01 * turn) for turn in range(6)))
        for batch in (1, 2)
    ]
    path.write_text(sweep_text(Sweep("m.onnx", "ORT", (SweepAxis(BATCH, (1, 2)),), tuple(points))))


def decoder_report(path: Path) -> Path:
    """Write the report of a decoder: two lengths of the prompt, three repetitions."""
    figures = [
        GenerationFigures(
            1, prompt, 2, ms, ms + 1.0, 2.0 * ms, (ms, ms), 4096 * prompt, warm_ups=2,
            repeats_ms=(2.0 * ms, 2.02 * ms, 2.04 * ms),
            first_tokens_ms=(ms + 1.0, ms + 1.02, ms + 1.04), longest_step_ms=1.1 * ms,
        )
        for prompt, ms in ((8, 4.0), (64, 10.0))
    ]  # fmt: skip
    with start_report(path) as report:
        report.set_property(GENERATION, figures)
        report.add_latencies([4.0, 4.04, 4.08])
        attention = report.add_layer(_cpu("/attn", "GroupQueryAttention", "/attn"))
        product = report.add_layer(_cpu("/head", "MatMul", "/head"))
        for index in range(3):
            start = 10_000.0 * index
            report.add_pass(index, start, 4000.0)
            report.add_samples(
                index,
                [(attention, start, 3e3, 3e3, 1), (product, start + 3000, 1e3, 1e3, 1)],
            )
    return path


def slow_engine(path: Path) -> Path:
    """Write an engine in fp32 with its times."""
    write_layers(path, [
        {"Name": "first + second", "TacticName": "scudnn"}, {"Name": "third", "TacticName": "s"},
    ])  # fmt: skip
    write_profile(path.with_name("slow.profile.json"), [("first + second", 3.0), ("third", 1.0)])
    return path


def fast_engine(path: Path) -> Path:
    """Write the same engine in fp16, with a copy to another type."""
    copy = "Reformatting CopyNode for Input Tensor 0 to third"
    write_layers(path, [
        {"Name": "first + second", "TacticName": "h1688", "of": "Half"},
        {"Name": copy, "LayerType": "Reformat", "ParameterType": "Reformat", "of": "Half",
         "to": "Float"},
        {"Name": "third", "TacticName": "s"},
    ])  # fmt: skip
    rows = [("first + second", 0.75), (copy, 0.25), ("third", 1.0)]
    write_profile(path.with_name("fast.profile.json"), rows)
    return path


def _chrome(path: Path) -> None:
    """Write a Chrome trace of another program, with operators and a kernel."""
    events = [
        traces.x("aten::mm", 1, 2000, cat="cpu_op"),
        traces.x(HOSTILE, 2100, 500, cat="cpu_op"),
        traces.x("gemm_kernel", 1000, 900, cat="kernel"),
    ]
    path.write_text(json.dumps(events))


def _ort(path: Path) -> None:
    """Write a profile of ONNX Runtime of two runs."""
    write_profile_events(path, [
        kernel("first", "Relu", 100, 1000), kernel(HOSTILE, "MatMul", 1200, 1500, index=1),
        run(0, 3000),
        kernel("first", "Relu", 5100, 900), kernel(HOSTILE, "MatMul", 6200, 1400, index=1),
        run(5000, 2800),
    ])  # fmt: skip


FORK = """<ir_version: 8, opset_import: ["" : 17]>
fork (float[2, 4] x) => (float[2, 4] y) {
    [pre] a = Relu(x) [left] l = Exp(a) [right] r = Abs(a) [join] y = Add(l, r)
}"""


def _fork(path: Path) -> None:
    """Write the times of a model whose two branches may run at once."""
    write_report(path, [
        (_cpu(name, kind, name), _times(ms))
        for name, kind, ms in (
            ("pre", "Relu", 1.0), ("left", "Exp", 4.0), ("right", "Abs", 3.0), ("join", "Add", 2.0)
        )
    ])  # fmt: skip


def _rich(path: Path) -> None:
    """Write a report with costs, memory, energy, inputs and stages of the start."""
    made = ReportWriter.create(
        path, network="net", backend="ONNX Runtime 1", execution_provider="CPU",
        device="a processor", model={}, settings={}, environment={},
    )  # fmt: skip
    told = {"name": "x", "dtype": "float32", "shape": [2, 3], "why": "batch by its name"}
    for name, value in (("load_ms", 12.5), ("energy_per_inference_j", 0.25), ("inputs", [told])):
        made.set_property(name, value)
    cost = Cost(
        flops=3000, moved_bytes=600, roof_ms=1.5, bound="compute", in_use_bytes=4096,
        arena_bytes=8192,
    )  # fmt: skip
    first = made.add_layer(
        replace(LAYERS[0], cost=cost, input_dims=((1, 3), None), output_dims=((1, 8),))
    )
    second = made.add_layer(replace(LAYERS[1], cost=Cost(500), nodes=()))
    for index in range(3):
        start = 10_000.0 * index
        made.add_pass(index, start, 5000.0)
        made.add_samples(
            index, [(first, start, 3000.0, 3000.0, 1), (second, start + 3e3, 1e3, 1e3, 1)]
        )
    made.finish()


def _points(turns: Mapping[Any, tuple[float, ...]], *axes: SweepAxis) -> str:
    """Return the text of a sweep of turns of milliseconds; a point without turns failed."""
    points = tuple(
        SweepPoint(at, some, problem="" if some else "out of memory") for at, some in turns.items()
    )
    return sweep_text(Sweep("m.onnx", "ORT", axes, points))


def _of_batches(*turns: tuple[float, ...]) -> str:
    sizes = tuple(1 << at for at in range(len(turns)))
    return _points(
        {(size,): some for size, some in zip(sizes, turns, strict=True)}, SweepAxis(BATCH, sizes)
    )


def _of_lengths(name: str, *lengths: int) -> str:
    """Return a sweep of which short sequences are more items a second."""
    turns = {(b, n): (n / 16 * (1 + 0.5 * (b - 1) * n / 16),) * 6 for b in (1, 2) for n in lengths}
    return _points(turns, SweepAxis(BATCH, (1, 2)), SweepAxis(name, lengths))


_SWEEPS = {
    "failed.sweep.json": _of_batches((10.0,) * 6, (12.0,) * 6, (20.0,) * 6, ()),
    "rough.sweep.json": _of_batches((0.4,) * 6, (0.75, 15.0, 0.9, 10.0, 13.0, 0.84)),
    "near.sweep.json": _of_batches((0.4,) * 6, (0.4,) * 5 + (0.39,)),
    "knee.sweep.json": _of_batches((0.36,) * 4 + (0.33, 0.35), (0.68,) * 6, (1.35,) * 6),
    "threads.sweep.json": _points(
        {(1,): (8.0,) * 6, (2,): (4.1,) * 6, (4,): (4.0,) * 6}, SweepAxis(THREADS, (1, 2, 4))
    ),
    "sizes.sweep.json": _of_lengths("sequence", 16, 64),
    "lengths.sweep.json": _of_lengths("n", *range(1, 8)),
}


def _row(name: str, total: float, average: float, percent: float) -> dict[str, object]:
    return {"name": name, "timeMs": total, "averageMs": average, "percentage": percent}


def _inference(start: float, ms: float, *, copy: float = 0.25, enqueue: float = 0.1) -> JSON:
    """Return the times of an inference as trtexec writes them."""
    marks = (start, start + copy, start + copy + ms, start + 2 * copy + ms)
    return {
        "startEnqMs": start, "endEnqMs": start + enqueue, "startH2dMs": marks[0],
        "endH2dMs": marks[1], "startComputeMs": marks[1], "endComputeMs": marks[2],
        "startD2hMs": marks[2], "endD2hMs": marks[3], "h2dMs": copy, "computeMs": ms,
        "d2hMs": copy, "latencyMs": 2 * copy + ms,
    }  # fmt: skip


_HEAD = {"count": 10}
_ROWS = [_row("Conv_0 + Relu_1", 30.0, 3.0, 60.0), _row("Add_2", 20.0, 2.0, 40.0)]
_UNSOUND = [_row("negative", -1.0, -1.0, 0.0), _row("huge", 1e300, 1.0, 0.0), {"name": "none"}]
_SIX = [_inference(500.0 + 2 * at, 1.0) for at in range(6)]
_TRTEXEC = {
    "twice.profile.json": json.dumps([_HEAD, *_ROWS, _ROWS[0]]),
    "runs.profile.json": json.dumps([_HEAD, *_ROWS, {"count": 7}, _row("new", 7.0, 1.0, 100.0)]),
    "unsound.profile.json": json.dumps([_HEAD, *_ROWS, *_UNSOUND]),
    "cut.profile.json": json.dumps([_HEAD, *_ROWS])[:-30],
    "enqueue.json": json.dumps([_inference(at, 0.5, enqueue=0.9) for at in range(3)]),
    "twice.timing.json": json.dumps([*_SIX, *_SIX, {"computeMs": -1}]),
    "warm.timing.json": json.dumps([_inference(2.5 + 100 * at, 9.0 - at) for at in range(4)]),
    "runs.timing.json": "".join(json.dumps([_inference(500, ms)]) for ms in (1.0, 2.0, 3.0)),
}


def _lost_tuning(path: Path) -> None:
    result = tuned_results.found(path.parent, confirmed=None)
    Path(result.report).rename(path)


def _annotated(path: Path) -> None:
    """Write a model with declared types, annotations, metadata, odd texts and bad profiles."""
    model = models.parse(models.CHAIN)
    model.doc_string, model.producer_name = "one\ntwo\nthree", HOSTILE
    model.metadata_props.add(key=HOSTILE, value="of the model")
    profiles = [{"x": {"min": [1, 5], "opt": [1, 4], "max": [1, 4]}}]
    model.metadata_props.add(key="dld.profiles", value=json.dumps(profiles))
    graph = model.graph
    declared = onnx.helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, ["N", 4])
    graph.value_info.append(declared)
    for name in ("a", HOSTILE):
        annotation = graph.quantization_annotation.add(tensor_name=name)
        annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    graph.node[0].doc_string = "a\\b\n\x1b]0;x\x07"
    graph.node[1].metadata_props.add(key="k", value="v")
    onnx.save(model, path)


def _shelf(path: Path) -> None:
    """Make a folder of models, reports and engines, with other ones below it."""
    names = (
        "chain.onnx", "net.dldprof", "rich.dldprof", "classifier.onnx", "net.graph.json",
        "below/page.onnx", "below/deep/attributes.onnx", "below/a.sweep.json", "trtexec.log",
    )  # fmt: skip
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        FILES[Path(name).name](path / name)
    for age, file in enumerate(sorted(path.rglob("*.*"))):
        os.utime(file, (1.7e9 - age, 1.7e9 - age))


def _targets(path: Path) -> None:
    """Save two targets that refuse connections, and jobs that were started there."""
    for port, name in enumerate(("box", "orin"), 1):
        saved_targets.save(Connection(name, "127.0.0.1", port, "me", config=False))
    started = time.time()
    jobs = [("box", "profile_onnxruntime", path), ("gone", "no\x1b", path), ("orin", "gate", "")]
    for number, (target, activity, output) in enumerate(jobs):
        outputs = (StoredOutput("out", str(output)),) if output else ()
        identifier = f"20260102-00000{number}-00000000"
        JobsStore().put(StoredJob(identifier, target, activity, started, outputs))


_DATA = Path(__file__).resolve().parents[1] / "data"
_HOME = re.compile(rb"/(?:home/[^/]+|work)/(?:[^/\s\"]+/)*(?=[^/\s\"]+\.onnx)")
"""The folders of models on the machines that files are of."""
_RESNET = "engines/trex/examples/pytorch/resnet/A100"


def _real(member: str, path: Path, archive: str = "engines") -> None:
    """Write a file of ``tests/data``, and those of the same beginning, which lie beside it."""
    stem = member.removesuffix(".graph.json")
    beside = path.name.removesuffix(".graph.json")
    for name, data in _unpacked(archive).items():
        if name.startswith(stem):
            other = path.with_name(beside + name.removeprefix(stem))
            other.write_bytes(_HOME.sub(b"/models/", data))


@cache
def _unpacked(archive: str) -> dict[str, bytes]:
    with tarfile.open(_DATA / f"{archive}.tar.xz") as packed:
        files = {info.name: packed.extractfile(info) for info in packed if info.isfile()}
        return {name: file.read() for name, file in files.items() if file is not None}


def _other_settings(path: Path) -> None:
    """Write the report of another model with other settings, shapes and a busy machine."""
    made = start_report(
        path, model={"sha256": "0" * 64, "bytes": 10, "path": "/m/net.onnx"},
        settings={"provider": "CPU", "threads": 2, "warm_up": 3, "input_shapes": {"x": [1, 3]}},
        environment={"python": "3.1", "cpu_threads": 2, "other_busy_threads": 1.7,
                     "load_average": [9.0], "gpu_temperature_c": 40},
    )  # fmt: skip
    made.add_latencies(_times(9.0))
    first = made.add_layer(_cpu("/stem/conv", "Conv", "/stem/conv"))
    for index, ms in enumerate(_times(9.0)):
        made.add_pass(index, index * 1e6, 1000 * ms)
        made.add_samples(index, [(first, index * 1e6, 1000 * ms, 1000 * ms, 1)])
    made.finish()


FILES: dict[str, Callable[[Path], object]] = {
    **{name: partial(_model, text) for name, text in _MODELS.items()},
    **{name: partial(_text, text) for name, text in {**_TEXTS, **_SWEEPS, **_TRTEXEC}.items()},
    "hostile.onnx": _hostile,
    "no_utf8.onnx": _no_utf8,
    "binary.jsonl": lambda path: path.write_bytes(b"\xff\xfe"),
    "net.graph.json": _plan,
    "engine.graph.json": lambda path: engine_files.write_engine(path.parent).rename(path),
    "llm": _decoder,
    "llm_wrong": lambda path: decoders.folder(path, head_size=8),
    "profiled.dldprof": make_report,
    "net.dldprof": two_layers,
    "apart.dldprof": three_layers,
    "fused.dldprof": two_fused,
    "a.sweep.json": partial(_sweep, 1.0),
    "b.sweep.json": partial(_sweep, 2.0),
    "slow.graph.json": slow_engine,
    "fast.graph.json": fast_engine,
    "weights.onnx": lambda path: model_file(path.parent).rename(path),
    "killed.dldprof": partial(two_layers, finished=False),
    "gpu.dldprof": make_gpu_report,
    "classifier.onnx": lambda path: onnx.save(samples.demo_classifier(), path),
    "tiny.engine.graph.json": lambda path: engine_files.write_engine(path.parent, timing=True),
    "chrome.json": _chrome,
    "busy.dldprof": _other_settings,
    "resnet.graph.json": partial(_real, f"{_RESNET}/fp16/resnet.onnx.engine.graph.json"),
    "qat.graph.json": partial(_real, f"{_RESNET}/qat/resnet-qat.onnx.engine.graph.json"),
    "result-01.log": partial(_real, "engines/cookbook/trtexec-10.16.1-result-01.log"),
    "result-04.log": partial(_real, "engines/cookbook/trtexec-10.16.1-result-04.log"),
    "fp16.txt": partial(_real, "engines/cookbook/trtexec-8.2.3-FP16.txt"),
    "printer.log": partial(_real, "engines/cookbook/engineprinter-10.16.1.log"),
    "detailed.json": partial(_real, "engines/cookbook/trt10.16.1-exportLayerInfo-detailed.json"),
    "names.json": partial(_real, "engines/cookbook/trt8.6-exportLayerInfo-namesonly.json"),
    "midway.json": partial(
        _real, "ortprofile/edge/run_failed_midway.ort1.31.1.json", archive="profiles"
    ),
    "shufflenet.json": partial(
        _real, "ortprofile/light_shufflenet.ort1.8.1.json", archive="profiles"
    ),
    "silero.json": partial(_real, "ortprofile/silero_if.ort1.31.1.json", archive="profiles"),
    "cuda.json": partial(_real, "ortprofile/resnet50_cuda_h200.ort1.31.1.json", archive="profiles"),
    "second.profile.json": lambda path: write_profile(path, [("conv", 8.0)]),
    "ort.json": _ort,
    "rich.dldprof": _rich,
    "fork.onnx": partial(_model, FORK),
    "fork.dldprof": _fork,
    "tiny.onnx": lambda path: engine_files.write_model(path.parent),
    "nested.dldprof": make_nested_report,
    "decoder.dldprof": decoder_report,
    "rich.onnx": lambda path: with_weights(path, RICH, w=(8, 3, 3, 3), k=(8, 4), table=(10, 4)),
    "projections.onnx": lambda path: with_weights(
        path, PROJECTIONS, w=(32, 64), v=(64, 16), t=(16, 16), table=(9, 32), u=(16, 8)
    ),
    "loops.onnx": lambda path: with_weights(path, LOOPS, start=()),
    "convs.onnx": lambda path: with_weights(
        path, CONVS, w=(4, 4, 3, 3), v=(4, 1, 3, 3), t=(4, 2, 2, 2), h=(6, 4), bias=(6,)
    ),
    "convs.samples": partial(_samples, x=(2, 4, 8, 8)),
    "projections.samples": partial(_samples, x=(3, 32), ids=(4,)),
    "fixed.onnx": partial(_model, FIXED),
    "language.onnx": lambda path: with_weights(path, LANGUAGE, w8=(32, 32), u=(32, 32), v=(32, 16)),
    "language.samples": partial(_samples, x=(3, 32)),
    "overflows.onnx": partial(_model, OVERFLOWS),
    "m.tune.json": lambda path: tuned_results.found(path.parent),
    "lost.tune.json": _lost_tuning,
    "sums.npy": lambda path: np.save(path, np.array([[1.5, -2], [0, 4]], np.float32)),
    "annotated.onnx": _annotated,
    "switch.onnx": lambda path: body_models.write(path.parent, "SWITCH").rename(path),
    "targets": _targets,
    "shelf": _shelf,
    "tensors.onnx": lambda path: write_tensors(path.parent),
    "grouped.onnx": decoders.grouped,
    "types.dldprof": lambda path: make_report(path, layers=25),
}
