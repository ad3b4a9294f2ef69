"""Small models that are made by code, for the first minutes, documentation and tests.

Their weights are seeded, and the same bytes come out on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from dld_tui.core.files.writer import write_bytes

OPSET = 17
IR_VERSION = 8

_DTYPES = {"float32": onnx.TensorProto.FLOAT, "int64": onnx.TensorProto.INT64}
_STEPS = 1 << 15


class GraphBuilder:
    """One graph in the making.

    Args:
        name: The graph's name.
        seed: Where the weights come from; the same seed gives the same bytes.
        prefix: What the names of nodes begin with.
    """

    def __init__(self, name: str, *, seed: int = 0, prefix: str = "/") -> None:
        self._name = name
        self._prefix = prefix
        # RandomState's stream is frozen for all versions of numpy, unlike default_rng's.
        self._random = np.random.RandomState(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}

    def input(self, name: str, dtype: str, dims: Sequence[int | str]) -> None:
        """Declare a graph input."""
        self._inputs.append(helper.make_tensor_value_info(name, _DTYPES[dtype], dims))

    def output(self, name: str, dtype: str, dims: Sequence[int | str]) -> None:
        """Declare a value as a graph output."""
        self._outputs.append(helper.make_tensor_value_info(name, _DTYPES[dtype], dims))

    def node(
        self, place: str, inputs: Sequence[str], *, output: str | None = None, **attributes: Any
    ) -> str:
        """Add a node and return the name of its only output.

        Args:
            place: Scope and operator, e.g. ``features/0/Conv``; ``Add_1`` is a second Add there.
            inputs: Names of values.
            output: A name for the output; None for one made of the place.
            attributes: Attributes of the node.
        """
        name = self._prefix + place
        op_type = place.rpartition("/")[2].partition("_")[0]
        result = output or f"{name}_output_0"
        self._nodes.append(helper.make_node(op_type, inputs, [result], name, **attributes))
        return result

    def weight(
        self,
        name: str,
        shape: Sequence[int],
        *,
        around: float = 0.0,
        spread: float | None = None,
    ) -> str:
        """Add a float32 initializer of random values and return its name.

        Args:
            name: Slashes become dots, as in a state dictionary.
            shape: A weight's first dimension is its output.
            around: The middle of the values.
            spread: The largest distance from it; None keeps the layer's output near its input.
        """
        if spread is None:
            fan_in = int(np.prod(shape[1:])) if len(shape) > 1 else 100
            spread = (3.0 / fan_in) ** 0.5
        # Whole numbers scaled by one multiplication: the same bits on every processor.
        steps = self._random.randint(-_STEPS, _STEPS + 1, size=tuple(shape))
        values = (steps * (spread / _STEPS) + around).astype(np.float32)
        return self._initializer(name.replace("/", "."), values)

    def integers(self, name: str, values: int | list[int]) -> str:
        """Add an int64 initializer, or find the one of this name, and return its name."""
        return self._initializer(name, np.array(values, np.int64))

    def floats(self, name: str, value: float) -> str:
        """Add a float32 scalar, or find the one of this name, and return its name."""
        return self._initializer(name, np.array(value, np.float32))

    def branch(self, name: str) -> GraphBuilder:
        """Return a builder for a subgraph; its nodes may use the values of this graph."""
        return GraphBuilder(name, prefix=f"{name}/")

    def graph(self) -> onnx.GraphProto:
        """Return the graph."""
        return helper.make_graph(
            self._nodes,
            self._name,
            self._inputs,
            self._outputs,
            initializer=list(self._initializers.values()),
        )

    def model(self, doc: str) -> onnx.ModelProto:
        """Return the graph as a checked model with inferred shapes."""
        model = helper.make_model(
            self.graph(),
            doc_string=doc,
            producer_name="dld-tui",
            ir_version=IR_VERSION,
            opset_imports=[helper.make_opsetid("", OPSET)],
        )
        return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)

    def _initializer(self, name: str, values: np.ndarray[Any, Any]) -> str:
        if name not in self._initializers:
            self._initializers[name] = numpy_helper.from_array(values, name)
        return name


CLASSIFIER_NAME = "demo_classifier.onnx"
TRANSFORMER_NAME = "demo_transformer.onnx"

_CLASSES = 10
_CHANNELS = (16, 32, 64, 96)
_VOCABULARY, _POSITIONS, _HIDDEN, _HEADS, _FEED_FORWARD = 256, 128, 64, 4, 256
_LAYERS = 2


def write_demo_models(folder: Path) -> list[Path]:
    """Write both models into an existing folder and return their paths, the classifier first.

    Raises:
        SaveError: A file cannot be written.
    """
    models = ((CLASSIFIER_NAME, demo_classifier), (TRANSFORMER_NAME, demo_transformer))
    paths = []
    for name, make in models:
        path = folder / name
        write_bytes(path, make().SerializeToString(deterministic=True), overwrite=True)
        paths.append(path)
    return paths


def demo_classifier() -> onnx.ModelProto:
    """Return a small residual convolutional classifier.

    Input ``image``: float32[N, 3, 128, 128]; output ``probabilities``: float32[N, 10].
    """
    g = GraphBuilder("demo_classifier", seed=1)
    g.input("image", "float32", ["N", 3, 128, 128])
    x = _conv_norm(g, "stem/conv", "stem/norm", "image", (3, _CHANNELS[0]), kernel=5, stride=2)
    x = g.node("stem/act/Relu", [x])
    x = g.node("stem/pool/MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    previous = _CHANNELS[0]
    for index, channels in enumerate(_CHANNELS):
        x = _residual_block(g, f"features/{index}", x, previous, channels)
        previous = channels
    x = g.node("pool/GlobalAveragePool", [x])
    x = g.node("Flatten", [x], axis=1)
    weight = g.weight("classifier.weight", [_CLASSES, previous])
    bias = g.weight("classifier.bias", [_CLASSES])
    x = g.node("classifier/Gemm", [x, weight, bias], alpha=1.0, beta=1.0, transB=1)
    g.node("Softmax", [x], output="probabilities", axis=1)
    g.output("probabilities", "float32", ["N", _CLASSES])
    return g.model("A small convolutional classifier with residual blocks and seeded weights.")


def _conv_norm(
    g: GraphBuilder,
    conv: str,
    norm: str,
    x: str,
    channels: tuple[int, int],
    *,
    kernel: int = 3,
    stride: int = 1,
) -> str:
    before, after = channels
    weight = g.weight(f"{conv}.weight", [after, before, kernel, kernel])
    x = g.node(
        f"{conv}/Conv",
        [x, weight],
        dilations=[1, 1],
        group=1,
        kernel_shape=[kernel, kernel],
        pads=[kernel // 2] * 4,
        strides=[stride, stride],
    )
    parameters = [
        g.weight(f"{norm}.weight", [after], around=1.0),
        g.weight(f"{norm}.bias", [after]),
        g.weight(f"{norm}.running_mean", [after]),
        g.weight(f"{norm}.running_var", [after], around=1.0),
    ]
    return g.node(f"{norm}/BatchNormalization", [x, *parameters], epsilon=1e-5, momentum=0.9)


def _residual_block(g: GraphBuilder, scope: str, x: str, before: int, after: int) -> str:
    """Add two convolutions and a shortcut; the last block weighs its channels too."""
    stride = 1 if before == after else 2
    shortcut = x
    y = _conv_norm(g, f"{scope}/conv1", f"{scope}/norm1", x, (before, after), stride=stride)
    y = g.node(f"{scope}/act1/Relu", [y])
    y = _conv_norm(g, f"{scope}/conv2", f"{scope}/norm2", y, (after, after))
    if after == _CHANNELS[-1]:
        y = _squeeze_excitation(g, f"{scope}/se", y, after)
    if before != after:
        place = f"{scope}/downsample"
        shortcut = _conv_norm(
            g, f"{place}/0", f"{place}/1", x, (before, after), kernel=1, stride=stride
        )
    y = g.node(f"{scope}/Add", [y, shortcut])
    return g.node(f"{scope}/act2/Relu", [y])


def _squeeze_excitation(g: GraphBuilder, scope: str, x: str, channels: int) -> str:
    squeezed = channels // 8
    y = g.node(f"{scope}/pool/GlobalAveragePool", [x])
    for name, shape in (("fc1", (squeezed, channels)), ("fc2", (channels, squeezed))):
        weight = g.weight(f"{scope}/{name}.weight", [*shape, 1, 1])
        bias = g.weight(f"{scope}/{name}.bias", [shape[0]])
        y = g.node(f"{scope}/{name}/Conv", [y, weight, bias], kernel_shape=[1, 1])
        y = g.node(f"{scope}/act/Relu" if name == "fc1" else f"{scope}/gate/Sigmoid", [y])
    return g.node(f"{scope}/Mul", [x, y])


def demo_transformer() -> onnx.ModelProto:
    """Return a small text encoder of two transformer blocks, as exporters write them.

    Inputs ``token_ids`` and ``attention_mask``: int64[batch, sequence], up to 128 tokens; output
    ``logits``: float32[batch, 10]. An If pools the tokens where there is more than one.
    """
    g = GraphBuilder("demo_transformer", seed=2)
    for name in ("token_ids", "attention_mask"):
        g.input(name, "int64", ["batch", "sequence"])
    mask = g.node("mask/Cast", ["attention_mask"], to=onnx.TensorProto.BOOL)
    x = _embeddings(g, mask)
    mask = g.node("mask/Unsqueeze", [mask, g.integers("mask.axes", [1, 2])])
    zero, low = g.floats("mask.keep", 0.0), g.floats("mask.drop", -10000.0)
    mask = g.node("mask/Where", [mask, zero, low])
    for index in range(_LAYERS):
        scope = f"layers/{index}"
        y = _attention(g, f"{scope}/attention", _norm(g, f"{scope}/norm1", x), mask)
        x = g.node(f"{scope}/Add", [x, y])
        y = _feed_forward(g, f"{scope}/mlp", _norm(g, f"{scope}/norm2", x))
        x = g.node(f"{scope}/Add_1", [x, y])
    x = _pooled(g, _norm(g, "norm", x))
    weight = g.weight("classifier.weight", [_HIDDEN, _CLASSES])
    bias = g.weight("classifier.bias", [_CLASSES])
    g.node("classifier/Gemm", [x, weight, bias], output="logits")
    g.output("logits", "float32", ["batch", _CLASSES])
    return g.model(
        "A small text encoder: two transformer blocks, a pooling branch, seeded weights."
    )


def _embeddings(g: GraphBuilder, mask: str) -> str:
    """Add the sum of word and position embeddings; position 0 is padding."""
    low, high = g.integers("token_ids.min", 0), g.integers("token_ids.max", _VOCABULARY - 1)
    ids = g.node("embeddings/Clip", ["token_ids", low, high])
    words = g.weight("embeddings.word.weight", [_VOCABULARY, _HIDDEN], spread=1.0)
    tokens = g.node("embeddings/word/Gather", [words, ids])
    used = g.node("embeddings/Cast", [mask], to=onnx.TensorProto.INT64)
    positions = g.node("embeddings/CumSum", [used, g.integers("positions.axis", 1)])
    positions = g.node("embeddings/Mul", [positions, used])
    table = g.weight("embeddings.position.weight", [_POSITIONS + 1, _HIDDEN], spread=1.0)
    positions = g.node("embeddings/position/Gather", [table, positions])
    return g.node("embeddings/Add", [tokens, positions])


def _norm(g: GraphBuilder, scope: str, x: str) -> str:
    scale = g.weight(f"{scope}.weight", [_HIDDEN], around=1.0)
    bias = g.weight(f"{scope}.bias", [_HIDDEN])
    return g.node(f"{scope}/LayerNormalization", [x, scale, bias], axis=-1, epsilon=1e-5)


def _linear(g: GraphBuilder, scope: str, x: str, before: int, after: int) -> str:
    weight = g.weight(f"{scope}.weight", [before, after])
    y = g.node(f"{scope}/MatMul", [x, weight])
    return g.node(f"{scope}/Add", [g.weight(f"{scope}.bias", [after]), y])


def _attention(g: GraphBuilder, scope: str, x: str, mask: str) -> str:
    """Add self-attention out of single operators, as exporters for older opsets do."""
    split = g.integers("heads.split", [0, 0, _HEADS, _HIDDEN // _HEADS])
    heads = {}
    for name, order in (("query", [0, 2, 1, 3]), ("key", [0, 2, 3, 1]), ("value", [0, 2, 1, 3])):
        y = _linear(g, f"{scope}/{name}", x, _HIDDEN, _HIDDEN)
        y = g.node(f"{scope}/{name}/Reshape", [y, split])
        heads[name] = g.node(f"{scope}/{name}/Transpose", [y], perm=order)
    scores = g.node(f"{scope}/MatMul", [heads["query"], heads["key"]])
    scores = g.node(f"{scope}/Div", [scores, g.floats("heads.scale", (_HIDDEN / _HEADS) ** 0.5)])
    scores = g.node(f"{scope}/Add", [scores, mask])
    weights = g.node(f"{scope}/Softmax", [scores], axis=-1)
    y = g.node(f"{scope}/MatMul_1", [weights, heads["value"]])
    y = g.node(f"{scope}/Transpose", [y], perm=[0, 2, 1, 3])
    y = g.node(f"{scope}/Reshape", [y, g.integers("heads.join", [0, 0, _HIDDEN])])
    return _linear(g, f"{scope}/out", y, _HIDDEN, _HIDDEN)


def _feed_forward(g: GraphBuilder, scope: str, x: str) -> str:
    """Add two layers around a GELU written with Erf."""
    x = _linear(g, f"{scope}/fc1", x, _HIDDEN, _FEED_FORWARD)
    y = g.node(f"{scope}/act/Div", [x, g.floats("gelu.sqrt2", 2**0.5)])
    y = g.node(f"{scope}/act/Erf", [y])
    y = g.node(f"{scope}/act/Add", [y, g.floats("gelu.one", 1.0)])
    y = g.node(f"{scope}/act/Mul", [x, y])
    y = g.node(f"{scope}/act/Mul_1", [y, g.floats("gelu.half", 0.5)])
    return _linear(g, f"{scope}/fc2", y, _FEED_FORWARD, _HIDDEN)


def _pooled(g: GraphBuilder, hidden: str) -> str:
    """Add an If whose branches use `hidden` of the graph around them."""
    length = g.node("pooler/Shape", [hidden], start=1, end=2)
    length = g.node("pooler/Squeeze", [length])
    several = g.node("pooler/Greater", [length, g.integers("pooler.one", 1)])
    mean = g.branch("mean_of_tokens")
    mean.node("ReduceMean", [hidden], output="pooled_mean", axes=[1], keepdims=0)
    mean.output("pooled_mean", "float32", ["batch", _HIDDEN])
    only = g.branch("only_token")
    only.node("Gather", [hidden, only.integers("first", 0)], output="pooled_only", axis=1)
    only.output("pooled_only", "float32", ["batch", _HIDDEN])
    return g.node("pooler/If", [several], then_branch=mean.graph(), else_branch=only.graph())
