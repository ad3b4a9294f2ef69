"""Models with bodies of every kind and with local functions, for tests."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support import models

LOOP = """
<ir_version: 10, opset_import: ["" : 18]>
loop (int64 n, bool go, float[2] x, float[3, 2] rows) => (float[2] y, float[2] sum, float[3, 2] all)
{
    [twice] d = Add(x, x)
    [repeat] y = Loop (n, go, x) <body = step (int64 i, bool c, float[2] s)
        => (bool c2, float[2] s2) {
        [keep] c2 = Identity(c)
        [more] s2 = Add(s, d)
    }>
    [scan] sum, all = Scan <num_scan_inputs = 1, body = item (float[2] a, float[2] r)
        => (float[2] a2, float[2] out) {
        [total] a2 = Add(a, r)
        [times] out = Mul(a2, d)
    }> (d, rows)
}
"""

SHAPES = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
calls (float[N] x, float[N] z) => (float[N] y, float[N] w)
<float[1] one = {1}>
{
    [pre] h = Relu(x)
    [first] a = local.leaky <slope: float = 0.5> (h, z)
    [second] y = local.leaky (z, a)
    [third] w = local.outer <scale: float = 3.0> (y)
}
<domain: "local", opset_import: ["" : 18]>
leaky <slope: float = 0.25> (x, y) => (r)
{
    [act] h = LeakyRelu <alpha: float = @slope> (x)
    [sub] r = Sub(h, y)
}
<domain: "local", opset_import: ["" : 18, "local" : 1]>
outer <scale> (v) => (r)
{
    [factor] f = Constant <value_float: float = @scale> ()
    [inner] p = local.leaky <slope: float = @scale> (v, f)
    [test] n = ReduceSum <keepdims = 0> (p)
    [zero] o = Constant <value_float = 0.0> ()
    [less] c = Less(n, o)
    [choose] r = If (c) <
        then_branch = yes () => (t) { [neg] t = Mul(p, f) },
        else_branch = no () => (e) { [h] h = Abs(p) [pos] e = Add(h, f) }
    >
}
"""

WEIGHTS = models.CHAIN.replace("<float[4] w =", "<float[1, 4] w =")
"""One weight that may go to a data file, and a list."""

RECURSIVE = """
<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
g (float[N] x) => (float[N] y) { [call] y = local.ping(x) }
<domain: "local", opset_import: ["" : 18, "local" : 1]>
ping (v) => (r) { r = local.pong(v) }
<domain: "local", opset_import: ["" : 18, "local" : 1]>
pong (v) => (r) { r = local.ping(v) }
"""

SWITCH = """
<ir_version: 10, opset_import: ["" : 18, "custom" : 1]>
switch (float[N, 4] x) => (float[N, 4] y)
{
    [first] a = Relu(x)
    [second] b = Add(a, a)
    [last] y = Sigmoid(b)
    [pick] picked = custom.Switch(a)
}
"""
"""A model whose node ``pick`` gets a list of three bodies, which the text form cannot say."""


def write(folder: Path, name: str) -> Path:
    """Write a model of this module, or of :mod:`tests.support.models`, to a file."""
    text: str = globals().get(name) or getattr(models, name)
    model = models.parse(text)
    if name == "SWITCH":
        cases = [onnx.GraphProto(name=f"case {number}") for number in range(3)]
        for number, case in enumerate(cases):
            case.node.add(op_type="Neg", name="n", input=["b"], output=[f"case_{number}"])
            case.output.add(name=f"case_{number}")
        model.graph.node[-1].attribute.append(onnx.helper.make_attribute("cases", cases))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path
