"""What is taken out of texts as ONNX Runtime 1.23.2 and 1.31.1 wrote them, one of each kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.backends.onnxruntime import runtime
from dld_tui.backends.onnxruntime.runtime import error_from, find_fault, named_node
from tests.support.recorded import Recorded

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


TEXTS = [
    (
        f'{_INVALID}In Node, ("my node", Foo, "", -1) : ("x": tensor(float),) -> ("y":'
        " tensor(float),) , Error No Op registered for Foo with domain_version of 17"
    ),
    (
        f"{_FAIL}Load model from m.onnx failed:Fatal error: com.foo:Bar(-1) is not a registered"
        " function/op"
    ),
    (
        f"{_INVALID}Type Error: Type 'tensor(string)' of input parameter (x) of operator (Relu)"
        " in node (mynode) is invalid."
    ),
    (
        f"{_FAIL}Load model from m.onnx failed:Type Error: Type parameter (T) of Optype (Conv)"
        " bound to different types (tensor(float) and tensor(float16) in node (a/b;c)."
    ),
    (
        "[ONNXRuntimeError] : 9 : NOT_IMPLEMENTED : Could not find an implementation for"
        " Relu(14) node with name 'mynode'"
    ),
    f"{_FAIL}Node (conv) Op (Conv) [ShapeInferenceError] Attribute pads has incorrect size",
    _FAIL + _RESHAPE,
    (
        f"{_ARGUMENT}Non-zero status code returned while running Gather node. Name:'' Status"
        " Message: indices element out of data bounds, idx=9"
    ),
    f"{_FAIL}This is an invalid model. Error: the graph is not acyclic.",
    (
        f"{_FAIL}/onnxruntime_src/onnxruntime/core/graph/model.cc:181 onnxruntime::Model::"
        "Model(onnx::ModelProto&&, const onnxruntime::PathString&, const onnxruntime::"
        "IOnnxRuntimeOpSchemaRegistryList*, const onnxruntime::logging::Logger&, const"
        " onnxruntime::ModelOptions&) Unsupported model IR version: 99, max supported IR"
        " version: 11\n"
    ),
    (
        f'{_INVALID}In Node, ("my node", Foo, "", -1) : , Error com.foo:Bar(-1) is not a'
        " registered function/op"
    ),
    f"{_FAIL}Non-zero status code returned while running If node. Name:'outer' Status Message:"
    " Non-zero status code returned while running Add node. Name:'inner' Status Message: axis",
    f"{_FAIL}CUDA failure 719: unspecified launch failure ; GPU=0 ; expr=cudaStreamSync",
    "Failed to allocate memory for requested buffer of size 4398046511104", "bad_alloc",
    "a.cc:1 std::f(int (*)(x), (y)) after (all)", "a::f(int) const rest", "a::f(int",
    "a::f()", "First. a::f(x) rest", "f(x) a::g(y) rest",
    "x" * 300, "x" * 301, "x " * 5_000, "a\x1b[2J  b..\n c. ", "",
]  # fmt: skip


def test_what_is_told_of_a_text(recorded: Recorded, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = iter((False, True))  # two texts are of memory
    monkeypatch.setattr(runtime, "has_memory_limit", lambda: next(limits))
    told = {}
    for number, text in enumerate(TEXTS):
        for kind in (Fail, InvalidProtobuf):
            found = error_from(kind(text), Path("m.onnx"), "load", "1.31.1")
            details = found.details or ""
            assert details.startswith(f"{kind.__name__}: {text.strip()}"[:1000])
            told[f"{number} {kind.__name__}"] = "\n".join([
                text[:300], f"{type(found).__name__} {found.status} {found.where}", found.message,
                f"{found.hint}", f"{len(details) - len(text)} more characters of details",
                *([find_fault(text), named_node(text)] if kind is Fail else []),
            ])  # fmt: skip
    recorded("onnxruntime_errors", told)


def test_hostile_texts_cost_no_time() -> None:
    hostile = 'In Node, ("' + "(" * 20_000 + ", " * 5_000 + "Type '" * 3_000
    assert error_from(Fail(hostile), Path("m.onnx"), "load", "1.31.1").status == 5
