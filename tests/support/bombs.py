"""Small models that stand for much work or memory, as ONNX text.

None has names of nodes, as many exporters give none. What to expect of all of them: each command
ends soon, with little memory, and says which node it was.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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
    "MatMul of made constants": "<int64[2] s = {9000, 9000}>"
    " { a = ConstantOfShape (s) b = MatMul (a, a) y = ReduceSum (b) }",
    "chain of MatMul": "<int64[2] s = {4000, 4000}> { a = ConstantOfShape (s) "
    + _doubled("a", "MatMul ({0}, {0})", 30)
    + " y = ReduceSum (t29) }",
    "Conv of made constants": "<int64[4] s = {1, 256, 1000, 1000}, int64[4] k = {256, 256, 3, 3}>"
    " { a = ConstantOfShape (s) w = ConstantOfShape (k) c = Conv (a, w) y = ReduceSum (c) }",
    "broadcast": "<int64[2] r = {1048576, 1}, int64[2] s = {1, 1048576}>"
    " { a = ConstantOfShape (r) b = ConstantOfShape (s) c = Add (a, b) y = ReduceSum (c) }",
    "many tensors": "<int64[1] s = {200000000}, float[1] v = {1}> { "
    + " ".join(f"e{number} = Expand (v, s)" for number in range(24))
    + " c = Concat <axis = 0> ("
    + ", ".join(f"e{number}" for number in range(24))
    + ") y = ReduceSum (c) }",
    "strings": '<int64[1] s = {1099511627776}, string[1] v = {"a"}>'
    " { z = Expand (v, s) k = Size (z) y = Cast <to = 1> (k) }",
    "strings by Tile": '<int64[1] s = {4611686018427387}, string[1] v = {"a"}>'
    " { z = Tile (v, s) k = Size (z) y = Cast <to = 1> (k) }",
    "long Scan": "<int64[1] s = {300000000}, float v = {0}> { a = ConstantOfShape (s)"
    " z = Scan <num_scan_inputs = 1, body: graph = b (float st, float it) => (float so)"
    " { so = Add (st, it) }> (v, a) y = Identity (z) }",
    "loops in a loop": "<int64 n = {2000000}, bool c = {1}> { z = Loop (n, c, x) <body: graph = b"
    " (int64 it, bool ci, float[1,4] st) => (bool co, float[1,4] so) { co = Identity (ci) so = Loop"
    " (n, c, st) <body: graph = b2 (int64 it2, bool ci2, float[1,4] st2) => (bool co2, float[1,4]"
    " so2) { co2 = Identity (ci2) so2 = Relu (st2) }> }> y = ReduceSum (z) }",
    "RandomNormal": "{ z = RandomNormal <shape = [1048576, 1048576]> () y = ReduceSum (z) }",
    "EyeLike": "<int64[2] s = {40000, 40000}> { a = ConstantOfShape <value = bool[1] {0}> (s)"
    " z = EyeLike <dtype = 1> (a) y = ReduceSum (z) }",
    "padded Conv": "<int64[4] s = {1, 1, 1, 4}, float[1,1,1,1] w = {1}> { a = Reshape (x, s)"
    " z = Conv <pads = [1048576, 1048576, 1048576, 1048576]> (a, w) y = ReduceSum (z) }",
    "ConvTranspose": "<int64[4] s = {1, 1, 2, 2}, float[1,1,1,1] w = {1}> { a = Reshape (x, s)"
    " z = ConvTranspose <strides = [1048576, 1048576]> (a, w) y = ReduceSum (z) }",
    "HannWindow": "<int64 n = {1099511627776}> { z = HannWindow (n) y = ReduceSum (z) }",
    "Multinomial": "{ z = Multinomial <sample_size = 1099511627776> (x) q = Cast <to = 1> (z)"
    " y = ReduceSum (q) }",
    "SplitToSequence": "<int64[1] s = {100000000}, int64 p = {1}> { a = ConstantOfShape (s)"
    " z = SplitToSequence <axis = 0> (a, p) k = SequenceLength (z) y = Cast <to = 1> (k) }",
    "long LSTM": "<int64[3] s = {20000000, 1, 1}, float[1,4,1] w = {1,1,1,1}, float[1,4,1] r ="
    " {1,1,1,1}> { a = ConstantOfShape (s) z = LSTM <hidden_size = 1> (a, w, r)"
    " y = ReduceSum (z) }",
    "Einsum": '{ z = Einsum <equation = "ab,cd,ef,gh,ij,kl,mn,op,qr,st,uv,wx->abcdefghijklmnop'
    'qrstuvwx"> (' + ", ".join("x" * 12) + ") y = ReduceSum (z) }",
}


def write_bomb(folder: Path, name: str) -> Path:
    model = _BUILT[name]() if name in _BUILT else parser.parse_model(_HEAD + TEXTS[name])
    path = folder / f"{name.replace(' ', '_')}.onnx"
    onnx.save(model, path)
    for tensor in model.graph.initializer:
        for entry in tensor.external_data:
            if entry.key == "location":
                with (folder / entry.value).open("wb") as file:
                    file.truncate(_EXTERNAL_BYTES)  # a hole: it takes no place on the disk
    return path


def _model(
    nodes: list[onnx.NodeProto],
    shape: list[int],
    *tensors: onnx.TensorProto,
    sparse: Sequence[onnx.SparseTensorProto] = (),
) -> onnx.ModelProto:
    """Return a model that makes a scalar y of x."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=tensors, sparse_initializer=sparse)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def _deep_branches(depth: int = 25) -> onnx.ModelProto:
    """Return an If in an If in an If, as deep as protobuf reads."""
    y, c = helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("c", 9, [])
    leaf = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "leaf", [], [y])
    graph = leaf
    for number in range(depth):
        node = helper.make_node("If", ["c"], ["y"], then_branch=graph, else_branch=leaf)
        graph = helper.make_graph([node], f"g{number}", [], [y])
    model = _model(list(graph.node), [1, 4])
    model.graph.input.append(c)
    return model


def _sum(name: str) -> onnx.NodeProto:
    return helper.make_node("ReduceSum", [name], ["y"])


def _sparse() -> onnx.SparseTensorProto:
    values = helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [1.0])
    places = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [7])
    return helper.make_sparse_tensor(values, places, [10**12])


def _sparse_constant() -> onnx.ModelProto:
    return _model([helper.make_node("Constant", [], ["z"], sparse_value=_sparse()), _sum("z")], [1])


def _sparse_initializer() -> onnx.ModelProto:
    return _model([_sum("w")], [1], sparse=[_sparse()])


def _external() -> onnx.ModelProto:
    tensor = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT)
    tensor.dims.append(_EXTERNAL_BYTES // 4)
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, text in (("location", "external.bin"), ("length", str(_EXTERNAL_BYTES))):
        tensor.external_data.add(key=key, value=text)
    return _model([helper.make_node("Mul", ["w", "x"], ["z"]), _sum("z")], [1], tensor)


def _large_input() -> onnx.ModelProto:
    return _model([_sum("x")], [1 << 20, 1 << 20])


_EXTERNAL_BYTES = 1 << 42
_BUILT = {
    "deep branches": _deep_branches,
    "sparse Constant": _sparse_constant,
    "sparse initializer": _sparse_initializer,
    "external data": _external,
    "large input": _large_input,
}
NAMES = (*TEXTS, *_BUILT)


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
