"""All that a comparison says of two models, and each of them as text: both are recorded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dld_tui.core.compare.diff import ModelDiff, diff_documents
from dld_tui.core.compare.diff.model_diff import node_pairs
from dld_tui.core.compare.diff.text import lines, model_lines
from dld_tui.core.model.document import Document
from tests.support import models
from tests.support.diff_models import copy_of, with_other_names
from tests.support.recorded import Recorded, settled

Models = tuple[onnx.ModelProto, onnx.ModelProto]
HEAD = '<ir_version: 10, opset_import: ["" : 18, "d" : 1]>\ng (float[2] x) => (float[2] y) '
info = helper.make_tensor_value_info


def said(found: ModelDiff, folder: Path) -> str:
    """Return the lines of a comparison with their styles, its data, and which nodes are pairs."""
    told = ["".join(f"{text}«{style}»" for text, style in line) for line in lines(found)]
    document: Any = found.to_json()
    for change in document.pop("changes"):
        told.append("  " + json.dumps([*change.values()], ensure_ascii=False))
    told.append(json.dumps(document, ensure_ascii=False))
    for scope in found.scopes:
        told.append(f"{[*scope.old_path]} {[*scope.new_path]} {scope.partners}")
    changes = [change for _, change in found.all_changes()]
    nodes = [(change.old_node, change.new_node) for change in changes if change.kind == "node"]
    told.append(str([tuple(node and node.ref for node in pair) for pair in nodes]))
    told.append(str([(old.ref, new.ref) for old, new in node_pairs(found)]))
    return settled("\n".join(told), folder)


def changed(text: str, *replaced: tuple[str, str]) -> Models:
    other = text
    for before, after in replaced:
        assert before in other
        other = other.replace(before, after)
    return models.parse(text), models.parse(other)


def sparse(name: str, values: Sequence[float], indices: list[int], size: int) -> Any:
    return helper.make_sparse_tensor(
        numpy_helper.from_array(np.asarray(values, np.float32), name),
        numpy_helper.from_array(np.asarray(indices, np.int64), "places"),
        [size],
    )


def stored(values: object, name: str, dtype: Any = np.float32) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(values, dtype), name)


def outside(name: str, location: str) -> onnx.TensorProto:
    tensor = TensorProto(name=name, data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def graphs() -> Iterator[tuple[str, Models]]:
    """Yield models whose nodes, inputs, outputs and scopes differ: first those of a file."""
    text = Path(__file__).with_name("diff_models.txt").read_text("utf-8")
    for case in re.split("(?m)^== ", text)[1:]:
        title, _, written = case.partition("\n")
        before, after = written.split("-- becomes\n")
        yield title, (models.parse(before), models.parse(after))
    yield "texts", texts()
    yield "functions", functions()
    yield "declared types", types()
    yield "many names", (old := models.parse(models.layered(3)), with_other_names(old))
    edited = with_other_names(models.parse(models.layered(2)))
    edited.graph.node[-1].doc_string = "why"
    edited.graph.node[3].op_type = "Sub"
    yield "many names, and more", (models.parse(models.layered(2)), edited)
    yield "broken graphs", broken()
    hostile = models.parse(models.CHAIN)
    hostile.graph.node[0].name = "/blk[0]/Conv [/w]\x1b]0;x\x07"
    hostile.graph.node[1].doc_string = "a\nb\x1b[2J"
    hostile.graph.input[0].name = hostile.graph.node[0].input[0] = "\x1bx"
    hostile.producer_name = "\x1b[31m"
    yield "hostile names", (models.parse(models.CHAIN), hostile)


def texts() -> Models:
    """Return models with other versions, texts, metadata and training."""
    old, new = models.parse(models.CHAIN), models.parse(models.CHAIN)
    old.producer_version, old.domain, old.doc_string = "1", "here", "what it does"
    new.ir_version, new.producer_name, new.producer_version, new.model_version = 9, "he", "2", 3
    new.opset_import[0].version = 19
    new.opset_import.add(domain="com.microsoft", version=1)
    old.opset_import.add(domain="z", version=7)
    for model, metadata in ((old, {"a": "1", "b": "2"}), (new, {"b": "3", "c": "4", "a": "1"})):
        messages: list[Any] = [
            model, model.graph, model.graph.node[1], model.graph.initializer[0],
            model.graph.input[0],
        ]  # fmt: skip
        for message in messages:
            helper.set_model_props(message, metadata)
    old.graph.doc_string, new.graph.name = "graph", "other"
    old.graph.node[0].doc_string, new.graph.node[1].doc_string = "why", "how"
    new.graph.output[0].doc_string, new.graph.initializer[1].doc_string = "result", "not used"
    new.graph.input[0].type.denotation = "IMAGE"
    old.graph.output[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    for graph, scales in ((old.graph, "a b"), (new.graph, "b c")):
        for name in scales.split():
            entry = graph.quantization_annotation.add(tensor_name=name)
            for key in ("ZERO_POINT_TENSOR", "SCALE_TENSOR"):
                entry.quant_parameter_tensor_names.add(key=key, value=f"{key[0]}_{scales[0]}")
    training = new.training_info.add()
    training.algorithm.node.add(op_type="Neg")
    training.update_binding.add(key="a", value="b")
    return old, new


def functions() -> Models:
    """Return models whose local functions differ, and are there on one side only."""
    old, new = changed(
        models.FUNCTIONS + '<domain: "local", opset_import: ["" : 18]>\n'
        "gone (v) => (r) { [one] a = Neg(v)\n r = If (a) <then_branch = b () => (c) "
        "{ c = Abs(v) }, else_branch = e () => (f) { f = Exp(v) }> }",
        ("[sum] r = Add(v, v)", "[sum] r = Mul(v, v)"), ("gone", "new"), ("Abs(v)", "Sin(v)"),
        ("c = Sin(v)", "d = Exp(v)\nc = Sin(d)"),
    )  # fmt: skip
    for model, scale, kept in ((old, 0.5, [1, 2]), (new, 0.25, [1, 2])):
        function = model.functions[0]
        function.attribute_proto.append(helper.make_attribute("scale", scale))
        function.attribute_proto.append(helper.make_attribute("kept", kept))
        function.attribute.append("must")
    old.functions[0].attribute_proto.append(helper.make_attribute("first", "a"))
    new.functions[0].attribute_proto.append(helper.make_attribute("last", "b"))
    new.functions[0].attribute.append("more")
    new.functions[0].opset_import[0].version = 19
    old.functions[0].opset_import.add(domain="z", version=1)
    new.functions[0].doc_string = "twice"
    old.functions[0].metadata_props.add(key="a", value="b")
    return old, new


def types() -> Models:
    """Return models that declare other types: few in the graph, many in the subgraph."""
    old, new = models.parse(models.BRANCHES), models.parse(models.BRANCHES)
    then = [model.graph.node[1].attribute[0].g for model in (old, new)]
    for graph in then:
        for number in range(20):
            graph.node.add(op_type="Neg", input=["a"], output=[f"v{number}"], name=f"n{number}")
    then[0].value_info.extend(info(f"v{number}", 1, [number]) for number in range(8))
    then[1].value_info.extend(info(f"v{number}", 1, [number]) for number in range(8, 17))
    then[0].value_info.append(info("h", 1, ["N", 4]))
    then[1].value_info.append(info("h", 1, ["N", 5]))
    old.graph.value_info.append(info("a", 1, ["N", 4]))
    new.graph.value_info.append(info("unknown", 1, None))
    return old, new


def broken() -> Models:
    """Return models with a cycle, values without and with two makers, and nodes without outputs."""
    old, new = changed(
        models.CHAIN.replace("a = Relu(x)", "a = Add(x, c)").replace("unused =", "w ="),
        ("[second] b = Add(a, w)", "[third] b = Add(a, x)"), ("Sigmoid(c)", "Sigmoid(ghost)"),
    )  # fmt: skip
    for model in (old, new):
        model.graph.node.add(op_type="Neg", input=["ghost"], output=["b"])
        model.graph.node.add(op_type="Sink", input=[""])
        model.graph.node.add(op_type="Sink", input=[""], output=["", ""])
    new.graph.node[-1].output[1] = "late"
    new.graph.node.add(op_type="Neg", input=["w"], output=["y"], name="last")
    return old, new


def attributes() -> Iterator[tuple[str, Models]]:
    """Yield models of one node whose attributes differ."""
    nan, wide = float("nan"), [*range(5000)]
    numbers = np.arange(5000, dtype=np.float32)
    other = np.where(numbers == 7, 8, numbers)
    body = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "body", [], [])
    parts = [helper.make_tensor("t", TensorProto.INT64, [1], [value]) for value in (1, 2, 3)]
    kinds = [helper.make_tensor_type_proto(TensorProto.FLOAT, [size]) for size in (1, 2)]
    empty = TensorProto(name="t", data_type=1, dims=[2])
    cases: dict[str, list[object]] = {
        "added": [None, 1], "int": [1, 2], "same": [[1, 2], [1, 2]], "float": [0.5, 0.25],
        "zero": [0.0, -0.0], "nan": [nan, nan], "nans": [[nan, 1.0], [nan, 1.0]],
        "a nan": [[nan, 1.0], [2.0, 1.0]], "a number": [[2.0], [nan]],
        "new tensor": [None, stored([1], "t")],
        "nans and less": [[nan, 1.0], [nan]], "kind": [1, 1.0], "string": ["a", "b"],
        "ints": [[1, 2], [1, 3]], "strings": [["a"], ["a", "b"]], "long": [wide, [*wide[:-1], -1]],
        "longer": [wide, wide[:4990]], "text": ["a" * 9000, "a" * 8999 + "b"],
        "tensor": [stored(numbers, "t"), stored(other, "t")],
        "dtype": [stored(range(16), "t"), stored(range(16), "t", np.int64)],
        "shape": [stored(range(16), "t"), stored(range(17), "t")],
        "small": [stored([[1, 2]], "t"), stored([[1, 2.5]], "t")],
        "no data": [empty, stored([1, 2], "t")], "neither": [empty, empty],
        "unreadable": [outside("t", "none"), outside("t", "none")],
        "short": [TensorProto(data_type=1, dims=[2], raw_data=b"1"), stored([1, 2], "t")],
        "tensors": [parts[:2], parts[::2]], "fewer": [parts, parts[:2]],
        "sparse": [sparse("s", [1, 2], [0, 2], 4), sparse("s", [1, 3], [0, 3], 5)],
        "wide": [sparse("s", floats, wide[:3000], 4000) for floats in (wide[:3000], wide[1:3001])],
        "type": [*kinds], "graph": [None, body], "graphs": [[body, body], [body]],
        "both": [body, body], "same graphs": [[body, body], [body, body]], "body": [1, body],
    }  # fmt: skip
    made = []
    for at in (0, 1):
        node = helper.make_node("Any", ["x"], ["y"], "n", domain="d")
        for name, values in cases.items():
            if values[at] is not None:
                node.attribute.append(helper.make_attribute(name, values[at]))
        node.attribute.append(helper.make_attribute("doc", 1, ("", "why")[at]))
        node.attribute.add(name="reference", type=2, ref_attr_name=("one", "two")[at])
        made.append(models.parse(HEAD + "{ y = Any(x) }"))
        made[at].graph.node[0].CopyFrom(node)
    yield "attributes", (made[0], made[1])
    yield "attributes the other way round", (made[1], made[0])
    yield "nodes of other attributes", told_by_attributes()


def told_by_attributes() -> Models:
    """Return models whose nodes only their attributes tell apart, in two orders."""
    numbers = np.arange(6000, dtype=np.float32)
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "b", [], [])
    other = helper.make_graph([helper.make_node("Abs", ["x"], ["b"])], "b", [], [])
    kinds: list[dict[str, Any]] = [
        {"value": stored(numbers, "t")}, {"value": stored(numbers[:5000], "t")},
        {"text": "a" * 9000}, {"text": "a" * 9500}, {"body": graph}, {"body": other},
        {"many": [stored(numbers, "t")]}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, {"a": 1},
    ]  # fmt: skip
    nodes = [
        helper.make_node("Any", ["x"], [f"o{at}"], domain="d", **attributes)
        for at, attributes in enumerate(kinds)
    ]
    made = [models.parse(HEAD + "{ y = Neg(x) }") for _ in range(2)]
    made[0].graph.node.extend(nodes)
    for node in nodes[::-1]:
        attributes = [*node.attribute][::-1]
        del node.attribute[:]
        node.attribute.extend(attributes)
        node.output[0] = f"new_{node.output[0]}"
        made[1].graph.node.append(node)
    return made[0], made[1]


def initializers() -> Iterator[tuple[str, Models]]:
    """Yield models whose initializers differ, and the nodes that take them."""
    numbers = np.arange(5000, dtype=np.float32)
    quantized = np.arange(12, dtype=np.int8)
    texts = [helper.make_tensor("t", TensorProto.STRING, [2], [*values]) for values in ("ab", "ac")]
    documented = stored([9, 8], "documented")
    documented.doc_string = "why"
    old = [
        stored([1, 2, 3, 4], "values"), stored([1, 2], "shape"), stored([1, 2], "dtype"),
        stored([5, 6], "renamed"), stored([9, 8], "documented"), stored(numbers, "large"),
        stored(numbers + 1, "large_renamed"), stored([7, 7, 7], "twin"), stored([7, 7, 7], "twin2"),
        stored([4, 4], "removed"), texts[0], outside("missing", "none"), stored([1], "bits"),
        TensorProto(name="no_data", data_type=1, dims=[2]), stored([1, np.nan], "finite"),
        stored([3, 1], "dense"), stored([1 + 2j, 3, 4], "complex", np.complex128),
    ]  # fmt: skip
    new = [
        stored([1, 2, 3.5, 4], "values"), stored([[1, 2]], "shape"),
        stored([1, 2], "dtype", np.int32),
        stored([5, 6], "named"), documented, stored(numbers[::-1].copy(), "large"),
        stored(numbers + 1, "large_named"), stored([7, 7, 7], "same"), stored([7, 7, 7], "same2"),
        stored([[4, 4]], "added"), texts[1], outside("missing", "none"), stored([np.inf], "bits"),
        stored([0, 0], "no_data"), stored([1, np.nan], "finite"),
        stored([1 + 2j, 5, 4j], "complex", np.complex128),
    ]  # fmt: skip
    made = []
    for tensors, names in (
        (old, ("renamed", "large_renamed", "twin", "twin2", "removed")),
        (new, ("named", "large_named", "same", "same2", "added")),
    ):
        model = models.parse(HEAD + "{ y = Neg(x) }")
        del model.graph.node[:]
        model.graph.initializer.extend(tensors)
        for at, name in enumerate(names):
            operator = ("Neg", "Abs", "Sin", "Cos", "Exp")[at]
            model.graph.node.add(op_type=operator, input=[name], output=[f"o{at}"], name=f"n{at}")
        made.append(model)
    made[1].graph.sparse_initializer.append(sparse("dense", [3, 1], [0, 1], 2))
    for model, value in zip(made, (1, 2), strict=True):
        model.graph.sparse_initializer.append(sparse("sparse", [1, value], [0, value], 3 + value))
        model.graph.sparse_initializer.append(
            sparse("sparse2", [1, 2, 3][:value], [1, 2, 3][:value], 4)
        )
    made[0].graph.sparse_initializer.append(sparse("sparse3", [1], [1], 4))
    yield "initializers", (made[0], made[1])
    yield "initializers the other way round", (made[1], made[0])
    text = (
        HEAD
        + """<float[4, 3] w = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11.5}, float[3] s = {1, 2, 3},
        float[3, 3] u = {1, 2, 3, 4, 5, 6, 7, 8, 10}, float one = {2}> {
        p = MatMul(w, u)\n m = MatMul(x, w)\n k = MatMul(m, u)\n y = Add(k, s) }"""
    )
    few = models.parse(
        text.replace("MatMul(x, w)", "MatMul(x, f)")
        .replace("MatMul(m, u)", "MatMul(m, h)")
        .replace(
            "p = MatMul(w, u)",
            "f = DequantizeLinear(q, s)\n h = DequantizeLinear(r, one)\n e = Neg(f)\n"
            "p = MatMul(f, h)",
        )
    )
    few.graph.initializer.append(stored(quantized.reshape(4, 3) % 5, "q", np.int8))
    few.graph.initializer.append(stored([[1, 1, 1], [2, 2, 3], [4, 4, 5]], "r", np.int8))
    yield "weights in few bits", (models.parse(text), few)
    other = copy_of(few)
    other.graph.initializer[-1].CopyFrom(stored([[1, 1, 1], [2, 2, 3], [4, 4, 6]], "r", np.int8))
    yield "weights in few bits on both sides", (few, other)
    yield "many weights in few bits", many_weights()


def many_weights() -> Models:
    """Return 22 products in a row, of which one has no error and one cannot be read."""
    made = []
    for is_few in (False, True):
        model = models.parse(HEAD + "{ y = Neg(x) }")
        graph = model.graph
        graph.initializer.append(stored([0.5], "s"))
        for at in range(22):
            weight = np.arange(4, dtype=np.float32).reshape(2, 2) * 0.5 + at / 50
            if is_few:
                levels = np.round(weight / 0.5).astype(np.int8)
                graph.initializer.append(stored(levels, f"q{at}", np.int8))
                graph.node.add(op_type="DequantizeLinear", input=[f"q{at}", "s"], output=[f"w{at}"])
            else:
                graph.initializer.append(stored(weight, f"w{at}"))
            graph.node.add(op_type="MatMul", input=[f"m{at - 1}", f"w{at}"], output=[f"m{at}"])
        made.append(model)
    lost = next(one for one in made[0].graph.initializer if one.name == "w7")
    lost.CopyFrom(outside("w7", "none"))
    lost.dims[:] = [2, 2]
    return made[0], made[1]


def opened(folder: Path, name: str, model: onnx.ModelProto) -> Document:
    path = folder / f"{name}.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


def test_all_that_differs(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    for title, (old, new) in (*graphs(), *attributes(), *initializers()):
        documents = opened(tmp_path, "old", old), opened(tmp_path, "new", new)
        told[title] = said(diff_documents(*documents), tmp_path)
        if title == "initializers":
            without = diff_documents(*documents, weights=False)
            told[f"{title} without their values"] = said(without, tmp_path)
    recorded("whole_diffs", told)


def test_models_as_text(tmp_path: Path, recorded: Recorded) -> None:
    told = {}
    for title, (old, new) in (*graphs(), *attributes(), *initializers()):
        if "way round" not in title:
            for which, model in (("old", old), ("new", new)):
                text = "\n".join(model_lines(opened(tmp_path, which, model)))
                told[f"{title}: {which}"] = settled(text, tmp_path)
    recorded("whole_lines", told)
