"""Every conversion keeps what a model says of itself: no library that converts it may lose that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from dld_tui.backends.conversion import simplifiers
from tests.support import models
from tests.support.conversions import convert

pytest.importorskip("onnxruntime")
_UNKNOWN = 30_000
"""The number of a field that this version of the format does not have."""
RICH = """
<ir_version: 10, producer_name: "who", producer_version: "1", domain: "org.example",
 model_version: 7, doc_string: "about", metadata_props: ["licence": "none"],
 opset_import: ["" : 18, "com.microsoft" : 1, "here" : 1, "spare" : 3]>
rich (float[N, 4] x, bool choice) => (float[N, 4] y)
<float[N, 4] a, float[N, 4] c>
{
    [mul] a = MatMul(x, w)
    [call] b = here.Twice(a)
    [fast] c = com.microsoft.FastGelu(b)
    [choose] y = If (choice) <
        then_branch = yes () => (float[N, 4] t) { [left] t = Relu(c) },
        else_branch = no () => (float[N, 4] e) { [right] e = Neg(c) }
    >
}
<domain: "here", opset_import: ["" : 18]>
Twice (p) => (q) { [double] q = Add(p, p) }
"""
RECORDS = ("input", "output", "value_info", "initializer")


def rich_model(folder: Path) -> Path:
    """Write the rich model, and a set of inputs for it."""
    model = models.parse(RICH)
    graph = model.graph
    values = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    graph.initializer.append(numpy_helper.from_array(values, "w"))
    model.training_info.add().algorithm.name = "how"
    for place, message in messages(model):
        message.doc_string = f"of {place}"
        if not isinstance(message, onnx.ModelProto):
            message.metadata_props.add(key="about", value=str(place))
        message.MergeFromString(unknown(place))
    annotation = graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="w")
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    path = folder / "rich.onnx"
    path.write_bytes(model.SerializeToString())
    (folder / "sets").mkdir()
    np.save(folder / "sets" / "x.npy", np.ones((2, 4), np.float32))
    np.save(folder / "sets" / "choice.npy", np.array(True))
    return path


def unknown(place: tuple[str, ...]) -> bytes:
    number, text = _UNKNOWN << 3 | 2, "/".join(place).encode()
    key = bytes((number & 127 | 128, number >> 7 & 127 | 128, number >> 14))
    return key + bytes((len(text),)) + text


def messages(model: onnx.ModelProto) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield all that can carry documentation."""
    yield ("model",), model
    yield from graph_messages(("graph",), model.graph)
    for function in model.functions:
        yield ("function", function.name), function
        for node in function.node:
            yield ("function", function.name, node.name), node


def graph_messages(at: tuple[str, ...], graph: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield at, graph
    for kind in RECORDS:
        for record in getattr(graph, kind):
            yield (*at, kind, record.name), record
    for node in graph.node:
        yield (*at, node.name), node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from graph_messages((*at, node.name, attribute.name), attribute.g)


def said(model: onnx.ModelProto, rich: onnx.ModelProto) -> set[str]:
    """Return what is said in the rich model, or in what was made of it, wherever it is said."""
    places = [place for place, _ in messages(rich)]
    found = {f"{info.algorithm.name} it was trained" for info in model.training_info}
    for _, message in messages(model):
        found.add(message.doc_string)
        data = message.SerializeToString()
        found.update(f"unknown of {place}" for place in places if unknown(place) in data)
        found.update(f"{entry.key} {entry.value}" for entry in message.metadata_props)
    for name in ("producer_name", "producer_version", "domain", "model_version"):
        found.add(f"{name} {getattr(model, name)}")
    found.add(f"named {model.graph.name}")
    found.update(f"opset {one.domain}" for one in model.opset_import if one.domain == "spare")
    found.update(f"annotation {one}" for one in model.graph.quantization_annotation)
    for value in model.graph.input:
        found.add(f"{value.name} is {value.type.denotation}")
        for dim in value.type.tensor_type.shape.dim:
            found.add(f"dimension of {value.name} is {dim.denotation}")
    return found


NEVER = {"values": "never"}
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "own float16": ("fp16", NEVER),
    "float16 of ONNX Runtime": ("fp16", NEVER | {"library": "onnxruntime"}),
    "sanitize": ("sanitize", {}),
    "tensors": ("tensors", {}),
    "opset": ("opset", {"to": 20}),
    "external": ("external", {"threshold": 1}),
    "strip": ("strip", {"threshold": 1}),
    "precisions": ("precisions", {"layer_precision": ("mul:fp16",)}),
    "dynamic quantization": ("quantize", {"dynamic": True} | NEVER),
    "static quantization": ("quantize", {"calibration": Path("sets")}),
    "bfloat16": ("bf16", {}),
    "dequantize": ("dequantize", {}),
    "inline": ("inline", {}),
    "shape": ("shape", {"dim": ("N=3",)}),
    "weights in blocks": ("quantize", {"weights_only": True, "block": 16}),
}
REPLACED = {
    f"{kind} ('graph', 'call')" for kind in ("of", "about", "unknown of")
}  # the call of a function becomes the nodes of it
INLINED = ("own float16", "bfloat16", "dynamic quantization", "static quantization")
WITH_PROCESSES = ("sanitize", "static quantization", "weights in blocks")


def converted(folder: Path, which: str, output: str) -> Path:
    """Convert the rich model of a folder; return what was made."""
    name, settings = SETTINGS[which]
    if name == "sanitize" and simplifiers.missing("Polygraphy"):
        pytest.skip("Polygraphy is not installed")
    if "calibration" in settings:
        settings = settings | {"calibration": folder / "sets"}
    out = folder / output / "out.onnx"
    out.parent.mkdir()
    convert(name, folder / "rich.onnx", out, **settings)
    return out


@pytest.mark.parametrize(
    ("which", "again"),
    [
        *(
            (which, which not in WITH_PROCESSES)
            for which in SETTINGS
            if which != "weights in blocks"
        ),
        *(pytest.param(which, True, marks=pytest.mark.exhaustive) for which in WITH_PROCESSES),
    ],
)
def test_all_that_is_said_of_a_model_is_kept_and_the_same_bytes_are_made_again(
    tmp_path: Path, which: str, again: bool
) -> None:
    rich = onnx.load(rich_model(tmp_path))
    first = converted(tmp_path, which, "one")
    lost = said(rich, rich) - said(onnx.load(first), rich)
    assert which == "weights in blocks" or lost == (REPLACED if which in INLINED else set())
    if again:
        second = converted(tmp_path, which, "two")
        made = [{file.name: file.read_bytes() for file in one.parent.iterdir()}
                for one in (first, second)]  # fmt: skip
        assert made[0] == made[1]


def test_what_moves_out_and_is_taken_out_comes_back_with_all(tmp_path: Path) -> None:
    path = rich_model(tmp_path)
    outside, inside, bare, whole = (tmp_path / f"{n}.onnx" for n in ("out", "in", "bare", "whole"))
    convert("external", path, outside, threshold=1)
    convert("inline", outside, inside)
    convert("strip", path, bare, threshold=1)
    convert("restore", bare, whole, weights=path)
    assert onnx.load(inside) == onnx.load(whole) == onnx.load(path)
