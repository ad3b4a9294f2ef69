"""The ONNX parser of the fake of TensorRT. See :mod:`tests.support.fake_tensorrt`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import onnx.inliner
from google.protobuf.message import DecodeError
from onnx import TensorProto

from tests.support.fake_tensorrt_network import log

_DTYPES: dict[int, str] = {
    TensorProto.FLOAT: "FLOAT",
    TensorProto.FLOAT16: "HALF",
    TensorProto.BFLOAT16: "BF16",
    TensorProto.INT8: "INT8",
    TensorProto.INT32: "INT32",
    TensorProto.INT64: "INT64",
    TensorProto.BOOL: "BOOL",
    TensorProto.UINT8: "UINT8",
    TensorProto.FLOAT8E4M3FN: "FP8",
    TensorProto.INT4: "INT4",
    TensorProto.FLOAT4E2M1: "FP4",
}
_LAYERS = {
    "Conv": "CONVOLUTION",
    "ConvTranspose": "DECONVOLUTION",
    "Gemm": "MATRIX_MULTIPLY",
    "MatMul": "MATRIX_MULTIPLY",
    "Relu": "ACTIVATION",
    "Sigmoid": "ACTIVATION",
    "Tanh": "ACTIVATION",
    "Clip": "ACTIVATION",
    "MaxPool": "POOLING",
    "AveragePool": "POOLING",
    "GlobalAveragePool": "REDUCE",
    "ReduceMean": "REDUCE",
    "Softmax": "SOFTMAX",
    "Cast": "CAST",
    "Concat": "CONCATENATION",
    "Gather": "GATHER",
    "Shape": "SHAPE",
    "Slice": "SLICE",
    "Constant": "CONSTANT",
    "QuantizeLinear": "QUANTIZE",
    "DequantizeLinear": "DEQUANTIZE",
    "LayerNormalization": "NORMALIZATION",
    "BatchNormalization": "SCALE",
    "If": "CONDITIONAL_OUTPUT",
    "Loop": "LOOP_OUTPUT",
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow"), "ELEMENTWISE"),
    **dict.fromkeys(("Sqrt", "Exp", "Neg", "Abs", "Erf"), "UNARY"),
    **dict.fromkeys(("Reshape", "Transpose", "Flatten"), "SHUFFLE"),
}


class ParserError:
    """What is wrong with a node."""

    def __str__(self: Any) -> str:
        return f"In node {self._node} ({self._operator}): {self._code.name}: {self._desc}"

    def code(self: Any) -> Any:
        return self._code

    def desc(self: Any) -> str:
        return str(self._desc)

    def node(self: Any) -> int:
        return int(self._node)

    def node_name(self: Any) -> str:
        return str(self._name)

    def node_operator(self: Any) -> str:
        return str(self._operator)

    def file(self) -> str:
        return "onnxOpImporters.cpp"

    def func(self) -> str:
        return "importFallbackPluginImporter"

    def line(self) -> int:
        return 6519

    def local_function_stack(self) -> list[str]:
        return []


class OnnxParser:
    """Reads real ONNX bytes: one layer a node, bodies of If and Loop included."""

    num_errors = property(lambda self: len(self._errors))
    flags = 0

    def __init__(self: Any, network: Any, logger: Any) -> None:
        self._network, self._logger = network, logger
        self._errors: list[Any] = []
        self._onnx_flags: set[Any] = set()

    def set_flag(self: Any, flag: Any) -> None:
        self._onnx_flags.add(flag)

    def clear_flag(self: Any, flag: Any) -> None:
        self._onnx_flags.discard(flag)

    def get_flag(self: Any, flag: Any) -> bool:
        return flag in self._onnx_flags

    def set_builder_config(self: Any, builder_config: Any) -> bool:
        self._config = builder_config
        return True

    def get_error(self: Any, index: int) -> Any:
        return self._errors[index]

    def parse_from_file(self: Any, model: str) -> bool:
        try:
            return bool(self._read(onnx.load(model)))
        except (DecodeError, OSError, ValueError) as error:
            return bool(self._fail("MODEL_DESERIALIZE_FAILED", str(error)))

    def parse(self: Any, model: bytes, path: str | None = None) -> bool:
        try:
            found = onnx.load_model_from_string(bytes(model))
            if path is not None:
                onnx.load_external_data_for_model(found, str(Path(path).parent))
        except (DecodeError, OSError, ValueError) as error:
            return bool(self._fail("MODEL_DESERIALIZE_FAILED", str(error)))
        return bool(self._read(found))

    def supports_operator(self: Any, op_name: str) -> bool:
        return op_name not in self._maker.state.unsupported and onnx.defs.has(op_name)

    def _fail(self: Any, code: str, desc: str, node: Any = None, index: int = -1) -> bool:
        error = self._maker.new(
            "ParserError",
            code=self._maker.made["ErrorCode"][code],
            desc=desc,
            node=index,
            name=node.name if node is not None else "",
            operator=node.op_type if node is not None else "",
        )
        self._errors.append(error)
        log(self, "ERROR", str(error))
        return False

    def _read(self: Any, model: onnx.ModelProto) -> bool:
        if model.functions:
            model = onnx.inliner.inline_local_functions(model)
        model = onnx.shape_inference.infer_shapes(model)
        self._network._model = model
        return bool(self._graph(model.graph, {}, top=True))

    def _graph(self: Any, graph: onnx.GraphProto, outer: dict[str, Any], top: bool) -> bool:
        network, tensors = self._network, dict(outer)
        kinds = {info.name: info.type.tensor_type for info in (*graph.input, *graph.output)}
        kinds |= {info.name: info.type.tensor_type for info in graph.value_info}
        weights = {weight.name: weight for weight in graph.initializer}
        for weight in weights.values():
            network._weights[weight.name] = weight.SerializeToString()
        for info in graph.input:
            if info.name not in weights:
                tensors[info.name] = self._tensor(info.name, info.type.tensor_type)
                if top:
                    network._inputs.append(tensors[info.name])
        for index, node in enumerate(graph.node):
            if not self.supports_operator(node.op_type):
                text = "Plugin not found, are the plugin name, version, and namespace correct?"
                return bool(self._fail("INVALID_NODE", text, node, index))
            for name in node.input:
                if name in weights and name not in tensors:
                    tensors[name] = self._constant(weights[name])
            for attribute in node.attribute:
                if attribute.HasField("g") and not self._graph(attribute.g, tensors, False):
                    return False
            for name in node.output:
                tensors[name] = self._tensor(name, kinds.get(name))
            self._layer(node, tensors)
        if top:
            network._outputs.extend(tensors[info.name] for info in graph.output)
        return True

    def _constant(self: Any, weight: onnx.TensorProto) -> Any:
        tensor = self._tensor(weight.name, None)
        tensor._value_shape = tuple(weight.dims)
        tensor._value_dtype = self._maker.made["DataType"][_DTYPES[weight.data_type]]
        self._add("CONSTANT", weight.name, [], [tensor])
        return tensor

    def _tensor(self: Any, name: str, kind: Any) -> Any:
        tensor = self._maker.new("ITensor", network=self._network, shape_tensor=False)
        element = kind.elem_type if kind is not None else TensorProto.FLOAT
        dims = kind.shape.dim if kind is not None else ()
        tensor._value_name = name
        tensor._value_shape = tuple(
            one.dim_value if one.HasField("dim_value") else -1 for one in dims
        )
        kind = _DTYPES.get(element, "FLOAT")
        if kind == "INT64" and int(self._maker.state.version.split(".")[0]) < 10:
            kind = "INT32"
        tensor._value_dtype = self._maker.made["DataType"][kind]
        return tensor

    def _layer(self: Any, node: onnx.NodeProto, tensors: dict[str, Any]) -> None:
        name = node.name or f"node_of_{node.output[0]}"
        inputs = [tensors[one] for one in node.input if one in tensors]
        outputs = [tensors[one] for one in node.output]
        layer = self._add(_LAYERS.get(node.op_type, "PLUGIN"), name, inputs, outputs)
        layer._value_metadata = f"[ONNX Layer: {name}]"

    def _add(self: Any, kind: str, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        layer = self._maker.new(
            "ILayer",
            type=self._maker.made["LayerType"][kind],
            inputs=inputs,
            outputs=outputs,
            types={},
        )
        layer._value_name, layer._value_metadata = name, ""
        self._network._layers.append(layer)
        return layer


BEHAVIOURS: dict[str, type] = {"ParserError": ParserError, "OnnxParser": OnnxParser}
