"""Rules about what kernels of ONNX Runtime refuse, each against ONNX Runtime's own verdict."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper, parser

from dld_tui.core.checks import check
from dld_tui.core.checks.prediction import predict
from dld_tui.core.document import Document
from tests.support.runtime import needs_onnxruntime

pytestmark = needs_onnxruntime(31)
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
DEFORM = [f(1, 1, 3, 3), f(1, 1, 2, 2), np.zeros((1, 8, 2, 2), FLOAT), f(1), f(1, 4, 2, 2)]
MEL = [np.int64(8), np.int64(16), np.int64(8192), FLOAT(0), FLOAT(8192 / 2)]
RECURRENT = [f(3, 2, 4), f(1, 5, 4), f(1, 5, 5), None, np.array([1, 3], np.int32)]
LOSS = [f(3, 5), of(0, 4, -5), f(5)]
TREE = {
    "domain": "ai.onnx.ml", "leaf_targetids": [0, 1, 0, 1], "n_targets": 2, "tree_roots": [0],
    "leaf_weights": numpy_helper.from_array(f(4)), "nodes_splits": numpy_helper.from_array(f(3)),
    "nodes_modes": numpy_helper.from_array(np.zeros(3, U)), "nodes_featureids": [0, 1, 0],
    "nodes_falseleafs": [0, 1, 1], "nodes_falsenodeids": [2, 2, 3],
    "nodes_trueleafs": [0, 1, 1], "nodes_truenodeids": [1, 0, 1],
}  # fmt: skip


def scan_body(size: int) -> onnx.GraphProto:
    """Return a body that adds rows of two elements to a state that it declares so large."""
    return onnx.parser.parse_graph(
        f"body (float[{size}] before, float[2] row) => (float[2] after) {{"
        " after = Add(before, row) }"
    )


LINEAR = {"domain": "ai.onnx.ml", "coefficients": [1.0, 2.0, 3.0]}
SCAN = {"num_scan_inputs": 1, "body": scan_body(2)}
TF_IDF = {
    "mode": "TF", "min_gram_length": 2, "max_gram_length": 2, "max_skip_count": 0,
    "ngram_counts": [0, 2], "ngram_indexes": [0, 1, 2], "pool_int64s": [1, 2, 3, 4, 5, 6],
}  # fmt: skip
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
    ("GroupNormalization", [f(1, 4, 3), f(1), f(4)], [0, 1, 2], {"num_groups": 2}, 21, {1: f(3)}),
    ("DeformConv", DEFORM, [0, 1, 2], {}, 22, {1: f(1, 1, 1, 2)}),
    ("DeformConv", DEFORM, [0, 1, 2], {}, 22, {2: np.zeros((1, 8, 3, 2), FLOAT)}),
    ("DeformConv", DEFORM, [0, 1, 2, 3, 4], {}, 22, {4: f(1, 2, 2, 2)}),
    ("MelWeightMatrix", MEL, [], {}, 21, {1: np.int64(15)}),
    ("MelWeightMatrix", MEL, [], {}, 21, {2: np.int64(2)}),
    ("MelWeightMatrix", MEL, [], {}, 21, {3: FLOAT(-100)}),
    ("CumProd", [f(2, 4), np.int64(-2)], [0], {}, 26, {1: np.int64(2)}),
    ("RNN", RECURRENT, [0, 1, 2], {"hidden_size": 5}, 21, {4: np.array([1, 4], np.int32)}),
    ("RNN", RECURRENT, [0, 1, 2], {"hidden_size": 5}, 21, {4: np.array([3], np.int32)}),
    ("NegativeLogLikelihoodLoss", LOSS[:2], [0], {}, 21, {1: of(0, 5, 1)}),
    ("NegativeLogLikelihoodLoss", LOSS, [0, 2], {}, 21, {2: f(4)}),
    ("Slice", [f(2, 3), of(0), of(1), of(1)], [0], {}, 21, {3: of(2)}),
    ("Expand", [f(1, 3), of(2, 1)], [0], {}, 21, {1: of(-2, 1)}),
    ("Reshape", [f(2, 3), of(3, 2)], [0], {}, 21, {1: of(3, 2).reshape(1, 2)}),
    ("Reshape", [f(0, 3), of(0, 3)], [0], {"allowzero": 2}, 21, {1: of(3, 3)}),
    ("Tile", [f(2, 3), of(2, 1)], [0], {}, 21, {1: of(1 << 40, 1)}),
    ("Resize", [f(1, 1, 2, 2), None, None, of(1, 1, 4, 4).reshape(2, 2)], [0], {}, 21,
     {3: of(1, 1, 4)}),
    ("TensorScatter", [f(1, 4, 5), f(1, 1, 5), of(3)], [0, 1], {"mode": "circular"}, 24,
     {2: of(-1)}),
    ("TensorScatter", [f(1, 4, 5), f(1, 4, 5), of(0)], [0, 1], {}, 24, {1: f(1, 5, 5)}),
    ("NonMaxSuppression", [f(1, 6, 4), f(1, 2, 6), of(3), FLOAT(0.5)], [0, 1], {}, 21,
     {3: FLOAT(1.5)}),
    ("ConvTranspose", [f(1, 1, 3), f(1, 1, 3)], [0, 1], {"output_shape": [11], "strides": [3]}, 21,
     {0: f(1, 1, 2)}),
    ("ConvTranspose", [f(1, 1, 3), f(1, 1, 3)], [0, 1], {"pads": [2, 2]}, 21, {0: f(1, 1, 2)}),
    ("GridSample", [f(0, 1, 3, 2), f(0, 1, 1, 2)], [0, 1], {}, 21,
     {0: f(1, 1, 0, 2), 1: f(1, 1, 1, 2)}),
    ("Trilu", [f(3, 3), np.int64(1)], [0], {}, 21, {1: of(1, 1)}),
    ("CenterCropPad", [f(4, 4, 2), of(2)], [0], {"axes": [2]}, 21, {0: f(4, 4)}),
    ("MaxUnpool", [f(1, 1, 2), np.zeros((1, 1, 2), np.int64), of(1, 1, 5)], [0, 1],
     {"kernel_shape": [2], "strides": [2]}, 21, {2: of(1, 1, 3)}),
    ("Pad", [f(1, 4), of(0, 1, 0, 3)], [0], {"mode": "reflect"}, 21, {1: of(0, 1, 0, 4)}),
    ("Pad", [f(1, 4), of(0, -1, 0, -2)], [0], {}, 21, {1: of(0, -2, 0, -3)}),
    ("Pad", [f(1, 4), of(0, -1, 0, 1)], [0], {"mode": "edge"}, 21, {1: of(-1, -1, 0, 1)}),
    ("Pad", [f(1, 4), of(1, 1), None, of(1)], [0], {}, 21, {3: of(1).reshape(1, 1)}),
    ("Div", [of(1, 2), of(1, 2)], [0], {}, 21, {1: of(0, 2)}),
    ("GatherND", [f(2, 3), np.zeros((2, 1), np.int64)], [0], {"batch_dims": 1}, 21,
     {1: np.zeros((1, 1), np.int64)}),
    ("ReduceMax", [np.ones((0, 2), bool), of(1)], [0], {}, 21, {0: np.ones((2, 0), bool)}),
    ("Resize", [f(1, 1, 2), None, f(3)], [0, 2], {}, 21, {2: f(0)}),
    ("Resize", [f(1, 1, 2), None, None, of(1, 1, 2)], [0], {}, 21, {0: f(1, 1, 0)}),
    ("Resize", [f(1, 1, 2), None, None, of(4)], [0], {"axes": [2]}, 21, {0: f(1, 1, 0)}),
    ("Attention", [f(2, 3, 4), f(2, 5, 4), f(2, 5, 4)], [0, 1, 2],
     {"q_num_heads": 2, "kv_num_heads": 2}, 23, {2: f(2, 1, 4)}),
    ("Attention", [f(2, 3, 4), f(2, 5, 2), f(2, 5, 2)], [0, 1, 2],
     {"q_num_heads": 2, "kv_num_heads": 1}, 23, {1: f(2, 5, 3)}),
    ("RoiAlign", [f(1, 1, 4, 4), f(1, 4), of(0)], [0, 1], {}, 21, {2: of(1)}),
    ("LinearRegressor", [f(2, 3)], [0], LINEAR, 5, {0: f(2, 4)}),
    ("ArgMax", [f(0, 2)], [0], {"axis": 1}, 21, {0: f(2, 0)}),
    ("Range", [np.int64(0), np.int64(4), np.int64(1)], [], {}, 21, {1: of(4)}),
    ("StringNormalizer", [np.array(["a"], object)], [0], {}, 21, {0: np.array([], object)}),
    ("MatMul", [f(0, 2, 3), f(1, 3, 4)], [0, 1], {}, 21, {0: f(1, 2, 3), 1: f(0, 3, 4)}),
    ("LayerNormalization", [f(2, 3), f(1, 3)], [0, 1], {}, 21, {1: f(1, 1, 3)}),
    ("Resize", [f(1, 1, 2, 2), None, None, of(1, 1, 4, 4)], [0], {"mode": "cubic"}, 21,
     {3: of(2, 1, 4, 4)}),
    ("Conv", [f(1, 1, 3), f(1, 1, 2)], [0, 1], {"auto_pad": "SAME_UPPER"}, 21, {0: f(1, 1, 0)}),
    ("DFT", [f(1, 4, 2)], [0], {}, 19, {0: f(1, 4, 3)}),
    ("Col2Im", [f(1, 5, 5), of(5, 5), of(1, 5)], [0], {}, 21, {2: of(2, 3)}),
    ("AffineGrid", [f(2, 2, 3), of(2, 3, 5, 6)], [0], {}, 21, {1: of(2, 3, 5, 0)}),
    ("NegativeLogLikelihoodLoss", [f(3, 6), of(0, 4, 1), f(5)], [0, 2], {}, 21, {1: of(0, 6, 1)}),
    ("AveragePool", [f(1, 1, 6, 6)], [0], {"kernel_shape": [2, 2], "dilations": [5, 5],
                                          "ceil_mode": 1}, 21, {0: f(1, 1, 3, 3)}),
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
        ("LRN", [f(1, 2, 3, 4)], {"size": 3, "beta": 0.5}, {"size": 3, "beta": 0.0}),
        ("LpNormalization", [f(2, 3)], {"p": 2}, {"p": 3}),
        ("MaxPool", [f(1, 2, 4)], {"kernel_shape": [2]}, {"kernel_shape": [2], "storage_order": 2}),
        (
            "ConvTranspose",
            [f(1, 1, 3), f(1, 1, 3)],
            {"output_padding": [0]},
            {"output_padding": [1]},
        ),
        ("Flatten", [f(2, 3)], {"axis": 2}, {"axis": 1 << 40}),
        ("Split", [f(4)], {"num_outputs": 1}, {"num_outputs": 5}),
        ("DeformConv", DEFORM, {}, {"pads": [1, 0, -1, 0]}),
        ("Attention", ATTENTION, {"scale": 1.0}, {"scale": -1.0}),
        ("TfIdfVectorizer", [of(1, 2)], TF_IDF, {**TF_IDF, "pool_int64s": [1, 2, 3, 4, 5]}),
        ("TfIdfVectorizer", [of(1, 2)], TF_IDF, {**TF_IDF, "max_skip_count": -1}),
        ("TreeEnsemble", [f(3, 2)], TREE, {**TREE, "tree_roots": [7]}),
        ("TreeEnsemble", [f(3, 2)], TREE, {**TREE, "n_targets": 1}),
        ("TreeEnsemble", [f(3, 2)], TREE, {**TREE, "nodes_featureids": [0, 1, 5]}),
        ("TreeEnsemble", [f(3, 2)], TREE, {**TREE, "nodes_falsenodeids": [2, 2, 9]}),
        ("TreeEnsemble", [f(3, 2)], TREE, {**TREE, "nodes_truenodeids": [0, 0, 1]}),
        ("Scan", [f(2), f(3, 2)], SCAN, {**SCAN, "body": scan_body(4)}),
        ("Scan", [f(2), f(3, 2)], SCAN, {**SCAN, "scan_input_axes": [1]}),
    ],
)
def test_attributes_that_a_kernel_refuses(
    op: str, inputs: list[Any], right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    for attributes, is_wrong in ((right, False), (wrong, True)):
        data, fed = model(op, inputs, [0], attributes, 23)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is is_wrong
        assert bool(said) is is_wrong, [entry.remark.message for entry in said]


def test_an_operator_is_a_function_where_its_parts_are_the_same() -> None:
    for opset, is_known in ((21, True), (22, False)):  # float32 has a kernel, float64 none
        data, fed = model("Elu", [f(3) if is_known else np.ones(3)], [0], {}, opset)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is not is_known
        assert [entry.rule for entry in said] == ([] if is_known else ["no-kernel"])


def test_a_part_of_a_function_refuses_types_that_differ() -> None:
    for kind, is_wrong in ((FLOAT, False), (np.float16, True)):
        inputs = [*ATTENTION[:2], ATTENTION[2].astype(kind)]
        data, fed = model("Attention", inputs, [0, 1, 2], {}, 23)
        _, said = predict(onnx.ModelProto.FromString(data))
        assert refused(data, fed) is is_wrong
        assert bool(said) is is_wrong


def test_shapes_of_reshapes_in_a_row_need_not_be_vectors() -> None:
    data, fed = model("Reshape", [f(2, 3), of(3, 2).reshape(1, 2)], [0], {}, 21)
    made = onnx.ModelProto.FromString(data)
    assert refused(data, fed)
    assert predict(onnx.ModelProto.FromString(data))[1]
    made.graph.node.insert(0, helper.make_node("Reshape", ["i0", "flat"], ["between"]))
    made.graph.node[1].input[0] = "between"
    made.graph.initializer.append(numpy_helper.from_array(of(6), "flat"))
    assert not refused(made.SerializeToString(), fed)
    assert predict(made)[1] == []


def test_a_branch_that_is_never_taken_may_refuse_its_shapes() -> None:
    for size, is_wrong in ((2, False), (3, True)):
        text = f"""<ir_version: 10, opset_import: ["" : 21]>
        g (float[{size}] x) => (float[n] y) {{
            count = Size(x)
            three = Constant<value = int64 {{3}}>()
            cond = Equal(count, three)
            y = If(cond) <
                then_branch = g1 () => (float[n] t) {{ t, u, v, w = Split<num_outputs = 4>(x) }},
                else_branch = g2 () => (float[n] e) {{ e = Relu(x) }}
            >
        }}"""
        made = onnx.parser.parse_model(text)
        assert refused(made.SerializeToString(), {"x": f(size)}) is is_wrong
        assert bool(predict(made)[1]) is is_wrong


def test_a_range_of_vectors_is_taken_where_not_all_are_constants() -> None:
    for given, is_wrong in (([], True), ([0], False)):
        data, fed = model("Range", [np.int64(0), of(4), np.int64(1)], given, {}, 21)
        assert refused(data, fed) is is_wrong
        assert bool(predict(onnx.ModelProto.FromString(data))[1]) is is_wrong


def test_ir_version_0_is_taken_like_one_before_4() -> None:
    data, fed = model("QLinearMatMul", QUANTIZED, [0], {}, 10)
    made = onnx.ModelProto.FromString(data)
    made.ir_version = 0
    assert not refused(made.SerializeToString(), fed)
    assert predict(made)[1] == []


def test_operators_whose_inference_would_end_the_process_are_told() -> None:
    for op in ("EyeLike", "RegexFullMatch"):
        data, fed = model(op, [None], [], {}, 21)
        assert refused(data, fed)
        assert predict(onnx.ModelProto.FromString(data))[1]


@pytest.mark.parametrize("before", ["Transpose", "Relu"])
def test_a_reduction_after_a_transpose_keeps_dimensions_or_not(before: str) -> None:
    data, fed = model("ReduceSum", [f(2, 3, 4), of(1)], [0], {"keepdims": -1}, 21)
    made = onnx.ModelProto.FromString(data)
    turned: dict[str, Any] = {"perm": [2, 0, 1]} if before == "Transpose" else {}
    made.graph.node.insert(0, helper.make_node(before, ["i0"], ["between"], **turned))
    made.graph.node[1].input[0] = "between"
    made.graph.node.append(helper.make_node("Relu", ["o"], ["end"]))
    made.graph.output[0].name = "end"
    assert refused(made.SerializeToString(), fed) is (before == "Transpose")
    assert bool(predict(made)[1]) is (before == "Transpose")


def test_a_sparse_weight_is_a_dense_one_to_operators() -> None:
    data, fed = model("MatMul", [f(2, 3), f(3, 4)], [0], {}, 21)
    made = onnx.ModelProto.FromString(data)
    del made.graph.initializer[:]
    values, places = numpy_helper.from_array(f(2), "i1"), numpy_helper.from_array(of(0, 7), "at")
    made.graph.sparse_initializer.append(helper.make_sparse_tensor(values, places, [3, 4]))
    assert not refused(made.SerializeToString(), fed)
    assert predict(made)[1] == []


@pytest.mark.parametrize(
    ("opset", "function_opset", "body", "is_wrong"),
    [
        (18, 12, "b = ReduceSum<axes=[1]>(a)", True),
        (12, 18, "b = ReduceSum<axes=[1]>(a)", False),
        (5, 18, "b = Erf(a)", True),
        (18, 5, "b = Erf(a)", True),
        (17, 18, "b = Relu(a)", False),
        (4, 18, "c = Constant<value_ints=[3, 2]>() b = Reshape(a, c)", True),
    ],
)
def test_a_function_is_taken_in_the_version_of_the_model(
    tmp_path: Path, opset: int, function_opset: int, body: str, is_wrong: bool
) -> None:
    made = parser.parse_model(
        f"""<ir_version: 9, opset_import: ["" : {opset}, "local" : 1]>
        main (float[2, 3] i0) => (y) {{ y = local.called(i0) }}
        <domain: "local", opset_import: ["" : {function_opset}]>
        called (a) => (b) {{ {body} }}"""
    )
    assert refused(made.SerializeToString(), {"i0": f(2, 3)}) is is_wrong
    onnx.save(made, tmp_path / "m.onnx")
    with contextlib.closing(Document.open(tmp_path / "m.onnx")) as document:
        errors = [finding for finding in check(document) if finding.level == "error"]
    assert bool(errors) is is_wrong


@pytest.mark.parametrize(
    ("dims", "shape", "allowzero"),
    [
        ((0, 3, 4), (0, 3, -1), 0), ((0, 3, 4), (0, 12), 0), ((0, 3, 4), (-1, 12), 0),
        ((2, 3), (0, -1), -1), ((2, 3), (0, 3), -1), ((2, 3), (0, 3), 1), ((0, 3), (0, 5), -1),
        ((2, 3), (0, -1), 1 << 40), ((2, 3), (0, -1), 1 << 40 | 1),
    ],
)  # fmt: skip
def test_nothing_is_reshaped(dims: tuple[int, ...], shape: tuple[int, ...], allowzero: int) -> None:
    data, fed = model("Reshape", [f(*dims), of(*shape)], [0], {"allowzero": allowzero}, 17)
    assert bool(predict(onnx.ModelProto.FromString(data))[1]) is refused(data, fed)
