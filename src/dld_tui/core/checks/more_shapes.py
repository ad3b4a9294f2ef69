"""Types of values that the onnx package does not infer: of operators of ONNX Runtime, of ranks."""

from __future__ import annotations

from collections.abc import Callable

import onnx
from onnx import TensorProto, helper

from dld_tui.core.checks.calls import Call, Dims, Operand, calls
from dld_tui.core.document.type_inference import Inference, infer
from dld_tui.core.document.wiretext import text_of
from dld_tui.core.domains import plain_domain

_MICROSOFT, _ML = "com.microsoft", "ai.onnx.ml"
_MOST_ROUNDS = 12
"""What one makes is known when the next one is looked at: layers of them take a round each."""
_LARGE = 20_000
"""Nodes from which on only one round is made."""


def add_types(found: Inference) -> None:
    """Add what is known of such values to an inferred model, and infer again what follows."""
    rounds = 1 if len(found.model.graph.node) > _LARGE else _MOST_ROUNDS
    for _ in range(rounds):
        added = _new_types(found.model)
        if not added:
            return
        found.model.graph.value_info.extend(added)
        again = infer(found.model, found.labels)
        found.model, found.remarks = again.model, again.remarks


def _new_types(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    imports = {plain_domain(text_of(e.domain)): int(e.version) for e in model.opset_import}
    declared = {
        text_of(info.name)
        for info in (*model.graph.value_info, *model.graph.output)
        if info.type.tensor_type.HasField("shape") or not info.type.HasField("tensor_type")
    }
    if all(text_of(name) in declared for node in model.graph.node for name in node.output):
        return []
    added = []
    for call in calls(model.graph, imports):
        rule = _MADE.get((call.domain, call.op_type))
        if rule is None or all(text_of(name) in declared for name in call.node.output):
            continue
        for name, operand in zip(call.node.output, rule(call), strict=False):
            is_known = operand is not None and operand.dims is not None and operand.dtype
            if name and operand is not None and is_known and text_of(name) not in declared:
                dims = list(operand.dims or ())
                added.append(helper.make_tensor_value_info(name, operand.dtype, dims))
                declared.add(text_of(name))
    return added


_Made = list["Operand | None"]
_HIGHEST_RANK = 64


def _as_first(call: Call) -> _Made:
    return [call.input(0)]


def _float(dims: Dims | None) -> Operand:
    return Operand(TensorProto.FLOAT, dims, "tensor_type")


def _product(call: Call) -> Dims | None:
    a, b = call.dims(0), call.dims(1)
    if not a or not b or len(a) < 2 or len(b) < 2:
        return None
    if len(b) == 2:
        return (*a[:-1], b[-1])
    return (*a[:-1], b[-1]) if a[:-2] == b[:-2] else None


def _matmul_to_float(call: Call) -> _Made:
    return [_float(_product(call))]


def _fused_matmul(call: Call) -> _Made:
    if any(call.attribute(name, 0) for name in ("transA", "transB", "transBatchA", "transBatchB")):
        return [None]
    return [Operand(call.input(0).dtype, _product(call), "tensor_type")]


def _lstm(call: Call) -> _Made:
    x, hidden = call.dims(0), call.attribute("hidden_size")
    if x is None or len(x) != 3 or not isinstance(hidden, int):
        return []
    ways = 2 if call.attribute("direction", "forward") == "bidirectional" else 1
    state = _float((ways, x[1], hidden))
    return [_float((x[0], ways, x[1], hidden)), state, state]


def _quantized(call: Call) -> _Made:
    zero = call.input(2)
    dtype = zero.dtype or TensorProto.UINT8
    return [Operand(dtype, call.dims(0), "tensor_type")]


def _dequantized(call: Call) -> _Made:
    return [Operand(call.input(1).dtype or TensorProto.FLOAT, call.dims(0), "tensor_type")]


def _classes(*labels: str) -> Callable[[Call], _Made]:
    def made(call: Call) -> _Made:
        count = next((len(values) for name in labels if (values := call.attribute(name))), None)
        strings = bool(call.attribute(labels[-1]))
        rows = call.dim(0, 0) if call.rank(0) == 2 else 1 if call.rank(0) == 1 else None
        kind = TensorProto.STRING if strings else TensorProto.INT64
        return [Operand(kind, (rows,), "tensor_type"), _float((rows, count))]

    return made


def _reshaped(call: Call) -> _Made:
    size = call.dim(1, 0) if call.rank(1) == 1 else None
    dims = None if size is None or size > _HIGHEST_RANK else (None,) * size
    return [Operand(call.input(0).dtype, dims, "tensor_type")]


_MADE: dict[tuple[str, str], Callable[[Call], _Made]] = {
    ("", "Reshape"): _reshaped,
    (_ML, "Scaler"): lambda call: [_float(call.dims(0))],
    (_ML, "Normalizer"): lambda call: [_float(call.dims(0))],
    (_ML, "LinearClassifier"): _classes("classlabels_ints", "classlabels_strings"),
    (_ML, "TreeEnsembleClassifier"): _classes("classlabels_int64s", "classlabels_strings"),
    **{
        (_MICROSOFT, name): _as_first
        for name in (
            "BiasGelu", "FastGelu", "Gelu", "QuickGelu", "SkipLayerNormalization",
            "SkipSimplifiedLayerNormalization", "SimplifiedLayerNormalization",
        )
    },
    (_MICROSOFT, "MatMulIntegerToFloat"): _matmul_to_float,
    (_MICROSOFT, "DynamicQuantizeMatMul"): _matmul_to_float,
    (_MICROSOFT, "FusedMatMul"): _fused_matmul,
    (_MICROSOFT, "DynamicQuantizeLSTM"): _lstm,
    (_MICROSOFT, "QuantizeLinear"): _quantized,
    (_MICROSOFT, "DequantizeLinear"): _dequantized,
}  # fmt: skip
