"""Small models that stand for much work or memory, as ONNX text.

None has names of nodes, as many exporters give none. What to expect of all of them: each command
ends soon, with little memory, and says which node it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import onnx
from onnx import helper, parser

_HEAD = '<ir_version: 9, opset_import: ["" : 17]>\ng (float[1,4] x) => (float[] y) '
_MANY = 1 << 62
_LOOP = f"<int64 n = {{{_MANY}}}, bool c = {{1}}> "


def _doubled(first: str, node: str, count: int) -> str:
    """Return nodes each of which takes the output of the one before."""
    names = [first, *(f"t{number}" for number in range(count))]
    return " ".join(f"{after} = {node.format(before)}" for before, after in pairwise(names))


TEXTS = {
    "loop that doubles": "<int64 n = {4611686018427387904}, bool c = {1}, float[8] v ="
    " {1,1,1,1,1,1,1,1}> { z = Loop (n, c, v) <body: graph = b (int64 it, bool ci, float[k] st)"
    " => (bool co, float[k2] so) { co = Identity (ci) so = Concat <axis = 0> (st, st) }>"
    " y = ReduceSum (z) }",
    "endless loop": _LOOP + "{ z = Loop (n, c, x) <body: graph = b (int64 it, bool ci,"
    " float[1,4] st) => (bool co, float[1,4] so) { co = Identity (ci) so = Relu (st) }>"
    " y = ReduceSum (z) }",
    "doubled Concat": "<float[8] v = {1,1,1,1,1,1,1,1}> { "
    + _doubled("v", "Concat <axis = 0> ({0}, {0})", 45)
    + " y = ReduceSum (t44) }",
    "endless scan outputs": _LOOP + "{ z = Loop (n, c) <body: graph = b (int64 it, bool ci)"
    " => (bool co, float[1,4] so) { co = Identity (ci) so = Relu (x) }> y = ReduceSum (z) }",
    "sequence that grows": _LOOP + "{ s = SequenceEmpty () l = Loop (n, c, s) <body: graph = b"
    " (int64 it, bool ci, seq(float[1,4]) st) => (bool co, seq(float[1,4]) so)"
    " { co = Identity (ci) so = SequenceInsert (st, x) }> k = SequenceLength (l)"
    " y = Cast <to = 1> (k) }",
    "doubled Tile": "<int64[2] s = {64, 64}, float[1,1] v = {1}> { "
    + _doubled("v", "Tile ({0}, s)", 12)
    + " y = ReduceSum (t11) }",
    "Tile": "<int64[1] s = {4611686018427387}, float[1] v = {1}>"
    " { z = Tile (v, s) y = ReduceSum (z) }",
    "Expand": "<int64[2] s = {1048576, 1048576}, float[1] v = {1}>"
    " { z = Expand (v, s) y = ReduceSum (z) }",
    "Range": "<int64 a = {0}, int64 b = {5000000000}, int64 d = {1}>"
    " { z = Range (a, b, d) q = Cast <to = 1> (z) y = ReduceSum (q) }",
    "ConstantOfShape": "<int64[2] s = {1048576, 1048576}>"
    " { z = ConstantOfShape (s) y = ReduceSum (z) }",
    "Pad": "<int64[4] s = {0, 0, 1048576, 1048576}> { z = Pad (x, s) y = ReduceSum (z) }",
    "OneHot": "<int64[4] i = {0, 0, 1, 2}, int64 d = {2500000000}, float[2] v = {0, 1}>"
    " { z = OneHot (i, d, v) y = ReduceSum (z) }",
    "Resize": "<float[2] s = {1048576, 1048576}, float[0] r = {}>"
    " { z = Resize (x, r, s) y = ReduceSum (z) }",
    "Einsum": '{ z = Einsum <equation = "ab,cd,ef,gh,ij,kl,mn,op,qr,st,uv,wx->abcdefghijklmnop'
    'qrstuvwx"> (' + ", ".join("x" * 12) + ") y = ReduceSum (z) }",
}


def write_bomb(folder: Path, name: str) -> Path:
    """Write a model into a folder; return its path."""
    model = _deep_branches() if name == DEEP else parser.parse_model(_HEAD + TEXTS[name])
    path = folder / f"{name.replace(' ', '_')}.onnx"
    onnx.save(model, path)
    return path


DEEP = "deep branches"
NAMES = (*TEXTS, DEEP)


def _deep_branches(depth: int = 25) -> onnx.ModelProto:
    """Return an If in an If in an If, as deep as protobuf reads."""
    y, x, c = (
        helper.make_tensor_value_info(name, kind, shape)
        for name, kind, shape in (("y", 1, None), ("x", 1, [1, 4]), ("c", 9, []))
    )
    leaf = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "leaf", [], [y])
    graph = leaf
    for number in range(depth):
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=leaf)
        graph = helper.make_graph([node], f"g{number}", [], [y])
    graph.input.extend([x, c])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@dataclass(frozen=True)
class Run:
    """What a command did, with all that it had started."""

    status: int
    said: str
    """On both outputs."""
    seconds: float
    """Of processor time."""
    memory: int
    """The most bytes that one process had."""


def run_command(*arguments: object, factor: float = 0.25, limit_s: float = 300) -> Run:
    """Run ``dld`` in a process of its own, with smaller limits of trials."""
    command = [sys.executable, "-m", "dld_tui", *map(str, arguments)]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["timeout", str(limit_s), *command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env={**os.environ, "DLD_INFERENCE_LIMIT": str(factor)},
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        said = output.read().decode("utf-8", "replace")
    return Run(process.returncode, said, usage.ru_utime + usage.ru_stime, 1024 * usage.ru_maxrss)
