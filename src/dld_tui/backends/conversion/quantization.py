"""Quantization by ONNX Runtime on a file, run by :mod:`.library_file`; it loads the whole model."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import sys
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper

from dld_tui.backends.conversion.library_file import step_file
from dld_tui.core.codec import decode
from dld_tui.core.dataclass import dataclass
from dld_tui.core.model.document.locations import bodies, bodies_of, names_used
from dld_tui.core.model.inputs.feeds import load_input_sets, set_folders
from dld_tui.core.model.inputs.shapes import InputSpec
from dld_tui.core.model.operators.categories import RANDOM_OPERATORS
from dld_tui.core.model.operators.registry import CONTRIB_DOMAIN

_METHODS = {"minmax": "MinMax", "entropy": "Entropy", "percentile": "Percentile",
            "distribution": "Distribution"}  # fmt: skip
_RANGES, _TENSORS = 64, 8
"""The number of input sets whose ranges, or values, are held in memory."""
_ONE_FILE = 1 << 30
"""Bytes of a model from which the weights of the result go to a file of their own."""


def missing() -> list[str]:
    """Return the modules that are needed and not installed."""
    return [name for name in ("onnxruntime",) if importlib.util.find_spec(name) is None]


@dataclass(frozen=True)
class Options:
    """The options of the library.

    They are those of :class:`~dld_tui.core.conversion.request.QuantizationSettings`.
    """

    dynamic: bool
    weights_only: bool
    points_only: bool
    """Only find out what would be quantized."""
    runtime: str
    weights: str
    block: int
    format: str
    rounding: str
    activations: str
    per_channel: bool
    reduce_range: bool
    keep_activations: bool
    """Whether activation functions stay whose work a quantized tensor's range could do."""
    inputs: list[InputSpec]
    is_uniform: bool
    """Whether all sets of inputs have the same shapes."""
    calibration: str
    """The folder; empty where nothing is calibrated."""
    method: str
    ranges: str
    """The file of the ranges that one method finds for some operators: they are read from it where
    it exists, else written to it. Empty for none."""
    ops: list[str]
    """Operators; all that can be where it is empty."""
    exclude: list[str]
    """Names of nodes."""


def main() -> None:
    """Quantize the model of the first argument; write the second; options are the third."""
    source, target, text = sys.argv[1:4]
    reader = None
    try:
        options = decode(Options, json.loads(text))
        if not (options.dynamic or options.weights_only or options.points_only):
            reader = _Sets(options, Path(target))
        asked = _quantize(source, target, options, reader)
        asked["infinite"] = _without_mark(target)
        if "rules" in asked:
            plan_file(Path(target)).write_text(json.dumps(asked), encoding="utf-8")
    # The seam: ONNX Runtime may raise anything, for unspecified inputs.
    except Exception as error:  # noqa: BLE001
        traceback.print_exc()
        at = "" if reader is None or reader.present is None else f"{reader.present}: "
        sys.exit(f"[!] {at}{' '.join(str(error).split()) or type(error).__name__}")


def _quantize(source: str, target: str, options: Options, sets: _Sets | None) -> dict[str, Any]:
    """Quantize; return the plan if ranges are calibrated."""
    from onnxruntime import quantization

    if options.weights_only:
        _quantize_weights(source, target, options)
        return {}
    if options.points_only:
        return _plan_without_ranges(source, target, options)
    types = quantization.QuantType
    shared: dict[str, Any] = {
        "op_types_to_quantize": options.ops or None,
        "nodes_to_exclude": options.exclude or None,
        "per_channel": options.per_channel,
        "reduce_range": options.reduce_range,
        "weight_type": types.from_string(_type(options.weights)),
        "use_external_data_format": is_large(Path(source)),
    }
    if sets is None:
        inside = {"EnableSubgraph": True, "MatMulConstBOnly": True}
        folded = _with_folded_weights(Path(source), Path(target), set(options.exclude))
        try:
            quantization.quantize_dynamic(folded, target, extra_options=inside, **shared)
        finally:
            if folded != Path(source):
                for path in (folded, folded.with_name(f"{folded.name}.data")):
                    path.unlink(missing_ok=True)
        return {}
    extra = {"CalibStridedMinMax": sets.part, **_extra(options)}
    if "calibration_cache_path" in inspect.signature(quantization.quantize_static).parameters:
        shared["calibration_cache_path"] = options.ranges or None  # older versions calibrate anew
    asked = _recorded()
    quantization.quantize_static(
        source,
        target,
        _reader(quantization, sets),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=types.from_string(_type(options.activations)),
        calibrate_method=getattr(quantization.CalibrationMethod, _METHODS[options.method]),
        extra_options=extra,
        **shared,
    )
    return asked


_WEIGHTS = {"MatMul": (1,), "Gemm": (1,), "LSTM": (1, 2), "GRU": (1, 2), "Attention": (1,),
            "Conv": (1,), "Gather": (0,), "EmbedLayerNormalization": (2, 3, 4)}  # fmt: skip
"""Inputs that the library quantizes if they are initializers."""
_MOST_FOLDED = 1 << 30
"""Bytes of weights up to which they are folded; a protobuf file is limited to 2 GB."""


def _with_folded_weights(source: Path, target: Path, exclude: Collection[str]) -> Path:
    """Return a model whose weights are initializers where nodes compute them from constants.

    The library passes over a weight that is the output of a node: of ``DequantizeLinear``, or of
    the Cast and Mul of weights that another program stored in few bits. ONNX Runtime folds such
    weights to float32, so that they are slow unless they are quantized here.

    Args:
        source: The model.
        target: The new model is written beside it.
        exclude: Names of nodes that keep their weights.

    Returns:
        The new model; `source` if it has no such weights.
    """
    model = onnx.load(source)
    graph = model.graph
    makers = {name: node for node in graph.node for name in node.output if name}
    constant = {tensor.name for tensor in graph.initializer} - {v.name for v in graph.input}
    for node in graph.node:  # in topological order
        has_body = any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute)
        is_random = node.op_type in RANDOM_OPERATORS
        if not has_body and not is_random and all(name in constant for name in node.input if name):
            constant.update(node.output)
    wanted = dict.fromkeys(
        node.input[at]
        for node in graph.node
        if node.name not in exclude
        for at in _WEIGHTS.get(node.op_type, ())
        if at < len(node.input) and node.input[at] in constant and node.input[at] in makers
        if makers[node.input[at]].op_type != "Constant"  # which the library reads
    )
    if not wanted:
        return source
    if sum(tensor.ByteSize() for tensor in graph.initializer) > _MOST_FOLDED:
        return source
    values = _computed(model, [*wanted], makers)
    renamed = {name: f"{name}_folded" for name in values}
    for node in graph.node:
        for at in _WEIGHTS.get(node.op_type, ()):
            if node.name not in exclude and at < len(node.input) and node.input[at] in renamed:
                node.input[at] = renamed[node.input[at]]
    graph.initializer.extend(
        numpy_helper.from_array(value, renamed[name]) for name, value in values.items()
    )
    _drop_unused(model, {name for name in constant if name in makers})
    path = target.with_name(f"{target.name}.folded.onnx")
    onnx.save(
        model, path, save_as_external_data=model.ByteSize() > _ONE_FILE,
        location=f"{path.name}.data",
    )  # fmt: skip
    return path


def _computed(
    model: onnx.ModelProto, names: Sequence[str], makers: Mapping[str, onnx.NodeProto]
) -> dict[str, Any]:
    """Return the values of tensors that depend on constants only; as many as can be computed."""
    import onnxruntime

    needed, stack = set[str](), [*names]
    while stack:
        name = stack.pop()
        if name and name not in needed:
            needed.add(name)
            stack += makers[name].input if name in makers else ()
    nodes = [node for node in model.graph.node if not needed.isdisjoint(node.output)]
    part = onnx.ModelProto()
    part.CopyFrom(model)
    del part.graph.node[:], part.graph.input[:], part.graph.output[:], part.graph.initializer[:]
    del part.graph.value_info[:]
    part.graph.node.extend(nodes)
    part.graph.initializer.extend(one for one in model.graph.initializer if one.name in needed)
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(
        part.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return dict(zip(names, session.run(None, {}), strict=True))


def _drop_unused(model: onnx.ModelProto, names: Collection[str]) -> None:
    """Remove nodes that compute only these tensors, and initializers, that nothing reads."""
    graph = model.graph
    uses = Counter(name for _, body in bodies(model) for node in body.node for name in node.input)
    for _, body in bodies(model):
        if isinstance(body, onnx.GraphProto):
            uses.update(value.name for value in body.output)
    for at in reversed(range(len(graph.node))):
        node = graph.node[at]
        if all(name in names and not uses[name] for name in node.output):
            uses.subtract(node.input)
            del graph.node[at]
    for at in reversed(range(len(graph.initializer))):
        if not uses[graph.initializer[at].name]:
            del graph.initializer[at]


def plan_file(target: Path) -> Path:
    """Return the file for the plan of a static quantization, beside its result."""
    return target.with_name(f"{target.name}.plan")


def _extra(options: Options) -> dict[str, Any]:
    """Return the quantizer's parameters of the runtime."""
    if options.runtime != "tensorrt":
        return {"QDQKeepRemovableActivations": options.keep_activations}
    # TensorRT takes no zero points but 0, and adds biases in floating point.
    return {"ActivationSymmetric": True, "WeightSymmetric": True, "QuantizeBias": False,
            "QDQKeepRemovableActivations": True}  # fmt: skip


def _plan_without_ranges(source: str, target: str, options: Options) -> dict[str, Any]:
    """Return what would be quantized; nothing is calibrated, and the model stays unchanged."""
    from onnxruntime import quantization
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer
    from onnxruntime.quantization.quant_utils import load_model_with_shape_infer
    from onnxruntime.quantization.registry import QDQRegistry, QLinearOpsRegistry

    types = quantization.QuantType
    model = load_model_with_shape_infer(Path(source))
    asked: dict[str, Any] = {}
    quantizer = QDQQuantizer(
        model,
        options.per_channel,
        options.reduce_range,
        types.from_string(_type(options.weights)),
        types.from_string(_type(options.activations)),
        None,
        [],
        options.exclude,
        options.ops or [*QLinearOpsRegistry, *QDQRegistry],
        _extra(options),
    )
    _record(quantizer, asked)
    onnx.save(onnx.load(source, load_external_data=False), target)
    return asked


def _recorded() -> dict[str, Any]:
    """Record the requests of the quantizer's operators, and the scales that it computes.

    Returns:
        A record that is filled while it quantizes; see
        :meth:`dld_tui.core.conversion.quantization_plan.QuantizationPlan.from_json`.
    """
    from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

    # The package also has a function of this name.
    module: Any = importlib.import_module("onnxruntime.quantization.quantize")
    asked: dict[str, Any] = {}

    class Quantizer(QDQQuantizer):  # type: ignore[misc, unused-ignore]
        def adjust_tensor_ranges(self) -> None:
            self.seen_ranges = dict(self.tensors_range.items())
            super().adjust_tensor_ranges()

        def quantize_model(self) -> Any:
            _record(self, asked)
            return super().quantize_model()

        def _adjust_weight_quant_params_for_bias_tensors(self) -> None:
            super()._adjust_weight_quant_params_for_bias_tensors()
            asked["scales"] |= {
                f"weight:{name}": _parameters(parameters)
                for name, parameters in self.initializer_quant_params.items()
            }

    module.QDQQuantizer = Quantizer
    return asked


def _record(quantizer: Any, asked: dict[str, Any]) -> None:
    """Record the requests of operators, with quantized inputs and without."""
    from onnxruntime.quantization.calibrate import TensorData

    ranges = getattr(quantizer, "seen_ranges", {})
    asked |= {"rules": [], "narrowed": [], "scales": {
        f"range:{name}": _parameters(quantizer.calc_quant_params(range_, {}))
        for name, range_ in ranges.items()
    }}  # fmt: skip
    if ranges and not _is_float8(quantizer):  # which needs more of a value than its range
        unit = TensorData(lowest=np.float32(0), highest=np.float32(1))
        asked["scales"]["unit"] = _parameters(quantizer.calc_quant_params(unit, {}))
    users = quantizer.model.input_name_to_nodes()
    for node in quantizer.model.nodes():
        if not quantizer.should_quantize_node(node):
            continue
        otherwise, _ = _asks(quantizer, node, quantized=False)
        met, needs = _asks(quantizer, node, quantized=True)
        asked["rules"].append({
            "node": node.name, "needs": needs, "when_quantized": met, "otherwise": otherwise
        })  # fmt: skip
        if node.op_type in ("Clip", "Relu") and len(users[node.input[0]]) == 1:
            if node.output[0] in ranges and node.input[0] in ranges:
                entry = [node.input[0], node.name, f"range:{node.output[0]}"]
                asked["narrowed"].append(entry)
        elif node.op_type == "Softmax":
            asked["narrowed"].append([node.output[0], node.name, "unit"])


def _is_float8(quantizer: Any) -> bool:
    return bool(quantizer.activation_qType == onnx.TensorProto.FLOAT8E4M3FN)


def _asks(quantizer: Any, node: Any, *, quantized: bool) -> tuple[list[list[str]], list[str]]:
    """Return the requests of an operator, and the tensors that it reads; nothing is changed."""
    from onnxruntime.quantization.registry import CreateQDQQuantizer

    asks: list[list[str]] = []
    needs: dict[str, None] = {}

    def ask(kind: str, tensor: str, of: str = "", weight: str = "") -> None:
        is_bias = kind == "bias" and quantizer.quantize_bias
        if tensor and (is_bias or (kind != "bias" and quantizer._is_tensor_quantizable(tensor))):
            asks.append([kind, tensor, of, weight])

    def look(tensor: str) -> bool:
        needs[tensor] = None
        return quantized

    stand_ins: dict[str, Any] = {
        "quantize_activation_tensor": lambda name: ask("activation", name),
        "quantize_output_same_as_input": lambda out, given, _: ask("same", out, given),
        "quantize_weight_tensor": lambda name: ask("weight", name),
        "quantize_weight_tensor_per_channel": lambda name, axis: ask("weight", name),
        "quantize_bias_tensor": lambda _, bias, given, weight, *beta: ask(
            "bias", bias, given, weight
        ),
        "is_tensor_quantized": look,
        "try_replacing_upstream_output": lambda *names: False,
    }
    for name, stand_in in stand_ins.items():
        setattr(quantizer, name, stand_in)
    try:
        CreateQDQQuantizer(quantizer, node).quantize()
    finally:
        for name in stand_ins:
            delattr(quantizer, name)
    return asks, [*needs]


def _parameters(parameters: Any) -> dict[str, Any]:
    return {
        "scale": np.atleast_1d(parameters["scale"]).astype(float).tolist(),
        "zero_point": np.atleast_1d(parameters["zero_point"]).astype(int).tolist(),
        "dtype": onnx.TensorProto.DataType.Name(parameters["quant_type"]).lower(),
        "axis": parameters.get("axis"),
    }


def _quantize_weights(source: str, target: str, options: Options) -> None:
    """Store the weights of matrix products in blocks of a few bits."""
    from onnxruntime.quantization import QuantFormat
    from onnxruntime.quantization.matmul_nbits_quantizer import (
        DefaultWeightOnlyQuantConfig,
        KQuantWeightOnlyQuantConfig,
        MatMulNBitsQuantizer,
    )

    weights = str(options.weights)
    is_nearest = options.rounding == "nearest"
    blocked = options.format == "dequantize"
    model = onnx.load(source)
    if not is_nearest:
        _require_even_blocks(model, options)
    shared: dict[str, Any] = {
        "block_size": options.block,
        "is_symmetric": not weights.startswith("u"),
        "quant_format": QuantFormat.QDQ if blocked else QuantFormat.QOperator,
        "op_types_to_quantize": tuple(options.ops) or None,
    }
    # The quantizer of ONNX Runtime 1.23, the last one for Python 3.10, takes no `bits` itself.
    bits = int(weights.removeprefix("u").removeprefix("int"))
    nearest = DefaultWeightOnlyQuantConfig(bits=bits, **shared)
    quantizer = MatMulNBitsQuantizer(
        model,
        nodes_to_exclude=options.exclude or None,
        algo_config=nearest if is_nearest else KQuantWeightOnlyQuantConfig(),
        **shared,
    )
    outputs = {name for _, body in bodies(model) for node in body.node for name in node.output}
    used = _used(model)
    quantizer.process()
    result = quantizer.model.model
    _dequantize_once(result.graph, outputs)
    unused = used - _used(result)  # the library leaves weights that only nested bodies used
    for at in reversed(range(len(result.graph.initializer))):
        if result.graph.initializer[at].name in unused:
            del result.graph.initializer[at]
    used_domains = {node.domain for _, body in bodies(result) for node in body.node}
    if CONTRIB_DOMAIN in used_domains - {entry.domain for entry in result.opset_import}:
        # The library's k-quant forgets it.
        result.opset_import.add(domain=CONTRIB_DOMAIN, version=1)
    quantizer.model.save_model_to_file(target, is_large(Path(source)))


def _used(model: onnx.ModelProto) -> set[str]:
    """Return the values that nodes and outputs of graphs use."""
    used = {value.name for value in model.graph.output} | names_used(model.graph.node)
    return used.union(*(names_used(function.node) for function in model.functions))


class _StoredTensors(NamedTuple):
    """The tensors stored in a graph, and those weights to dequantize: nodes by output."""

    tensors: Collection[str]
    dequantized: dict[str, onnx.NodeProto]


def _dequantize_once(
    graph: onnx.GraphProto, outputs: Collection[str], outer: Sequence[_StoredTensors] = ()
) -> None:
    """Keep one DequantizeLinear for each weight, in the graph that has the weight.

    The library adds one, and the tensors that it reads, for each product of a weight: names are
    defined twice, and in subgraphs ONNX Runtime's fusion does not find the tensors of outer graphs.

    Args:
        graph: Of the quantized model.
        outputs: Outputs of the original nodes; those of the library have other names.
        outer: The tensors of the enclosing graphs, the nearest first.
    """
    tensors = {tensor.name: tensor for tensor in graph.initializer}
    here = _StoredTensors(tensors, {})
    scopes = (here, *outer)
    nodes = []
    for node in graph.node:
        for body in bodies_of(node):
            _dequantize_once(body, outputs, scopes)
        if node.op_type == "DequantizeLinear" and node.output[0] not in outputs:
            home = next((scope for scope in scopes if node.input[0] in scope.tensors), here)
            home.dequantized.setdefault(node.output[0], node)
        else:
            nodes.append(node)
    if here.dequantized or len(nodes) < len(graph.node):
        del graph.node[:]
        graph.node.extend([*here.dequantized.values(), *nodes])
    if len(tensors) < len(graph.initializer):
        del graph.initializer[:]
        graph.initializer.extend(tensors.values())


def _require_even_blocks(model: onnx.ModelProto, options: Options) -> None:
    """Refuse what ONNX Runtime's k-quant fails at: zero points that do not fill whole bytes.

    Raises:
        ValueError: A column of a weight has an odd number of blocks.
    """
    rows = {
        tensor.name: tensor.dims[0] for tensor in model.graph.initializer if len(tensor.dims) == 2
    }
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.name in options.exclude or node.input[1] not in rows:
            continue
        blocks = -(-rows[node.input[1]] // options.block)
        if blocks % 2:
            raise ValueError(
                f"ONNX Runtime's k-quant needs an even number of blocks in each column, and"
                f" {node.name!r} has {blocks}: give a smaller --block"
            )


def _without_mark(target: str) -> list[str]:
    """Remove the mark that tells the library that shapes were inferred.

    Returns:
        The tensors whose scales became infinite.
    """
    model = onnx.load(target, load_external_data=False)
    scales = {node.input[1] for node in model.graph.node if node.op_type == "QuantizeLinear"}
    infinite = [
        tensor.name.removesuffix("_scale")
        for tensor in model.graph.initializer
        if tensor.name in scales
        and tensor.data_location != onnx.TensorProto.EXTERNAL
        and not np.isfinite(numpy_helper.to_array(tensor)).all()
    ]
    kept = [entry for entry in model.metadata_props if entry.key != "onnx.infer"]
    if len(kept) < len(model.metadata_props):
        del model.metadata_props[:]
        model.metadata_props.extend(kept)
        onnx.save(model, target)
    return infinite


def _type(name: str) -> str:
    if name == "fp8":
        return "QFLOAT8E4M3FN"
    return f"Q{name.replace('uint', 'UInt').replace('int', 'Int', not name.startswith('u'))}"


def is_large(source: Path) -> bool:
    """Return whether a model with the data beside it is too large for one file."""
    files = [source, *source.parent.glob(f"{source.name}.*")]
    return sum(path.stat().st_size for path in files) > _ONE_FILE


class _Sets:
    """The input folders, in parts whose values fit in memory."""

    def __init__(self, options: Options, target: Path) -> None:
        self.folders = set_folders(Path(options.calibration))
        self.specs = options.inputs
        # For the other methods all values of a part are held, and have to be of the same shapes.
        self.part = _RANGES if options.method == "minmax" else _TENSORS
        if self.part == _TENSORS and not options.is_uniform:
            self.part = 1
        self.present: str | None = None
        """The name of the folder that is in work."""
        self._counter = step_file(target)

    def feeds(self, begin: int, end: int) -> Iterator[dict[str, Any]]:
        """Yield the inputs of some sets."""
        for number, folder in enumerate(self.folders[begin:end], start=begin):
            self._counter.write_text(str(number), encoding="ascii")
            self.present = folder.name
            yield dict(load_input_sets(folder, self.specs)[0].values)
        self.present = None


def _reader(quantization: Any, sets: _Sets) -> Any:
    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self) -> None:
            self.rewind()

        def __len__(self) -> int:
            return -(-len(sets.folders) // sets.part) * sets.part  # it wants whole parts

        def set_range(self, start_index: int, end_index: int) -> None:
            self.left = sets.feeds(start_index, end_index)

        def get_next(self) -> dict[str, Any] | None:
            return next(self.left, None)

        def rewind(self) -> None:
            self.left = sets.feeds(0, len(sets.folders))

    return Reader()
