"""The inverse of every edit, as data, brings a saved file back to the very bytes before it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dld_tui.core.document import Document
from dld_tui.core.document.edits.registry import EDITS
from dld_tui.core.document.edits.restore import inverse_arguments
from dld_tui.core.document.saving import save
from dld_tui.core.errors import EditError
from dld_tui.core.types import JSON
from tests.support import models

THEN: list[JSON] = ["choose:then_branch"]
CASES: list[tuple[str, str, dict[str, JSON]]] = [
    ("BRANCHES", "rename_node", {"scope": [], "node": "pre", "name": "other"}),
    ("BRANCHES", "rename_value", {"scope": [], "value": "a", "name": "other"}),
    ("BRANCHES", "set_attribute",
     {"scope": THEN, "node": "inner", "attribute": "p", "kind": "strings", "value": ["a"]}),
    ("BRANCHES", "remove_attribute", {"scope": [], "node": "choose", "attribute": "then_branch"}),
    ("BRANCHES", "delete_nodes", {"scope": [], "nodes": ["choose"]}),
    ("CHAIN", "delete_nodes", {"scope": [], "nodes": ["second", "last"], "reconnect": True}),
    ("CHAIN", "set_input", {"scope": [], "node": "third", "index": 1, "value": "a"}),
    ("CHAIN", "set_output", {"scope": [], "node": "third", "index": 0, "value": "z"}),
    ("BRANCHES", "replace_uses", {"scope": [], "value": "a", "by": "choice"}),
    ("CHAIN", "bypass_nodes", {"scope": [], "nodes": ["second"]}),
    ("CHAIN", "add_node", {"scope": [], "op_type": "Abs", "inputs": ["a"]}),
    ("CHAIN", "insert_node", {"scope": [], "value": "a", "op_type": "Abs"}),
    ("CHAIN", "replace_nodes", {"scope": [], "nodes": ["second", "third"], "op_type": "P"}),
    ("CHAIN", "add_input", {"scope": [], "name": "w"}),
    ("FUNCTIONS", "add_input", {"scope": ["function local:twice"], "name": "extra"}),
    ("CHAIN", "add_output", {"scope": [], "name": "a", "dtype": "float32", "dims": ["N", 4]}),
    ("CHAIN", "remove_input", {"scope": [], "name": "x"}),
    ("CHAIN", "remove_output", {"scope": [], "name": "y"}),
    ("CHAIN", "set_value_type", {"scope": [], "value": "a", "dtype": "float16", "dims": [1]}),
    ("CHAIN", "set_model_field", {"field": "ir_version", "value": 8}),
    ("CHAIN", "set_model_field", {"field": "producer_name", "value": "us"}),
    ("CHAIN", "set_doc_string", {"scope": [], "text": "text", "nodes": ["first"]}),
    ("CHAIN", "set_metadata", {"key": "k", "value": "v"}),
    ("CHAIN", "set_metadata", {"key": "k", "value": "v", "scope": [], "nodes": ["first"]}),
    ("CHAIN", "set_opset", {"domain": "com.microsoft", "version": 1}),
    ("CHAIN", "remove_unused", {"scope": []}),
]  # fmt: skip


def bytes_of(document: Document) -> bytes:
    return b"".join(p if isinstance(p, bytes) else p.read() for p in document.pieces())


@pytest.mark.parametrize(("text", "edit", "arguments"), CASES)
def test_inverse(tmp_path: Path, text: str, edit: str, arguments: dict[str, JSON]) -> None:
    document = Document.open(models.write(tmp_path, getattr(models, text)))
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
    elsewhere = {"restore", "sort_nodes", "rename_duplicate_nodes"}
    assert set(EDITS) == tested | elsewhere


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
