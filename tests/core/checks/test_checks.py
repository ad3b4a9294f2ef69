"""Each rule finds what it is about, names the place, and is silent on good models."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import onnx
import onnx.helper as oh
import pytest

from dld_tui.core.checks import check
from dld_tui.core.model.document import Document
from tests.support import models


def opened(folder: Path, model: onnx.ModelProto) -> Document:
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


def changed(change: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    model = models.parse(models.CHAIN)
    del model.graph.initializer[1]
    change(model)
    return model


def swap(model: onnx.ModelProto) -> None:
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([nodes[1], nodes[0], *nodes[2:]])


def loop(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "b"


def huge(model: onnx.ModelProto) -> None:
    for dim in model.graph.input[0].type.tensor_type.shape.dim:
        dim.dim_value = 2**62


def weightless(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].ClearField("float_data")
    model.graph.initializer[0].ClearField("raw_data")


def external(model: onnx.ModelProto, **entries: str) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)


CASES: list[tuple[str, str, Callable[[onnx.ModelProto], object]]] = [
    ("graph-cycle", "Graph has a cycle: first -> second -> first", loop),
    ("unsorted-nodes", "not topologically sorted: second comes before", swap),
    ("undefined-input", "Inputs ghost, phantom have no producer",
     lambda m: m.graph.node.append(oh.make_node("Add", ["ghost", "phantom"], ["dead"], "n"))),
    ("unused-node", "not on the way to any output",
     lambda m: m.graph.node.append(oh.make_node("Abs", ["x"], ["dead"], "n"))),
    ("missing-output", "Graph output nowhere is never produced",
     lambda m: m.graph.output.append(oh.make_tensor_value_info("nowhere", 1, [1]))),
    ("duplicate-producer", "Value a is produced 2 times",
     lambda m: m.graph.node.append(oh.make_node("Abs", ["x"], ["a"], "n"))),
    ("duplicate-initializer", "Initializer u is defined twice and never used",
     lambda m: m.graph.initializer.extend([oh.make_tensor("u", 1, [1], [1.0])] * 2)),
    ("unused-initializer", "Initializer u is never used",
     lambda m: m.graph.initializer.append(oh.make_tensor("u", 1, [1], [1.0]))),
    ("unknown-operator", "Unknown operator Reluu",
     lambda m: setattr(m.graph.node[0], "op_type", "Reluu")),
    ("unknown-operator", "Operator Gelu does not exist in opset 18",
     lambda m: setattr(m.graph.node[0], "op_type", "Gelu")),
    ("arity", "Relu has 2 inputs, it takes 1", lambda m: m.graph.node[0].input.append("x")),
    ("opset-import", "Operator set strange is not imported",
     lambda m: setattr(m.graph.node[0], "domain", "strange")),
    ("opset-missing", "No opset_import", lambda m: m.ClearField("opset_import")),
    ("opset-future", "Opset 9999 is newer",
     lambda m: setattr(m.opset_import[0], "version", 9999)),
    ("ir-missing", "ir_version missing", lambda m: m.ClearField("ir_version")),
    ("ir-unsupported", "IR version 99 unsupported", lambda m: setattr(m, "ir_version", 99)),
    ("shape", "Value x: element count overflows (about 2^12", huge),
    ("negative-dimension", "Value x has a negative dimension",
     lambda m: setattr(m.graph.input[0].type.tensor_type.shape.dim[1], "dim_value", -1)),
    ("tensor-data", "Tensor w: negative dimension",
     lambda m: m.graph.initializer[0].dims.__setitem__(0, -4)),
    ("tensor-without-data", "has no data (weightless model?)",
     weightless),
    ("external-data", "External data gone.bin not found",
     lambda m: external(m, location="gone.bin")),
    ("external-data", "leaves the model folder",
     lambda m: external(m, location="../../etc/passwd")),
    ("external-keys", "unknown external_data key __class__ is ignored",
     lambda m: external(m, location="gone.bin", __class__="x")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "message", "change"), CASES)
def test_rule(
    tmp_path: Path, rule: str, message: str, change: Callable[[onnx.ModelProto], object]
) -> None:
    found = [f for f in check(opened(tmp_path, changed(change))) if f.rule == rule]
    assert found, f"{rule} did not fire"
    assert any(message in finding.message for finding in found)


@pytest.mark.parametrize("text", [models.PLAIN_BRANCHES, models.FUNCTIONS])
def test_good_models_have_no_findings(tmp_path: Path, text: str) -> None:
    findings = check(opened(tmp_path, models.parse(text)))
    assert [f.rule for f in findings if f.rule != "unused-input"] == []


def test_captured_values_count_as_uses_and_order(tmp_path: Path) -> None:
    model = models.parse(models.PLAIN_BRANCHES)
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(nodes))
    rules = {finding.rule for finding in check(opened(tmp_path, model))}
    assert rules - {"unused-input"} == {"unsorted-nodes"}, "the If uses a through its branches"


def test_recursive_functions_end_and_are_named(tmp_path: Path) -> None:
    model = models.parse(models.FUNCTIONS)
    model.functions[0].opset_import.add(domain="local", version=1)
    model.functions[0].node.append(oh.make_node("twice", ["v"], ["w"], "again", domain="local"))
    found = [f for f in check(opened(tmp_path, model)) if f.rule == "recursive-function"]
    assert [f.message for f in found] == ["Function local::twice calls itself"]


def test_findings_come_errors_first_and_as_json(tmp_path: Path) -> None:
    def both(model: onnx.ModelProto) -> None:
        model.graph.node.append(oh.make_node("Reluu", ["x"], ["dead"], "n"))

    findings = check(opened(tmp_path, changed(both)))
    assert [f.level for f in findings] == ["error", "warning"]
    assert findings[0].to_json() == {
        "level": "error",
        "rule": "unknown-operator",
        "message": "Unknown operator Reluu",
        "scope": [],
        "node": "n",
        "value": None,
        "rewrite": None,
        "fix": None,
    }


def test_a_constant_of_an_old_opset_may_hold_any_type() -> None:
    text = """
<ir_version: 3, opset_import: ["" : 7]>
old (float[2, 3] x) => (float[6] y)
{
    shape = Constant <value = int64[1] {6}> ()
    y = Reshape(x, shape)
}
"""
    with closing(Document(models.parse(text))) as document:
        assert [one for one in check(document) if one.level == "error"] == []


def test_each_of_equal_calls_is_looked_at() -> None:
    text = """
<ir_version: 8, opset_import: ["" : 17]>
equal (float[4] x, bool train) => (float[4] y) {
  [first] a, mask = Dropout (x, , train)
  [second] b, kept = Dropout (a, , train)
  [third] c = Relu (b)
  [fourth] d = Relu (ghost)
  [fifth] e = Cast <to = 1> (c)
  [sixth] f = Cast <to = 6> (e)
  [seventh] g = Cast <to = 1> (f)
  [eighth] y = Max (d, g)
  [ninth] unmade = Add (x, x)
  [tenth] unused = Add (x, x)
  [eleventh] short = Clip (x, , y)
  [twelfth] shorter = Clip (x, y, )
}
"""
    model = models.parse(text)
    model.graph.node[1].name = "odd\u200bname"
    model.graph.value_info.append(oh.make_tensor_value_info("g", onnx.TensorProto.INT64, [4]))
    with closing(Document(model)) as document:
        found = {(one.rule, one.node.outputs[0]) for one in check(document) if one.node}
    assert found == {
        ("unused-output", "a"),
        ("unused-output", "b"),
        ("odd-name", "b"),
        ("undefined-input", "d"),
        ("type-conflict", "g"),
        ("type-conflict", "y"),
        *(("unused-node", name) for name in ("unmade", "unused", "short", "shorter")),
    }
