"""Models of a few lines that would take all time or memory, or end the process."""

from __future__ import annotations

import ctypes
import resource
import time

import onnx
import pytest
from onnx import parser
from onnx.onnx_cpp2py_export import shape_inference as onnx_native

from dld_tui.backends.onnxruntime.types import contrib_types
from dld_tui.core.checks.findings import NOT_INFERRED, ToolFinding, complaints_of
from dld_tui.core.conversion.copies import inline_calls
from dld_tui.core.model.document.document import Document
from dld_tui.core.model.operators import native
from dld_tui.core.model.shapes import inference
from dld_tui.core.process.child import Limits, RefusedError

pytestmark = pytest.mark.real_forks

HEAD = '<ir_version: 9, opset_import: ["": 17, "f": 1]>\n'
SMALL = Limits(1, 128 << 20)


def doubled(operator: str, count: int) -> str:
    lines = "\n".join(f"[c{i}] c{i} = {operator} (c{i - 1}, c{i - 1})" for i in range(1, count))
    return (
        f"g (float[1] x) => (int64[?] y) <int64[8] c0 = {{1, 1, 1, 1, 1, 1, 1, 1}}>\n"
        f"{{ [r] r = Relu (x)\n{lines}\n[y] y = Identity (c{count - 1}) }}"
    )


def nested(depth: int) -> str:
    functions = "".join(
        f'<domain: "f", opset_import: ["": 17, "f": 1]>\nF{i} (a) => (b)'
        f" {{ t = f.F{i + 1} (a)\nb = f.F{i + 1} (t) }}\n"
        for i in range(depth)
    )
    last = f'<domain: "f", opset_import: ["": 17]>\nF{depth} (a) => (b) {{ b = Relu (a) }}'
    graph = "g (float[1] x) => (float[1] y) { [r] r = Relu (x)\n[y] y = f.F0 (r) }\n"
    return f"{graph}{functions}{last}"


EINSUM = (
    "g (float[3, 3, 3] x, float[3, 3, 3] z) => (float[3, 3, 3] y)"
    ' { [r] r = Relu (x)\n[y] y = Einsum <equation = "......ii,...jj->...ij"> (r, z) }'
)
BOMBS = {
    "an einsum without end": (EINSUM, "y"),
    "numbers that double": (doubled("Concat <axis = 0>", 40), "c"),
    "functions that double": (nested(60), "y"),
}


def predicted(text: str) -> tuple[onnx.ModelProto, list[ToolFinding]]:
    model = parser.parse_model(HEAD + text)
    found = inference.infer(model, extra_types=contrib_types)
    return found.model, complaints_of(found)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inference, native):
        monkeypatch.setattr(module, "limits_for", lambda _size: SMALL)


@pytest.mark.broad
@pytest.mark.parametrize("name", BOMBS)
def test_the_node_is_named_and_the_rest_is_inferred(name: str) -> None:
    text, node = BOMBS[name]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    model, predictions = predicted(text)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    assert peak <= max(before, own + (SMALL.memory >> 10))
    assert time.process_time() - began < 5

    (told,) = (one.remark for one in predictions if one.rule == NOT_INFERRED)
    assert told.place == []
    assert told.index is not None
    assert model.graph.node[told.index].output[0].startswith(node)
    assert "types" in told.message
    types = {info.name: info.type.tensor_type.elem_type for info in model.graph.value_info}
    assert types["r"] == onnx.TensorProto.FLOAT
    assert {item.domain for item in model.opset_import} >= {"", "f"}
    assert "dld.held" not in str(model)


def test_what_ends_the_process_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    real = onnx_native.infer_shapes

    def infer(data: bytes, *options: bool) -> bytes:
        if b"EyeLike" in data and b"dld.held" not in data:
            ctypes.string_at(0)
        inferred: bytes = real(data, *options)
        return inferred

    monkeypatch.setattr(onnx_native, "infer_shapes", infer)
    _, predictions = predicted(
        "g (float[2, 2] x) => (float[2, 2] y)"
        " { [r] r = Relu (x)\n[e] e = EyeLike (r)\n[y] y = Relu (e) }"
    )
    (told,) = (one.remark for one in predictions if one.rule == NOT_INFERRED)
    assert told.index == 1
    assert "it ends the process (SIGSEGV)" in told.message


def test_nothing_is_inlined_that_has_no_end() -> None:
    model = parser.parse_model(HEAD + nested(60))
    with pytest.raises(RefusedError, match="function F0 stand for"):
        native.inline_local_functions(model)
    counts = native.expansion(model)
    assert counts["f", "F0", ""] == 2**60
    few = native.inline_local_functions(parser.parse_model(HEAD + nested(3)))
    assert len(few.graph.node) == 1 + 2**3


def test_conversions_are_told_of_the_node_and_inline_nothing() -> None:
    document = Document(parser.parse_model(HEAD + nested(60)))
    assert inference.left_out(document) == (
        "y: F0: its types are not inferred: it stands for 1.15e+18 nodes"
    )
    assert inline_calls(document) == 0
    assert len(document.main.nodes) == 2
    few = Document(parser.parse_model(HEAD + nested(3)))
    assert inference.left_out(few) == ""
    assert inline_calls(few) > 0
