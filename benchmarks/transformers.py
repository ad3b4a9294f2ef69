"""Models shaped like exported transformers, for benchmarks of graphs: no weights worth mentioning.

They have what makes such graphs hard to draw: chains that compute shapes, rotary tables and a mask
that feed every layer, key and value caches that come in and go out, mixtures of experts.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper


class Builder:
    """Collects the nodes of a model; values are handled by their names."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self._used: dict[str, int] = {}

    def op(self, kind: str, scope: str, *inputs: str, outputs: int = 1) -> str:
        """Add a node, and return its first output."""
        base = f"{scope}/{kind}"
        count = self._used[base] = self._used.get(base, -1) + 1
        name = f"{base}_{count}" if count else base
        made = [f"{name}_output_{number}" for number in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), made, name))
        return made[0]

    def weight(self, name: str, values: Sequence[float] = (0.0,)) -> str:
        """Add an initializer."""
        self.weights.append(helper.make_tensor(name, TensorProto.FLOAT, [len(values)], values))
        return name

    def value(self, name: str) -> str:
        """Add an input of the model."""
        self.inputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        return name

    def give(self, name: str, value: str) -> None:
        """Add an output of the model."""
        self.nodes.append(helper.make_node("Identity", [value], [name], f"/{name}"))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def model(self) -> onnx.ModelProto:
        """Return the model."""
        graph = helper.make_graph(
            self.nodes, "transformer", self.inputs, self.outputs, self.weights
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])

    def norm(self, scope: str, x: str, *, root_mean_square: bool) -> str:
        """LayerNorm or RMSNorm, decomposed as exporters do."""
        two, eps = self.weight(f"{scope}.two"), self.weight(f"{scope}.eps")
        if not root_mean_square:
            x = self.op("Sub", scope, x, self.op("ReduceMean", scope, x))
        square = self.op("ReduceMean", scope, self.op("Pow", scope, x, two))
        root = self.op("Sqrt", scope, self.op("Add", scope, square, eps))
        scaled = self.op("Mul", scope, self.op("Div", scope, x, root), self.weight(f"{scope}.g"))
        return (
            scaled if root_mean_square else self.op("Add", scope, scaled, self.weight(f"{scope}.b"))
        )

    def dense(self, scope: str, x: str, *, bias: bool = True) -> str:
        y = self.op("MatMul", scope, x, self.weight(f"{scope}.weight"))
        return self.op("Add", scope, self.weight(f"{scope}.bias"), y) if bias else y

    def size(self, scope: str, x: str, index: int) -> str:
        shape = self.op(
            "Gather", scope, self.op("Shape", scope, x), self.weight(f"{scope}.i{index}")
        )
        return self.op("Unsqueeze", scope, shape)

    def heads(self, scope: str, x: str, like: str) -> str:
        """Split the last dimension into heads, the shape computed from `like`."""
        parts = [self.size(scope, like, 0), self.size(scope, like, 1)]
        shape = self.op("Concat", scope, *parts, self.weight(f"{scope}.h{len(self.nodes)}"))
        return self.op("Transpose", scope, self.op("Reshape", scope, x, shape))


def encoder(layers: int = 12) -> onnx.ModelProto:
    """Return a model like BERT; 12 layers have about a thousand nodes."""
    b = Builder()
    ids, mask = b.value("input_ids"), b.value("attention_mask")
    penalty = b.op(
        "Mul",
        "/mask",
        b.op("Sub", "/mask", b.weight("one"), b.op("Cast", "/mask", mask)),
        b.weight("low"),
    )
    x = b.op(
        "Add",
        "/embeddings",
        b.op("Gather", "/embeddings", b.weight("words"), ids),
        b.weight("positions"),
    )
    x = b.norm("/embeddings/LayerNorm", x, root_mean_square=False)
    for number in range(layers):
        layer = f"/encoder/layer.{number}"
        attention = f"{layer}/attention/self"
        q, k, v = (
            b.heads(attention, b.dense(f"{attention}/{part}", x), x)
            for part in ("query", "key", "value")
        )
        scores = b.op(
            "Div",
            attention,
            b.op("MatMul", attention, q, b.op("Transpose", attention, k)),
            b.weight(f"{attention}.d"),
        )
        weights = b.op("Softmax", attention, b.op("Add", attention, scores, penalty))
        context = b.op("Transpose", attention, b.op("MatMul", attention, weights, v))
        shape = b.op(
            "Concat", attention, b.size(attention, context, 0), b.size(attention, context, 1)
        )
        context = b.op("Reshape", attention, context, shape)
        y = b.dense(f"{layer}/attention/output/dense", context)
        x = b.norm(
            f"{layer}/attention/output/LayerNorm",
            b.op("Add", f"{layer}/attention/output", y, x),
            root_mean_square=False,
        )
        up = b.dense(f"{layer}/intermediate/dense", x)
        act = f"{layer}/intermediate/act"
        erf = b.op(
            "Add",
            act,
            b.op("Erf", act, b.op("Div", act, up, b.weight(f"{act}.s"))),
            b.weight(f"{act}.one"),
        )
        gelu = b.op("Mul", act, b.op("Mul", act, up, erf), b.weight(f"{act}.half"))
        down = b.dense(f"{layer}/output/dense", gelu)
        x = b.norm(
            f"{layer}/output/LayerNorm",
            b.op("Add", f"{layer}/output", down, x),
            root_mean_square=False,
        )
    b.give("last_hidden_state", x)
    return b.model()


def decoder(layers: int = 90, experts: int = 0) -> onnx.ModelProto:
    """Return a model like Llama; 90 layers have about 10,000 nodes, 120 with 18 experts 50,000."""
    b = Builder()
    ids, mask = b.value("input_ids"), b.value("attention_mask")
    cos = b.op("Cos", "/rotary", b.op("Cast", "/rotary", ids))
    sin = b.op("Sin", "/rotary", b.op("Cast", "/rotary", ids))
    penalty = b.op(
        "Where",
        "/mask",
        b.op("Equal", "/mask", mask, b.weight("zero")),
        b.weight("low"),
        b.weight("none"),
    )
    x = b.op("Gather", "/model/embed_tokens", b.weight("words"), ids)
    for number in range(layers):
        layer = f"/model/layers.{number}"
        h = b.norm(f"{layer}/input_layernorm", x, root_mean_square=True)
        x = b.op("Add", layer, x, _attention(b, layer, number, h, cos, sin, penalty))
        h = b.norm(f"{layer}/post_attention_layernorm", x, root_mean_square=True)
        x = b.op(
            "Add",
            layer,
            x,
            _experts(b, f"{layer}/mlp", h, experts) if experts else _mlp(b, f"{layer}/mlp", h),
        )
    x = b.norm("/model/norm", x, root_mean_square=True)
    b.give("logits", b.dense("/lm_head", x, bias=False))
    return b.model()


def _attention(
    b: Builder, layer: str, number: int, h: str, cos: str, sin: str, penalty: str
) -> str:
    scope = f"{layer}/self_attn"
    q, k, v = (b.heads(scope, b.dense(f"{scope}/{part}_proj", h, bias=False), h) for part in "qkv")
    q, k = _rotated(b, scope, q, cos, sin), _rotated(b, scope, k, cos, sin)
    k = b.op("Concat", scope, b.value(f"past_key_values.{number}.key"), k)
    v = b.op("Concat", scope, b.value(f"past_key_values.{number}.value"), v)
    b.give(f"present.{number}.key", k)
    b.give(f"present.{number}.value", v)
    k, v = _repeated(b, scope, k), _repeated(b, scope, v)
    scores = b.op(
        "Div", scope, b.op("MatMul", scope, q, b.op("Transpose", scope, k)), b.weight(f"{scope}.d")
    )
    weights = b.op("Softmax", scope, b.op("Add", scope, scores, penalty))
    context = b.op("Transpose", scope, b.op("MatMul", scope, weights, v))
    shape = b.op("Concat", scope, b.size(scope, h, 0), b.size(scope, h, 1))
    return b.dense(f"{scope}/o_proj", b.op("Reshape", scope, context, shape), bias=False)


def _rotated(b: Builder, scope: str, x: str, cos: str, sin: str) -> str:
    half = b.op("Neg", scope, b.op("Slice", scope, x))
    turned = b.op("Concat", scope, half, b.op("Slice", scope, x))
    return b.op(
        "Add",
        scope,
        b.op("Mul", scope, x, b.op("Unsqueeze", scope, cos)),
        b.op("Mul", scope, turned, b.op("Unsqueeze", scope, sin)),
    )


def _repeated(b: Builder, scope: str, x: str) -> str:
    shape = b.op("Concat", scope, b.size(scope, x, 0), b.size(scope, x, 2))
    wide = b.op("Expand", scope, b.op("Unsqueeze", scope, x), shape)
    return b.op(
        "Reshape", scope, wide, b.op("Concat", scope, b.size(scope, x, 1), b.size(scope, wide, 2))
    )


def _mlp(b: Builder, scope: str, h: str) -> str:
    gate = b.dense(f"{scope}/gate_proj", h, bias=False)
    act = b.op("Mul", f"{scope}/act_fn", gate, b.op("Sigmoid", f"{scope}/act_fn", gate))
    up = b.op("Mul", scope, act, b.dense(f"{scope}/up_proj", h, bias=False))
    return b.dense(f"{scope}/down_proj", up, bias=False)


def _experts(b: Builder, scope: str, h: str, count: int) -> str:
    routes = b.op("Softmax", f"{scope}/gate", b.dense(f"{scope}/gate", h, bias=False))
    total = ""
    for number in range(count):
        expert = f"{scope}/experts.{number}"
        index = b.op(
            "NonZero",
            expert,
            b.op(
                "Equal",
                expert,
                b.op("TopK", f"{scope}/gate", routes) if not number else routes,
                b.weight(f"{expert}.n"),
            ),
        )
        part = b.op(
            "Mul",
            expert,
            _mlp(b, expert, b.op("Gather", expert, h, index)),
            b.op("Gather", expert, routes, index),
        )
        total = b.op(
            "ScatterND",
            expert,
            total or b.op("ConstantOfShape", scope, b.op("Shape", scope, h)),
            index,
            part,
        )
    return total
