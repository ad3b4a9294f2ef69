"""Building ONNX graphs node by node, with names as the PyTorch exporter gives them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

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
