"""Rules about what kernels of ONNX Runtime refuse, each against ONNX Runtime's own verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from dld_tui.core.checks.prediction import predict

FLOAT = np.float32


def f(*dims: int) -> Any:
    return np.ones(dims, FLOAT)


def of(*values: int) -> Any:
    return np.array(values, np.int64)


def model(
    op: str, inputs: Sequence[Any], given: Sequence[int], attributes: Mapping[str, Any], opset: int
) -> tuple[bytes, dict[str, Any]]:
    """Return a model of one node and what to feed it; inputs that are not `given` are weights."""
    names = ["" if array is None else f"i{at}" for at, array in enumerate(inputs)]
    node = helper.make_node(op, names, ["o"], **attributes)
    fed = {names[at]: np.asarray(inputs[at]) for at in given}
    infos = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
        )
        for name, array in fed.items()
    ]
    weights = [
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in zip(names, inputs, strict=True)
        if name and name not in fed
    ]
    graph = helper.make_graph([node], "g", infos, [onnx.ValueInfoProto(name="o")], weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    made.ir_version = 10
    return made.SerializeToString(), fed


def refused(data: bytes, fed: dict[str, Any]) -> bool:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(data, options, ["CPUExecutionProvider"])
        session.run(None, fed)
    except Exception:  # noqa: BLE001 - the seam: errors of C++
        return True
    return False


U = np.uint8
QUANTIZED = [np.ones((4, 3), U), FLOAT(1), U(1), np.ones((3, 2), U), FLOAT(1), U(1), FLOAT(1), U(1)]
ROTARY = [f(1, 2, 3, 8), f(50, 4), f(50, 4), np.zeros((1, 3), np.int64)]
ATTENTION = [f(1, 4, 3, 8), f(1, 2, 5, 8), f(1, 2, 5, 6)]
STFT = [f(1, 64, 1), np.int64(8), None, np.int64(16)]
# operator, inputs, those that are fed, attributes, opset, inputs that make it wrong
CASES: list[tuple[str, list[Any], list[int], dict[str, Any], int, dict[int, Any]]] = [
    ("Gemm", [f(3, 4), f(4, 5), f(5)], [0, 1, 2], {}, 21, {2: f(4)}),
    ("Gemm", [f(3, 4), f(4, 5), f(3, 1)], [0, 1, 2], {}, 21, {2: f(1, 3, 5)}),
    ("ReduceMax", [f(3, 4), of(1)], [0], {}, 21, {1: of(1).reshape(1, 1)}),
    ("Expand", [f(3, 1), of(2, 3, 6)], [0, 1], {}, 21, {1: of(2, 3, 6).reshape(1, 3)}),
    ("LRN", [f(1, 2, 3, 4)], [0], {"size": 3}, 21, {0: f(2, 3, 4)}),
    ("GatherElements", [f(2, 3), of(0, 0, 0, 0, 0).reshape(5, 1)], [0], {}, 21,
     {1: np.zeros((2, 4), np.int64)}),
    ("GatherElements", [f(2, 3), of(1, -2).reshape(1, 2)], [0], {}, 21, {1: of(2).reshape(1, 1)}),
    ("ScatterElements", [f(2, 3), of(1, 0, 1).reshape(3, 1), f(3, 1)], [0, 2], {}, 21,
     {2: f(3, 2)}),
    ("MaxPool", [f(0, 2, 8, 8)], [0], {"kernel_shape": [2, 2]}, 21, {0: f(1, 0, 8, 8)}),
    ("GlobalAveragePool", [f(0, 2, 8, 8)], [0], {}, 21, {0: f(1, 2, 8, 0)}),
    ("NonMaxSuppression", [f(1, 6, 4), f(1, 2, 6)], [0, 1], {}, 21, {1: f(1, 2, 5)}),
    ("SoftmaxCrossEntropyLoss", [f(3, 5, 2), np.zeros((3, 2), np.int64)], [0, 1],
     {"reduction": "FOO"}, 21, {1: np.zeros((2, 2), np.int64)}),
    ("GroupNormalization", [f(1, 4, 3), f(4), f(4)], [0, 1, 2], {"num_groups": 2}, 21, {1: f(2)}),
    ("GroupNormalization", [f(1, 4, 3), f(2), f(2)], [0, 1, 2], {"num_groups": 2}, 18, {1: f(4)}),
    ("RMSNormalization", [f(2, 4), f(4)], [0, 1], {}, 23, {1: f(3)}),
    ("CumSum", [f(2, 4), np.int64(-2)], [0], {}, 21, {1: np.int64(2)}),
    ("HannWindow", [of(8)], [0], {}, 21, {0: of(8, 8)}),
    ("QLinearMatMul", QUANTIZED, [0], {}, 21, {1: f(1, 1)}),
    ("QLinearMatMul", [*QUANTIZED[:4], f(2), np.ones(2, U), *QUANTIZED[6:]], [0], {}, 21,
     {4: f(3)}),
    ("ConvInteger", [np.ones((1, 1, 4, 4), U), np.ones((2, 1, 3, 3), U), U(1)], [0], {}, 21,
     {2: np.ones(2, U)}),
    ("RotaryEmbedding", ROTARY, [0, 1, 2, 3], {}, 23, {1: f(50, 3)}),
    ("RotaryEmbedding", [*ROTARY[:1], f(1, 3, 4), f(1, 3, 4)], [0, 1, 2], {}, 23, {1: f(50, 4)}),
    ("Attention", ATTENTION, [0, 1, 2], {}, 23, {1: f(1, 2, 4, 8)}),
    ("Attention", [*ATTENTION, f(3, 5)], [0, 1, 2, 3], {}, 23, {3: f(3, 4)}),
    ("STFT", STFT, [0], {}, 21, {1: np.int64(0)}),
    ("STFT", STFT, [0], {}, 21, {0: f(1, 8, 1)}),
    ("AffineGrid", [f(2, 2, 3), of(2, 3, 5, 6)], [0], {}, 21, {1: of(2, 3, 4, 5, 6)}),
    ("TensorScatter", [f(1, 4, 5), f(1, 1, 5), of(3)], [0, 1], {}, 24, {2: of(4)}),
    ("Resize", [f(1, 1, 2, 2), None, None, of(1, 1, 4, 4)], [0], {}, 21, {3: of(1, 1, 0, 4)}),
    ("EyeLike", [f(3, 3)], [0], {"dtype": 1}, 21, {0: f(3)}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_the_kernel_refuses_is_an_error_and_nothing_else(case: Any) -> None:
    op, inputs, given, attributes, opset, wrong = case
    changes: list[tuple[dict[int, Any], bool]] = [({}, False), (wrong, True)]
    for change, is_wrong in changes:
        tried = [change.get(at, array) for at, array in enumerate(inputs)]
        data, fed = model(op, tried, given, attributes, opset)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is is_wrong, "what this test says of ONNX Runtime"
        assert bool(said) is is_wrong, [entry.remark.message for entry in said]


@pytest.mark.parametrize(
    ("op", "inputs", "right", "wrong"),
    [
        ("LRN", [f(1, 2, 3, 4)], {"size": 3}, {"size": 4}),
        ("CumSum", [f(2, 4), np.int64(0)], {"reverse": 1}, {"reverse": 2}),
        ("RNN", [f(2, 1, 3), f(1, 4, 3), f(1, 4, 4)], {"hidden_size": 4}, {}),
        ("EyeLike", [f(3, 3)], {"dtype": 1}, {"dtype": 0}),
    ],
)
def test_attributes_that_a_kernel_refuses(
    op: str, inputs: list[Any], right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    for attributes, is_wrong in ((right, False), (wrong, True)):
        data, fed = model(op, inputs, [0], attributes, 21)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is is_wrong
        assert bool(said) is is_wrong, [entry.remark.message for entry in said]


def test_an_operator_is_a_function_where_its_parts_are_the_same() -> None:
    for opset, is_known in ((21, True), (22, False)):  # float32 has a kernel, float64 none
        data, fed = model("Elu", [f(3) if is_known else np.ones(3)], [0], {}, opset)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is not is_known
        assert [entry.rule for entry in said] == ([] if is_known else ["no-kernel"])


def test_a_sparse_weight_is_a_dense_one_to_operators() -> None:
    data, fed = model("MatMul", [f(2, 3), f(3, 4)], [0], {}, 21)
    made = onnx.ModelProto.FromString(data)
    del made.graph.initializer[:]
    values, places = numpy_helper.from_array(f(2), "i1"), numpy_helper.from_array(of(0, 7), "at")
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 4]))
    assert not refused(made.SerializeToString(), fed)
    assert predict(made)[1] == []
