"""Rules of checks; models as text, and what is told of them, are in transcripts/checks.txt."""

from __future__ import annotations

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
from dld_tui.core.errors import InputError
from dld_tui.core.files import proto_fields
from dld_tui.core.model.document import Document, scope
from dld_tui.core.model.edits.repairs import repair_of
from dld_tui.core.model.operators import native
from dld_tui.core.model.operators.native import infer_shapes
from dld_tui.core.process.child import RefusedError
from tests.support import model_transcripts, models
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


REPAIRED = {
    "ir-missing", "opset-import", "unused-opset", "initializer-not-input", "graph-name",
    "unused-node", "unused-initializer", "duplicate-initializer", "unsorted-nodes",
    "duplicate-node-name", "shadowed-value", "outer-output", "unknown-attribute",
    "unused-value-info", "shape-conflict", "initializer-is-input", "unused-function",
}  # fmt: skip
"""Rules with a safe repair, always or sometimes."""


def findings_of(document: Document, rule: str) -> list[Finding]:
    return [finding for finding in check(document) if finding.rule == rule]


def test_a_repair_is_undone_without_a_trace() -> None:
    """What each repair does is in the transcript."""
    repaired = set()
    for made in model_transcripts.models_of("checks"):
        with closing(Document(made)) as document:
            told, before = check(document), bytes_of(document)
            if steps := repair_steps(told):
                repaired |= {finding.rule for finding in told if finding.repair is not None}
                document.apply(repair_of(steps))
                document.undo()
                assert bytes_of(document) == before
                assert [one.to_json() for one in check(document)] == [one.to_json() for one in told]
    assert repaired >= REPAIRED


def test_every_rule_is_tried_and_documented() -> None:
    transcript = (model_transcripts.FOLDER / "checks.txt").read_text("utf-8")
    tried = {*re.findall(r"^(?:error|warning|info) ([a-z:-]+) at", transcript, re.MULTILINE)}
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


@pytest.mark.parametrize("loaded", [True, False, None])
@pytest.mark.parametrize("ran", [True, False, None])
def test_what_onnx_runtime_takes_is_no_error(loaded: bool | None, ran: bool | None) -> None:
    """Operands and decoders are proven by a run, all else by loading; what it says stays."""
    by_load, by_run = "opset-import", OPERANDS
    known = [Finding("error", rule, "m", None, None, None, None)
             for rule in (by_load, by_run, "decoder:heads", "decoder:config",
                          "onnxruntime:load", "tensor-data", "onnx:simplify")]  # fmt: skip
    told = {
        one.rule: one.level for one in settled(known, RuntimeAnswer(True, "1", [], loaded, ran))
    }
    assert told == {
        by_load: "warning" if loaded else "error",
        by_run: "warning" if loaded and ran else "error",
        "decoder:heads": "warning" if loaded and ran else "error",
        "decoder:config": "error",
        "onnxruntime:load": "error",
        "tensor-data": "error",
        "onnx:simplify": "error",
    }
    assert settled(known, None) == known


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
