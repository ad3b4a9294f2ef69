"""Small models for tests, written as ONNX text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper

CHAIN = """
<ir_version: 10, opset_import: ["" : 18]>
chain (float[N, 4] x) => (float[N, 4] y)
<float[4] w = {1, 2, 3, 4}, float[2] unused = {5, 6}>
{
    [first] a = Relu(x)
    [second] b = Add(a, w)
    [third] c = Mul(b, b)
    [last] y = Sigmoid(c)
}
"""

TRANSPOSES = """
<ir_version: 10, opset_import: ["" : 18]>
transposes (float[2, 3, 4] x) => (float[3, 4, 2] y, float[2, 3, 4] z)
{
    [first] a = Transpose <perm = [2, 0, 1]> (x)
    [second] y = Transpose <perm = [2, 0, 1]> (a)
    [third] b = Transpose <perm = [1, 2, 0]> (a)
    [last] z = Relu(b)
}
"""

BRANCHES = """
<ir_version: 10, opset_import: ["" : 18]>
branches (bool choice, float[N, 4] x) => (float[N, 4] y)
{
    [pre] a = Relu(x)
    [choose] y = If (choice) <
        then_branch = yes () => (float[N, 4] t) {
            [inner] h = Neg(a)
            t = Add(h, a)
        },
        else_branch = no () => (float[N, 4] e) {
            [shadow] x = Abs(a)
            e = Mul(x, x)
        }
    >
}
"""

PLAIN_BRANCHES = BRANCHES.replace("[shadow] x", "[shadow] s").replace("Mul(x, x)", "Mul(s, s)")
"""Without a value that has the name of an outer one."""

SHADY = """
<ir_version: 10, opset_import: ["" : 18]>
shady (bool choice, float[N, 4] x) => (float[N, 4] y)
<float[1] w = {1}, float[1] w = {1}, float[2] ghost>
{
    [pre] a = Relu(x)
    [call] b = Abs(a, "")
    [choose] y = If (choice) <
        then_branch = yes () => (float[N, 4] a) {
            [left] unused = Neg(b)
        },
        else_branch = no () => (float[N, 4] e) {
            [shadow] x = Abs(a)
            e = Mul(x, x)
        }
    >
}
"""
"""Faults that have repairs."""

FUNCTIONS = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
functions (float[N] x) => (float[N] y)
{
    [call] y = local.twice(x)
}
<domain: "local", opset_import: ["" : 18]>
twice (v) => (r)
{
    [sum] r = Add(v, v)
}
"""


def layered(count: int = 4) -> str:
    """Return a model of equal blocks with name scopes, weights, a stem and a head."""
    weights = ", ".join(f"float[4] w{n} = {{1, 2, 3, 4}}" for n in range(count))
    blocks = "".join(
        f"""
    ["/layers.{n}/norm"] n{n} = Relu(h{n})
    ["/layers.{n}/scale"] s{n} = Mul(n{n}, w{n})
    ["/layers.{n}/gate"] g{n} = Sigmoid(n{n})
    ["/layers.{n}/join"] j{n} = Add(s{n}, g{n})
    ["/layers.{n}/skip"] h{n + 1} = Add(h{n}, j{n})"""
        for n in range(count)
    )
    return f"""
<ir_version: 10, opset_import: ["" : 18]>
layered (float[N, 4] x) => (float[N, 4] y)
<{weights}>
{{
    ["/stem"] h0 = Neg(x)
    {blocks}
    ["/head"] y = Tanh(h{count})
}}
"""


TOKENS = """
<ir_version: 8, opset_import: ["" : 17]>
tokens (int64[batch, seq] ids, int64[batch, seq] mask, int64[batch, seq] kinds)
    => (float[batch, seq, 2] y, int64[batch, seq] top)
<float[4, 2] w = {1, 2, 3, 4, 5, 6, 7, 8}, int64[1] last = {2}>
{
    e = Gather(w, ids)
    k = Gather(w, kinds)
    m = Cast <to = 1> (mask)
    s = Sub(e, k)
    wide = Unsqueeze(m, last)
    y = Mul(s, wide)
    top = ArgMax <axis = 2, keepdims = 0> (y)
}
"""
"""Three inputs of integers, which a Gather or a Cast takes."""

IMAGE = """
<ir_version: 8, opset_import: ["" : 17]>
image (float[batch, 3, 4, 5] x) => (float[batch, 4, 5, 3] y, float[batch, 3, 4, 5] z)
{
    t = Transpose <perm = [0, 2, 3, 1]> (x)
    h = Cast <to = 10> (t)
    y = Cast <to = 1> (h)
    a = Relu(x)
    z = Add(a, a)
}
"""
"""An image that is used in two layouts."""
ENDLESS = """
<ir_version: 8, opset_import: ["" : 17]>
endless (float[4] x) => (float[4] y) {
    trips = Constant <value = int64 {9000000000000000000}> ()
    y = Loop <body = body (int64 i, bool go, float[4] a) => (bool again, float[4] b) {
        again = Identity (go)
        b = Sin (a)
    }> (trips, , x)
}
"""
"""A model whose pass does not end in a lifetime."""


def parse(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


def write(folder: Path, text: str, name: str = "model.onnx") -> Path:
    path = folder / name
    path.write_bytes(parse(text).SerializeToString())
    return path


def weighted(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model; what its text declares, and no node makes, is a weight with drawn values."""
    random = np.random.default_rng(3)
    made = {name for node in model.graph.node for name in node.output}
    for info in model.graph.value_info:
        if info.name not in made:
            kind = info.type.tensor_type
            shape = [dim.dim_value for dim in kind.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
            is_integer = np.issubdtype(dtype, np.integer)
            drawn = (
                random.integers(-127, 128, shape) if is_integer else random.normal(size=shape) / 2
            )
            values = drawn.astype(dtype)
            model.graph.initializer.append(numpy_helper.from_array(values, info.name))
    del model.graph.value_info[:]
    return model


def write_weighted(folder: Path, text: str, name: str = "model.onnx") -> Path:
    """Write a model with weights."""
    path = folder / name
    path.write_bytes(weighted(parse(text)).SerializeToString())
    return path
