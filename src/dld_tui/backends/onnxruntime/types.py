"""Types that ONNX Runtime infers, of outputs of operators for which onnx infers none.

These are its own operators, and some of ai.onnx.ml, such as Scaler and TreeEnsembleRegressor.
"""

from __future__ import annotations

import importlib.util
from copy import deepcopy
from typing import TYPE_CHECKING

from dld_tui.core.files.proto_fields import imported_versions, set_text, text_of
from dld_tui.core.model.document.locations import bodies_of
from dld_tui.core.model.operators.native import MOST_NODES, expansion, limits_for
from dld_tui.core.model.operators.registry import onnx_operators, onnx_versions
from dld_tui.core.model.shapes.inference import forget_generated
from dld_tui.core.model.tensors.value_types import ValueType, dtype_of, type_proto_of
from dld_tui.core.process.child import CrashError, LimitError, RefusedError, compute
from dld_tui.core.types import plain_domain

if TYPE_CHECKING:
    import onnx


def contrib_types(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return types of values of the main graph that onnx cannot infer and ONNX Runtime can.

    The runtime reads the graph without creating a session: neither weights nor kernels are needed.
    It is native code that can crash on an invalid model: it runs in a fork, within limits.

    Args:
        model: With its known types. It stays unchanged.

    Returns:
        The new types. Empty if the runtime is missing or rejects the model.
    """
    wanted = _unknown(model)
    if not wanted or importlib.util.find_spec("onnxruntime") is None:
        return []
    import onnx
    from onnxruntime.capi import _pybind_state as runtime

    asked = deepcopy(model)
    forget_generated(asked.graph)
    _make_inputs_of_stored(asked.graph)
    known = {text_of(info.name) for info in asked.graph.output}
    for name in wanted:
        if name not in known:
            set_text(asked.graph.output.add(), "name", name)
    if max(expansion(asked).values(), default=0) > MOST_NODES:
        del asked.functions[:]  # it would replace the calls
    data = asked.SerializeToString()

    def infer() -> bytes:
        options = runtime.SessionOptions()
        options.log_severity_level = 4  # what it would say comes again when a session is made
        session = runtime.InferenceSession(options, data, False, False)
        types = onnx.GraphProto()
        for value in session.outputs_meta:
            dtype = dtype_of(value.type) if value.name in wanted else None
            # It gives an unknown rank and a scalar as the same list.
            proto = type_proto_of(ValueType(dtype, tuple(value.shape) or None)) if dtype else None
            if proto is not None and (value.shape or not wanted[value.name]):
                set_text(types.value_info.add(type=proto), "name", value.name)
        return types.SerializeToString()

    try:
        inferred = compute(infer, limits_for(len(data)))
    except (RefusedError, LimitError, CrashError):  # the checks report the problem
        return []
    return [*onnx.GraphProto.FromString(inferred).value_info]


def _make_inputs_of_stored(main: onnx.GraphProto) -> None:
    """Make external weights of nested graphs inputs of the main graph, whose types suffice.

    ONNX Runtime looks for their files, relative to a model that it has no path of.
    """
    import onnx

    input_names = {text_of(info.name) for info in main.input}
    input_names.update(text_of(tensor.name) for tensor in main.initializer)
    input_names.update(text_of(name) for node in main.node for name in node.output)
    graphs = [graph for node in main.node for graph in bodies_of(node)]
    while graphs:
        graph = graphs.pop()
        graphs += [inner for node in graph.node for inner in bodies_of(node)]
        for tensor in [*graph.initializer]:
            name = text_of(tensor.name)
            if tensor.data_location == onnx.TensorProto.EXTERNAL and name not in input_names:
                input_names.add(name)
                kind = onnx.helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
                main.input.append(onnx.ValueInfoProto(name=name, type=kind))
                graph.initializer.remove(tensor)


_ML = "ai.onnx.ml"
"""The one domain of ONNX with operators that have neither inference nor a definition."""


def has_inference(domain: str, op_type: str, version: int | None) -> bool:
    """Return whether onnx infers the outputs of an operator."""
    from onnx import defs

    if op_type not in onnx_operators().get(domain, ()):
        return False
    if version is not None and version < onnx_versions(op_type, domain)[0]:
        return False  # ONNX Runtime has LayerNormalization before opset 17
    if domain != _ML:
        return True
    schema = defs.get_schema(op_type, version or defs.onnx_opset_version(), domain)
    return bool(schema.has_type_and_shape_inference_function)


def _unknown(model: onnx.ModelProto) -> dict[str, bool]:
    """Return the values without a shape that nodes make for which onnx has no inference.

    The element type of those that are True is known.
    """
    graph = model.graph
    versions = imported_versions(model)
    inferred: dict[tuple[str, str], bool] = {}
    outputs = []
    for node in graph.node:
        key = plain_domain(text_of(node.domain)), text_of(node.op_type)
        if key not in inferred:
            inferred[key] = has_inference(*key, versions.get(key[0]))
        if not inferred[key]:
            outputs += [name for name in map(text_of, node.output) if name]
    without_shape: dict[str, bool] = {}
    if outputs:
        kinds = {text_of(info.name): info.type for info in (*graph.value_info, *graph.output)}
        for name in outputs:
            kind = kinds.get(name)
            if kind is None or kind.WhichOneof("value") is None:
                without_shape[name] = False
            elif kind.HasField("tensor_type") and not kind.tensor_type.HasField("shape"):
                without_shape[name] = bool(kind.tensor_type.elem_type)
    return without_shape
