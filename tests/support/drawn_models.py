"""Random models that ONNX Runtime runs: bodies, local functions, captured values, odd names."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
_UNARY = ("Relu", "Neg", "Abs", "LeakyRelu", "Identity", "Transpose", "Sigmoid", "Identity")
_BINARY = ("Add", "Mul", "Sub", "Max", "MatMul")


class Drawn:
    """Draws one model: `seed` tells all of it."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._names = iter(range(10_000))
        self._numbers = np.random.default_rng(seed)

    def model(self) -> onnx.ModelProto:
        dice = self._dice
        stored = [f"w{n}" for n in range(dice.randint(1, 4))]
        nodes = self._nodes(["x", "z", *stored], dice.randint(4, 34), depth=0)
        made = [name for node in nodes for name in node.output if name]
        used = {name for node in nodes for name in node.input}
        ends = [name for name in made if name not in used][:3] or made[-1:]
        outputs = dict.fromkeys(ends + dice.sample(made, min(len(made), dice.randint(0, 2))))
        graph = helper.make_graph(
            nodes,
            "drawn",
            [self._info("x"), self._info("z"), helper.make_tensor_value_info("c", 9, [])],
            [self._info(name) for name in outputs],
            [self._tensor(name) for name in [*stored, "unused"]],
        )
        if dice.random() < 0.5:
            graph.value_info.extend(self._info(n) for n in dice.sample(made, len(made) // 2)
                                    if n not in outputs)  # fmt: skip
        functions = [self._leaky(), self._pair(), self._outer()]
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("local", 1)]
        model = helper.make_model(graph, opset_imports=imports, functions=functions)
        model.ir_version = 10
        return model

    def _nodes(self, values: list[str], count: int, depth: int) -> list[onnx.NodeProto]:
        values, nodes = list(values), []
        for _ in range(count):
            node = self._node(values, depth)
            nodes.append(node)
            if node.op_type == "Transpose" and self._dice.random() < 0.5:
                again = f"v{next(self._names)}"
                nodes.append(helper.make_node("Transpose", node.output[:1], [again], perm=[1, 0]))
                values.append(again)
            values += [name for name in node.output if name]
        return nodes

    def _value(self, values: list[str]) -> str:
        # Recent ones more often: chains, and not one wide layer.
        recent = values[-6:] if self._dice.random() < 0.7 else values
        return self._dice.choice(recent)

    def _node(self, values: list[str], depth: int) -> onnx.NodeProto:
        dice, number = self._dice, next(self._names)
        name = dice.choice([f"n{number}", f"/block.{number}/op", ""])
        out = f"v{number}"
        kind = dice.random()
        if kind < 0.08 and depth < 2:
            return self._if(values, name, out, depth)
        if kind < 0.14 and depth < 2:
            return self._loop(values, name, out, depth)
        if kind < 0.24:
            slope: dict[str, Any] = {"slope": 0.5} if dice.random() < 0.5 else {}
            inputs = [self._value(values), self._value(values)]
            return helper.make_node("leaky", inputs, [out], name, domain="local", **slope)
        if kind < 0.30:
            outs = [out, f"{out}_b"]
            return helper.make_node("pair", [self._value(values)], outs, name, domain="local")
        if kind < 0.34:
            return helper.make_node("outer", [self._value(values)], [out], name, domain="local")
        if kind < 0.40:
            tensor = self._tensor("")
            return helper.make_node("Constant", [], [out], name, value=tensor)
        if kind < 0.44:
            return helper.make_node("Clip", [self._value(values)], [out], name)
        if kind < 0.75:
            op_type = dice.choice(_UNARY)
            more: dict[str, Any] = {}
            if op_type == "LeakyRelu":
                more = {"alpha": 0.25}
            if op_type == "Transpose":
                more = {"perm": dice.choice([[0, 1], [1, 0]])}
            return helper.make_node(op_type, [self._value(values)], [out], name, **more)
        inputs = [self._value(values), self._value(values)]
        return helper.make_node(dice.choice(_BINARY), inputs, [out], name)

    def _body(self, name: str, values: list[str], depth: int, inputs: list[Any]) -> Any:
        nodes = self._nodes(values, self._dice.randint(1, 5), depth + 1)
        last = nodes[-1].output[0]
        stored = []
        if self._dice.random() < 0.4:
            own = f"own{next(self._names)}"
            stored.append(self._tensor(own))
            end = f"v{next(self._names)}"
            nodes.append(helper.make_node("Add", [last, own], [end], f"own_{end}"))
            last = end
        return helper.make_graph(nodes, name, inputs, [self._info(last)], stored)

    def _if(self, values: list[str], name: str, out: str, depth: int) -> onnx.NodeProto:
        bodies = {
            f"{side}_branch": self._body(side, values, depth, []) for side in ("then", "else")
        }
        return helper.make_node("If", ["c"], [out], name, **bodies)

    def _loop(self, values: list[str], name: str, out: str, depth: int) -> onnx.NodeProto:
        number = next(self._names)
        state, step, go = f"s{number}", f"i{number}", f"g{number}"
        body = self._body("body", [*values, state], depth, [
            helper.make_tensor_value_info(step, 7, []), helper.make_tensor_value_info(go, 9, []),
            self._info(state)])  # fmt: skip
        body.node.append(helper.make_node("Identity", [go], [f"{go}_out"], f"keep_{go}"))
        body.output.insert(0, helper.make_tensor_value_info(f"{go}_out", 9, []))
        inputs = ["trips", "", self._value(values)]
        return helper.make_node("Loop", inputs, [out], name, body=body)

    def _leaky(self) -> onnx.FunctionProto:
        text = """<ir_version: 10, opset_import: ["" : 18, "local" : 1]> g (float[2, 2] x) => (y) {
            y = Relu(x) }
            <domain: "local", opset_import: ["" : 18]> leaky <slope: float = 0.25> (x, y) => (r) {
            [act] h = LeakyRelu <alpha: float = @slope> (x)
            [sub] r = Sub(h, y) }"""
        return onnx.parser.parse_model(text).functions[0]

    def _pair(self) -> onnx.FunctionProto:
        text = """<ir_version: 10, opset_import: ["" : 18, "local" : 1]> g (float[2, 2] x) => (y) {
            y = Relu(x) }
            <domain: "local", opset_import: ["" : 18]> pair (x) => (a, b) {
            [one] h = Neg(x)
            [same] k = Identity(h)
            [two] a = Abs(k)
            [three] b = Add(h, x) }"""
        return onnx.parser.parse_model(text).functions[0]

    def _outer(self) -> onnx.FunctionProto:
        text = """<ir_version: 10, opset_import: ["" : 18, "local" : 1]> g (float[2, 2] x) => (y) {
            y = Relu(x) }
            <domain: "local", opset_import: ["" : 18, "local" : 1]> outer (x) => (r) {
            [first] p, q = local.pair(x)
            [last] r = local.leaky <slope: float = 0.125> (p, q) }"""
        return onnx.parser.parse_model(text).functions[0]

    def _info(self, name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name, FLOAT, [2, 2])

    def _tensor(self, name: str) -> onnx.TensorProto:
        values = self._numbers.standard_normal((2, 2)).astype(np.float32)
        values[self._numbers.random((2, 2)) < 0.3] = 0
        return numpy_helper.from_array(values, name)


def drawn_model(seed: int) -> onnx.ModelProto:
    """Return a random valid model."""
    model = Drawn(seed).model()
    model.graph.initializer.append(numpy_helper.from_array(np.array(3, np.int64), "trips"))
    return model
