"""Every rule fires where it should, is documented, and its repair makes it silent."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import onnx
import onnx.helper as oh
import onnxruntime
import pytest

from dld_tui.core.checks import RULES, Finding, check, tensor_rules
from dld_tui.core.checks import rules as model
from dld_tui.core.checks.findings import (
    INFERENCE,
    KERNEL,
    NOT_INFERRED,
    OPERANDS,
    RuntimeAnswer,
    repair_steps,
    settled,
)
from dld_tui.core.errors import DldError, InputError
from dld_tui.core.files import proto_fields
from dld_tui.core.model.document import Document, scope
from dld_tui.core.model.document.transactions import Transaction
from dld_tui.core.model.edits.nodes import remove_records
from dld_tui.core.model.edits.repairs import repair_of
from dld_tui.core.model.operators import native
from dld_tui.core.model.operators.native import infer_shapes
from dld_tui.core.model.shapes.inference import infer_types, store_types
from dld_tui.core.process.child import RefusedError
from tests.support import models
from tests.support.sessions import bytes_of

Change = Callable[[onnx.ModelProto], object]


def opened(folder: Path, model: onnx.ModelProto) -> Document:
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return Document.open(path)


def node(model: onnx.ModelProto, *arguments: object, **attributes: object) -> None:
    op_type, inputs, outputs, name = arguments
    made = oh.make_node(op_type, inputs, outputs, name, **attributes)  # type: ignore[arg-type]
    model.graph.node.append(made)


def info(name: str, dtype: int = 1, dims: list[object] | None = None) -> onnx.ValueInfoProto:
    return oh.make_tensor_value_info(name, dtype, dims)  # type: ignore[arg-type]


def branch(model: onnx.ModelProto, place: int = 0) -> onnx.GraphProto:
    return model.graph.node[1].attribute[place].g


def each(*changes: Change) -> Change:
    """Return one change that makes several."""

    def run(model: onnx.ModelProto) -> None:
        for change in changes:
            change(model)

    return run


def import_twice(model: onnx.ModelProto) -> None:
    model.opset_import.add(domain="", version=17)


def old_ir(model: onnx.ModelProto) -> None:
    model.ir_version = 3


def function(model: onnx.ModelProto, name: str, op_type: str = "Relu", domain: str = "") -> None:
    model.functions.append(
        oh.make_function(
            "local", name, ["v"], ["r"], [oh.make_node(op_type, ["v"], ["r"], domain=domain)],
            [oh.make_opsetid("", 18), oh.make_opsetid("local", 1)],
        )
    )  # fmt: skip


def reference(model: onnx.ModelProto) -> None:
    node(model, "LeakyRelu", ["x"], ["k"], "n")
    model.graph.node[-1].attribute.add(name="alpha", type=1, ref_attr_name="q")


def no_value(model: onnx.ModelProto) -> None:
    node(model, "Foo", ["x"], ["k"], "n", domain="other")
    model.opset_import.add(domain="other", version=1)
    model.graph.node[-1].attribute.add(name="nothing")


def swap(model: onnx.ModelProto) -> None:
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([nodes[1], nodes[0], *nodes[2:]])


def loop(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "b"


def ring(count: int) -> Change:
    """Return a change that adds nodes of which each takes what the one before it makes."""

    def change(model: onnx.ModelProto) -> None:
        for at in range(count):
            node(model, "Abs", [f"v{(at - 1) % count}"], [f"v{at}"], f"n{at}")

    return change


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


CHAIN_CASES: list[tuple[str, str, Change]] = [
    ("graph-cycle", "Graph has a cycle: first -> second -> first", loop),
    ("graph-cycle", f"cycle: {' -> '.join(f'n{at % 7}' for at in range(8))}", ring(7)),
    ("graph-cycle", f"cycle: {' -> '.join(f'n{at}' for at in range(8))} -> … (8 nodes)", ring(8)),
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
    ("opset-import", "Operator set com.microsoft is not imported",
     lambda m: node(m, "FastGelu", ["x"], ["k"], "n", domain="com.microsoft")),
    ("duplicate-opset", "Operator set ai.onnx is imported 2 times", import_twice),
    ("unused-opset", "Operator set ai.onnx.ml is imported and never used",
     lambda m: m.opset_import.add(domain="ai.onnx.ml", version=3)),
    ("unknown-domain", "1 node of the operator set other is not checked", no_value),
    ("attribute-type", "Attribute nothing has no type and no value", no_value),
    ("initializer-not-input", "2 initializers not among the graph inputs", old_ir),
    ("initializer-is-input", "1 initializer among the graph inputs: runtimes fold and fuse nothing",
     lambda m: m.graph.input.append(info("w", 1, [4]))),
    ("graph-name", "The graph has no name", lambda m: m.graph.ClearField("name")),
    ("duplicate-function", "Function local::twice is defined more than once",
     each(lambda m: function(m, "twice"), lambda m: function(m, "twice"))),
    ("unused-function", "Function local::twice is never called", lambda m: function(m, "twice")),
    ("recursive-function", "Function local::twice calls itself",
     lambda m: function(m, "twice", "twice", "local")),
    ("unused-output", "Output mask of Dropout is optional and never used",
     lambda m: node(m, "Dropout", ["x"], ["k", "mask"], "n")),
    ("unused-input", "Input spare is never used", lambda m: m.graph.input.append(info("spare"))),
    ("duplicate-producer", "Value w is an initializer and also the output of a node",
     lambda m: node(m, "Relu", ["x"], ["w"], "n")),
    ("duplicate-node-name", "2 nodes are called first",
     lambda m: node(m, "Relu", ["x"], ["k"], "first")),
    ("duplicate-input", "2 inputs are called x", lambda m: m.graph.input.append(info("x"))),
    ("duplicate-output", "2 outputs are called y", lambda m: m.graph.output.append(info("y"))),
    ("empty-name", "A record of initializer has no name",
     lambda m: m.graph.initializer.append(oh.make_tensor("", 1, [1], [1.0]))),
    ("odd-name", r"Node name a\x1b[31m has control",
     lambda m: node(m, "Relu", ["x"], ["k"], "a\x1b[31m")),
    ("deprecated-operator", "Operator Upsample is deprecated in opset 18",
     lambda m: node(m, "Upsample", ["x", "w"], ["k"], "n")),
    ("missing-input", "Add needs its input 0, which is left out",
     lambda m: node(m, "Add", ["", "x"], ["k"], "n")),
    ("nameless-output", "Output 0 of TopK is required, but has no name",
     lambda m: node(m, "TopK", ["x", "w"], ["", "k"], "n")),
    ("arity", "Relu has 2 inputs, it takes 1", lambda m: node(m, "Relu", ["x", ""], ["k"], "n")),
    ("attribute-value", "Attribute mode is 'FOO', it takes DCR, CRD",
     lambda m: node(m, "DepthToSpace", ["x"], ["k"], "n", blocksize=2, mode="FOO")),
    ("unknown-attribute", "Relu has no attribute foo",
     lambda m: node(m, "Relu", ["x"], ["k"], "n", foo=1)),
    ("attribute-type", "Attribute alpha is int, it takes float",
     lambda m: node(m, "LeakyRelu", ["x"], ["k"], "n", alpha=1)),
    ("missing-attribute", "Cast needs the attribute to",
     lambda m: node(m, "Cast", ["x"], ["k"], "n")),
    ("duplicate-attribute", "Attribute alpha is set more than once",
     each(lambda m: node(m, "LeakyRelu", ["x"], ["k"], "n", alpha=1.0),
          lambda m: m.graph.node[-1].attribute.append(oh.make_attribute("alpha", 2.0)))),
    ("attribute-reference", "refers to the parameter q outside a function", reference),
    ("input-type", "Input 0 (flag) is bool, it takes",
     each(lambda m: m.graph.input.append(info("flag", 9)),
          lambda m: node(m, "Relu", ["flag"], ["k"], "n"))),
    ("output-type", "Output 0 (k) is float32, it takes int64",
     each(lambda m: node(m, "Shape", ["x"], ["k"], "n"),
          lambda m: m.graph.output.append(info("k")))),
    ("type-conflict", "Input 1 (i) is int64, but Input 0 (x) is float32",
     each(lambda m: m.graph.input.append(info("i", 7)),
          lambda m: node(m, "Add", ["x", "i"], ["k"], "n"))),
    ("type-conflict", "Cast outputs int64, but its output k is declared float32",
     each(lambda m: node(m, "Cast", ["x"], ["k"], "n", to=7),
          lambda m: m.graph.output.append(info("k")))),
    ("type-conflict", "Value w is int64 in value_info and float32 in the initializer",
     lambda m: m.graph.value_info.append(info("w", 7, [4]))),
    ("shape-conflict", "Value w is [5] in value_info and [4] in the initializer",
     lambda m: m.graph.value_info.append(info("w", 1, [5]))),
    ("missing-type", "The graph input bare has no type",
     lambda m: m.graph.input.append(onnx.ValueInfoProto(name="bare"))),
    ("missing-type", "The graph output x has no type, which onnx's checker refuses",
     lambda m: m.graph.output.append(onnx.ValueInfoProto(name="x"))),
    ("missing-type", "The graph input bare has no shape, which onnx's checker refuses",
     lambda m: m.graph.input.append(info("bare", 1, None))),
    ("unused-value-info", "value_info describes ghost, which is not in the graph",
     lambda m: m.graph.value_info.append(info("ghost"))),
    ("duplicate-initializer", "Initializer w is defined twice",
     lambda m: m.graph.initializer.append(m.graph.initializer[0])),
]  # fmt: skip

BRANCH_CASES: list[tuple[str, str, Change]] = [
    ("subgraph-signature", "Subgraph then_branch has 1 output, the node needs 2",
     lambda m: m.graph.node[1].output.append("more")),
    ("subgraph-signature", "Subgraph then_branch has 1 input, the node needs 0",
     lambda m: branch(m).input.append(info("k"))),
    ("outer-output", "Output a is a value of an outer scope",
     lambda m: setattr(branch(m).output[0], "name", "a")),
    ("shadowed-value", "Value x has the name of a value of the scope around it",
     lambda m: branch(m).node.append(oh.make_node("Relu", ["a"], ["x"], "k"))),
]  # fmt: skip

REPAIRED = {
    "ir-missing", "opset-import", "unused-opset", "initializer-not-input", "graph-name",
    "unused-node", "unused-initializer", "duplicate-initializer", "unsorted-nodes",
    "duplicate-node-name", "shadowed-value", "outer-output", "unknown-attribute",
    "unused-value-info", "shape-conflict", "initializer-is-input", "unused-function",
}  # fmt: skip
"""Rules with a safe repair, always or sometimes."""


def changed(text: str, change: Change) -> onnx.ModelProto:
    made = models.parse(text)
    change(made)
    return made


ALL = [
    *((models.CHAIN, *case) for case in CHAIN_CASES),
    *((models.PLAIN_BRANCHES, *case) for case in BRANCH_CASES),
]


def findings_of(document: Document, rule: str) -> list[Finding]:
    return [finding for finding in check(document) if finding.rule == rule]


def _known_as(finding: Finding) -> tuple[object, ...]:
    return (finding.rule, finding.scope, finding.node, finding.value, finding.message)


@pytest.mark.parametrize(("text", "rule", "message", "change"), ALL)
def test_a_rule_and_its_repair(
    tmp_path: Path, text: str, rule: str, message: str, change: Change
) -> None:
    """A repair is one step, does away with its finding, and is promised nowhere else."""
    document = opened(tmp_path, changed(text, change))
    told = check(document)
    found = [finding for finding in told if finding.rule == rule]
    assert any(message in finding.message for finding in found), [f.message for f in told]
    assert {finding.level for finding in found} <= {RULES[rule], "error", "warning"}
    fixable = [finding for finding in found if finding.fix is not None]
    if fixable:
        before, known = bytes_of(document), [*map(_known_as, told)]
        document.apply(repair_of(repair_steps(fixable)))
        left = {finding.message for finding in findings_of(document, rule)}
        assert not {finding.message for finding in fixable} & left
        document.undo()
        assert bytes_of(document) == before
        assert [*map(_known_as, check(document))] == known
    with contextlib.suppress(DldError, RefusedError, KeyError):
        parsed = onnx.ModelProto.FromString(bytes_of(document))
        store_types(document, infer_types(parsed, None)[0])
    for finding in check(document):
        assert finding.is_fixable == (finding.fix is not None), finding.message
        steps = repair_steps([finding])
        assert bool(steps) == (finding.is_fixable and finding.repair is not None)
        if steps:
            document.apply(repair_of(steps))
            assert _known_as(finding) not in {*map(_known_as, check(document))}, finding.message
            document.undo()


def test_a_conflict_is_told_in_the_order_of_the_file_also_after_an_undo(tmp_path: Path) -> None:
    made = models.parse(models.CHAIN)
    made.graph.value_info.extend([info("a", 1), info("a", 7)])
    document = opened(tmp_path, made)
    (told,) = findings_of(document, "type-conflict")
    transaction = Transaction("remove the first", {})
    remove_records(
        transaction, document.main, "value_info", document.main.records["value_info"][:1]
    )
    transaction.roll_back()
    assert findings_of(document, "type-conflict") == [told]
    assert told.message == "Value a is float32 in value_info and int64 in value_info"


def test_rules_with_repairs_are_those_that_are_documented_so(tmp_path: Path) -> None:
    rules = set()
    for at, (text, rule, _, change) in enumerate(ALL):
        folder = tmp_path / str(at)
        folder.mkdir()
        document = opened(folder, changed(text, change))
        rules |= {f.rule for f in findings_of(document, rule) if f.repair is not None}
        document.close()
    assert rules >= REPAIRED


def test_every_rule_is_tried_and_documented() -> None:
    tried = {rule for _, rule, _, _ in ALL}
    elsewhere = {
        "model-size",
        "nesting-depth",
        "too-many-parts",
        "external-unused",  # of data files: see test_external_edits
        "empty-graph",
        INFERENCE,
        NOT_INFERRED,
        KERNEL,
        OPERANDS,
    }
    elsewhere |= {rule for rule in RULES if rule.startswith("onnxruntime:")}
    assert set(RULES) == tried | elsewhere
    docs = (
        Path(__file__).parents[3].joinpath("docs/reference/checks.md").read_text(encoding="utf-8")
    )
    assert set(re.findall(r"^### `((?!speed:|decoder:)[a-z:-]+)`", docs, re.MULTILINE)) == set(
        RULES
    )


def test_too_much_in_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "LARGEST_FILE", 10)
    document = opened(tmp_path, models.parse(models.CHAIN))
    assert len(findings_of(document, "model-size")) == 1


def test_subgraphs_too_deep_inside_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model, "DEEPEST", 0)
    document = opened(tmp_path, models.parse(models.PLAIN_BRANCHES))
    assert {f.scope.title for f in findings_of(document, "nesting-depth") if f.scope} == {
        "then_branch",
        "else_branch",
    }


def test_many_unused_nodes_are_one_finding(tmp_path: Path) -> None:
    made = models.parse(models.CHAIN)
    for at in range(300):
        node(made, "Relu", ["x"], [f"k{at}"], f"n{at}")
    (finding,) = findings_of(opened(tmp_path, made), "unused-node")
    assert finding.message == "and 299 other nodes are not on the way to any output"
    assert finding.node is not None
    assert finding.node.name == "n299"


def test_inferred_types_count_until_they_are_stale(tmp_path: Path) -> None:
    from dld_tui.core.model.tensors.value_types import ValueType

    document = opened(tmp_path, models.parse(models.CHAIN))
    document.main.inferred = {"a": ValueType("int64", ("N", 4)), "y": ValueType("float32", (7, 4))}
    found = {f.rule for f in check(document)}
    assert found >= {"type-conflict"}
    document.main.stale = {"a", "y"}
    assert "type-conflict" not in {f.rule for f in check(document)}


SPLIT = "Split<axis=1, num_outputs=2>(x)"
TRAINED = "BatchNormalization<training_mode={}>(x, s, s, s, s)"


@pytest.mark.parametrize(
    ("nodes", "level"),
    [
        (f"y, z = {SPLIT}", None),
        (f", y = {SPLIT}", None),
        ("y, , z = Unique(x)", None),
        (", y = Unique(x)", "error"),
        ("y, , z = DynamicQuantizeLinear(x)", "error"),
        (", , z = DynamicQuantizeLinear(x)", "error"),
        (", , y = LSTM<hidden_size=1>(x, s, s)", None),
        (f"y, , z = {TRAINED.format(1)}", None),
        (f"y, , z = {TRAINED.format(0)}", None),
    ],
)
def test_outputs_without_names(tmp_path: Path, nodes: str, level: str | None) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 20]>
    g (float[2, 4] x) => (y) <float[4] s = {{1, 1, 1, 1}}> {{ {nodes} }}"""
    document = opened(tmp_path, models.parse(text))
    assert [f.level for f in findings_of(document, "nameless-output")] == ([level] if level else [])


def test_a_call_of_a_function_has_all_its_outputs(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (y) {{ {} = f.Two(x) }}
    <domain: "f", opset_import: ["" : 20]> Two (a) => (b, c) {{ b = Relu(a) c = Neg(a) }}"""
    for outputs, count in (("y, z", 0), (", y", 0), ("y", 1)):
        document = opened(tmp_path, models.parse(text.format(outputs)))
        assert len(findings_of(document, "arity")) == count


BROKEN_SPARSE: dict[str, tuple[list[int], list[int], list[int], list[int], str]] = {
    "indices": ([4], [2], [1], [0], "indices are [1] for 2 values"),
    "axes": ([2, 2], [2], [2, 1], [0, 1], "indices are [2, 1] for 2 values"),
    "rank": ([4], [1, 2], [2], [0, 1], "values are [1, 2]"),
    "outside": ([4], [2], [2], [0, 4], "an index is outside of [4]"),
    "outside an axis": ([2, 3], [1], [1, 2], [2, 0], "an index is outside of [2, 3]"),
    "negative": ([4], [1], [1], [-1], "an index is outside of [4]"),
    "dimension": ([-4], [1], [1], [0], "negative dimension"),
    "order": ([4], [2], [2], [1, 0], "not in ascending order"),
    "twice": ([4], [2], [2], [1, 1], "not in ascending order"),
    "scalar": ([], [1], [1], [0], "rejects dimensions []"),
    "nothing": ([0, 3], [0], [0], [], "rejects dimensions [0, 3]"),
    "good": ([4], [2], [2], [0, 3], ""),
    "good axes": ([2, 3], [2], [2, 2], [0, 1, 1, 0], ""),
    "empty": ([4], [0], [0], [], ""),
}


@pytest.mark.parametrize("name", BROKEN_SPARSE)
@pytest.mark.parametrize("is_constant", [False, True])
def test_sparse_tensors(tmp_path: Path, name: str, is_constant: bool) -> None:
    """Errors are what ONNX Runtime rejects, warnings what onnx's checker rejects besides."""
    dims, value_dims, index_dims, places, message = BROKEN_SPARSE[name]
    sparse = onnx.SparseTensorProto(dims=dims)
    count = len(places) // (index_dims[1] if index_dims[1:] else 1)
    count = value_dims[0] * (value_dims[1] if value_dims[1:] else 1) if value_dims else count
    sparse.values.CopyFrom(oh.make_tensor("w", 1, value_dims, [1.0] * count))
    sparse.indices.CopyFrom(oh.make_tensor("", 7, index_dims, places))
    made = models.parse(models.CHAIN)
    if is_constant:
        made.graph.node.append(oh.make_node("Constant", [], ["k"], sparse_value=sparse))
    else:
        sparse.values.name = "k"
        made.graph.sparse_initializer.append(sparse)
    made.graph.node.append(oh.make_node("Relu", ["k"], ["l"]))
    made.graph.output.append(info("l"))
    found = findings_of(opened(tmp_path, made), "tensor-data")
    assert [message in f.message for f in found] == ([True] if message else [])
    is_warning = name in ("order", "twice", "scalar", "nothing")
    assert {f.level for f in found} == (
        {"warning" if is_warning else "error"} if message else set()
    )


@pytest.mark.parametrize("most", [1, 2])
def test_the_order_of_many_sparse_indices_is_not_looked_at(
    tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensor_rules, "MOST_INDICES", most)
    made = models.parse(models.CHAIN)
    made.graph.sparse_initializer.append(
        oh.make_sparse_tensor(
            oh.make_tensor("k", 1, [2], [1.0] * 2), oh.make_tensor("", 7, [2], [1, 0]), [4]
        )
    )
    assert len(findings_of(opened(tmp_path, made), "tensor-data")) == (most == 2)


def test_an_undefined_input_is_named_without_those_that_are_there(tmp_path: Path) -> None:
    made = models.parse(models.CHAIN)
    made.graph.node.append(oh.make_node("Sum", ["x", "ghost", "", "x"], ["k"], "n"))
    (finding,) = findings_of(opened(tmp_path, made), "undefined-input")
    assert (finding.message, finding.value) == ("Input ghost has no producer", "ghost")


@pytest.mark.parametrize(
    ("domain", "op_type", "level"),
    [
        ("com.microsoft", "FastGelu", "warning"), ("com.microsoft", "OfTheFuture", "error"),
        ("ai.onnx.ml", "Binarizer", "warning"), ("ai.onnx.ml", "OfTheFuture", "error"),
        ("ai.onnx.preview.training", "Adam", "error"), ("strange", "Relu", "error"),
    ],
)  # fmt: skip
def test_a_set_that_is_not_imported_is_an_error_where_onnx_runtime_does_not_fill_it_in(
    tmp_path: Path, domain: str, op_type: str, level: str
) -> None:
    made = models.parse(models.CHAIN)
    node(made, op_type, ["x"], ["k"], "n", domain=domain)
    (finding,) = findings_of(opened(tmp_path, made), "opset-import")
    assert finding.level == level
    assert ("ONNX Runtime takes the newest" in finding.message) == (level == "warning")


@pytest.mark.parametrize("loaded", [True, False, None])
@pytest.mark.parametrize("ran", [True, False, None])
def test_what_onnx_runtime_takes_is_no_error(loaded: bool | None, ran: bool | None) -> None:
    """Operands and decoders are proven by a run, all else by loading; what it says stays."""
    by_load, by_run = "opset-import", OPERANDS
    known = [Finding("error", rule, "m", None, None, None, None)
             for rule in (by_load, by_run, "decoder:heads", "decoder:config",
                          "onnxruntime:load")]  # fmt: skip
    told = {
        one.rule: one.level for one in settled(known, RuntimeAnswer(True, "1", [], loaded, ran))
    }
    assert told == {
        by_load: "warning" if loaded else "error",
        by_run: "warning" if loaded and ran else "error",
        "decoder:heads": "warning" if loaded and ran else "error",
        "decoder:config": "error",
        "onnxruntime:load": "error",
    }
    assert settled(known, None) == known


def test_a_sparse_output(tmp_path: Path) -> None:
    made = models.parse(models.CHAIN)
    values = oh.make_tensor("k", 1, [1], [1.0])
    made.graph.sparse_initializer.append(
        oh.make_sparse_tensor(values, oh.make_tensor("", 7, [1], [0]), [2, 2])
    )
    made.graph.output.append(info("k"))
    (finding,) = findings_of(opened(tmp_path, made), "tensor-data")
    assert "an output of the graph" in finding.message


def test_outputs_of_a_function(tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (float[2] y) {{ z, y = f.Two(x) }}
    <domain: "f", opset_import: ["" : 20]> Two (a) => ({}) {{ b = Neg(a) }}"""
    document = opened(tmp_path, models.parse(text.format("b, b")))
    assert [f.level for f in findings_of(document, "duplicate-output")] == ["error"]
    document.close()
    document = opened(tmp_path, models.parse(text.format("a, b")))
    (finding,) = findings_of(document, "outer-output")
    document.apply(repair_of(repair_steps([finding])))
    assert findings_of(document, "outer-output") == []
    assert document.functions[0].outputs == ("a_copy", "b")
    onnx.checker.check_model(onnx.ModelProto.FromString(bytes_of(document)), full_check=True)


def test_a_parameter_of_a_function_may_be_absent(tmp_path: Path) -> None:
    """ONNX Runtime and onnx's checker take such a call."""
    text = """<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (y) { y = f.Leaky(x) }
    <domain: "f", opset_import: ["" : 20]> Leaky <by> (a) => (b)
    { b = LeakyRelu<alpha: float = @by>(a) }"""
    document = opened(tmp_path, models.parse(text))
    assert [f.level for f in findings_of(document, "missing-attribute")] == ["warning"]


@pytest.mark.parametrize(
    ("call", "level"),
    [("LayerNormalization <a = 1> (x, w)", "warning"), ("Relu <a = 1> (x)", "error")],
)
def test_an_attribute_that_onnx_runtime_ignores_is_a_warning(
    call: str, level: str, tmp_path: Path
) -> None:
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
    g (float[2, 3] x, float[3] w) => (y) {{ y = {call} }}"""
    (found,) = findings_of(opened(tmp_path, models.parse(text)), "unknown-attribute")
    assert found.level == level


def test_a_scan_of_batches_has_no_body_to_compare_with(tmp_path: Path) -> None:
    """Before opset 9 its first input is of lengths, and its items have no batch."""
    for version, count in ((8, 0), (9, 1)):
        text = f"""<ir_version: 4, opset_import: ["" : {version}]>
        g (int64[1] n, float[1, 2] s, float[1, 3, 2] x) => (t, y) {{
            t, y = Scan <num_scan_inputs = 1, body = b (a, i) => (o, r) {{
                o = Add (a, i) r = Identity (o) }}> (n, s, x) }}"""
        document = opened(tmp_path, models.parse(text))
        assert len(findings_of(document, "subgraph-signature")) == count


@pytest.mark.parametrize("value", ["1", "1.5", '"a"', "[1, 2]"])
def test_a_parameter_without_a_default_takes_any_kind(value: str, tmp_path: Path) -> None:
    text = f"""<ir_version: 10, opset_import: ["" : 20, "f" : 1]>
    g (float[2] x) => (y) {{ y = f.Any <by = {value}, alpha = 1> (x) }}
    <domain: "f", opset_import: ["" : 20]> Any <by, alpha: float = 0.5> (a) => (b)
    {{ b = LeakyRelu<alpha: float = @alpha>(a) }}"""
    document = opened(tmp_path, models.parse(text))
    found = findings_of(document, "attribute-type")
    assert [one.message for one in found] == ["Attribute alpha is int, it takes float"]


BRANCH = """<ir_version: 8, opset_import: ["" : 18]>
g (bool c, float[2] x, float[2] k) => (z) {{ n = Neg(x) y = If (c) <
then_branch = t () => (float[2] a) {{ {0} = Abs(x) a = Neg({0}) }},
else_branch = e () => (float[2] b) {{ b = Neg(x) }}> m = Neg(y) z = Add(m, n) }}"""
REPEATED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2] x, float[2] k) => (y) {{ {0} = {1} {0} = {2} y = Add(x, {0}) }}"""
CONSTANT = "Constant<value = float[2] {1, 2}>()"


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        *((BRANCH.format(name), "shadowed-value") for name in ("n", "k", "y", "m")),
        (REPEATED.format("n", CONSTANT, CONSTANT), "duplicate-producer"),
        (REPEATED.format("n", CONSTANT, "Neg(x)"), "duplicate-producer"),
        (REPEATED.format("n", "Neg(x)", "Neg(k)"), "duplicate-producer"),
        (REPEATED.format("k", CONSTANT, CONSTANT), "duplicate-producer"),
    ],
)
def test_names_that_are_taken_twice_are_errors_where_onnxruntime_refuses_them(
    tmp_path: Path, text: str, rule: str
) -> None:
    made = models.parse(text)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    wanted = {"warning"}
    try:
        onnxruntime.InferenceSession(
            made.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except Exception:  # noqa: BLE001 - the seam: its errors have no common class
        wanted = {"error"}
    assert {found.level for found in findings_of(opened(tmp_path, made), rule)} == wanted


_MANY = 501


@pytest.fixture
def few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let hundreds of parts be too many: a hundred thousand take a second."""
    for module in (proto_fields, scope, native, model):
        for name, count in (("MOST_PARTS", _MANY - 1), ("LEAST_OF_A_CROWD", 2 * _MANY - 2)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, count)


def added(**crowded: Any) -> Change:
    return lambda model: model.graph.node.append(onnx.NodeProto(**crowded))


def listed(*path: str | int, **first: Any) -> Change:
    """Return a change that fills a list of a model, whose parts have names."""

    def change(model: onnx.ModelProto) -> None:
        parts: Any = model
        for step in path:
            parts = parts[step] if isinstance(step, int) else getattr(parts, step)
        for number in range(_MANY):
            parts.add(**first or {"name": f"p{number}"})

    return change


def graphs_of_a_node(model: onnx.ModelProto) -> None:
    attribute = model.graph.node[0].attribute.add(name="g", type=onnx.AttributeProto.GRAPHS)
    attribute.graphs.extend(onnx.GraphProto(name=f"p{number}") for number in range(_MANY))


ENTRIES = [onnx.StringStringEntryProto(key=str(key)) for key in range(_MANY)]
CROWDS: dict[str, tuple[Change, str]] = {
    "attributes": (
        added(op_type="Relu", input=["x"], output=["k"],
              attribute=[oh.make_attribute(f"a{number}", 1) for number in range(_MANY)]),
        ">k: Relu has 501 attributes",
    ),
    "inputs": (added(op_type="Concat", input=["x"] * _MANY, output=["k"]),
               ">k: Concat has 501 inputs"),
    "outputs": (added(op_type="Split", input=["x"], output=[f"k{at}" for at in range(_MANY)]),
                ">k0: Split has 501 outputs"),
    "list": (
        added(op_type="Transpose", input=["x"], output=["k"],
              attribute=[oh.make_attribute("perm", [*range(_MANY)])]),
        ">k: Transpose has 501 values in an attribute",
    ),
    "operator sets": (
        lambda model: model.opset_import.extend(
            onnx.OperatorSetIdProto(domain=f"d{number}", version=1) for number in range(_MANY)
        ),
        "502 operator sets",
    ),
    "metadata": (lambda model: model.metadata_props.extend(ENTRIES), "501"),
    "rank of an initializer": (
        lambda model: model.graph.initializer.add(
            name="w", data_type=1, dims=[1] * _MANY, float_data=[1]
        ),
        "501",
    ),
    "external": (
        lambda model: model.graph.initializer.add(
            name="w", data_type=1, dims=[1], data_location=1, external_data=ENTRIES
        ),
        "501",
    ),
    "rank of a value": (
        lambda model: model.graph.value_info.append(
            oh.make_tensor_value_info("v", 1, [1] * _MANY)
        ),
        "501",
    ),
}  # fmt: skip
NOT_OPENED: dict[str, Change] = {
    "local functions": listed("functions"),
    "graph inputs": listed("graph", "input"),
    "graph outputs": listed("graph", "output"),
    "graphs in an attribute": graphs_of_a_node,
    "503 dimensions of x": listed(
        "graph", "input", 0, "type", "tensor_type", "shape", "dim", dim_value=1
    ),
    "501 attributes of function F": lambda model: model.functions.add(
        name="F", domain="f", attribute=map(str, range(_MANY))
    ),
}


@pytest.mark.usefixtures("few_parts")
@pytest.mark.parametrize("name", CROWDS)
def test_too_many_parts_are_the_only_finding(tmp_path: Path, name: str) -> None:
    change, text = CROWDS[name]
    crowded = models.parse(models.CHAIN)
    change(crowded)
    document = opened(tmp_path, crowded)
    (finding,) = check(document)
    assert finding.rule == "too-many-parts"
    ref = f"{finding.node.ref}: " if finding.node else ""
    assert text in ref + finding.message
    if finding.node is not None or name == "operator sets":
        assert finding.node in (None, document.main.nodes[-1])
        with pytest.raises(RefusedError, match=text.rpartition(" has ")[2]):
            infer_shapes(crowded)


@pytest.mark.usefixtures("few_parts")
@pytest.mark.parametrize("text", NOT_OPENED)
def test_what_no_program_goes_through_is_not_opened(tmp_path: Path, text: str) -> None:
    crowded = models.parse(models.CHAIN)
    NOT_OPENED[text](crowded)
    with pytest.raises(InputError, match=f"m.onnx: .*{text}"):
        opened(tmp_path, crowded)


@pytest.mark.parametrize("beyond", [0, 1])
@pytest.mark.parametrize("list_name", ["value_info", "initializer"])
def test_each_node_allows_more_entries(
    list_name: str, beyond: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = models.parse(models.CHAIN)
    monkeypatch.setattr(model, "MOST_PARTS", 10)
    entries = getattr(chain.graph, list_name)
    for number in range(10 + 100 * len(chain.graph.node) + beyond - len(entries)):
        if list_name == "initializer":
            entries.add(name=f"v{number}", data_type=1, dims=[1], float_data=[1])
        else:
            entries.add(name=f"v{number}")
    found = [one.rule for one in check(opened(tmp_path, chain)) if one.rule == "too-many-parts"]
    assert len(found) == beyond


@pytest.mark.usefixtures("few_parts")
def test_long_lists_of_constants_and_tree_ensembles_are_usual(tmp_path: Path) -> None:
    model = models.parse(models.CHAIN)
    numbers = [*range(_MANY)]
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    model.graph.node.append(oh.make_node("Constant", [], ["c"], value_ints=numbers))
    model.graph.node.append(
        oh.make_node("TreeEnsembleRegressor", ["x"], ["t"], domain="ai.onnx.ml",
                     nodes_treeids=numbers)
    )  # fmt: skip
    assert "too-many-parts" not in {finding.rule for finding in check(opened(tmp_path, model))}
    infer_shapes(model)


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


def test_findings_come_errors_first_and_as_json(tmp_path: Path) -> None:
    def both(model: onnx.ModelProto) -> None:
        model.graph.node.append(oh.make_node("Reluu", ["x"], ["dead"], "n"))

    findings = check(
        opened(tmp_path, changed(models.CHAIN.replace(", float[2] unused = {5, 6}", ""), both))
    )
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
