"""Bodies of nodes are added, copied, moved and deleted, and what they capture stays what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx

from dld_tui.core.model.document import Document
from tests.support import body_models
from tests.support.sessions import bytes_of, node_in, opened, run


def without_body(folder: Path, node: str, attribute: str) -> Document:
    document = opened(folder, body_models.LOOP)
    document.apply("delete_subgraph", scope=[], node=node, attribute=attribute)
    return document


def test_a_new_loop_body_passes_its_state_on_and_runs(tmp_path: Path) -> None:
    document = without_body(tmp_path, "repeat", "body")
    assert node_in(document, "repeat").children == {}
    document.apply("add_subgraph", scope=[], node="repeat", attribute="body")
    body = document.scope_at(["repeat:body"])
    assert body.inputs == ("iteration", "condition", "state_0")
    assert body.outputs == ("condition_out", "state_0_out")
    assert body.value_type("iteration").text == "int64"  # type: ignore[union-attr]
    assert body.value_type("state_0").text == "float32[?]"  # type: ignore[union-attr]
    data = bytes_of(document)
    onnx.checker.check_model(onnx.ModelProto.FromString(data), full_check=True)
    x = np.array([1, 2], np.float32)
    y, *_ = run(data, n=np.array(3), go=np.array(True), x=x, rows=np.zeros((3, 2), np.float32))
    np.testing.assert_array_equal(y, x)


def test_a_new_scan_body_has_its_states_and_items(tmp_path: Path) -> None:
    document = without_body(tmp_path, "scan", "body")
    document.apply("add_subgraph", scope=[], node="scan", attribute="body")
    body = document.scope_at(["scan:body"])
    assert body.inputs == ("state_0", "scan_0")
    assert body.value_type("scan_0").text == "float32[2]"  # type: ignore[union-attr]
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    feeds = {"n": np.array(0), "go": np.array(True), "x": np.ones(2, np.float32), "rows": rows}
    _, total, found = run(bytes_of(document), **feeds)
    np.testing.assert_array_equal(total, [2, 2])
    np.testing.assert_array_equal(found, rows)
