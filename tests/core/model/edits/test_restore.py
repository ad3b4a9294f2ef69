"""The inverse of every edit, as data, brings a saved file back to the very bytes before it."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from dld_tui.core.errors import EditError
from dld_tui.core.model.document import Document
from dld_tui.core.model.document.edit_registry import known_edits
from dld_tui.core.model.document.serialise import save
from dld_tui.core.model.edits.restore import inverse_arguments
from dld_tui.core.types import JSON
from tests.support import body_models, models
from tests.support.body_cases import BODY_CASES
from tests.support.sessions import bytes_of

THEN: list[JSON] = ["choose:then_branch"]
FRAGMENT: JSON = {
    "model": b64encode(models.parse(models.FUNCTIONS).SerializeToString()).decode("ascii")
}
MODEL = b64encode(models.parse(models.FUNCTIONS).SerializeToString()).decode("ascii")
W: JSON = {"initializer": "w"}
TENSOR_CASES: list[tuple[str, str, dict[str, JSON]]] = [
    ("CHAIN", "add_initializer",
     {"scope": [], "name": "n", "dtype": "float32", "dims": [99, 999], "fill": {"kind": "normal"}}),
    ("CHAIN", "delete_initializers", {"scope": [], "names": ["w", "unused"], "disconnect": True}),
    ("CHAIN", "convert_tensor", {"scope": [], "tensor": W, "dtype": "float16"}),
    ("CHAIN", "set_elements", {"scope": [], "tensor": W, "start": 1, "values": ["nan", 3]}),
    ("CHAIN", "replace_tensor", {"scope": [], "tensor": W, "dtype": "float32", "dims": [2, 2]}),
    ("CHAIN", "splice_tensor",
     {"scope": [], "tensor": W, "axis": 0, "start": 0, "delete": 1, "insert": 2}),
    ("WEIGHTS", "set_external", {"scope": [], "names": ["w", "unused"], "location": "w.data"}),
    ("CHAIN", "to_sparse", {"scope": [], "names": ["w"]}),
]  # fmt: skip
CASES: list[tuple[str, str, dict[str, JSON]]] = [
    ("BRANCHES", "rename_node", {"scope": [], "node": "pre", "name": "other"}),
    ("BRANCHES", "rename_value", {"scope": [], "value": "a", "name": "other"}),
    ("BRANCHES", "rename_matches", {"pattern": "^(pre|inner)$", "replacement": "\\1_"}),
    ("CHAIN", "clean", {"passes": ["initializers-to-constants", "remove-unused"]}),
    ("BRANCHES", "cast_input", {"scope": THEN, "node": "inner", "index": 0, "dtype": "float64"}),
    ("BRANCHES", "set_operator", {"scope": THEN, "nodes": ["inner"], "op_type": "P"}),
    ("BRANCHES", "set_attribute",
     {"scope": THEN, "node": "inner", "attribute": "p", "kind": "strings", "value": ["a"]}),
    ("BRANCHES", "remove_attribute", {"scope": [], "node": "choose", "attribute": "then_branch"}),
    ("BRANCHES", "delete_nodes", {"scope": [], "nodes": ["choose"]}),
    ("CHAIN", "delete_nodes", {"scope": [], "nodes": ["second", "last"], "reconnect": True}),
    ("CHAIN", "set_input", {"scope": [], "node": "third", "index": 1, "value": "a"}),
    ("CHAIN", "set_input",
     {"scope": [], "node": "third", "index": 1, "value": "w", "sort": True}),
    ("CHAIN", "set_output", {"scope": [], "node": "third", "index": 0, "value": "z"}),
    ("BRANCHES", "replace_uses", {"scope": [], "value": "a", "by": "choice"}),
    ("CHAIN", "bypass_nodes", {"scope": [], "nodes": ["second"]}),
    ("TRANSPOSES", "merge_transposes", {"scope": [], "node": "second"}),
    ("CHAIN", "rewrite", {"rules": "Relu(x) => LeakyRelu<alpha=0.5>(x)"}),
    ("BRANCHES", "rewrite", {"rules": "Add(x, y) => Sub(x, Neg(y))"}),
    ("CHAIN", "cast_nodes", {"nodes": [[[], "first"]], "precision": "fp16"}),
    ("CHAIN", "add_node", {"scope": [], "op_type": "Abs", "inputs": ["a"]}),
    ("BRANCHES", "add_operator",
     {"scope": THEN, "op_type": "TreeEnsemble", "domain": "ai.onnx.ml", "inputs": ["h"],
      "behind": "h", "opset": 5}),
    ("CHAIN", "insert_node", {"scope": [], "value": "a", "op_type": "Abs"}),
    ("CHAIN", "replace_nodes", {"scope": [], "nodes": ["second", "third"], "op_type": "P"}),
    ("CHAIN", "replace_nodes",
     {"scope": [], "nodes": ["second"], "op_type": "P", "domain": "my", "inputs": ["a"],
      "outputs": ["p"], "attributes": {"k": {"kind": "int", "value": 1}}}),
    ("CHAIN", "extract", {"inputs": ["a"], "outputs": {"b": "cut"}}),
    ("CHAIN", "change_dimensions", {"dims": {"N": 4}}),
    ("CHAIN", "cut_off", {"nodes": ["third"], "outputs": {"b": "cut"}}),
    ("CHAIN", "add_input", {"scope": [], "name": "w"}),
    ("FUNCTIONS", "add_input", {"scope": ["function local:twice"], "name": "extra"}),
    ("CHAIN", "add_output", {"scope": [], "name": "a", "dtype": "float32", "dims": ["N", 4]}),
    ("CHAIN", "remove_input", {"scope": [], "name": "x"}),
    ("CHAIN", "remove_output", {"scope": [], "name": "y"}),
    ("CHAIN", "set_value_type", {"scope": [], "value": "a", "dtype": "float16", "dims": [1]}),
    ("CHAIN", "remove_terminal", {"scope": [], "node": "second", "side": "input", "index": 0}),
    ("BRANCHES", "disconnect_value", {"scope": [], "value": "a"}),
    ("CHAIN", "expose_input",
     {"scope": [], "node": "third", "index": 1, "dtype": "float32", "dims": [1]}),
    ("CHAIN", "replace_output", {"scope": [], "name": "y", "by": "c"}),
    ("FUNCTIONS", "replace_output", {"scope": ["function local:twice"], "name": "r", "by": "v"}),
    ("BRANCHES", "move_terminal", {"scope": [], "side": "input", "name": "x", "to": 0}),
    ("BRANCHES", "set_precision",
     {"nodes": [[[], "pre"], [THEN, "inner"]], "precision": "fp16"}),
    ("BRANCHES", "set_positions",
     {"scope": THEN, "positions": {"inner": [4, 0]}}),
    ("CHAIN", "set_profiles",
     {"profiles": [{"x": {"min": [1, 4], "opt": [2, 4], "max": [3, 4]}}]}),
    ("CHAIN", "set_model_field", {"field": "ir_version", "value": 8}),
    ("CHAIN", "set_model_field", {"field": "producer_name", "value": "us"}),
    ("CHAIN", "set_doc_string", {"scope": [], "text": "text", "nodes": ["first"]}),
    ("CHAIN", "set_metadata", {"key": "k", "value": "v"}),
    ("CHAIN", "set_metadata", {"key": "k", "value": "v", "scope": [], "nodes": ["first"]}),
    ("CHAIN", "set_opset", {"domain": "com.microsoft", "version": 1}),
    ("CHAIN", "remove_unused", {"scope": []}),
    ("SHADY", "remove_unused", {"scope": [], "nodes": False, "names": ["w"]}),
    ("SHADY", "trim_links", {"scope": [], "node": "call"}),
    ("SHADY", "remove_value_info", {"scope": [], "values": ["ghost"]}),
    ("SHADY", "remove_repeated_initializers", {"scope": [], "names": ["w"]}),
    ("SHADY", "name_graph", {"scope": [], "name": "other"}),
    ("SHADY", "rename_shadowing", {"scope": ["choose:else_branch"], "value": "x"}),
    ("SHADY", "own_outputs", {"scope": ["choose:then_branch"], "values": ["a"]}),
    ("SHADY", "repair", {"steps": [["trim_links", {"scope": [], "node": "call"}],
                                   ["delete_nodes", {"scope": [], "nodes": ["gone"]}],
                                   ["remove_value_info", {"scope": [], "values": ["ghost"]}]]}),
    ("CHAIN", "paste_nodes", {"scope": [], "fragment": FRAGMENT}),
    ("BRANCHES", "delete_many", {"nodes": [[[], "pre"], [THEN, "inner"]]}),
    ("BRANCHES", "set_attributes",
     {"changes": [{"nodes": [[[], "pre"], [THEN, "inner"]],
                   "attributes": {"p": {"kind": "int", "value": 3}}}]}),
    ("FUNCTIONS", "merge_models", {"models": [{"raw": MODEL}]}),
    ("CHAIN", "convert_terminals", {"types": {"x": "float16"}}),
    ("CHAIN", "prepend_processing", {"input": "x", "scale": 0.5}),
    ("CHAIN", "append_processing", {"step": "softmax", "keep": True}),
    ("CHAIN", "replace_model", {"model": {"raw": MODEL}, "title": "convert"}),
    *BODY_CASES,
    *TENSOR_CASES,
]  # fmt: skip


@pytest.mark.parametrize(("text", "edit", "arguments"), CASES)
def test_inverse(tmp_path: Path, text: str, edit: str, arguments: dict[str, JSON]) -> None:
    document = Document.open(body_models.write(tmp_path, text))
    before = bytes_of(document)
    transaction = document.apply(edit, **arguments)
    assert transaction.primitives, "the case must change something"
    save(document, tmp_path / "saved.onnx")
    inverse = inverse_arguments(document, transaction)
    assert bytes_of(document) == before
    fresh = Document.open(tmp_path / "saved.onnx")
    assert bytes_of(fresh) != before
    fresh.apply("restore", **inverse)
    assert bytes_of(fresh) == before


def test_every_edit_has_a_case() -> None:
    tested = {edit for _, edit, _ in CASES}
    elsewhere = {"restore", "set_inline", "to_dense", "sort_nodes", "rename_duplicate_nodes"}
    elsewhere |= {"fold_nodes"}  # needs nodes that compute from constants
    elsewhere |= {"set_external_entries", "set_sparse"}  # need a data file, a sparse initializer
    assert set(known_edits()) == tested | elsewhere


def test_steps_that_do_not_fit_are_refused_and_leave_no_trace(tmp_path: Path) -> None:
    document = Document.open(models.write(tmp_path, models.CHAIN))
    before = bytes_of(document)
    steps: list[JSON] = [
        {"scope": [], "step": "links", "index": 0, "side": "input", "names": ["y"]},
        {"scope": [], "step": "links", "index": 99, "side": "input", "names": []},
    ]
    with pytest.raises(EditError, match="does not fit"):
        document.apply("restore", steps=steps, title="x")
    assert bytes_of(document) == before
