"""Texts as ONNX Runtime 1.23.2 and 1.31.1 wrote them; one row a kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime.runtime import error_from
from dld_tui.core.errors import ActivityError, DldError, InputError

_INVALID = "[ONNXRuntimeError] : 10 : INVALID_GRAPH : This is an invalid model. "
_FAIL = "[ONNXRuntimeError] : 1 : FAIL : "
_ARGUMENT = "[ONNXRuntimeError] : 2 : INVALID_ARGUMENT : "
_RESHAPE = (
    "Non-zero status code returned while running Reshape node. Name:'it's (odd)' Status Message:"
    " /onnxruntime_src/onnxruntime/core/providers/cpu/tensor/reshape_helper.h:45"
    " onnxruntime::ReshapeHelper::ReshapeHelper(const onnxruntime::TensorShape&,"
    " onnxruntime::TensorShapeVector&, bool) The input tensor"
    " cannot be reshaped to the requested shape. Input shape:{1,1}, requested shape:{7}\n"
)


class Fail(Exception):
    """Stands for any of its classes; of those only the names of unreadable files matter."""


class InvalidProtobuf(Exception):
    pass


def explain(text: str, kind: type[Exception] = Fail, doing: str = "load") -> DldError:
    return error_from(kind(text), Path("m.onnx"), doing, "1.31.1")


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        (
            f'{_INVALID}In Node, ("my node", Foo, "", -1) : ("x": tensor(float),) -> ("y":'
            " tensor(float),) , Error No Op registered for Foo with domain_version of 17",
            "m.onnx: node 'my node' (Foo)",
            "No Op registered for Foo with domain_version of 17",
        ),
        (
            f"{_FAIL}Load model from m.onnx failed:Fatal error: com.foo:Bar(-1) is not a registered"
            " function/op",
            "m.onnx: a node (com.foo:Bar)",
            "com.foo:Bar(-1) is not a registered function/op",
        ),
        (
            f"{_INVALID}Type Error: Type 'tensor(string)' of input parameter (x) of operator (Relu)"
            " in node (mynode) is invalid.",
            "m.onnx: node 'mynode' (Relu)",
            "Type 'tensor(string)' of input parameter (x) of operator (Relu) in node (mynode)"
            " is invalid",
        ),
        (
            f"{_FAIL}Load model from m.onnx failed:Type Error: Type parameter (T) of Optype (Conv)"
            " bound to different types (tensor(float) and tensor(float16) in node (a/b;c).",
            "m.onnx: node 'a/b;c' (Conv)",
            "Type parameter (T) of Optype (Conv) bound to different types (tensor(float) and"
            " tensor(float16)",
        ),
        (
            "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for"
            " Relu(14) node with name 'mynode'",
            "m.onnx: node 'mynode' (Relu)",
            "Could not find an implementation for Relu(14)",
        ),
        (
            f"{_FAIL}Node (conv) Op (Conv) [ShapeInferenceError] Attribute pads has incorrect size",
            "m.onnx: node 'conv' (Conv)",
            "[ShapeInferenceError] Attribute pads has incorrect size",
        ),
        (
            _FAIL + _RESHAPE,
            'm.onnx: node "it\'s (odd)" (Reshape)',
            "The input tensor cannot be reshaped to the"
            " requested shape. Input shape:{1,1}, requested shape:{7}",
        ),
        (
            f"{_ARGUMENT}Non-zero status code returned while running Gather node. Name:'' Status"
            " Message: indices element out of data bounds, idx=9",
            "m.onnx: a node (Gather)",
            "indices element out of data bounds, idx=9",
        ),
        (
            f"{_FAIL}This is an invalid model. Error: the graph is not acyclic.",
            "m.onnx",
            "the graph is not acyclic",
        ),
        (
            f"{_FAIL}/onnxruntime_src/onnxruntime/core/graph/model.cc:181 onnxruntime::Model::"
            "Model(onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::"
            "IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&, const"
            " onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR"
            " version: 11\n",
            "m.onnx",
            "Unsupported model IR version: 99, max supported IR version: 11",
        ),
        (
            f'{_INVALID}In Node, ("my node", Foo, "", -1) : , Error com.foo:Bar(-1) is not a'
            " registered function/op",
            "m.onnx: node 'my node' (Foo)",
            "com.foo:Bar(-1) is not a registered function/op",
        ),
        ("something new", "m.onnx", "something new"),
        ("", "m.onnx", ""),
    ],
)
def test_the_node_and_the_sentence_are_taken_out(text: str, where: str, message: str) -> None:
    error = explain(text)

    assert isinstance(error, ActivityError)
    assert error.status == 5
    assert error.where == where
    assert error.message == f"ONNX Runtime 1.31.1 cannot load it: {message}"
    assert error.details == f"Fail: {text.strip()}"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("Failed to allocate memory for requested buffer of size 4398046511104", "more memory"),
        ("bad_alloc", "more memory"),
        ("No Op registered for Foo", "custom operator library"),
        ("Could not find an implementation for Relu(14) node with name ''", "no kernel"),
    ],
)
def test_known_faults_have_a_hint(text: str, hint: str) -> None:
    assert hint in str(explain(text).hint)


def test_an_unreadable_file_is_an_input_error() -> None:
    error = explain(
        "[ONNXRuntimeError] : 7 : INVALID_PROTOBUF : Load model from m.onnx failed:Protobuf"
        " parsing failed.",
        InvalidProtobuf,
    )

    assert isinstance(error, InputError)
    assert error.message == "ONNX Runtime cannot read it: Protobuf parsing failed"


def test_long_texts_and_controls_are_tamed() -> None:
    error = explain("a\x1b[2J" + "x" * 100_000, doing="run")

    assert len(error.message) < 400
    assert "\x1b" not in error.message


def test_hostile_texts_cost_no_time() -> None:
    hostile = 'In Node, ("' + "(" * 20_000 + ", " * 5_000 + "Type '" * 3_000
    assert explain(hostile).status == 5


def test_a_gpu_that_fails_says_where_to_look() -> None:
    found = explain(
        f"{_FAIL}CUDA failure 719: unspecified launch failure ; GPU=0 ; expr=cudaStreamSync",
        Fail,
        "run",
    )

    assert "nvidia-smi" in str(found.hint)
